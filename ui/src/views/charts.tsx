// Curves: loss first, then metrics, learning rate, gradients, timing and memory, then every signal there is.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ofRun, useApi } from "../api";
import { chaptersOf } from "../draw/chapters";
import { whole, withUnit } from "../format";
import { useKeys } from "../keys";
import { type Marker } from "../parts/chart";
import { Choices } from "../parts/choices";
import { Await, Empty } from "../parts/states";
import { hrefTo, setParams, useParam, usePlace } from "../state";
import type { Axis, RunDetail, SignalList, SignalRow, ViewProps } from "../types";
import { AllSignals } from "./all_signals";
import { ChartCard, type Frame } from "./chart_card";
import "./charts.css";

const FIRST_PAGE = 200; // in reading order: all that has a place of its own is on it

/** Curves don't wait for the verdict: what is known of the run joins them when it comes. */
export function ChartsView({ id, run, version }: Omit<ViewProps, "run"> & { run: RunDetail | undefined }) {
  const signals = useApi<SignalList>(ofRun(id, "signals"), { limit: FIRST_PAGE }, version);
  if (run && !run.has.series)
    return (
      <Empty title="No curves yet">
        <p>{run.verdict?.run.idle ?? "The first training step has not finished yet. This page updates by itself."}</p>
      </Empty>
    );
  return (
    <Await of={signals} what="the signals">
      {(list) => <Charts id={id} run={run} list={list} version={version} />}
    </Await>
  );
}

function Charts({ id, run, list, version }: { id: string; run: RunDetail | undefined; list: SignalList; version: number }) {
  const { params } = usePlace();
  const [search, setSearch] = useParam("search");
  const [x, setX] = useParam("x", "step");
  const [smooth, setSmooth] = useParam("smooth", "0");
  const [log, setLog] = useParam("log");
  const field = useRef<HTMLInputElement>(null);
  const steps = useRef<number[]>([]);
  const has = (name: Axis) => x === name && (!run || run.axes[name] !== null);
  const axis: Axis = has("wall") ? "wall" : has("epoch") ? "epoch" : "step";
  const markers = useMemo(() => markersOf(id, run), [id, run?.verdict]);
  const frame = frameOf(id, axis, params, Number(smooth) || 0, log === "1", markers, version);
  useChartKeys(frame, steps, field, setSearch, () => setLog(log === "1" ? "" : "1"));
  const chosen = (params["keys"] ?? "").split(",").filter(Boolean);
  return (
    <div class="charts stack">
      <div class="bar charts-bar">
        <input ref={field} class="grow" type="search" placeholder="Search all signals: gradient fc1 ( / )" value={search} onInput={(e) => setSearch(e.currentTarget.value)} aria-label="Search all signals" />
        <Choices label="Horizontal axis" value={axis} options={axisChoices(run)} set={(next) => (setParams({ from: "", to: "" }), setX(next))} />
        <label>
          Smoothing
          <input type="range" min="0" max="100" step="5" value={smooth} onInput={(e) => setSmooth(e.currentTarget.value)} aria-valuetext={`${smooth}%`} />
        </label>
        <button type="button" aria-pressed={log === "1"} onClick={() => setLog(log === "1" ? "" : "1")} title="Logarithmic vertical axis (l)">
          Log
        </button>
        {frame.range && (
          <button type="button" onClick={() => frame.zoom(null)} title="Show everything (0)">
            {withUnit(frame.range[0], axis === "wall" ? "s" : "")} – {withUnit(frame.range[1], axis === "wall" ? "s" : "")} ×
          </button>
        )}
        {frame.step !== null && (
          <button type="button" onClick={() => setParams({ step: "" })} title="Unpin the step (Esc)">
            step {whole(frame.step)} ×
          </button>
        )}
      </div>
      {chosen.length > 0 && <Chosen frame={frame} keys={chosen} />}
      {!search && <Chapters list={list} frame={frame} steps={steps} />}
      <AllSignals id={id} frame={frame} search={search} version={version} />
    </div>
  );
}

function axisChoices(run: RunDetail | undefined): { value: Axis; title: string; why?: string }[] {
  return [
    { value: "step", title: "Step" },
    { value: "wall", title: "Time", why: !run || run.axes.wall ? undefined : "the time of steps was not recorded" },
    { value: "epoch", title: "Epoch", why: !run || run.axes.epoch ? undefined : "the number of steps per epoch is unknown" },
  ];
}

function frameOf(id: string, axis: Axis, params: Readonly<Record<string, string>>, smooth: number, log: boolean, markers: Marker[], version: number): Frame {
  const number = (name: string) => (params[name] === undefined || !Number.isFinite(Number(params[name])) ? null : Number(params[name]));
  const [from, to] = [number("from"), number("to")];
  return {
    id,
    axis,
    smooth,
    log,
    markers,
    version,
    range: from !== null && to !== null && to > from ? [from, to] : null,
    step: number("step"),
    zoom: (range) => setParams({ from: range ? rounded(range[0], range) : "", to: range ? rounded(range[1], range) : "" }),
    pin: (step) => setParams({ step: String(step) }),
  };
}

/** As many digits as the eye can tell apart in this range: addresses stay short. */
function rounded(value: number, [low, high]: [number, number]): string {
  const places = Math.max(0, Math.min(9, 3 - Math.floor(Math.log10(high - low || 1))));
  return String(Number(value.toFixed(places)));
}

function markersOf(id: string, run: RunDetail | undefined): Marker[] {
  return (run?.verdict?.findings ?? []).flatMap((finding, i) =>
    finding.step === null ? [] : [{ step: finding.step, severity: finding.severity, label: `${finding.check}: ${finding.message}`, href: hrefTo(id, "verdict", { finding: String(i) }) }],
  );
}

function useChartKeys(frame: Frame, steps: { current: number[] }, field: { current: HTMLInputElement | null }, setSearch: (text: string) => void, toggleLog: () => void): void {
  const walk = (by: number) => {
    const known = steps.current;
    if (!known.length) return;
    const at = frame.step === null ? known.length - 1 : known.findIndex((step) => step >= frame.step!);
    const next = frame.step === null ? at : Math.max(0, Math.min(known.length - 1, (at < 0 ? known.length - 1 : at) + by));
    frame.pin(known[next]!);
  };
  const leave = () => {
    if (document.activeElement === field.current) [field.current?.blur(), setSearch("")];
    else setParams({ step: "", keys: "" });
  };
  useKeys([
    { keys: ["/"], says: "search the signals", act: () => field.current?.focus() },
    { keys: ["ArrowRight"], says: "next recorded step (with Shift: ten)", act: (event) => walk(event.shiftKey ? 10 : 1) },
    { keys: ["ArrowLeft"], says: "previous recorded step", act: (event) => walk(event.shiftKey ? -10 : -1) },
    { keys: ["l"], says: "logarithmic axis", act: toggleLog },
    { keys: ["0"], says: "show the whole range", act: () => frame.zoom(null) },
    { keys: ["Escape"], says: "leave the search, unpin the step", act: leave, typing: true },
    { keys: ["click"], says: "pin the step under the pointer", act: () => undefined },
    { keys: ["drag"], says: "zoom into all charts; double-click shows everything", act: () => undefined },
    { keys: ["Ctrl wheel", "Shift wheel"], says: "zoom at the pointer, move along the axis", act: () => undefined },
  ]);
}

/** The series that a link asked for. */
function Chosen({ frame, keys }: { frame: Frame; keys: string[] }) {
  return (
    <section>
      <h2 class="chapter">
        From the finding
        <button type="button" class="plain" onClick={() => setParams({ keys: "" })}>
          close
        </button>
      </h2>
      <div class="chart-grid two">
        {keys.map((key) => (
          <ChartCard key={key} frame={frame} keys={[key]} height={200} />
        ))}
      </div>
    </section>
  );
}

/** The curves that every run has, in the order in which a person looks at them. */
function Chapters({ list, frame, steps }: { list: SignalList; frame: Frame; steps: { current: number[] } }) {
  const chapters = chaptersOf(list.signals);
  const large = chapters.filter((chapter) => chapter[0]!.chart!.large);
  const small = chapters.filter((chapter) => !chapter[0]!.chart!.large);
  useEffect(() => {
    if (!large.length) steps.current = [];
  }, [large.length]);
  return (
    <>
      {large.map((rows) => (
        <ChapterCard key={rows[0]!.key} rows={rows} frame={frame} height={300} onSteps={(known) => (steps.current = known)} />
      ))}
      <div class="chart-grid two">
        {small.map((rows) => (
          <ChapterCard key={rows[0]!.key} rows={rows} frame={frame} height={190} />
        ))}
      </div>
    </>
  );
}

function ChapterCard({ rows, frame, height, onSteps }: { rows: SignalRow[]; frame: Frame; height: number; onSteps?: (steps: number[]) => void }) {
  const chart = rows[0]!.chart!;
  const about = rows.every((row) => row.about === rows[0]!.about) ? rows[0]!.about : undefined;
  const names = chart.together ? rows.map((row) => row.chart!.line) : undefined;
  return <ChartCard frame={frame} keys={rows.map((row) => row.key)} title={chart.title} about={about} robust={chart.robust} names={names} height={height} onSteps={onSteps} />;
}
