"""Does one sample's output depend on the other samples in its batch?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.sample_leaks import Leak, Looking, leak_of, meant, time_first_module
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.labs.snapshot.users_step.model_calls import evaluating, few_samples, model_calls, samples_known

TIME_FIRST = "it is unknown which dimension holds the samples: the data may be time-first"


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
            looked, leak, interaction = self._look(subject, snapshot, clock)
            known = samples_known(subject, batch)
        if leak is None and not looked and not interaction:
            raise CannotJudge("no model has an output per sample")
        if leak is not None and not known and not interaction:
            raise CannotJudge(TIME_FIRST, "use a DataLoader, or data with the samples first")
        data: dict[str, Any] = {"samples": batch.size, "models": looked, "meant": interaction}
        if leak is None:
            return Result({**data, "effect": 0.0})
        return Result({**data, **_told(leak)}, [_plot(leak)])

    def _look(
        self, subject: Subject, snapshot: StepSnapshot, clock: Clock
    ) -> tuple[int, Leak | None, str | None]:
        """How many calls could be judged, the first leak, and the reason if it is intended."""
        batch, looked, interaction = few_samples(subject), 0, None
        with evaluating(subject.models.values()):
            for call in model_calls(subject, snapshot, batch)[: self.calls]:
                looking = Looking(snapshot, call, batch.size)
                if not looking.others or next(call.module.parameters(), None) is None:
                    continue
                if looking.square():
                    interaction = f"{call.name} compares all samples with all others"
                if not looking.outputs():
                    continue
                if not looking.steady():
                    raise CannotJudge("the same forward gives different numbers (see nondeterministic-step)")
                looked += 1
                leak = leak_of(looking, clock, self.rounding)
                if leak is not None:
                    return looked, leak, interaction or meant(leak)
        return looked, None, interaction


def _told(leak: Leak) -> dict[str, Any]:
    where = leak.place.to_json() if leak.place else {"root": leak.call.name, "module": ""}
    sequence = time_first_module(leak)
    return {
        "effect": leak.effect,
        "row": leak.row,
        "by_sample": list(leak.by_sample),
        "place": where,
        "time_first": sequence[0] if sequence else None,
    }


def _plot(leak: Leak) -> Plot:
    return Plot(
        f"influence on the output of sample {leak.row}",
        list(range(len(leak.by_sample))),
        list(leak.by_sample),
        x_label="sample that is replaced",
        y_label="change of the output",
    )
