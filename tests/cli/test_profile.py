"""`clew profile` on runs that are recorded already: shown, exported, compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from clew_command import record

from clew.cli.profile import command
from clew.cli.verbs import interpret
from clew.records.step_costs import FlameFrame, ModuleCost, OpCost, PartCost, Profile

ROOT = Path(".clew/runs")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLEW_DIR", raising=False)
    return tmp_path


def small() -> Profile:
    return Profile(
        steps=(5, 30),
        detailed=16,
        step_median=0.02,
        step_p95=0.021,
        samples_per_second=3200.0,
        parts=(PartCost("forward", 0.012, 0.0125, 0.6, 40), PartCost("backward", 0.008, 0.0085, 0.4, 40)),
        modules=(ModuleCost("fc", "Linear", 1, 0.01, 0.006, 0.01, 0.006, 0.0004, 16),),
        ops=(OpCost("fc", "aten::addmm", "[8, 8]", "", 1, 0.01, 0.006),),
        flame=FlameFrame("step", 0.02, 0.0, children=(FlameFrame("forward", 0.012, 0.012),)),
        python=FlameFrame(
            "main", 0.02, 0.0, children=(FlameFrame("forward", 0.02, 0.02, file="train.py", line=3),)
        ),
    )


def profiled(profile: Profile | None = None, **recorded: object) -> Path:
    run = record(ROOT, **recorded)  # type: ignore[arg-type]
    (run / "traces").mkdir()
    (run / "traces" / "profile.json").write_text(json.dumps((profile or small()).to_json()))
    return run


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert interpret(("profile", *arguments)) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert interpret(("profile", *arguments)) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    return output.err


def test_show_draws_the_profile_of_the_newest_run_with_its_findings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    profiled(script="new.py")
    text = told(capsys, "--show")
    assert "20.0 ms per step" in text
    assert "missing-zero-grad" in text


def test_all_leaves_nothing_out_and_json_goes_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    run = profiled()
    text = told(capsys, "--all", run.name, "--json", "all.json")
    assert "flame: Python" in text
    data = json.loads(Path("all.json").read_text())
    assert data["profile"]["step_median"] == 0.02
    assert data["findings"]


def test_export_writes_all_formats_and_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    run = profiled()
    lines = told(capsys, "--export", run.name).splitlines()
    folder = f"{run.name}-profile"
    assert lines == [
        f"{folder}/profile.csv",
        f"{folder}/profile.prof",
        f"{folder}/profile.speedscope.json",
        f"{folder}/profile.html",
    ]
    assert all(Path(line).is_file() for line in lines)


@pytest.mark.parametrize("order", ["options first", "options last"])
def test_options_may_stand_before_and_after_the_run(order: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = profiled()
    options = ["--out", "files", "--format", "csv,html"]
    asked = [*options, "--export", run.name] if order == "options first" else ["--export", run.name, *options]
    assert told(capsys, *asked).splitlines() == ["files/profile.csv", "files/profile.html"]


def test_compare_names_what_became_slower_and_writes_it_down(capsys: pytest.CaptureFixture[str]) -> None:
    slow = replace(
        small(),
        step_median=0.04,
        step_p95=0.041,
        samples_per_second=1600.0,
        modules=(replace(small().modules[0], forward=0.03),),
        parts=(PartCost("forward", 0.032, 0.0325, 0.8, 40), small().parts[1]),
    )
    versions = [("versions", {"torch": v}) for v in ("2.12.0", "2.13.0")]
    a, b = profiled(facts=versions[:1]), profiled(slow, facts=versions[1:])
    text = told(capsys, "--compare", a.name, b.name, "--json", "changes.json")
    assert "torch: 2.12.0 and 2.13.0" in text
    assert "a step is 100% slower: 20.0 ms → 40.0 ms" in text
    assert [line for line in text.splitlines() if line.startswith("fc Linear") and line.endswith("slower")]
    assert json.loads(Path("changes.json").read_text())["step"]["verdict"] == "slower"


def test_bad_input_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    plain = record(ROOT)
    assert "has no profile" in refused(capsys, "--show", plain.name)
    assert "--compare takes two runs" in refused(capsys, "--compare", plain.name)
    assert "take one run: unexpected" in refused(capsys, "--export", plain.name, plain.name)
    assert "no such format: pdf" in refused(capsys, "--export", plain.name, "--format", "pdf")
    assert "nowhere" in refused(capsys, "--show", "nowhere")
    empty = profiled(Profile())
    assert "nothing to write" in refused(capsys, "--export", empty.name)


def test_a_folder_that_can_not_be_made_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    run = profiled()
    Path("taken").write_text("")
    assert "can't write to" in refused(capsys, "--export", run.name, "--out", "taken/inside")


def test_the_scripts_own_options_are_the_scripts() -> None:
    Path("train.py").write_text("")
    options = command.main(
        ["--steps", "3", "train.py", "--export", "--compare", "--steps", "9"], standalone_mode=False
    )
    assert options.args == ("--export", "--compare", "--steps", "9")
    assert options.steps == 3
