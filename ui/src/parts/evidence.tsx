// An observation, with a chart of the series behind it.
import { useMemo } from "preact/hooks";
import { ofRun, useApi } from "../api";
import { fromJson } from "../format";
import { hrefTo } from "../state";
import type { Evidence, Finding, SeriesAnswer, SeriesPart } from "../types";
import { Chart, type Marker } from "./chart";

const HEIGHT = 110;
const NONE: Marker[] = [];

export function EvidenceItem({ id, evidence, seriesKey, finding, version }: { id: string; evidence: Evidence; seriesKey: string | null; finding: Finding; version: number }) {
  const drawn = seriesKey !== null || evidence.values.length > 1;
  return (
    <li>
      <p>{evidence.text}</p>
      {drawn && <Drawn id={id} evidence={evidence} seriesKey={seriesKey} finding={finding} version={version} />}
    </li>
  );
}

function Drawn({ id, evidence, seriesKey, finding, version }: { id: string; evidence: Evidence; seriesKey: string | null; finding: Finding; version: number }) {
  const asked = { keys: seriesKey ?? "", points: 400, x: "step" };
  const answer = useApi<SeriesAnswer>(seriesKey === null || evidence.x?.length ? null : ofRun(id, "series"), asked, version);
  const found = answer.data?.series.find((part) => !part.missing && part.steps.length > 0);
  const parts = useMemo(() => [found ?? ownSeries(evidence)], [found, evidence]);
  const markers = useMemo(() => markerOf(id, finding, seriesKey), [id, finding, seriesKey]);
  if (seriesKey !== null && !evidence.x?.length && !found && answer.loading) return <div class="evidence-hole" />;
  if (parts[0]!.steps.length < 2) return null;
  const elsewhere = !found && evidence.x?.length ? (evidence.x_label ?? "") : undefined;
  return (
    <figure class="evidence-chart">
      <figcaption class="mono faint">
        {seriesKey ? <a href={hrefTo(id, "charts", { keys: seriesKey })}>{parts[0]!.label}</a> : parts[0]!.label}
      </figcaption>
      <Chart parts={parts} axis="step" xLabel={elsewhere} height={HEIGHT} log={spansDecades(parts[0]!)} markers={elsewhere === undefined ? markers : NONE} />
    </figure>
  );
}

function markerOf(id: string, finding: Finding, seriesKey: string | null): Marker[] {
  if (finding.step === null) return [];
  const href = hrefTo(id, "charts", { keys: seriesKey ?? "", step: String(finding.step) });
  return [{ step: finding.step, severity: finding.severity, label: `${finding.check}: visible from here`, href }];
}

/** What the finding itself carries, where the run has no such series. */
function ownSeries(evidence: Evidence): SeriesPart {
  const values = evidence.values.map(fromJson);
  const steps = values.map((_, i) => evidence.x?.[i] ?? evidence.steps[i] ?? i);
  const mean = values.map((value) => (value !== null && Number.isFinite(value) ? value : null));
  const marks = values.flatMap((value, i): [number, string][] => (mean[i] === null ? [[i, String(value).toLowerCase()]] : []));
  return { key: "own", signal: evidence.signal ?? "", site: evidence.site ?? {}, label: evidence.signal ?? "evidence", unit: "", exact: true, total: values.length, x: steps, steps, mean, marks };
}

/** Many orders of magnitude need a logarithmic axis to be seen. */
function spansDecades(part: SeriesPart): boolean {
  const values = [...(part.min ?? []), ...(part.max ?? []), ...part.mean].filter((v): v is number => v !== null);
  const least = Math.min(...values);
  return values.length > 0 && least > 0 && Math.max(...values) / least > 1000;
}
