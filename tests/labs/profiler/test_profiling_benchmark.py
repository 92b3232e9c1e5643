"""The benchmark of `clew profile` runs, and asks its questions of real steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
DRAW = "import json, sys; from benchmarks.profiling import table; print(table(json.load(sys.stdin)))"


def run(*command: str, given: str = "") -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    ended = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=env, input=given, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_quick_benchmark_compares_modules_and_weighs_the_profile():
    questions = ("--only", "agreement", "--only", "size")
    told = run("-m", "benchmarks.profiling", "--quick", "--workload", "mlp", "--json", *questions)
    result = json.loads(told)
    found = result["agreement"]["mlp"]
    assert found["forward"]["modules"] >= 1
    assert 0.5 < found["parts"] + found["left"] < 2  # medians of a few steps need not add up
    assert 0 < result["size"]["mlp"]["profile"] < result["size"]["mlp"]["run"]
    ratio = {"value": 1.02, "low": 1.0, "high": 1.05}
    titles = ("raw/raw", "clew profile", "torch.profiler with stacks", "cProfile")
    result["steps"]["mlp"] = {"step_ms": 1.5, **{t: {"cpu": ratio, "wall": ratio} for t in titles}}
    drawn = run("-c", DRAW, given=json.dumps(result))
    assert "parts sum to" in drawn
    assert drawn.count("1.020 (1.000–1.050)") == 8
