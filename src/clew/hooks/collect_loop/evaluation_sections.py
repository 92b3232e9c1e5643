"""Evaluation sections: the forwards without gradients between two training steps, usually a validation.

For each section, the forwards are counted and the mode of the model is noted. Inputs, labels and predictions
are measured in its first batches only: a few show how they were prepared, and whether training has seen them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.collect_loop.batch_samples import (
    flattened,
    is_constant,
    is_readable,
    joint_hashes,
    labels_of,
    predicted_labels,
)
from clew.hooks.entry.sink import Sink, SiteTables
from clew.hooks.entry.user_line import names_in_callers, user_line
from clew.measure.deferred_values import Late
from clew.measure.loss_arguments import loss_arguments
from clew.measure.nested_tensors import data_tensors, first_tensor
from clew.measure.readable_tensors import has_values, shape_of
from clew.measure.stats import STAT_NAMES
from clew.records import signals
from clew.records.facts.loss_facts import ConfusionFact
from clew.records.facts.step_facts import FedFact
from clew.records.signal_types import names
from clew.records.site import Site

if TYPE_CHECKING:
    from clew.hooks.collect_loop.seen_samples import Feeding

SECTION_SIGNALS = names(
    signals.MODE_EVALUATION,
    signals.EVALUATION_FORWARDS,
    signals.EVALUATION_BATCHES,
)
DEEPEST = 12  # frames searched for a torch function that needs training mode

MOST_BATCHES = 8  # batches of a section that are measured
MOST_AT_FIRST = 64  # in the first three: a part of the set may be known from training, and the rest not
EVERY_SECTION = 16  # sections that are all measured at first; later those whose number is a power of two
MOST_CLASSES = 64  # of a confusion matrix
INPUTS = 2  # arguments of the model that are measured
EVAL_INPUT_SIGNALS = signals.EVAL_INPUT.names
EVAL_SIGNALS = names(
    signals.EVAL_SOURCE,
    signals.EVAL_SAMPLES,
    signals.EVAL_SEEN,
    signals.EVAL_KNOWN,
)


@dataclass
class EvaluationSection:
    site: Site
    training: bool
    forwards: int = 0
    batches: int = 0  # from a loader, one directly after the other


class EvaluationSections:
    """Counts the forwards of the open section, and writes it when a step ends."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._tables = SiteTables(sink)
        self._by_root: dict[int, EvaluationSection] = {}

    @property
    def is_open(self) -> bool:
        return bool(self._by_root)

    def forward(self, root: Root, module: nn.Module, from_loader: bool) -> None:
        """A root module ran without gradients."""
        section = self._by_root.get(root.index)
        if section is None:
            if module.training and _statistics_are_wanted():
                return
            file, line = user_line()
            site = Site("", phase="eval", root=root.name, file=file, line=line)
            section = self._by_root[root.index] = EvaluationSection(site, module.training)
        section.training = section.training and module.training
        section.forwards += 1
        section.batches += from_loader

    def close(self, step: int) -> None:
        """The section is over."""
        for section in self._by_root.values():
            row = (float(section.training), float(section.forwards), float(section.batches))
            self._sink.row(self._tables.table(SECTION_SIGNALS, section.site), step, row)
        self._by_root = {}


def _statistics_are_wanted() -> bool:
    """Whether we are inside `torch.optim.swa_utils.update_bn`, which uses training mode on purpose."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(DEEPEST):
        if frame is None:
            return False
        if frame.f_code.co_name == "update_bn":
            return True
        frame = frame.f_back
    return False


class EvaluationBatches:
    """Measures forwards without gradients."""

    def __init__(self, feeding: Feeding, sink: Sink, late: Late, step: Callable[[], int]) -> None:
        self._feeding = feeding
        self._sink = sink
        self._late = late
        self._step = step
        self._tables = SiteTables(sink)
        self._sources: dict[Any, int] = {}
        self._sections = 0
        self._batches = 0  # in this section
        self._confusion: dict[tuple[str, int], dict[tuple[int, int], int]] = {}
        self._paired = False  # the last output was compared with the loader's labels
        self._last: tuple[Root, int] | None = None

    @property
    def wanted(self) -> bool:
        """Whether another batch of this section would be measured."""
        number = self._sections
        few = number < EVERY_SECTION or number & (number - 1) == 0
        return few and self._batches < (MOST_AT_FIRST if number < 3 else MOST_BATCHES)

    def forward(self, root: Root, args: Any, kwargs: Any, output: Any) -> None:
        """A model ran without gradients."""
        wanted = self.wanted
        self._batches += 1
        self._paired, self._last = True, None
        if not wanted:
            return
        tensors = data_tensors((args, kwargs))
        if not tensors:
            return
        source = self._source(root, tensors[0])
        self._stats(root, tensors)
        self._samples(root, tensors, source)
        self._paired, self._last = self._pair(root, source, output), (root, source)

    def loss(self, kind: str, args: Any, kwargs: Any) -> None:
        """A loss of the last output: its targets are the labels, if the loader did not show them."""
        if self._paired or self._last is None:
            return
        self._paired = True
        prediction, target, *_ = loss_arguments(args, kwargs)
        labels = labels_of(target)
        if labels is not None:
            self._add(*self._last, labels, predicted_labels(prediction, len(labels)))

    def end_of_section(self) -> None:
        """Training continues: record how the labels of the section compare with the predictions."""
        self._sections += 1
        self._batches = 0
        self._feeding.batch = None
        for (root, source), counts in self._confusion.items():
            rows = tuple((label, answer, count) for (label, answer), count in sorted(counts.items()))
            ConfusionFact(root, source, rows).write(self._sink, self._step())
        self._confusion = {}

    @property
    def running(self) -> bool:
        """Whether anything was evaluated since the last step."""
        return self._batches > 0

    def _source(self, root: Root, tensor: Tensor) -> int:
        """The loader's number; without a loader, a number for the program's name of the input."""
        batch = self._feeding.batch
        delivered = any(shape_of(t)[:1] == shape_of(tensor)[:1] for t in data_tensors(batch))
        loader = self._feeding.loader if delivered else None
        names = [] if loader is not None else names_in_callers(tensor)
        key = (root.name, loader, *names[:1])
        known = self._sources.get(key)
        if known is None:
            known = self._sources[key] = len(self._sources)
            shown = self._feeding.names.get(loader, []) if loader is not None else names
            file, line = user_line()
            fed = FedFact("eval", known, root.name, loader, tuple(shown[:8]), file, line)
            fed.write(self._sink, self._step())
        return known

    def _stats(self, root: Root, tensors: list[Tensor]) -> None:
        for position, tensor in enumerate(tensors[:INPUTS]):
            if tensor.is_floating_point() and has_values(tensor):
                row = np.full(len(STAT_NAMES), np.nan)
                self._late.stats(tensor, row)
                site = Site("", f"input[{position}]", phase="eval", root=root.name)
                self._write(EVAL_INPUT_SIGNALS, site, row)

    def _samples(self, root: Root, tensors: list[Tensor], source: int) -> None:
        """Record how many of the samples training has seen before."""
        known = self._feeding.fed_to(root).labels
        found = joint_hashes(tensors) if known else None
        if found is None:
            return
        hashes = found[~is_constant(flattened(tensors[0]))]
        seen = sum(h in known for h in hashes.tolist())
        site = Site("", phase="eval", root=root.name)
        self._write(EVAL_SIGNALS, site, np.array([source, len(hashes), seen, len(known)], dtype=np.float64))

    def _pair(self, root: Root, source: int, output: Any) -> bool:
        """Compare the output with the loader's labels, if there is no doubt which they are."""
        first = first_tensor(output)
        if self._feeding.batch is None or first is None or not is_readable(first):
            return False
        candidates = [
            t
            for t in data_tensors(self._feeding.batch)
            if not t.is_floating_point() and shape_of(t)[:1] == first.shape[:1] and labels_of(t) is not None
        ]
        if len(candidates) != 1:
            return False
        labels = labels_of(candidates[0])
        if labels is None:
            return False
        return self._add(root, source, labels, predicted_labels(first, len(labels)))

    def _add(self, root: Root, source: int, labels: Tensor, predicted: Tensor | None) -> bool:
        if predicted is None or len(predicted) != len(labels):
            return False
        counts = self._confusion.setdefault((root.name, source), {})
        for pair in zip(labels.tolist(), predicted.tolist(), strict=True):
            if max(pair) < MOST_CLASSES and min(pair) >= 0:
                counts[pair] = counts.get(pair, 0) + 1
        return True

    def _write(self, recorded: tuple[str, ...], site: Site, row: Any) -> None:
        step, write = self._step() - 1, self._sink.row  # the step that it follows
        if step < 0:
            return
        table = self._tables.table(recorded, site)
        self._late.then(lambda: write(table, step, row))
