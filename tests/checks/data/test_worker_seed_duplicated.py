from __future__ import annotations

from typing import Any

import pytest
from data_runs import LOOP, fed, loader
from fake_run import FakeRun, findings

from clew.checks.data.worker_seed_duplicated import WorkerSeedDuplicated
from clew.records.finding import Severity

CHECK = WorkerSeedDuplicated()


def run(**of_loader: Any) -> FakeRun:
    return fed(loader(FakeRun(), **{"num_workers": 2, **of_loader}))


def test_a_generator_that_every_worker_copies_is_a_warning() -> None:
    (found,) = findings(CHECK, run(generator="rng"))
    assert (found.severity, found.site.file, found.site.line) == (Severity.WARNING, *LOOP)
    assert "each of the 2 workers has a copy of Images.rng" in found.message


def test_the_same_seed_for_each_worker_is_a_warning_if_anything_is_drawn() -> None:
    (found,) = findings(CHECK, run(worker_init="constant", random=True))
    assert "worker_init_fn sets the same seed" in found.message
    assert not findings(CHECK, run(worker_init="constant"))


@pytest.mark.parametrize(
    "healthy", [{}, {"generator": "rng", "num_workers": 1}, {"generator": "rng", "worker_init": "given"}]
)
def test_one_worker_or_a_seed_of_its_own_is_healthy(healthy: dict[str, Any]) -> None:
    assert not findings(CHECK, run(**healthy))
