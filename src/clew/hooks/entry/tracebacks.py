"""Remove Clew's own frames from tracebacks, so that an uncaught exception reads as it would without Clew."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import TracebackType

from clew.records.version import DEMO, PACKAGE

_IMPORT_MACHINERY = "<frozen importlib._bootstrap"


def clean(error: BaseException) -> None:
    """Remove our frames from the exception and from its causes, contexts and group members."""
    for part in _carried(error):
        part.__traceback__ = without_our_frames(part.__traceback__)


def _carried(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        part = waiting.pop()
        if part is None or id(part) in seen:  # chains may be circular
            continue
        seen.add(id(part))
        yield part
        waiting += [part.__cause__, part.__context__]
        members = getattr(part, "exceptions", None)
        if isinstance(members, tuple):
            waiting += [m for m in members if isinstance(m, BaseException)]


def without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return the same chain of frames, relinked without ours."""
    links = list(_links(traceback))
    hidden = _hidden(links)
    kept = [link for link, hide in zip(links, hidden, strict=True) if not hide]
    if len(kept) == len(links):
        return traceback
    for link, following in pairwise([*kept, None]):
        assert link is not None
        link.tb_next = following
    return kept[0] if kept else None


def _hidden(links: list[TracebackType]) -> list[bool]:
    """Mark our frames, and the import machinery next to them.

    Python trims that machinery only if no loader of ours is in between.
    """
    hidden = [is_ours(link.tb_frame.f_code.co_filename) for link in links]
    machinery = [link.tb_frame.f_code.co_filename.startswith(_IMPORT_MACHINERY) for link in links]
    for order in (range(1, len(links)), range(len(links) - 2, -1, -1)):
        step = order.step
        for i in order:
            hidden[i] = hidden[i] or (machinery[i] and hidden[i - step])
    return hidden


def _links(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def is_ours(filename: str) -> bool:
    """Whether this is code of the package, or code that the package compiled at run time."""
    if filename.startswith("<clew"):
        return True
    return filename.startswith(PACKAGE) and not filename.startswith(DEMO)
