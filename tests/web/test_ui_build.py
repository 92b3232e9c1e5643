"""The page in wheel and sdist: built when stale, shipped when fresh, never a reason for a failed install."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = "src/clew/web/static"
OFFLINE = {"PATH": "/nowhere", "PIP_NO_INDEX": "1", "CC": "none"}


@pytest.fixture
def ui():
    spec = importlib.util.spec_from_file_location("build_ui", ROOT / "scripts" / "build_ui.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path):
    """As much of the project as a build of the package needs, without anything built."""
    for name in ("pyproject.toml", "LICENSE", "README.md", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path / name)
    leave = shutil.ignore_patterns("*.so", "__pycache__", "static", "node_modules", ".node")
    for folder in ("src", "ui", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=leave)
    return tmp_path


@pytest.fixture
def bundled(project, ui):
    """With a bundle that says it was built from these very sources."""
    static = project / STATIC
    static.mkdir()
    for name in ui.MADE:
        (static / name).write_text(f"the {name} of a build")
    (static / ui.STAMP).write_text(ui.sources_hash(project))
    return project


def make(project: Path, what: str) -> tuple[Path, str]:
    """Build without Node, network or compiler; the file made and what was said."""
    code = f"import hatchling.build as b; print(b.build_{what}('dist'))"
    env = {**os.environ, **OFFLINE}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env=env, capture_output=True, text=True, check=True
    )
    return project / "dist" / done.stdout.split()[-1], done.stdout + done.stderr


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_a_bundle_is_fresh_until_a_source_changes(bundled, ui):
    assert ui.is_fresh(bundled)
    (bundled / "ui" / "src" / "main.tsx").write_text("changed")
    assert not ui.is_fresh(bundled)


def test_half_a_bundle_is_not_fresh(bundled, ui):
    (bundled / STATIC / "clew.js").unlink()
    assert not ui.is_fresh(bundled)


def test_a_fresh_bundle_is_shipped_in_the_wheel_without_node(bundled):
    wheel, _ = make(bundled, "wheel")
    assert {f"clew/web/static/{name}" for name in ("clew.js", "clew.css", "index.html")} <= set(names(wheel))


def test_an_sdist_holds_bundle_and_sources_and_builds_without_node(bundled, tmp_path):
    sdist, _ = make(bundled, "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert (unpacked / "ui" / "src" / "main.tsx").is_file()
    wheel, _ = make(unpacked, "wheel")
    assert "clew/web/static/clew.js" in names(wheel)


def test_without_node_and_network_the_package_still_builds_and_says_so(project):
    wheel, said = make(project, "wheel")
    assert "without the page of `clew ui`" in said
    assert not any("static" in name for name in names(wheel))


def test_an_old_node_is_not_used(ui, tmp_path):
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v16.20.0\n")
    node.chmod(0o755)
    assert ui.node_version(str(node)) == 16
    assert ui.node_version(str(tmp_path / "missing")) == 0
    assert ui.OLDEST_NODE > 16
