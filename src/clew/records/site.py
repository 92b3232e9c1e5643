"""Site: where in the program something was measured, by module, parameter, operation and source line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

Line = tuple[str | None, int | None]  # file and number of a line of source


@dataclass(frozen=True)
class Site:
    """Where in the user's program: every field may be unknown.

    `module` is the path from `named_modules()`, `root` the name of the root module, which matters only if a
    run has more than one.
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
