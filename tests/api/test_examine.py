"""`clew.examine` whole: real experiments on real models, and everything as it was afterwards."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import clew
from clew.records.errors import CannotExamine


class Net(nn.Module):
    """Three classes out of eight numbers; `leaks`: each sample's output depends on the others."""

    def __init__(self, leaks: bool = False) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
        self.leaks = leaks

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out - out.mean(0, keepdim=True) if self.leaks else out


def data() -> tuple[Tensor, Tensor]:
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(3))
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0.3).long()


def made(leaks: bool = False) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = Net(leaks)
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
    modes = [module.training for module in model.modules()]
    return copy.deepcopy((model.state_dict(), optimizer.state_dict())), modes, torch.get_rng_state()


def test_a_sound_model_passes_and_nothing_of_it_is_changed() -> None:
    model, optimizer = made()
    (weights, before), modes, drawn = state_of(model, optimizer)
    report = clew.examine(
        model, nn.CrossEntropyLoss(), data(), optimizer, only=["batch-leak", "cannot-overfit-batch"]
    )
    assert report.ok
    assert set(report.passed) == {"batch-leak", "cannot-overfit-batch"}
    assert report.failed == report.unjudged == ()
    (weights_after, after), modes_after, drawn_after = state_of(model, optimizer)
    assert all(torch.equal(weights[name], weights_after[name]) for name in weights)
    assert before == after
    assert modes == modes_after
    assert torch.equal(drawn, drawn_after)


def test_a_fault_fails_its_experiment_and_is_reported_in_every_form() -> None:
    model, optimizer = made(leaks=True)
    report = clew.examine(model, nn.CrossEntropyLoss(), data(), optimizer, only="batch-leak")
    assert not report.ok
    assert report.failed == ("batch-leak",)
    assert report.verdict.findings[0].check == "batch-leak"
    assert "✗ batch-leak" in str(report)
    assert report["batch-leak"].finding is report.verdict.findings[0]
    assert report.explain("batch-leak").startswith("! batch-leak") or "✗ batch-leak" in report.explain(
        "batch-leak"
    )
    assert json.loads(json.dumps(report.to_json()))["preflight"]["failed"] == ["batch-leak"]
    suite = ElementTree.fromstring(report.to_junit())[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "batch-leak" in report._repr_html_()
    with pytest.raises(KeyError):
        report["no-such-experiment"]


def test_without_an_optimizer_questions_about_it_stay_open() -> None:
    model, _ = made()
    report = clew.examine(
        model, nn.CrossEntropyLoss(), data(), only=["learning-rate-too-high", "cannot-overfit-batch"]
    )
    assert report.passed == ("cannot-overfit-batch",)
    assert report.unjudged == ("learning-rate-too-high",)
    answer = report["learning-rate-too-high"]
    assert (answer.reason, answer.hint) == (
        "no optimizer was given",
        "clew.examine(model, loss_fn, loader, optimizer)",
    )
    assert "no optimizer was given" in str(report)


def test_a_model_left_in_evaluation_mode_is_examined_in_training_mode_and_left_as_it_was() -> None:
    model, optimizer = made()
    model.eval()
    seen: list[bool] = []

    def step(batch: Any) -> Tensor:
        seen.append(model.training)
        return nn.functional.cross_entropy(model(batch[0]), batch[1])

    report = clew.examine(
        model, step=step, batch_or_loader=data(), optimizer=optimizer, only=["cannot-overfit-batch"]
    )
    assert report.ok
    assert any(seen)
    assert not any(module.training for module in model.modules())


def test_skip_leaves_out_and_an_unknown_name_is_refused_with_a_suggestion() -> None:
    model, optimizer = made()
    report = clew.examine(
        model,
        nn.CrossEntropyLoss(),
        data(),
        optimizer,
        only=["batch-leak", "cannot-overfit-batch"],
        skip=["cannot-overfit-batch"],
    )
    assert report.passed == ("batch-leak",)
    with pytest.raises(CannotExamine, match="did you mean batch-leak"):
        clew.examine(model, nn.CrossEntropyLoss(), data(), optimizer, only=["batch-leek"])


def test_time_that_is_used_up_leaves_questions_open_instead_of_failing_them() -> None:
    model, optimizer = made(leaks=True)
    report = clew.examine(model, nn.CrossEntropyLoss(), data(), optimizer, time_limit=1e-6)
    assert report.ok
    assert report.passed == report.failed == ()
    assert "time limit reached" in {report[name].reason for name in report.unjudged}


def test_a_step_that_fails_the_second_time_is_no_stack_trace_of_ours() -> None:
    model, optimizer = made()
    calls: list[int] = []

    def step(batch: Any) -> Tensor:
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("can't run twice")
        return nn.functional.cross_entropy(model(batch[0]), batch[1])

    report = clew.examine(model, step=step, batch_or_loader=data(), optimizer=optimizer, only=["batch-leak"])
    assert report.unjudged == ("batch-leak",)
    assert "can't run twice" in report["batch-leak"].reason


def test_a_loader_with_a_generator_of_its_own_goes_on_from_where_it_was() -> None:
    model, optimizer = made()
    drawing = torch.Generator().manual_seed(5)
    loader = DataLoader(TensorDataset(*data()), 16, shuffle=True, generator=drawing)
    before = drawing.get_state()
    clew.examine(model, nn.CrossEntropyLoss(), loader, optimizer, only=["batch-leak"])
    assert torch.equal(drawing.get_state(), before)


def test_the_fix_of_a_fault_is_tried_and_the_finding_says_what_came_of_it() -> None:
    model, _ = made()
    optimizer = torch.optim.SGD(model.parameters(), lr=300.0)
    report = clew.examine(
        model, nn.CrossEntropyLoss(), data(), optimizer, only=["learning-rate-too-high"], time_limit=600
    )
    assert report.failed == ("learning-rate-too-high",)
    proof = report.verdict.findings[0].proof
    assert proof is not None
    assert proof.helped
    assert proof.after < proof.before
    assert "tested on a snapshot: with this fix the loss after" in str(report)


def test_a_session_that_watches_does_not_take_experiments_for_training(tmp_path: Path) -> None:
    def trained(examined: bool) -> tuple[int, list[Tensor]]:
        model, optimizer = made()
        with clew.attach(model, optimizer, run_root=tmp_path, quiet=True) as session:
            for number in range(4):
                x, y = data()
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
                if examined and number == 1:
                    assert clew.examine(
                        model, nn.CrossEntropyLoss(), (x, y), optimizer, only=["cannot-overfit-batch"]
                    ).ok
            return session.step, [p.detach().clone() for p in model.parameters()]

    (steps, plain), (seen, examined) = trained(False), trained(True)
    assert steps == seen
    assert all(torch.equal(a, b) for a, b in zip(plain, examined, strict=True))


def test_progress_is_reported() -> None:
    model, optimizer = made()
    told: list[tuple[int, int, str]] = []
    clew.examine(
        model,
        nn.CrossEntropyLoss(),
        data(),
        optimizer,
        only=["batch-leak"],
        progress=lambda done, count, name, share: told.append((done, count, name)),
    )
    assert told[0] == (0, 1, "batch-leak")
    assert told[-1] == (1, 1, "")
