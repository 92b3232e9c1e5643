"""The exception that ended the script: recorded, and explained after the program's own traceback."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from clew.hooks.entry.user_line import user_frame
from clew.records.events import ErrorEvent, ExceptionEvent, InterruptEvent, StopEvent
from clew.records.facts.document_facts import LoaderFailureFact
from clew.render.screen import rng_restored
from clew.render.stderr_messages import to_stderr
from clew.session.live_judge import RunStopped

if TYPE_CHECKING:
    from clew.session.session import Session


def script_failed(session: Session, error: BaseException) -> None:
    """Record it; explain it if shapes, types or devices do not match, or a sample can't be loaded."""
    _event(error).write(session.writer, session.step)
    if session.speaks and "torch" in sys.modules:
        session.guarded("explanation", lambda: _explain(session, error))


def _kind(error: BaseException) -> type[ErrorEvent]:
    if isinstance(error, RunStopped):
        return StopEvent
    return InterruptEvent if isinstance(error, KeyboardInterrupt) else ExceptionEvent


def _event(error: BaseException) -> ErrorEvent:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    user_file, user_line = user_frame(error.__traceback__)
    return _kind(error)(
        type=type(error).__name__,
        message=str(error)[:2000],
        file=traceback.tb_frame.f_code.co_filename if traceback is not None else None,
        line=traceback.tb_lineno if traceback is not None else None,
        user_file=user_file,
        user_line=user_line,
    )


def _explain(session: Session, error: BaseException) -> None:
    from clew.labs.network.shape_errors.shape_error import explain_mismatch
    from clew.render.network.shape_error_text import render_shape_error

    if _explain_sample(session, error):
        return
    shape_error = explain_mismatch(error)
    if shape_error is not None:
        render_shape_error(shape_error, stream=to_stderr())


def _explain_sample(session: Session, error: BaseException) -> bool:
    """Report which sample made a DataLoader raise; False if it was not a DataLoader that raised."""
    if session.watcher is None or session.seams is None:
        return False

    from clew.labs.loaders.failing_sample import find_failing_sample
    from clew.render.data.loader_failure import render_failure

    with session.watcher.machine.unwatched():
        failure = find_failing_sample(error, session.seams.indices)
    if failure is None:
        return False
    LoaderFailureFact(failure).write(session.writer, session.step)
    options = session.options
    script = f"-m {options.script}" if options.module else options.script
    with rng_restored():
        render_failure(failure, script, stream=to_stderr())
    return True
