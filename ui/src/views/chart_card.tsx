// A chart with its title; it requests exactly the points that it shows.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ofRun, useApi } from "../api";
import { whole } from "../format";
import { Chart, type Marker } from "../parts/chart";
import { Failed } from "../parts/states";
import type { Axis, SeriesAnswer, SeriesPart } from "../types";

/** What all charts of the page share: axis, range, cursor, looks. */
export interface Frame {
  id: string;
  axis: Axis;
  smooth: number;
  log: boolean;
  markers: Marker[];
  version: number;
  range: [number, number] | null;
  step: number | null;
  zoom: (range: [number, number] | null) => void;
  pin: (step: number) => void;
}

interface CardProps {
  frame: Frame;
  keys: string[];
  title?: string;
  about?: string;
  names?: string[];
  height: number;
  robust?: boolean;
  onSteps?: (steps: number[]) => void;
}

export function ChartCard({ frame, keys, title, about, names, height, robust, onSteps }: CardProps) {
  const box = useRef<HTMLElement>(null);
  const [points, setPoints] = useState(1200);
  useEffect(() => {
    const width = box.current?.clientWidth ?? 600;
    setPoints(Math.max(200, Math.ceil((width * Math.min(2, window.devicePixelRatio || 1)) / 200) * 200));
  }, []);
  const { id, axis, range, version } = frame;
  const asked = { keys: keys.join(","), from: range?.[0], to: range?.[1], points, x: axis };
  const inHand = useRef(false); // the user is zooming this chart
  const before = useRef(String(range));
  const answer = useApi<SeriesAnswer>(ofRun(id, "series"), asked, version, before.current !== String(range) && !inHand.current);
  useLayoutEffect(() => void (before.current = String(range)), [String(range)]);
  const fits = answer.data?.x === axis ? answer.data : undefined; // of another axis: not to be drawn on this one
  const parts = (fits?.series ?? []).filter((part) => !part.missing && part.steps.length > 0);
  const shown = useSame(parts);
  const [within, zoom] = useRange(frame, inHand, answer.fresh || !fits);
  const gone = (fits?.series ?? []).filter((part) => part.missing);
  useEffect(() => {
    if (shown[0]) onSteps?.(shown[0].steps);
  }, [shown]);
  return (
    <section ref={box} class="card chart-card" aria-label={title ?? shown[0]?.label ?? "chart"}>
      <h3 title={about || undefined}>
        <b>{title ?? shown[0]?.label ?? "\u00a0"}</b> <Resolution parts={shown} />
      </h3>
      {shown.length > 0 ? (
        <Chart parts={shown} names={named(names, keys, shown)} axis={axis} height={height} robust={robust} log={frame.log} smooth={frame.smooth} range={within} step={frame.step} markers={frame.markers} flags={height > 150} sync="charts" onZoom={zoom} onPin={frame.pin} />
      ) : (
        <div class="chart-hole" data-height={height}>
          {answer.error ? <Failed error={answer.error} retry={answer.reload} /> : <p class="faint">{nothing(answer.loading || !fits, gone)}</p>}
        </div>
      )}
    </section>
  );
}

/** The range to draw: the chart being zoomed follows at once, the others when their points arrive. */
function useRange(frame: Frame, inHand: { current: boolean }, settled: boolean): [Frame["range"], Frame["zoom"]] {
  const kept = useRef(frame.range);
  if (settled || inHand.current) kept.current = frame.range;
  if (settled) inHand.current = false;
  const zoom = (range: Frame["range"]) => {
    inHand.current = true;
    frame.zoom(range);
  };
  return [kept.current, zoom];
}

function nothing(waiting: boolean, gone: SeriesPart[]): string {
  if (gone[0]?.missing) return gone[0].missing;
  return waiting ? "\u00a0" : "No points in this range";
}

/** Names belong to keys: a missing series is left out with its name. */
function named(names: string[] | undefined, keys: string[], parts: SeriesPart[]): string[] | undefined {
  return names && parts.map((part) => names[keys.indexOf(part.key)] ?? part.label);
}

/** The same array as long as its content comes from the same answer: charts redraw only for new data. */
function useSame(parts: SeriesPart[]): SeriesPart[] {
  const kept = useRef<SeriesPart[]>(parts);
  const same = kept.current.length === parts.length && kept.current.every((part, i) => part === parts[i]);
  if (!same) kept.current = parts;
  return kept.current;
}

/** Say when a bucket stands for more than one value. */
function Resolution({ parts }: { parts: SeriesPart[] }) {
  const most = parts.reduce((a, b) => (b.total > a ? b.total : a), 0);
  if (!parts.some((part) => !part.exact)) return null;
  return <span class="faint note">{whole(most)} points, as minimum–maximum and mean</span>;
}
