"""The facts `culprit` and `traced` are written as they always were: old and new runs read the same."""

from __future__ import annotations

import json

from clew.labs.replay.culprits import culprit_fields
from clew.labs.replay.replay_alarm import culprit_fact
from clew.labs.replay.step_replay import ReplayAnswer
from clew.labs.snapshot.nonfinite_values import Culprit, InputStats
from clew.records.facts.nan_facts import CulpritFact, TracedFact

CULPRIT = Culprit(
    phase="forward",
    op="log",
    result="nan",
    why="the logarithm of a negative number is undefined",
    fix="clamp it",
    module="head",
    file="train.py",
    line=7,
    inputs=(InputStats("input 0", (2, 3), "float32", float("inf"), 2.0, 1, 6),),
    elements=((1, 0),),
    element_values=(float("-inf"),),
    elements_of="input 0 of log",
    bad_count=1,
    call=(2, 3),
)
WRITTEN = """{"phase": "forward", "op": "log", "result": "nan", \
"why": "the logarithm of a negative number is undefined", "fix": "clamp it", \
"module": "head", "root": null, "file": "train.py", "line": 7, "code": null, \
"inputs": [{"name": "input 0", "shape": [2, 3], "dtype": "float32", "min": "inf", "max": 2.0, \
"nonfinite": 1, "count": 6}], \
"elements": [[1, 0]], "element_values": ["-inf"], "elements_of": "input 0 of log", \
"bad_count": 1, "element_count": 0, "samples": [], "sample_count": 0, "batch": 0, "call": [2, 3], \
"micro_batch": null, "reproduced": true, "by_update": false, "notes": [], \
"sentence": "log in head is NaN: the logarithm of a negative number is undefined"}"""


def test_a_culprit_is_written_after_where_the_alarm_was() -> None:
    fact = culprit_fact("loss", ReplayAnswer(CULPRIT))
    assert json.dumps(fact.to_json()) == '{"where": "loss", "found": true, ' + WRITTEN[1:]
    assert CulpritFact.read(fact.to_json()).line == 7


def test_without_a_culprit_only_the_reason_is_written() -> None:
    fact = culprit_fact("gradient", ReplayAnswer(None, "it was finite", computed=True))
    written = {"where": "gradient", "found": False, "reason": "it was finite", "computed": True}
    assert json.dumps(fact.to_json()) == json.dumps(written)


def test_a_traced_operation_is_written_without_an_alarm() -> None:
    assert json.dumps(TracedFact(**culprit_fields(CULPRIT)).to_json()) == WRITTEN
