"""Follows one sample through every stage: its input, its output and how long it took."""

from __future__ import annotations

import math
from typing import Any

from clew.labs.loaders.readable_loader import ReadableLoader
from clew.labs.loaders.stage_trace import StageCall
from clew.labs.loaders.token_decoder import TokenDecoder
from clew.labs.loaders.user_errors import error_line
from clew.labs.loaders.value_view import parts_of, rows_of, view_value
from clew.labs.snapshot.dataset_copy import owned
from clew.labs.snapshot.dataset_stages import COLLATE, READ, TRANSFORM, DatasetStage
from clew.labs.snapshot.sample_fields import sample_fields
from clew.labs.snapshot.sample_pool import rows_as_bytes
from clew.measure.rng import seed_all
from clew.records.sample_views import FieldView, SamplePath, StageView

SEED = 0  # seed of the random stages
OTHER_SEEDS = (1, 2, 3, 4, 5)  # seeds under which the result must differ to count as random
MOST = 64  # calls that are recorded: a dataset may call a stage for every pixel


def path_of(readable: ReadableLoader, index: int, decoder: TokenDecoder) -> SamplePath:
    """The stages of one sample that is read and collated alone, in the order in which they end, under a
    fixed seed. Call inside `readable.reading()`."""
    calls: list[tuple[StageCall, Any]] = []
    given: dict[int, Any] = {}

    def entering(call: StageCall) -> None:
        if len(given) < MOST or not call.depth:
            given[id(call)] = _copy(call.given)

    def listener(call: StageCall) -> None:  # a dataset's own `__getitem__` comes after what it called
        if id(call) in given:
            calls.append((call, _copy(call.result)))

    error = ""
    try:
        with readable.following(listener, entering):
            sample = readable.sample(index, seed=SEED)
            if readable.collate is not None:
                readable.collated([sample])
    except Exception as raised:  # noqa: BLE001 - the user's own code: report what it did so far
        error = error_line(raised)
        plain = untraced_sample(readable, index, SEED)
        if plain is not None:
            return _unfollowed(readable, index, plain, decoder)
    passed = [_stage_view(call, given[id(call)], made, decoder) for call, made in calls]
    return SamplePath(index, SEED, (*_stored(calls, given, decoder), *passed), error)


def untraced_sample(readable: ReadableLoader, index: int, seed: int) -> tuple[Any] | None:
    """The sample, if it can be read without tracing; in a tuple, as it may be None."""
    try:
        sample = readable.sample(index, seed=seed)
        if readable.collate is not None:
            readable.collated([sample])
    except Exception:  # noqa: BLE001 - the user's own code does fail, then
        return None
    return (sample,)


def _unfollowed(readable: ReadableLoader, index: int, plain: tuple[Any], decoder: TokenDecoder) -> SamplePath:
    """A loader that can't be traced: only its result is seen."""
    name = type(readable.dataset).__name__
    made = StageView(name, READ, made=_main(plain[0]), view=view_value(plain[0], name, decoder))
    return SamplePath(index, SEED, (made,))


def _stored(
    calls: list[tuple[StageCall, Any]], given: dict[int, Any], decoder: TokenDecoder
) -> list[StageView]:
    """The input of the first transform: the sample as stored in the dataset."""
    for call, _ in calls:
        if call.stage.kind == TRANSFORM and given[id(call)]:
            value = given[id(call)][0]
            return [StageView("as stored", "", made=_main(value), view=view_value(value, "", decoder))]
        if call.stage.kind != READ:
            break  # what came before is known
    return []


def _copy(value: Any) -> Any:
    try:
        return owned(value)
    except Exception:  # noqa: BLE001 - an object that pytree or numpy can't take apart is kept as it is
        return value


def _stage_view(call: StageCall, given: tuple[Any, ...], made: Any, decoder: TokenDecoder) -> StageView:
    stage = call.stage
    wrong = error_line(call.error) if call.error is not None else ""
    return StageView(
        name=stage.name,
        kind=stage.kind,
        depth=call.depth,
        file=stage.file,
        line=stage.line,
        seconds=call.own,
        random=not wrong and is_random(stage, given),
        given=_main(given[0] if len(given) == 1 else given) if given else None,
        made=None if wrong else _main(made),
        view=None if wrong else view_value(_first(made, stage), stage.name, decoder),
        error=wrong,
    )


def _main(value: Any) -> FieldView | None:
    parts = parts_of(value)
    return max(parts, key=lambda part: math.prod(part.shape or (0,)), default=None)


def _first(made: Any, stage: DatasetStage) -> Any:
    """The only sample of a batch of one."""
    rows = rows_of(made, 1) if stage.kind == COLLATE else []
    return rows[0] if rows else made


def is_random(stage: DatasetStage, given: tuple[Any, ...]) -> bool:
    """Whether the same input gives another output with another random seed."""
    if stage.kind in (READ, COLLATE) or not callable(stage.value) or not given:
        return False
    try:
        results = []
        for seed in (SEED, *OTHER_SEEDS):
            seed_all(seed)
            results.append(fingerprint(stage.value(*_copy(given))))
    except Exception:  # noqa: BLE001 - a stage that fails the second time is not known to be random
        return False
    return any(other != results[0] for other in results[1:])


def fingerprint(value: Any) -> list[Any]:
    """Equal for equal samples."""
    found: list[Any] = []
    for name, item in sample_fields(value, most=None).items():
        pixels = getattr(item, "tobytes", None)
        if callable(pixels):
            found.append((name, getattr(item, "shape", getattr(item, "size", None)), pixels()))
        elif hasattr(item, "detach"):
            found.append((name, tuple(item.shape), rows_as_bytes(item.detach()[None])))
        else:
            found.append(
                (name, repr(item) if isinstance(item, (str, int, float, list, tuple)) else type(item))
            )
    return found
