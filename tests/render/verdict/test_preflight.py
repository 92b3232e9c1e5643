from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from golden_files import Paper, assert_golden
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_preflights import RUN, damaged, healthy, label_noise, rate, run, samples, sick
from sample_verdicts import write_script

from clew.records.finding import Exhibit, Finding, Severity
from clew.records.verdict import Ignored, Verdict
from clew.render.verdict.preflight_html import fragment, page
from clew.render.verdict.preflight_results import Preflight, junit, preflight_json
from clew.render.verdict.preflight_terminal import render_preflight
from clew.render.verdict.verdict_terminal import render_verdict
from clew.render.verdict_json import dumps

HOSTILE = "\x1b[31mred <script>alert(1)</script> \"quoted\" & 'so' ]]> \x07\u202e"


@pytest.fixture(autouse=True)
def in_folder_with_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    write_script(tmp_path)


def drawn(preflight: Preflight, *, width: int = 80, full: bool = False, **stream: str | bool) -> str:
    paper = Paper(**stream)  # type: ignore[arg-type]
    render_preflight(preflight, RUN, stream=paper, width=width, full=full)
    return paper.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_pre_flight_at_width(width: int) -> None:
    text = drawn(sick(), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert_golden(f"preflight_at_{width}", text)


@pytest.mark.parametrize("width", [40, 60])
def test_on_a_narrow_terminal_nothing_is_wider_than_it(width: int) -> None:
    text = drawn(sick(), width=width, full=True)
    assert max(map(len, text.splitlines())) <= width
    assert "✗ hyperparameters-off" in text


def test_pre_flight_in_plain_ascii() -> None:
    text = drawn(sick(), encoding="ascii")
    assert text.isascii()
    assert_golden("preflight_in_ascii", text)


def test_pre_flight_in_full_draws_effects_whole() -> None:
    text = drawn(sick(), full=True)
    assert "first the learning rate" in text
    assert "first the learning rate" not in drawn(sick())


def test_pre_flight_without_a_fault_says_so() -> None:
    text = drawn(healthy())
    assert "no problems found (4 experiments)" in text
    assert "no check reads its result" not in text
    assert_golden("preflight_healthy", text)


def test_pictures_have_colour_on_a_terminal_that_can_and_not_where_colour_is_unwanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "▀" in drawn(sick(), terminal=True)
    assert "\x1b[" in drawn(sick(), terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = drawn(sick(), terminal=True)
    assert "▀" not in plain
    assert "38;5" not in plain


def test_an_experiment_that_no_check_judges_has_not_passed() -> None:
    preflight = Preflight.read(run(), Verdict(), "train.py")
    assert preflight.names("passed") == ()
    assert {a.reason for a in preflight.answers} == {"no check reads its result", "there is no loader"}


def test_a_finding_that_the_user_ignores_is_neither_passed_nor_failed() -> None:
    verdict = Verdict(ignored=(Ignored("label-noise", "known"),))
    answer = Preflight.read(run(), verdict, "train.py").answers[-1]
    assert (answer.state, answer.reason) == ("unjudged", "found, but ignored: known")


def test_advice_fails_nothing() -> None:
    verdict = Verdict((replace(label_noise(), severity=Severity.ADVICE),))
    preflight = Preflight.read(run(), verdict, "train.py")
    assert preflight.ok
    assert "label-noise" in preflight.names("passed")
    assert "5 of 320 samples" in drawn(preflight)


def test_shape_of_the_json() -> None:
    data = preflight_json(sick(), RUN)
    for answer in data["preflight"]["experiments"]:
        answer["plots"] = len(answer["plots"])
    for finding in data["findings"]:
        finding["exhibits"] = [e["kind"] for e in finding["exhibits"]]
    assert_golden("preflight_json", dumps(data))
    assert json.loads(dumps(preflight_json(sick(), RUN)))["preflight"]["ok"] is False


def test_junit_has_a_case_for_each_experiment() -> None:
    tree = ElementTree.fromstring(junit(sick()))
    suite = tree[0]
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "3",
        "errors": "0",
        "skipped": "2",
    }
    states = {case.get("name"): [child.tag for child in case] for case in suite}
    assert states["nondeterministic-step"] == []
    assert states["label-noise"] == ["failure"]
    assert states["loader-corrupts-data"] == ["skipped"]
    failure = suite.find("testcase[@name='label-noise']/failure")
    assert failure is not None
    assert failure.text is not None
    assert "sample: sample 117, labelled 3, looks like 8" in failure.text
    assert "proof: tested on a snapshot: with this fix the loss after 30 steps is 0.41" in failure.text
    skipped = suite.find("testcase[@name='loader-corrupts-data']/skipped")
    assert skipped is not None
    assert skipped.get("message") == ("not judged: there is no loader; clew.examine(model, loss_fn, loader)")


def test_junit_counts_findings_of_ordinary_checks_as_cases_of_their_own() -> None:
    other = replace(rate(), check="missing-zero-grad", id="OPT001")
    verdict = Verdict((other,), ruled_out=("label-noise",))
    preflight = Preflight.read(run(), verdict, "train.py")
    suite = ElementTree.fromstring(junit(preflight))[0]
    assert suite.get("failures") == "1"
    assert "1 passed, 5 not judged, 1 other finding" in drawn(preflight)
    assert [c.get("name") for c in suite if c.find("failure") is not None] == ["missing-zero-grad"]


def test_html_shows_plots_as_svg_and_pictures_as_png_and_fetches_nothing() -> None:
    html = page(sick(), RUN)
    assert html.count("<svg") == 2  # the range test and the wave
    assert html.count('src="data:image/png;base64,') == 2
    assert "http" not in html.replace("http-equiv", "")
    assert "prefers-color-scheme:dark" in html
    for name in ("label-noise", "hyperparameters-off", "cannot-overfit-batch", "a warm and funny film"):
        assert name in html


def test_html_is_well_formed() -> None:
    text = fragment(sick(), RUN).replace("<br>", "<br/>")
    text = __import__("re").sub(r"<(img|meta)([^>]*)>", r"<\1\2/>", text)
    assert ElementTree.fromstring(text).get("class") == "clew"


def hostile() -> Preflight:
    finding: Finding = replace(
        label_noise(),
        message=HOSTILE,
        fix=HOSTILE,
        exhibits=(Exhibit("text", HOSTILE, HOSTILE), Exhibit("image", HOSTILE, [["x", None], 3, [1e99]])),
    )
    made = Preflight.read(run(), Verdict((finding,)), HOSTILE)
    answers = tuple(replace(a, question=HOSTILE, reason=HOSTILE, hint=HOSTILE) for a in made.answers)
    return replace(made, answers=answers)


def test_text_of_others_commands_neither_terminal_nor_browser_nor_parser() -> None:
    assert "\x1b" not in drawn(hostile())
    html = page(hostile(), RUN)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert ElementTree.fromstring(junit(hostile())).tag == "testsuites"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("status", "reason", "hint", "seconds", "question", "data", "plots", "exhibits")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(FIELDS), JSON),
    st.sampled_from(["image", "text", "wave", "numbers"]),
    JSON,
)
def test_whatever_a_damaged_run_holds_it_is_drawn(fact: dict[str, Any], kind: str, data: Any) -> None:
    view = damaged(fact)
    finding = replace(label_noise(), exhibits=(*view.exhibits("label-noise"), Exhibit(kind, "c", data)))
    preflight = Preflight.read(view, Verdict((finding,)), "train.py")
    assert "label-noise" in drawn(preflight)
    assert "label-noise" in page(preflight, RUN)
    assert json.loads(dumps(preflight_json(preflight, RUN)))["preflight"]["failed"] == ["label-noise"]
    assert ElementTree.fromstring(junit(preflight)).tag == "testsuites"


def test_proof_and_samples_stand_in_an_ordinary_verdict_too() -> None:
    paper = Paper()
    render_verdict(Verdict((label_noise(),)), RUN, stream=paper, width=80)
    text = paper.getvalue()
    assert "proof      tested on a snapshot: with this fix the loss after 30 steps is 0.41" in text
    assert "samples" in text
    assert "sample 9, labelled negative" in text


def test_beyond_six_samples_they_are_counted_unless_all_are_asked_for() -> None:
    texts = [Exhibit("text", f"sample {n}", "words") for n in range(9)]
    preflight = Preflight.read(run(), Verdict((replace(label_noise(), exhibits=tuple(texts)),)), "train.py")
    assert "and 3 more" in drawn(preflight)
    assert "sample 8" not in drawn(preflight)
    assert "sample 8" in drawn(preflight, full=True)


def test_samples_of_the_experiment_reach_the_finding_of_its_check() -> None:
    assert [e.kind for e in run().exhibits("label-noise")] == [s["kind"] for s in samples()]
