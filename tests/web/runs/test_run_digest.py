"""The code around a finding, and its fix as a diff: only where that can be said for certain."""

from __future__ import annotations

import json

import pytest

from clew.records.finding import Finding, Severity
from clew.records.site import Site
from clew.web.runs.run_digest import Sources

TRAIN = """\
import torch
opt = torch.optim.SGD(model.parameters(), lr=10.0)
drop = nn.Dropout(p=0.95)
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
    opt.step()
"""


def finding(fix: str, line: int | None = 7, file: str | None = "/home/me/train.py") -> Finding:
    return Finding("check", "ID1", Severity.ERROR, "message", fix, site=Site(file=file, line=line))


def diff(fix: str, text: str = TRAIN) -> list[str] | None:
    found = Sources({"/home/me/train.py": text}).of_finding(finding(fix))["diff"]
    return None if found is None else [line["mark"] + line["text"] for line in found]


def test_a_missing_call_is_put_before_the_nearest_one_in_the_users_own_words():
    assert diff("optimizer.zero_grad()  # before loss.backward()") == [
        " for x, y in loader:",
        "     loss = criterion(model(x), y)",
        "+    opt.zero_grad()",
        "     loss.backward()",
        "     opt.step()",
    ]


def test_a_call_that_comes_after_is_put_after():
    assert diff("loss.item()  # after loss.backward()")[-2:] == ["+    loss.item()", "     opt.step()"]


def test_a_number_is_replaced_in_the_only_place_that_has_it():
    assert [line for line in diff("lr=0.01  # instead of 10") if line[0] != " "] == [
        "-opt = torch.optim.SGD(model.parameters(), lr=10.0)",
        "+opt = torch.optim.SGD(model.parameters(), lr=0.01)",
    ]
    assert "+drop = nn.Dropout(p=0.3)" in diff("nn.Dropout(0.3)  # instead of 0.95")


@pytest.mark.parametrize(
    "fix",
    [
        "lr=0.01  # instead of 3",  # no such number
        "return the logits: x, without torch.softmax(x, dim=1)",  # words
        "scheduler.step()  # after every epoch",  # not a call
        "scaler = GradScaler(...)  # before loss.backward()",  # not to be put in as it is
        "model.train()  # before nothing_like_it()",
    ],
)
def test_a_fix_that_is_not_certain_is_no_diff(fix):
    assert diff(fix) is None


def test_a_number_that_stands_in_two_places_is_no_diff():
    assert diff("lr=0.01  # instead of 10", TRAIN + TRAIN) is None


def test_an_optimizer_whose_name_is_unknown_is_no_diff():
    assert (
        diff(
            "optimizer.zero_grad()  # before loss.backward()", TRAIN.replace("opt.step()", "scaler.step(opt)")
        )
        is None
    )


def test_code_is_shown_around_the_line_from_what_was_kept():
    sources = Sources({"/home/me/train.py": TRAIN})
    code = sources.of_finding(finding("", line=2))["code"]
    assert (code["first"], code["line"]) == (1, 2)
    assert code["lines"] == TRAIN.splitlines()[:6]


@pytest.mark.parametrize(
    ("file", "line"), [("/etc/passwd", 1), (None, 1), ("/home/me/train.py", 99), ("/home/me/train.py", 0)]
)
def test_a_place_that_was_not_kept_has_no_code(file, line):
    found = Sources({"/home/me/train.py": TRAIN}).of_finding(finding("", line=line, file=file))
    assert found["code"] is None


@pytest.mark.parametrize("content", ["", "[]", '{"files": 3}', '{"files": {"a.py": 3}}', "{"])
def test_a_broken_file_of_sources_is_none(tmp_path, content):
    (tmp_path / "source.json").write_text(content)
    assert Sources.read(tmp_path).of_finding(finding(""))["code"] is None


def test_sources_are_read_from_the_run_folder(tmp_path):
    (tmp_path / "source.json").write_text(json.dumps({"version": 1, "files": {"/home/me/train.py": TRAIN}}))
    assert Sources.read(tmp_path).of_finding(finding(""))["code"]["lines"][-1] == "    opt.step()"
