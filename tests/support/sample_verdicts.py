"""Hand-made verdicts to draw."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site
from clew.records.verdict import Ignored, NotJudged, Verdict
from clew.render.run_summary import RunSummary

SCRIPT = """
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""

RUN = RunSummary(
    id="20261115-215301-train-a1b2",
    path=".clew/runs/20261115-215301-train-a1b2",
    script="train.py",
    state="finished",
    steps=300,
    checks=12,
)

SILENT = (
    NotJudged("vanishing-gradient", "needs 3 weight layers, has 2"),
    NotJudged("unnormalised-input", "not recorded: first_input.std"),
)


def write_script(folder: Path) -> str:
    path = folder / "train.py"
    path.write_text(dedent(SCRIPT).lstrip())
    return str(path)


def zero_grad(file: str | None = "train.py") -> Finding:
    steps = tuple(range(0, 300, 5))
    return Finding(
        check="missing-zero-grad",
        id="OPT001",
        severity=Severity.ERROR,
        message="299 of 300 steps used gradients that still held those of earlier steps: they pile up",
        fix="optimizer.zero_grad()  # before loss.backward()\nloss.backward()",
        site=Site(op="step", file=file, line=4),
        step=1,
        evidence=(
            Evidence("gradients of an earlier step were added to in 299 of 300 steps", "grad.stale"),
            Evidence(
                "the gradient norm grows", "grad.norm", None, steps, tuple(0.8 * 1.05**s for s in steps)
            ),
        ),
    )


def exploding() -> Finding:
    return Finding(
        check="exploding-gradient",
        id="GRAD002",
        severity=Severity.WARNING,
        message="the gradient norm grew 70-fold over 300 steps",
        fix="torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        site=Site(module="encoder.layers.0", param="weight"),
        step=40,
        evidence=(
            Evidence("norm", "grad.norm", None, (0, 1, 2, 3, 4), (1.0, 10.0, 1e5, math.nan, math.inf)),
        ),
        because=("OPT001",),
    )


def dead() -> Finding:
    return Finding(
        check="dead-units",
        id="ACT001",
        severity=Severity.WARNING,
        message="61% of the units of encoder.act output zero",
        fix="Lower the learning rate.",
        site=Site(module="encoder.act"),
        step=120,
        because=("GRAD002",),
    )


def softmax() -> Finding:
    return Finding(
        check="softmax-before-cross-entropy",
        id="LOSS001",
        severity=Severity.ERROR,
        message="cross_entropy got probabilities, not logits: every row of its input is ≥ 0 and sums to 1",
        fix="return self.head(x)",
        site=Site(op="cross_entropy", file="train.py", line=2, phase="train"),
        evidence=(Evidence("20 of 20 sampled batches: every row sums to 1"),),
    )


def sick(file: str | None = "train.py") -> Verdict:
    return Verdict(
        (zero_grad(file), exploding(), dead(), softmax()),
        SILENT,
        ruled_out=("frozen-parameters", "learning-rate-too-high", "silent-broadcast"),
        ignored=(Ignored("class-imbalance", "rare events are rare"),),
        other_causes=("learning-rate-too-high",),
    )


def many() -> Verdict:
    findings = [replace(dead(), id=f"X{i}", check=f"fault-{i}", because=()) for i in range(6)]
    return Verdict(tuple(findings))
