"""Rows of a sampled step: each holds the numbers of its own step."""

import math

import pytest
import torch

from clew.hooks.collect_layers.step_rows import StepMatrix
from clew.hooks.collect_layers.trained_models import ParameterName
from clew.measure.deferred_values import Late
from clew.measure.gradient_norm import Addresses
from clew.measure.stats import KERNEL, STAT_NAMES
from clew.records import signals
from clew.records.site import Site


class Log:
    """Keeps the rows that are written, by signal."""

    def __init__(self):
        self._tables, self.rows = [], []

    def site(self, site):
        return 0

    def table(self, names, sites, dtype="f8"):
        self._tables.append(names)
        return len(self._tables) - 1

    def row(self, table, step, values):
        self.rows.append((step, dict(zip(self._tables[table], values.tolist(), strict=True))))


def again(matrix, slot, name, tensor):
    assert matrix.measure_again(slot, tensor)


def anew(matrix, slot, name, tensor):
    matrix.measure(matrix.slot(name, name.site), tensor)


def together(matrix, slot, name, tensor):
    parameter = torch.nn.Parameter(tensor)
    assert matrix.measure_together([(parameter, name)], Addresses([parameter], gradients=False)) is not None


@pytest.mark.skipif(KERNEL is None, reason="without the compiled library every row is measured anew")
@pytest.mark.parametrize("second", [again, anew, together])
def test_a_column_that_nobody_fills_is_empty_and_not_the_last_steps(second):
    log, late, name = Log(), Late(), ParameterName(None, "fc", "weight", 4)
    matrix = StepMatrix(log, late, signals.UPDATE, signals.UPDATE_RATIO)
    matrix.take_histograms(False)
    slot = matrix.slot(name, lambda: Site("fc"))
    matrix.measure(slot, torch.ones(4))
    matrix.values[slot, len(STAT_NAMES)] = 0.5  # the collector's own column
    matrix.commit(0)
    second(matrix, slot, name, torch.full((4,), 2.0))
    matrix.commit(1)
    (_, first), (_, then) = log.rows
    assert (first["update.mean"], first["update.ratio"]) == (1.0, 0.5)
    assert then["update.mean"] == 2.0
    assert math.isnan(then["update.ratio"])
