"""Errors of run folders. Each message is one line that says what to do.

RunError
├── NotARun       no such folder, or not one that Clew created; or several match the name
├── EmptyRun      a run folder in which nothing was recorded
├── NewerFormat   recorded by a newer Clew than this one
├── RunBusy       still running: must not be removed
└── CannotCreate  no run folder can be created here
"""

from __future__ import annotations


class RunError(Exception):
    """A run that cannot be used as asked; the message is one clear line."""


class NotARun(RunError):  # noqa: N818 - says what the folder is
    """No run was found under that path or name."""


class EmptyRun(RunError):  # noqa: N818 - says what the folder is
    """A run folder without a single record."""


class NewerFormat(RunError):  # noqa: N818 - says what the folder is
    """Recorded by a Clew whose format this one does not know."""


class RunBusy(RunError):  # noqa: N818 - as above
    """The run's process is still writing."""


class CannotCreate(RunError):  # noqa: N818 - as above
    """The run folder cannot be created."""
