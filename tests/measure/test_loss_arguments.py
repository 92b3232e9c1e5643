from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from clew.measure.loss_arguments import loss_arguments

X, Y, W = torch.randn(4, 3), torch.tensor([0, 1, 2, 0]), torch.ones(3)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((X, Y), {"weight": W}),
        ((X,), {"target": Y, "weight": W}),
        ((), {"target": Y, "input": X, "weight": W}),
        ((X, Y, W), {}),
    ],
)
def test_arguments_are_found_however_they_are_passed(args, kwargs):
    found = loss_arguments(args, kwargs)
    assert found.prediction is X
    assert found.target is Y
    again = F.cross_entropy(found.prediction, found.target, *found.more, **found.options)
    assert torch.equal(again, F.cross_entropy(*args, **kwargs))


def test_what_was_not_passed_is_none():
    assert loss_arguments((), None) == (None, None, (), {})
