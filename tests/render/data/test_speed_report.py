"""What was measured of a loader, on a terminal and as HTML."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from golden_files import assert_golden

from clew.records.loader_speed import (
    FieldSize,
    HotLine,
    MeasuredLoader,
    Moving,
    Padding,
    Paddings,
    Rate,
    Sizes,
    Speeds,
    Stages,
    StageTime,
    Sweep,
    SweepRow,
)
from clew.render.data.speed_report import draw, fragment
from clew.render.data.speed_text import limits, moving_line, padding_lines, sweep_line
from clew.render.screen import Screen

MEASURED = MeasuredLoader(
    "train_loader",
    "train.py",
    12,
    Speeds(
        Rate(412.0, 380.0, 431.0, 4000, 9.7),
        Rate(2950.0, 2800.0, 3010.0, 9000, 3.0),
        Rate(398.5, 360.0, 410.0, 3900, 9.8),
        "training step", 64.0, 0.862, 1.8, 2, 2, 4, False, 1,
        ("1 batch raised and was left out: ValueError: sample 17 is broken",),
    ),
    Stages(
        (
            StageTime("Photos.__getitem__", "dataset", 0.2e-3, 0.3e-3, 0.04, 1.0, "photos.py", 20),
            StageTime("reading files", "read", 0.5e-3, 2.1e-3, 0.11, 3.0),
            StageTime("PIL decoding", "decode", 1.4e-3, 1.6e-3, 0.28),
            StageTime("RandomRotation", "transform", 2.5e-3, 2.9e-3, 0.51, 1.0, "photos.py", 44),
            StageTime("ToTensor", "transform", 1e-6, 2e-6, 0.001),
            StageTime("default_collate", "collate", 0.1e-3, 0.2e-3, 0.02),
            StageTime("moving to the parent", "pickle", 0.2e-3, 0.2e-3, 0.04),
        ),
        500, 4.9e-3, 7.3e-3,
        (HotLine("photos.py", 46, "return image.rotate(angle, resample=BICUBIC)", 0.5),),
    ),
    Sizes(
        (
            FieldSize("image", (3, 224, 224), "float32", 602112, "uint8", 150528, "multiples of 1/255"),
            FieldSize("caption", (-1,), "int64", 240.0),
            FieldSize("label", (), "int", 8.0),
        ),
        500, 602360.0, 602512.0, Moving(38.5e6, 400.0, 12.8e-3, 64.0), 2,
    ),
    Sweep(
        (
            SweepRow(0, 0, Rate(190.0, 185.0, 192.0), 0.0),
            SweepRow(2, 2, Rate(398.0, 390.0, 402.0), 410e6),
            SweepRow(4, 2, Rate(760.0, 730.0, 771.0), 820e6),
            SweepRow(8, 2, None, None, "skipped: its workers might not fit in memory"),
        ),
        2, 2, 4, 2, True, 0.476, 4, 24.0,
    ),
    Paddings(
        (Padding("caption", 1, "samples", 40, 2560, 0.58, 0.3, 0.7, 0.58, 0.08, 5, 21.0, 60.0, 88, 61.0),), 40
    ),
    40.0,
    {"model": "no model was found"},
)  # fmt: skip


def drawn(measured: MeasuredLoader, width: int, **more: bool) -> str:
    stream = io.StringIO()
    draw(Screen(stream, width), measured, **more)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_loader_on_a_terminal(width: int) -> None:
    text = drawn(MEASURED, width)
    assert_golden(f"data_speeds_{width}", text)
    assert max(len(line) for line in text.splitlines()) <= width


def test_what_matters_is_there_at_forty_columns() -> None:
    text = drawn(MEASURED, 40)
    assert "loader is the bottleneck" in " ".join(text.split())
    assert "RandomRotation" in text


def test_trifles_are_counted_unless_all_is_asked_for() -> None:
    assert "ToTensor" not in drawn(MEASURED, 80)
    assert "and 1 more, " in drawn(MEASURED, 80)
    assert "ToTensor" in drawn(MEASURED, 80, full=True)


def test_a_stream_without_block_characters_gets_plain_ones() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    draw(Screen(stream, 80), MEASURED)
    stream.seek(0)
    text = stream.read()
    assert "########" in text
    assert "3x224x224" in text


def test_nothing_measured_draws_nothing() -> None:
    assert drawn(MeasuredLoader("loader"), 80) == ""


def test_names_from_a_run_do_not_command_the_terminal_or_the_page() -> None:
    bad = StageTime("\x1b[31m<script>alert(1)</script>", "transform", 1.0, 1.0, 1.0, file="<b>", line=1)
    hostile = replace(MEASURED, loader="<i>\x1b]0;x", stages=Stages((bad,), 1, 1.0, 1.0))
    assert "\x1b" not in drawn(hostile, 80)
    page = fragment(hostile)
    assert "<script" not in page
    assert "<i>\\" not in page
    assert "\x1b" not in page


def test_the_page_has_every_table_and_the_sentences() -> None:
    page = fragment(MEASURED)
    sentences = ("the loader is the bottleneck", "multiples of 1/255", "num_workers=4", "padding")
    for words in ("RandomRotation", *sentences):
        assert words in page


def test_the_sentence_names_what_limits() -> None:
    speeds = MEASURED.speeds
    assert speeds is not None
    assert limits(speeds).startswith(
        "the loader is the bottleneck: the training step could process 7.2 times as many samples; "
        "training waits for data 86%"
    )
    assert "workers take 1.80 s to start" in limits(speeds)
    assert "to start" not in limits(replace(speeds, persistent=True))
    faster = replace(speeds, loader=Rate(9000.0))
    assert limits(faster).startswith(
        "the training step is the bottleneck: the loader could deliver 3.1 times as many"
    )
    assert limits(Speeds(Rate(3.0))) == ""


def test_a_sweep_is_told_as_what_training_gains() -> None:
    sweep = MEASURED.sweep
    assert sweep is not None
    assert sweep_line(sweep) == "num_workers=4, prefetch_factor=2: a training step takes 48% less time"
    assert sweep_line(replace(sweep, gain=0.01)).endswith("no clear gain for training")
    assert "1.9 times as fast" in sweep_line(replace(sweep, gain=None))
    assert "the current setting" in sweep_line(replace(sweep, best_workers=2))
    assert sweep_line(replace(sweep, best_workers=None)) == "too few settings could be measured"


def test_moving_says_how_and_whether_it_happens() -> None:
    assert moving_line(Moving(2e6, 5e6, 0.01), 2) == (
        "a batch from worker to parent: 1.91 MiB through shared memory and 4.77 MiB pickled, 10.0 ms"
    )
    assert moving_line(Moving(0.0, 30.0), 0).endswith("next to nothing (with workers; none are used now)")


def test_padding_that_saves_little_takes_no_sentence() -> None:
    assert padding_lines(Paddings((Padding("x", share=0.1, longest=0.1, bucketed=0.08),))) == []
    fixed = Padding("x", share=0.8, longest=0.4, bucketed=0.1)
    [said] = padding_lines(Paddings((fixed,)))
    assert "its longest sample saves 67%" in said
    assert "similar lengths save 78%" in said
