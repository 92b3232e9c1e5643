"""Other inputs for the models while the rest of the step stays as it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.snapshot.subject import Subject
from clew.measure.nested_tensors import map_tensors, tensors_in


@dataclass
class Replaced:
    """What happened to the inputs during one run of the step."""

    tensors: int = 0  # by sample, among what the models were given
    changed: int = 0  # of these, those that came out different


@contextlib.contextmanager
def inputs_replaced(subject: Subject, size: int, change: Callable[[Tensor], Tensor]) -> Iterator[Replaced]:
    """Every outermost model gets changed tensors; what another model has computed is left alone."""
    note = Replaced()

    def replace(leaf: Tensor) -> Tensor:
        dim = None if leaf.requires_grad else _by_sample(leaf, size)
        if dim is None:
            return leaf
        made = change(leaf.movedim(dim, 0)).movedim(0, dim)
        note.tensors += 1
        note.changed += not torch.equal(made, leaf)
        return made

    def before(_: nn.Module, args: Any, kwargs: Any) -> Any:
        return map_tensors(args, replace), map_tensors(kwargs, replace)

    handles = [m.register_forward_pre_hook(before, with_kwargs=True) for m in subject.models.values()]
    try:
        yield note
    finally:
        for handle in handles:
            handle.remove()


def _by_sample(tensor: Tensor, size: int) -> int | None:
    """The dimension of the samples; sequences may have their time before it."""
    return next((d for d in range(min(tensor.dim(), 2)) if tensor.shape[d] == size), None)


def other_samples(generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    """The inputs of other samples of the batch: each tensor in an order of its own."""

    def change(tensor: Tensor) -> Tensor:
        return tensor[torch.randperm(len(tensor), generator=generator).to(tensor.device)]

    return change


def drawn_samples(generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    """Samples of the batch drawn anew, some twice and some not at all: a mean over the batch changes too."""

    def change(tensor: Tensor) -> Tensor:
        drawn = torch.randint(len(tensor), (len(tensor),), generator=generator)
        return tensor[drawn.to(tensor.device)]

    return change


def noise(generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    """Random inputs of the same statistics: every position takes its values from samples drawn anew.

    Unlike normal noise this suits numbers, categories, tokens and masks alike.
    """

    def change(tensor: Tensor) -> Tensor:
        flat = tensor.reshape(len(tensor), -1)
        order = torch.rand(flat.shape, generator=generator).argsort(0).to(tensor.device)
        return flat.gather(0, order).reshape(tensor.shape)

    return change


def numbers_in(outputs: Any) -> list[Tensor]:
    """The tensors of real numbers that a model has given, without their graph."""
    leaves = tensors_in(outputs)
    return [leaf.detach().float() for leaf in leaves if leaf.is_floating_point()]
