"""Rows of a sampled step: each holds the numbers of its own step."""

import math

import pytest
import torch

from clew.hooks.collect_layers.step_rows import StepMatrix
from clew.measure.deferred_values import Late
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


@pytest.mark.skipif(KERNEL is None, reason="without the compiled library every row is measured anew")
def test_a_column_that_was_not_measured_again_is_empty_and_not_the_last_steps():
    log, late = Log(), Late()
    matrix = StepMatrix(log, late, signals.UPDATE, signals.UPDATE_RATIO)
    matrix.take_histograms(False)
    slot = matrix.slot("fc", lambda: Site("fc"))
    matrix.measure(slot, torch.ones(4))
    matrix.values[slot, len(STAT_NAMES)] = 0.5  # the collector's own column
    matrix.commit(0)
    assert matrix.measure_again(slot, torch.full((4,), 2.0))
    matrix.commit(1)
    (_, first), (_, second) = log.rows
    assert (first["update.mean"], first["update.ratio"]) == (1.0, 0.5)
    assert second["update.mean"] == 2.0
    assert math.isnan(second["update.ratio"])
