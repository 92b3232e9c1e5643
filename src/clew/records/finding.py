"""Finding of a check: how bad it is, where, on what evidence, and how to fix it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from clew.records.codec import fitting, json_float
from clew.records.site import Site


class Severity(str, Enum):
    """How certain and how bad: an error means that training cannot be right."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"

    @property
    def rank(self) -> int:
        """0 is the worst, so that sorting by rank puts errors first."""
        return ("error", "warning", "advice").index(self.value)


@dataclass(frozen=True)
class Evidence:
    """One verifiable observation, with its numbers if there is a series."""

    text: str
    signal: str | None = None
    site: Site | None = None
    steps: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    x: tuple[float, ...] = ()  # if the values are not by step: learning rates, sizes
    x_label: str = ""  # "learning rate"

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "text": self.text,
            "signal": self.signal,
            "site": self.site.to_json() if self.site else None,
            "steps": list(self.steps),
            "values": [json_float(v) for v in self.values],
        }
        return {**data, "x": list(self.x), "x_label": self.x_label} if self.x else data


@dataclass(frozen=True)
class Exhibit:
    """A sample of the user's data, shown as it is."""

    kind: str  # "image", "text", "numbers" or "wave"
    caption: str  # "sample 117, labelled 3, looks like 8"
    data: Any  # image: rows of 0–255, or of [r, g, b]; text: a string; numbers and wave: a list

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Exhibit:
        return cls(str(data.get("kind")), str(data.get("caption")), data.get("data"))


@dataclass(frozen=True)
class Proof:
    """An experiment: the same steps without and with the fix, on a snapshot."""

    fix: str  # "zero the gradients before every backward"
    steps: int
    seeds: int
    before: float  # median loss at the end without the fix
    after: float  # and with it
    before_spread: tuple[float, float]  # lowest and highest over the seeds
    after_spread: tuple[float, float]
    helped: bool | None  # None: within the noise

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        for name in ("before", "after"):
            data[name] = json_float(data[name])
            data[f"{name}_spread"] = [json_float(v) for v in data[f"{name}_spread"]]
        return data

    @property
    def sentence(self) -> str:
        """`with this fix the loss after 30 steps is 0.41 instead of 2.30`."""
        text = f"the loss after {self.steps} steps is {self.after:.3g} instead of {self.before:.3g}"
        if self.helped:
            return f"tested on a snapshot: with this fix {text}"
        return f"tested on a snapshot: the fix did not help: {text}"


@dataclass(frozen=True)
class Finding:
    """A check's conclusion: what is wrong, where, on what evidence and how to fix it."""

    check: str  # the stable name: "dead-units"
    id: str  # the check's id: "ACT001"
    severity: Severity
    message: str
    fix: str
    site: Site = field(default_factory=Site)
    step: int | None = None  # the first step at which the fault was visible
    evidence: tuple[Evidence, ...] = ()
    because: tuple[str, ...] = ()  # ids of the checks whose findings cause this one
    confidence: str = "likely"  # certain: observed; likely: measured; possible: one of several explanations
    exhibits: tuple[Exhibit, ...] = ()  # the samples concerned
    proof: Proof | None = None  # result of an experiment with the fix

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        """Read what a fact has recorded of it; what is missing or does not fit is empty."""
        return replace(cls("", "", Severity.WARNING, "", ""), **fitting(cls, data))

    def with_because(self, ids: Sequence[str]) -> Finding:
        return replace(self, because=tuple(ids))

    def to_json(self) -> dict[str, Any]:
        """The stable shape of `clew why --json`."""
        return {
            "check": self.check,
            "id": self.id,
            "severity": self.severity.value,
            "confidence": self.confidence,
            "message": self.message,
            "site": {
                "module": self.site.module,
                "op": self.site.op,
                "file": self.site.file,
                "line": self.site.line,
                "phase": self.site.phase,
            },
            "step": self.step,
            "evidence": [e.to_json() for e in self.evidence],
            "fix": self.fix,
            "because": list(self.because),
            "exhibits": [e.to_json() for e in self.exhibits],
            "proof": self.proof.to_json() if self.proof else None,
        }
