"""What was tried on a snapshot, and batch sizes, as a terminal shows them."""

from __future__ import annotations

import io

import pytest
from golden_files import assert_golden

from clew.records.tried_changes import (
    BFLOAT16,
    CHANNELS_LAST,
    COMPILE,
    FOREACH,
    FUSED,
    NO_GRADIENTS,
    THREADS,
    BatchSizes,
    Break,
    SizeRow,
    TriedChange,
)
from clew.render.profile.tried_changes_terminal import render_attempts, render_batch_sizes

BREAKS = (
    Break("a branch depends on the value of a tensor", "train.py", 16, "if x.mean() > 10:"),
    Break("Unsupported call of print", "model.py", 40, 'print("large")'),
)
ATTEMPTS = [
    TriedChange(
        NO_GRADIENTS, "with torch.inference_mode():", 0.02, 0.014, gain=0.3, clear=True, what="evaluation"
    ),
    TriedChange(FOREACH, "AdamW(…, foreach=True)", 0.041, 0.0405, gain=0.012, noise=0.02),
    TriedChange(FUSED, "AdamW(…, fused=True)", 0.041, 0.031, gain=0.244, noise=0.02, clear=True, same=True),
    TriedChange(
        CHANNELS_LAST, "model.to(memory_format=torch.channels_last), and its input", 0.041, 0.03, gain=0.26,
        clear=True, same=False, difference={"output": 0.4, "loss": 0.1},
    ),
    TriedChange(
        BFLOAT16, 'with torch.autocast("cpu", dtype=torch.bfloat16):', 0.041, 0.2, gain=-3.9, clear=True,
        difference={"loss": 2e-5, "gradient": 0.004},
    ),
    TriedChange(THREADS, "torch.set_num_threads(2)", 0.041, 0.03, gain=0.2, noise=0.35),
    TriedChange(
        COMPILE, "model = torch.compile(model)", 0.041, 0.022, gain=0.46, noise=0.03, clear=True, same=True,
        once=18.0, breaks=BREAKS, rounds=7,
    ),
]  # fmt: skip
NOT_TRIED = TriedChange(
    COMPILE,
    "model = torch.compile(model)",
    reason="torch.compile needs a C++ compiler on a CPU, but none was found",
)
SIZES = BatchSizes(
    (
        SizeRow(1, reason="the step fails: ValueError: Expected more than 1 value per channel when training"),
        SizeRow(16, 0.0051, 3137.0, 60.0, 9, 2_100_000, 310_000_000),
        SizeRow(64, 0.0093, 6880.0, 90.0, 9, 6_300_000, 322_000_000),
        SizeRow(256, 0.0361, 7091.0, 150.0, 9, 23_000_000, 371_000_000),
        SizeRow(1_000_000, reason="it would need about 88.0 GiB, but only 22.1 GiB is free"),
    ),
    knee=64,
    why="larger batches give at most 3% more samples per second (batches of 256)",
    current=16,
)


def attempts(found: list[TriedChange], width: int) -> str:
    paper = io.StringIO()
    render_attempts(found, stream=paper, width=width)
    return paper.getvalue()


def sizes(found: BatchSizes, width: int) -> str:
    paper = io.StringIO()
    render_batch_sizes(found, stream=paper, width=width)
    return paper.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_attempts_fit_their_width(width: int):
    drawn = attempts([*ATTEMPTS, NOT_TRIED], width)
    assert all(len(line) <= width for line in drawn.splitlines())
    assert_golden(f"attempts_{width}", drawn)


@pytest.mark.parametrize("width", [80, 120])
def test_batch_sizes_fit_their_width(width: int):
    drawn = sizes(SIZES, width)
    assert all(len(line) <= width for line in drawn.splitlines())
    assert_golden(f"batch_sizes_{width}", drawn)


def test_what_computes_something_else_is_not_the_one_to_take():
    wrong = next(a for a in ATTEMPTS if a.name == CHANNELS_LAST)
    drawn = attempts([wrong], 80)
    assert "nothing makes the step clearly faster" in drawn
    assert "results are NOT the same" in drawn


def test_a_gain_in_evaluation_is_not_called_one_of_the_step():
    assert "nothing makes the step clearly faster" in attempts(ATTEMPTS[:2], 80)


def test_what_could_not_be_tried_says_why_and_what_to_do():
    drawn = attempts(
        [TriedChange("", reason="the loss is not known", rest={"hint": "clew.try_faster(…)"})], 80
    )
    assert "nothing could be tested: the loss is not known" in drawn
    assert "to do" in drawn
    nothing = sizes(BatchSizes(reason="the loss is not known", hint="clew.batch_sizes(…)"), 80)
    assert "could not be measured: the loss is not known" in nothing


def test_text_of_the_run_does_not_command_the_terminal():
    hostile = TriedChange(FOREACH, "\x1b[31mred", reason="\x1b]0;title\x07", rest={"hint": "\x1b[2J"})
    assert "\x1b" not in attempts([hostile], 80)
    broken = TriedChange(COMPILE, "x", 1.0, 1.0, breaks=(Break("\x1b[31m", "\x1b[31m.py", 3, "\x1b[2J"),))
    assert "\x1b" not in attempts([broken], 80)
    assert "\x1b" not in sizes(BatchSizes((SizeRow(1, reason="\x1b[2J"),), why="\x1b[2J"), 80)


def test_without_a_knee_larger_sizes_are_asked_for():
    found = BatchSizes(
        SIZES.rows[:3], None, "the largest one measured (64) is still faster; try larger ones", 16
    )
    assert "no best size: the largest one measured (64) is still faster" in sizes(found, 80)


def test_changes_that_were_left_out_for_one_reason_are_told_together():
    late = [TriedChange(name, name.upper(), reason="time limit reached") for name in (FOREACH, FUSED)]
    assert attempts(late, 80).split("\n")[1].strip() == "– FOREACH, FUSED: not tested: time limit reached"
