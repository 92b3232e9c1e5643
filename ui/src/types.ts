// The shapes of docs/api.md that several views share. A view's own shapes live beside the view.

export type Severity = "error" | "warning" | "advice";

export interface Site {
  module?: string | null;
  op?: string | null;
  file?: string | null;
  line?: number | null;
  phase?: string | null;
  root?: string | null;
  param?: string | null;
}

export interface Evidence {
  text: string;
  signal: string | null;
  site: Site | null;
  steps: number[];
  values: (number | string)[]; // "nan", "inf", "-inf" where JSON has no word
  x?: number[]; // where the values are not by step
  x_label?: string; // "learning rate"
}

/** A sample of the user's data, to be looked at as it is. */
export interface Exhibit {
  kind: string; // "image", "text", "numbers" or "wave"
  caption: string;
  data: unknown; // image: rows of 0–255, or of [r, g, b]; text: a string; numbers and wave: a list
}

/** The same steps without and with the fix, on a snapshot. */
export interface Proof {
  fix: string;
  steps: number;
  seeds: number;
  before: number | string;
  after: number | string;
  before_spread: (number | string)[];
  after_spread: (number | string)[];
  helped: boolean | null;
}

export interface Finding {
  check: string;
  id: string;
  severity: Severity;
  confidence: string;
  message: string;
  site: Site;
  step: number | null;
  evidence: Evidence[];
  fix: string;
  because: string[];
  exhibits?: Exhibit[];
  proof?: Proof | null;
}

export interface Verdict {
  run: {
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
  };
  findings: Finding[];
  not_judged: { check: string; reason: string }[];
  ruled_out: string[];
  ignored: { check: string; why: string }[];
}

export type RunState = "running" | "finished" | "failed" | "killed" | "empty" | "unreadable";

/** A row of `runs`. Of an unreadable run most fields are null. */
export interface RunRow {
  id: string;
  name: string | null;
  state: RunState;
  error: string | null;
  started: number | null;
  ended: number | null;
  duration: number | null;
  steps: number | null;
  script: string | null;
  command: string | null;
  host: string | null;
  user: string | null;
  hparams: Record<string, unknown> | null;
  last_loss: number | null;
  metrics: Record<string, number | null> | null;
  ranks: number | null;
  verdict: "ready" | "pending" | "none" | "failed" | null;
  worst: Severity | null;
  root_cause: { check: string; severity: Severity; message: string } | null;
  findings: Record<Severity, number> | null;
  damage: string[] | null;
  version: number;
}

export interface RunList {
  dir: string;
  version: string;
  now: number;
  runs: RunRow[];
}

export interface DiffLine {
  line: number | null;
  mark: " " | "+" | "-";
  text: string;
}

/** `links[i]` belongs to `verdict.findings[i]`: where it is to be seen. */
export interface FindingLinks {
  code: { file: string; line: number; first: number; lines: string[] } | null;
  diff: DiffLine[] | null;
  evidence: { key: string | null; site: string | null }[];
  site: string | null;
  module: string | null;
  page: string | null;
}

/** `runs/{id}`. */
export interface RunDetail {
  run: RunRow;
  meta: Record<string, unknown>;
  versions: Record<string, string>;
  git: { commit: string; branch: string | null; dirty: boolean | null } | null;
  config: { source: string; step: number; values: Record<string, unknown> }[];
  verdict: Verdict | null;
  verdict_state: "ready" | "pending" | "none" | "failed";
  verdict_error: string | null;
  verdict_steps: number | null;
  links: FindingLinks[];
  pages: Record<string, { id: string; title: string; text: string }>;
  events: { kind: string; step: number; data: Record<string, unknown> }[];
  axes: {
    step: { first: number; last: number };
    wall: { first: number; last: number } | null;
    epoch: { first: number; last: number; steps: number; source: string } | null;
  };
  models: { root: string; class: string; parameters: number; modules: number; file: string | null; line: number | null }[];
  has: Record<"series" | "layers" | "histograms" | "graph" | "profile" | "data" | "notes", boolean>;
  ranks: number[];
  damage: string[];
  incidents: string[];
}

export interface SignalRow {
  key: string;
  signal: string;
  site: Site;
  site_id: string;
  label: string;
  group: string;
  rank: number;
  points: number;
  first: number;
  last: number;
  unit: string;
  title: string;
  about: string;
  chart: SignalChart | null;
  glance: boolean; // shown beside a layer in the graph
}

/** The chart at the top of the charts page that shows a series. */
export interface SignalChart {
  title: string;
  together: boolean; // with all others of this title, rather than alone
  large: boolean;
  robust: boolean; // the axis leaves out a few far-off points
  line: string; // what the series is called there
}

export interface SignalList {
  total: number;
  offset: number;
  groups: { name: string; count: number }[];
  signals: SignalRow[];
}

/** One series at one zoom. `min` and `max` are absent where every bucket is one point. */
export interface SeriesPart {
  key: string;
  signal: string;
  site: Site;
  label: string;
  unit: string;
  exact: boolean;
  total: number;
  x: (number | null)[];
  steps: number[];
  min?: (number | null)[];
  max?: (number | null)[];
  mean: (number | null)[];
  count?: number[];
  bad?: number[];
  marks?: [number, string][];
  missing?: string;
}

export interface SeriesAnswer {
  x: Axis;
  from: number | null;
  to: number | null;
  version?: number;
  series: SeriesPart[];
}

export type Axis = "step" | "wall" | "epoch";

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
