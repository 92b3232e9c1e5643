"""Short trainings on a snapshot: other learning rates, other optimizers, regularisation switched off."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.overrides import TorchFunctionMode

from clew.labs.experiments.tools.loss_bounds import MeasuredLoss, measured
from clew.labs.snapshot.step_batch import StepBatch, joined
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock

RIVALS: dict[str, Callable[..., Optimizer]] = {
    "SGD": lambda parameters, lr: SGD(parameters, lr=lr, momentum=0.9),
    "Adam": lambda parameters, lr: Adam(parameters, lr=lr),
    "AdamW": lambda parameters, lr: AdamW(parameters, lr=lr),
}
OWN = ""  # the user's own optimizer, in `TrainingSetting.optimizer`


@dataclass(frozen=True)
class TrainingSetting:
    """How to train: as the user does, except for what is set here."""

    optimizer: str = OWN
    rate: float = 1.0  # a multiple of the user's own rates; for another optimizer, its rate
    dropout: bool = True
    decay: bool = True
    noise: bool = True  # False: the same random numbers in every step

    @classmethod
    def calm(cls, optimizer: str = OWN, rate: float = 1.0) -> TrainingSetting:
        """No randomness, and nothing that pulls the weights."""
        return cls(optimizer, rate, dropout=False, decay=False, noise=False)

    def optimizer_for(self, snapshot: StepSnapshot) -> Optimizer:
        own = snapshot.optimizer
        if self.optimizer != OWN:
            return RIVALS[self.optimizer](trained(own), self.rate)
        for group in own.param_groups:
            group["lr"] = group["lr"] * self.rate
            if not self.decay and "weight_decay" in group:
                group["weight_decay"] = 0.0
        return own

    def around(self, subject: Subject) -> contextlib.AbstractContextManager[None]:
        """The context to train and evaluate in: a loss with dropout is not the one that training reached."""
        return contextlib.nullcontext() if self.dropout else without_dropout(subject)

    def named(self, subject: Subject) -> str:
        """`SGD, lr 0.1`"""
        kind = self.optimizer or type(subject.optimizer).__name__
        rate = self.rate if self.optimizer else subject.learning_rate() * self.rate
        return f"{kind}, lr {rate:.3g}"


def trained(optimizer: Optimizer) -> list[Tensor]:
    """What the optimizer may change."""
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]


def few(subject: Subject, most: int) -> StepBatch:
    """The first samples, or the whole batch where it can't be cut."""
    batch = subject.batch()
    if batch.size <= most:
        return batch
    small = batch.first(most)
    with subject.snapshot() as snapshot, contextlib.suppress(Exception):
        if math.isfinite(float(snapshot.loss(small).detach())):
            return small
    return batch


def many(subject: Subject, most: int) -> StepBatch:
    """Samples of several batches as one; the first batch where they can't be joined."""
    first = subject.batch()
    taken = [first]
    for batch in subject.batches[1:]:
        if sum(b.size for b in taken) >= most:
            break
        taken.append(batch)
    with subject.snapshot() as snapshot, contextlib.suppress(Exception):
        whole = joined(taken).first(most)
        if math.isfinite(float(snapshot.loss(whole).detach())):
            return whole
    return first


def train(
    snapshot: StepSnapshot,
    batches: Sequence[StepBatch],
    steps: int,
    setting: TrainingSetting,
    clock: Clock,
    *,
    seed: int = 0,
    until: Callable[[float], bool] | None = None,
    optimizer: Optimizer | None = None,
) -> list[float]:
    """The losses; stops early when they are non-finite or low enough."""
    optimizer = optimizer or setting.optimizer_for(snapshot)
    if not trained(optimizer):
        raise CannotJudge("the optimizer has no trainable parameter")

    def on_step(_: int, loss: float) -> bool:
        clock.tick()
        if not setting.noise:
            snapshot.seed(seed)
        return not math.isfinite(loss) or (until is not None and until(loss))

    snapshot.seed(seed)
    with setting.around(snapshot.subject):
        return snapshot.train(batches, steps, optimizer=optimizer, on_step=on_step)


def train_until(
    subject: Subject,
    batch: StepBatch,
    steps: int,
    setting: TrainingSetting,
    clock: Clock,
    low: Callable[[MeasuredLoss], float],
) -> tuple[MeasuredLoss, MeasuredLoss, list[float]]:
    """Train on one batch until its loss is low enough: the loss before, the loss after, and all losses."""
    with subject.snapshot() as snapshot, setting.around(subject):
        first, last = measured(snapshot, batch), MeasuredLoss(math.inf)
        wanted = low(first)
        losses = train(snapshot, [batch], steps, setting, clock, until=lambda v: v <= wanted)
        with contextlib.suppress(ArithmeticError):
            last = measured(snapshot, batch) if math.isfinite(losses[-1]) else last
    return first, last, losses


def on_finite_steps(clock: Clock, seconds: float = math.inf) -> Callable[[int, float], bool]:
    """For `StepSnapshot.train`: ends it after this time; raises CannotJudge if the loss is non-finite."""
    until = time.monotonic() + seconds

    def on_step(_: int, loss: float) -> bool:
        clock.tick()
        if not math.isfinite(loss):
            raise CannotJudge("the loss became non-finite in a short training")
        return time.monotonic() > until

    return on_step


def must_be_finite(start: float) -> None:
    """Raise CannotJudge if training can't start from this loss."""
    if not math.isfinite(start):
        raise CannotJudge("the loss is non-finite before the first step")


# -- dropout --


@contextlib.contextmanager
def without_dropout(subject: Subject) -> Iterator[None]:
    """No dropout, in layers or in functions."""
    modules = [module for root in subject.models.values() for module in root.modules()]
    before = [(m, name, getattr(m, name)) for m in modules for name in _settings(m)]
    for module, name, _ in before:
        setattr(module, name, 0.0)
    try:
        with _NoDropout() if subject.cache.get("functional dropout", True) else contextlib.nullcontext():
            yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def dropouts(snapshot: StepSnapshot, batch: StepBatch) -> list[tuple[str, float]]:
    """Where values are dropped in training, and their share; also detects functional dropout."""
    subject = snapshot.subject
    found = [
        (name, float(getattr(m, setting)))
        for root in subject.models.values()
        for name, m in root.named_modules()
        if m.training
        for setting in _settings(m)
    ]
    subject.cache["functional dropout"] = False
    with without_dropout(subject), _NoDropout() as mode:
        snapshot.loss(batch)
    subject.cache["functional dropout"] = bool(mode.shares)
    found += [("", share) for share in mode.shares]
    return [(name, p) for name, p in found if p > 0]


def _settings(module: nn.Module) -> tuple[str, ...]:
    """Names of the attributes that say which share is dropped."""
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return ("p",)
    return ("dropout",) if isinstance(getattr(module, "dropout", None), float) else ()


class _NoDropout(TorchFunctionMode):
    """Makes torch's functions keep the values that they would drop."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: list[float] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if "dropout" in name and getattr(func, "__module__", "") == "torch.nn.functional":
            given = dict(zip(("input", "p", "training", "inplace"), args, strict=False)) | kwargs
            share = float(given.get("p", 0.5)) if given.get("training", True) else 0.0
            if share > 0:
                self.shares.append(share)
                return func(**{**given, "p": 0.0})
        elif kwargs.get("dropout_p"):
            self.shares.append(float(kwargs["dropout_p"]))
            kwargs["dropout_p"] = 0.0
        return func(*args, **kwargs)
