"""The experiments are found in their folders, and their ranks say in which order they run."""

from __future__ import annotations

from collections import Counter

from clew.checks.catalog import CHECKS
from clew.labs.experiments.experiment_list import EXPERIMENTS
from clew.labs.experiments.run import chosen


def test_experiments_run_in_the_order_of_their_ranks() -> None:
    ranks = [experiment.rank for experiment in chosen()]
    assert ranks == sorted(ranks)
    assert 0 <= ranks[0] <= ranks[-1] <= 100
    assert [type(experiment) for experiment in chosen()] == list(EXPERIMENTS)


def test_each_experiment_is_found_once_and_has_a_check_of_its_name() -> None:
    names = Counter(experiment.name for experiment in EXPERIMENTS)
    assert set(names.values()) == {1}
    assert names.keys() <= {check.name for check in CHECKS}
