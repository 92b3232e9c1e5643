"""What run.json says is read as far as it fits, and written as it always was."""

from __future__ import annotations

import json

import pytest

from clew.store.read.run_metadata import RunMeta

WRITTEN = {
    "name": None,
    "script": "train.py",
    "module": False,
    "args": ["--lr", "1"],
    "command": ["python", "train.py"],
    "cwd": "/home/a",
    "user": "a",
    "versions": {"clew": "0.1"},
    "world_size": 1,
    "rank": 0,
}


def test_a_field_keeps_its_name_and_its_place():
    assert json.dumps(RunMeta.read(WRITTEN).to_json()) == json.dumps(WRITTEN)


def test_what_the_store_adds_is_read():
    meta = RunMeta.read(
        {**WRITTEN, "format_version": 1, "id": "x", "started": 5, "hostname": "h", "new": [1]}
    )
    assert (meta.format_version, meta.id, meta.started, meta.hostname) == (1, "x", 5.0, "h")
    assert meta.recorded["new"] == [1]


@pytest.mark.parametrize("junk", [None, True, 3, [], {}, [[1]], {"a": {}}])
def test_a_damaged_field_does_not_cost_the_others(junk: object):
    meta = RunMeta.read({**WRITTEN, "name": junk, "versions": junk, "world_size": [junk], "user": junk})
    assert (meta.script, meta.name, meta.user, meta.world_size) == ("train.py", None, None, None)


def test_a_program_is_its_script_or_else_its_command():
    assert RunMeta.read(WRITTEN).program == "train.py"
    assert RunMeta(command=("python", "-c", "pass")).program == "python -c pass"
    assert RunMeta(command="python x.py").program == "python x.py"
    assert RunMeta().program == ""
