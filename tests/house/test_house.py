"""The house stays in order, and the script that keeps it so finds what is not."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    files |= {"cli/profile.py": "", "api/profile.py": ""}
    made = package(tmp_path, monkeypatch, house, files)
    assert house.repeated_file_names(made) == ["two files are called loss: one/loss.py, two/loss.py"]
    assert house.repeated_class_names(made) == ["two classes are called Loss: one/loss.py, two/loss.py"]


def test_a_room_that_nobody_can_take_in_is_found(tmp_path, monkeypatch, house):
    files = {f"room/part{number}.py": "" for number in range(house.MOST_FILES)}
    made = package(tmp_path, monkeypatch, house, {"room/__init__.py": "", **files})
    assert house.crowded_rooms(made) == []
    (made / "room" / "one_more.py").write_text("")
    assert house.crowded_rooms(made) == ["src/clew/room holds 23 files; split it, or merge some"]


def test_a_room_that_outgrew_its_size_is_found(tmp_path, monkeypatch, house):
    sizes = tmp_path / "sizes.toml"
    sizes.write_text('room = { files = 1, lines = 2, decision = "001-a-note" }\n')
    monkeypatch.setattr(house, "SIZES", sizes)
    monkeypatch.setattr(house, "DECISIONS", tmp_path)
    (tmp_path / "001-a-note.md").write_text("why")
    found = {"room": (1, 2)}
    monkeypatch.setattr(house, "sizes", lambda: found)
    assert house.size_problems() == []
    found["room"] = (1, 3)
    assert [problem.split(",")[0] for problem in house.size_problems()] == ["room has 3 lines"]
    found["other"] = (1, 1)
    assert "other has no size in sizes.toml" in house.size_problems()
    (tmp_path / "001-a-note.md").unlink()
    assert "room: there is no decision 001-a-note" in house.size_problems()


def test_a_new_check_needs_no_decision_about_sizes(tmp_path, monkeypatch, house):
    files = {"checks/runner.py": "1\n2\n", "checks/loss/__init__.py": ""}
    made = package(tmp_path, monkeypatch, house, files)
    before = house.sizes(made)
    assert before == {"checks": (1, 2)}
    (made / "checks/loss/loss_asleep.py").write_text("check\n")
    assert house.sizes(made) == before


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
