"""Where in the program something was seen: module, parameter, operation, and the line of source."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Site:
    """Where in the user's program: every field may be unknown.

    `module` is the path that `named_modules()` gives, `root` the name of the outermost
    model, which matters only when a run has more than one of them.
    """

    module: str | None = None
    op: str | None = None
    file: str | None = None
    line: int | None = None
    phase: str | None = None  # "train" or "eval"
    root: str | None = None
    param: str | None = None  # parameter name within the module: "weight"

    def to_json(self) -> dict[str, Any]:
        """The compact form of the log: unknown fields are left out."""
        return {k: v for k, v in asdict(self).items() if v is not None}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Site:
        """Read what `to_json` wrote; keys of a newer Clew are ignored."""
        known = cls.__dataclass_fields__
        return cls(**{k: v for k, v in data.items() if k in known})
