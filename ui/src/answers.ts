// Generated from src/clew/web/answer_shapes.py by scripts/docs: change it there.

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
  x?: number[]; // position of each value, if not by step
  x_label?: string; // such as learning rate
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

/** The verdict columns of a row. */
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
  version: number; // increases when the run has new data
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
  modules: number; // number of modules
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
  verdict_steps: number | null; // number of steps that the verdict covers
  links: FindingLinks[];
  pages: Record<string, CheckPage>; // of the checks with findings, by name
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
  together: boolean; // in one chart with all series of this title
  large: boolean;
  robust: boolean; // the axis leaves out a few outliers
  line: string; // label of the series in the chart
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
  x: (number | null)[]; // where each bucket begins, on the requested axis
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
  good: number[] | null; // range in a healthy run
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

/** A tensor without its values. */
export interface TensorInfo {
  shape: number[];
  dtype: string; // "float32"
  device: string;
  requires_grad: boolean;
  bytes: number;
  dims?: string[]; // the sizes with names in them, if they were traced
}

/** A module call, an op, an input or the output, in the tree of the graph. */
export interface Node {
  id: number;
  parent: number | null; // the node of the module in which it ran
  kind: string; // "module", "op", "input", "output"
  label: string; // "conv1", "add"
  type: string; // "Conv2d", "aten.add.Tensor"
  path: string;
  outputs: TensorInfo[];
  flops?: number;
  parameters?: number;
  saved?: number;
  feeds_result?: boolean;
  file?: string | null;
  line?: number | null;
  repeat?: number;
  hidden?: boolean;
}

/** A tensor that goes from one op (or input) to another. */
export interface Edge {
  source: number;
  target: number;
  tensor?: TensorInfo | null;
}

/** A recorded graph, `traces/graph*.json`; `clew show --graph out.json` writes the same without `root`. */
export interface GraphFile {
  name: string;
  nodes: Node[];
  edges: Edge[];
  version?: number;
  root?: string; // name of the model
}

/** Where tensors enter or leave a module: a box that is not in the graph itself. */
export interface LayoutPort {
  id: number;
  kind: string;
  label: string;
  outputs: TensorInfo[];
}

/** The boxes of one module; numbers refer to the tables of the layout. */
export interface LayoutLevel {
  grid: number;
  nodes: number[]; // below zero: one of the ports
  boxes: number[];
  tensors: number[]; // of each line of the grid
  ports: LayoutPort[];
  more: number; // nodes that are not drawn
}

/** The places of a level: boxes first, then passages, where a long line goes by between boxes. */
export interface LayoutGrid {
  rows: number[][]; // from top to bottom, each from left to right
  x: number[]; // centres, while all boxes are closed
  lines: [number, number, number][]; // from, to, and how far from the centre of `to` it ends
}

/** What a node looks like, in pixels and two lines of text. */
export type LayoutBox = [width: number, height: number, title: number, first: string, second: string];

/** The layout of a graph, by module; the key of the outermost level is empty. */
export interface GraphLayout {
  first: number[]; // modules that are open at first
  levels: Record<string, LayoutLevel>;
  unfolded: Record<string, LayoutLevel>; // where repeated blocks are drawn once: all of them
  stands_in: Record<string, number>; // nodes that are not drawn, and what is drawn for each
  repeats: Record<string, number>;
  grids: LayoutGrid[];
  boxes: LayoutBox[];
  tensors: string[];
}

/** A graph with its layout. */
export interface DrawnGraph {
  name: string;
  nodes: Node[];
  edges: Edge[];
  version?: number;
  root?: string; // name of the model
  layout?: GraphLayout | null; // null: the file is damaged
}

/** `runs/{id}/graph`: the model. */
export interface GraphAnswer {
  models: GraphModel[];
  graphs: GraphFile[]; // the content of each graph file
  layouts: (GraphLayout | null)[]; // where the boxes of each graph stand; null: damaged
  health: Record<string, ModuleHealth>; // by module path
  time: Record<string, number> | null; // seconds of each module, where the run was profiled
  missing: string | null; // how to get a graph
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

/** The costs of a module in one step; forward and backward include the modules inside it. */
export interface ModuleCostJson {
  module: string; // path; "" is the root module
  type?: string;
  calls?: number;
  forward?: number;
  backward?: number;
  self_forward?: number;
  self_backward?: number;
  spread?: number; // standard deviation of forward + backward over the steps
  steps?: number; // over which it was measured
  flops?: number; // forward and backward
  moved?: number; // bytes read and written by its ops
  roof?: number | null; // share of the best that this machine can do, 0 … 1
  parameters?: number; // bytes, only its own
  activations?: number; // bytes kept for the backward, only its own
  peak?: number; // bytes above what was allocated when it was called
  file?: string | null;
  line?: number | null;
  class?: string;
  self?: number; // forward and backward, without the modules inside it
  memory?: number; // bytes of its own parameters and activations
}

/** A node of a flame graph; `value` includes the children, `self` does not. */
export interface FlameFrame {
  name: string;
  value: number;
  self?: number;
  file?: string | null;
  line?: number | null;
  module?: string | null;
  children?: FlameFrame[];
}

/** The flame graph of a step. */
export interface StepFlame {
  unit?: string;
  root?: FlameFrame | null;
}

/** Something that ran in the step whose timeline was recorded. */
export interface TimelineEvent {
  name: string;
  start: number; // seconds from the beginning of the step
  duration: number;
  lane?: string; // "main", or another thread
  module?: string | null;
}

/** Memory of a process; shared pages count in part (pss) or not at all (uss). */
export interface ProcessMemory {
  pid: number;
  role: string; // "main", "loader worker"
  rss: number;
  pss?: number | null;
  uss?: number | null;
  slope?: number; // bytes per step, fitted after the warm-up
  readings?: [number, number][]; // step, rss
}

/** Memory that grows, and what keeps references to it. */
export interface Growth {
  slope: number; // bytes per step
  owner: string; // "list `losses` in train.py:31: tensors with their graphs"
  file?: string | null;
  line?: number | null;
  objects?: number; // new ones in each step
  kind?: string; // "tensor", "graph", "python", "" unknown
}

/** Memory of the process, and of the tensors in one step. */
export interface StepMemoryJson {
  peak?: number; // of tensors, in a step
  kinds?: Record<string, number>; // KINDS, at the peak
  timeline?: [number, number][]; // second of the step, bytes allocated
  root?: FlameFrame | null; // by module, at the peak
  processes?: ProcessMemory[];
  growth?: Growth | null;
  unit?: string;
}

/** One part of a step, over the steps that were timed. */
export interface PartCost {
  name: string; // one of PARTS
  median: number;
  p95: number;
  share: number; // of the total time of these steps
  steps?: number;
}

/** All calls of one op with the same shapes in one module. */
export interface OpCost {
  module: string;
  op: string; // "aten::addmm"
  shapes?: string; // "[32, 64] [64, 10]"
  arguments?: string; // arguments that are not tensors
  calls?: number;
  forward?: number;
  backward?: number;
  flops?: number;
  moved?: number;
  roof?: number | null;
}

/** Time in which a line of source was running (`self`) or had called what ran (`total`). */
export interface LineCost {
  file: string;
  line: number;
  function: string;
  code: string;
  self: number;
  total: number;
  kind?: string; // "logging", "data", "to device" … if known
}

/** A place where the host waits for numbers (`.item()`, print, `.cpu()`, `nonzero`), per step. */
export interface Sync {
  op: string;
  calls: number;
  seconds: number;
  file?: string | null;
  line?: number | null;
  code?: string;
}

/** The best performance measured on this machine. */
export interface Roof {
  flops: number; // per second, float32 matrix product
  bytes: number; // per second, read and written
  threads?: number;
}

/** `traces/profile.json`. Times are seconds per step: means over the steps profiled in detail, and for `parts` the median and 95th percentile over all timed steps. Sizes are bytes. */
export interface ProfileJson {
  steps?: [number, number]; // first and last that were profiled in detail
  detailed?: number; // how many of them
  detailed_step?: number; // seconds of one of them; profiling makes them slower than others
  step_median?: number;
  step_p95?: number;
  samples_per_second?: number | null;
  parts?: PartCost[];
  modules?: ModuleCostJson[]; // in forward order
  ops?: OpCost[];
  lines?: LineCost[];
  syncs?: Sync[];
  flame?: StepFlame | null; // with its unit: step › part › module › op
  python?: FlameFrame | null; // Python's stacks, from the sampler
  timeline?: TimelineEvent[]; // of one step
  memory?: StepMemoryJson;
  roof?: Roof | null;
  unattributed?: number; // seconds of the step in no part and no module
  threads?: number;
  cores?: number;
  device?: string;
  notes?: string[]; // what could not be measured, and why
  files?: Record<string, string>; // "chrome trace" -> name in the run's traces/
  version?: number;
}

/** `runs/{id}/profile`: where time and memory go. */
export interface ProfileAnswer {
  steps: StepTimes;
  profile: ProfileJson | null; // the content of traces/profile.json
  missing: string | null; // how to get a profile
}

/** A tensor of a batch. */
export interface TensorNote {
  name?: string;
  shape?: number[] | null;
  dtype?: string;
  min?: number | null;
  max?: number | null;
  mean?: number | null;
  std?: number | null;
  values?: unknown[];
}

/** A recorded batch. */
export interface BatchRow {
  step?: number;
  phase?: string;
  loader?: number | null; // its number; null: it was not iterated
  name?: string; // of the loader
  source?: string; // `loader`: as the loader delivers it; `model`: as the model gets it
  inputs?: TensorNote[];
  targets?: TensorNote[];
}

/** A recorded sample; one sample is listed once for each source, with the same `id`. */
export interface SampleRow {
  id?: string;
  step?: number;
  phase?: string;
  label?: unknown;
  prediction?: unknown;
  loss?: number | null;
  kind?: string; // image, text, vector or audio
  loader?: string; // its name
  source?: string; // `dataset`: as the dataset returns it; `batch`; `model`: as the model gets it
  about?: string; // shapes, types and ranges of its fields
  shape?: number[];
  image?: string; // data:image/png or data:image/jpeg
  text?: string;
  values?: number[];
}

/** `data/batches.json` and `data/samples.json`. */
export interface DataContent {
  version?: number;
  batches?: BatchRow[];
  samples?: SampleRow[];
}

/** A file in the run's data folder, by its stem. */
export interface DataFile {
  name: string;
  content: DataContent; // of `batches` and `samples`; other files may contain anything
}

/** `index`, `file`, `line` (where it is iterated), `batch_size`, `num_workers`, `shuffle`, `sampler`, `dataset`, `length`, `drop_last`, `pin_memory`, `persistent_workers`, `prefetch_factor`, `made_file` and `made_line` (where it was created), `names` (variables that refer to it), `dataset_number` (the same for the same dataset object), `generator` (attribute of the dataset: the random generator that `__getitem__` uses), `random` (`__getitem__` draws random numbers, and no attribute that it reads is None, False or 0), `worker_init` (`constant`: it sets the same seed in every worker; `given`; null). */
export interface LoaderFact {
  index?: number;
  file?: string | null;
  line?: number | null;
  batch_size?: number | null;
  num_workers?: number;
  shuffle?: boolean | null;
  sampler?: string;
  dataset?: string;
  length?: number | null;
  drop_last?: boolean;
  pin_memory?: boolean;
  persistent_workers?: boolean;
  prefetch_factor?: number | null;
  names?: string[];
  made_file?: string | null;
  made_line?: number | null;
  dataset_number?: number | null;
  generator?: string | null;
  random?: boolean;
  worker_init?: string | null;
}

/** Labels and predictions over all sampled steps so far: `kind`, `file`, `line` of a loss call; `counts`: `[[class, samples, predicted correctly]…]`. Written when their number has doubled, from 8 on. */
export interface LabelsFact {
  kind?: string | null;
  file?: string | null;
  line?: number | null;
  counts?: [number, number, number][];
}

/** `runs/{id}/data`: samples and batches as recorded. */
export interface DataAnswer {
  files: DataFile[];
  loaders: LoaderFact[]; // `loader` facts
  labels: LabelsFact[]; // the newest `labels` fact of each call
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
  verdict_version: number; // increases when the verdict was recomputed
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

/** The head of a file that shows one thing, a graph or flames, and no runs. */
export interface PageInfo {
  shows: "flames" | "graph";
  title: string;
  about: string;
  colour?: string;
}

/** A file with one graph or one profile: of `clew show --graph net.html`, `clew profile --format html`. */
export interface SingleFile {
  page: PageInfo;
  graph?: DrawnGraph;
  profile?: ProfileJson; // its flame graphs; frames have `own`, not `self`
}
