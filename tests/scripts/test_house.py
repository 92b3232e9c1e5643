"""The layout of the package is in order, and the script that checks it finds what is not."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def house():
    spec = importlib.util.spec_from_file_location("house", ROOT / "scripts" / "house.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(tmp_path, monkeypatch, house, files):
    root = tmp_path / "repository"
    for name, text in files.items():
        path = root / "src" / "clew" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(house, "ROOT", root)
    return root / "src" / "clew"


def test_nothing_is_out_of_order():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "house.py"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_that_the_index_does_not_list_is_found(tmp_path, monkeypatch, house):
    files = {"room/__init__.py": '"""A room.\n\n- `listed`: here\n- `gone`: not here\n"""\n'}
    files |= {"room/listed.py": "", "room/new.py": "", "room/inner/__init__.py": '"""Inner."""\n'}
    folder = package(tmp_path, monkeypatch, house, files) / "room"
    assert house.index_problems(folder) == [
        "src/clew/room/__init__.py does not list inner/",
        "src/clew/room/__init__.py does not list new",
        "src/clew/room/__init__.py lists gone, which does not exist",
    ]


def test_names_that_stand_for_two_things_are_found(tmp_path, monkeypatch, house):
    files = {"one/loss.py": "class Loss:\n    pass\n", "two/loss.py": "class Loss:\n    pass\n"}
    files |= {"one/run.py": "class _Private:\n    pass\n", "two/run.py": "class _Private:\n    pass\n"}
    files |= {"cli/profile.py": "", "api/profile.py": "", "cli/loss.py": ""}
    made = package(tmp_path, monkeypatch, house, files)
    assert house.repeated_file_names(made) == ["two files are called loss: one/loss.py, two/loss.py"]
    assert house.repeated_class_names(made) == ["two classes are called Loss: one/loss.py, two/loss.py"]


def test_a_room_that_nobody_can_take_in_is_found(tmp_path, monkeypatch, house):
    files = {f"room/part{number}.py": "" for number in range(house.MOST_FILES)}
    made = package(tmp_path, monkeypatch, house, {"room/__init__.py": "", **files})
    assert house.crowded_rooms(made) == []
    (made / "room" / "one_more.py").write_text("")
    assert house.crowded_rooms(made) == ["src/clew/room contains 23 files; split it, or merge some"]


@pytest.fixture
def sizes(tmp_path, monkeypatch, house):
    """A room of one file and two lines, as large as was decided."""
    monkeypatch.setattr(house, "SIZES", tmp_path / "sizes.toml")
    monkeypatch.setattr(house, "DECISIONS", tmp_path)
    (tmp_path / "sizes.toml").write_text('room = { files = 1, lines = 2, decision = "001-a-note" }\n')
    (tmp_path / "001-a-note.md").write_text("| room | files | lines |\n|---|---|---|\n| room | 1 | 2 |\n")
    found = {"room": (1, 2)}
    monkeypatch.setattr(house, "sizes", lambda: found)
    assert house.size_problems() == []
    return found


def test_a_room_that_outgrew_its_size_is_found(sizes, house):
    sizes["room"] = (1, 3)
    assert [problem.split(",")[0] for problem in house.size_problems()] == ["room has 3 lines"]
    sizes["other"] = (1, 1)
    assert "other has no size in sizes.toml" in house.size_problems()


def test_a_size_is_raised_only_with_a_note_that_gives_the_room_this_size(tmp_path, sizes, house):
    sizes["room"] = (1, 3)
    (tmp_path / "sizes.toml").write_text('room = { files = 1, lines = 3, decision = "001-a-note" }\n')
    assert house.size_problems() == [
        "room: docs/decisions/001-a-note.md does not decide this size; it needs the row | room | 1 | 3 |"
    ]
    (tmp_path / "sizes.toml").write_text('room = { files = 1, lines = 3, decision = "002-more" }\n')
    assert house.size_problems() == ["room: there is no decision '002-more'"]
    (tmp_path / "002-more.md").write_text("| other | 1 | 3 |\n")
    assert [problem.split(":")[0] for problem in house.size_problems()] == ["room"]
    (tmp_path / "002-more.md").write_text("| room | 1 | 3 |\n")
    assert house.size_problems() == []


def test_a_size_is_lowered_without_a_note(tmp_path, sizes, house):
    sizes["room"] = (1, 1)
    (tmp_path / "sizes.toml").write_text('room = { files = 1, lines = 1, decision = "001-a-note" }\n')
    assert house.size_problems() == []


def test_printed_sizes_are_rounded_up_and_one_that_was_raised_cites_no_decision(
    tmp_path, capsys, sizes, house
):
    kept = '"room" = { files = 5, lines = 200, decision = "001-a-note" }\n'
    (tmp_path / "sizes.toml").write_text(kept)
    house.print_sizes()
    assert capsys.readouterr().out.splitlines(keepends=True)[1:] == [kept]
    sizes["room"] = (5, 4000)
    house.print_sizes()
    assert '"room" = { files = 10, lines = 4200, decision = "" }\n' in capsys.readouterr().out


def test_an_index_names_exactly_what_its_folder_imports(tmp_path, monkeypatch, house):
    files = {"records/__init__.py": f'"""Data. May import: {house.NOTHING}."""', "records/site.py": ""}
    files |= {"hooks/__init__.py": '"""Hooks.\n\nEnter at `a.py`. May import: records.\n"""'}
    files |= {"hooks/guard.py": "", "hooks/entry/__init__.py": "", "hooks/entry/line.py": ""}
    files |= {"hooks/steps/__init__.py": '"""Steps. May import: records,\nhooks, hooks.entry, store."""'}
    files |= {"hooks/steps/clock.py": "from clew.records.site import Site\nfrom clew.hooks.steps import x\n"}
    files |= {"hooks/steps/late.py": "def f():\n    from clew.hooks import guard\n"}
    made = package(tmp_path, monkeypatch, house, files)
    says = 'src/clew/hooks/steps/__init__.py should say "May import: {}."'
    assert house.import_problems(made / "records", made) == []
    assert house.import_problems(made / "hooks", made) == []
    assert house.import_problems(made / "hooks/steps", made) == [says.format("records, hooks")]
    (made / "hooks/steps/line.py").write_text("import clew.hooks.entry.line\nimport clew.store\n")
    (made / "store").mkdir()
    assert house.import_problems(made / "hooks/steps", made) == []
    (made / "hooks/steps/line.py").write_text(
        "import clew.hooks.entry.line\nimport clew.store\nimport clew.web"
    )
    (made / "web").mkdir()
    assert house.import_problems(made / "hooks/steps", made) == [
        says.format("records, store, hooks, hooks.entry, web")
    ]
    assert house.import_problems(made / "hooks/entry", made) == [
        'src/clew/hooks/entry/__init__.py should say "May import: nothing of Clew\'s."'
    ]


def test_a_family_of_checks_may_name_what_any_family_imports(tmp_path, monkeypatch, house):
    files = {"checks/base.py": "", "checks/needs.py": ""}
    index = '"""May import: checks.base, checks.needs."""'
    files |= {"checks/a/__init__.py": index, "checks/b/__init__.py": index}
    files |= {"checks/a/one.py": "from clew.checks.base import Check\n"}
    files |= {"checks/b/two.py": "from clew.checks import base, needs\n"}
    made = package(tmp_path, monkeypatch, house, files)
    assert house.import_problems(made / "checks/a", made) == []
    (made / "checks/b/two.py").write_text("from clew.checks import base\n")
    assert house.import_problems(made / "checks/a", made) == [
        'src/clew/checks/a/__init__.py should say "May import: checks.base."'
    ]


def test_a_folder_without_a_layer_or_without_tests_is_found(tmp_path, monkeypatch, house):
    files = {"room/__init__.py": "", "room/inner/__init__.py": "", "room/inner/part.py": ""}
    made = package(tmp_path, monkeypatch, house, files)
    contracts = tmp_path / "pyproject.toml"
    contract = '[[tool.importlinter.contracts]]\ncontainers = ["clew{}"]\nlayers = ["x | {}"]\n'
    contracts.write_text(contract.format("", "room"))
    assert house.unplaced_folders(made, contracts) == ["clew.room.inner has no layer in pyproject.toml"]
    assert house.untested_folders(made) == ["tests/room/inner has no tests"]
    contracts.write_text(contract.format("", "room") + contract.format(".room", "inner"))
    tests = tmp_path / "repository" / "tests" / "room" / "inner"
    tests.mkdir(parents=True)
    (tests / "test_part.py").write_text("")
    assert house.unplaced_folders(made, contracts) == []
    assert house.untested_folders(made) == []


def test_a_folder_that_is_no_package_is_found(tmp_path, monkeypatch, house):
    files = {"__init__.py": "", "room/__init__.py": "", "room/hidden/part.py": "", "room/drawn/page.js": ""}
    made = package(tmp_path, monkeypatch, house, files)
    assert house.folders_without_index(made) == ["src/clew/room/hidden has no __init__.py"]


def test_a_folder_of_tests_without_code_at_its_place_is_found(tmp_path, monkeypatch, house):
    made = package(tmp_path, monkeypatch, house, {"room/__init__.py": "", "room/inner/__init__.py": ""})
    for place in ("room/inner", "room/moved", "promises", "ui", "gone"):
        (tmp_path / "repository/tests" / place).mkdir(parents=True)
        (tmp_path / "repository/tests" / place / "test_part.py").write_text("")
    assert house.misplaced_tests(made) == [
        "tests/gone has tests, but src/clew/gone has no code",
        "tests/room/moved has tests, but src/clew/room/moved has no code",
    ]


def test_a_signal_or_a_fact_that_is_named_by_text_is_found(tmp_path, monkeypatch, house):
    code = '''"""grad.norm"""
a = run.series("grad.norm")
b = run.facts("loss"), run.known("loss")  # the second may be any word
c = ["experiment.no_signal", "experiment.no-signal", "loss_failed", "weight.norm", "weight.normal"]
def f():
    "loss_failed"
'''
    files = {"room/part.py": code, "records/signals.py": code, "__init__.py": "x = ['batch_sizes']"}
    made = package(tmp_path, monkeypatch, house, files)
    says = "src/clew/room/part.py:{} names {!r} by text: import it from records/{}"
    assert sorted(house.names_as_text(made)) == [
        says.format(2, "grad.norm", "signals.py"),
        says.format(3, "loss", "facts/"),
        says.format(4, "experiment.no-signal", "facts/"),
        says.format(4, "loss_failed", "facts/"),
        says.format(4, "weight.norm", "signals.py"),
    ]


VIOLATIONS = {
    "measure/new_part.py": "",
    "records/new_part.py": "",
    "records/facts/loss_facts.py": "from clew.records.facts import nan_facts",
    "hooks/seams/module_seam.py": "from clew.hooks.seams import loader_seam",
    "checks/opt/frozen_parameters.py": "from clew.checks.opt import missing_zero_grad",
    "api/visit.py": "from clew.api import data",
    "cli/why.py": "from clew.cli import show",
}


def test_import_linter_finds_each_kind_of_import_that_the_contracts_forbid(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("static", "__pycache__"))
    for name, line in VIOLATIONS.items():
        path = tmp_path / "src" / "clew" / name
        path.write_text((path.read_text() if path.exists() else "") + f"\n{line}\n")
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    broken = re.findall(r"^(.+) BROKEN", done.stdout, re.MULTILINE)
    wanted = ["facts are", "kinds of facts", "statistics", "a check stands", "seams know", "public", "verbs"]
    assert done.returncode == 1
    assert all(any(name.startswith(words) for name in broken) for words in wanted), (broken, done.stderr)
    assert len(broken) == len(wanted)


def test_a_new_check_needs_no_decision_about_sizes(tmp_path, monkeypatch, house):
    files = {"checks/runner.py": "1\n2\n", "checks/loss/__init__.py": ""}
    made = package(tmp_path, monkeypatch, house, files)
    before = house.sizes(made)
    assert before == {"checks": (1, 2)}
    (made / "checks/loss/loss_asleep.py").write_text("check\n")
    assert house.sizes(made) == before


def test_ruff_and_mypy_see_the_scripts_whose_names_do_not_say_that_they_are_python():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    python = {
        f"scripts/{path.name}"
        for path in (ROOT / "scripts").iterdir()
        if path.is_file() and not path.suffix and "python" in path.read_text(encoding="utf-8").split("\n")[0]
    }
    assert python == {"scripts/docs", "scripts/new-check"}
    assert python == set(settings["ruff"]["extend-include"])
    assert python <= set(settings["mypy"]["files"])


def test_every_file_that_the_map_names_exists():
    """CONTRIBUTING.md sends people to files: they must be there."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+(?:\.py|\.toml)?)?)`", text))
    roots = (ROOT, ROOT / "src" / "clew")
    missing = {name for name in named if not any((root / name).exists() for root in roots)}
    assert named
    assert not missing


def test_every_file_of_the_page_begins_with_what_it_is():
    """ui/README.md sends people to the first lines."""
    files = [path for ending in ("ts", "tsx") for path in (ROOT / "ui" / "src").rglob(f"*.{ending}")]
    silent = [str(path) for path in files if not path.read_text(encoding="utf-8").startswith("// ")]
    assert files
    assert not silent
