"""After an exception from a DataLoader: finds, reports and records which sample caused it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.records.facts.document_facts import LoaderFailureFact

if TYPE_CHECKING:
    from clew.session.session import Session


def explain_failure(session: Session, error: BaseException) -> bool:
    """Whether it was one, and has been explained."""
    if session.watcher is None or session.seams is None:
        return False
    from clew.hooks.steps.pause import unwatched
    from clew.labs.loaders.failing_sample import traced_back
    from clew.render.data.loader_failure import render_failure
    from clew.render.rich_rng import undrawn
    from clew.render.stderr_messages import to_stderr

    with unwatched(session.watcher):
        failure = traced_back(error, session.seams.indices)
    if failure is None:
        return False
    LoaderFailureFact(failure).write(session.writer, session.step)
    options = session.options
    script = f"-m {options.script}" if options.module else options.script
    with undrawn():
        render_failure(failure, script, stream=to_stderr())
    return True
