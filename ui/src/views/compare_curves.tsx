// The same signal of all runs on one chart.
import { useEffect, useMemo, useState } from "preact/hooks";
import { asError, get, ofRun, type ApiError } from "../api";
import { type Compared, firstSignals } from "../draw/compared";
import { Chart } from "../parts/chart";
import { Choices } from "../parts/choices";
import { Failed, Loading } from "../parts/states";
import { setParams, useParam, usePlace } from "../state";
import type { Axis, SeriesAnswer, SeriesPart } from "../types";
import type { Shared } from "./compare";

export function Overlays({ data, names, pass, chosen, version }: Shared & { version: number }) {
  const { params } = usePlace();
  const [x, setX] = useParam("x", "step");
  const [smooth, setSmooth] = useParam("smooth", "0");
  const [log, setLog] = useParam("log");
  const [more, setMore] = useParam("signals");
  const axis: Axis = x === "wall" || x === "epoch" ? x : "step";
  const labels = more.split("|").filter(Boolean);
  const shown = useMemo(() => {
    const first = firstSignals(data.signals);
    return [...first, ...data.signals.filter((s) => labels.includes(s.label) && !first.includes(s))];
  }, [data, more]);
  const others = data.signals.filter((s) => !shown.includes(s));
  const range: [number, number] | null = params["from"] && params["to"] ? [Number(params["from"]), Number(params["to"])] : null;
  return (
    <section id="curves">
      <div class="tool">
        <Choices label="Horizontal axis" value={axis} options={[{ value: "step", title: "Step" }, { value: "wall", title: "Time" }, { value: "epoch", title: "Epoch" }]} set={(next) => (setParams({ from: "", to: "" }), setX(next))} />
        <label>
          Smoothing
          <input type="range" min="0" max="100" step="5" value={smooth} onInput={(e) => setSmooth(e.currentTarget.value)} />
        </label>
        <button type="button" aria-pressed={log === "1"} onClick={() => setLog(log === "1" ? "" : "1")}>
          Log
        </button>
        {range && (
          <button type="button" onClick={() => setParams({ from: "", to: "" })}>
            Whole range
          </button>
        )}
        {others.length > 0 && (
          <select aria-label="Add a signal" value="" onChange={(e) => setMore([...labels, e.currentTarget.value].join("|"))}>
            <option value="">Add a signal…</option>
            {others.map((s) => (
              <option value={s.label}>{s.label}</option>
            ))}
          </select>
        )}
      </div>
      <div class="columns">
        {shown.map((signal) => (
          <Overlay key={signal.label} signal={signal} data={data} names={names} pass={pass} chosen={chosen} axis={axis} smooth={Number(smooth) || 0} log={log === "1"} range={range} version={version} />
        ))}
      </div>
    </section>
  );
}

interface OverlayProps extends Omit<Shared, "pick"> {
  signal: Compared["signals"][number];
  axis: Axis;
  smooth: number;
  log: boolean;
  range: [number, number] | null;
  version: number;
}

function Overlay({ signal, data, names, pass, chosen, axis, smooth, log, range, version }: OverlayProps) {
  const { parts, error } = useParts(signal, data, axis, range, version);
  // Runs that are out keep their place, so that every run keeps its colour.
  const drawn = useMemo(() => parts?.map((part, i) => (pass[i] && (!chosen || data.runs[i]!.id === chosen) ? part : emptied(part))), [parts, pass, chosen]);
  return (
    <section class="card chart-card" aria-label={signal.label}>
      <h3>
        <b>{signal.label}</b>
      </h3>
      {drawn ? (
        <Chart parts={drawn} names={names} axis={axis} height={230} log={log} smooth={smooth} range={range} sync="compare" onZoom={(next) => setParams({ from: next ? String(next[0]) : "", to: next ? String(next[1]) : "" })} />
      ) : error ? (
        <Failed error={error} />
      ) : (
        <Loading what={signal.label} />
      )}
    </section>
  );
}

function emptied(part: SeriesPart): SeriesPart {
  return { ...part, x: [], steps: [], mean: [], min: undefined, max: undefined, bad: undefined, marks: [] };
}

/** One request for each run; a run without this signal, or without this axis, has an empty line. */
function useParts(signal: Compared["signals"][number], data: Compared, axis: Axis, range: [number, number] | null, version: number): { parts: SeriesPart[] | null; error: ApiError | null } {
  const [state, set] = useState<{ parts: SeriesPart[] | null; error: ApiError | null }>({ parts: null, error: null });
  const runs = data.runs.map((r) => r.id).join();
  useEffect(() => {
    const stop = new AbortController();
    const nothing = (key: string): SeriesPart => ({ key, signal: signal.signal, site: {}, label: signal.label, unit: signal.unit, exact: true, total: 0, x: [], steps: [], mean: [], marks: [] });
    const asked = data.runs.map(async (run, i) => {
      const key = signal.keys[i];
      if (!key) return nothing(run.id);
      try {
        const answer = await get<SeriesAnswer>(ofRun(run.id, "series"), { keys: key, x: axis, points: 600, from: range?.[0], to: range?.[1] }, stop.signal);
        const part = answer.series[0];
        return part && !part.missing ? { ...part, key: `${run.id}:${key}` } : nothing(run.id);
      } catch (e) {
        if (axis !== "step") return nothing(run.id); // it has no such axis
        throw e;
      }
    });
    Promise.all(asked).then(
      (parts) => stop.signal.aborted || set({ parts, error: null }),
      (e: unknown) => stop.signal.aborted || set((old) => ({ parts: old.parts, error: asError(e) })),
    );
    return () => stop.abort();
  }, [runs, signal.label, axis, range?.[0], range?.[1], version]);
  return state;
}
