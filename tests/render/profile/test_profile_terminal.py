"""A profile on the terminal."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from golden_files import Paper, assert_golden
from sample_profiles import MB, convolutions, deep, frame, hostile, module, transformer
from sample_verdicts import RUN, softmax, write_script

from clew.records.finding import Severity
from clew.records.step_costs import OpCost, ProcessMemory, Profile, StepMemory
from clew.records.verdict import Verdict
from clew.render.number_text import share, span
from clew.render.profile.cost_tables import alike, rows_shown
from clew.render.profile.flame_graph import layers, merged
from clew.render.profile.profile_terminal import render_profile


@pytest.fixture(autouse=True)
def in_folder_with_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    write_script(tmp_path)


def drawn(
    profile: Profile,
    verdict: Verdict | None = None,
    *,
    width: int = 80,
    full: bool = False,
    encoding: str = "utf-8",
    terminal: bool = False,
) -> str:
    paper = Paper(encoding, terminal)
    render_profile(profile, verdict, RUN, paper, width=width, full=full)
    return paper.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_profile_at_width(width: int) -> None:
    text = drawn(convolutions(), Verdict((softmax(),)), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert_golden(f"profile_at_{width}", text)


def test_profile_with_nothing_left_out() -> None:
    text = drawn(convolutions(), Verdict(), width=120, full=True)
    assert_golden("profile_in_full", text)


def test_profile_in_plain_ascii() -> None:
    text = drawn(convolutions(), encoding="ascii")
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 80
    assert_golden("profile_in_ascii", text)


def test_a_transformer_of_400_modules_stays_on_one_screen() -> None:
    profile = transformer()
    assert len(profile.modules) > 350
    text = drawn(profile)
    assert len(text.splitlines()) <= 40
    assert_golden("profile_of_transformer", text)


def test_all_modules_are_listed_where_all_is_asked_for() -> None:
    text = drawn(transformer(), full=True)
    assert "  layers.11 " in text
    assert "more inside" not in text


@pytest.mark.parametrize("width", [40, 60])
def test_on_a_narrow_terminal_no_line_is_wider_than_it(width: int) -> None:
    text = drawn(convolutions(), width=width, full=True)
    assert max(map(len, text.splitlines())) <= width
    assert "backward" in text


def test_an_empty_profile_says_so() -> None:
    text = drawn(Profile(), Verdict())
    assert "no step was profiled" in text
    assert "found no change that would make a step" not in text


def test_what_is_left_over_is_named() -> None:
    text = drawn(replace(convolutions(), unattributed=0.004))
    assert [line for line in text.splitlines() if line.startswith("left over") and "4.00 ms" in line]


def test_a_run_without_faults_gets_a_clean_bill_and_others_are_told_in_a_line() -> None:
    assert "found no change that would make a step" in drawn(convolutions(), Verdict())
    hint = replace(softmax(), severity=Severity.ADVICE)
    assert "softmax-before" in drawn(convolutions(), Verdict((softmax(),)))
    assert "softmax-before" not in drawn(convolutions(), Verdict((hint,)))
    assert "softmax-before" in drawn(convolutions(), Verdict((hint,)), full=True)


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_names_are_shown_not_obeyed(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    text = drawn(hostile(), Verdict(), full=True, terminal=terminal, width=120)
    assert not [c for c in text if c != "\n" and not c.isprintable()]
    assert "\\x1b[31mred" in text


def test_colours_only_on_a_terminal() -> None:
    assert "\x1b[" in drawn(convolutions(), terminal=True)
    assert "\x1b[" not in drawn(convolutions())


def test_a_flame_of_any_depth_is_drawn() -> None:
    text = drawn(replace(convolutions(), flame=deep()), full=True)
    assert "call 2998" in text


def test_one_process_that_does_not_grow_is_one_line() -> None:
    memory = StepMemory(processes=(ProcessMemory(1, "main", 300 * MB),))
    assert "the process uses 300 MiB\n" in drawn(replace(convolutions(), memory=memory))


def test_numbers_that_are_none_are_not_drawn_as_such() -> None:
    bad = replace(convolutions().modules[2], forward=float("nan"), flops=float("inf"), roof=float("nan"))
    assert "?" in drawn(replace(convolutions(), modules=(bad,)), full=True)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0"),
        (1.5, "1.50 s"),
        (0.0123, "12.3 ms"),
        (9.996e-3, "10.0 ms"),
        (4e-7, "400 ns"),
        (120.0, "120 s"),
    ],
)
def test_times_have_three_digits_and_a_unit(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_shares_tell_little_from_nothing() -> None:
    assert [share(v) for v in (0.0, 0.0004, 0.004, 0.42)] == ["0%", "<0.1%", "0.4%", "42%"]


def test_equal_blocks_are_one_line_and_a_slow_one_among_them_is_its_own() -> None:
    blocks = [module(f"layers.{n}", "Block", 0.01, 0.02) for n in range(8)]
    shown, left = rows_shown([module("", "Net", 0.24, 0.5), *blocks], 10)
    assert [branch.name for _, branch in shown] == ["", "layers.0…7"]
    blocks[4] = module("layers.4", "Block", 0.05, 0.10)
    shown, left = rows_shown([module("", "Net", 0.24, 0.5), *blocks], 10)
    assert [branch.name for _, branch in shown] == ["", "layers.0…3", "layers.4", "layers.5…7"]
    assert shown[1][1].cost.total == pytest.approx(4 * 0.03)
    assert left == []


def test_what_is_left_out_of_the_modules_is_counted_with_its_own_time() -> None:
    small = [module(f"part{chr(97 + n)}", "Linear", 1e-4, 1e-4, 1e-4, 1e-4) for n in range(5)]
    text = drawn(Profile(step_median=1.0, modules=(module("", "Net", 0.4, 0.4, 0.39, 0.39), *small)))
    assert [line for line in text.splitlines() if line.startswith("and 5 more inside") and "1.00 ms" in line]


def test_ops_of_equal_blocks_are_one_line_with_their_sum() -> None:
    one = OpCost("layers.0.mlp.2", "aten::linear", "[8, 64]", "", 2, 0.01, 0.02, roof=0.5)
    ops = (one, replace(one, module="layers.1.mlp.2", roof=0.2), replace(one, module="head", forward=0.5))
    first, other = alike(ops)
    assert (first.module, first.calls, first.forward, first.roof) == ("layers.*.mlp.2", 4, 0.02, 0.35)
    assert other.module == "head"


def test_equal_neighbours_of_a_text_flame_are_one_with_their_insides_together() -> None:
    blocks = [frame(f"layers.{n} (Block)", 2.0, frame(f"layers.{n}.mlp", 1.5)) for n in range(4)]
    shown = merged(frame("step", 9.0, *blocks, frame("head", 1.0)), 5)
    assert [(f.name, f.value) for f in shown.children] == [("layers.0…3 (Block)", 8.0), ("head", 1.0)]
    assert [(f.name, f.value) for f in shown.children[0].children] == [("layers.0…3.mlp", 6.0)]
    deepest = merged(frame("root", 3.0, *(replace(deep(), name=f"x{n}") for n in range(3))), 5)
    assert max(depth for depth, _ in deepest.walk()) == 5


def test_the_pieces_of_a_text_flame_stay_within_the_frame_above() -> None:
    root = frame("root", 1.0, *(frame(f"f{n}", 0.031, frame("g", 0.02)) for n in range(30)))
    lines = layers(root, 77, 5)
    for above, below in pairwise(lines):
        for piece in below:
            assert any(a.left <= piece.left and piece.left + piece.width <= a.left + a.width for a in above)
    assert sum(piece.width for piece in lines[1]) == pytest.approx(77 * 0.93, abs=1)
