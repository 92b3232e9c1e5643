from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from clew.measure.kernel import compiled_library

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def build():
    spec = importlib.util.spec_from_file_location("build_kernel", ROOT / "scripts" / "build_kernel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path):
    """As much of the project as a build needs."""
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "README.md").write_text("# Clew")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (tmp_path / "scripts").mkdir()
    for script in (ROOT / "scripts").glob("build_*.py"):
        shutil.copy(script, tmp_path / "scripts")
    return tmp_path


def make(project, what, **environment):
    code = f"import hatchling.build as b; print(b.build_{what}('dist'))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return project / "dist" / run.stdout.split()[-1]


def test_wheel_carries_the_library_and_the_tag_of_its_platform(project):
    wheel = make(project, "wheel")
    assert wheel.name.split("-")[2:4] == ["py3", "none"]
    assert not wheel.name.endswith("any.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(project / "installed")
    assert compiled_library.load(project / "installed" / "clew" / "measure" / "kernel") is not None


def test_without_a_compiler_the_wheel_is_pure(project):
    (project / "nothing").mkdir()
    wheel = make(project, "wheel", PATH=str(project / "nothing"), CC="")
    assert wheel.name.endswith("py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "_kernel" in name]


def test_sdist_carries_what_the_build_needs(project):
    shutil.unpack_archive(make(project, "sdist"), project / "unpacked")
    inside = next((project / "unpacked").iterdir())
    for name in ("kernel.c", "steps.c", "python.h"):
        assert (inside / "src/clew/measure/kernel" / name).exists()
    assert make(inside, "wheel").exists()


@pytest.mark.parametrize("flags", [["-DCLEW_PLAIN"], ["-O1"]])
def test_every_set_of_flags_gives_a_library_with_the_same_numbers(build, tmp_path, flags):
    target = tmp_path / f"_kernel{build.SUFFIX}"
    sources = sorted((ROOT / build.FOLDER).glob("*.c"))
    assert build._compile(build.compilers()[0], build.REQUIRED + flags, sources, target)
    values, got, want = np.linspace(-3, 5, 5000, dtype=np.float32), np.zeros(7), np.zeros(7)
    for loaded, out in ((compiled_library.load(tmp_path), got), (compiled_library.load(), want)):
        loaded.stats(values.ctypes.data, values.size, 0, out.ctypes.data, None, -1.0, 1.0)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_compiler_that_fails_leaves_no_library(build, tmp_path, monkeypatch):
    folder = tmp_path / build.FOLDER
    folder.mkdir(parents=True)
    (folder / "kernel.c").write_text("this is not C")
    assert build.compile_kernel(tmp_path) is None
    assert [p.name for p in folder.iterdir()] == ["kernel.c"]


def test_the_overhead_benchmark_measures_every_column():
    command = [sys.executable, "-m", "benchmarks.overhead", "--quick", "--workload", "mlp", "--json"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    run = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    result = json.loads(run.stdout)
    row = result["steps"]["mlp"]
    for column in ("raw/raw", "clew (default)", "clew --every-step", "set_detect_anomaly"):
        ratio = row[column]["cpu"]
        assert 0 < ratio["low"] <= ratio["value"] <= ratio["high"]
    assert result["memory"]["mlp"]["without"] > 0
    assert result["startup"]["with"] > 0


def test_peak_memory_is_the_childs_own_and_not_its_parents():
    code = (
        "from benchmarks.overhead import peak_of_this_process as p; a = p(); x = b'x' * 2**28; print(a, p())"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    ballast = b"x" * 2**30  # the parent's peak, which a child must not report as its own
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    before, after = map(int, run.stdout.split())
    assert before < len(ballast)
    assert 0.9 * 2**28 < after - before < 1.1 * 2**28
