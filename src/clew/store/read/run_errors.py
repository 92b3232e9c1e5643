"""What can be wrong with a run folder, each said in one line that tells what to do.

RunError
├── NotARun       no such folder, or not one that Clew made; or several fit the name
├── EmptyRun      a run folder in which nothing was recorded
├── NewerFormat   recorded by a newer Clew than this one
├── RunBusy       still running: not to be removed
└── CannotCreate  no run folder can be made here
"""

from __future__ import annotations


class RunError(Exception):
    """A run that can't be used as asked; the message is one clear line."""


class NotARun(RunError):  # noqa: N818 - says what the folder is
    """No run is found under that path or name."""


class EmptyRun(RunError):  # noqa: N818 - says what the folder is
    """A run folder without a single record."""


class NewerFormat(RunError):  # noqa: N818 - says what the folder is
    """Recorded by a Clew whose format this one does not know."""


class RunBusy(RunError):  # noqa: N818 - as above
    """The run's process is still writing."""


class CannotCreate(RunError):  # noqa: N818 - as above
    """The run folder can't be made."""
