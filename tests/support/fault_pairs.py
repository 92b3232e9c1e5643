"""Programs with a planted fault, from a folder of `faults/`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def planted(folder: Path, name: str) -> ModuleType:
    """By its path: some of these have a namesake in another folder."""
    spec = importlib.util.spec_from_file_location(f"{folder.name}.{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_of(module: ModuleType) -> str:
    """The check that must find it: its own name, unless it says another."""
    own = module.__name__.rpartition(".")[2].replace("_", "-")
    return str(getattr(module, "CHECK", own))
