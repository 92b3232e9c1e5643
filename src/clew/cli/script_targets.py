"""The script or module to run: refused in one line if it does not exist, before anything is recorded.

Nothing is imported to find out: a package's own code must not run before the program does. In case of
doubt the program is started, and Python reports the error.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from clew.cli.options import Refusal

OWN_IMPORTS = ("__path__", "meta_path", "sys.modules")  # a package that uses these finds its modules itself


def must_exist(script: str) -> None:
    """Refuse a script that does not exist, and suggest one with a similar name."""
    if os.path.isdir(script) and not _runs(script):
        raise Refusal(f"{script} is a folder without a __main__.py; give the path of the script")
    if os.path.exists(script):
        return
    folder, wanted = os.path.split(script)
    try:
        there = os.listdir(folder or ".")
    except OSError:
        there = []
    scripts = {name.removesuffix(".py"): name for name in there if name.endswith(".py")}
    close = [scripts[n] for n in difflib.get_close_matches(wanted.removesuffix(".py"), scripts, n=1)]
    hint = f"; did you mean {os.path.join(folder, close[0])}?" if close else ""
    raise Refusal(f"no such script: {script}{hint}")


def _runs(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, f"__main__.py{c}")) for c in ("", "c"))


def must_be_found(module: str) -> None:
    """Refuse a module that Python would not find either."""
    try:
        with _as_the_program_would():
            missing = _missing(module)
    except (ImportError, ValueError, AttributeError, OSError):
        return  # an odd name or finder: Python reports it best
    if missing is None:
        return
    if os.path.isfile(module):
        raise Refusal(f"{module} is a script, not a module: omit -m")
    if missing.endswith(".__main__"):
        raise Refusal(f"no module {missing}: {module} is a package that can't be run by itself")
    raise Refusal(f"no module named {missing}; searched from {os.getcwd()}")


@contextlib.contextmanager
def _as_the_program_would() -> Iterator[None]:
    """`python -m` looks in the working folder first; that entry of `sys.path` is Clew's own now."""
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        yield
        return
    before = sys.path[:]
    sys.path[0:1] = [os.getcwd()]
    try:
        yield
    finally:
        sys.path[:] = before


def _missing(module: str) -> str | None:
    """The name that certainly does not exist; None if all exist, or it is not clear."""
    name, *rest = module.split(".")
    spec = importlib.util.find_spec(name)
    for part in (*rest, None):
        if spec is None:
            return name
        if part is None and spec.submodule_search_locations is None:
            return None
        name = f"{name}.{part or '__main__'}"
        if _has_own_imports(spec):
            return None
        places = spec.submodule_search_locations
        spec = PathFinder.find_spec(name, list(places)) if places is not None else None
    return name if spec is None else None


def _has_own_imports(package: ModuleSpec) -> bool:
    if package.origin is None or not package.origin.endswith(".py"):
        return package.origin is not None
    text = Path(package.origin).read_text(encoding="utf-8", errors="replace")
    return any(word in text for word in OWN_IMPORTS)
