from __future__ import annotations

import math
import struct
import zlib
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from golden_files import assert_golden
from hypothesis import given
from hypothesis import strategies as st

from clew.records.codec import read
from clew.records.facts.experiment_facts import RecordedPlot
from clew.records.finding import Evidence
from clew.render.images import fitted, image_of, png
from clew.render.line_plot import GUTTER, PlotAxis, PlotLine, axes, plot_rows, plot_svg

FALLING = PlotLine("loss", tuple(map(float, range(50))), tuple(math.exp(-n / 10) for n in range(50)))


def test_a_falling_line_in_braille_and_in_ascii() -> None:
    fancy, plain = plot_rows(FALLING), plot_rows(FALLING, plain=True)
    assert "".join(plain).isascii()
    assert {len(fancy), len(plain)} == {11}
    assert_golden("plot_of_a_falling_loss", "\n".join([*fancy, *plain]) + "\n")


def test_a_falling_line_begins_at_the_upper_left_and_ends_at_the_lower_right() -> None:
    rows = plot_rows(FALLING, 20, 4, plain=True)
    assert rows[0].endswith("+*")
    assert rows[3].rstrip().endswith("*")
    assert len(rows[3]) == len(rows[4])


def test_rates_lie_on_a_log_axis_with_powers_of_ten() -> None:
    line = PlotLine("t", (1e-6, 1e-4, 1e-2, 1.0), (1.0, 2.0, 3.0, 4.0), "learning rate", "loss", log_x=True)
    rows = plot_rows(line, 61, 4, plain=True)
    assert rows[-2].split() == ["1e-06", "0.0001", "0.01", "1"]
    ends = [len(row) for row in reversed(rows[:4])]  # where the line leaves a row for the next
    assert [b - a for a, b in pairwise(ends)] == [20, 20, 10]


def test_values_that_are_not_finite_are_marked_and_break_the_line() -> None:
    line = PlotLine("t", (0.0, 1.0, 2.0), (1.0, math.inf, math.nan))
    assert plot_rows(line, 10, 2, plain=True)[0].count("x") == 2
    assert plot_svg(line).count("×") == 2


@pytest.mark.parametrize("values", [(), (math.nan,), (math.inf, -math.inf)])
def test_nothing_finite_draws_nothing(values: tuple[float, ...]) -> None:
    line = PlotLine("t", tuple(map(float, range(len(values)))), values)
    assert plot_rows(line) == []
    assert plot_svg(line) == ""


@pytest.mark.parametrize("value", [0.0, 3.0, -1e300, 1e308])
def test_a_level_line_has_one_label(value: float) -> None:
    rows = plot_rows(PlotLine("t", (0.0, 1.0), (value, value)), 12, 4, plain=True)
    assert sum("+*" in row for row in rows) == 1


def test_huge_spans_do_not_overflow() -> None:
    line = PlotLine("t", (0.0, 1.0, 2.0), (-1.7e308, 0.0, 1.7e308))
    assert plot_rows(line, 12, 4)
    assert plot_svg(line).count("polyline") == 1


def test_a_loss_that_explodes_at_the_end_of_a_range_test_does_not_flatten_the_rest() -> None:
    y = (*(2.3 - 0.1 * n for n in range(18)), 1e6)
    line = PlotLine("t", tuple(10.0 ** (n / 3 - 6) for n in range(19)), y, log_x=True)
    assert axes(line)[1].high < 10
    assert axes(PlotLine("t", line.x, (1.0, *[2.0] * 18), log_x=True))[1] == PlotAxis(1.0, 2.0, False)


def test_points_that_do_not_pair_up_are_left_out_and_words_are_numbers() -> None:
    recorded = {"title": "t", "x": [1, 2, 3], "y": ["nan", "inf"], "log_x": True}
    line = PlotLine.read(read(RecordedPlot, recorded))
    assert line.x == (1.0, 2.0)
    assert math.isnan(line.y[0])
    assert line.y[1] == math.inf
    assert PlotLine.read(read(RecordedPlot, {"x": "text", "y": None})).x == ()


def test_evidence_by_something_else_than_steps_gets_a_log_axis_where_it_spans_decades() -> None:
    evidence = Evidence("t", values=(1.0, 2.0), x=(1e-5, 1e-1), x_label="learning rate")
    assert PlotLine.of(evidence).log_x
    assert not PlotLine.of(Evidence("t", values=(1.0, 2.0), steps=(1, 1000))).log_x


def read_png(data: bytes) -> tuple[int, int, bytes]:
    """Width, height and the raw rows, each checksum compared."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, size, packed = 8, (0, 0), b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        body = data[at + 4 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length]) == (zlib.crc32(body),)
        if body[:4] == b"IHDR":
            size = struct.unpack(">II", body[4:12])
        elif body[:4] == b"IDAT":
            packed += body[4:]
        at += 12 + length
    return (*size, zlib.decompress(packed))


def test_a_picture_becomes_a_png_of_its_pixels() -> None:
    image = image_of([[[255, 0, 0], [0, 255, 0]], [7, 300]])
    assert image is not None
    width, height, raw = read_png(png(image))
    assert (width, height) == (2, 2)
    assert raw == b"\0\xff\0\0\0\xff\0" + b"\0\x07\x07\x07\xff\xff\xff"


@pytest.mark.parametrize("data", [None, [], "text", [[]], [1, 2], {"a": 1}])
def test_what_is_no_picture_is_none(data: object) -> None:
    assert image_of(data) is None


def test_pictures_are_made_to_fit() -> None:
    small = fitted([[(1, 2, 3)] * 8] * 8, 20, 20)
    assert (len(small), len(small[0])) == (16, 16)
    large = fitted([[(9, 9, 9)] * 200] * 50, 20, 20)
    assert (len(large), len(large[0])) == (5, 20)
    assert large[0][0] == (9, 9, 9)


FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(st.lists(st.tuples(FLOATS, FLOATS), max_size=30), st.booleans(), st.booleans(), st.integers(4, 70))
def test_any_points_are_drawn_within_the_width_asked_for(
    points: list[tuple[float, float]], log: bool, plain: bool, width: int
) -> None:
    line = PlotLine.read(
        RecordedPlot("t", tuple(x for x, _ in points), tuple(y for _, y in points), log_x=log)
    )
    rows = plot_rows(line, width, 4, plain=plain)
    assert all(len(row) <= GUTTER + max(width, 10) for row in rows)
    drawn = plot_svg(line)
    assert not drawn or ElementTree.fromstring(drawn).tag == "svg"
    assert "nan" not in drawn


@given(st.recursive(st.none() | FLOATS | st.text(max_size=3), lambda inner: st.lists(inner, max_size=4)))
def test_anything_recorded_as_a_picture_is_one_or_none(data: object) -> None:
    image = image_of(data)
    assert image is None or read_png(png(image))[:2] == (len(image[0]), len(image))
