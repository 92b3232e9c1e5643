"""Does augmentation leave something to learn? Short trainings with the random transforms on and off."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.random_transforms import is_random, without_random_transforms
from clew.labs.experiments.tools.reference_learners import features
from clew.labs.snapshot.dataset_copy import Source, reading, source
from clew.labs.snapshot.sample_exhibits import exhibits
from clew.labs.snapshot.sample_labels import inputs_of
from clew.labs.snapshot.sample_pool import Form, captured, cut, form_of, joined_raw
from clew.labs.snapshot.step_batch import Batch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock


@dataclass(frozen=True)
class ExcessiveAugmentation(Experiment):
    name = "excessive-augmentation"
    question = "does augmentation leave enough to learn?"
    rank = 48

    least: int = 64  # samples in the dataset
    most: int = 320  # samples drawn, a quarter of them held out
    versions: int = 4  # of every sample, augmented
    steps: int = 50  # of each training
    seeds: int = 3
    seconds: float = 8.0  # for all trainings
    harmless: float = 0.6  # share of the progress that is left, at which no further seed is needed

    def run(self, subject: Subject, clock: Clock) -> Result:
        origin = source(subject)
        order = torch.randperm(origin.length, generator=torch.Generator().manual_seed(2)).tolist()
        with reading():
            if not is_random(origin, order[:2]):
                return Result({"random": False, "line": list(subject.line)})
            if origin.length < self.least:
                raise CannotJudge(
                    f"the dataset has {origin.length} samples; the experiment needs {self.least}"
                )
            plain_origin, names = without_random_transforms(origin, order[:2])
            if not names:
                raise CannotJudge(
                    "the samples are random, but no transform that can be switched off was found",
                    "keep random transforms in an attribute of the dataset: self.transform",
                )
            plain, augmented = self._drawn(subject, origin, plain_origin, order[: self.most], clock)
        data: dict[str, Any] = {"random": True, "transforms": names, "line": list(subject.line)}
        data |= {"distance": _distance(plain, augmented[0]), "samples": plain.size}
        trials = self._trials(subject, plain, augmented, clock)
        shown = [*exhibits(plain, [0, 1], subject, ["as it is"] * 2)]
        shown += exhibits(augmented[0], [0, 1], subject, ["augmented"] * 2)
        lines = [
            Plot(f"training loss {words}", range(len(curve)), curve)
            for words, curve in (("with augmentation", trials[0]["on"]), ("without", trials[0]["off"]))
        ]
        kept = [{k: v for k, v in trial.items() if k not in ("on", "off")} for trial in trials]
        return Result({**data, "trials": kept}, lines, shown)

    def _drawn(
        self, subject: Subject, origin: Source, plain: Source, order: list[int], clock: Clock
    ) -> tuple[Batch, list[Batch]]:
        """The same samples as they are, and augmented in several ways."""
        form: Form | None = None
        made: list[Batch] = []
        for version in range(self.versions):
            leaves, shape = _read(origin, order, version, clock)
            form = form or form_of(captured(subject).batch, leaves, shape, whole=False)
            made.append(form.filled(leaves, order))
        assert form is not None
        leaves, _ = _read(plain, order, 0, clock)
        return form.filled(leaves, order), made

    def _trials(
        self, subject: Subject, plain: Batch, augmented: list[Batch], clock: Clock
    ) -> list[dict[str, Any]]:
        out = list(range(plain.size // 4))
        into = list(range(plain.size // 4, plain.size))
        held, size = plain.rows(out), min(subject.batch().size, len(into))
        seconds = min(self.seconds, clock.left / 2) / (2 * self.seeds)  # for the first: the others do as much
        trials = []
        steps = self.steps
        for seed in range(self.seeds):
            arms = {"off": [plain.rows(into)], "on": [a.rows(into) for a in augmented]}
            trial: dict[str, Any] = {}
            for name, parts in arms.items():
                batches = [b for part in parts for b in cut(part, size, seed)]
                with subject.snapshot(seed=seed) as snapshot:
                    trial["start"] = _loss(snapshot, held)
                    trial[name] = _trained(snapshot, batches, steps, seconds, clock)
                    trial[f"held_{name}"] = _loss(snapshot, held)
                steps, seconds = len(trial[name]), math.inf
                trial[f"end_{name}"] = fmean(trial[name][-max(1, steps // 5) :])
            trials.append({**trial, "steps": steps})
            gain = trial["start"] - trial["held_off"]
            if gain > 0 and trial["start"] - trial["held_on"] > self.harmless * gain:
                break
        return trials


def _read(origin: Source, order: Sequence[int], version: int, clock: Clock) -> tuple[list[Any], Any]:
    raws = []
    for start in range(0, len(order), origin.batch_size):
        clock.tick()
        raws.append(origin.batch(order[start : start + origin.batch_size], seed=10_000 * version + start))
    return joined_raw(raws, len(order))


def _trained(
    snapshot: StepSnapshot, batches: list[Batch], steps: int, seconds: float, clock: Clock
) -> list[float]:
    until = time.monotonic() + seconds

    def stop(_: int, loss: float) -> bool:
        clock.tick()
        if not math.isfinite(loss):
            raise CannotJudge("the loss became non-finite in a short training")
        return time.monotonic() > until

    return snapshot.train(batches, steps, on_step=stop)


def _loss(snapshot: StepSnapshot, batch: Batch) -> float:
    snapshot.seed(0)
    return float(snapshot.loss(batch).detach())


def _distance(plain: Batch, augmented: Batch) -> float:
    """How far samples are moved, as a share of how far apart different ones are."""
    both = features([torch.cat([a, b]) for a, b in zip(inputs_of(plain), inputs_of(augmented), strict=True)])
    one, other = both[: plain.size], both[plain.size :]
    return _apart(one, other) / max(_apart(one, one.roll(1, 0)), 1e-12)


def _apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).pow(2).sum(1).mean().sqrt())
