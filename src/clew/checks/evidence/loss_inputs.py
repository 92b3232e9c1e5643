"""Loss calls as the checks see them: their inputs, and what produced those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.checks.evidence.recorded_facts import Shape, flag, shape, text, whole
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records.site import Site

CLASSES = ("cross_entropy", "nll_loss")
BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
REGRESSION = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")

Place = tuple[str | None, int | None]


@dataclass(frozen=True)
class Output:
    """What goes into a loss as prediction, and the activation that it came out of."""

    kind: str  # of the loss
    step: int
    file: str | None
    line: int | None
    made_by: str  # "sigmoid", …; "" if it came out of none
    dim: int | None  # of a softmax
    logged: bool
    clamped: bool
    picked: bool
    shape: Shape

    @classmethod
    def read(cls, step: int, data: Mapping[str, Any]) -> Output:
        return cls(
            kind=text(data.get("kind")) or "",
            step=step,
            file=text(data.get("file")),
            line=whole(data.get("line")),
            made_by=text(data.get("made_by")) or "",
            dim=whole(data.get("dim")),
            logged=flag(data.get("logged")),
            clamped=flag(data.get("clamped")),
            picked=flag(data.get("picked")),
            shape=shape(data.get("shape")) or (),
        )

    @property
    def classes(self) -> int | None:
        """Size of the class dimension."""
        if not self.shape:
            return None
        return self.shape[1] if len(self.shape) > 1 else self.shape[0]


@dataclass(frozen=True)
class Failure:
    """A loss call that torch refused."""

    kind: str
    step: int
    file: str | None
    line: int | None
    error: str
    message: str
    data: Mapping[str, Any]

    @classmethod
    def read(cls, step: int, data: Mapping[str, Any]) -> Failure:
        return cls(
            kind=text(data.get("kind")) or "",
            step=step,
            file=text(data.get("file")),
            line=whole(data.get("line")),
            error=text(data.get("error")) or "",
            message=text(data.get("message")) or "",
            data=data,
        )

    @property
    def site(self) -> Site:
        return Site(op=self.kind, file=self.file, line=self.line, phase="train")

    def number(self, name: str) -> float:
        """A recorded number; NaN if it is not there."""
        value = self.data.get(name)
        return float(value) if isinstance(value, (int, float)) else float("nan")

    def shape(self, name: str) -> Shape:
        return shape(self.data.get(f"{name}_shape")) or ()


def failures(run: RunView) -> list[Failure]:
    return [Failure.read(f.step, f.data) for f in run.facts("loss_failed")]


def outputs(run: RunView, kinds: tuple[str, ...]) -> Iterator[tuple[Site, Output]]:
    """The loss calls of these kinds, one for each place: those whose outputs are all made alike."""
    by_place: dict[tuple[str, Place], list[Output]] = {}
    for fact in run.facts("output"):
        output = Output.read(fact.step, fact.data)
        if output.kind in kinds:
            by_place.setdefault((output.kind, (output.file, output.line)), []).append(output)
    for (kind, (file, line)), found in by_place.items():
        if len({(o.made_by, o.logged, o.dim) for o in found}) == 1:
            yield Site(op=kind, file=file, line=line, phase="train"), found[0]


def series_at(run: RunView, signal: str, site: Site) -> Series | None:
    """A signal of the loss call at this place."""
    for other, series in run.series(signal):
        if (other.op, other.file, other.line) == (site.op, site.file, site.line):
            return series
    return None


def sampled(run: RunView, signal: str, kinds: tuple[str, ...]) -> int:
    """The most samples that the signal has at a loss call of these kinds."""
    return max((len(s) for site, s in run.series(signal) if site.op in kinds), default=0)


def last_layer(run: RunView, *kinds: str) -> Site | None:
    """The layer that ran last, if it is of this class: it made the output."""
    ran = [site for site, _ in run.series("activation.mean") if run.layer_of(site) is not None]
    if not ran:
        return None
    last = max(ran, key=run.depth)
    layer = run.layer_of(last)
    return Site(module=last.module, root=last.root) if layer and layer.kind in kinds else None
