"""DATA016 worker-seed-duplicated

## What it detects
A loader with several workers that all draw the same random numbers: the dataset keeps its own random
generator, and every worker gets a copy of it, or the `worker_init_fn` sets the same seed in each.

## Why is this bad?
Augmentation repeats from worker to worker, and again in every epoch: with four workers you get a quarter
of the intended variety.

## How to fix
Create the generator in the worker, from its own seed: `def init(i): dataset.rng =
np.random.default_rng(torch.initial_seed() + i)`. Or draw from `torch` or the global `np.random`,
which the loader seeds differently in each worker.

## Known problems
The check looks only at how the loader is set up, not at whether the random numbers matter. A generator
that `__getitem__` does not use is ignored, and so is one in a loader with a `worker_init_fn`.

## References
- PyTorch docs, torch.utils.data: randomness in multi-process data loading.
- Kerr, Using PyTorch + NumPy? You're making a mistake, 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import training_loaders
from clew.checks.run_view import RunView
from clew.records.facts.step_facts import FedFact, LoaderFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class WorkerSeedDuplicated(Check):
    id = "DATA016"
    name = "worker-seed-duplicated"
    needs = (
        LoaderFact,
        FedFact,
    )

    workers: int = 2  # worker processes; a single one can't repeat another

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for loader in training_loaders(run):
            if loader.workers < self.workers:
                continue
            if loader.generator is not None and loader.worker_init is None:
                what = (
                    f"each of the {loader.workers} workers has a copy of {loader.dataset}.{loader.generator}"
                )
                yield self._finding(loader, f"{what}, in the same state")
            elif loader.worker_init == "constant" and (loader.random or loader.generator is not None):
                what = f"worker_init_fn sets the same seed in each of the {loader.workers} workers"
                yield self._finding(loader, what)

    def _finding(self, loader: LoaderFact, what: str) -> Finding:
        name = loader.generator or "rng"
        return self.finding(
            Severity.WARNING,
            message=f"{what}: they draw the same random numbers",
            fix=f"worker_init_fn=lambda i: setattr(get_worker_info().dataset, '{name}', "
            "np.random.default_rng(torch.initial_seed()))  # each worker has its own seed"
            if loader.generator
            else "worker_init_fn=lambda i: np.random.seed(torch.initial_seed() % 2**32)",
            site=loader.site,
            step=0,
            evidence=Evidence(
                f"num_workers={loader.workers}, worker_init_fn: {loader.worker_init or 'none'}"
            ),
        )
