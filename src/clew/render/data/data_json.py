"""`clew data` as JSON, and the files of the browser's view (docs/api.md)."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from clew.records.codec import plain
from clew.records.data_report import Report
from clew.records.json_values import numbers
from clew.records.sample_views import FieldView, LoaderView, ValueView
from clew.render.images import data_uri, image_of

KINDS = {"image": "image", "text": "text", "wave": "audio", "numbers": "vector"}
MOST_VALUES = 400


class TensorNote(TypedDict, total=False):
    """A tensor of a batch."""

    name: str
    shape: list[int] | None
    dtype: str
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    values: list[Any]


class BatchRow(TypedDict, total=False):
    """A recorded batch."""

    step: int
    phase: str
    loader: Annotated[int | None, "its number; null: it was not iterated"]
    name: Annotated[str, "of the loader"]
    source: Annotated[str, "`loader`: as the loader delivers it; `model`: as the model gets it"]
    inputs: list[TensorNote]
    targets: list[TensorNote]


class SampleRow(TypedDict, total=False):
    """A recorded sample; one sample is listed once for each source, with the same `id`."""

    id: str
    step: int
    phase: str
    label: Any
    prediction: Any
    loss: float | None
    kind: Annotated[str, "image, text, vector or audio"]
    loader: Annotated[str, "its name"]
    source: Annotated[str, "`dataset`: as the dataset returns it; `batch`; `model`: as the model gets it"]
    about: Annotated[str, "shapes, types and ranges of its fields"]
    shape: list[int]
    image: Annotated[str, "data:image/png or data:image/jpeg"]
    text: str
    values: list[float]


class DataContent(TypedDict, total=False):
    """`data/batches.json` and `data/samples.json`."""

    version: int
    batches: list[BatchRow]
    samples: list[SampleRow]


def report_json(report: Report) -> dict[str, Any]:
    """The JSON of `clew data --json FILE`."""
    return {
        "version": 1,
        "what": report.what,
        "seconds": report.seconds,
        "loaders": [shown.to_json() for shown in report.loaders],
        "measured": [one.to_json() for one in report.measured],
        "surveys": [one.to_json() for one in report.surveys],
        "between": [one.to_json() for one in report.betweens],
        "findings": [finding.to_json() for finding in report.findings],
        "notes": list(report.notes),
    }


def samples_json(report: Report, step: int) -> DataContent:
    """`data/samples.json`: each sample from the dataset, then as the model gets it."""
    rows: list[SampleRow] = []
    for shown in report.loaders:
        made = {row.index: row for row in shown.rows if row.index is not None}
        for sample in shown.samples:
            rows.append(_sample(sample, shown, step, "dataset"))
            if sample.index in made:
                rows.append(_sample(made.pop(sample.index), shown, step, shown.rows_of))
        rest = [row for row in shown.rows if row.index is None or row.index in made]
        rows += [_sample(row, shown, step, shown.rows_of) for row in rest]
    return {"version": 1, "samples": rows}


def _sample(view: ValueView, shown: LoaderView, step: int, source: str) -> SampleRow:
    data: SampleRow = {
        "id": view.title.removeprefix("sample "),
        "step": step,
        "phase": shown.role,
        "loader": shown.name,
        "source": source,
        "kind": KINDS.get(view.kind, "vector"),
        "shape": list(_main_shape(view.parts)),
        "about": "; ".join(field_summary(part) for part in view.parts[:4]),
    }
    if view.label:
        data["label"] = view.label
    if view.error:
        data["text"] = view.error
        return data
    image = image_uri(view)
    if image:
        data["image"] = image
    elif view.kind == "text":
        data["text"] = str(view.data)
    else:
        data["values"] = list(numbers(_flat(view.data)))[:MOST_VALUES]
    return data


def image_uri(view: ValueView) -> str:
    """The image as a data URI; empty if the value is not an image."""
    image = image_of(view.data) if view.kind == "image" else None
    return data_uri(image, 192) if image is not None else ""


def _flat(data: Any) -> list[Any]:
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], (list, tuple)):
        return [value for row in data for value in row]
    return list(data) if isinstance(data, (list, tuple)) else []


def _main_shape(parts: tuple[FieldView, ...]) -> tuple[int, ...]:
    shapes = [part.shape for part in parts if part.shape]
    return max(shapes, key=lambda shape: (len(shape), *shape), default=())


def field_summary(part: FieldView) -> str:
    """`3×32×32 float32, 0 to 1`."""
    shape = "×".join(str(n) for n in part.shape) if part.shape else ""
    words = [word for word in (shape, part.dtype or part.type) if word]
    values = f", {part.low:.4g} to {part.high:.4g}" if part.low is not None and part.high is not None else ""
    bad = f", {part.bad} non-finite" if part.bad else ""
    if part.text and not part.shape:
        return f"{part.dtype or part.type} {part.text[:40]}"
    return " ".join(words) + values + bad


def batches_json(report: Report, step: int) -> DataContent:
    """`data/batches.json`: one batch of each loader, and what the model got of it."""
    rows: list[BatchRow] = []
    for shown in report.loaders:
        base: BatchRow = {"step": step, "phase": shown.role, "loader": shown.number, "name": shown.name}
        if shown.batch:
            rows.append({**base, "source": "loader", **_divided(shown.batch)})
        if shown.inputs:
            rows.append(
                {**base, "source": "model", "inputs": [_note(p) for p in shown.inputs], "targets": []}
            )
    return {"version": 1, "batches": rows}


def _divided(parts: tuple[FieldView, ...]) -> BatchRow:
    """Without a known model, the last of several is the target."""
    head, tail = (parts[:-1], parts[-1:]) if len(parts) > 1 else (parts, ())
    return {"inputs": [_note(part) for part in head], "targets": [_note(part) for part in tail]}


def _note(part: FieldView) -> TensorNote:
    note: TensorNote = {"name": part.name, "shape": plain(part.shape), "dtype": part.dtype or part.type}
    return {**note, "min": part.low, "max": part.high, "mean": part.mean, "std": part.std}
