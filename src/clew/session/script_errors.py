"""The exception that ended the script: recorded, and explained after the program's own traceback."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from clew.hooks.entry.user_line import user_frame
from clew.render.stderr_messages import to_stderr
from clew.session.live_judge import RunStopped

if TYPE_CHECKING:
    from clew.session.session import Session


def script_failed(session: Session, error: BaseException) -> None:
    """Record it, and say why if shapes, types, devices or a sample did not fit."""
    session.writer.event(_kind(error), session.step, _event(error))
    quiet = session.options.quiet or session.rank != 0 or sys.stderr is None
    if not quiet and "torch" in sys.modules:
        session.guarded("explanation", lambda: _explain(session, error))


def _kind(error: BaseException) -> str:
    if isinstance(error, RunStopped):
        return "stopped"
    return "interrupt" if isinstance(error, KeyboardInterrupt) else "exception"


def _event(error: BaseException) -> dict[str, Any]:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    data: dict[str, Any] = {"type": type(error).__name__, "message": str(error)[:2000]}
    if traceback is not None:
        data.update(file=traceback.tb_frame.f_code.co_filename, line=traceback.tb_lineno)
    data.update(zip(("user_file", "user_line"), user_frame(error.__traceback__), strict=True))
    return data


def _explain(session: Session, error: BaseException) -> None:
    from clew.labs.network.shape_errors.shape_error import mismatch
    from clew.render.network.shape_error_text import render_mishap
    from clew.session.loader_errors import explain_failure

    if explain_failure(session, error):
        return
    mishap = mismatch(error)
    if mishap is not None:
        render_mishap(mishap, stream=to_stderr())
