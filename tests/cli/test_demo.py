from __future__ import annotations

import json
import os
from pathlib import Path

from clew_command import SOURCE
from clew_command import clew as clew_in


def test_demo_finds_both_planted_faults_and_nothing_else(tmp_path: Path) -> None:
    done = clew_in(tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    assert "$ clew run .clew/demo/digits.py" in done.stderr
    assert "epoch 9" in done.stdout
    verdict = json.loads(clew_in(tmp_path, "why", "--json").stdout)
    roots = {f["check"] for f in verdict["findings"] if not f["because"]}
    assert roots == {"missing-zero-grad", "softmax-before-cross-entropy"}
    lines = (tmp_path / ".clew/demo/digits.py").read_text().splitlines()
    sites = {f["check"]: lines[f["site"]["line"] - 1].strip() for f in verdict["findings"]}
    assert sites["missing-zero-grad"] == "optimizer.step()"
    assert sites["softmax-before-cross-entropy"] == "loss = criterion(model(x), y)"


def test_demo_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "found = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'sklearn' else found(name, package)\n"
    )
    path = f"{tmp_path / 'blocked'}{os.pathsep}{SOURCE}"
    done = clew_in(tmp_path, "demo", environment={"PYTHONPATH": path})
    assert done.returncode == 2
    assert done.stderr == 'clew: the demo needs scikit-learn: pip install "clew[demo]"\n'
