"""Types of the signal register: signal, family of signals, group and chart.

The list itself is in `signals`. Nothing here needs torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

HEADROOM = "headroom"
HISTOGRAM = re.compile(r"(.+)\.log2hist\.(\d\d)")
SIGNED = re.compile(r"(.+)\.histogram\.(lo|hi|\d\d)")


@dataclass(frozen=True)
class Group:
    """A chapter of the browser's list of signals; chapters have the order of `signals.GROUPS`."""

    name: str
    layered: bool = False  # its series belong to layers, and are listed in forward order
    compared: bool = False  # runs are compared by its series


@dataclass(frozen=True)
class Chart:
    """A chart at the top of the charts page. Charts have the order of their signals' groups."""

    title: str  # empty: each chart has the title of its series
    together: bool = True  # all series in one chart, rather than one chart for each
    large: bool = False
    robust: bool = False  # the axis leaves out a few outliers
    by_place: bool = False  # its lines are of one signal, and differ in their place
    compared: int | None = None  # position of this chart when runs are compared; None: only on request


MapScale = Literal["log", "linear", "share", "diverging"]


@dataclass(frozen=True)
class LayerHeatMap:
    """A map of layers × steps on the page of layers, one colour per value."""

    position: int  # in the list of maps; no other map has it
    scale: MapScale
    good: tuple[float, float] | None = None  # range of the values in a healthy run
    kept: bool = False  # a small report, too, has the series of each layer
    partial: bool = False  # NaN where it has no meaning, which is not drawn as a broken value


@dataclass(frozen=True)
class Signal:
    """A named series of numbers: what is recorded, where, when, and how the browser shows it."""

    name: str
    group: Group
    title: str
    meaning: str
    unit: str = ""  # "s", "B", "share" (0 to 1), "count", or empty for a number without a unit
    when: str = "sampled steps"
    site: str = "–"
    chart: Chart | None = None  # on the charts page; None: only in the list of all signals
    line: str = ""  # its name in a chart that it shares; empty: the series' label
    glance: bool = False  # shown beside a layer in the graph
    layer_map: LayerHeatMap | None = None  # on the page of layers; None: not offered there

    @property
    def written(self) -> str:
        """The name as the documentation writes it."""
        return self.name


@dataclass(frozen=True)
class Family(Signal):
    """Signals with the same prefix, whose number depends on the run: `metric.accuracy`."""

    placeholder: str = "name"

    @property
    def written(self) -> str:
        return f"{self.name}.<{self.placeholder}>"

    def member(self, name: object) -> str:
        """The full name of a member."""
        return f"{self.name}.{name}"

    def known_as(self, signal: str) -> Signal:
        """A member, as the browser shows it."""
        own = signal.removeprefix(f"{self.name}.")
        return replace(self, name=signal, title=self.title or own)


@dataclass(frozen=True)
class Statistic:
    """One of the numbers recorded for every measured tensor, in the kernel's order."""

    name: str
    words: str
    meaning: str
    unit: str = ""


STATISTICS = (
    Statistic("mean", "mean", "mean of the finite elements"),
    Statistic("std", "standard deviation", "standard deviation of the finite elements"),
    Statistic("min", "minimum", "smallest finite element"),
    Statistic("max", "maximum", "largest finite element"),
    Statistic("norm", "norm", "2-norm of the finite elements"),
    Statistic("zeros", "zeros", "share of elements that are exactly zero", "share"),
    Statistic("nonfinite", "non-finite values", "NaN and infinities", "count"),
)


@dataclass(frozen=True)
class TensorSignals:
    """The statistics of one kind of tensor, such as `activation.mean`, and its histograms if it has any."""

    prefix: str
    group: Group
    title: str
    meaning: str
    site: str
    when: str = "sampled steps"
    log2hist: bool = False  # a histogram by powers of two in 32 bins, as 255ths
    histogram: bool = False  # a signed histogram in 40 bins, on few of the sampled steps
    glance: tuple[str, ...] = ()  # the statistics that are shown beside a layer in the graph
    layer_maps: tuple[tuple[str, LayerHeatMap], ...] = ()  # by statistic, where the page of layers has one
    headroom_map: LayerHeatMap | None = None  # of the headroom, which is computed from what is recorded
    signals: tuple[Signal, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "signals", tuple(self._signal(statistic) for statistic in STATISTICS))

    def _signal(self, statistic: Statistic) -> Signal:
        return Signal(
            f"{self.prefix}.{statistic.name}",
            self.group,
            f"{self.title} {statistic.words}",
            statistic.meaning,
            unit=statistic.unit,
            when=self.when,
            site=self.site,
            glance=statistic.name in self.glance,
            layer_map=dict(self.layer_maps).get(statistic.name),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all its statistics, in the kernel's order."""
        return tuple(signal.name for signal in self.signals)

    @property
    def mean(self) -> Signal:
        return self.signals[0]

    @property
    def std(self) -> Signal:
        return self.signals[1]

    @property
    def min(self) -> Signal:
        return self.signals[2]

    @property
    def max(self) -> Signal:
        return self.signals[3]

    @property
    def norm(self) -> Signal:
        return self.signals[4]

    @property
    def zeros(self) -> Signal:
        return self.signals[5]

    @property
    def nonfinite(self) -> Signal:
        return self.signals[6]

    @property
    def headroom_name(self) -> str:
        """The bits between its values and the limit of their number format; computed, not recorded."""
        return f"{self.prefix}.{HEADROOM}"

    def log2hist_name(self, number: int) -> str:
        """The share of the elements in one bin of the histogram by powers of two."""
        return f"{self.prefix}.log2hist.{number:02d}"

    def histogram_name(self, part: str) -> str:
        """Name of the signed histogram's range, `lo` and `hi`, or of one bin, `00` to `39`."""
        return f"{self.prefix}.histogram.{part}"


def is_histogram(signal: str) -> bool:
    return HISTOGRAM.fullmatch(signal) is not None or SIGNED.fullmatch(signal) is not None


def names(*signals: Signal) -> tuple[str, ...]:
    """Their names in the store."""
    return tuple(signal.name for signal in signals)
