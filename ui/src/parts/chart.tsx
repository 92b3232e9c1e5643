// One chart: lines with their min/max band, zoom that requests more points, markers of findings, a cursor shared with the others.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { badPlaces, nearest, placeOfStep, tabled, usualTop, type Table } from "../draw/series";
import { severityPath } from "../draw/severity_shapes";
import { digits, withUnit } from "../format";
import { colour, useTheme } from "../theme";
import type { Axis, SeriesPart, Severity } from "../types";
import "./chart.css";

export interface Marker {
  step: number;
  severity: Severity;
  label: string;
  href: string;
}

export interface ChartProps {
  parts: SeriesPart[];
  names?: string[]; // what each line is called here; the series' own labels otherwise
  axis: Axis;
  xLabel?: string; // where the horizontal axis is none of the run's: "learning rate"
  height: number;
  log?: boolean;
  smooth?: number; // 0–100
  range?: [number, number] | null; // what is shown; null: all there is
  step?: number | null; // the pinned step
  markers?: Marker[];
  flags?: boolean; // the markers are links; too many of them on a page would only be in the way
  sync?: string; // charts of the same name share a cursor
  robust?: boolean; // a few values far above all others may be outside the chart; a note says so
  onZoom?: (range: [number, number] | null) => void;
  onPin?: (step: number) => void;
}

const SERIES_COLOURS = 8;
const LINES_PER_SERIES = 4;

export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [cursor, setCursor] = useState<number | null>(null);
  const theme = useTheme();
  const { parts, axis, log = false, smooth = 0 } = props;
  const table = useMemo(() => tabled(parts, smooth, log), [parts, smooth, log]);
  const outside = useMemo(() => above(table, props), [table, props.range?.[0], props.range?.[1], props.robust, log]);
  const shape = `${parts.map((p) => p.key).join()}|${axis}|${log}|${theme}|${props.height}|${smooth > 0}`;

  useEffect(() => {
    const host = box.current;
    if (!host) return;
    const made = new uPlot(options(host.clientWidth || 300, latest, setCursor), columns(table), host);
    plot.current = made;
    show(made, latest.current, table);
    const watcher = new ResizeObserver(() => host.clientWidth > 0 && made.setSize({ width: host.clientWidth, height: latest.current.height }));
    watcher.observe(host);
    const stopWheel = listenToWheel(made, latest);
    return () => {
      watcher.disconnect();
      stopWheel();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => {
    if (plot.current) show(plot.current, props, table);
  }, [table, props.range?.[0], props.range?.[1], props.step, props.markers]);

  return (
    <div class="chart">
      <Readout parts={parts} names={props.names} words={props.xLabel === undefined ? AXIS_WORDS[axis] : (x) => `${props.xLabel} ${digits(x)}`} cursor={cursor} step={props.step ?? null} />
      <div ref={box} class="plot" />
      {outside.count > 0 && (
        <p class="faint note">
          {digits(outside.count)} {outside.count === 1 ? "value is" : "values are"} above the chart, up to {withUnit(outside.most, parts[0]?.unit)}.
        </p>
      )}
      {table.hidden > 0 && <p class="faint note">{digits(table.hidden)} values of zero or less do not fit on the logarithmic axis.</p>}
    </div>
  );
}

/** uPlot's columns: x, then minimum, maximum, raw and smoothed of each series. */
function columns(table: Table): uPlot.AlignedData {
  const lines = table.lines.flatMap((line) => [filled(line.low, table), filled(line.high, table), line.raw, line.smooth]);
  return [table.x, ...lines] as uPlot.AlignedData;
}

function filled(values: Table["lines"][number]["low"], table: Table): Table["lines"][number]["low"] {
  return values.length ? values : new Array<null>(table.x.length).fill(null);
}

function show(plot: uPlot, props: ChartProps, table: Table): void {
  const [first, last] = props.range ?? [table.x[0] ?? 0, table.x[table.x.length - 1] ?? 1];
  plot.batch(() => {
    plot.setData(columns(table), false);
    const few = table.x.length <= 1;
    plot.setScale("x", { min: few ? first - 1 : first, max: few || last <= first ? last + 1 : last });
    const [low, high] = extent(table, first, last, props);
    plot.setScale("y", { min: low, max: high });
  });
  plot.redraw(false);
}

/** The y range of what is shown, with a small margin. */
function extent(table: Table, first: number, last: number, { log = false, robust = false }: ChartProps): [number, number] {
  const values = shownValues(table, first, last).filter((value) => !log || value > 0);
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = robust && !log ? usualTop(values) : values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (low > high) return log ? [0.1, 1] : [0, 1];
  if (log) return low === high ? [low / 2, high * 2] : [low / 1.15, high * 1.15];
  const air = low === high ? Math.abs(low) * 0.1 || 1 : (high - low) * 0.06;
  return [low >= 0 && low - air < 0 ? 0 : low - air, high + air];
}

function shownValues(table: Table, first: number, last: number): number[] {
  const found: number[] = [];
  for (let i = 0; i < table.x.length; i += 1) {
    if (table.x[i]! < first || table.x[i]! > last) continue;
    for (const line of table.lines)
      for (const value of [line.low[i], line.high[i], line.raw[i]]) if (typeof value === "number") found.push(value);
  }
  return found;
}

/** Values above this are outside the chart, and a note counts them. */
function above(table: Table, props: ChartProps): { count: number; most: number } {
  if (!props.robust || props.log) return { count: 0, most: 0 };
  const [first, last] = props.range ?? [-Infinity, Infinity];
  const values = shownValues(table, first, last);
  const top = usualTop(values);
  const beyond = new Set(values.filter((value) => value > top * 1.06));
  return { count: beyond.size, most: Math.max(0, ...beyond) };
}

function options(width: number, latest: { current: ChartProps }, setCursor: (x: number | null) => void): uPlot.Options {
  const props = latest.current;
  return {
    width,
    height: props.height,
    legend: { show: false },
    padding: [10, 12, 0, 0],
    cursor: {
      y: false,
      points: { size: 5 },
      drag: { x: true, y: false, setScale: false, dist: 4 },
      focus: { prox: -1 },
      sync: props.sync ? { key: props.sync, setSeries: false, scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } } : undefined,
      bind: { dblclick: () => () => (latest.current.onZoom?.(null), null) },
    },
    scales: { x: { time: false, auto: false, distr: logarithmicX(props) ? 3 : 1 }, y: { auto: false, distr: props.log ? 3 : 1 } },
    axes: axes(props),
    series: [{}, ...props.parts.flatMap((part, i) => lineOptions(part, i, props))],
    bands: props.parts.map((_, i) => ({ series: [LINES_PER_SERIES * i + 2, LINES_PER_SERIES * i + 1] as [number, number], fill: faded(seriesColour(i), 0.2) })),
    hooks: {
      draw: [(u) => drawMarks(u, latest.current)],
      setCursor: [(u) => setCursor(u.cursor.left === undefined || u.cursor.left < 0 ? null : u.posToVal(u.cursor.left, "x"))],
      setSelect: [(u) => zoomed(u, latest.current)],
      ready: [(u) => u.over.addEventListener("click", () => pinned(u, latest.current))],
    },
  };
}

/** Learning rates and sizes are tried over orders of magnitude. */
function logarithmicX(props: ChartProps): boolean {
  const x = props.parts[0]?.x ?? [];
  const [first, last] = [x[0] ?? 0, x[x.length - 1] ?? 0];
  return props.xLabel !== undefined && first > 0 && last / first >= 100;
}

function lineOptions(part: SeriesPart, i: number, props: ChartProps): uPlot.Series[] {
  const stroke = seriesColour(i);
  const smooth = (props.smooth ?? 0) > 0;
  const points = { show: part.steps.length < 60 && !smooth, size: 4, fill: stroke };
  const edge: uPlot.Series = { stroke: faded(stroke, 0.25), width: 1, points: { show: false } };
  return [
    edge,
    edge,
    { stroke: smooth ? faded(stroke, 0.4) : stroke, width: smooth ? 1 : 1.5, points },
    { stroke, width: 2, show: smooth, points: { show: false } },
  ];
}

function axes(props: ChartProps): uPlot.Axis[] {
  const unit = props.parts[0]?.unit ?? "";
  const shared = {
    stroke: colour("soft"),
    font: `11px ${colour("sans")}`,
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { stroke: colour("line"), width: 1, size: 4 },
  };
  const names: Record<Axis, string> = { step: "", wall: "s", epoch: "" };
  return [
    { ...shared, ...AXIS_LABEL, label: props.xLabel ?? AXIS_NAMES[props.axis], size: 26, values: (_, ticks) => ticks.map((tick) => (tick === null ? null : withUnit(tick, names[props.axis])) as string) },
    { ...shared, size: (_, values) => 16 + 6.4 * Math.max(3, ...(values ?? []).map((v) => v?.length ?? 0)), incrs: unit === "B" ? BINARY_STEPS : undefined, values: (_, ticks) => ticks.map((tick) => (tick === null ? null : withUnit(tick, unit)) as string) },
  ];
}

const BINARY_STEPS = Array.from({ length: 50 }, (_, i) => 2 ** i); // so that ticks are round in KiB and MiB
const AXIS_NAMES: Record<Axis, string> = { step: "step", wall: "time since the start", epoch: "epoch" };
const AXIS_LABEL = { labelSize: 13, labelGap: -2, labelFont: "11px system-ui, sans-serif" };

function seriesColour(i: number): string {
  return colour(`series-${i % SERIES_COLOURS}`);
}

/** A colour of the theme (#rrggbb) with less weight. */
function faded(hex: string, share: number): string {
  return `${hex}${Math.round(share * 255).toString(16).padStart(2, "0")}`;
}

function drawMarks(u: uPlot, props: ChartProps): void {
  const part = props.parts[0];
  if (!part) return;
  const ratio = uPlot.pxRatio;
  const { left, top, width, height } = u.bbox;
  const inside = (x: number | null): number | null => {
    if (x === null) return null;
    const at = u.valToPos(x, "x", true);
    return at >= left - 1 && at <= left + width + 1 ? at : null;
  };
  u.ctx.save();
  const flags: [Marker, number][] = [];
  for (const marker of props.markers ?? []) {
    const at = inside(placeOfStep(part, marker.step));
    if (at === null) continue;
    drawMarker(u.ctx, at, top, height, ratio, marker.severity);
    flags.push([marker, (at - left) / ratio]);
  }
  if (props.flags) placeFlags(u, flags);
  const pinnedAt = props.step === null || props.step === undefined ? null : inside(placeOfStep(part, props.step));
  if (pinnedAt !== null) {
    u.ctx.strokeStyle = colour("ink");
    u.ctx.lineWidth = ratio;
    u.ctx.beginPath();
    u.ctx.moveTo(pinnedAt, top);
    u.ctx.lineTo(pinnedAt, top + height);
    u.ctx.stroke();
  }
  u.ctx.fillStyle = colour("error");
  for (const series of props.parts)
    for (const bad of badPlaces(series)) {
      const at = inside(bad.x);
      if (at !== null) cross(u.ctx, at, top + height - 5 * ratio, 3 * ratio, ratio);
    }
  u.ctx.restore();
}

function drawMarker(ctx: CanvasRenderingContext2D, x: number, top: number, height: number, ratio: number, severity: Severity): void {
  ctx.strokeStyle = ctx.fillStyle = colour(severity);
  ctx.lineWidth = ratio;
  ctx.setLineDash([4 * ratio, 3 * ratio]);
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, top + height);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fill(severityPath(severity, x, top, 4.5 * ratio));
}

/** Over each marker a link that says what it is and leads to the finding. */
function placeFlags(u: uPlot, flags: [Marker, number][]): void {
  const old = [...u.over.querySelectorAll<HTMLAnchorElement>("a.flag")];
  flags.forEach(([marker, x], i) => {
    const flag = old[i] ?? u.over.appendChild(document.createElement("a"));
    flag.className = "flag";
    flag.href = marker.href;
    flag.title = marker.label;
    flag.setAttribute("aria-label", marker.label);
    flag.style.left = `${x}px`;
  });
  old.slice(flags.length).forEach((flag) => flag.remove());
}

/** A value that is not a number: a cross at the bottom, where its step is. */
function cross(ctx: CanvasRenderingContext2D, x: number, y: number, r: number, ratio: number): void {
  ctx.strokeStyle = colour("error");
  ctx.lineWidth = 1.5 * ratio;
  ctx.beginPath();
  ctx.moveTo(x - r, y - r);
  ctx.lineTo(x + r, y + r);
  ctx.moveTo(x + r, y - r);
  ctx.lineTo(x - r, y + r);
  ctx.stroke();
}

function zoomed(u: uPlot, props: ChartProps): void {
  const { left, width } = u.select;
  if (width < 4) return;
  const range: [number, number] = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
  u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  props.onZoom?.(range);
}

function pinned(u: uPlot, props: ChartProps): void {
  const part = props.parts[0];
  if (!part || u.select.width > 0 || u.cursor.left === undefined || u.cursor.left < 0) return;
  const step = part.steps[nearest(part.x, u.posToVal(u.cursor.left, "x"))];
  if (step !== undefined) props.onPin?.(step);
}

/** With Ctrl the wheel zooms about the pointer, with Shift it moves along; alone it scrolls the page. */
function listenToWheel(u: uPlot, latest: { current: ChartProps }): () => void {
  const turn = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const { min = 0, max = 1 } = u.scales["x"] ?? {};
    const [low, high] = [min ?? 0, max ?? 1];
    const by = event.deltaY || event.deltaX;
    if (event.shiftKey) {
      const shift = (high - low) * 0.1 * Math.sign(by);
      latest.current.onZoom?.([low + shift, high + shift]);
    } else {
      const centre = u.posToVal(event.offsetX, "x");
      const factor = by > 0 ? 1.25 : 0.8;
      latest.current.onZoom?.([centre - (centre - low) * factor, centre + (high - centre) * factor]);
    }
  };
  u.over.addEventListener("wheel", turn, { passive: false });
  return () => u.over.removeEventListener("wheel", turn);
}

const AXIS_WORDS: Record<Axis, (x: number) => string> = {
  step: (x) => `step ${Math.round(x).toLocaleString("en-US")}`,
  wall: (x) => withUnit(x, "s"),
  epoch: (x) => `epoch ${digits(x)}`,
};

/** What each line says at the cursor, else at the pinned step, else at its end. */
function Readout({ parts, names, words, cursor, step }: { parts: SeriesPart[]; names?: string[]; words: (x: number) => string; cursor: number | null; step: number | null }) {
  const x = cursor ?? (step === null || !parts[0] ? null : placeOfStep(parts[0], step));
  return (
    <div class="readout">
      {parts.map((part, i) => {
        const at = x === null ? part.x.length - 1 : nearest(part.x, x);
        return (
          <span class="entry">
            <i class={`swatch s${i % SERIES_COLOURS}`} />
            {(parts.length > 1 || names) && <span class="soft">{names?.[i] ?? part.label} </span>}
            <Value part={part} at={at} />
          </span>
        );
      })}
      {parts[0] && <span class="faint num">{x === null ? lastWord(parts[0], words) : words(x)}</span>}
    </div>
  );
}

function lastWord(part: SeriesPart, words: (x: number) => string): string {
  const last = part.x[part.x.length - 1];
  return last === undefined || last === null ? "" : words(last);
}

function Value({ part, at }: { part: SeriesPart; at: number }) {
  const named = (part.marks ?? []).find(([i]) => i === at)?.[1];
  if (named) return <b class="num bad">{named === "nan" ? "NaN" : named}</b>;
  const mean = part.mean[at];
  if (mean === undefined) return null;
  const [low, high] = [part.min?.[at], part.max?.[at]];
  const wide = low !== undefined && high !== undefined && low !== high;
  return (
    <>
      <b class="num">{withUnit(mean, part.unit)}</b>
      {wide && (
        <span class="faint num">
          {" "}
          {withUnit(low, part.unit)} … {withUnit(high, part.unit)}
        </span>
      )}
    </>
  );
}
