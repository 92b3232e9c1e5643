"""Errors that Clew's own functions raise for arguments that they cannot use.

ClewError
├── CannotExamine      also a ValueError: a model, loss or batch that do not go together
└── CannotRead         also a ValueError: samples or batches that an object does not have
"""

from __future__ import annotations


class ClewError(Exception):
    """Base of these errors; the message is one clear line."""


class CannotExamine(ClewError, ValueError):  # noqa: N818 - reads as what it is
    """The loss of the first batch cannot be computed from the given objects."""


class CannotRead(ClewError, ValueError):  # noqa: N818 - reads as what it is
    """Samples or batches are not available from the given object; the message says why."""
