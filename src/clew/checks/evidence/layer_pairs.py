"""The `structure` fact as the checks read it: which layer passes its output to which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.evidence.recorded_facts import Data, flag, names, rows, shape, text, whole
from clew.checks.run_view import RunView


@dataclass(frozen=True)
class LayerPair:
    """Two affine layers of which the second gets what the first puts out, and nobody else does."""

    root: str
    first: str
    then: str
    kinds: tuple[str, ...]
    widths: tuple[int, ...]  # into the first, between, out of the second
    kernels: tuple[tuple[int, ...], ...]
    grouped: bool
    through: tuple[str, ...]  # dropout and batch normalisation in between

    @classmethod
    def read(cls, root: str, data: Data) -> LayerPair:
        kernels = data.get("kernels")
        return cls(
            root=root,
            first=text(data.get("first")) or "",
            then=text(data.get("then")) or "",
            kinds=names(data.get("kinds")),
            widths=shape(data.get("widths")) or (),
            kernels=tuple(shape(k) or () for k in kernels) if isinstance(kernels, (list, tuple)) else (),
            grouped=flag(data.get("grouped")),
            through=names(data.get("through")),
        )


@dataclass(frozen=True)
class Dropout:
    root: str
    path: str
    p: float
    module: bool  # a layer; else a call of `F.dropout` in the forward of `path`
    norm: str | None  # the batch normalisation that gets its output
    loss: bool  # the loss gets its output
    file: str | None = None  # of the call
    line: int | None = None

    @classmethod
    def read(cls, root: str, data: Data) -> Dropout:
        p = data.get("p")
        return cls(
            root=root,
            path=text(data.get("path")) or "",
            p=float(p) if isinstance(p, (int, float)) else 0.0,
            module=flag(data.get("module")),
            norm=text(data.get("norm")),
            loss=flag(data.get("loss")),
            file=text(data.get("file")),
            line=whole(data.get("line")),
        )


def pairs(run: RunView) -> Iterator[LayerPair]:
    for root, data in _newest(run):
        yield from (LayerPair.read(root, row) for row in rows(data.get("pairs")))


def dropouts(run: RunView) -> Iterator[Dropout]:
    for root, data in _newest(run):
        yield from (Dropout.read(root, row) for row in rows(data.get("dropouts")))


def biases(run: RunView) -> Iterator[tuple[str, str, str]]:
    """Root, layer with a bias, and the normalisation behind it."""
    for root, data in _newest(run):
        for row in rows(data.get("biases")):
            yield root, text(row.get("layer")) or "", text(row.get("norm")) or ""


def feeding(run: RunView) -> dict[tuple[str, str, str], str]:
    """(root, module, op) of the squashing functions whose output is the input of a layer: that layer."""
    return {
        (root, module, text(row.get("op")) or ""): text(row.get("into")) or ""
        for root, data in _newest(run)
        for row in rows(data.get("squashing"))
        for module in names(row.get("modules"))
    }


def _newest(run: RunView) -> Iterator[tuple[str, Data]]:
    """The last `structure` fact of every root."""
    newest = {text(f.data.get("root")) or "": f.data for f in run.facts("structure")}
    yield from newest.items()
