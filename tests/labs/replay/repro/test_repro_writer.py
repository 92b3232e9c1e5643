"""A kept step is saved and loaded again; what can't be written is reported and does no harm."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import clew
from clew.hooks.steps.replay_inputs import DERIVED
from clew.labs.replay.repro.rebuilt_step import SavedStep
from clew.labs.replay.repro.repro_writer import ReproWriter, write
from clew.labs.replay.repro.saved_sources import CannotRebuild
from clew.labs.replay.repro.saved_step import make_model, replay_saved
from clew.labs.replay.step_replay import ReplayAnswer
from clew.labs.snapshot.nonfinite_values import NonFiniteStep, RootCall
from clew.labs.snapshot.snapshot import Autocast
from clew.measure.rng import Rng

NOTHING = ReplayAnswer(None, "not asked")


class Logarithm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor, *, shift: float = 0.0) -> torch.Tensor:
        return torch.log(x * self.scale + shift)


def held(model: nn.Module, *args: Any, rng: Rng | None = None, **kwargs: Any) -> NonFiniteStep:
    calls = [RootCall("model", model, args, kwargs)]
    return NonFiniteStep(step=7, where="loss", calls=calls, rng=rng or Rng())


def bad_step() -> NonFiniteStep:
    return held(Logarithm(), torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.0, 6.0]]), shift=0.0)


def test_the_models_are_run_again_where_the_code_of_the_loss_is_not_known(tmp_path: Path) -> None:
    write(tmp_path, bad_step(), NOTHING)
    _, found = replay_saved(tmp_path)
    assert found.culprit is not None
    assert (found.culprit.op, found.culprit.samples) == ("log", (1,))
    assert found.culprit.code == "return torch.log(x * self.scale + shift)"


def test_a_step_that_is_finite_has_no_culprit(tmp_path: Path) -> None:
    write(tmp_path, held(Logarithm(), torch.ones(2, 3), shift=1.0), NOTHING)
    assert replay_saved(tmp_path)[1].culprit is None


def test_every_random_generator_is_put_back(tmp_path: Path) -> None:
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    np.random.randn()  # leaves half of a pair behind
    rng = Rng.take()
    wanted = torch.rand(3), np.random.randn(3), random.random()
    write(tmp_path, held(nn.Linear(2, 2), torch.ones(1, 2), rng=rng), NOTHING)
    with SavedStep(tmp_path).conditions():
        got = torch.rand(3), np.random.randn(3), random.random()
    assert torch.equal(got[0], wanted[0])
    assert np.array_equal(got[1], wanted[1])
    assert got[2] == wanted[2]


def test_mixed_precision_is_put_back(tmp_path: Path) -> None:
    step = held(nn.Linear(2, 2), torch.ones(1, 2))
    step.autocast = Autocast("cpu", True, torch.bfloat16)
    write(tmp_path, step, NOTHING)
    saved = SavedStep(tmp_path)
    with saved.conditions():
        model, args, kwargs = saved.calls[0]
        assert model(*args, **kwargs).dtype == torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")


def test_the_script_runs_alone(tmp_path: Path) -> None:
    write(tmp_path, held(nn.Linear(2, 2), torch.full((1, 2), float("inf"))), NOTHING)
    ended = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import repro; print(repro.run().bad)",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.stdout == "['output 0']\n", ended.stderr


class RecordedNotes:
    """What is written to the log."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []

    def fact(self, kind: str, step: int, data: dict[str, Any]) -> None:
        assert (kind, step) == ("repro", 7)
        self.data.append(data)


def test_it_is_written_once_and_said(tmp_path: Path) -> None:
    notes = RecordedNotes()
    writer = ReproWriter(tmp_path / "repro", notes)
    writer(bad_step(), NOTHING)
    writer(bad_step(), NOTHING)
    (note,) = notes.data
    assert list(note) == ["written", "path", "missing", "shown", "reason"]
    assert (note["written"], note["missing"], note["shown"], note["reason"]) == (True, [], True, "")
    assert json.loads((Path(note["path"]) / "repro.json").read_text())["step"] == 7


def test_a_step_that_is_too_large_is_skipped_and_reported(tmp_path: Path) -> None:
    notes = RecordedNotes()
    ReproWriter(tmp_path / "repro", notes, limit=20)(bad_step(), NOTHING)
    assert notes.data == [{"written": False, "reason": "it would take more than 20 bytes"}]
    assert not list(tmp_path.glob("repro/*"))


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "repro").write_text("a file")
    notes = RecordedNotes()
    ReproWriter(tmp_path / "repro", notes)(bad_step(), NOTHING)
    assert notes.data == [{"written": False, "reason": "Not a directory"}]


def test_a_class_of_a_function_has_to_be_made_by_the_user(tmp_path: Path) -> None:
    class Local(Logarithm):
        pass

    step = held(Local(), torch.zeros(1, 3))
    noted = write(tmp_path, step, NOTHING)
    assert noted.missing == ("model (Local)",)
    assert (noted.shown, noted.reason) == (None, "model (Local) could not be saved")
    with pytest.raises(CannotRebuild, match=r"model \(Local\) could not be saved"):
        replay_saved(tmp_path)


def test_a_given_model_takes_the_saved_parameters(tmp_path: Path) -> None:
    script = tmp_path / "net.py"
    script.write_text(
        "from torch import nn\ndef make(width, bias=True):\n    return nn.Linear(width, 2, bias)\n"
    )
    model = nn.Linear(3, 2)
    write(tmp_path, held(model.eval(), torch.ones(1, 3)), NOTHING)
    given = make_model(f"{script}:make(3, bias=True)")
    again, _ = replay_saved(tmp_path, {"model": given})
    assert again.step.models["model"] is given
    assert torch.equal(given.weight, model.weight)  # type: ignore[arg-type]
    assert not given.training


def test_a_local_class_is_filled_with_the_saved_parameters(tmp_path: Path) -> None:
    class Local(Logarithm):
        pass

    model = Local()
    with torch.no_grad():
        model.scale.fill_(0.0)
    write(tmp_path, held(model, torch.ones(1, 3)), NOTHING)
    again, found = replay_saved(tmp_path, {"model": Local()})
    assert again.bad == ["output 0"]
    assert found.culprit is not None
    assert found.culprit.op == "log"


def test_finite_values_of_a_step_that_never_showed_the_failure_are_no_success(tmp_path: Path) -> None:
    noted = write(tmp_path, held(nn.Linear(2, 2), torch.ones(1, 2)), NOTHING)
    assert noted.shown is False
    again, found = replay_saved(tmp_path)
    assert found.culprit is None
    assert again.problem is not None
    assert again.problem.startswith("not reproduced")
    assert "the function that called backward() has returned" in again.problem


def test_a_step_that_could_not_be_tried_is_known_once_it_has_shown_the_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.labs.replay.repro.repro_writer.distributed", lambda: True)
    noted = write(tmp_path, bad_step(), NOTHING)
    assert (noted.shown, noted.reason) == (
        None,
        "it was one of several processes, and the others would wait",
    )
    finite = {"model": Logarithm()}
    monkeypatch.setattr(Logarithm, "forward", lambda self, x, shift: x * self.scale)
    assert "it is unknown" in str(replay_saved(tmp_path, finite)[0].problem)
    monkeypatch.undo()
    assert replay_saved(tmp_path)[0].bad
    monkeypatch.setattr(Logarithm, "forward", lambda self, x, shift: x * self.scale)
    assert replay_saved(tmp_path)[0].problem is None


def test_trying_a_saved_step_leaves_the_random_state(tmp_path: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    noted = write(tmp_path, held(nn.Dropout(), torch.full((4,), float("nan")), rng=Rng.take()), NOTHING)
    assert noted.shown is True
    assert torch.equal(torch.get_rng_state(), before)


NORM = nn.BatchNorm1d(3)


class WithGlobal(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log(NORM(x) * 0)


def test_trying_a_saved_step_leaves_models_that_its_functions_use(tmp_path: Path) -> None:
    before = {name: value.clone() for name, value in NORM.state_dict().items()}
    step = held(WithGlobal(), torch.rand(4, 3))
    step.roots["norm"] = NORM
    assert write(tmp_path, step, NOTHING).shown is True
    for name, value in NORM.state_dict().items():
        assert torch.equal(value, before[name])


def test_what_another_model_gave_is_not_run_again_without_the_statements(tmp_path: Path) -> None:
    step = bad_step()
    step.calls.append(RootCall("second", nn.Linear(3, 1), (DERIVED,), {}))
    assert write(tmp_path, step, NOTHING).shown is True
    assert list(SavedStep(tmp_path).outputs()) == ["output 0"]


def test_another_version_of_torch_is_reported(tmp_path: Path) -> None:
    write(tmp_path, bad_step(), NOTHING)
    assert SavedStep(tmp_path).other_versions is None
    data = json.loads((tmp_path / "repro.json").read_text())
    data["versions"]["torch"] = "1.9.0"
    (tmp_path / "repro.json").write_text(json.dumps(data))
    assert str(SavedStep(tmp_path).other_versions).startswith("saved with torch 1.9.0 and Python ")


def skipping() -> list[Any]:
    """A training that skips a NaN itself; its parameters, and the random state that it leaves."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), Logarithm())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(12):
        loss = model(torch.rand(8, 3)).sum()
        optimizer.zero_grad()
        loss.backward()
        if torch.isfinite(loss):
            optimizer.step()
    return [*(p.tolist() for p in model.parameters()), torch.get_rng_state().tolist()]


def test_training_goes_on_as_it_would_have_after_a_step_was_saved(tmp_path: Path) -> None:
    alone = skipping()
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        assert skipping() == alone
    assert session.path is not None
    assert list(session.path.glob("repro/step-*/repro.json"))


def test_a_failure_while_saving_is_reported_and_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("planted")

    alone = skipping()
    monkeypatch.setattr(ReproWriter, "__call__", fails)
    with clew.attach(run_root=tmp_path, quiet=True):
        assert skipping() == alone
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("clew: the repro probe failed")
    assert "planted" in line
