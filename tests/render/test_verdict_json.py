from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

from golden_files import assert_golden
from sample_verdicts import RUN, SILENT, exploding, zero_grad

from clew.records.verdict import Verdict
from clew.render.verdict_json import dumps, verdict_json, write_json

VERDICT = Verdict((zero_grad(), exploding()), SILENT)


def test_shape_of_the_verdict() -> None:
    assert_golden("verdict_json", dumps(verdict_json(VERDICT, RUN)))


def test_nan_and_infinity_travel_as_words_in_strict_json() -> None:
    read = json.loads(
        dumps({"a": [math.nan, (math.inf, -math.inf)], "b": 1.5}), parse_constant=lambda word: 1 / 0
    )
    assert read == {"a": ["nan", ["inf", "-inf"]], "b": 1.5}


def test_json_is_ascii_so_that_nothing_in_it_acts_on_a_terminal() -> None:
    text = dumps(verdict_json(Verdict(), replace(RUN, script="\x1b[31m\u202e")))
    assert text.isascii()
    assert "\x1b" not in text


def test_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "new" / "verdict.json"
    for number in (1, 2):
        write_json(target, {"number": number})
    assert json.loads(target.read_text()) == {"number": 2}
    assert os.listdir(target.parent) == ["verdict.json"]


def test_device_is_written_to_not_replaced() -> None:
    write_json(Path("/dev/null"), {})
    assert not Path("/dev/null").is_file()
