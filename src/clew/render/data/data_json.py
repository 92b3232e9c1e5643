"""`clew data` as JSON, and the files of the browser's view (docs/api.md)."""

from __future__ import annotations

import base64
from typing import Any

from clew.records.codec import plain
from clew.records.data_report import Report
from clew.records.sample_views import FieldView, PipelineLook, ValueView
from clew.render.images import fitted, image_of, png
from clew.render.plot_line import numbers

KINDS = {"image": "image", "text": "text", "wave": "audio", "numbers": "vector"}
MOST_VALUES = 400


def report_json(report: Report) -> dict[str, Any]:
    """What `clew data --json FILE` gives."""
    return {
        "version": 1,
        "what": report.what,
        "seconds": report.seconds,
        "loaders": [shown.to_json() for shown in report.looks],
        "measured": [one.to_json() for one in report.measured],
        "surveys": [one.to_json() for one in report.surveys],
        "between": [one.to_json() for one in report.betweens],
        "findings": [finding.to_json() for finding in report.findings],
        "notes": list(report.notes),
    }


def samples_json(report: Report, step: int) -> dict[str, Any]:
    """`data/samples.json`: each sample from the dataset, then as the model gets it."""
    rows: list[dict[str, Any]] = []
    for shown in report.looks:
        made = {row.index: row for row in shown.rows if row.index is not None}
        for sample in shown.samples:
            rows.append(_sample(sample, shown, step, "dataset"))
            if sample.index in made:
                rows.append(_sample(made.pop(sample.index), shown, step, shown.rows_of))
        rest = [row for row in shown.rows if row.index is None or row.index in made]
        rows += [_sample(row, shown, step, shown.rows_of) for row in rest]
    return {"version": 1, "samples": rows}


def _sample(look: ValueView, shown: PipelineLook, step: int, source: str) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": look.title.removeprefix("sample "),
        "step": step,
        "phase": shown.role,
        "loader": shown.name,
        "source": source,
        "kind": KINDS.get(look.kind, "vector"),
        "shape": list(_main_shape(look.parts)),
        "about": "; ".join(said(part) for part in look.parts[:4]),
    }
    if look.label:
        data["label"] = look.label
    if look.error:
        data["text"] = look.error
        return data
    image = image_of(look.data) if look.kind == "image" else None
    if image is not None:
        data["image"] = image_uri(look.data)
    elif look.kind == "text":
        data["text"] = str(look.data)
    else:
        data["values"] = list(numbers(_flat(look.data)))[:MOST_VALUES]
    return data


def image_uri(data: Any, largest: int = 192) -> str:
    """A picture as it can stand in a page."""
    image = image_of(data)
    if image is None:
        return ""
    return "data:image/png;base64," + base64.b64encode(png(fitted(image, largest, largest, 48))).decode(
        "ascii"
    )


def _flat(data: Any) -> list[Any]:
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], (list, tuple)):
        return [value for row in data for value in row]
    return list(data) if isinstance(data, (list, tuple)) else []


def _main_shape(parts: tuple[FieldView, ...]) -> tuple[int, ...]:
    shapes = [part.shape for part in parts if part.shape]
    return max(shapes, key=lambda shape: (len(shape), *shape), default=())


def said(part: FieldView) -> str:
    """`3×32×32 float32, 0 to 1`."""
    shape = "×".join(str(n) for n in part.shape) if part.shape else ""
    words = [word for word in (shape, part.dtype or part.type) if word]
    values = f", {part.low:.4g} to {part.high:.4g}" if part.low is not None and part.high is not None else ""
    bad = f", {part.bad} non-finite" if part.bad else ""
    if part.text and not part.shape:
        return f"{part.dtype or part.type} {part.text[:40]}"
    return " ".join(words) + values + bad


def batches_json(report: Report, step: int) -> dict[str, Any]:
    """`data/batches.json`: a batch of each loader, and what the model got of it."""
    rows: list[dict[str, Any]] = []
    for shown in report.looks:
        base = {"step": step, "phase": shown.role, "loader": shown.number, "name": shown.name}
        if shown.batch:
            rows.append({**base, "source": "loader", **_divided(shown.batch)})
        if shown.inputs:
            rows.append(
                {**base, "source": "model", "inputs": [_note(p) for p in shown.inputs], "targets": []}
            )
    return {"version": 1, "batches": rows}


def _divided(parts: tuple[FieldView, ...]) -> dict[str, Any]:
    """Without knowing the model, the last of several is the target."""
    head, tail = (parts[:-1], parts[-1:]) if len(parts) > 1 else (parts, ())
    return {"inputs": [_note(part) for part in head], "targets": [_note(part) for part in tail]}


def _note(part: FieldView) -> dict[str, Any]:
    data = plain(part)
    note = {"name": data["name"], "shape": data["shape"], "dtype": data["dtype"] or data["type"]}
    return {**note, "min": part.low, "max": part.high, "mean": part.mean, "std": part.std}
