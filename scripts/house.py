#!/usr/bin/env python3
"""Checks the layout of the package: indexes, unique names, number of files per folder, and room sizes.

scripts/house.py            report what is out of order; exit code 1 if anything is
scripts/house.py --sizes    print lines and files of each room, in the format of scripts/house_sizes.toml

A size may go down at any time. Raising one needs a note in docs/decisions that says why.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "clew"
SIZES = ROOT / "scripts" / "house_sizes.toml"
DECISIONS = ROOT / "docs" / "decisions"

MOST_FILES = 22  # per folder: as many as a person can take in at a glance
INDEXED = {".py", ".c", ".h"}
SHARED_NAMES = {"__init__", "__main__", "run", "base"}
VERBS_AND_FUNCTIONS = ("cli", "api")  # `clew profile` and `clew.profile` are both called profile


def packages(package: Path = PACKAGE) -> Iterator[Path]:
    """Every folder of the package that contains code, except the package itself."""
    return (init.parent for init in sorted(package.rglob("__init__.py")) if init.parent != package)


def modules(package: Path = PACKAGE) -> list[Path]:
    """Every Python file of the package."""
    return sorted(package.rglob("*.py"))


def is_family(folder: Path) -> bool:
    """Whether this is a family of checks: its files are found by the catalogue and have their own pages."""
    return folder.parent.name == "checks" and folder.name != "evidence"


def index_problems(folder: Path) -> list[str]:
    """What the index of a package lists but the folder lacks, and the reverse."""
    if is_family(folder):
        return []
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    listed = set(re.findall(r"^- `([^`]+)`", text, re.MULTILINE))
    files = {_indexed_name(path) for path in folder.iterdir() if path.suffix in INDEXED}
    rooms = {f"{path.name}/" for path in folder.iterdir() if (path / "__init__.py").is_file()}
    families = {room for room in rooms if is_family(folder / room.rstrip("/"))}
    present = (files | rooms) - families - {"__init__"}
    listed -= {"act/"}  # stands for all families
    where = folder.relative_to(ROOT)
    return [f"{where}/__init__.py does not list {name}" for name in sorted(present - listed)] + [
        f"{where}/__init__.py lists {name}, which does not exist" for name in sorted(listed - present)
    ]


def _indexed_name(path: Path) -> str:
    return path.stem if path.suffix == ".py" else path.name


def repeated_file_names(package: Path = PACKAGE) -> list[str]:
    """File names that are used more than once."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules(package):
        if path.stem not in SHARED_NAMES:
            places[path.stem].append(path.relative_to(package).as_posix())
    return [
        f"two files are called {name}: {', '.join(where)}"
        for name, where in sorted(places.items())
        if len(where) > 1 and not all(place.startswith(VERBS_AND_FUNCTIONS) for place in where)
    ]


def repeated_class_names(package: Path = PACKAGE) -> list[str]:
    """Public classes with the same name in several files."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules(package):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(package).as_posix())
    return [
        f"two classes are called {name}: {', '.join(where)}"
        for name, where in sorted(places.items())
        if len(where) > 1
    ]


def crowded_rooms(package: Path = PACKAGE) -> list[str]:
    """Folders with more files than a person can take in."""
    return [
        f"{folder.relative_to(ROOT)} holds {count} files; split it, or merge some"
        for folder in packages(package)
        if (count := len(list(folder.glob("*.py"))) - 1) > MOST_FILES
    ]


def sizes(package: Path = PACKAGE) -> dict[str, tuple[int, int]]:
    """Files and lines of each room; each lab is a room of its own.

    Families of checks do not count: a new check needs no decision.
    """
    found: defaultdict[str, list[int]] = defaultdict(list)
    for path in modules(package):
        if is_family(path.parent):
            continue
        parts = path.relative_to(package).parts[:-1]
        room = "/".join(parts[:2] if parts[:1] == ("labs",) else parts[:1]) or "clew"
        found[room].append(len(path.read_text(encoding="utf-8").splitlines()))
    return {room: (len(lines), sum(lines)) for room, lines in sorted(found.items())}


def size_problems() -> list[str]:
    """Rooms that are larger than was decided."""
    limits = tomllib.loads(SIZES.read_text(encoding="utf-8"))
    problems = []
    for room, (files, lines) in sizes().items():
        limit = limits.get(room)
        if limit is None:
            problems.append(f"{room} has no size in {SIZES.name}")
            continue
        if not (DECISIONS / f"{limit['decision']}.md").is_file():
            problems.append(f"{room}: there is no decision {limit['decision']}")
        for what, count in (("files", files), ("lines", lines)):
            if count > limit[what]:
                problems.append(
                    f"{room} has {count} {what}, {limit[what]} were decided: make it smaller, "
                    f"or raise the number in {SIZES.name} with a note in docs/decisions"
                )
    return problems + [f"{SIZES.name} names {room}, which does not exist" for room in limits.keys() - sizes()]


def all_problems() -> list[str]:
    """Everything that is out of order."""
    indexes = [problem for folder in packages() for problem in index_problems(folder)]
    return [*indexes, *repeated_file_names(), *repeated_class_names(), *crowded_rooms(), *size_problems()]


def print_sizes() -> None:
    """Print the current sizes, rounded up so that a few additions fit, with the newest decision."""
    newest = max(path.stem for path in DECISIONS.glob("[0-9]*.md"))
    print("# Files and lines of each room. Smaller is always fine; raising a number needs a decision note.")
    for room, (files, lines) in sizes().items():
        files, lines = rounded_up(files + 1, 5), rounded_up(lines + 100, 100)
        print(f'"{room}" = {{ files = {files}, lines = {lines}, decision = "{newest}" }}')


def rounded_up(count: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-count // step) * step


def main(arguments: list[str]) -> int:
    """Report what is out of order."""
    if "--sizes" in arguments:
        print_sizes()
        return 0
    problems = all_problems()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
