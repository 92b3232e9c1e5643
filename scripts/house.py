#!/usr/bin/env python3
"""Checks the layout of the package: indexes, imports, unique names, tests, and the sizes of rooms; and that
signals and facts are named by their objects, not by text.

scripts/house.py            report what is out of order; exit code 1 if anything is
scripts/house.py --sizes    print files and lines of each room, in the format of scripts/house_sizes.toml

A size may go down at any time. Raising one needs a note in docs/decisions that says why, with the new size in
a table: `| room | files | lines |`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from clew.records.register_page import FACTS  # noqa: E402 - the path above makes it importable
from clew.records.signals import find as find_signal  # noqa: E402 - as above

PACKAGE = ROOT / "src" / "clew"
SIZES = ROOT / "scripts" / "house_sizes.toml"
DECISIONS = ROOT / "docs" / "decisions"
CONTRACTS = ROOT / "pyproject.toml"

MOST_FILES = 22  # per folder: as many as a person can take in at a glance
INDEXED = {".py", ".c", ".h"}
SHARED_NAMES = {"__init__", "__main__", "run", "base"}
VERBS_AND_FUNCTIONS = (
    "cli",
    "api",
)  # named as the user types them, also where a file elsewhere has that name
TESTED_ELSEWHERE = {"docs", "faults", "programs", "promises", "scripts", "support", "ui"}  # not in src/clew
MAY_IMPORT = re.compile(r"May import: (.+?)[.:](?:\s|$)")
NOTHING = "nothing of Clew's"
# The order in which indexes name rooms: what imports nothing first.
ROOMS = ("records", "measure", "store", "hooks", "checks", "labs", "render", "web", "session", "api", "cli")


def packages(package: Path = PACKAGE) -> Iterator[Path]:
    """Every folder of the package that contains code, except the package itself."""
    return (init.parent for init in sorted(package.rglob("__init__.py")) if init.parent != package)


def folders_without_index(package: Path = PACKAGE) -> list[str]:
    """Folders with code that are no package: neither this script nor import-linter would look into them."""
    folders = {path.parent for path in modules(package)}
    return [
        f"{folder.relative_to(ROOT).as_posix()} has no __init__.py"
        for folder in sorted(folders)
        if not (folder / "__init__.py").is_file()
    ]


def modules(package: Path = PACKAGE) -> list[Path]:
    """Every Python file of the package."""
    return sorted(package.rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    """A file as Python reads it."""
    return ast.parse(path.read_text(encoding="utf-8"))


def is_family(folder: Path) -> bool:
    """Whether this is a family of checks: its files are found by the catalogue and have their own pages."""
    return folder.parent.name == "checks" and folder.name != "evidence"


def index_problems(folder: Path) -> list[str]:
    """What the index of a package lists but the folder lacks, and the reverse."""
    if is_family(folder):
        return []
    text = ast.get_docstring(parsed(folder / "__init__.py")) or ""
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
    """File names that are used more than once, apart from those of verbs and public functions."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules(package):
        place = path.relative_to(package)
        if path.stem not in SHARED_NAMES and place.parts[0] not in VERBS_AND_FUNCTIONS:
            places[path.stem].append(place.as_posix())
    return [
        f"two files are called {name}: {', '.join(where)}"
        for name, where in sorted(places.items())
        if len(where) > 1
    ]


def repeated_class_names(package: Path = PACKAGE) -> list[str]:
    """Public classes with the same name in several files."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules(package):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(package).as_posix())
    return [
        f"two classes are called {name}: {', '.join(where)}"
        for name, where in sorted(places.items())
        if len(where) > 1
    ]


def crowded_rooms(package: Path = PACKAGE) -> list[str]:
    """Folders with more files than a person can take in at a glance."""
    return [
        f"{folder.relative_to(ROOT)} contains {count} files; split it, or merge some"
        for folder in packages(package)
        if (count := len(list(folder.glob("*.py"))) - 1) > MOST_FILES
    ]


def imported(folder: Path, package: Path = PACKAGE) -> set[str]:
    """What the files of a folder import from elsewhere in the package, as its index names it.

    A room stands for all that is in it. In a folder of hooks, `hooks.entry` stands for that folder, and
    `hooks` for the files beside the folder; only the files of checks are named one by one.
    """
    own = folder.relative_to(package).parts
    names = (name for path in folder.rglob("*.py") for name in _imports(path.read_text(encoding="utf-8")))
    modules = (
        tuple(module) for first, *module in (name.split(".") for name in names) if first == package.name
    )
    return {
        _indexed_import(module, own, package) for module in modules if module and module[: len(own)] != own
    }


@cache  # a file belongs to several folders
def _imports(text: str) -> list[str]:
    """Everything that a file imports, by its full name."""
    return [name for node in ast.walk(ast.parse(text)) for name in _imported_names(node)]


def _imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _indexed_import(module: tuple[str, ...], own: tuple[str, ...], package: Path) -> str:
    shared = next(n for n in range(len(own) + 1) if module[: n + 1] != own[: n + 1])
    folder = package.joinpath(*module[: shared + 1]).is_dir()
    return ".".join(module[: shared + 1] if folder or own[:shared] == ("checks",) else module[:shared])


def import_problems(folder: Path, package: Path = PACKAGE) -> list[str]:
    """Whether the index of a folder names everything that its files import, and nothing else.

    A family of checks may name what any family imports, so that a new check is one new file.
    """
    text = " ".join((folder / "__init__.py").read_text(encoding="utf-8").replace('"""', " ").split())
    line = MAY_IMPORT.search(text)
    named = set() if line is None or line[1].startswith(NOTHING) else set(line[1].split(", "))
    real = imported(folder, package)
    unused = named - real
    if is_family(folder):
        others = (path.parent for path in folder.parent.glob("*/__init__.py") if is_family(path.parent))
        unused = unused.difference(*(imported(other, package) for other in others))
    if line is not None and real <= named and not unused:
        return []
    right = ", ".join(sorted(named - unused | real, key=_room_order)) or NOTHING
    return [f'{folder.relative_to(ROOT)}/__init__.py should say "May import: {right}."']


def _room_order(name: str) -> tuple[int, str]:
    return ROOMS.index(name.split(".")[0]), name


def placed_folders(contracts: Path = CONTRACTS) -> set[str]:
    """Every folder or file that a contract of import-linter gives a layer."""
    linter = tomllib.loads(contracts.read_text(encoding="utf-8"))["tool"]["importlinter"]
    return {
        f"{container}.{name.strip()}"
        for contract in linter["contracts"]
        for container in contract.get("containers", ())
        for layer in contract["layers"]
        for name in re.split(r"[|:]", layer)
    }


def unplaced_folders(package: Path = PACKAGE, contracts: Path = CONTRACTS) -> list[str]:
    """Folders that may import anything, since no contract gives them a layer."""
    placed = placed_folders(contracts)
    names = (folder.relative_to(package.parent) for folder in packages(package))
    return [
        f"{'.'.join(name.parts)} has no layer in {contracts.name}"
        for name in names
        if ".".join(name.parts) not in placed
    ]


def untested_folders(package: Path = PACKAGE) -> list[str]:
    """Folders with code of their own, and no tests at the same place in tests."""
    return [
        f"tests/{folder.relative_to(package).as_posix()} has no tests"
        for folder in packages(package)
        if len(list(folder.glob("*.py"))) > 1
        and not any((ROOT / "tests" / folder.relative_to(package)).glob("test_*.py"))
    ]


def misplaced_tests(package: Path = PACKAGE) -> list[str]:
    """Folders with tests that have the place of no folder with code."""
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")} - {Path()}
    return [
        f"tests/{folder.as_posix()} has tests, but src/clew/{folder.as_posix()} has no code"
        for folder in sorted(folders)
        if folder.parts[0] not in TESTED_ELSEWHERE and not (package / folder / "__init__.py").is_file()
    ]


def names_as_text(package: Path = PACKAGE) -> list[str]:
    """Signals and facts that code outside the register names by text.

    Most kinds of facts are ordinary words, such as `loss`. As text they count only where a fact is written or
    read: `sink.fact("loss", …)`.
    """
    return [
        f"{path.relative_to(ROOT).as_posix()}:{line} names {text!r} by text: import it from records/{where}"
        for path in modules(package)
        if path.relative_to(package).parts[0] != "records" and path.name != "__init__.py"
        for line, text, where in _registered(parsed(path))
    ]


def _registered(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Line, text, and the place in the register of each constant that is a name in it."""
    nodes = list(ast.walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    facts = {id(argument) for node in nodes for argument in _fact_arguments(node)}
    for node in nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        text = node.value
        if "." in text and find_signal(text) is not None:
            yield node.lineno, text, "signals.py"
        elif text in FACTS and (id(node) in facts or "." in text or "_" in text):
            yield node.lineno, text, "facts/"


def _fact_arguments(node: ast.AST) -> list[ast.expr]:
    """The kind of fact that a call writes or reads."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.args[:1] if node.func.attr in ("fact", "facts") else []
    return []


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
    """Rooms that are larger than was decided, and sizes that no note decides."""
    limits = tomllib.loads(SIZES.read_text(encoding="utf-8"))
    problems = []
    for room, (files, lines) in sizes().items():
        limit = limits.get(room)
        if limit is None:
            problems.append(f"{room} has no size in {SIZES.name}")
            continue
        problems += _undecided(room, limit)
        for what, count in (("files", files), ("lines", lines)):
            if count > limit[what]:
                problems.append(
                    f"{room} has {count} {what}, {limit[what]} were decided: make it smaller, "
                    f"or raise the number in {SIZES.name} with a note in docs/decisions"
                )
    return problems + [f"{SIZES.name} names {room}, which does not exist" for room in limits.keys() - sizes()]


def _undecided(room: str, limit: dict[str, Any]) -> list[str]:
    """Whether the note that a size cites gives the room less, or does not give it a size."""
    note = DECISIONS / f"{limit['decision']}.md"
    if not note.is_file():
        return [f"{room}: there is no decision {limit['decision']!r}"]
    row = rf"^\| {re.escape(room)} \| (\d+) \| (\d+) \|"
    decided = re.search(row, note.read_text(encoding="utf-8"), re.MULTILINE)
    if decided is None or limit["files"] > int(decided[1]) or limit["lines"] > int(decided[2]):
        wanted = f"| {room} | {limit['files']} | {limit['lines']} |"
        return [f"{room}: docs/decisions/{note.name} does not decide this size; it needs the row {wanted}"]
    return []


def all_problems() -> list[str]:
    """Everything that is out of order."""
    folders = list(packages())
    return [
        *folders_without_index(),
        *(problem for folder in folders for problem in index_problems(folder)),
        *(problem for folder in folders for problem in import_problems(folder)),
        *unplaced_folders(),
        *untested_folders(),
        *misplaced_tests(),
        *names_as_text(),
        *repeated_file_names(),
        *repeated_class_names(),
        *crowded_rooms(),
        *size_problems(),
    ]


def print_sizes() -> None:
    """Print the current sizes, rounded up. One above its limit cites no decision: it needs a note first."""
    limits = tomllib.loads(SIZES.read_text(encoding="utf-8"))
    print("# Files and lines of each room. Smaller is always fine; raising a number needs a decision note.")
    for room, (files, lines) in sizes().items():
        files, lines = rounded_up(files + 1, 5), rounded_up(lines + max(100, lines // 20), 100)
        limit = limits.get(room, {"files": 0, "lines": 0, "decision": ""})
        raised = files > limit["files"] or lines > limit["lines"]
        decision = "" if raised else limit["decision"]
        print(f'"{room}" = {{ files = {files}, lines = {lines}, decision = "{decision}" }}')


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
