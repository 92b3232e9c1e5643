"""Runs recorded before the package was rearranged open as they did: same content, findings and replay.

`earlier_runs/` has one recording of `clew run` (digits with two faults), `clew run` that ended in a NaN,
`clew check`, `clew profile` and `clew data`, with what the version that recorded them said of each. Folders
and the name of the machine were replaced in them; torch's own trace was left out.
"""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from clew_command import clew, why_json
from web_runs import Client

import clew as package

RECORDED = Path(__file__).parent / "earlier_runs"
EXPECTED: dict[str, Any] = json.loads((RECORDED / "expected.json").read_text(encoding="utf-8"))
VIEWS = ("", "/signals", "/layers", "/histograms", "/graph", "/profile", "/data", "/notes")


@pytest.fixture(params=EXPECTED)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """The folder of an unpacked run, and what was said of it."""
    return unpacked(request.param, tmp_path), EXPECTED[request.param]


def unpacked(name: str, folder: Path) -> Path:
    runs = folder / "runs"
    with tarfile.open(RECORDED / f"{name}.tar.xz") as archive:
        archive.extractall(runs, filter="data")
    (run,) = runs.iterdir()
    return run


def test_everything_that_was_recorded_is_read(earlier: tuple[Path, dict[str, Any]]) -> None:
    run, expected = earlier
    opened = package.open_run(run)
    data, series = opened.data, []
    for name in data.signal_names():
        series += data.series(name)
    assert {
        "steps": data.last_step,
        "series": len(series),
        "values": sum(len(steps) for _, steps, _ in series),
        "last_losses": [float(values[-1]) for _, _, values in data.series("loss")],
        "facts": dict(sorted(Counter(fact.kind for fact in data.facts).items())),
    } == expected["recorded"]
    assert (opened.state, list(opened.damage)) == ("finished", [])


def test_the_findings_are_the_same(earlier: tuple[Path, dict[str, Any]]) -> None:
    run, expected = earlier
    verdict = why_json(run.parent, run.name)
    findings = verdict["findings"]
    assert [[f["check"], f["severity"], f["site"]["line"], f["step"]] for f in findings] == expected[
        "findings"
    ]
    assert {f["check"]: f["because"] for f in findings if f["because"]} == expected["because"]


def test_the_browser_shows_it(
    earlier: tuple[Path, dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, _ = earlier
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path_factory.mktemp("cache")))
    with Client(run.parent) as api:
        for view in VIEWS:
            assert api.get(f"/api/v1/runs/{run.name}{view}").status_code == 200, view
        assert api.get(f"/api/v1/runs/{run.name}/signals").json()["signals"]


def test_a_saved_step_is_replayed(tmp_path: Path) -> None:
    run = unpacked("nan", tmp_path)
    done = clew(run.parent, "replay", "--json", str(run / "repro" / "step-6"))
    assert done.returncode == 1, done.stderr  # the step still goes wrong
    found = json.loads(done.stdout)["culprit"]
    assert (found["op"], found["line"]) == ("log", 15)


def test_a_profile_is_shown(tmp_path: Path) -> None:
    run = unpacked("profile", tmp_path)
    done = clew(tmp_path, "profile", "--show", "--dir", "runs", run.name)
    assert done.returncode == 0, done.stderr
    assert "wine.py" in done.stdout
