"""Where two profiles were made under different conditions: said before any number is compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clew.records.step_costs import Profile
from clew.render.size_text import short

SAME = 0.1  # relative difference of derived numbers that is still the same
SAME_ROOF = 0.25  # what a machine was seen to do at best varies more


def differences(
    a: Profile, b: Profile, about: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {})
) -> Iterator[str]:
    """A sentence for each; empty where like was measured against like."""
    for name, one, other in _settings(a, b, about):
        if one != other and one and other:
            yield f"{name}: {one} and {other}"
    ours, theirs = batch_size(a), batch_size(b)
    if ours and theirs and not _close(ours, theirs, SAME):
        yield f"samples in a step: about {ours:.0f} and {theirs:.0f}; times are per step"
    if a.roof and b.roof and not _close(a.roof.flops, b.roof.flops, SAME_ROOF):
        best = [short(roof.flops, "FLOP/s") for roof in (a.roof, b.roof)]
        yield f"the machine at its best: {best[0]} and {best[1]}"


def _settings(
    a: Profile, b: Profile, about: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> Iterator[tuple[str, str, str]]:
    one, other = about
    yield "machine", str(one.get("host") or ""), str(other.get("host") or "")
    yield "device", a.device, b.device
    yield "threads", str(a.threads), str(b.threads)
    yield "cores", str(a.cores), str(b.cores)
    for name in ("torch", "python"):
        yield name, _version(one, name), _version(other, name)
    yield "arguments", _arguments(one), _arguments(other)


def _version(meta: Mapping[str, Any], name: str) -> str:
    versions = meta.get("versions")
    return str(versions.get(name) or "") if isinstance(versions, Mapping) else ""


def _arguments(meta: Mapping[str, Any]) -> str:
    given = meta.get("args")
    return " ".join(map(str, given)) if isinstance(given, list) else ""


def batch_size(profile: Profile) -> float | None:
    """From throughput and time: what was recorded of both."""
    speed = profile.samples_per_second
    return speed * profile.step_median if speed and profile.step_median > 0 else None


def _close(one: float, other: float, tolerance: float) -> bool:
    return abs(one - other) <= tolerance * max(abs(one), abs(other))
