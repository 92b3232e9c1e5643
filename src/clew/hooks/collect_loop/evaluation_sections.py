"""Evaluation sections: forwards without gradients between two steps, and the mode of the model.

A section is what runs without gradients between two training steps: usually a validation.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import FrameType

from torch import nn

from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import user_line
from clew.records import signals
from clew.records.signal_types import names
from clew.records.site import Site

SIGNALS = names(
    signals.MODE_EVALUATION,
    signals.EVALUATION_FORWARDS,
    signals.EVALUATION_BATCHES,
)
DEEPEST = 12  # frames searched for a torch function that needs training mode


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
        self._tables: dict[Site, int] = {}
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
            table = self._tables.get(section.site)
            if table is None:
                table = self._sink.table(SIGNALS, [self._sink.site(section.site)])
                self._tables[section.site] = table
            row = (float(section.training), float(section.forwards), float(section.batches))
            self._sink.row(table, step, row)
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
