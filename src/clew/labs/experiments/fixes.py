"""The fixes that can be tried without the user, and what each one changes in the training loop.

A repair takes the loop as the program runs it and returns the same loop with this one thing fixed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clew.hooks.collect_loop.loss_calls import simplex_share
from clew.labs.snapshot.sample_pool import random_order
from clew.labs.snapshot.step_batch import BOTH, INPUT, StepBatch, joined
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.measure.loss_arguments import loss_arguments

TINY = 1e-12  # of a probability, before its logarithm is taken


@dataclass(frozen=True)
class TrainingLoop:
    """How the steps are run; the user's own code from batch to loss is in the middle of each."""

    zero: bool = True  # gradients are cleared before a step's first backward
    every: int = 1  # backwards per step
    keeps: bool = True  # with several backwards: their gradients add up (False: only the last one counts)
    divide: bool = True  # with several backwards: the loss is divided by their number
    rate: float = 1.0  # factor of the learning rate
    clip: float | None = None  # norm to clip to; None: as the program does
    fresh: bool = False  # newly drawn weights
    full_precision: bool = False  # no autocast
    prepare: tuple[Callable[[StepSnapshot], None], ...] = ()  # changes of modules and optimizer
    # samples in different batches, by seed
    rearrange: Callable[[Sequence[StepBatch], int], Sequence[StepBatch]] | None = None
    see: Callable[[Sequence[StepBatch]], Sequence[StepBatch]] | None = None  # changes to the model's inputs
    # in which the loss is computed
    around: Callable[[], contextlib.AbstractContextManager[Any]] = field(default=contextlib.nullcontext)

    def with_change(self, change: Callable[[StepSnapshot], None]) -> TrainingLoop:
        return replace(self, prepare=(*self.prepare, change))


@dataclass(frozen=True)
class Variant:
    """A fix in one strength."""

    text: str  # what is changed, as the report says it
    fixed: Callable[[TrainingLoop, Subject], TrainingLoop]


@dataclass(frozen=True)
class Repair:
    """`faulty` adds the fault to a loop where the user's step alone lacks it; a variant removes it."""

    variants: tuple[Variant, ...]
    faulty: Callable[[TrainingLoop], TrainingLoop] = lambda loop: loop
    only_confirms: bool = False  # its benefit is not, or not only, a lower training loss


class _Losses(TorchFunctionMode):
    """Changes the arguments of a torch function, by its name."""

    def __init__(self, changes: Mapping[str, Callable[[Any, Any], tuple[Any, Any]]]) -> None:
        super().__init__()
        self._changes = changes

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        change = self._changes.get(getattr(func, "__name__", ""))
        if change is not None:
            args, kwargs = change(args, kwargs)
        return func(*args, **kwargs)


def _on_prediction(
    name: str, change: Callable[[Tensor], Tensor]
) -> Callable[[TrainingLoop, Subject], TrainingLoop]:
    """A repair that changes the prediction passed to this loss function."""

    def change_call(args: Any, kwargs: Any) -> tuple[Any, Any]:
        prediction, target, more, options = loss_arguments(args, kwargs)
        return (change(prediction), target, *more), options

    return lambda loop, _: replace(loop, around=lambda: _Losses({name: change_call}))


def _same_shape(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The target in the prediction's shape, where both have the same number of elements."""
    prediction, target, more, options = loss_arguments(args, kwargs)
    if isinstance(prediction, Tensor) and isinstance(target, Tensor) and prediction.numel() == target.numel():
        target = target.reshape(prediction.shape)
    return (prediction, target, *more), options


def _reshape_targets(loop: TrainingLoop, _: Subject) -> TrainingLoop:
    names = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
    return replace(loop, around=lambda: _Losses(dict.fromkeys(names, _same_shape)))


def _log_if_probabilities(values: Tensor) -> Tensor:
    """Cross-entropy takes the softmax of this: of the logarithm of probabilities, it is themselves."""
    return values.clamp_min(TINY).log() if float(simplex_share(values)) == 1 else values


def _shuffled(batches: Sequence[StepBatch], seed: int) -> Sequence[StepBatch]:
    whole = joined(batches)
    order = random_order(whole.size, seed)
    sizes = [b.size for b in batches]
    return [whole.rows(part) for part in order.split(sizes)]


def _standardised(batches: Sequence[StepBatch]) -> Sequence[StepBatch]:
    """Every feature (or image channel) with mean 0 and deviation 1 over all samples seen."""
    found = [b.tensors(INPUT, BOTH) for b in batches]
    scales = [_scale(torch.cat(list(column))) for column in zip(*found, strict=True)]

    def scaled(batch: StepBatch) -> StepBatch:
        each = iter(scales)
        return batch.map((INPUT, BOTH), lambda t: _apply(t, next(each)))

    return [scaled(b) for b in batches]


def _scale(values: Tensor) -> tuple[Tensor, Tensor] | None:
    if not values.is_floating_point() or values.dim() < 2:
        return None
    over = [d for d in range(values.dim()) if d != 1]
    mean, deviation = values.mean(over, keepdim=True), values.std(over, keepdim=True)
    return mean, torch.where(deviation > 0, deviation, torch.ones_like(deviation))


def _apply(values: Tensor, scale: tuple[Tensor, Tensor] | None) -> Tensor:
    return values if scale is None else (values - scale[0]) / scale[1]


def _finite_samples(batches: Sequence[StepBatch], seed: int) -> Sequence[StepBatch]:
    kept = []
    for batch in batches:
        good = torch.ones(batch.size, dtype=torch.bool)
        for tensor, _, dim in batch.entries():
            if dim is not None and tensor.is_floating_point():
                good &= torch.isfinite(tensor).movedim(dim, 0).reshape(batch.size, -1).all(1)
        if bool(good.any()):
            kept.append(batch.rows(good.nonzero().flatten()))
    return kept or batches


def _train_mode(subject: Subject) -> Callable[[StepSnapshot], None]:
    def change(_: StepSnapshot) -> None:
        for module in subject.models.values():
            module.train()

    return change


def _all_parameters(subject: Subject) -> Callable[[StepSnapshot], None]:
    """Pass all parameters of the models to the optimizer, frozen or not."""

    def change(snapshot: StepSnapshot) -> None:
        known = {id(p) for group in snapshot.optimizer.param_groups for p in group["params"]}
        missing: dict[int, nn.Parameter] = {}
        for module in subject.models.values():
            missing.update({id(p): p for p in module.parameters() if id(p) not in known})
        for parameter in missing.values():
            parameter.requires_grad_(True)
        for group in snapshot.optimizer.param_groups:
            for parameter in group["params"]:
                parameter.requires_grad_(True)
        if missing:
            first = snapshot.optimizer.param_groups[0]
            settings = {k: v for k, v in first.items() if k != "params"}
            snapshot.optimizer.add_param_group({**settings, "params": list(missing.values())})

    return change


def _without_regularisation(subject: Subject) -> Callable[[StepSnapshot], None]:
    def change(snapshot: StepSnapshot) -> None:
        for group in snapshot.optimizer.param_groups:
            if "weight_decay" in group:
                group["weight_decay"] = 0.0
        for top in subject.models.values():
            for module in top.modules():
                if "Dropout" in type(module).__name__:
                    module.eval()

    return change


def _add(
    make: Callable[[Subject], Callable[[StepSnapshot], None]],
) -> Callable[[TrainingLoop, Subject], TrainingLoop]:
    return lambda loop, subject: loop.with_change(make(subject))


def _set(**values: Any) -> Callable[[TrainingLoop, Subject], TrainingLoop]:
    return lambda loop, _: replace(loop, **values)


def _faulty(**values: Any) -> Callable[[TrainingLoop], TrainingLoop]:
    return lambda loop: replace(loop, **values)


def _fix(
    text: str,
    fixed: Callable[[TrainingLoop, Subject], TrainingLoop],
    faulty: Callable[[TrainingLoop], TrainingLoop] = lambda loop: loop,
) -> Repair:
    return Repair((Variant(text, fixed),), faulty)


def _rates(word: str, factors: Mapping[int, float]) -> Repair:
    """The learning rate in several strengths: which one helps is part of the answer."""
    return Repair(
        tuple(Variant(f"a learning rate {n} times {word}", _set(rate=f)) for n, f in factors.items())
    )


SEVERAL = 4  # backwards per step when a fault of gradient accumulation is tried

REPAIRS: Mapping[str, Repair] = {
    "missing-zero-grad": _fix(
        "optimizer.zero_grad() before every backward", _set(zero=True), _faulty(zero=False)
    ),
    "accumulation-lost": _fix(
        "gradients cleared only before the first backward of a step",
        _set(keeps=True),
        _faulty(every=SEVERAL, keeps=False),
    ),
    "accumulation-unscaled": _fix(
        "the loss divided by the number of backwards of a step",
        _set(divide=True),
        _faulty(every=SEVERAL, divide=False),
    ),
    "learning-rate-too-high": _rates("lower", {10: 0.1, 100: 0.01}),
    "learning-rate-too-low": _rates("higher", {10: 10.0, 100: 100.0, 1000: 1000.0}),
    "exploding-gradient": _fix("gradients clipped to a norm of 1", _set(clip=1.0)),
    "poor-initialisation": _fix("default initial weights", _set(fresh=True)),
    "half-precision-underflow": _fix("the step in full precision", _set(full_precision=True)),
    "half-precision-overflow": _fix("the step in full precision", _set(full_precision=True)),
    "eval-mode-in-training": Repair(
        (Variant("model.train() before training", _add(_train_mode)),), only_confirms=True
    ),
    "parameter-not-in-optimizer": _fix("all parameters in the optimizer", _add(_all_parameters)),
    "frozen-parameters": _fix("all parameters trained", _add(_all_parameters)),
    "over-regularised": _fix("dropout and weight decay off", _add(_without_regularisation)),
    "softmax-before-cross-entropy": _fix(
        "the extra softmax removed", _on_prediction("cross_entropy", _log_if_probabilities)
    ),
    "raw-scores-into-nll": _fix(
        "log_softmax before the loss", _on_prediction("nll_loss", lambda t: F.log_softmax(t, 1))
    ),
    "sigmoid-before-bce-with-logits": _fix(
        "the extra sigmoid removed",
        _on_prediction("binary_cross_entropy_with_logits", lambda t: torch.logit(t, 1e-6)),
    ),
    "silent-broadcast": _fix("targets in the shape of the predictions", _reshape_targets),
    "unnormalised-input": _fix("inputs with mean 0 and standard deviation 1", _set(see=_standardised)),
    "unshuffled-data": _fix("samples in random order", _set(rearrange=_shuffled)),
    "single-label-batches": _fix("samples in random order", _set(rearrange=_shuffled)),
    "nonfinite-input": _fix("samples with NaN or infinity dropped", _set(rearrange=_finite_samples)),
}
