"""What Clew's own functions raise when they are given something that they can't use.

ClewError
├── CannotExamine      also a ValueError: a model, loss or batch that do not go together
└── CannotLook         also a ValueError: what is no loader, dataset or batch
"""

from __future__ import annotations


class ClewError(Exception):
    """Base of the tree; the message is one clear line."""


class CannotExamine(ClewError, ValueError):  # noqa: N818 - reads as what it is
    """The loss of the first batch can't be computed from what was given."""


class CannotLook(ClewError, ValueError):  # noqa: N818 - reads as what it is
    """There are no samples or batches in what was given."""
