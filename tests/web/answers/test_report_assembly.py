"""`clew report`: one file, bounded, inert. How it looks is tested in a browser (tests/ui)."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from web_runs import HOSTILE, make_run

from clew.render import html_bundle
from clew.web.answers.api_answers import ApiAnswers
from clew.web.answers.report_file import ReportError, build_report
from clew.web.runs.run_library import Shelf

SOURCE = Path(__file__).parents[3] / "src"
SMALL = {
    "index.html": '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Clew</title>\n'
    '<link rel="stylesheet" href="static/clew.css">\n</head>\n<body>\n'
    '<script src="static/clew.js"></script>\n'
    "</body>\n</html>\n",
    "clew.css": "body{color:red}",
    "clew.js": 'let end = "</script><!-- <script>"; let more = 1;',
}


@pytest.fixture
def small_page(tmp_path_factory, monkeypatch):
    """A bundle of a few bytes: what is around the data does not matter here."""
    folder = tmp_path_factory.mktemp("static")
    for name, text in SMALL.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(html_bundle, "STATIC", folder)


def built(paths: list[Path], limit: int = 10_000_000, notes: str = "", title: str = "t") -> str:
    answers = ApiAnswers(Shelf(paths))
    try:
        answers.library.scan()
        return build_report(answers, [path.name for path in paths], notes=notes, limit=limit, title=title)
    finally:
        answers.close()


def data_of(text: str) -> dict:
    (inner,) = re.findall(r'<script type="application/json" id="clew-data">(.*?)</script>', text, re.S)
    return json.loads(inner)


def test_it_holds_what_the_page_asks_for(small_page, tmp_path):
    first, second = make_run(tmp_path), make_run(tmp_path, spike=120)
    data = data_of(built([first, second], notes="**mine**"))
    base = f"api/v1/runs/{first.name}"
    views = (
        "signals",
        "series",
        "graph",
        "profile",
        "data",
        "notes",
        "histograms",
        "layers?stat=gradient.norm",
    )
    compared = f"api/v1/compare?runs={first.name}%2C{second.name}"
    for request in ("report", "api/v1/runs", base, compared, *(f"{base}/{view}" for view in views)):
        assert request in data, request
    assert data["report"]["notes"] == "**mine**"
    assert not data["report"]["bounded"]
    assert data[base]["verdict"]["findings"][0]["check"] == "missing-zero-grad"
    assert [row["id"] for row in data["api/v1/runs"]["runs"]] == [first.name, second.name]
    loss = next(s for s in data[f"{base}/series"]["series"] if s["signal"] == "loss")
    assert loss["steps"] == list(range(200))
    assert loss["wall"][-1] == 99.5
    assert loss["epoch"][-1] == 19.9
    listed = {s["key"] for s in data[f"{base}/signals"]["signals"]}
    assert listed == {s["key"] for s in data[f"{base}/series"]["series"]}


def test_a_long_run_is_reduced_until_it_fits_keeps_its_spike_and_says_so(small_page, tmp_path):
    run = make_run(tmp_path, steps=20_000, spike=12_345)
    text = built([run], limit=400_000)
    assert len(text.encode()) <= 400_000
    data = data_of(text)
    assert data["report"]["bounded"]
    assert "minimum, maximum and mean" in data["report"]["says"]
    loss = next(s for s in data[f"api/v1/runs/{run.name}/series"]["series"] if s["signal"] == "loss")
    assert not loss["exact"]
    assert max(loss["max"]) == 500.0
    assert sum(loss["count"]) == 20_000


def test_what_can_not_be_made_small_enough_is_refused_in_one_line(small_page, tmp_path):
    run = make_run(tmp_path)
    with pytest.raises(ReportError, match="--max-size") as refused:
        built([run], limit=5000)
    assert "\n" not in str(refused.value)


def test_nothing_of_a_run_can_leave_its_element(small_page, tmp_path):
    run = make_run(tmp_path)
    (run / "notes.md").write_text(f"</script>{HOSTILE}<!--")
    text = built([run], notes=f"</script>{HOSTILE}", title=f"</title>{HOSTILE}")
    body = text.partition("clew-data")[2].partition("</script>")[0]
    assert "<" not in body.partition(">")[2]
    assert data_of(text)["report"]["notes"] == f"</script>{HOSTILE}"
    assert HOSTILE not in text
    assert text.count("<script") == 2 + SMALL["clew.js"].count("<script")
    assert "&lt;script&gt;" in text.partition("</title>")[0]


def test_the_policy_allows_just_what_is_in_the_file(small_page, tmp_path):
    text = built([make_run(tmp_path)])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1].replace(
        "&#x27;", "'"
    )
    code = re.findall(r"<script>(.*?)</script>", text, re.S)[0]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy
    assert "'self'" not in policy
    assert text.index("Content-Security-Policy") < text.index("<style>")


def test_runs_of_the_same_name_from_two_places_are_told_apart(tmp_path):
    first = make_run(tmp_path / "a", steps=20)
    second = tmp_path / "b" / first.name
    second.parent.mkdir()
    second.mkdir()
    (second / "run.json").write_text((first / "run.json").read_text())
    shelf = Shelf([first, second])
    assert set(shelf.scan()) == {first.name, f"{first.name}-2"}
    assert shelf.folder(f"{first.name}-2") == second


def clew(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "clew", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, check=False)


def test_the_command_writes_one_file_and_says_how_large(tmp_path):
    run = make_run(tmp_path / "runs")
    notes = tmp_path / "notes.md"
    notes.write_text("# what I saw")
    out = tmp_path / "new" / "report.html"
    done = clew(
        "report", "--dir", tmp_path / "runs", run.name[:20], "-o", out, "--notes", notes, "--title", "Mine"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(out))
    assert done.stdout.rstrip().endswith("MB")
    assert data_of(out.read_text())["report"]["notes"] == "# what I saw"
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "no run 'nonsense'"),
        (["--max-size", "much"], "is not a size"),
        (["--max-size", "1kB"], "--max-size"),
    ],
)
def test_what_can_not_be_done_is_reported_in_one_line(tmp_path, arguments, says):
    make_run(tmp_path)
    done = clew("report", "--dir", tmp_path, "-o", tmp_path / "r.html", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "r.html").exists()
