"""Traces a loader's exception back to the sample: its index, the stage, and the user's line.

A worker's traceback is text from another process, and names no sample. The indices of the batch are known
(`Indices` of `hooks/seams/loader_seam.py`), so the samples are read again here, one by one, until one fails.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import pickle
import re
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import wait
from time import perf_counter
from traceback import walk_tb
from types import TracebackType
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter

from clew.hooks.seams.loader_seam import Crew, Indices
from clew.labs.loaders.readable_loader import MAP, ReadableLoader, of_loader
from clew.labs.loaders.sample_path import untraced_sample
from clew.labs.loaders.stage_trace import StageCall
from clew.labs.loaders.token_decoder import TokenDecoder
from clew.labs.loaders.user_errors import error_line, frames_in_text, last_line, users_frames
from clew.labs.loaders.value_view import parts_of, view_value
from clew.labs.snapshot.dataset_stages import COLLATE, READ
from clew.records.sample_views import Failure, ValueView

ALIVE = 0  # exit code of a child that could read everything

SECONDS = 20.0  # for reading samples again
LAST_MOMENT = 2.0  # seconds in which a worker that closed its sockets must have ended
REREADS = 8  # of the whole batch, each with another seed
MOST_DETAILS = 8
WORKER = re.compile(r"Caught (\w+) in DataLoader worker process (\d+)")
KILLED = re.compile(r"DataLoader worker \(pid\(?s?\)? ?([\d, ]+)\)")
NOT_PICKLED = ("pickle", "Can't get local object", "Can't get attribute", "cannot be pickled")


def find_failing_sample(error: BaseException, indices: Indices) -> Failure | None:
    """The cause of an uncaught exception, if it came from a DataLoader. Runs the user's dataset."""
    message = f"{error} {error.__cause__ or ''}"
    iterator = _iterator_in(error.__traceback__)
    pids = _pids_in(message) or _dead_workers(error, iterator)
    if pids:
        return _killed(error, indices.crew_of(pids), pids, message)
    if iterator is None:
        return None
    loader = _loader_of(id(iterator._dataset), id(iterator._index_sampler), error.__traceback__)
    if loader is None:
        return None
    readable = of_loader(loader, names=_names(error.__traceback__, loader))
    worker = WORKER.search(message)
    if worker is not None:
        drawn = indices.of(iterator, _batch_number(iterator, error.__traceback__)) or []
        return _reproduced(readable, drawn, int(worker.group(2)), last_line(str(error)), error)
    if any(words in message for words in NOT_PICKLED) and isinstance(
        iterator, _MultiProcessingDataLoaderIter
    ):
        return _unpicklable(readable, message)
    return _in_this_process(readable, iterator, indices, error)


def _pids_in(message: str) -> set[int]:
    """The workers that torch reports as dead."""
    killed = KILLED.search(message)
    return {int(pid) for pid in re.findall(r"\d+", killed.group(1))} if killed is not None else set()


def _dead_workers(error: BaseException, iterator: Any) -> set[int]:
    """The workers that died, where torch reports only that it could not fetch a batch from one of them.

    A process that is killed closes its sockets a moment before others can see that it has ended.
    """
    if not isinstance(error, (OSError, EOFError)) or not isinstance(iterator, _MultiProcessingDataLoaderIter):
        return set()
    if WORKER.search(str(error)):  # a worker raised it, such as for a missing file, and is alive
        return set()
    wait([worker.sentinel for worker in iterator._workers], timeout=LAST_MOMENT)
    return {worker.pid or 0 for worker in iterator._workers if worker.exitcode}


def _iterator_in(traceback: TracebackType | None) -> Any:
    owners = (frame.f_locals.get("self") for frame, _ in walk_tb(traceback))
    return next((one for one in owners if isinstance(one, _BaseDataLoaderIter)), None)


def _loader_of(dataset: int, sampler: int, traceback: TracebackType | None) -> Any:
    """The loader of these (by their ids): a variable in one of the frames, else any that has them."""
    scopes = [scope for f, _ in walk_tb(traceback) for scope in (f.f_locals, f.f_globals)]
    named = [value for scope in scopes for value in list(scope.values()) if isinstance(value, DataLoader)]
    for value in itertools.chain(named, (one for one in gc.get_objects() if isinstance(one, DataLoader))):
        own = (vars(value).get("batch_sampler"), vars(value).get("sampler"))
        if id(value.dataset) == dataset and sampler in {id(one) for one in own}:
            return value
    return None


def _names(traceback: TracebackType | None, loader: Any) -> list[str]:
    found = [
        name
        for frame, _ in walk_tb(traceback)
        for scope in (frame.f_locals, frame.f_globals)
        for name, value in list(scope.items())
        if value is loader and name not in ("self", "loader")
    ]
    return list(dict.fromkeys(found))


def _batch_number(iterator: Any, traceback: TracebackType | None) -> int:
    """The number of the batch that failed."""
    if getattr(iterator, "_in_order", True):
        return int(iterator._rcvd_idx) - 1
    frames = [f for f, _ in walk_tb(traceback) if f.f_code.co_name == "_next_data"]
    return int(frames[-1].f_locals.get("idx", -1)) if frames else -1


# -- kinds of failures --


def _reproduced(
    readable: ReadableLoader, indices: Sequence[int], worker: int | None, error: str, original: BaseException
) -> Failure:
    base = Failure("not reproduced", error, readable.name, worker, tuple(indices))
    until = perf_counter() + SECONDS
    with readable.reading():
        decoder = TokenDecoder(readable)
        if readable.kind != MAP:
            return _from_stream(readable, base, until)
        for seed in range(REREADS):
            found = _reread(readable, indices, seed, base, decoder)
            if found is not None:
                return found
            if perf_counter() > until:
                break
    note = (
        "none of these samples fails when read again here: the failure depends on random numbers, "
        "or on something that differs in a worker"
    )
    return replace(base, frames=frames_in_text(str(original)), notes=(note,))


def _reread(
    readable: ReadableLoader, indices: Sequence[int], seed: int, base: Failure, decoder: TokenDecoder
) -> Failure | None:
    samples = []
    for index in indices:
        calls: list[StageCall] = []
        own_seed = seed * 7919 + index
        try:
            with readable.following(calls.append):
                samples.append(readable.sample(index, own_seed))
        except Exception as raised:  # noqa: BLE001 - this is the failure to find
            plain = untraced_sample(readable, index, own_seed)
            if plain is None:
                failed = [call for call in calls if call.error is not None]
                return _of_sample(base, index, raised, failed, decoder)
            samples.append(plain[0])  # tracing it fails, which is not the failure to find
    return _collated(readable, samples, indices, base)


def _of_sample(
    base: Failure, index: int, raised: BaseException, failed: Sequence[StageCall], decoder: TokenDecoder
) -> Failure:
    """The innermost stage that raised is the first one reported."""
    stage = failed[0].stage if failed else None
    name = "" if stage is None else f"{stage.kind} {stage.name}" if stage.kind != READ else stage.name
    view = None
    given = failed[0].given[0] if failed and failed[0].given else None
    if stage is not None and stage.kind != READ and not isinstance(given, (int, type(None))):
        view = _view(given, f"input of {stage.name}", decoder)
    return replace(_of_error(base, "sample", raised), index=index, stage=name, view=view)


def _of_error(base: Failure, kind: str, raised: BaseException) -> Failure:
    return replace(base, kind=kind, error=error_line(raised), frames=users_frames(raised.__traceback__))


def _view(value: Any, title: str, decoder: TokenDecoder) -> ValueView | None:
    try:
        return view_value(value, title, decoder)
    except Exception:  # noqa: BLE001 - what made the user's code fail may be too odd to be shown
        return None


def _collated(
    readable: ReadableLoader, samples: Sequence[Any], indices: Sequence[int], base: Failure
) -> Failure | None:
    if readable.collate is None or not samples:
        return None
    try:
        readable.collated(samples)
    except Exception as raised:  # noqa: BLE001 - this is the failure to find
        name = next((s.name for s in readable.stages if s.kind == COLLATE), "collate")
        odd, details = odd_samples(samples, indices)
        return replace(_of_error(base, "collate", raised), stage=name, index=odd, details=details)
    return None


def odd_samples(samples: Sequence[Any], indices: Sequence[int]) -> tuple[int | None, tuple[str, ...]]:
    """Samples unlike the others in structure, type or shape of a field. A single odd one is named."""
    described = [_form(sample) for sample in samples]
    common = max(set(described), key=described.count)
    odd = [n for n, form in enumerate(described) if form != common]
    lines = [f"sample {indices[n]}: {', '.join(described[n]) or 'nothing'}" for n in odd[:MOST_DETAILS]]
    if not odd:
        return None, ()
    count = len(samples) - len(odd)
    others = (
        f"the other {count}: {', '.join(common)}"
        if count > 1
        else f"sample {indices[described.index(common)]}: {', '.join(common)}"
    )
    more = [f"and {len(odd) - MOST_DETAILS} more"] if len(odd) > MOST_DETAILS else []
    return (indices[odd[0]] if len(odd) == 1 and len(samples) > 2 else None), (*lines, *more, others)


def _form(sample: Any) -> tuple[str, ...]:
    shown = []
    for part in parts_of(sample):
        shape = "×".join(str(n) for n in part.shape) if part.shape and part.dtype else ""
        words = " ".join(word for word in (shape, part.dtype or part.type) if word)
        shown.append(f"{part.name} {words}" if part.name != "sample" else words)
    return tuple(shown)


def _from_stream(readable: ReadableLoader, base: Failure, until: float) -> Failure:
    """A dataset without an index: read its samples in order until one fails."""
    number = 0
    try:
        for _ in readable.samples():
            number += 1
            if perf_counter() > until:
                break
    except Exception as raised:  # noqa: BLE001 - this is the failure to find
        note = "counted in one process: a worker that reads only a share of the data counts differently"
        return replace(_of_error(base, "sample", raised), index=number, notes=(note,))
    return replace(base, notes=(f"samples that could be read again here without an error: {number}",))


def _killed(error: BaseException, crew: Crew | None, pids: set[int], message: str) -> Failure | None:
    """A worker that died left no traceback: its batches are read in a new process."""
    loader = _loader_of(crew.dataset, crew.sampler, error.__traceback__) if crew is not None else None
    if crew is None or loader is None:
        return None
    readable = of_loader(loader, names=_names(error.__traceback__, loader))
    worker, drawn = next(n for n, pid in enumerate(crew.pids) if pid in pids), crew.waiting()
    base = Failure("killed", message.strip().splitlines()[0][:300], readable.name, worker, tuple(drawn[:64]))
    found = fatal(readable, drawn, SECONDS) if readable.kind == MAP and drawn else None
    if found is None:
        note = "reading the same samples in another process does not kill that one"
        hint = "memory may have run out: use fewer workers, a smaller prefetch_factor, or smaller samples"
        return replace(base, notes=(note,) if drawn else (), hint=hint)
    index, how = found
    return replace(base, index=index, notes=(f"reading it in another process kills that one too: {how}",))


def _unpicklable(readable: ReadableLoader, message: str) -> Failure:
    """Spawned workers get the dataset as a pickle: which part of it can't be pickled?"""
    details = []
    for name, owner in (("dataset", readable.dataset), ("collate_fn", readable.collate)):
        details += [f"{name}{path}: {why}" for path, why in _culprits(owner)]
    hint = (
        "use functions and classes from the top level of a module, not lambdas or local ones; or fork workers"
    )
    line = message.strip().splitlines()[0][:300]
    return Failure("unpicklable", line, readable.name, details=tuple(details[:MOST_DETAILS]), hint=hint)


def _culprits(owner: Any, path: str = "", depth: int = 3) -> list[tuple[str, str]]:
    try:
        pickle.dumps(owner)
    except Exception as error:  # noqa: BLE001 - pickling runs the user's code, which may raise anything
        why = error_line(error)
    else:
        return []
    inside = getattr(owner, "__dict__", None)
    parts = {f".{k}": v for k, v in inside.items()} if isinstance(inside, dict) else {}
    if isinstance(owner, (list, tuple)):
        parts = {f"[{n}]": v for n, v in enumerate(owner[:64])}
    found = [c for key, value in parts.items() if depth for c in _culprits(value, path + key, depth - 1)]
    return found or [(path, why)]


def _in_this_process(
    readable: ReadableLoader, iterator: Any, indices: Indices, error: BaseException
) -> Failure | None:
    """Without workers the traceback is complete; only the sample is missing."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)) or isinstance(
        iterator, _MultiProcessingDataLoaderIter
    ):
        return None
    drawn = indices.of(iterator, iterator._num_yielded) or []
    if readable.kind != MAP or not drawn:
        return None
    found = _reproduced(readable, drawn, None, error_line(error), error)
    return found if found.kind != "not reproduced" else None


def fatal(readable: ReadableLoader, indices: Sequence[int], seconds: float) -> tuple[int, str] | None:
    """The index and what happened; None if all can be read, or nothing can be tried here."""
    if not hasattr(os, "fork"):
        return None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _read(readable, indices, writing)
    os.close(writing)
    try:
        begun, status = _watched(child, reading, seconds)
    finally:
        os.close(reading)
    if status is None or not begun or (os.WIFEXITED(status) and os.WEXITSTATUS(status) == ALIVE):
        return None
    if os.WIFSIGNALED(status):
        return begun[-1], f"signal {signal.Signals(os.WTERMSIG(status)).name}"
    return begun[-1], f"exit code {os.WEXITSTATUS(status)}"


def _read(readable: ReadableLoader, indices: Sequence[int], writing: int) -> None:
    """In the child: report which sample is started, then read it. Never returns."""
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silence, stream)
        with readable.reading():
            for index in indices:
                os.write(writing, f"{index}\n".encode())
                with contextlib.suppress(Exception):
                    readable.sample(index)
    finally:
        os._exit(ALIVE)


def _watched(child: int, reading: int, seconds: float) -> tuple[list[int], int | None]:
    """The indices that were started, and how the process ended; None if Clew had to end it."""
    written, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        ready, _, _ = select.select([reading], [], [], 0.1)
        if ready:
            piece = os.read(reading, 65536)
            if not piece:
                _, status = os.waitpid(child, 0)
                return [int(line) for line in written.split()], status
            written += piece
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return [int(line) for line in written.split()], None
