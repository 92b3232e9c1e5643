"""Facts about the training loop: optimizers, schedulers, modes, loaders, the order of events."""

from __future__ import annotations

from dataclasses import dataclass

from clew.records.codec import keyed, sparse
from clew.records.facts.fact import TypedFact
from clew.records.site import Site


@dataclass(frozen=True)
class OptimizerGroup:
    """A parameter group of an optimizer."""

    lr: float = 0.0
    weight_decay: float = 0.0
    params: tuple[str, ...] = ()


@dataclass(frozen=True)
class OptimizerFact(TypedFact):
    """`index`, `class`, `file`, `line` (where it was created), `groups`: `[{lr, weight_decay, params:
    [name…]}]`, `closure`, `implementation` (`fused`, `foreach`, `for-loop`, or `own` for code that is not
    torch's).
    """

    fact_kind = "optimizer"

    index: int | None = None
    kind: str = keyed("class", "optimizer")
    file: str | None = None
    line: int | None = None
    groups: tuple[OptimizerGroup, ...] = ()
    closure: bool = False
    implementation: str = ""


@dataclass(frozen=True)
class OptimizerUseFact(TypedFact):
    """How an optimizer was used, written with `parameters` and at the end: `index` (null if it never
    stepped), `class`, `file`, `line`, `stepped`, `held` (number of its parameters), `with_grad`,
    `outside` (those that belong to no model in use), `outside_with_grad`, `shared` (an optimizer that
    steps has some of the same parameters), `changed` (something changed its parameters), `backwards`,
    `unscaled` (how often a GradScaler was about to step it).
    """

    fact_kind = "optimizer_use"

    index: int | None = None
    kind: str = keyed("class", "the optimizer")
    file: str | None = None
    line: int | None = None
    stepped: bool = False
    held: int = 0
    with_grad: int = 0
    outside: int = 0
    outside_with_grad: int = 0
    shared: bool = False
    changed: bool = False
    backwards: int = 0
    unscaled: int = 0


@dataclass(frozen=True)
class SchedulerFact(TypedFact):
    """`index`, `class`, `file`, `line` (where it was created), `step_file` and `step_line` (where it is
    stepped), `steps`, `early` (how many of them came before its optimizer's first), `inner` (stepped by
    another scheduler), `optimizer` (index; null if that never stepped).
    """

    fact_kind = "scheduler"

    index: int | None = None
    kind: str = keyed("class", "the scheduler")
    file: str | None = None
    line: int | None = None
    step_file: str | None = None
    step_line: int | None = None
    steps: int | None = None
    early: int = 0
    inner: bool = False
    optimizer: int | None = None


@dataclass(frozen=True)
class PatternFact(TypedFact):
    """The order of events within a step: `id`, `pattern`, one letter per event: `d` batch from a loader,
    `f` forward, `e` forward without gradient, `b` backward, `z` zero_grad, `c` clip, `u` unscale, `s`
    optimizer step, `h` scheduler step, `m` mode change. With two or more models or optimizers a digit
    follows (`s1`); repetitions are written once with `+`.
    """

    fact_kind = "pattern"

    id: int | None = None
    pattern: str = ""


@dataclass(frozen=True)
class ModeFact(TypedFact):
    """The last `.train()` or `.eval()` call before the training forward, written when it changes: `root`,
    `training`, `file`, `line`; `mode_dependent`: `[[path, class]…]` of the layers that it affects.
    """

    fact_kind = "mode"

    root: str = ""
    training: bool = False
    file: str | None = None
    line: int | None = None
    mode_dependent: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class BackwardFact(TypedFact):
    """Where `backward()` starts: `op` (the last operation of the loss, named as in autograd), `file`,
    `line`.
    """

    fact_kind = "backward"

    op: str = ""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class LoaderFact(TypedFact):
    """`index`, `file`, `line` (where it is iterated), `batch_size`, `num_workers`, `shuffle`, `sampler`,
    `dataset`, `length`, `drop_last`, `pin_memory`, `persistent_workers`, `prefetch_factor`, `made_file`
    and `made_line` (where it was created), `names` (variables that refer to it), `dataset_number` (the
    same for the same dataset object), `generator` (attribute of the dataset: the random generator that
    `__getitem__` uses), `random` (`__getitem__` draws random numbers, and no attribute that it reads is
    None, False or 0), `worker_init` (`constant`: it sets the same seed in every worker; `given`; null).
    """

    fact_kind = "loader"

    index: int = -1
    file: str | None = None
    line: int | None = None
    batch_size: int | None = None
    workers: int = keyed("num_workers", 0)
    shuffle: bool | None = None
    sampler: str = ""
    dataset: str = "the dataset"
    length: int | None = None
    drop_last: bool = False
    pin_memory: bool = False
    persistent_workers: bool = False
    prefetch_factor: int | None = None
    names: tuple[str, ...] = ()
    made_file: str | None = None
    made_line: int | None = None
    dataset_number: int | None = None
    generator: str | None = None
    random: bool = False
    worker_init: str | None = None

    @property
    def site(self) -> Site:
        """The line that iterates over it."""
        return Site(op="loader", file=self.file, line=self.line)

    @property
    def has_several_batches(self) -> bool:
        return bool(self.length and self.batch_size and self.length > self.batch_size)


@dataclass(frozen=True)
class FedFact(TypedFact):
    """Where the inputs of a model came from, written once for each origin: `phase`, `root`, `loader`
    (index or null), `names`, `file` and `line` of the call, and in evaluation `source`, its number.
    """

    fact_kind = "fed"

    phase: str = ""
    source: int | None = sparse()
    root: str = ""
    loader: int | None = None
    names: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class DatasetChangedFact(TypedFact):
    """Data stored in a dataset that changed between epochs: `loader`, `array` (attribute of the dataset),
    `epoch`, `mean` and `std` an epoch ago, `mean_now`, `std_now`.
    """

    fact_kind = "dataset_changed"

    loader: int | None = None
    array: str = ""
    epoch: int = 0
    mean: float = 0.0
    std: float = 0.0
    mean_now: float = 0.0
    std_now: float = 0.0


@dataclass(frozen=True)
class GrowthFact(TypedFact):
    """Memory that grows from step to step; written when it is found and again when it changes. If
    `measured`, the growth is that of the process: `slope` (bytes per step), `error` (of the slope),
    `rise`, `steps` (`[first, last]`). Otherwise `slope` estimates how much more the program keeps per
    step. `objects` (more in each step), `owner` (in words; empty: not found), `name` (in the user's
    code), `container` (`list`, `dict`, `set`, `deque`, `tensor`: one whose graph reaches back over all
    steps, `hooks`), `kind` (`graph`: tensors with their graphs, `tensor`, `python`, empty), `file`,
    `line` (that adds to it). A profile always searches the program for the owner, an ordinary run only
    after its memory has clearly grown.
    """

    fact_kind = "growth"

    slope: float = 0.0
    error: float | None = None
    rise: float | None = None
    steps: tuple[int, ...] | None = None
    measured: bool = False
    objects: float = 0.0
    owner: str = ""
    name: str = ""
    container: str = ""
    kind: str = ""
    file: str | None = None
    line: int | None = None
