"""A hand-made pre-flight to draw: one experiment of each outcome, with a plot and samples of each kind."""

from __future__ import annotations

import math
from typing import Any

from fake_run import Fact, FakeRun

from clew.checks.run_view import RunView
from clew.records.finding import Evidence, Exhibit, Finding, Proof, Severity
from clew.records.site import Site
from clew.records.verdict import NotJudged, Verdict
from clew.render.run_summary import RunSummary
from clew.render.verdict.preflight_results import Preflight


def damaged(fact: dict[str, Any]) -> RunView:
    """A run of which one fact was written by nobody knows whom."""
    recorded = FakeRun()
    recorded.facts.append(Fact("experiment.label-noise", 0, fact))
    return recorded.view()


RUN = RunSummary(
    id="20261115-215301-train-a1b2",
    path=".clew/runs/20261115-215301-train-a1b2",
    script="train.py",
    state="finished",
    steps=3,
    checks=12,
)

RATES = [10 ** (-6 + n / 8) for n in range(49)]
LOSSES = [2.3 - 1.8 / (1 + math.exp(-(math.log10(x) + 2.5) * 3)) + 40 * max(x - 0.3, 0) for x in RATES]
RANGE_TEST = {
    "title": "learning-rate range test",
    "x": RATES,
    "y": [*LOSSES[:-2], "inf", "nan"],
    "x_label": "learning rate",
    "y_label": "loss",
    "log_x": True,
}
CROSS = [[255 if row == column or row + column == 7 else 0 for column in range(8)] for row in range(8)]
FLAG = [[[200, 30, 30] if row < 4 else [240, 240, 240] for _ in range(8)] for row in range(8)]


def samples() -> list[dict[str, Any]]:
    return [
        {"kind": "image", "caption": "sample 117, labelled 3, looks like 8", "data": CROSS},
        {"kind": "image", "caption": "sample 4, labelled 0, looks like 6", "data": FLAG},
        {"kind": "text", "caption": "sample 9, labelled negative", "data": "a warm and funny film"},
        {"kind": "wave", "caption": "sample 12, labelled yes", "data": [math.sin(n / 9) for n in range(200)]},
        {"kind": "numbers", "caption": "sample 5, labelled 1", "data": [0.25 * n for n in range(30)]},
    ]


def fact(question: str, seconds: float, **more: Any) -> dict[str, Any]:
    usual = {
        "status": "done",
        "reason": "",
        "hint": "",
        "seconds": seconds,
        "question": question,
        "data": {},
        "plots": [],
        "exhibits": [],
    }
    return {**usual, **more}


def run() -> RunView:
    recorded = FakeRun()
    hint = "clew.examine(model, loss_fn, loader)"
    no_loader = {"status": "unjudged", "reason": "there is no loader", "hint": hint}
    twice = fact("does the same step give the same numbers twice?", 0.12)
    facts = {
        "nondeterministic-step": twice,
        "cannot-overfit-batch": fact("can the network memorise a few samples?", 4.1),
        "loader-corrupts-data": fact("does the loader return the dataset's data?", 0.0, **no_loader),
        "hyperparameters-off": fact("at which learning rates does the loss fall?", 7.3, plots=[RANGE_TEST]),
        "excessive-augmentation": fact("is the augmented data still the same task?", 0.0, **no_loader),
        "label-noise": fact("are there samples whose label is likely wrong?", 12.9, exhibits=samples()),
    }
    for name, data in facts.items():
        recorded.fact(f"experiment.{name}", 0, **data)
    return recorded.view()


def label_noise() -> Finding:
    return Finding(
        check="label-noise",
        id="EXP024",
        severity=Severity.WARNING,
        message="5 of 320 samples seem to carry the label of another",
        fix="look at them; correct or drop them",
        evidence=(Evidence("a model that has not seen them says otherwise, at 97% on average"),),
        exhibits=tuple(Exhibit.from_json(sample) for sample in samples()),
        proof=Proof("without them", 30, 3, 2.3, 0.41, (2.2, 2.4), (0.4, 0.5), True),
    )


def rate() -> Finding:
    return Finding(
        check="hyperparameters-off",
        id="EXP004",
        severity=Severity.WARNING,
        message="the learning rate 1e-06 is far below 0.003, where the loss falls fastest",
        fix="lr=0.003",
        site=Site(op="step", file="train.py", line=4),
    )


def stuck() -> Finding:
    return Finding(
        check="cannot-overfit-batch",
        id="EXP001",
        severity=Severity.ERROR,
        message="the network can't memorise 8 samples: the loss stays at 2.3",
        fix="first the learning rate",
        because=("EXP004",),
    )


def sick() -> Preflight:
    verdict = Verdict(
        (label_noise(), rate(), stuck()),
        (
            NotJudged("loader-corrupts-data", "there is no loader"),
            NotJudged("excessive-augmentation", "same"),
        ),
        ("nondeterministic-step",),
    )
    return Preflight.read(run(), verdict, "train.py")


def healthy() -> Preflight:
    names = ("nondeterministic-step", "cannot-overfit-batch", "hyperparameters-off", "label-noise")
    return Preflight.read(run(), Verdict(ruled_out=names), "train.py")
