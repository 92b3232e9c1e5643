"""Models that take one dimension for another, and models that do not."""

from __future__ import annotations

import linecache

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, judged, tried
from torch import Tensor, nn

from clew.checks.exp.dimension_mixup import DimensionMixup as Check
from clew.labs.experiments.network.other_batch_sizes import OtherBatchSizes
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Finding


class Reader(nn.Module):
    """Says the class of a sequence; `how` is what it mistakes."""

    def __init__(self, how: str = "", rows: int = 32) -> None:
        super().__init__()
        self.how, self.rows = how, rows
        self.gru = nn.GRU(6, 16, batch_first=how != "time")
        layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=how != "attention")
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.positions = nn.Parameter(torch.randn(64, 1, 16))
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        h, _ = self.gru(x)
        if self.how == "positions":
            h = h + self.positions[: h.shape[0]]
        if self.how == "attention":
            h = self.encoder(h)
        if self.how == "literal":
            h = h.reshape(self.rows, -1, 16)
        if self.how == "mean":
            h = h - h.mean(0)
        out: Tensor = self.head(h[-1] if self.how == "last" else h[:, -1])
        return out


def program(how: str, size: int = 32, length: int = 9) -> Subject:
    torch.manual_seed(0)
    data = (torch.randn(size, length, 6), torch.randint(0, 3, (size,)))
    return subject_of(Reader(how, size), F.cross_entropy, data)


def line_of(finding: Finding) -> str:
    return linecache.getline(finding.site.file or "", finding.site.line or 0)


@pytest.mark.parametrize(
    ("how", "line", "says"),
    [
        ("time", "self.gru(x)", "GRU reads the samples as time steps"),
        ("attention", "self.encoder(h)", "reads the samples as time steps"),
        ("positions", "self.positions[", "position in the batch"),
    ],
)
def test_a_dimension_taken_for_another_is_an_error_on_its_line(how: str, line: str, says: str) -> None:
    (finding,) = judged(Check(), tried(OtherBatchSizes(), program(how)))
    assert (finding.severity.value, finding.confidence) == ("error", "certain")
    assert says in finding.message
    assert line in line_of(finding)


def test_the_last_sample_taken_for_the_last_step_is_found_though_the_sizes_are_equal() -> None:
    (finding,) = judged(Check(), tried(OtherBatchSizes(), program("last", size=9, length=9)))
    assert finding.severity.value == "error"
    assert "does not follow the batch" in finding.message


def test_a_batch_size_that_is_also_another_size_is_a_warning_and_else_a_hint() -> None:
    (finding,) = judged(Check(), tried(OtherBatchSizes(), program("literal", size=16)))
    assert finding.severity.value == "warning"
    assert "h.reshape(self.rows" in line_of(finding)
    (finding,) = judged(Check(), tried(OtherBatchSizes(), program("literal", size=20)))
    assert finding.severity.value == "advice"


def test_samples_that_are_mixed_otherwise_are_left_to_batch_leak() -> None:
    assert judged(Check(), tried(OtherBatchSizes(), program("mean"))) == []


@pytest.mark.parametrize("name", ["cnn", "wine", "regression", "gpt", "segmentation"])
def test_healthy_programs_pass(name: str) -> None:
    assert judged(Check(), tried(OtherBatchSizes(), HEALTHY[name]())) == []


def test_a_reader_that_tells_them_apart_passes_also_with_equal_sizes() -> None:
    assert judged(Check(), tried(OtherBatchSizes(), program("", size=16, length=16))) == []


def test_data_that_comes_time_first_is_not_called_a_fault() -> None:
    try:
        found = judged(Check(), tried(OtherBatchSizes(), HEALTHY["tagger"]()))
    except CannotJudge:
        found = []
    assert found == []


@pytest.mark.parametrize("name", ["two_towers", "vae"])
def test_tables_of_samples_and_drawn_outputs_are_not_judged(name: str) -> None:
    with pytest.raises(CannotJudge, match="per sample"):
        tried(OtherBatchSizes(), HEALTHY[name]())


class Stateful(nn.Module):
    """Carries its state from one batch to the next, which fixes the number of samples."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(6, 16, batch_first=True), nn.Linear(16, 3)
        self.state = torch.zeros(1, 32, 16)

    def forward(self, x: Tensor) -> Tensor:
        h, state = self.gru(x, self.state)
        self.state = state.detach()
        out: Tensor = self.head(h[:, -1])
        return out


def test_a_state_carried_over_is_not_judged() -> None:
    torch.manual_seed(0)
    data = (torch.randn(32, 9, 6), torch.randint(0, 3, (32,)))
    with pytest.raises(CannotJudge, match="does not run with 7 samples"):
        tried(OtherBatchSizes(), subject_of(Stateful(), F.cross_entropy, data))
