"""Does one sample's output depend on the other samples in its batch?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.replaced_samples import (
    TIME_FIRST,
    Leak,
    ReplacedSamples,
    leak_of,
    meant,
    time_first_module,
)
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.labs.snapshot.users_step.model_calls import (
    few_samples,
    in_mode,
    model_calls,
    samples_known,
)
from clew.records.facts.experiment_facts import CodePlace
from clew.records.facts.network_experiment_facts import BatchLeakFact


@dataclass(frozen=True)
class BatchIndependence(Experiment):
    name = "batch-leak"
    question = "does one sample's output depend on other samples?"
    rank = 12

    rounding: float = 1e-5  # of the output's size: single precision keeps seven digits
    calls: int = 4  # of models in a step; more are alike

    def run(self, subject: Subject, clock: Clock) -> Result:
        with subject.snapshot(seed=0) as snapshot:
            batch = few_samples(subject)
            judged, leak, interaction = self._first_leak(snapshot, batch, clock)
            known = samples_known(subject, batch)
        if leak is None and not judged and not interaction:
            raise CannotJudge("no model has an output per sample")
        if leak is not None and not known and not interaction:
            raise CannotJudge(TIME_FIRST, "use a DataLoader, or data with the samples first")
        found = BatchLeakFact(samples=batch.size, models=judged, meant=interaction)
        return Result(found) if leak is None else Result(_described(leak, found), [_plot(leak)])

    def _first_leak(
        self, snapshot: StepSnapshot, batch: StepBatch, clock: Clock
    ) -> tuple[int, Leak | None, str | None]:
        """How many calls could be judged, the first leak, and the reason if it is intended."""
        judged, interaction = 0, None
        with in_mode(snapshot.subject.models.values(), training=False):
            for call in model_calls(snapshot, batch)[: self.calls]:
                repeated = ReplacedSamples(snapshot, call, batch.size)
                if not repeated.possible or next(call.module.parameters(), None) is None:
                    continue
                if repeated.square():
                    interaction = f"{call.name} compares each sample with all others"
                if not repeated.base:
                    continue
                if not repeated.steady():
                    raise CannotJudge("the same forward gives different numbers (see nondeterministic-step)")
                judged += 1
                leak = leak_of(repeated, clock, self.rounding)
                if leak is not None:
                    return judged, leak, interaction or meant(leak)
        return judged, None, interaction


def _described(leak: Leak, found: BatchLeakFact) -> BatchLeakFact:
    sequence = time_first_module(leak)
    return replace(
        found,
        effect=leak.effect,
        row=leak.row,
        by_sample=leak.by_sample,
        place=leak.place or CodePlace(root=leak.call.name, module=""),
        time_first=sequence[0] if sequence else None,
    )


def _plot(leak: Leak) -> Plot:
    return Plot(
        f"influence on the output of sample {leak.row}",
        list(range(len(leak.by_sample))),
        list(leak.by_sample),
        x_label="sample that is replaced",
        y_label="change of the output",
    )
