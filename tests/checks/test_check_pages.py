from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from clew.checks import catalog
from clew.checks.base import SECTIONS, Check, sections, summary
from clew.checks.catalog import pages
from clew.checks.thresholds import thresholds_of

ROOT = Path(__file__).resolve().parents[2]
KINDS = pytest.mark.parametrize("kind", catalog.CHECKS, ids=lambda kind: kind.name)


def own_thresholds(limits: object) -> Iterator[tuple[str, int]]:
    """The number of thresholds of a check, and of each of its groups."""
    values = [getattr(limits, field.name) for field in fields(limits)]  # type: ignore[arg-type]
    groups = [value for value in values if is_dataclass(value)]
    yield type(limits).__name__, len(values) - len(groups)
    for group in groups:
        yield from own_thresholds(group)


@KINDS
def test_a_class_has_no_more_thresholds_than_are_read_at_once(kind: type[Check]) -> None:
    """A check with more is taken apart: docs/decisions/020-checks-taken-apart.md."""
    assert [name for name, count in own_thresholds(kind()) if count > 8] == []


@KINDS
def test_a_check_explains_itself_in_every_section(kind: type[Check]) -> None:
    parts = sections(kind)
    assert tuple(parts) == SECTIONS
    assert all(len(text) > 20 for text in parts.values())
    assert 20 < len(summary(kind)) < 300


@KINDS
def test_a_check_is_named_after_the_fault_and_titled_by_id_and_name(kind: type[Check]) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.name)
    assert re.fullmatch(r"[A-Z]{3,4}\d{3}", kind.id)
    doc = sys.modules[kind.__module__].__doc__ or ""
    assert doc.splitlines()[0] == f"{kind.id} {kind.name}"
    assert kind.__module__.endswith("." + kind.name.replace("-", "_"))


@KINDS
def test_every_threshold_says_what_it_means(kind: type[Check]) -> None:
    page = pages()[f"{kind.name}.md"]
    for threshold in thresholds_of(kind()):
        row = next(line for line in page.splitlines() if line.startswith(f"| `{threshold.name}` "))
        assert len(row.split("|")[3].strip()) > 10, f"{threshold.name} has no comment"


@KINDS
def test_a_check_is_found_by_name_and_by_id(kind: type[Check]) -> None:
    assert catalog.find(kind.name) == catalog.find(kind.id) == kind()


def test_names_and_ids_are_unique() -> None:
    assert len({kind.name for kind in catalog.CHECKS}) == len(catalog.CHECKS)
    assert len({kind.id for kind in catalog.CHECKS}) == len(catalog.CHECKS)


def test_every_check_file_is_in_the_catalogue() -> None:
    defined = {
        path
        for path in (ROOT / "src/clew/checks").glob("*/*.py")
        if "(Check):" in path.read_text(encoding="utf-8")
    }
    listed = {Path(sys.modules[kind.__module__].__file__ or "") for kind in catalog.CHECKS}
    assert defined == listed


def test_the_pages_on_disk_are_those_of_the_checks() -> None:
    script = [sys.executable, ROOT / "scripts/docs", "--check"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_page_is_noticed_and_mended(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / "docs").mkdir()
    (tmp_path / "ui/src").mkdir(parents=True)
    for name in ("scripts/docs", "docs/signals.md", "docs/api.md"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    script, signals = tmp_path / "scripts/docs", tmp_path / "docs/signals.md"
    real = signals.read_text(encoding="utf-8")

    def run(*arguments: str) -> int:
        return subprocess.run(
            [sys.executable, script, *arguments], capture_output=True, check=False
        ).returncode

    assert run("--check") == 1
    assert run() == 0
    assert run("--check") == 0
    (tmp_path / "docs/checks/dead-units.md").write_text("old", encoding="utf-8")
    (tmp_path / "docs/checks/no-such-check.md").write_text("gone", encoding="utf-8")
    assert run("--check") == 1
    assert run() == 0
    assert run("--check") == 0
    signals.write_text(real.replace("| `grad.norm` |", "| `grad.size` |"), encoding="utf-8")
    assert run("--check") == 1
    assert run() == 0
    assert signals.read_text(encoding="utf-8") == real


def test_a_new_check_begins_as_three_files_that_fail(tmp_path: Path) -> None:
    for family in ("loss", "exp"):
        (tmp_path / "src/clew/checks" / family).mkdir(parents=True)
        (tmp_path / "src/clew/checks" / family / "__init__.py").touch()
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts/new-check"
    script.write_text((ROOT / "scripts/new-check").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, script, "loss-stuck", "loss"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "LOSS001 runs with all other checks" in done.stdout
    made = [tmp_path / line for line in done.stdout.splitlines()[:-1]]
    assert [path.name for path in made] == ["loss_stuck.py", "loss_stuck.py", "test_loss_stuck.py"]
    for path in made:
        compile(path.read_text(encoding="utf-8"), path, "exec")
    fault: dict[str, object] = {}
    exec(made[1].read_text(encoding="utf-8"), fault)
    for variant in ("buggy", "healthy"):
        with pytest.raises(NotImplementedError):
            fault[variant]()  # type: ignore[operator]
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (again.returncode, "exists already" in again.stderr) == (1, True)
    another = [sys.executable, script, "loss-asleep", "loss"]
    assert "LOSS002 runs" in subprocess.run(another, capture_output=True, text=True, check=True).stdout
    tried = [sys.executable, script, "loss-untried", "exp"]
    made_for_it = subprocess.run(tried, capture_output=True, text=True, check=True).stdout
    assert "faults/preflight/loss_untried.py" in made_for_it
    (tmp_path / "src/clew/checks/perf").mkdir()
    (tmp_path / "src/clew/checks/perf/__init__.py").touch()
    subprocess.run([sys.executable, script, "time-wasted", "perf"], capture_output=True, check=True)
    exec((tmp_path / "faults/profile/time_wasted.py").read_text(encoding="utf-8"), fault)
    assert fault["GAIN"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--help"], 0, "families: act, adv, data"),
        (["some-fault"], 2, "use: scripts/new-check some-fault FAMILY"),
        (["some_fault", "loss"], 2, "lowercase words joined by hyphens"),
        (["some-fault", "losses"], 2, "'losses' is not a family; there are act, adv"),
        (["some-fault", "loss", "ACT099"], 2, "an id of loss is LOSS and three digits"),
    ],
)
def test_a_new_check_is_refused_in_one_line(arguments: list[str], code: int, says: str) -> None:
    command = [sys.executable, ROOT / "scripts/new-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert says in done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == (code == 2)


def test_the_rooms_of_checks_need_no_torch() -> None:
    code = "import sys, clew.checks.runner; sys.exit('torch' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "src")}, check=False
        ).returncode
        == 0
    )
