"""Labels as they should be, and labels of which some are wrong."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from subjects import HEALTHY, digits, judged, mlp, tried
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from clew.checks.exp.label_noise import LabelNoise as Check
from clew.labs.experiments.data.suspect_labels import SuspectLabels
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of


def program(x: Tensor, y: Tensor, loss: object = F.cross_entropy) -> Subject:
    torch.manual_seed(0)
    model = mlp(x.shape[1], 10)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    return subject_of(model, loss, loader, torch.optim.Adam(model.parameters(), 1e-3))  # type: ignore[arg-type]


def pixels() -> tuple[Tensor, Tensor]:
    x, y = digits()
    return x.flatten(1)[:1000], y[:1000]


def flipped(y: Tensor, share: float) -> tuple[Tensor, set[int]]:
    generator = torch.Generator().manual_seed(2)
    chosen = torch.randperm(len(y), generator=generator)[: int(share * len(y))]
    wrong = y.clone()
    wrong[chosen] = (y[chosen] + torch.randint(1, 10, (len(chosen),), generator=generator)) % 10
    return wrong, set(chosen.tolist())


@pytest.mark.parametrize("share", [0.1, 0.2, 0.4])
def test_wrong_labels_are_counted_and_listed(share: float) -> None:
    x, y = pixels()
    wrong, chosen = flipped(y, share)
    result = tried(SuspectLabels(), program(x, wrong))
    (finding,) = judged(Check(), result)
    assert result.data.wrong / result.data.judged == pytest.approx(share, rel=0.35)
    listed = {s.index for s in result.data.suspects}
    assert len(listed & chosen) >= 0.9 * len(listed)
    assert "looks like" in result.exhibits[0].caption
    assert finding.confidence == "possible"
    suspect = result.data.suspects[0]
    assert suspect.suggested == int(y[suspect.index]) != suspect.given


def test_well_kept_data_passes() -> None:
    assert judged(Check(), tried(SuspectLabels(), program(*pixels()))) == []
    data = load_breast_cancer()
    x = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
    assert judged(Check(), tried(SuspectLabels(), program(x, torch.tensor(data.target)))) == []


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_classes_that_overlap_are_not_taken_for_wrong_labels(noise: float) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(800, 10, generator=generator)
    y = (x[:, 0] + x[:, 1] + noise * torch.randn(800, generator=generator) > 0).long()
    assert judged(Check(), tried(SuspectLabels(), program(x, y))) == []


def test_rare_classes_are_not_taken_for_wrong_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(800, 10, generator=generator)
    y = (torch.rand(800, generator=generator) < 0.08).long()
    x[y == 1] += 0.7
    assert judged(Check(), tried(SuspectLabels(), program(x, y))) == []


def test_regression_is_not_judged() -> None:
    x, _ = pixels()
    with pytest.raises(CannotJudge, match="only class labels"):
        tried(SuspectLabels(), program(x, torch.randn(1000, 10), F.mse_loss))


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_programs_pass_or_say_what_is_missing(name: str) -> None:
    if name == "cnn":
        assert judged(Check(), tried(SuspectLabels(), HEALTHY[name]())) == []
    else:
        with pytest.raises(CannotJudge):
            tried(SuspectLabels(), HEALTHY[name]())
