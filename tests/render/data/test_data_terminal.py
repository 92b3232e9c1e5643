"""What `clew data` draws: loaders, one sample stage by stage, and a loader that failed."""

import pytest
from golden_files import Paper, assert_golden

from clew.records.data_report import Report
from clew.records.finding import Evidence, Finding, Severity
from clew.records.sample_views import (
    ErrorFrame,
    Failure,
    FieldView,
    LoaderView,
    SamplePath,
    StageView,
    ValueView,
)
from clew.records.site import Site
from clew.records.verdict import Verdict
from clew.render.data.data_html import fragment, page
from clew.render.data.data_json import batches_json, samples_json
from clew.render.data.data_terminal import render_data
from clew.render.data.loader_failure import render_failure

SLOPE = [[[10 * (r + c), 20 * r, 20 * c] for c in range(12)] for r in range(12)]
FLIPPED = [row[::-1] for row in SLOPE]


def tensor(name: str, shape: tuple[int, ...], low: float, high: float, dtype: str = "float32") -> FieldView:
    middle = (low + high) / 2
    return FieldView(name, "tensor", dtype, shape, low, high, middle, (high - low) / 4)


def picture(index: int, label: str, data: object, title: str = "") -> ValueView:
    parts = (tensor("0", (3, 12, 12), 0.0, 1.0), FieldView("1", "int", low=3.0, high=3.0, text="3"))
    return ValueView(title or f"sample {index}", index, label, "image", data, None, parts)


PICTURES = LoaderView(
    name="train_loader",
    role="train",
    number=0,
    kind="map",
    file="train.py",
    line=12,
    dataset="Subset of Pets",
    length=1500,
    batch_size=32,
    workers=2,
    sampler="RandomSampler",
    shuffled=True,
    stages=("Pets", "RandomCrop", "default_collate"),
    samples=(picture(17, "3 (cat)", SLOPE), picture(4, "1 (a very long name of a class)", SLOPE)),
    rows=(picture(17, "3 (cat)", FLIPPED), picture(4, "1 (a very long name of a class)", SLOPE)),
    rows_of="model",
    batch=(tensor("0", (32, 3, 12, 12), 0.0, 1.0), tensor("1", (32,), 0.0, 9.0, "int64")),
    inputs=(tensor("input", (32, 3, 12, 12), -2.0, 2.0),),
    remarks=("between loader and model, values from 0 to 1 become -2 to 2",),
    notes=("sample 8 could not be read: OSError: truncated",),
)
VALIDATION = LoaderView("val_loader", "eval", kind="map", dataset="Pets", length=20, batch_size=4)
FINDING = Finding(
    "class-imbalance",
    "DATA001",
    Severity.WARNING,
    "class 3 has 91% of the samples",
    "weight the loss",
    site=Site(file="train.py", line=12),
    evidence=(Evidence("1,365 of 1,500 samples are of class 3"),),
)
REPORT = Report((PICTURES, VALIDATION), verdict=Verdict((FINDING,)), what="train.py", seconds=3.2)


def lines(*views: ValueView) -> Report:
    return Report((LoaderView("loader", kind="map", dataset="Rows", samples=views, length=3),), what="x.py")


def stage(name: str, kind: str, data: object, **more: object) -> StageView:
    made = tensor("sample", (3, 12, 12), 0.0, 1.0)
    return StageView(name, kind, 1, "train.py", 5, 0.00012, made=made, view=picture(1, "", data), **more)


WAY = Report(
    (
        LoaderView(
            "train_loader",
            kind="map",
            way=SamplePath(
                1,
                0,
                (
                    stage(
                        "Pets.load",
                        "method",
                        SLOPE,
                        given=FieldView("sample", "int", low=1.0, high=1.0, text="1"),
                    ),
                    stage("Flip", "transform", FLIPPED, random=True, given=tensor("x", (3, 12, 12), 0, 1)),
                    StageView("Fails", "transform", 1, "train.py", 9, error="ValueError: no such picture"),
                ),
                "ValueError: no such picture",
            ),
        ),
    ),
    what="train.py",
    seconds=0.2,
)
FAILURE = Failure(
    "collate",
    "RuntimeError: stack expects each tensor to be equal size",
    "train_loader",
    1,
    (4, 17, 9),
    17,
    "default_collate",
    (ErrorFrame("train.py", 20, "collate", "return torch.stack(rows)"),),
    details=("sample 17: 0 3×30×32 float32", "the other 7: 0 3×32×32 float32"),
)


@pytest.mark.parametrize("width", [80, 120])
def test_loaders_with_pictures_and_findings(width):
    paper = Paper()
    render_data(REPORT, stream=paper, width=width)
    assert_golden(f"data_loaders_{width}", paper.getvalue())
    assert max(map(len, paper.getvalue().splitlines())) <= width


def test_in_colour_the_pictures_are_half_blocks(monkeypatch):
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    paper = Paper(terminal=True)
    render_data(REPORT, stream=paper, width=80)
    assert "▀" in paper.getvalue()
    assert "\x1b[38;2;" in paper.getvalue()


def test_waves_text_and_numbers_take_a_line_each():
    wave = [0.0, 0.5, -1.0, 0.2] * 40
    views = (
        ValueView("sample 0", 0, "2", "wave", wave, 8000, (tensor("audio", (8000,), -1.0, 0.5),)),
        ValueView("sample 1", 1, "spam", "text", "the first line\nand \x1b[31mred words " * 9),
        ValueView("sample 2", 2, "", "numbers", [0.1234567, 2.0, 30000.0] * 12),
    )
    paper = Paper()
    render_data(lines(*views), stream=paper, width=80)
    assert_golden("data_lines", paper.getvalue())
    assert "\x1b" not in paper.getvalue()


def test_a_stream_without_unicode_gets_plain_characters():
    paper = Paper("ascii")
    render_data(REPORT, stream=paper, width=80)
    render_data(WAY, stream=paper, width=80)
    render_failure(FAILURE, stream=paper, width=80)
    assert "train_loader" in paper.getvalue()


def test_one_sample_stage_by_stage():
    paper = Paper()
    render_data(WAY, stream=paper, width=80)
    assert_golden("data_way", paper.getvalue())


def test_a_loader_that_failed():
    paper = Paper()
    render_failure(FAILURE, "train.py", stream=paper, width=80)
    assert_golden("data_failure", paper.getvalue())


def test_the_page_escapes_what_it_shows():
    hostile = "<script>alert(1)</script>"
    shown = LoaderView(hostile, dataset=hostile, stages=(hostile,), remarks=(hostile,), notes=(hostile,),
                         samples=(ValueView(hostile, 0, hostile, "text", hostile),))  # fmt: skip
    drawn = page(Report((shown,), what=hostile, notes=(hostile,)))
    assert "<script>" not in drawn
    assert "&lt;script&gt;" in drawn
    assert fragment(REPORT).count("data:image/png;base64,") == 4


def test_each_sample_is_written_beside_its_row_in_the_batch():
    samples = samples_json(REPORT, 3)["samples"]
    assert [(s["id"], s["source"], s["kind"]) for s in samples] == [
        ("17", "dataset", "image"),
        ("17", "model", "image"),
        ("4", "dataset", "image"),
        ("4", "model", "image"),
    ]
    batches = batches_json(REPORT, 3)["batches"]
    assert [(b["source"], len(b["inputs"]), len(b["targets"])) for b in batches] == [
        ("loader", 1, 1),
        ("model", 1, 0),
    ]
