"""Naming many parameters by the few modules that hold them."""

from __future__ import annotations

from collections.abc import Sequence

from clew.records.facts.model_facts import ParameterRow


def holders(
    chosen: Sequence[ParameterRow], everything: Sequence[ParameterRow]
) -> list[tuple[str, list[ParameterRow]]]:
    """The topmost modules of which all parameters are chosen, else the parameters' own.

    "encoder" says more than a list of its twenty layers. The root itself does not count.
    """
    wanted = set(chosen)
    others = {path for p in everything if p not in wanted for path in ancestors(p.module)}
    groups: dict[str, list[ParameterRow]] = {}
    for parameter in chosen:
        path = next((a for a in ancestors(parameter.module) if a not in others), parameter.module)
        groups.setdefault(path, []).append(parameter)
    return list(groups.items())


def ancestors(module: str) -> list[str]:
    """`a`, `a.b`, `a.b.c` for `a.b.c`"""
    parts = module.split(".") if module else []
    return [".".join(parts[: n + 1]) for n in range(len(parts))]
