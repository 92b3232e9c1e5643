"""The user's own verdict formats: `clew why --format NAME`, `clew.open_run(...).render(NAME)`."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from clew.records.extensions import CannotRegister, Extensions, must_be_named, name_of
from clew.records.verdict import Verdict
from clew.render.run_summary import RunSummary

Render = Callable[[Verdict, RunSummary], str]

TEXT, JSON = "text", "json"


class CannotRender(Exception):  # noqa: N818 - reads as what it is
    """There is no such format, or it failed; the message is one clear line."""


def as_renderer(given: Any) -> Render:
    """A function of a verdict and a summary."""
    if not callable(given):
        raise CannotRegister(f"a renderer is a function, not {type(given).__name__}")
    renderer: Render = given
    return renderer


RENDERERS: Extensions[Render] = Extensions("clew.renderers", lambda given, _: as_renderer(given))


def register_renderer(given: Any, name: str | None = None) -> None:
    """Add a format; Clew's own formats can't be replaced."""
    wanted = must_be_named("a renderer", name or name_of(given))
    if wanted in (TEXT, JSON):
        raise CannotRegister(f"{wanted} is one of Clew's own formats; choose another name")
    RENDERERS.add(wanted, as_renderer(given))


def formats() -> list[str]:
    """The names of all formats."""
    return [TEXT, JSON, *(name for name in RENDERERS.all() if name not in (TEXT, JSON))]


def rendered(name: str, verdict: Verdict, run: RunSummary) -> str:
    """The verdict in this format."""
    if name == JSON:
        from clew.render.verdict_json import dumps, verdict_json

        return dumps(verdict_json(verdict, run))
    if name == TEXT:
        from clew.render.verdict.verdict_terminal import render_verdict

        stream = io.StringIO()
        render_verdict(verdict, run, stream=stream)
        return stream.getvalue()
    return _by_extension(name, verdict, run)


def _by_extension(name: str, verdict: Verdict, run: RunSummary) -> str:
    renderer = RENDERERS.all().get(name)
    if renderer is None:
        reason = RENDERERS.broken().get(name)
        raise CannotRender(f"the format {name} {reason}" if reason else _unknown(name))
    try:
        text = str(renderer(verdict, run))
    except Exception as error:
        raise CannotRender(f"the format {name} failed: {type(error).__name__}: {error}") from error
    return text if text.endswith("\n") else text + "\n"


def _unknown(name: str) -> str:
    return f"no such format: {name}; available: {', '.join(formats())}"
