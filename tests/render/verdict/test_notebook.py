from __future__ import annotations

import html.parser
import subprocess
import sys

from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site
from clew.records.verdict import Verdict
from clew.render.run_summary import RunSummary
from clew.render.verdict.notebook import run_html

HOSTILE = "<script>alert(1)</script>"


def finding(name: str = "dead-units", because: tuple[str, ...] = (), ident: str = "A1") -> Finding:
    return Finding(
        name,
        ident,
        Severity.WARNING,
        f"units of {HOSTILE} are dead",
        f"a fix with {HOSTILE}",
        site=Site(module=HOSTILE, file=f"/tmp/{HOSTILE}.py", line=3),
        evidence=(Evidence(f"text {HOSTILE}"),),
        because=because,
    )


def summary(**changes: object) -> RunSummary:
    fields = {"id": "run-1", "path": "/x", "script": HOSTILE, "state": "finished", "steps": 3, "checks": 9}
    return RunSummary(**{**fields, **changes})


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in ("br", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "path":
            assert self.open.pop() == tag


def checked(text: str) -> str:
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert "script" not in tags.seen
    return text


def test_everything_from_the_run_is_escaped_and_every_element_closed():
    text = checked(run_html(Verdict((finding(),)), summary(), [(0.0, 2.0), (1.0, 1.0)]))
    assert HOSTILE not in text
    assert "dead-units" in text
    assert "loss 2 → 1, steps 0–1" in text


def test_what_follows_from_a_finding_stands_beneath_it():
    text = checked(run_html(Verdict((finding(), finding("loss-stuck", ("A1",), "B1"))), summary()))
    assert "leads to loss-stuck" in text
    assert text.count("border-left") == 1


def test_a_clean_run_and_an_idle_one_say_so():
    assert "no problems found" in checked(run_html(Verdict(), summary()))
    assert "nothing to check" in checked(run_html(Verdict(), summary(idle="no step")))


def test_a_curve_is_broken_where_it_is_not_finite():
    points = [(0.0, 1.0), (1.0, 2.0), (2.0, float("nan")), (3.0, 1.0), (4.0, 1.5)]
    text = checked(run_html(Verdict(), summary(), points))
    assert text.count("M") == 2
    assert "nan" not in text.partition("<path")[2].partition("/>")[0]


def test_a_curve_without_a_finite_point_is_left_out():
    assert "<svg" not in checked(run_html(Verdict(), summary(), [(0.0, float("nan")), (1.0, float("inf"))]))


PROGRAM = """
import torch, clew
from torch import nn
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with clew.attach(model, optimizer, quiet=True, run_root=RUNS) as session:
    for step in range(30):
        nn.functional.mse_loss(model(torch.randn(4, 3)), torch.randn(4, 2)).backward()
        optimizer.step()
    live = session._repr_html_()
assert "missing-zero-grad" in session._repr_html_()
assert "running" in live
text = clew.open_run(session.path)._repr_html_()
assert "missing-zero-grad" in text and "<svg" in text and "finished" in text
print("shown")
"""


def test_a_session_and_an_opened_run_show_themselves(tmp_path):
    program = PROGRAM.replace("RUNS", repr(str(tmp_path)))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "shown\n", done.stderr
