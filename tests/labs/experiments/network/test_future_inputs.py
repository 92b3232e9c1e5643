"""Models that see what they should predict, and models that are causal or need not be."""

from __future__ import annotations

import linecache

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, judged, tried
from torch import Tensor, nn

from clew.checks.exp.future_leak import FutureLeak as Check
from clew.labs.experiments.network.future_inputs import FutureInputs
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of


class Predictor(nn.Module):
    """Predicts the next token; `kind` says how it looks along the sequence."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.tokens = nn.Embedding(20, 24)
        self.gru = nn.GRU(24, 24, batch_first=True, bidirectional=kind == "two ways")
        self.conv = nn.Conv1d(24, 24, 3, padding=1 if kind == "centred" else 0)
        self.head = nn.Linear(48 if kind == "two ways" else 24, 20)

    def forward(self, words: Tensor) -> Tensor:
        x = self.tokens(words)
        if self.kind in ("two ways", "one way"):
            x = self.gru(x)[0]
        if self.kind == "centred":
            x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        if self.kind == "to the left":
            x = self.conv(F.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2)
        if self.kind in ("attention", "masked"):
            scores = x @ x.transpose(1, 2)
            if self.kind == "masked":
                hidden = torch.ones(words.shape[1], words.shape[1]).triu(1).bool()
                scores = scores.masked_fill(hidden, float("-inf"))
            x = scores.softmax(-1) @ x
        if self.kind == "over time":
            x = x - x.mean(1, keepdim=True)
        out: Tensor = self.head(x)
        return out


def language(kind: str, flat: bool = False) -> Subject:
    torch.manual_seed(0)
    words = torch.randint(1, 20, (16, 15))

    def loss(scores: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten())

    return subject_of(Predictor(kind), loss, (words[:, :-1], words[:, 1:]))


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("two ways", "self.gru(x)"),
        ("centred", "self.conv(x"),
        ("attention", "scores.softmax(-1) @ x"),
        ("over time", "x.mean(1"),
    ],
)
def test_what_looks_ahead_is_found_on_its_line(kind: str, line: str) -> None:
    (finding,) = judged(Check(), tried(FutureInputs(), language(kind)))
    assert (finding.severity.value, finding.confidence) == ("error", "certain")
    assert line in linecache.getline(finding.site.file or "", finding.site.line or 0)


@pytest.mark.parametrize("kind", ["one way", "to the left", "masked"])
def test_models_that_look_back_only_pass(kind: str) -> None:
    result = tried(FutureInputs(), language(kind))
    assert result.data.effect == 0.0
    assert judged(Check(), result) == []


def test_a_gpt_with_its_mask_passes() -> None:
    result = tried(FutureInputs(), HEALTHY["gpt"]())
    assert result.data.why == "the targets are the inputs moved by one"
    assert judged(Check(), result) == []


@pytest.mark.parametrize("name", ["tagger", "cnn", "regression", "two_towers", "segmentation"])
def test_models_that_may_see_everything_are_not_judged(name: str) -> None:
    with pytest.raises(CannotJudge, match="should be causal"):
        tried(FutureInputs(), HEALTHY[name]())


def test_a_bidirectional_tagger_is_not_judged() -> None:
    torch.manual_seed(0)
    words = torch.randint(1, 20, (16, 14))
    subject = subject_of(
        Predictor("two ways"), lambda s, t: F.cross_entropy(s.transpose(1, 2), t), (words, words % 5)
    )
    with pytest.raises(CannotJudge, match="should be causal"):
        tried(FutureInputs(), subject)


class MaskedOnce(nn.Module):
    """One layer is told to should be causal, the other is not."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 24)
        self.head = nn.Linear(24, 3)

    def forward(self, words: Tensor) -> Tensor:
        x = self.tokens(words)
        x = F.scaled_dot_product_attention(x, x, x, is_causal=True)
        x = F.scaled_dot_product_attention(x, x, x)
        out: Tensor = self.head(x)
        return out


def test_a_mask_on_one_of_two_layers_is_a_warning_that_says_why() -> None:
    torch.manual_seed(0)
    words = torch.randint(1, 20, (16, 14))
    subject = subject_of(MaskedOnce(), lambda s, t: F.cross_entropy(s.transpose(1, 2), t), (words, words % 3))
    (finding,) = judged(Check(), tried(FutureInputs(), subject))
    assert (finding.severity.value, finding.confidence) == ("warning", "possible")
    assert "(x, x, x)\n" in linecache.getline(finding.site.file or "", finding.site.line or 0)


class Forecaster(nn.Module):
    def __init__(self, both: bool) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 16, batch_first=True, bidirectional=both)
        self.head = nn.Linear(32 if both else 16, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.lstm(x)[0])
        return out


@pytest.mark.parametrize("both", [True, False])
def test_a_forecast_of_the_next_values_is_judged_too(both: bool) -> None:
    torch.manual_seed(0)
    wave = torch.randn(16, 19, 2)
    subject = subject_of(Forecaster(both), F.mse_loss, (wave[:, :-1], wave[:, 1:]))
    assert [f.site.module for f in judged(Check(), tried(FutureInputs(), subject))] == ["lstm"] * both
