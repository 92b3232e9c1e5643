"""Samples that models are fed: repeats, copies, label conflicts, and training samples in evaluation.

Samples are identified by a hash of their content. That shows copies within a batch, a sample that comes again
(with the same label?), and training samples that appear in evaluation. Training is read on sampled steps,
evaluation only a little.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from clew.hooks.collect_layers.step_rows import Pending
from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.collect_loop.batch_samples import (
    MOST_SAMPLES,
    Extent,
    Hashes,
    LabelSignal,
    flattened,
    is_constant,
    is_readable,
    joint_hashes,
    labels_of,
    predicted_labels,
)
from clew.hooks.collect_loop.evaluation_sections import EvaluationBatches
from clew.hooks.entry.guard import Guard
from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import user_line
from clew.measure.deferred_values import Late
from clew.measure.loss_arguments import loss_arguments
from clew.measure.nested_tensors import data_tensors
from clew.records import signals
from clew.records.facts.loss_facts import LabelsFact
from clew.records.facts.step_facts import FedFact
from clew.records.signal_types import names
from clew.records.site import Line, Site

SAMPLE_SIGNALS = names(
    signals.SAMPLE_COUNT,
    signals.SAMPLE_DISTINCT,
    signals.SAMPLE_CONSTANT,
    signals.SAMPLE_CONSTANT_FEATURES,
    signals.SAMPLE_FEATURES,
    signals.SAMPLE_SEEN,
    signals.SAMPLE_RELABELLED,
    signals.SAMPLE_SLICED,
)
LABEL_SIGNALS = names(
    signals.LABEL_COUNT,
    signals.LABEL_CLASSES,
    signals.LABEL_TOP_SHARE,
    signals.LABEL_SWITCHES,
    signals.LABEL_FIRST,
    signals.LABEL_ACCURACY,
)
TARGET_SIGNALS = names(
    signals.TARGET_GIVEN,
    signals.TARGET_CALLS,
)
CLASSIFYING = {"cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
MOST_KNOWN = 1 << 17  # samples of a model that are remembered: a few megabytes
MOST_CLASSES = 256  # counted one by one; more than this are words, not classes
UNKNOWN = -1  # label of a sample that came without one

Safely = Callable[..., None]


@dataclass
class Fed:
    """What one model has been fed so far."""

    labels: dict[int, int] = field(default_factory=dict)  # content hash -> its label
    extent: Extent = field(default_factory=Extent)
    signal: LabelSignal = field(default_factory=LabelSignal)


@dataclass
class FedLot:
    """The samples of the last training forward."""

    fed: Fed
    rows: Tensor
    hashes: Hashes
    row: Any  # values of SAMPLE_SIGNALS, written at the end of the step
    alone: bool  # the model has no other argument
    labels: Tensor | None = None


class Feeding:
    """Each method is called under its own guard: one that fails is switched off, the rest go on."""

    def __init__(self, sink: Sink, late: Late, guard: Guard, step: Callable[[], int]) -> None:
        self._sink = sink
        self._step = step
        self._pending = Pending(sink, late)
        self._fed: dict[int, Fed] = {}
        self._lots: list[FedLot] = []
        self._targets: list[tuple[Site, list[float], Any]] = []
        self._counts: dict[Site, dict[int, list[int]]] = {}
        self._counted: dict[Site, int] = {}
        self._announced: set[Any] = set()
        self._last_input: int = 0
        self.source = 0  # id of the loader iterator that delivered last
        self.batch: Any = None  # its last batch, while something may compare with it
        self.loaders: dict[int, int] = {}  # id of an iterator -> number of its loader
        self.names: dict[int, list[str]] = {}  # number of a loader -> the program's names for it
        self.objects: dict[int, weakref.ref[Any]] = {}  # a loader's number -> the loader
        self._kept: dict[int, Any] = {}  # the same, kept alive while experiments may need them
        self._keepers: set[object] = set()
        self.evaluations = EvaluationBatches(self, sink, late, step)
        safely = partial(guard.inner, "feeding")
        self.training: Safely = safely(self._training)
        self.labelled: Safely = safely(self._labelled)
        self.evaluated: Safely = safely(self.evaluations.forward)
        self.eval_loss: Safely = safely(self.evaluations.loss)
        self.end_of_section: Safely = safely(self.evaluations.end_of_section)
        self.commit: Safely = safely(self._commit)

    def fed_to(self, root: Root) -> Fed:
        return self._fed.setdefault(root.index, Fed())

    def keep_loaders(self) -> Callable[[], None]:
        """Keep loaders alive that the program releases, until the returned function is called."""
        keeper = object()
        self._keepers.add(keeper)
        return partial(self._release, keeper)

    def _release(self, keeper: object) -> None:
        self._keepers.discard(keeper)
        if not self._keepers:
            self._kept.clear()

    def iterated(self, index: int, loader: Any) -> None:
        """The program iterates over its loader of this number."""
        self.objects[index] = weakref.ref(loader)
        if self._keepers:
            self._kept[index] = loader  # `for x in DataLoader(…)` releases it at once

    def existing_loaders(self) -> dict[int, Any]:
        """The loaders that still exist, by number."""
        alive = {n: loader for n, ref in self.objects.items() if (loader := ref()) is not None}
        return {**alive, **self._kept}

    @property
    def loader(self) -> int | None:
        """Number of the loader that delivered last."""
        return self.loaders.get(self.source)

    def phases(self) -> dict[int, str]:
        """The phase that each loader fed, by its number: "train" or another one."""
        return {loader: phase for phase, _, loader, *_ in self._announced if loader is not None}

    def announce(self, phase: str, root: Root, names: list[str]) -> int:
        """Write the `fed` fact, once per source. Returns its number."""
        loader = self.loader
        key = (phase, root.name, loader, *([] if loader is not None else names))
        known = self._announced
        if key not in known:
            known.add(key)
            file, line = user_line()
            names = self.names.get(loader, []) if loader is not None else names
            shown = tuple(names[:8])
            fed = FedFact(phase=phase, root=root.name, loader=loader, names=shown, file=file, line=line)
            fed.write(self._sink, self._step())
        return UNKNOWN if loader is None else loader

    # -- training --

    def _training(self, root: Root, args: Any, kwargs: Any) -> None:
        """The samples of a measured training forward."""
        tensors = data_tensors((args, kwargs))
        self.announce("train", root, [])
        hashes = joint_hashes(tensors)
        if hashes is None:
            return
        tensor = tensors[0]
        rows, fed = flattened(tensor), self.fed_to(root)
        fed.extent.add(rows)
        known = sum(int(h) in fed.labels for h in hashes)
        row = np.array(
            [
                tensor.shape[0],
                len(np.unique(hashes)) / len(hashes),
                float(is_constant(rows).mean()),
                fed.extent.constant,
                tensor[0].numel(),
                known / len(hashes),
                np.nan,
                self._sliced(tensor),
            ]
        )
        self._lots.append(FedLot(fed, rows, hashes, row, alone=len(tensors) == 1))
        self._pending.put(SAMPLE_SIGNALS, Site("", "input[0]", phase="train", root=root.name), row)

    def _sliced(self, tensor: Tensor) -> float:
        """Rows of the tensor that the batch was just sliced from; 0 if it was not sliced."""
        again, self._last_input = id(tensor) == self._last_input, id(tensor)
        base = tensor._base
        if again or base is None or base.dim() != tensor.dim() or base.shape[1:] != tensor.shape[1:]:
            return 0.0
        return float(base.shape[0])

    def _labelled(self, kind: str, args: Any, kwargs: Any, where: Line) -> None:
        """A loss was called on a sampled step: its targets, and the labels among them."""
        prediction, target, *_ = loss_arguments(args, kwargs)
        if not isinstance(target, Tensor) or not is_readable(target):
            return
        site = Site(op=kind, file=where[0], line=where[1], phase="train")
        given = self._came_from_loader(target)
        labels = labels_of(target) if kind in CLASSIFYING else None
        self._targets.append((site, [given, 1.0], None))
        lot = self._lots[-1] if self._lots else None
        if labels is None or lot is None or len(labels) != lot.row[0] or given == 0.0:
            return
        lot.labels = labels[:MOST_SAMPLES]
        self._compare(lot, lot.labels)
        self._targets[-1] = (site, [given, 1.0], label_row(labels, predicted_labels(prediction, len(labels))))
        self._count(site, labels, prediction)

    def _came_from_loader(self, target: Tensor) -> float:
        """1 if the loader's batch contains this target, 0 if not; NaN if there is no such batch."""
        if self.batch is None:
            return float("nan")
        flat = target.detach().reshape(-1)[:MOST_SAMPLES]
        for tensor in data_tensors(self.batch):
            if tensor.numel() != target.numel() or not is_readable(tensor):
                continue
            if bool((tensor.detach().reshape(-1)[:MOST_SAMPLES].to(flat.dtype) == flat).all()):
                return 1.0
        return 0.0

    def _compare(self, lot: FedLot, labels: Tensor) -> None:
        """Check whether samples seen before have the same label as then."""
        before = [lot.fed.labels.get(int(h), UNKNOWN) for h in lot.hashes]
        pairs = [(old, int(new)) for old, new in zip(before, labels, strict=True) if old != UNKNOWN]
        if pairs:
            lot.row[6] = sum(old != new for old, new in pairs) / len(pairs)

    def _count(self, site: Site, labels: Tensor, prediction: Any) -> None:
        counts = self._counts.setdefault(site, {})
        predicted = predicted_labels(prediction, len(labels))
        right = (predicted == labels) if predicted is not None else None
        for label in labels.unique().tolist():
            if label not in counts and len(counts) >= MOST_CLASSES:
                continue
            mask = labels == label
            entry = counts.setdefault(label, [0, 0])
            entry[0] += int(mask.sum())
            entry[1] += int((mask & right).sum()) if right is not None else 0

    # -- the end of a step --

    def _commit(self, step: int) -> None:
        calls: dict[Site, int] = {}
        for site, _, _ in self._targets:
            calls[site] = calls.get(site, 0) + 1
        for site, target, labels in self._targets:
            target[1] = calls[site]
            self._pending.put(TARGET_SIGNALS, site, np.array(target))
            if labels is not None and (target[0] == 1.0 or calls[site] == 1):
                self._pending.put(LABEL_SIGNALS, site, labels)
        self._learn(step)
        self._announce_counts(step)
        self._pending.commit(step)
        self._forget()

    def _learn(self, step: int) -> None:
        for lot in self._lots:
            labels = lot.labels.tolist() if lot.labels is not None else [UNKNOWN] * len(lot.hashes)
            varied = ~is_constant(lot.rows)
            if len(lot.fed.labels) < MOST_KNOWN:
                known = zip(lot.hashes[varied].tolist(), np.array(labels)[varied].tolist(), strict=True)
                lot.fed.labels.update(known)
            if lot.labels is not None and lot.alone and lot.row[1] > 0.5:
                lot.fed.signal.add(lot.rows, lot.labels)
                if lot.fed.signal.is_full:
                    judged = lot.fed.signal.judge()
                    if judged is not None:
                        judged.write(self._sink, step)

    def _announce_counts(self, step: int) -> None:
        """Write the `labels` fact at every doubling: late ones show how the model does on each class."""
        for site in {site for site, _, labels in self._targets if labels is not None}:
            times = self._counted[site] = self._counted.get(site, 0) + 1
            if times >= 8 and times & (times - 1) == 0:
                counted = sorted(self._counts[site].items())
                counts = tuple((label, entry[0], entry[1]) for label, entry in counted)
                LabelsFact(site.op, site.file, site.line, counts).write(self._sink, step)

    def discard(self) -> None:
        """Drop what was measured: it belongs to an evaluation."""
        self._pending.discard()
        self._forget()

    def _forget(self) -> None:
        self._lots, self._targets, self.batch = [], [], None


def label_row(labels: Tensor, predicted: Tensor | None) -> Any:
    """The values of LABEL_SIGNALS."""
    _, counts = labels.unique(return_counts=True)
    switches = (labels[1:] != labels[:-1]).float().mean() if len(labels) > 1 else np.nan
    accuracy = float((predicted == labels).float().mean()) if predicted is not None else np.nan
    top = float(counts.max()) / len(labels)
    return np.array([len(labels), len(counts), top, float(switches), float(labels[0]), accuracy])
