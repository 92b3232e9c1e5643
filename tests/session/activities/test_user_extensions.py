"""Signals and trackers of the user's own, in a run of this process."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import clew
from clew.records.extensions import CannotRegister
from clew.session.activities import tracker_feed
from clew.session.activities.tracker_feed import TRACKERS
from clew.session.activities.user_signals import SIGNALS


@pytest.fixture(autouse=True)
def nothing_stays_registered() -> Iterator[None]:
    yield
    SIGNALS.forget()
    TRACKERS.forget()


def train(steps: int = 6) -> torch.Tensor:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(5, 3)).square().mean().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def recorded(folder: Path) -> Any:
    (run,) = folder.iterdir()
    return clew.open_run(run).data


def attached(folder: Path, **options: Any) -> Any:
    return clew.attach(run_root=folder, quiet=True, every_step=True, **options)


def test_a_signal_sees_gradients_and_unchanged_parameters_once_in_a_step(tmp_path: Path) -> None:
    seen = []

    @clew.extend.signal("gradient_of.first", unit="", meaning="norm of the first gradient")
    def first_gradient(step: Any) -> torch.Tensor:
        (model,) = step.models.values()
        seen.append((step.step, len(step.optimizers)))
        return next(model.parameters()).grad.norm()

    with attached(tmp_path):
        train()
    assert seen == [(step, 1) for step in range(6)]
    ((_, steps, values),) = recorded(tmp_path).series("gradient_of.first")
    assert list(steps) == list(range(6))
    assert (values > 0).all()


def test_a_signal_that_draws_random_numbers_does_not_change_the_training(tmp_path: Path) -> None:
    @clew.extend.signal("noise.drawn")
    def draws(step: Any) -> float:
        return random.random() + np.random.rand() + torch.rand(()).item()

    random.seed(1)
    np.random.seed(1)
    with attached(tmp_path):
        watched = train()
    after = random.random(), np.random.rand()
    random.seed(1)
    np.random.seed(1)
    assert torch.equal(watched, train())
    assert after == (random.random(), np.random.rand())


def test_a_signal_that_fails_is_switched_off_alone(tmp_path: Path) -> None:
    calls = []

    @clew.extend.signal("fails.always")
    def fails(step: Any) -> float:
        calls.append(step.step)
        raise ZeroDivisionError("oh")

    clew.extend.signal("works.always")(lambda step: step.step)
    with attached(tmp_path):
        train()
    data = recorded(tmp_path)
    assert calls == [0]
    assert [f.data["probe"] for f in data.facts if f.kind == "incident"] == ["signal fails.always"]
    ((_, _, values),) = data.series("works.always")
    assert list(values) == list(range(6))


@pytest.mark.parametrize("name", ["Loss", "grad norm", "loss", "metric.accuracy", ""])
def test_a_name_that_a_signal_can_not_have_is_refused(name: str) -> None:
    with pytest.raises(CannotRegister):
        clew.extend.signal(name)(lambda step: 1.0)


class Collector:
    """Keeps what it was given."""

    def __init__(self, run: Any) -> None:
        self.run = run
        self.threads: set[str] = set()
        self.losses: list[float] = []
        self.kinds: set[str] = set()
        self.verdict: Any = None

    def write(self, batch: Any) -> None:
        self.threads.add(threading.current_thread().name)
        self.kinds |= {fact.kind for fact in batch.facts}
        for signal, _, _, values in batch.series():
            if signal == "loss":
                self.losses += [float(v) for v in values]

    def close(self, verdict: Any) -> None:
        self.verdict = verdict


def test_a_tracker_gets_all_rows_and_facts_and_the_verdict_on_a_thread_of_its_own(tmp_path: Path) -> None:
    made: list[Collector] = []

    @clew.extend.tracker(name="collector")
    def collector(run: Any) -> Collector:
        made.append(Collector(run))
        return made[-1]

    with attached(tmp_path):
        train(20)
    (tracker,) = made
    ((_, _, losses),) = recorded(tmp_path).series("loss")
    assert tracker.losses == list(losses)
    assert {"versions", "model", "optimizer"} <= tracker.kinds
    assert tracker.threads == {"clew-trackers"}
    assert tracker.run.path.parent == tmp_path
    assert tracker.verdict is not None


def test_a_tracker_that_comes_late_can_read_what_follows(tmp_path: Path) -> None:
    made: list[Collector] = []
    with attached(tmp_path) as session:
        train(5)
        session.recorded()
        clew.extend.tracker(name="late")(lambda run: made.append(Collector(run)) or made[-1])
        train(5)
    assert len(made[0].losses) == 5


def test_a_tracker_may_refuse_a_run(tmp_path: Path) -> None:
    asked = []
    clew.extend.tracker(name="not-this-one")(lambda run: asked.append(run.id))
    with attached(tmp_path):
        train()
    assert len(asked) == 1
    assert not [f for f in recorded(tmp_path).facts if f.kind == "incident"]


def test_a_tracker_that_hangs_holds_up_neither_training_nor_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tracker_feed, "CLOSE_SECONDS", 0.1)
    released = threading.Event()

    class Hangs:
        def __init__(self, run: Any) -> None: ...

        def write(self, batch: Any) -> None:
            released.wait(60)

    clew.extend.tracker(Hangs)
    with attached(tmp_path):
        train()
    released.set()
    ((_, steps, _),) = recorded(tmp_path).series("loss")
    assert len(steps) == 6
    assert "a tracker did not finish in time" in capsys.readouterr().err


def test_a_tracker_that_can_not_keep_up_loses_records_and_that_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tracker_feed, "MOST_WAITING", 0)
    released = threading.Event()

    class Slow:
        def __init__(self, run: Any) -> None: ...

        def write(self, batch: Any) -> None:
            released.wait(60)

    clew.extend.tracker(Slow)
    with attached(tmp_path) as session:
        train()
        session.recorded()
        train()
        session.recorded()
        released.set()
    assert "a tracker can't keep up" in capsys.readouterr().err


def test_a_tracker_that_was_never_registered_and_is_asked_for_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with attached(tmp_path, track=("nobody",)):
        train()
    assert "tracker nobody" in capsys.readouterr().err
