"""Models that read the padding, and models that read the words."""

from __future__ import annotations

import linecache

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, judged, tried
from torch import Tensor, nn

from clew.checks.out.mask_inverted import MaskInverted as Check
from clew.labs.experiments.network.padding_influence import PaddingInfluence
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of


class Reader(nn.Module):
    def __init__(self, kind: str, inverted: bool) -> None:
        super().__init__()
        self.kind, self.inverted = kind, inverted
        self.words = nn.Embedding(40, 24, padding_idx=0)
        layer = nn.TransformerEncoderLayer(24, 2, 48, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.gru = nn.GRU(24, 24, batch_first=True)
        self.head = nn.Linear(24, 3)

    def forward(self, words: Tensor) -> Tensor:
        padding = words == 0
        hidden = padding if not self.inverted else ~padding
        x = self.words(words)
        if self.kind == "pooled":
            x = torch.einsum("bt,bth->bh", (~hidden).float(), x)
        elif self.kind == "recurrent":
            x = self.gru(x)[1][-1]
        elif self.kind == "plain":
            x = x.mean(1)
        else:
            x = self.encoder(x, src_key_padding_mask=hidden)
            x = x[:, 0] if self.kind == "first" else x
        out: Tensor = self.head(x)
        return out


def program(kind: str, inverted: bool, padded: bool = True) -> Subject:
    torch.manual_seed(0)
    words = torch.randint(1, 40, (32, 11))
    if padded:
        words = torch.where(torch.arange(11) < torch.randint(5, 10, (32, 1)), words, 0)
    if kind == "tokens":
        return subject_of(
            Reader(kind, inverted), lambda s, t: F.cross_entropy(s.transpose(1, 2), t), (words, words % 3)
        )
    return subject_of(Reader(kind, inverted), F.cross_entropy, (words, torch.randint(0, 3, (32,))))


@pytest.mark.parametrize(
    ("kind", "line"), [("pooled", "einsum"), ("first", "self.encoder("), ("tokens", "self.encoder(")]
)
def test_a_model_that_reads_the_padding_is_an_error_on_its_line(kind: str, line: str) -> None:
    (finding,) = judged(Check(), tried(PaddingInfluence(), program(kind, inverted=True)))
    assert (finding.severity.value, finding.confidence) == ("error", "certain")
    assert line in linecache.getline(finding.site.file or "", finding.site.line or 0)


@pytest.mark.parametrize("kind", ["pooled", "first", "tokens", "recurrent", "plain"])
def test_models_that_read_the_words_pass_whether_or_not_they_mask(kind: str) -> None:
    result = tried(PaddingInfluence(), program(kind, inverted=False))
    assert result.data.positions_read >= result.data.positions - 1
    assert judged(Check(), result) == []


def test_sentences_without_padding_can_not_be_judged() -> None:
    with pytest.raises(CannotJudge, match="padding"):
        tried(PaddingInfluence(), program("first", inverted=True, padded=False))


@pytest.mark.parametrize("name", ["cnn", "regression", "gpt", "two_towers"])
def test_programs_without_padding_are_not_judged(name: str) -> None:
    with pytest.raises(CannotJudge):
        tried(PaddingInfluence(), HEALTHY[name]())
