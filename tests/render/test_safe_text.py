from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.render.safe_text import cut, encodable, neutral, neutral_lines, short_path


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert neutral(text).isprintable()


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"]), max_size=500))
def test_ordinary_text_is_not_changed(text: str) -> None:
    assert neutral(text) == text


def test_line_breaks_become_spaces_in_a_sentence_and_lines_in_code() -> None:
    assert neutral("a\nb") == "a b"
    assert neutral_lines("if x:\n\ty()") == ["if x:", "    y()"]


def test_lone_surrogates_can_be_written() -> None:
    assert neutral("bad \udcff name").encode() == b"bad \\udcff name"


def test_stacked_marks_are_cut_down() -> None:
    assert len(neutral("a" + "\u0301" * 400)) < 10
    assert neutral("e\u0301") == "e\u0301"


@given(st.text(max_size=300), st.integers(1, 100))
def test_cut_text_has_at_most_the_limit(text: str, limit: int) -> None:
    assert len(cut(text, limit)) <= limit


def test_cut_keeps_both_ends() -> None:
    assert cut("model.encoder.layers.11.attention.weight", 20) == "model.enco…on.weight"


def test_what_a_stream_cannot_encode_becomes_an_escape() -> None:
    assert encodable("naïve → x", "ascii") == "na\\xefve \\u2192 x"
    assert encodable("naïve", "latin-1") == "naïve"


def test_paths_are_as_short_as_a_person_would_write_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert short_path(tmp_path / "work" / "src" / "train.py") == "src/train.py"
    assert short_path(tmp_path / "other.py") == "~/other.py"
    assert short_path("/usr/lib/x.py") == "/usr/lib/x.py"
