from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from golden_files import Paper, assert_golden
from sample_verdicts import RUN, SILENT, dead, exploding, many, sick, softmax, write_script, zero_grad

from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site
from clew.records.verdict import NEEDS_EXPERIMENT, NotJudged, Verdict
from clew.render.run_summary import RunSummary
from clew.render.verdict.verdict_terminal import header_line, live_line, render_verdict

HOSTILE = "\x1b[31mred\x1b[0m [bold]markup[/bold] \x07\r\n\u202eesrever\u2066 \u200b\x9b31m :smile:"


@pytest.fixture(autouse=True)
def in_folder_with_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    write_script(tmp_path)
    return tmp_path


def drawn(
    verdict: Verdict,
    run: RunSummary = RUN,
    *,
    width: int = 80,
    full: bool = False,
    encoding: str = "utf-8",
    terminal: bool = False,
) -> str:
    paper = Paper(encoding, terminal)
    render_verdict(verdict, run, stream=paper, width=width, full=full)
    return paper.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_verdict_at_width(width: int) -> None:
    text = drawn(sick(), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert_golden(f"verdict_at_{width}", text)


def test_verdict_with_nothing_left_out() -> None:
    assert_golden("verdict_in_full", drawn(sick(), full=True))


def test_verdict_in_plain_ascii() -> None:
    text = drawn(sick(), encoding="ascii")
    assert text.isascii()
    assert_golden("verdict_in_ascii", text)


def test_clean_bill_of_health_is_one_line() -> None:
    text = drawn(Verdict())
    assert len(text.splitlines()) == 1
    assert_golden("clean_bill_of_health", text)


def test_checks_that_did_not_judge_are_named_beside_a_clean_bill() -> None:
    text = drawn(Verdict(not_judged=SILENT))
    assert "no problems found (10 checks, 300 steps of train.py)" in text
    assert "not judged: vanishing-gradient, unnormalised-input" in text


def test_questions_that_need_an_experiment_take_one_line_however_many_they_are() -> None:
    unasked = tuple(NotJudged(f"question-{n}", NEEDS_EXPERIMENT) for n in range(25))
    run = replace(RUN, checks=37)
    text = drawn(Verdict(not_judged=(*SILENT, *unasked)), run)
    assert "no problems found (10 checks, 300 steps of train.py)" in text
    assert "10 of 12 ran; not judged: vanishing-gradient, unnormalised-input" in text
    assert "25 more checks need an experiment: run clew check train.py" in text
    assert "question-3" not in drawn(Verdict((softmax(),), (*SILENT, *unasked)), run, full=True)
    one = drawn(Verdict(not_judged=unasked[:1]), replace(run, checks=13, script="notebook"))
    asks = "1 more check needs an experiment: run clew.examine(model, loss_fn, batch)"
    assert asks in " ".join(one.split())


def test_the_command_that_asks_the_rest_can_be_copied_as_it_stands() -> None:
    verdict = Verdict((), (NotJudged("no-signal", NEEDS_EXPERIMENT),))
    folder = "/home/ada/" + "experiments/" * 12
    run = replace(RUN, script=f"{folder}train.py", args=("--lr", "0.1", "my data"))
    letters = "".join(drawn(verdict, run=run).split())  # a long line is broken anywhere
    assert f"clewcheck{folder}train.py--lr0.1'mydata'" in letters
    assert "clew check -m pack.train --lr 1" in drawn(
        verdict, run=replace(RUN, script="-m pack.train", args=("--lr", "1"))
    )


def test_hints_alone_stand_in_a_line_each_beneath_a_clean_bill() -> None:
    hint = replace(softmax(), severity=Severity.ADVICE, check="redundant-bias", message="no use")
    text = drawn(Verdict((hint,)))
    assert "no problems found" in text.splitlines()[0]
    assert text.splitlines()[1:] == ["advice     redundant-bias: no use"]
    assert "no use" in drawn(Verdict((hint,)), full=True)


def test_a_script_that_failed_gets_no_clean_bill() -> None:
    text = drawn(Verdict(), replace(RUN, state="failed"))
    assert "the script failed" in text
    assert "no problems" not in text


def test_no_clean_bill_if_nothing_was_judged() -> None:
    text = drawn(Verdict(not_judged=SILENT), replace(RUN, checks=2))
    assert "no problems" not in text
    assert "not judged: 300 steps of train.py were not enough for any of 2 checks" in text
    assert "needs 3 weight layers, has 2" in text


def test_killed_damaged_and_shared_run_says_what_limits_the_verdict() -> None:
    run = replace(
        RUN,
        state="killed",
        ranks=4,
        damage=("rank00000/events-000001.seg: unreadable from byte 4096",),
        incidents=("activations failed: ValueError: x",),
    )
    assert_golden("notes_on_the_run", drawn(Verdict((softmax(),)), run))


def test_nothing_to_judge_says_why() -> None:
    text = drawn(Verdict(), replace(RUN, idle="the script never imported torch"))
    assert text == "clew: nothing to check: the script never imported torch\n"


def test_effects_stand_beneath_their_root_and_not_on_their_own() -> None:
    lines = drawn(sick()).splitlines()
    roots = [line for line in lines if line.startswith(("✗", "!"))]
    assert [line.split()[1] for line in roots] == ["missing-zero-grad", "softmax-before-cross-entropy"]
    beneath = [
        line.split("leads to")[-1].split()[1] for line in lines if line[2:].lstrip("leads to").startswith("!")
    ]
    assert beneath == ["exploding-gradient", "dead-units"]


def test_circular_causes_are_all_shown() -> None:
    text = drawn(Verdict((replace(exploding(), because=("ACT001",)), dead())))
    assert "! exploding-gradient" in text
    assert "! dead-units" in text


def test_finding_whose_cause_was_not_found_stands_on_its_own() -> None:
    assert "\n! exploding-gradient" in drawn(Verdict((exploding(),)))


def test_beyond_three_roots_findings_are_one_line_each_unless_all_are_asked_for() -> None:
    brief, full = drawn(many()), drawn(many(), full=True)
    assert brief.count("fix ") == 3
    assert full.count("fix ") == 6
    assert "! fault-5  61% of the units" in brief
    assert len(brief.splitlines()) <= 30


def test_long_evidence_is_counted_not_listed() -> None:
    finding = replace(dead(), evidence=tuple(Evidence(f"layer {i} is dead") for i in range(9)))
    brief = drawn(Verdict((finding,)))
    assert "layer 3 is dead" in brief
    assert "layer 4 is dead" not in brief
    assert "and 5 more" in brief
    assert "layer 8 is dead" in drawn(Verdict((finding,)), full=True)


def test_series_that_stays_level_is_a_number_not_a_line() -> None:
    level = Evidence("every row sums to 1", "loss_input.simplex", None, (0, 1, 9), (1.0, 1.0, 1.0))
    text = drawn(Verdict((replace(softmax(), evidence=(level,)),)))
    assert "1 throughout  loss_input.simplex, steps 0–9" in text


def test_source_line_is_quoted_from_the_users_file() -> None:
    assert "train.py:4  optimizer.step()" in drawn(sick())


def test_source_line_is_left_out_once_the_file_was_edited() -> None:
    text = drawn(sick(), replace(RUN, started=os.stat("train.py").st_mtime - 10))
    assert "train.py:4\n" in text
    assert "optimizer.step()" not in text


@pytest.mark.parametrize("file", ["gone.py", "/dev/zero", ".", "bad\x00name.py", "<stdin>"])
def test_file_that_has_no_source_line_is_named_without_one(file: str) -> None:
    flat = "".join(line.strip() for line in drawn(Verdict((zero_grad(file),))).splitlines())
    assert ":4evidence" in flat  # however long the folder's path is, nothing follows it


def test_line_beyond_the_end_of_the_file_is_named_without_text() -> None:
    finding = replace(softmax(), site=Site(file="train.py", line=4000))
    assert "train.py:4000\n" in drawn(Verdict((finding,)))


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_text_is_shown_not_obeyed(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    evidence = Evidence(HOSTILE, HOSTILE, None, (1, 2), (1.0, 2.0))
    site = Site(module=HOSTILE, file=HOSTILE, line=1)
    finding = Finding(HOSTILE, HOSTILE, Severity.ERROR, HOSTILE, HOSTILE, site, 3, (evidence,))
    run = replace(RUN, script=HOSTILE, path=HOSTILE, damage=(HOSTILE,), idle=None)
    text = drawn(Verdict((finding,)), run, full=True, terminal=terminal)
    assert not [c for c in text if c != "\n" and not c.isprintable()]
    assert "\\x1b[31mred" in text
    assert "[bold]markup[/bold]" in text
    assert ":smile:" in text


def test_hostile_text_cannot_speak_through_single_lines() -> None:
    finding = replace(softmax(), message=HOSTILE, check=HOSTILE)
    for line in (live_line(finding, Paper()), header_line("0.1.0", HOSTILE, Paper())):
        assert line.isprintable()


def test_endless_names_are_cut() -> None:
    finding = replace(softmax(), check="n" * 5000, message="m" * 50_000, site=Site(module="a." * 5000))
    text = drawn(Verdict((finding,)))
    assert len(text.splitlines()) < 40
    assert max(map(len, text.splitlines())) <= 80


def test_colours_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in drawn(sick())
    assert "\x1b[" in drawn(sick(), terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    coloured = drawn(sick(), terminal=True)
    assert "\x1b[31m" not in coloured
    assert "\x1b[1;31m" not in coloured


def test_no_line_ends_in_spaces() -> None:
    assert not [line for line in drawn(sick(), full=True).splitlines() if line != line.rstrip()]


def test_header_names_version_and_folder(tmp_path: Path) -> None:
    line = header_line("0.1.0", str(tmp_path / RUN.path), Paper())
    assert line == "clew 0.1.0 · recording to .clew/runs/20261115-215301-train-a1b2 · clew why"
    assert header_line("0.1.0", "x", Paper("ascii")) == "clew 0.1.0 - recording to x - clew why"


def test_live_line_says_what_when_and_where() -> None:
    assert live_line(zero_grad(), Paper()) == (
        "clew: ✗ missing-zero-grad: 299 of 300 steps used gradients that still held those of earlier steps: "
        "they pile up (step 1, train.py:4)"
    )
    assert live_line(exploding(), Paper("ascii")).endswith("(step 40, encoder.layers.0.weight)")
