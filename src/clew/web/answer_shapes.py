"""The shapes of the API's answers, each defined once.

They are the types of the answers; the OpenAPI document, the reference in docs/api.md and the types of the
browser (ui/src/answers.ts) are generated from them by `scripts/docs`. Within version 1 of the API fields are
added, never removed or given another meaning.

A class of a shape that is `total=False` lists the fields that may be absent. Shapes with a field called
`class` or `from` are written as a call, since these are Python keywords.

What a run recorded is passed on as it is in the file: `Annotated[Any, shape, note]` names its shape, a
dataclass that `records.codec` writes. An older version of Clew may have written less than these fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, get_args

from clew.records.codec import keyed
from clew.records.facts.loss_facts import LabelsFact
from clew.records.facts.step_facts import LoaderFact
from clew.records.network import Graph
from clew.records.signal_types import MapScale
from clew.records.step_costs import VERSION, FlameFrame, ModuleCost, Profile, StepMemory
from clew.render.data.data_json import DataContent
from clew.render.html_bundle import PageInfo
from clew.render.network.graph_layout import GraphLayout

SeverityWord = Literal["error", "warning", "advice"]
SEVERITIES: tuple[SeverityWord, ...] = get_args(SeverityWord)  # the worst first
StateWord = Literal["running", "finished", "failed", "killed", "empty", "unreadable"]
VerdictWord = Literal["ready", "pending", "none", "failed"]
AxisWord = Literal["step", "wall", "epoch"]
ScaleWord = MapScale
Numbers = list[float | None]  # null: not finite, or not recorded
NumberOrWord = float | str  # "nan", "inf" and "-inf" where JSON has no number


class ErrorText(TypedDict):
    """What is wrong, in one line."""

    code: str
    message: str


class ErrorAnswer(TypedDict):
    """Any answer that is not 200."""

    error: ErrorText


class SiteJson(TypedDict, total=False):
    """Where in the program: what is not known is absent or null."""

    module: str | None
    op: str | None
    file: str | None
    line: int | None
    phase: str | None
    root: str | None
    param: str | None


# -- the verdict: exactly `clew why --json` --


class _EvidenceBase(TypedDict):
    text: str
    signal: str | None
    site: SiteJson | None
    steps: list[int]
    values: list[NumberOrWord]


class EvidenceJson(_EvidenceBase, total=False):
    """One observation, with the numbers behind it where there is a series."""

    x: Annotated[list[float], "position of each value, if not by step"]
    x_label: Annotated[str, "such as learning rate"]


class ExhibitJson(TypedDict):
    """A sample of the user's data."""

    kind: Annotated[str, "image, text, numbers or wave"]
    caption: str
    data: Annotated[Any, "image: rows of 0–255 or of [r, g, b]; text: a string; numbers and wave: a list"]


class ProofJson(TypedDict):
    """The same steps without and with the fix, on a snapshot."""

    fix: str
    steps: int
    seeds: int
    before: NumberOrWord
    after: NumberOrWord
    before_spread: list[NumberOrWord]
    after_spread: list[NumberOrWord]
    helped: bool | None


class _FindingBase(TypedDict):
    check: str
    id: str
    severity: SeverityWord
    confidence: str
    message: str
    site: SiteJson
    step: int | None
    evidence: list[EvidenceJson]
    fix: str
    because: list[str]


class FindingJson(_FindingBase, total=False):
    """A check's conclusion: what is wrong, where, on what evidence and how to fix it."""

    exhibits: list[ExhibitJson]
    proof: ProofJson | None


class JudgedRun(TypedDict):
    """The run that a verdict is about."""

    id: str
    path: str
    script: str
    state: str
    steps: int
    started: float | None
    ranks: int
    checks: int
    damage: list[str]
    incidents: list[str]
    idle: str | None


class NotJudgedJson(TypedDict):
    """A check that could not judge."""

    check: str
    reason: str


class IgnoredJson(TypedDict):
    """A check that is switched off."""

    check: str
    why: str


class VerdictJson(TypedDict):
    """What `clew why --json` writes."""

    run: JudgedRun
    findings: list[FindingJson]
    not_judged: list[NotJudgedJson]
    ruled_out: list[str]
    ignored: list[IgnoredJson]


# -- runs --


class RootCause(TypedDict):
    """The finding to read first."""

    check: str
    severity: SeverityWord
    message: str


class FindingCounts(TypedDict):
    """Findings by severity."""

    error: int
    warning: int
    advice: int


class VerdictCells(TypedDict):
    """The verdict columns of a row."""

    verdict: VerdictWord | None
    worst: SeverityWord | None
    root_cause: RootCause | None
    findings: FindingCounts | None


class RunRow(VerdictCells):
    """A row of `runs`. Of an unreadable run most fields are null."""

    id: str
    name: str | None
    state: StateWord
    error: Annotated[str | None, "why the run is unreadable"]
    started: Annotated[float | None, "seconds since 1970"]
    ended: float | None
    duration: Annotated[float | None, "seconds"]
    steps: int | None
    script: str | None
    command: str | None
    host: str | None
    user: str | None
    hparams: Annotated[dict[str, Any] | None, "flat: nested names joined by dots"]
    last_loss: float | None
    metrics: dict[str, float | None] | None
    ranks: int | None
    damage: Annotated[list[str] | None, "what could not be read"]
    version: Annotated[int, "increases when the run has new data"]


class RunList(TypedDict):
    """`runs`: all runs, newest first."""

    dir: str
    version: Annotated[str, "of Clew"]
    now: Annotated[float, "the server's clock"]
    runs: list[RunRow]


class SourceLines(TypedDict):
    """Recorded lines of code around a finding."""

    file: str
    line: int
    first: Annotated[int, "number of the first line"]
    lines: list[str]


class DiffLine(TypedDict):
    """A line of the fix as a diff."""

    line: int | None
    mark: Literal[" ", "+", "-"]
    text: str


class EvidenceLink(TypedDict):
    """Where a piece of evidence is shown."""

    key: Annotated[str | None, "of its series, for charts"]
    site: Annotated[str | None, "site id, for layers and histograms"]


class FindingLinks(TypedDict):
    """`links[i]` belongs to `verdict.findings[i]`: where it is shown."""

    code: SourceLines | None
    diff: Annotated[list[DiffLine] | None, "the fix, where it can be written as one"]
    evidence: list[EvidenceLink]
    site: str | None
    module: Annotated[str | None, "module path, for the graph"]
    page: Annotated[str | None, "the check's documentation"]


class CheckPage(TypedDict):
    """A check's documentation, Markdown."""

    id: str
    title: str
    text: str


class GitState(TypedDict):
    """The commit that the run was started from."""

    commit: str
    branch: str | None
    dirty: bool | None


class ConfigRow(TypedDict):
    """Recorded settings."""

    source: Any
    step: int
    values: Any


class EventRow(TypedDict):
    """Something that happened once."""

    kind: str
    step: int
    data: dict[str, Any]


class AxisEnds(TypedDict):
    """The range of an axis."""

    first: float
    last: float


class EpochAxis(AxisEnds):
    """Epochs, and how they are known."""

    steps: Annotated[float, "of one epoch"]
    source: str


class AxesOffered(TypedDict):
    """The axes that a run has."""

    step: AxisEnds
    wall: AxisEnds | None
    epoch: EpochAxis | None


ModelRow = TypedDict(
    "ModelRow",
    {
        "root": str,
        "class": str,
        "file": str | None,
        "line": int | None,
        "parameters": int,
        "modules": Annotated[int, "number of modules"],
    },
)


class ViewsOffered(TypedDict):
    """Which views have something to draw."""

    series: bool
    layers: bool
    histograms: bool
    graph: bool
    profile: bool
    data: bool
    notes: bool


class RunDetail(TypedDict):
    """`runs/{id}`: everything about one run but its series."""

    run: RunRow
    meta: Annotated[dict[str, Any], "run.json as it is"]
    versions: dict[str, Any]
    git: GitState | None
    config: list[ConfigRow]
    verdict: VerdictJson | None
    verdict_state: VerdictWord
    verdict_error: str | None
    verdict_steps: Annotated[int | None, "number of steps that the verdict covers"]
    links: list[FindingLinks]
    pages: Annotated[dict[str, CheckPage], "of the checks with findings, by name"]
    events: list[EventRow]
    axes: AxesOffered
    models: list[ModelRow]
    has: ViewsOffered
    ranks: list[int]
    damage: list[str]
    incidents: list[str]


# -- series --


class SignalChart(TypedDict):
    """The chart at the top of the charts page that shows a series."""

    title: str
    together: Annotated[bool, "in one chart with all series of this title"]
    large: bool
    robust: Annotated[bool, "the axis leaves out a few outliers"]
    line: Annotated[str, "label of the series in the chart"]


class SignalRow(TypedDict):
    """A series of a run."""

    key: str
    signal: str
    site: SiteJson
    site_id: str
    label: str
    group: str
    rank: int
    points: int
    first: Annotated[int, "step"]
    last: Annotated[int, "step"]
    unit: Annotated[str, "s, B, share, count, bits, 1/s or empty"]
    title: str
    about: str
    chart: SignalChart | None
    glance: Annotated[bool, "shown beside a layer in the graph"]


class GroupCount(TypedDict):
    """A group of series, and how many it has."""

    name: str
    count: int


class SignalList(TypedDict):
    """`runs/{id}/signals`: a page of the list of series."""

    total: int
    offset: int
    groups: list[GroupCount]
    signals: list[SignalRow]


class NamedSeries(TypedDict):
    """The name of a series."""

    key: str
    signal: str
    site: SiteJson
    label: str
    unit: str


class _SeriesValues(TypedDict):
    exact: Annotated[bool, "every bucket is one point"]
    total: Annotated[int, "points within the range"]
    mean: Numbers
    marks: Annotated[list[tuple[int, str]], "index, and nan, inf or -inf"]


class SeriesValues(_SeriesValues, total=False):
    """The buckets of a series; `min`, `max` and `count` are absent if every bucket is one point."""

    min: Numbers
    max: Numbers
    count: list[int]
    bad: Annotated[list[int], "non-finite values; absent where all are zero"]


class DrawnSeries(NamedSeries, SeriesValues):
    """One series at one zoom."""

    x: Annotated[Numbers, "where each bucket begins, on the requested axis"]
    steps: list[int]


class MissingSeries(TypedDict):
    """A key that the run does not have."""

    key: str
    missing: str


_SeriesRange = TypedDict(
    "_SeriesRange",
    {
        "x": AxisWord,
        "from": float | None,
        "to": float | None,
        "series": list[DrawnSeries | MissingSeries],
    },
)


class SeriesAnswer(_SeriesRange, total=False):
    """`runs/{id}/series`: points of series at any zoom."""

    version: Annotated[int, "of the run; absent in a report"]


# -- layers --


class LayerStat(TypedDict):
    """A statistic that can be mapped."""

    stat: str
    label: str
    unit: str
    scale: ScaleWord
    good: Annotated[list[float] | None, "range in a healthy run"]


LayerRow = TypedDict(
    "LayerRow",
    {
        "site": str,
        "key": str,
        "module": str | None,
        "param": str | None,
        "op": str | None,
        "root": str | None,
        "class": str | None,
        "label": str,
        "file": str | None,
        "line": int | None,
        "depth": Annotated[int, "place in the order of the forward"],
        "numel": int | None,
    },
)


class _LayerCells(TypedDict):
    exact: Annotated[bool, "one column per recorded step"]
    columns: Annotated[list[int], "the steps at which columns begin"]
    layers: list[LayerRow]
    mean: list[Numbers]
    bad: Annotated[list[tuple[int, int, int]], "row, column, how many values are not finite"]


class LayerCells(_LayerCells, total=False):
    """The cells of a map; `min` and `max` where a column covers several steps."""

    min: list[Numbers]
    max: list[Numbers]


class StatChosen(TypedDict):
    """Which statistic is mapped, and which there are."""

    stats: list[LayerStat]
    stat: str
    unit: str
    scale: ScaleWord


class LayerMap(StatChosen, LayerCells):
    """`runs/{id}/layers`: one statistic of every layer over time."""


class _Missing(TypedDict):
    missing: Annotated[str, "why there is nothing, or how to get it"]


class MissingStats(_Missing, total=False):
    """There is nothing to show; `stats` lists what else is available."""

    stats: list[Any]


class HistogramHead(TypedDict):
    """Which histograms are shown, and which there are."""

    stats: list[str]
    stat: str
    site: SiteJson
    site_id: str
    label: str
    kinds: Annotated[list[str], "log2, and linear where signed histograms were recorded"]


class PowerBins(TypedDict):
    """Shares of values in each power of two."""

    kind: Literal["log2"]
    edges: list[float]
    steps: list[int]
    counts: list[Numbers]
    exact: bool


class SignedBins(TypedDict):
    """Shares of values in bins of equal width."""

    kind: Literal["linear"]
    lo: Numbers
    hi: Numbers
    steps: list[int]
    counts: list[Numbers]
    exact: bool


class PowerHistograms(HistogramHead, PowerBins):
    """`runs/{id}/histograms` in powers of two."""


class SignedHistograms(HistogramHead, SignedBins):
    """`runs/{id}/histograms` with `kind=linear`."""


class HistogramSite(TypedDict):
    """A layer that has histograms."""

    site: str
    label: str
    stats: list[str]


class HistogramSites(TypedDict):
    """`runs/{id}/histograms` without a site: the layers that have histograms."""

    sites: list[HistogramSite]


# -- what lies in the run's folder --


GraphModule = TypedDict(
    "GraphModule",
    {
        "path": str,
        "class": str,
        "file": str | None,
        "line": int | None,
        "order": int,
        "parameters": int,
        "trainable": int,
    },
)
GraphModel = TypedDict(
    "GraphModel",
    {
        "root": str,
        "class": str,
        "file": str | None,
        "line": int | None,
        "modules": list[GraphModule],
    },
)


class ModuleHealth(TypedDict):
    """The findings at a module."""

    severity: SeverityWord
    checks: list[str]


@dataclass(frozen=True)
class GraphFile(Graph):
    """A recorded graph, `traces/graph*.json`; `clew show --graph out.json` writes the same without `root`."""

    version: int = 1
    root: str = ""  # name of the model


@dataclass(frozen=True)
class DrawnGraph(GraphFile):
    """A graph with its layout."""

    layout: GraphLayout | None = None  # null: the file is damaged


class GraphAnswer(TypedDict):
    """`runs/{id}/graph`: the model."""

    models: list[GraphModel]
    graphs: Annotated[list[dict[str, Any]], list[GraphFile], "the content of each graph file"]
    layouts: Annotated[list[GraphLayout | None], "where the boxes of each graph stand; null: damaged"]
    health: Annotated[dict[str, ModuleHealth], "by module path"]
    time: Annotated[dict[str, float] | None, "seconds of each module, where the run was profiled"]
    missing: Annotated[str | None, "how to get a graph"]


class StepPart(TypedDict):
    """A part of a step, and the key of its series."""

    name: str
    key: str


class StepTimes(TypedDict):
    """The times of every step."""

    unit: str
    parts: list[StepPart]
    total: Annotated[str | None, "key of step.time"]


@dataclass(frozen=True)
class ModuleCostJson(ModuleCost):
    """The costs of a module in one step; forward and backward include the modules inside it."""

    kind: str = keyed("class", "")
    self_time: float = keyed("self", 0.0)  # forward and backward, without the modules inside it
    memory: int = 0  # bytes of its own parameters and activations


@dataclass(frozen=True)
class StepFlame:
    """The flame graph of a step."""

    unit: str = "s"
    root: FlameFrame | None = None


@dataclass(frozen=True)
class TimelineEvent:
    """Something that ran in the step whose timeline was recorded."""

    name: str
    start: float  # seconds from the beginning of the step
    duration: float
    lane: str = "main"  # "main", or another thread
    module: str | None = None


@dataclass(frozen=True)
class StepMemoryJson(StepMemory):
    """Memory of the process, and of the tensors in one step."""

    unit: str = "B"


@dataclass(frozen=True)
class ProfileJson(Profile):
    """`traces/profile.json`. Times are seconds per step: means over the steps profiled in detail, and for
    `parts` the median and 95th percentile over all timed steps. Sizes are bytes.
    """

    version: int = VERSION
    modules: tuple[ModuleCostJson, ...] = ()  # in forward order
    flame: StepFlame | None = None  # type: ignore[assignment]  # with its unit: step › part › module › op
    timeline: tuple[TimelineEvent, ...] = ()  # type: ignore[assignment]  # of one step
    memory: StepMemoryJson = StepMemoryJson()


class ProfileAnswer(TypedDict):
    """`runs/{id}/profile`: where time and memory go."""

    steps: StepTimes
    profile: Annotated[dict[str, Any] | None, ProfileJson | None, "the content of traces/profile.json"]
    missing: Annotated[str | None, "how to get a profile"]


class DataFile(TypedDict):
    """A file in the run's data folder, by its stem."""

    name: str
    content: Annotated[Any, DataContent, "of `batches` and `samples`; other files may contain anything"]


class DataAnswer(TypedDict):
    """`runs/{id}/data`: samples and batches as recorded."""

    files: list[DataFile]
    loaders: Annotated[list[dict[str, Any]], list[LoaderFact], "`loader` facts"]
    labels: Annotated[list[dict[str, Any]], list[LabelsFact], "the newest `labels` fact of each call"]
    inputs: Annotated[list[str], "keys of `input.*` series"]
    missing: str | None


class NotesAnswer(TypedDict):
    """`runs/{id}/notes`: the author's Markdown."""

    markdown: str
    modified: float | None


# -- runs side by side --


class SettingRow(TypedDict):
    """A setting in each of the runs."""

    name: str
    values: list[Any]
    same: bool


class MetricCell(TypedDict):
    """A metric in one run; the tail is the last tenth of its points, at most 100."""

    last: float | None
    min: float | None
    max: float | None
    mean_tail: float | None
    std_tail: float | None
    tail: int
    step: int


class MetricSpread(TypedDict):
    """Over the last values of the runs."""

    min: float
    max: float
    mean: float
    std: float
    n: int


class MetricRow(TypedDict):
    """A metric in each of the runs."""

    name: str
    values: list[MetricCell | None]
    spread: MetricSpread | None


class FindingCell(TypedDict):
    """A finding of one run."""

    severity: SeverityWord
    message: str
    root: Annotated[bool, "nothing else caused it"]
    index: int


class FindingRow(TypedDict):
    """A check that found something in any of the runs."""

    check: str
    id: str
    runs: list[FindingCell | None]


class SharedSignal(TypedDict):
    """A series that at least two runs have."""

    signal: str
    label: str
    unit: str
    place: Annotated[int | None, "of its chart on the page; null: drawn only on request"]
    keys: list[str | None]


class CompareAnswer(TypedDict):
    """`compare`: runs side by side."""

    runs: list[RunRow]
    config: Annotated[list[SettingRow], "differing ones first"]
    metrics: list[MetricRow]
    findings: list[FindingRow]
    signals: list[SharedSignal]
    versions: list[SettingRow]


# -- what is sent as it changes --


class RunBrief(TypedDict):
    """The fields of a row that change."""

    id: str
    state: StateWord
    steps: int | None
    version: int
    verdict: VerdictWord | None


class RunsEvent(TypedDict):
    """The event `runs`: rows that changed (all at first), and ids that are gone."""

    runs: list[RunBrief]
    gone: list[str]


class RunEvent(RunBrief):
    """The event `run`: the current state of one run."""

    last_loss: float | None
    verdict_version: Annotated[int, "increases when the verdict was recomputed"]
    notes: Annotated[float, "when the notes were changed, 0 if there are none"]


class GoneEvent(TypedDict):
    """The event `gone`, the last one: the folder has disappeared."""

    id: str


# -- files --


class _StoredSeries(NamedSeries, SeriesValues):
    steps: list[int]


class StoredSeries(_StoredSeries, total=False):
    """A series in a report, with its positions on all axes of the run."""

    wall: Numbers
    epoch: Numbers


class ReportInfo(TypedDict):
    """What a report says about itself."""

    made: float
    version: str
    title: str
    notes: str
    limit: int
    bounded: bool
    says: str
    left_out: list[str]


class _SingleFile(TypedDict):
    page: PageInfo


class SingleFile(_SingleFile, total=False):
    """A file with one graph or one profile: of `clew show --graph net.html`, `clew profile --format html`."""

    graph: Annotated[dict[str, Any], DrawnGraph]
    profile: Annotated[dict[str, Any], ProfileJson, "its flame graphs; frames have `own`, not `self`"]


LayersAnswer = LayerMap | MissingStats
HistogramsAnswer = PowerHistograms | SignedHistograms | HistogramSites | MissingStats

ANSWERS: dict[str, Any] = {
    "Site": SiteJson,
    "Run": RunRow,
    "Error": ErrorAnswer,
    "Runs": RunList,
    "Detail": RunDetail,
    "Signals": SignalList,
    "Series": SeriesAnswer,
    "Layers": LayersAnswer,
    "Histograms": HistogramsAnswer,
    "Graph": GraphAnswer,
    "Profile": ProfileAnswer,
    "Data": DataAnswer,
    "Notes": NotesAnswer,
    "Compare": CompareAnswer,
}  # by the name that the OpenAPI document has for it
