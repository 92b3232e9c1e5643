"""Loaders and the fields of their samples and batches as text: settings, shapes, types and ranges."""

from __future__ import annotations

from collections.abc import Sequence

from clew.records.plural import counted
from clew.records.sample_views import FieldView, LoaderView, StageView, ValueView
from clew.render.safe_text import neutral, short_path

ROLES = {"train": "training", "eval": "evaluation"}


def loader_words(shown: LoaderView) -> list[str]:
    """Role, place and settings of a loader."""
    place = f"{short_path(shown.file)}:{shown.line}" if shown.file else ""
    return [word for word in (ROLES.get(shown.role, ""), place, *_settings(shown)) if word]


def _settings(shown: LoaderView) -> list[str]:
    """Dataset, order, batches and workers."""
    if shown.kind == "model":
        return ["no DataLoader was found; these are the model's inputs"]
    if shown.kind == "batches":
        return ["batches passed in directly"]
    many = f", {shown.length:,} samples" if shown.length is not None else ""
    order = {True: "shuffled", False: "in order", None: ""}[shown.shuffled]
    size = f"batches of {shown.batch_size}" if shown.batch_size else ""
    workers = counted(shown.workers, "worker") if shown.workers else "no workers"
    return [f"{neutral(shown.dataset, 40)}{many}", order, size, workers]


def stage_words(stage: StageView) -> list[str]:
    """Kind and place of a stage, and whether it is random."""
    place = f"{short_path(stage.file)}:{stage.line}" if stage.file else ""
    return [word for word in (stage.kind, "random" if stage.random else "", place) if word]


def field_lines(shown: LoaderView) -> list[tuple[str, str, str]]:
    """Place, name and shape, type and range of every field: of a sample, of a batch, of the model's input."""
    samples = together([sample for sample in shown.samples if not sample.error])
    return [
        *(("dataset", name, text) for name, text in samples),
        *(("batch", part.name, field_line([part])) for part in shown.batch),
        *(("model", part.name, field_line([part])) for part in shown.inputs),
    ]


def together(views: Sequence[ValueView]) -> list[tuple[str, str]]:
    """Each field of several samples: name, and what is common or how it varies."""
    names = list(dict.fromkeys(part.name for view in views for part in view.parts))
    found = []
    for name in names:
        parts = [part for view in views for part in view.parts if part.name == name]
        found.append((name, field_line(parts)))
    return found


def field_line(parts: Sequence[FieldView]) -> str:
    """`3×32×32 float32 · 0 to 1 · mean 0.5, std 0.2`."""
    kind = _kind(parts)
    lows, highs = ([v for p in parts if (v := getattr(p, name)) is not None] for name in ("low", "high"))
    if not lows or not highs:
        texts = [part.text for part in parts if part.text]
        return f"{kind} · {neutral(texts[0], 60)!r}" if len(texts) == 1 else kind
    return " · ".join([kind, *_values(parts, min(lows), max(highs))])


def briefly(part: FieldView) -> str:
    """`3×32×32 float32, 0 to 1`."""
    if part.low is None or part.high is None:
        return f"{_kind([part])} {neutral(part.text, 40)!r}" if part.text else _kind([part])
    values = f"{part.low:.4g} to {part.high:.4g}" if part.low != part.high else f"{part.low:.4g}"
    return f"{_kind([part])}, {values}" + (f", {part.bad} non-finite" if part.bad else "")


def _kind(parts: Sequence[FieldView]) -> str:
    if all(part.type == "str" and part.shape for part in parts):
        lengths = [part.shape[0] for part in parts if part.shape]
        few, many = min(lengths), max(lengths)
        return f"text, {few} characters" if few == many else f"text, {few} to {many} characters"
    shapes = list(dict.fromkeys(part.shape for part in parts))
    types = list(dict.fromkeys(type_of(part) for part in parts))
    shape = times(shapes[0]) if len(shapes) == 1 else _varying([s for s in shapes if s is not None])
    return " ".join(word for word in (shape, ", ".join(types[:3])) if word)


def type_of(part: FieldView) -> str:
    if part.type in ("tensor", "") or part.dtype == part.type:
        return part.dtype or part.type
    return f"{part.dtype} {part.type}" if part.dtype else part.type


def _varying(shapes: Sequence[tuple[int, ...]]) -> str:
    if not shapes or len({len(s) for s in shapes}) != 1:
        return "different shapes"
    pairs = [(min(axis), max(axis)) for axis in zip(*shapes, strict=True)]
    return "×".join(str(a) if a == b else f"({a}–{b})" for a, b in pairs)


def _values(parts: Sequence[FieldView], low: float, high: float) -> list[str]:
    words = [
        f"{low:.4g} to {high:.4g}" if low != high else f"all {low:.4g}" if len(parts) > 1 else f"{low:.4g}"
    ]
    many = [p for p in parts if p.shape and p.mean is not None and p.std is not None]
    if many and (many[0].dtype.startswith(("float", "bfloat")) or len(many[0].shape or ()) > 1):
        mean = sum(p.mean for p in many if p.mean is not None) / len(many)
        std = sum(p.std for p in many if p.std is not None) / len(many)
        words.append(f"mean {mean:.3g}, std {std:.3g}")
    bad = sum(part.bad for part in parts)
    return [*words, f"{bad} non-finite"] if bad else words


def times(shape: tuple[int, ...] | None) -> str:
    return "×".join(str(n) for n in shape) if shape else ""
