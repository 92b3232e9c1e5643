"""Short trainings on a snapshot: other learning rates, other optimizers, regularisation switched off."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.overrides import TorchFunctionMode

from clew.labs.experiments.tools.loss_bounds import bounds
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
    rate: float = 1.0  # a factor on the user's own rates; for another optimizer its rate
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


@dataclass(frozen=True)
class TrainingOutcome:
    """The user's loss of a batch at one moment, and how low it could be."""

    loss: float
    known: float | None = None  # the part that torch's loss functions made
    floor: float | None = None  # of that part
    constant: float | None = None  # of that part, for the best answer that ignores the input
    accuracy: float | None = None


def look(snapshot: StepSnapshot, batch: StepBatch, seed: int = 0) -> TrainingOutcome:
    snapshot.seed(seed)
    seen = snapshot.observe(batch)
    loss = float(seen.loss.detach())
    found = bounds(seen.calls)
    if found is None:
        return TrainingOutcome(loss)
    return TrainingOutcome(loss, found.value, found.floor, found.constant, found.accuracy)


@dataclass(frozen=True)
class TrainingScale:
    """The range of the loss: `floor` is the lowest possible, `constant` is reached without the input."""

    floor: float | None
    constant: float | None


def scale(first: TrainingOutcome, last: TrainingOutcome) -> TrainingScale:
    """In units of the user's loss, if that is the known part times a number in both observations."""
    ratios = [x.loss / x.known for x in (first, last) if x.known]
    same = len(ratios) == 2 and math.isclose(*ratios, rel_tol=1e-3) and ratios[0] > 0
    if not same or first.floor is None:
        return TrainingScale(None, None)
    constant = None if first.constant is None else first.constant * ratios[0]
    return TrainingScale(first.floor * ratios[0], constant)


def trained(optimizer: Optimizer) -> list[Tensor]:
    """What the optimizer may change."""
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]


def few(subject: Subject, most: int) -> StepBatch:
    """The first samples, or the whole batch where it can't be cut."""
    batch = subject.batch()
    if batch.size <= most:
        return batch
    small = batch.rows(range(most))
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
        whole = joined(taken)
        whole = whole if whole.size <= most else whole.rows(range(most))
        if math.isfinite(float(snapshot.loss(whole).detach())):
            return whole
    return first


def train(
    subject: Subject,
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
    with setting.around(subject):
        return snapshot.train(batches, steps, optimizer=optimizer, on_step=on_step)


# -- dropout --


@contextlib.contextmanager
def without_dropout(subject: Subject) -> Iterator[None]:
    """No dropout, in layers or in functions."""
    before = [(m, name, getattr(m, name)) for m in _modules(subject) for name in _settings(m)]
    for module, name, _ in before:
        setattr(module, name, 0.0)
    try:
        with _NoDropout() if subject.cache.get("functional dropout", True) else contextlib.nullcontext():
            yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def dropouts(subject: Subject, snapshot: StepSnapshot, batch: StepBatch) -> list[tuple[str, float]]:
    """Where values are dropped in training, and their share; also detects functional dropout."""
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


def _modules(subject: Subject) -> Iterator[nn.Module]:
    for root in subject.models.values():
        yield from root.modules()


def _settings(module: nn.Module) -> tuple[str, ...]:
    """Names of the attributes that say which share is dropped."""
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return ("p",)
    return ("dropout",) if isinstance(getattr(module, "dropout", None), float) else ()


class _NoDropout(TorchFunctionMode):
    """Torch functions that drop values keep them."""

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
