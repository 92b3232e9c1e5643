// Made from src/clew/web/answer_shapes.py by scripts/docs: change it there.

export type SeverityWord = "error" | "warning" | "advice";
export type StateWord = "running" | "finished" | "failed" | "killed" | "empty" | "unreadable";
export type VerdictWord = "ready" | "pending" | "none" | "failed";
export type AxisWord = "step" | "wall" | "epoch";
export type ScaleWord = "log" | "linear" | "share" | "diverging";

/** What is wrong, in one line. */
export interface ErrorText {
  code: string;
  message: string;
}

/** Any answer that is not 200. */
export interface ErrorAnswer {
  error: ErrorText;
}

/** Where in the program: what is not known is absent or null. */
export interface SiteJson {
  module?: string | null;
  op?: string | null;
  file?: string | null;
  line?: number | null;
  phase?: string | null;
  root?: string | null;
  param?: string | null;
}

/** One observation, with the numbers behind it where there is a series. */
export interface EvidenceJson {
  text: string;
  signal: string | null;
  site: SiteJson | null;
  steps: number[];
  values: (number | string)[];
  x?: number[]; // where the values are not by step
  x_label?: string; // learning rate
}

/** A sample of the user's data. */
export interface ExhibitJson {
  kind: string; // image, text, numbers or wave
  caption: string;
  data: unknown; // image: rows of 0–255 or of [r, g, b]; text: a string; numbers and wave: a list
}

/** The same steps without and with the fix, on a snapshot. */
export interface ProofJson {
  fix: string;
  steps: number;
  seeds: number;
  before: number | string;
  after: number | string;
  before_spread: (number | string)[];
  after_spread: (number | string)[];
  helped: boolean | null;
}

/** A check's conclusion: what is wrong, where, on what evidence and how to fix it. */
export interface FindingJson {
  check: string;
  id: string;
  severity: SeverityWord;
  confidence: string;
  message: string;
  site: SiteJson;
  step: number | null;
  evidence: EvidenceJson[];
  fix: string;
  because: string[];
  exhibits?: ExhibitJson[];
  proof?: ProofJson | null;
}

/** The run that a verdict is about. */
export interface JudgedRun {
  id: string;
  path: string;
  script: string;
  state: string;
  steps: number;
  started: number | null;
  ranks: number;
  checks: number;
  damage: string[];
  incidents: string[];
  idle: string | null;
}

/** A check that could not judge. */
export interface NotJudgedJson {
  check: string;
  reason: string;
}

/** A check that is switched off. */
export interface IgnoredJson {
  check: string;
  why: string;
}

/** What `clew why --json` writes. */
export interface VerdictJson {
  run: JudgedRun;
  findings: FindingJson[];
  not_judged: NotJudgedJson[];
  ruled_out: string[];
  ignored: IgnoredJson[];
}

/** The finding to read first. */
export interface RootCause {
  check: string;
  severity: SeverityWord;
  message: string;
}

/** Findings by severity. */
export interface FindingCounts {
  error: number;
  warning: number;
  advice: number;
}

/** What a row says of the verdict. */
export interface VerdictCells {
  verdict: VerdictWord | null;
  worst: SeverityWord | null;
  root_cause: RootCause | null;
  findings: FindingCounts | null;
}

/** A row of `runs`. Of an unreadable run most fields are null. */
export interface RunRow {
  verdict: VerdictWord | null;
  worst: SeverityWord | null;
  root_cause: RootCause | null;
  findings: FindingCounts | null;
  id: string;
  name: string | null;
  state: StateWord;
  error: string | null; // why the run is unreadable
  started: number | null; // seconds since 1970
  ended: number | null;
  duration: number | null; // seconds
  steps: number | null;
  script: string | null;
  command: string | null;
  host: string | null;
  user: string | null;
  hparams: Record<string, unknown> | null; // flat: nested names joined by dots
  last_loss: number | null;
  metrics: Record<string, number | null> | null;
  ranks: number | null;
  damage: string[] | null; // what could not be read
  version: number; // grows when the run has new data
}

/** `runs`: all runs, newest first. */
export interface RunList {
  dir: string;
  version: string; // of Clew
  now: number; // the server's clock
  runs: RunRow[];
}

/** Recorded lines of code around a finding. */
export interface SourceLines {
  file: string;
  line: number;
  first: number; // number of the first line
  lines: string[];
}

/** A line of the fix as a diff. */
export interface DiffLine {
  line: number | null;
  mark: " " | "+" | "-";
  text: string;
}

/** Where a piece of evidence is shown. */
export interface EvidenceLink {
  key: string | null; // of its series, for charts
  site: string | null; // site id, for layers and histograms
}

/** `links[i]` belongs to `verdict.findings[i]`: where it is shown. */
export interface FindingLinks {
  code: SourceLines | null;
  diff: DiffLine[] | null; // the fix, where it can be written as one
  evidence: EvidenceLink[];
  site: string | null;
  module: string | null; // module path, for the graph
  page: string | null; // the check's documentation
}

/** A check's documentation, Markdown. */
export interface CheckPage {
  id: string;
  title: string;
  text: string;
}

/** The commit that the run was started from. */
export interface GitState {
  commit: string;
  branch: string | null;
  dirty: boolean | null;
}

/** Recorded settings. */
export interface ConfigRow {
  source: unknown;
  step: number;
  values: unknown;
}

/** Something that happened once. */
export interface EventRow {
  kind: string;
  step: number;
  data: Record<string, unknown>;
}

/** The range of an axis. */
export interface AxisEnds {
  first: number;
  last: number;
}

/** Epochs, and how they are known. */
export interface EpochAxis {
  first: number;
  last: number;
  steps: number; // of one epoch
  source: string;
}

/** The axes that a run has. */
export interface AxesOffered {
  step: AxisEnds;
  wall: AxisEnds | null;
  epoch: EpochAxis | null;
}

export interface ModelRow {
  root: string;
  class: string;
  file: string | null;
  line: number | null;
  parameters: number;
  modules: number; // how many
}

/** Which views have something to draw. */
export interface ViewsOffered {
  series: boolean;
  layers: boolean;
  histograms: boolean;
  graph: boolean;
  profile: boolean;
  data: boolean;
  notes: boolean;
}

/** `runs/{id}`: everything about one run but its series. */
export interface RunDetail {
  run: RunRow;
  meta: Record<string, unknown>; // run.json as it is
  versions: Record<string, unknown>;
  git: GitState | null;
  config: ConfigRow[];
  verdict: VerdictJson | null;
  verdict_state: VerdictWord;
  verdict_error: string | null;
  verdict_steps: number | null; // how many steps the verdict is of
  links: FindingLinks[];
  pages: Record<string, CheckPage>; // of the checks found, by name
  events: EventRow[];
  axes: AxesOffered;
  models: ModelRow[];
  has: ViewsOffered;
  ranks: number[];
  damage: string[];
  incidents: string[];
}

/** The chart at the top of the charts page that shows a series. */
export interface SignalChart {
  title: string;
  together: boolean; // with all others of this title, rather than alone
  large: boolean;
  robust: boolean; // the axis leaves out a few far-off points
  line: string; // what the series is called there
}

/** A series of a run. */
export interface SignalRow {
  key: string;
  signal: string;
  site: SiteJson;
  site_id: string;
  label: string;
  group: string;
  rank: number;
  points: number;
  first: number; // step
  last: number; // step
  unit: string; // s, B, share, count, bits, 1/s or empty
  title: string;
  about: string;
  chart: SignalChart | null;
  glance: boolean; // shown beside a layer in the graph
}

/** A group of series, and how many it has. */
export interface GroupCount {
  name: string;
  count: number;
}

/** `runs/{id}/signals`: a page of the list of series. */
export interface SignalList {
  total: number;
  offset: number;
  groups: GroupCount[];
  signals: SignalRow[];
}

/** The name of a series. */
export interface NamedSeries {
  key: string;
  signal: string;
  site: SiteJson;
  label: string;
  unit: string;
}

/** The buckets of a series; `min`, `max` and `count` are absent if every bucket is one point. */
export interface SeriesValues {
  exact: boolean; // every bucket is one point
  total: number; // points within the range
  mean: (number | null)[];
  marks: [number, string][]; // index, and nan, inf or -inf
  min?: (number | null)[];
  max?: (number | null)[];
  count?: number[];
  bad?: number[]; // non-finite values; absent where all are zero
}

/** One series at one zoom. */
export interface DrawnSeries {
  key: string;
  signal: string;
  site: SiteJson;
  label: string;
  unit: string;
  exact: boolean; // every bucket is one point
  total: number; // points within the range
  mean: (number | null)[];
  marks: [number, string][]; // index, and nan, inf or -inf
  min?: (number | null)[];
  max?: (number | null)[];
  count?: number[];
  bad?: number[]; // non-finite values; absent where all are zero
  x: (number | null)[]; // where each bucket begins, on the axis asked for
  steps: number[];
}

/** A key that the run does not have. */
export interface MissingSeries {
  key: string;
  missing: string;
}

/** `runs/{id}/series`: points of series at any zoom. */
export interface SeriesAnswer {
  x: AxisWord;
  from: number | null;
  to: number | null;
  series: (DrawnSeries | MissingSeries)[];
  version?: number; // of the run; absent in a report
}

/** A statistic that can be mapped. */
export interface LayerStat {
  stat: string;
  label: string;
  unit: string;
  scale: ScaleWord;
  good: number[] | null; // where it usually lies when all is well
}

export interface LayerRow {
  site: string;
  key: string;
  module: string | null;
  param: string | null;
  op: string | null;
  root: string | null;
  class: string | null;
  label: string;
  file: string | null;
  line: number | null;
  depth: number; // place in the order of the forward
  numel: number | null;
}

/** The cells of a map; `min` and `max` where a column covers several steps. */
export interface LayerCells {
  exact: boolean; // one column per recorded step
  columns: number[]; // the steps at which columns begin
  layers: LayerRow[];
  mean: ((number | null)[])[];
  bad: [number, number, number][]; // row, column, how many values are not finite
  min?: ((number | null)[])[];
  max?: ((number | null)[])[];
}

/** Which statistic is mapped, and which there are. */
export interface StatChosen {
  stats: LayerStat[];
  stat: string;
  unit: string;
  scale: ScaleWord;
}

/** `runs/{id}/layers`: one statistic of every layer over time. */
export interface LayerMap {
  stats: LayerStat[];
  stat: string;
  unit: string;
  scale: ScaleWord;
  exact: boolean; // one column per recorded step
  columns: number[]; // the steps at which columns begin
  layers: LayerRow[];
  mean: ((number | null)[])[];
  bad: [number, number, number][]; // row, column, how many values are not finite
  min?: ((number | null)[])[];
  max?: ((number | null)[])[];
}

/** There is nothing to show; `stats` lists what else is available. */
export interface MissingStats {
  missing: string; // why there is nothing, or how to get it
  stats?: unknown[];
}

/** Which histograms are shown, and which there are. */
export interface HistogramHead {
  stats: string[];
  stat: string;
  site: SiteJson;
  site_id: string;
  label: string;
  kinds: string[]; // log2, and linear where signed histograms were recorded
}

/** Shares of values in each power of two. */
export interface PowerBins {
  kind: "log2";
  edges: number[];
  steps: number[];
  counts: ((number | null)[])[];
  exact: boolean;
}

/** Shares of values in bins of equal width. */
export interface SignedBins {
  kind: "linear";
  lo: (number | null)[];
  hi: (number | null)[];
  steps: number[];
  counts: ((number | null)[])[];
  exact: boolean;
}

/** `runs/{id}/histograms` in powers of two. */
export interface PowerHistograms {
  stats: string[];
  stat: string;
  site: SiteJson;
  site_id: string;
  label: string;
  kinds: string[]; // log2, and linear where signed histograms were recorded
  kind: "log2";
  edges: number[];
  steps: number[];
  counts: ((number | null)[])[];
  exact: boolean;
}

/** `runs/{id}/histograms` with `kind=linear`. */
export interface SignedHistograms {
  stats: string[];
  stat: string;
  site: SiteJson;
  site_id: string;
  label: string;
  kinds: string[]; // log2, and linear where signed histograms were recorded
  kind: "linear";
  lo: (number | null)[];
  hi: (number | null)[];
  steps: number[];
  counts: ((number | null)[])[];
  exact: boolean;
}

/** A layer that has histograms. */
export interface HistogramSite {
  site: string;
  label: string;
  stats: string[];
}

/** `runs/{id}/histograms` without a site: the layers that have histograms. */
export interface HistogramSites {
  sites: HistogramSite[];
}

export interface GraphModule {
  path: string;
  class: string;
  file: string | null;
  line: number | null;
  order: number;
  parameters: number;
  trainable: number;
}

export interface GraphModel {
  root: string;
  class: string;
  file: string | null;
  line: number | null;
  modules: GraphModule[];
}

/** The findings at a module. */
export interface ModuleHealth {
  severity: SeverityWord;
  checks: string[];
}

/** `runs/{id}/graph`: the model. */
export interface GraphAnswer {
  models: GraphModel[];
  graphs: Record<string, unknown>[]; // the content of each graph file
  layouts: (Record<string, unknown> | null)[]; // where the boxes of each graph stand; null: damaged
  health: Record<string, ModuleHealth>; // by module path
  time: Record<string, number> | null; // seconds of each module, where the run was profiled
  missing: string | null;
}

/** A part of a step, and the key of its series. */
export interface StepPart {
  name: string;
  key: string;
}

/** The times of every step. */
export interface StepTimes {
  unit: string;
  parts: StepPart[];
  total: string | null; // key of step.time
}

/** `runs/{id}/profile`: where time and memory go. */
export interface ProfileAnswer {
  steps: StepTimes;
  profile: Record<string, unknown> | null; // the content of traces/profile.json
  missing: string | null;
}

/** A file in the run's data folder, by its stem. */
export interface DataFile {
  name: string;
  content: unknown;
}

/** `runs/{id}/data`: samples and batches as recorded. */
export interface DataAnswer {
  files: DataFile[];
  loaders: Record<string, unknown>[]; // `loader` facts
  labels: Record<string, unknown>[]; // the newest `labels` fact of each call
  inputs: string[]; // keys of `input.*` series
  missing: string | null;
}

/** `runs/{id}/notes`: the author's Markdown. */
export interface NotesAnswer {
  markdown: string;
  modified: number | null;
}

/** A setting in each of the runs. */
export interface SettingRow {
  name: string;
  values: unknown[];
  same: boolean;
}

/** A metric in one run; the tail is the last tenth of its points, at most 100. */
export interface MetricCell {
  last: number | null;
  min: number | null;
  max: number | null;
  mean_tail: number | null;
  std_tail: number | null;
  tail: number;
  step: number;
}

/** Over the last values of the runs. */
export interface MetricSpread {
  min: number;
  max: number;
  mean: number;
  std: number;
  n: number;
}

/** A metric in each of the runs. */
export interface MetricRow {
  name: string;
  values: (MetricCell | null)[];
  spread: MetricSpread | null;
}

/** A finding of one run. */
export interface FindingCell {
  severity: SeverityWord;
  message: string;
  root: boolean; // nothing else caused it
  index: number;
}

/** A check that found something in any of the runs. */
export interface FindingRow {
  check: string;
  id: string;
  runs: (FindingCell | null)[];
}

/** A series that at least two runs have. */
export interface SharedSignal {
  signal: string;
  label: string;
  unit: string;
  place: number | null; // of its chart on the page; null: drawn only on request
  keys: (string | null)[];
}

/** `compare`: runs side by side. */
export interface CompareAnswer {
  runs: RunRow[];
  config: SettingRow[]; // differing ones first
  metrics: MetricRow[];
  findings: FindingRow[];
  signals: SharedSignal[];
  versions: SettingRow[];
}

/** The fields of a row that change. */
export interface RunBrief {
  id: string;
  state: StateWord;
  steps: number | null;
  version: number;
  verdict: VerdictWord | null;
}

/** The event `runs`: rows that changed (all at first), and ids that are gone. */
export interface RunsEvent {
  runs: RunBrief[];
  gone: string[];
}

/** The event `run`: the current state of one run. */
export interface RunEvent {
  id: string;
  state: StateWord;
  steps: number | null;
  version: number;
  verdict: VerdictWord | null;
  last_loss: number | null;
  verdict_version: number; // grows when the verdict was computed anew
  notes: number; // when the notes were changed, 0 if there are none
}

/** The event `gone`, the last one: the folder has disappeared. */
export interface GoneEvent {
  id: string;
}

/** A series in a report, with its positions on all axes of the run. */
export interface StoredSeries {
  key: string;
  signal: string;
  site: SiteJson;
  label: string;
  unit: string;
  exact: boolean; // every bucket is one point
  total: number; // points within the range
  mean: (number | null)[];
  marks: [number, string][]; // index, and nan, inf or -inf
  min?: (number | null)[];
  max?: (number | null)[];
  count?: number[];
  bad?: number[]; // non-finite values; absent where all are zero
  steps: number[];
  wall?: (number | null)[];
  epoch?: (number | null)[];
}

/** What a report says about itself. */
export interface ReportInfo {
  made: number;
  version: string;
  title: string;
  notes: string;
  limit: number;
  bounded: boolean;
  says: string;
  left_out: string[];
}
