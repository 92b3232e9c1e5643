"""Experiments in sequence: their order, their time, and how failures are handled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.run import UnknownExperiment, chosen, run_experiments
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.records.codec import json_types, plain


class Watch:
    """A clock that goes on when told to."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


WATCH = Watch()


@dataclass(frozen=True)
class Quick(Experiment):
    name = "quick"
    question = "is it quick?"
    rank = 2

    def run(self, subject, clock):
        clock.tick(0.5)
        WATCH.time += 2
        return Result({"loss": np.float32(0.5), "bad": math.inf}, [Plot("p", [0, 1], [1.0, 0.5])])


@dataclass(frozen=True)
class Endless(Experiment):
    name = "endless"
    question = "does it end?"
    rank = 3

    def run(self, subject, clock):
        while True:
            WATCH.time += 1
            clock.tick()


@dataclass(frozen=True)
class Shy(Experiment):
    name = "shy"
    question = "does it say anything?"
    rank = 1

    def run(self, subject, clock):
        raise CannotJudge("there is nothing to say", "say something")


@dataclass(frozen=True)
class Failing(Experiment):
    name = "failing"
    question = "does the step run?"
    rank = 4

    def run(self, subject, clock):
        subject.step(None)
        return Result({})


class Facts(dict):
    """A sink that keeps the last fact of each kind."""

    def fact(self, kind, step, data):
        self[kind] = data


ALL = (Quick, Endless, Shy, Failing)


def users_step(batch):
    raise ValueError("only once\nsecond line")


def ran(names=(), limit=120.0, step=users_step, progress=None):
    WATCH.time = 0.0
    facts = Facts()
    subject = Subject({}, step=step)
    experiments = chosen(names, (), ALL)
    run_experiments(subject, experiments, facts, time_limit=limit, progress=progress, now=WATCH)
    return facts


def test_they_run_by_rank_and_each_is_recorded():
    facts = ran()
    assert list(facts) == [
        "experiment.shy",
        "experiment.quick",
        "experiment.endless",
        "experiment.failing",
    ]
    assert facts["experiment.quick"] == {
        "status": "done",
        "reason": "",
        "hint": "",
        "seconds": 2.0,
        "question": "is it quick?",
        "data": {"loss": 0.5, "bad": "inf"},
        "plots": [plain(Plot("p", [0, 1], [1.0, 0.5]).recorded())],
        "exhibits": [],
    }


def test_what_can_not_be_judged_says_why_and_what_would_help():
    fact = ran(["shy"])["experiment.shy"]
    assert (fact["status"], fact["reason"], fact["hint"]) == (
        "unjudged",
        "there is nothing to say",
        "say something",
    )


def test_one_that_does_not_end_gets_a_quarter_of_the_time_and_the_next_ones_run():
    facts = ran(["endless", "failing"], limit=40.0)
    assert facts["experiment.endless"]["seconds"] == 10.0
    assert facts["experiment.endless"]["reason"] == "not finished after 10 s"
    assert facts["experiment.endless"]["hint"] == "allow more: --time-limit 80"
    assert facts["experiment.failing"]["reason"].startswith("running your step")


def test_what_is_left_when_the_time_is_up_is_not_begun():
    facts = ran(["quick", "failing"], limit=2.1)
    assert facts["experiment.quick"]["status"] == "done"
    assert facts["experiment.failing"]["reason"] == "time limit reached"


def test_a_failure_of_the_users_code_is_one_line_and_no_trace():
    fact = ran(["failing"])["experiment.failing"]
    assert fact["status"] == "unjudged"
    assert fact["reason"] == "running your step a second time failed: ValueError: only once"


def test_a_failure_of_an_experiment_itself_is_not_blamed_on_the_user():
    scope = {}  # code that is not in a file of the user's
    exec(compile("def run(self, subject, clock):\n    raise KeyError('x')", "<frozen ours>", "exec"), scope)
    kind = type("Ours", (Failing,), {"run": scope["run"]})
    facts = Facts()
    run_experiments(Subject({}), [kind()], facts)
    assert facts["experiment.failing"]["reason"] == "the experiment itself failed: KeyError: 'x'"


def test_a_step_that_exits_does_not_end_the_check():
    def leave(batch):
        raise SystemExit(1)

    assert ran(["failing"], step=leave)["experiment.failing"]["status"] == "unjudged"


def test_progress_is_told_before_each_and_at_the_end():
    told = []
    ran(["shy", "quick"], progress=lambda *given: told.append(given))
    assert told == [(0, 2, "shy", 0.0), (1, 2, "quick", 0.0), (1, 2, "quick", 0.5), (2, 2, "", 0.0)]


def test_only_and_skip_choose_and_unknown_names_are_refused_with_a_suggestion():
    assert [e.name for e in chosen(["failing", "shy"], (), ALL)] == ["shy", "failing"]
    assert [e.name for e in chosen((), ["endless", "shy"], ALL)] == ["quick", "failing"]
    with pytest.raises(UnknownExperiment, match="named 'quik'; did you mean quick"):
        chosen(["quik"], (), ALL)
    with pytest.raises(UnknownExperiment, match="choose from: endless, failing, quick, shy"):
        chosen((), ["zzz"], ALL)


def test_numbers_of_numpy_and_torch_become_plain_ones():
    given = {"a": np.int64(3), "b": torch.tensor([1.0, math.nan]), "c": (np.bool_(True), {1: None})}
    assert json_types(given) == {"a": 3, "b": [1.0, "nan"], "c": [True, {"1": None}]}
