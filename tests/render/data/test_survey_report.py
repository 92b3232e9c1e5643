"""A survey of the data on the terminal and in HTML: what there is, at any width."""

from __future__ import annotations

import io

import pytest
from golden_files import Paper, assert_golden

from clew.records.dataset_survey import (
    Between,
    CopiedPair,
    Corrupt,
    Count,
    DatasetSurvey,
    Duplicates,
    FieldSurvey,
    LabelSurvey,
    Outlier,
    SampleOrder,
)
from clew.render.data.survey_report import draw, fragment
from clew.render.screen import Screen

IMAGE = FieldSurvey(
    name="image", role="input", kind="image", samples=1996,
    shapes=(Count("3×32×32", 1994), Count("1×32×32", 2)),
    dtypes=(Count("float32", 1996),), low=0.0, high=1.0, mean=0.4731, std=0.2517, zeros=0.012,
)  # fmt: skip
LABEL = FieldSurvey(
    name="label", role="label", kind="number", samples=1996, dtypes=(Count("int64", 1996),),
    low=0.0, high=9.0, mean=4.4, std=2.8,
)  # fmt: skip
TIMES = {0: 900, 1: 300, 2: 250, 3: 200, 4: 150, 5: 100, 6: 56, 8: 30, 9: 10}
CLASSES = tuple(Count(str(label), samples) for label, samples in TIMES.items())
TRAIN = DatasetSurvey(
    split="train_loader", role="train", dataset="Photos", total=50_000, samples_read=1996, seconds=12.3,
    random="seeded",
    fields=(IMAGE, LABEL, FieldSurvey(name="path", kind="text", samples=1996, dtypes=(Count("str", 1996),))),
    labels=LabelSurvey("label", samples=1996, classes=9, counts=CLASSES, missing=(7,), neighbours=1700,
                  switches=0.02, by_chance=0.75, deviations=-69.0),
    order=SampleOrder("SequentialSampler", batches=16, batch_size=32),
    exact=Duplicates("content", 1996, copies=12, groups=11, conflicting=2, share=0.14,
                     pairs=(CopiedPair(17, 403, "3", "5"), CopiedPair(20, 951, "1", "1"))),
    near=Duplicates("picture", 1996, copies=1, groups=1, share=0.01,
                    pairs=(CopiedPair(4, 77, "1", "1", 0.04),)),
    outliers=(Outlier(88, "scale", "image", 120.0, 0.5, 0.8), Outlier(91, "blank", "image")), outlier_count=2,
    corrupt=(Corrupt(5, "OSError: image file is truncated"), Corrupt(812, "OSError: truncated")),
    corrupt_count=2,
)  # fmt: skip
VAL = DatasetSurvey(
    split="val_loader", role="eval", total=400, samples_read=400, seconds=2.0,
    fields=(FieldSurvey(name="0", role="input", kind="vector", samples=400, shapes=(Count("13", 400),),
                        dtypes=(Count("float64", 400),), low=-3.2, high=1680.0, mean=68.1, std=215.0),),
    exact=Duplicates(reason="a sample has different values each time it is read"),
    near=Duplicates(reason="a sample has different values each time it is read"),
)  # fmt: skip
PAIR = Between(
    "train_loader", "val_loader", coverage=0.04,
    exact=Duplicates("content", 400, copies=31, share=1.0, pairs=(CopiedPair(4, 9),)),
)  # fmt: skip
UNREAD = DatasetSurvey(split="stream", stopped="the dataset can't be copied")


def drawn(paper: io.StringIO, width: int, full: bool = False) -> str:
    draw(Screen(paper, width), [TRAIN, VAL, UNREAD], [PAIR], full=full)
    return paper.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_survey_at_common_widths(width: int) -> None:
    text = drawn(Paper(), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert_golden(f"data_survey_{width}", text)


def test_every_number_of_the_page_is_on_the_screen_too() -> None:
    page, screen = fragment([TRAIN, VAL, UNREAD], [PAIR]), drawn(Paper(), 120)
    for told in ("3×32×32", "0.473", "12 exact", "88", "812", "no sample of class 7", "31 exact copies"):
        assert told in page
        assert told in screen


def test_names_from_the_program_can_not_break_the_page_or_the_screen() -> None:
    evil = DatasetSurvey(
        split="<script>x</script>\x1b[31m", total=2, samples_read=2,
        fields=(FieldSurvey(name="<b>\x1b]0;t\x07", role="input", kind="text", samples=2),),
        labels=LabelSurvey("y", samples=2, classes=1, counts=(Count("<i>\x1b[2J", 2),)),
        corrupt=(Corrupt(0, "ValueError: <img src=x>\x1b[31m"),), corrupt_count=1,
    )  # fmt: skip
    page, paper = fragment([evil], []), Paper()
    draw(Screen(paper, 80), [evil], [], full=True)
    assert not any(tag in page for tag in ("<script", "<b>\x1b", "<i>", "<img"))
    assert "\x1b" not in page + paper.getvalue()


def test_all_classes_are_there_if_all_are_asked_for() -> None:
    many = DatasetSurvey(
        split="train", total=400, samples_read=400,
        labels=LabelSurvey("y", samples=400, classes=40, counts=tuple(Count(f"c{n}", 10) for n in range(40))),
    )  # fmt: skip
    brief, full = Paper(), Paper()
    draw(Screen(brief, 80), [many], [], full=False)
    draw(Screen(full, 80), [many], [], full=True)
    assert "and 28 smaller classes" in brief.getvalue()
    assert "c39" in full.getvalue()
