// The shapes that several views share: those of the API, by their short names, and what only the page knows.
import type { AxisWord, DrawnSeries, RunDetail, SeriesAnswer as Answered, SeverityWord, StateWord } from "./answers";

export type {
  DiffLine,
  EvidenceJson as Evidence,
  ExhibitJson as Exhibit,
  FindingJson as Finding,
  FindingLinks,
  PageInfo,
  ProofJson as Proof,
  ReportInfo,
  RunDetail,
  RunList,
  RunRow,
  SignalChart,
  SignalList,
  SignalRow,
  SiteJson as Site,
  VerdictJson as Verdict,
} from "./answers";
export type Severity = SeverityWord;
export type RunState = StateWord;
export type Axis = AxisWord;

/** A series that the run does not have says so, and has nothing else but its key. */
export type SeriesPart = DrawnSeries & { missing?: string };
export type SeriesAnswer = Omit<Answered, "series"> & { series: SeriesPart[] };

/** What a tab of a run is given. */
export interface ViewProps {
  id: string; // of the run, as the API has it
  run: RunDetail;
  version: number; // increases when the run has new data: pass it to useApi
}
