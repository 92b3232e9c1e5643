from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from clew.labs.snapshot.step_batch import BOTH, INPUT, TARGET
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import moved, subject_of
from clew.records.errors import CannotExamine, ClewError

X, Y = torch.randn(6, 4, generator=torch.Generator().manual_seed(1)), torch.arange(6) % 3


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 3)


def loss_of(subject: Subject) -> float:
    with subject.snapshot() as snapshot:
        return float(snapshot.loss(subject.batch()).detach())


class Named(nn.Module):
    """Takes keywords, as models of text do, and makes its own loss where it gets labels."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(4, 3)

    def forward(self, values: Tensor, mask: Tensor, labels: Tensor | None = None) -> Any:
        logits = self.inner(values * mask)
        return Output(logits, None if labels is None else F.cross_entropy(logits, labels))


@dataclass
class Output:
    logits: Tensor
    loss: Tensor | None


KEYED = {"values": X, "mask": torch.ones(6, 4), "labels": Y}


def test_a_pair_is_input_and_target() -> None:
    model = net()
    subject = subject_of(model, F.cross_entropy, (X, Y))
    assert loss_of(subject) == pytest.approx(float(F.cross_entropy(model(X), Y).detach()))
    assert subject.batch().roles == (INPUT, TARGET)
    assert subject.batch().size == 6


def test_a_dictionary_goes_in_by_keyword_and_the_loss_gets_what_is_named_as_target() -> None:
    model = Named()
    subject = subject_of(model, nn.CrossEntropyLoss(), KEYED)
    assert loss_of(subject) == pytest.approx(float(F.cross_entropy(model.inner(X), Y).detach()))
    assert subject.batch().roles == (INPUT, INPUT, TARGET)


def test_a_model_that_makes_its_own_loss_needs_no_loss_function() -> None:
    model = Named()
    subject = subject_of(model, None, KEYED)
    assert loss_of(subject) == pytest.approx(float(F.cross_entropy(model.inner(X), Y).detach()))
    assert subject.batch().roles == (INPUT, INPUT, TARGET)


def test_keys_that_the_model_does_not_take_are_left_out() -> None:
    subject = subject_of(Named(), nn.CrossEntropyLoss(), {**KEYED, "idx": torch.arange(6)})
    assert loss_of(subject) > 0


def test_a_dictionary_with_one_input_goes_into_a_model_of_one() -> None:
    model = net()
    subject = subject_of(model, F.cross_entropy, {"features": X, "label": Y})
    assert loss_of(subject) == pytest.approx(float(F.cross_entropy(model(X), Y).detach()))


def test_one_tensor_is_an_autoencoder_whose_target_is_its_input() -> None:
    model = nn.Linear(4, 4)
    for data in (X, [X], DataLoader(TensorDataset(X), batch_size=6)):
        subject = subject_of(model, F.mse_loss, data)
        assert loss_of(subject) == pytest.approx(float(F.mse_loss(model(X), X).detach()))
        assert subject.batch().roles == (BOTH,)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        out = self.inner(x)
        return out, out.detach() * 0


def test_of_a_tuple_a_loss_of_torchs_gets_the_first_and_one_of_the_users_what_it_takes() -> None:
    model = Pair()
    expected = float(F.cross_entropy(model.inner(X), Y).detach())

    def whole(output: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
        return F.cross_entropy(output[0], target)

    def spread(output: Tensor, state: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(output + state, target)

    for loss in (nn.CrossEntropyLoss(), F.cross_entropy, whole, spread):
        assert loss_of(subject_of(model, loss, (X, Y))) == pytest.approx(expected)


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        result: Tensor = self.inner(a - b)
        return result


@pytest.mark.parametrize("batch", [((X, X / 2), Y), (X, X / 2, Y), [[X, X / 2], Y]])
def test_several_inputs_are_spread_over_a_model_that_takes_several(batch: Any) -> None:
    model = TwoInputs()
    subject = subject_of(model, F.cross_entropy, batch)
    assert loss_of(subject) == pytest.approx(float(F.cross_entropy(model(X, X / 2), Y).detach()))
    assert subject.batch().roles == (INPUT, INPUT, TARGET)


def test_a_step_tells_what_is_input_and_what_is_target_by_where_it_goes() -> None:
    model = net()

    def step(batch: Any) -> Tensor:
        return F.cross_entropy(model(batch["x"].double().float()), batch["y"])

    subject = subject_of(model, None, {"y": Y, "x": X}, step=step)
    assert subject.batch().roles == (TARGET, INPUT)
    own = subject_of(model, None, (X, Y), step=lambda b: (model(b[0]).logsumexp(1) - b[1]).pow(2).mean())
    assert own.batch().roles == (INPUT, TARGET)


def test_a_list_of_batches_and_a_loader_give_several() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=2)
    assert len(subject_of(net(), F.cross_entropy, loader).batches) == 3
    assert len(subject_of(net(), F.cross_entropy, [(X, Y), (X, Y)]).batches) == 2
    assert subject_of(net(), F.cross_entropy, loader).dataset is loader.dataset


def test_drawing_from_a_shuffled_loader_leaves_the_random_numbers_as_they_were() -> None:
    before = torch.get_rng_state()
    subject_of(nn.Linear(4, 3), F.cross_entropy, DataLoader(TensorDataset(X, Y), 2, shuffle=True))
    model = nn.Linear(4, 3)
    torch.set_rng_state(before)
    subject_of(model, F.cross_entropy, DataLoader(TensorDataset(X, Y), 2, shuffle=True))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_batch_is_moved_to_where_the_model_is() -> None:
    batch = moved({"x": (X, "name"), "y": [Y]}, torch.device("meta"))
    assert batch["x"][0].is_meta
    assert batch["x"][1] == "name"
    assert batch["y"][0].is_meta


def test_autocast_around_the_call_is_around_the_step_too() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        subject = subject_of(net(), F.cross_entropy, (X, Y))
    assert subject.autocast.enabled
    assert subject.autocast.dtype is torch.bfloat16


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.calls = nn.Linear(4, 3), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        result: Tensor = self.inner(x)
        return result


def test_trying_the_first_batch_leaves_the_model_as_it_was() -> None:
    model = Counting()
    subject_of(model, F.cross_entropy, (X, Y))
    assert model.calls == 0
    assert all(p.grad is None for p in model.parameters())


WRONG = {
    "no model": (lambda: subject_of("net", F.mse_loss, X), "expected a model (nn.Module), not str"),  # type: ignore[arg-type]
    "no data": (lambda: subject_of(net(), F.mse_loss, None), "expected a batch or a loader"),
    "a number": (lambda: subject_of(net(), F.mse_loss, 3), "not int"),
    "an empty list": (lambda: subject_of(net(), F.mse_loss, []), "contains no batch of tensors"),
    "no tensors": (lambda: subject_of(net(), F.mse_loss, ("a", "b")), "contains no batch of tensors"),
    "a data set": (lambda: subject_of(net(), F.mse_loss, TensorDataset(X)), "not a dataset: use DataLoader("),
    "no loss": (lambda: subject_of(net(), None, (X,)), "neither a loss function nor a step was given"),
    "shapes": (
        lambda: subject_of(net(), F.cross_entropy, (X[:, :2], Y)),
        "first batch could not be computed",
    ),
    "no target": (lambda: subject_of(net(), F.mse_loss, {"a": X, "b": Y}), "which of a, b is the target"),
    "many parts": (lambda: subject_of(net(), F.mse_loss, (X, Y, Y)), "which of the 3 parts"),
    "not reduced": (
        lambda: subject_of(net(), nn.CrossEntropyLoss(reduction="none"), (X, Y)),
        "the loss has shape (6,), not a scalar",
    ),
    "a float": (lambda: subject_of(net(), lambda o, y: F.cross_entropy(o, y).item(), (X, Y)), "is a float"),
    "no graph": (
        lambda: subject_of(net(), lambda o, y: F.cross_entropy(o.detach(), y), (X, Y)),
        "does not depend on any parameter",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_can_not_be_used_is_reported_in_one_clear_line(name: str) -> None:
    wrong, said = WRONG[name]
    with pytest.raises(CannotExamine) as caught:
        wrong()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, ClewError)
