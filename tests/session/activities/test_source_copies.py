"""The user's own source goes into the run; what is not the user's, or is not named, does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from clew.records.site import Site
from clew.session.activities.source_copies import SourceKeeper
from clew.store.read.run_data import RunData
from clew.store.write.frames import encode_json

SOURCE = Path(__file__).parents[3] / "src"
SCRIPT = """
import torch
from torch import nn
import parts

model = parts.net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    loss = nn.functional.mse_loss(model(torch.randn(4, 3)), torch.randn(4, 2))
    loss.backward()
    optimizer.step()
"""
PARTS = "from torch import nn\n\n\ndef net():\n    return nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 2))\n"


def recording(*files: str) -> RunData:
    data = RunData()
    for n, file in enumerate(files):
        data.feed(encode_json({"t": "site", "id": n, "site": Site(file=file, line=1).to_json()}))
    return data


def kept(run: Path) -> dict[str, str]:
    return json.loads((run / "source.json").read_text())["files"]


def test_a_recorded_run_holds_the_files_that_it_names(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "parts.py").write_text(PARTS)
    (tmp_path / "unused.py").write_text("secret = 1")
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "clew", "run", "--quiet", "--dir", str(tmp_path / "runs"), "train.py"]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, timeout=120)
    (run,) = (tmp_path / "runs").iterdir()
    assert kept(run) == {str(tmp_path / "train.py"): SCRIPT, str(tmp_path / "parts.py"): PARTS}


def test_files_outside_the_project_and_of_packages_are_not_kept(tmp_path):
    home, run = tmp_path / "project", tmp_path / "run"
    installed = home / ".venv" / "lib" / "site-packages"
    for folder in (home, run, installed):
        folder.mkdir(parents=True)
    for path in (home / "own.py", tmp_path / "other.py", installed / "pkg.py", home / "data.txt"):
        path.write_text("x = 1")
    (home / "leads_out.py").symlink_to(tmp_path / "other.py")
    inside = [home / name for name in ("own.py", "data.txt", "leads_out.py", "gone.py")]
    names = [*inside, tmp_path / "other.py", installed / "pkg.py", "<string>"]
    SourceKeeper(run, [str(home)]).keep(recording(*map(str, names)))
    assert list(kept(run)) == [str(home / "own.py")]


def test_a_file_stays_as_it_was_when_it_was_first_named(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("before")
    keeper = SourceKeeper(tmp_path, [str(tmp_path)])
    data = recording(str(file))
    keeper.keep(data)
    file.write_text("after")
    data.feed(
        encode_json({"t": "fact", "kind": "model", "step": 0, "data": {"modules": [{"file": str(file)}]}})
    )
    keeper.keep(data)
    assert kept(tmp_path) == {str(file): "before"}


def test_files_named_in_facts_and_events_are_kept_too(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(name)
    data = RunData()
    fact = {"modules": [{"path": "fc", "file": str(tmp_path / "a.py")}]}
    data.feed(encode_json({"t": "fact", "kind": "model", "step": 0, "data": fact}))
    event = {"user_file": str(tmp_path / "b.py")}
    data.feed(encode_json({"t": "event", "kind": "exception", "step": 0, "wall": 0.0, "data": event}))
    SourceKeeper(tmp_path, [str(tmp_path)]).keep(data)
    assert sorted(kept(tmp_path).values()) == ["a.py", "b.py"]
