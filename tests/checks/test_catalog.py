from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from clew.checks import catalog
from clew.checks.catalog import FAMILIES

PACKAGE = Path(catalog.__file__).parent.parent
PRINT_NAMES = "from clew.checks import catalog; print(catalog.__file__, *(k.name for k in catalog.CHECKS))"

CHECK = '''"""NEW001 lost-sleep"""
from dataclasses import dataclass
from clew.checks.base import Check
from clew.checks.loss.loss_unfit import LossUnfit  # read, not defined here

@dataclass(frozen=True)
class LostSleep(Check):
    id = "NEW001"
    name = "lost-sleep"
    needs = ()

    def diagnose(self, run):
        yield from ()
'''


def names_from(path: Path) -> tuple[Path, list[str]]:
    """The checks that a process finds which imports Clew from a folder or an archive."""
    code = f"import sys; sys.path.insert(0, {str(path)!r}); {PRINT_NAMES}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    file, *names = done.stdout.split()
    return Path(file), names


def test_the_order_is_fixed() -> None:
    assert [kind.id for kind in catalog.CHECKS[:5]] == ["NUM001", "NUM002", "NUM003", "OPT001", "LOOP001"]
    assert list(catalog.CHECKS) == sorted(catalog.CHECKS, key=catalog._place)
    assert catalog.CHECKS[-1].id.startswith("PERF")


def test_a_check_stands_at_its_own_rank_or_with_its_family() -> None:
    ids = [kind.id for kind in catalog.CHECKS]
    assert ids.index("OPT001") < ids.index("LOOP001") < ids.index("OPT002") < ids.index("GRAD001")
    assert ids.index("GRAD002") + 1 == ids.index("ACT001")


def test_families_stand_apart_and_leave_room_for_ranks_between_them() -> None:
    ranks = list(FAMILIES.values())
    assert ranks == sorted(set(ranks))
    assert min(ranks) > 0
    assert set(FAMILIES) == {kind.__module__.split(".")[-2] for kind in catalog.CHECKS}


@pytest.mark.parametrize(
    "path",
    sorted((PACKAGE / "checks").glob("*/*.py")),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_a_family_folder_holds_one_check_a_file_and_nothing_else(path: Path) -> None:
    module = ".".join(("clew.checks", path.parent.name, path.stem))
    ids = [kind.id for kind in catalog.CHECKS if kind.__module__ == module]
    if path.stem == "__init__" or path.parent.name == "evidence":
        assert ids == []
    else:
        (id,) = ids
        assert re.fullmatch(rf"{path.parent.name.upper()}\d{{3}}", id)


def test_a_check_is_named_like_its_file() -> None:
    for kind in catalog.CHECKS:
        assert kind.__module__.rpartition(".")[2] == kind.name.replace("-", "_")


def test_the_catalogue_is_the_same_out_of_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "clew.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in PACKAGE.rglob("*.py"):
            zipped.write(path, path.relative_to(PACKAGE.parent))
    file, names = names_from(archive)
    assert archive in file.parents
    assert names == [kind.name for kind in catalog.CHECKS]


def test_a_file_in_a_family_is_a_check_without_being_listed(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "clew", ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.js"))
    family = tmp_path / "clew/checks/new"
    family.mkdir()
    (family / "__init__.py").touch()
    (family / "lost_sleep.py").write_text(CHECK, encoding="utf-8")
    file, names = names_from(tmp_path)
    assert tmp_path in file.parents
    assert names == [*(kind.name for kind in catalog.CHECKS), "lost-sleep"]
