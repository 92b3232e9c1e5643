"""Models that mix up the samples of a batch, and models that keep them apart."""

from __future__ import annotations

import linecache

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, Fact, Recorded, judged, tried
from torch import Tensor, nn

from clew.checks.exp.batch_leak import BatchLeak as Check
from clew.checks.run_view import RunView
from clew.checks.runner import ask
from clew.labs.experiments.network.batch_independence import BatchIndependence
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Finding


class Reader(nn.Module):
    """Reads a sequence and says its class; `mix` is what goes wrong on the way."""

    def __init__(self, mix: str = "") -> None:
        super().__init__()
        self.mix = mix
        self.inner = nn.Linear(6, 12)
        self.gru = nn.GRU(12, 16, batch_first=mix != "time")
        self.head = nn.Linear(16, 3)
        self.norm = nn.BatchNorm1d(16, track_running_stats=mix != "norm")

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.inner(x))
        if self.mix == "view":
            h = h.transpose(0, 1).reshape(x.shape[0], x.shape[1], 12)
        if self.mix == "mean":
            h = h - h.mean(0)
        if self.mix == "attention":
            weights = torch.softmax(h[:, 0] @ h[:, 0].T, -1)
            h = (weights @ h.flatten(1)).view_as(h)
        out = self.norm(self.gru(h)[0][:, -1])
        scores: Tensor = self.head(out)
        return scores.softmax(0) if self.mix == "softmax" else scores


def program(model: nn.Module, size: int = 32, seed: int = 0) -> Subject:
    torch.manual_seed(seed)
    return subject_of(model, F.cross_entropy, (torch.randn(size, 9, 6), torch.randint(0, 3, (size,))))


def line_of(finding: Finding) -> str:
    return linecache.getline(finding.site.file or "", finding.site.line or 0)


@pytest.mark.parametrize(
    ("mix", "line", "severity"),
    [
        ("view", ".reshape(", "error"),
        ("attention", "weights @ h", "error"),
        ("softmax", "softmax(0)", "error"),
        ("time", "self.gru(h)", "error"),
        ("mean", "h - h.mean(0)", "warning"),
    ],
)
def test_what_mixes_samples_is_found_on_its_line(mix: str, line: str, severity: str) -> None:
    (finding,) = judged(Check(), tried(BatchIndependence(), program(Reader(mix))))
    assert finding.severity.value == severity
    assert line in line_of(finding)


def test_the_samples_that_have_influence_are_shown() -> None:
    result = tried(BatchIndependence(), program(Reader("attention")))
    assert result.data.by_sample[result.data.row] == 1.0
    assert sum(v > 1e-4 for v in result.data.by_sample) == result.data.samples


@pytest.mark.parametrize("name", sorted(set(HEALTHY) - {"two_towers", "tagger"}))
def test_healthy_programs_pass(name: str) -> None:
    result = tried(BatchIndependence(), HEALTHY[name]())
    assert judged(Check(), result) == []
    assert result.data.effect == 0.0


def test_a_table_of_all_samples_with_all_others_is_said_to_be_meant() -> None:
    result = tried(BatchIndependence(), HEALTHY["two_towers"]())
    assert judged(Check(), result) == []
    fact = Fact("experiment.batch-leak", result.fact().to_json())
    _, reason = ask(Check(), RunView(Recorded(fact)))
    assert str(reason).startswith("batch interaction is intended here: Matcher compares each sample")


def test_batch_normalisation_without_running_statistics_is_said_to_be_meant() -> None:
    result = tried(BatchIndependence(), program(Reader("norm")))
    assert "normalises with the statistics of each batch" in result.data.meant
    assert judged(Check(), result) == []


def test_data_that_comes_time_first_is_not_judged() -> None:
    with pytest.raises(CannotJudge, match="which dimension"):
        tried(BatchIndependence(), HEALTHY["tagger"]())


def test_a_batch_of_two_can_not_be_judged() -> None:
    with pytest.raises(CannotJudge, match="3 samples"):
        tried(BatchIndependence(), program(Reader("view"), size=2))


def test_the_same_answer_twice_and_nothing_left_behind() -> None:
    model = Reader("view")
    subject = program(model)
    before, rng = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
    first = tried(BatchIndependence(), subject).data
    assert tried(BatchIndependence(), subject).data == first
    assert torch.equal(torch.get_rng_state(), rng)
    assert model.training
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
