"""A forward that fails inside a public function: its exception has the whole explanation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clew.labs.network.shape_errors.shape_error import ForwardError


@contextmanager
def explained() -> Iterator[None]:
    """Let a `ForwardError` that passes through print as the terminal shows it."""
    try:
        yield
    except ForwardError as error:
        from clew.render.network.shape_error_text import shape_error_text

        found = error.shape_error
        error.args = (f"{found.suggestion or found.error}\n{shape_error_text(found)}",)
        raise
