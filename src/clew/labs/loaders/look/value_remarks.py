"""What matters about the values that reach the model: scale, order of the channels, what batching changed.

These are observations, not findings: a value range that hurts is a check's business.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.records.sample_views import Part, PipelineLook

CHANNELS = (1, 3, 4)
SMALLEST = 8  # rows and columns of a picture


def remarks_on(shown: PipelineLook) -> Iterator[str]:
    """One line for each."""
    sample = _main(next((look.parts for look in shown.samples if look.parts), ()))
    batch, given = _main(shown.batch), _main(shown.inputs)
    yield from _casts(sample, batch)
    yield from _reshaped(batch, given)
    last = given or batch
    if last is not None:
        yield from _scale(last, "the model gets" if given is not None else "batches have")
        yield from _channels(last)
    for part in shown.inputs or shown.batch:
        if part.bad:
            yield f"{part.bad} values of {_called(part)} are NaN or infinite"


def _main(parts: tuple[Part, ...]) -> Part | None:
    sized = [part for part in parts if part.shape is not None and part.dtype]
    return max(sized, key=_size, default=None)


def _size(part: Part) -> int:
    total = 1
    for length in part.shape or ():
        total *= length
    return total


def _called(part: Part) -> str:
    return f"field {part.name}" if part.name.isdigit() else part.name


def _casts(sample: Part | None, batch: Part | None) -> Iterator[str]:
    if sample is None or batch is None or sample.dtype == batch.dtype or not sample.dtype or not batch.dtype:
        return
    yield f"batching turns {sample.dtype} into {batch.dtype}"


def _reshaped(batch: Part | None, given: Part | None) -> Iterator[str]:
    if batch is None or given is None or batch.shape is None or given.shape is None:
        return
    if batch.dtype != given.dtype:
        yield f"between loader and model, {batch.dtype} becomes {given.dtype}"
    if batch.shape != given.shape and _size(batch) == _size(given):
        yield f"between loader and model, {_shape(batch)} becomes {_shape(given)}"
    if batch.shape != given.shape or batch.low is None or batch.high is None:
        return
    if given.low is None or given.high is None:
        return
    width = max(batch.high - batch.low, 1e-12)
    if abs(batch.high - given.high) + abs(batch.low - given.low) > 0.05 * width:
        before, after = f"{batch.low:.4g} to {batch.high:.4g}", f"{given.low:.4g} to {given.high:.4g}"
        yield f"between loader and model, values from {before} become {after}"


def _scale(part: Part, who: str) -> Iterator[str]:
    if part.low is None or part.high is None or part.mean is None or part.std is None:
        return
    if not part.dtype.startswith(("float", "bfloat")):
        return
    if part.low >= 0 and 200 < part.high <= 255:
        yield f"{who} values from 0 to 255: they are not scaled"
    elif abs(part.mean) < 0.2 and 0.7 < part.std < 1.4:
        yield f"{who} normalised values: mean {part.mean:.2g}, standard deviation {part.std:.2g}"
    elif part.low >= 0 and part.high <= 1:
        yield (
            f"{who} values from {part.low:.2g} to {part.high:.2g}, mean {part.mean:.2g}: scaled, but "
            "not centred"
        )


def _channels(part: Part) -> Iterator[str]:
    shape = part.shape or ()
    if len(shape) != 4 or min(shape[1:3]) < SMALLEST:
        return
    if shape[3] in CHANNELS and shape[1] not in CHANNELS:
        yield f"channels come last ({_shape(part)}); torch's convolutions expect channels in dimension 1"


def _shape(part: Part) -> str:
    return "×".join(str(length) for length in part.shape or ()) or "one number"
