from __future__ import annotations

from torch import nn

from clew.labs.snapshot.users_step.model_calls import as_in_training, in_mode


class Frozen(nn.Module):
    """Keeps its normalisation in evaluation mode, as fine-tuning does."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(3, 2)

    def train(self, mode: bool = True) -> Frozen:
        super().train(mode)
        self.norm.eval()
        return self


def modes(model: Frozen) -> tuple[bool, bool, bool]:
    return model.training, model.norm.training, model.head.training


def test_a_model_in_evaluation_mode_trains_as_its_own_train_leaves_it() -> None:
    model = Frozen().eval()
    with as_in_training(model):
        assert modes(model) == (True, False, True)
    assert modes(model) == (False, False, False)


def test_a_model_that_trains_in_part_is_left_as_it_is() -> None:
    model = Frozen().eval()
    model.head.train()
    with as_in_training(model):
        assert modes(model) == (False, False, True)
    assert modes(model) == (False, False, True)


def test_all_modules_get_the_mode_and_get_their_own_back_after_an_error() -> None:
    model = Frozen().train()
    try:
        with in_mode([model], training=True):
            assert modes(model) == (True, True, True)
            raise ValueError
    except ValueError:
        assert modes(model) == (True, False, True)
