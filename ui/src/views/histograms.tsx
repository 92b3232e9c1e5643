// One layer's values over time: as a ridge of outlines, or as a heat map of steps × values.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isReport, ofRun, useApi } from "../api";
import type { HistogramSites, LayerRow } from "../answers";
import { drawn, type Drawn, type HistogramAnswer } from "../draw/bins";
import { Canvas, MONO, pointOn } from "../draw/canvas";
import { css, rgbAt, ticks } from "../draw/scale";
import { digits, plural, whole } from "../format";
import type { FindingHere } from "../draw/findings_at";
import { Choices } from "../parts/choices";
import { Mark } from "../parts/mark";
import { Await, Empty } from "../parts/states";
import { Tip, type TipAt } from "../parts/tip";
import { setParams, usePlace, useParam } from "../state";
import { colour } from "../theme";

type Sites = Partial<HistogramSites>;

interface Props {
  id: string;
  site: string;
  layer: LayerRow | undefined;
  found: FindingHere[];
  version: number;
  onClose: () => void;
}

const NAMES: Record<string, string> = { activation: "outputs", gradient: "gradients", weight: "weights", update: "updates" };
const KINDS: Record<string, string> = { linear: "values", log2: "magnitudes" };
const STYLES = [
  { value: "heat", title: "heat map" },
  { value: "ridge", title: "ridge" },
];

export function Histograms({ id, site, layer, found, version, onClose }: Props) {
  const [what, setWhat] = useParam("what");
  const [kind, setKind] = useParam("hist", "linear");
  const [style, setStyle] = useParam("look", "heat");
  const answer = useApi<HistogramAnswer>(ofRun(id, "histograms"), { site, stat: what, kind, columns: 120 }, version);
  const stats = answer.data?.stats ?? [];
  const kinds = isReport ? [] : (answer.data?.kinds ?? []);
  const place = usePlace();
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.scrollIntoView({ block: "nearest" }), []);
  return (
    <section class="panel histograms" ref={panel} aria-label="Histograms of the layer">
      <header>
        <h3 class="mono">{layer?.label ?? answer.data?.label ?? "layer"}</h3>
        {layer?.class && <span class="soft">{layer.class}</span>}
        {layer?.numel ? <span class="soft">{whole(layer.numel)} values</span> : null}
        {layer?.file && (
          <span class="where">
            {layer.file}:{layer.line}
          </span>
        )}
        <span class="grow" />
        <Siblings id={id} site={site} module={layer?.module ?? null} version={version} />
        {stats.length > 1 && <Choices label="Statistic" value={answer.data?.stat ?? ""} options={optionsOf(stats, NAMES)} set={setWhat} />}
        {kinds.length > 1 && <Choices label="Bins" value={answer.data?.kind ?? kind} options={optionsOf(kinds, KINDS)} set={setKind} />}
        <Choices label="Style" value={style} options={STYLES} set={setStyle} />
        <button type="button" aria-label="Close" onClick={onClose}>
          Close
        </button>
      </header>
      <div class="inside">
        {found.length > 0 && (
          <div class="found">
            {found.map((f) => (
              <a href={place.at === "run" ? `#/run/${encodeURIComponent(place.run)}/verdict?finding=${f.index}` : "#/"}>
                <Mark severity={f.severity} /> {f.message}
              </a>
            ))}
          </div>
        )}
        <Await of={answer} what="the histograms">
          {(data) => (data.missing || !data.steps?.length ? <Empty title="No histograms of this layer">{data.missing && <p>{data.missing}</p>}</Empty> : <Chart data={data} style={style} />)}
        </Await>
      </div>
    </section>
  );
}

/** Other tensors of the same module that have histograms: its bias, its output. */
function Siblings({ id, site, module, version }: { id: string; site: string; module: string | null; version: number }) {
  const all = useApi<Sites>(ofRun(id, "histograms"), {}, version);
  const near = (all.data?.sites ?? []).filter((s) => s.site === site || (module !== null && (s.label === module || s.label.startsWith(`${module}.`) || s.label.startsWith(`${module} `))));
  if (near.length < 2) return null;
  return (
    <select aria-label="Of the same module" value={site} onChange={(e) => setParams({ site: e.currentTarget.value, what: "" })}>
      {near.slice(0, 40).map((s) => (
        <option value={s.site}>
          {s.label} ({s.stats.map((t) => NAMES[t] ?? t).join(", ")})
        </option>
      ))}
    </select>
  );
}

function optionsOf(values: string[], names: Record<string, string>): { value: string; title: string }[] {
  return values.map((value) => ({ value, title: names[value] ?? value }));
}

const LEFT = 64;
const BELOW = 26;

function Chart({ data, style }: { data: HistogramAnswer; style: string }) {
  const shown = useMemo(() => drawn(data), [data]);
  const [over, setOver] = useState<{ at: TipAt; index: number; value: number; share: number } | null>(null);
  const height = style === "ridge" ? Math.min(620, Math.max(220, shown.steps.length * 16 + 60)) : Math.min(460, Math.max(200, shown.steps.length * 12 + BELOW));
  const paint = useCallback(
    (context: CanvasRenderingContext2D, width: number, tall: number) => (style === "ridge" ? ridge : heat)(context, width, tall, shown),
    [shown, style],
  );
  const move = (event: MouseEvent) => {
    const [x, y] = pointOn(event);
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const index = rowAt(shown, y, box.height, style);
    const bins = shown.rows[0]?.length ?? 1;
    const bin = Math.floor(((x - LEFT) / (box.width - LEFT)) * bins);
    if (x < LEFT || bin >= bins || index < 0 || index >= shown.steps.length) return setOver(null);
    const value = shown.low + ((bin + 0.5) / bins) * (shown.high - shown.low);
    setOver({ at: { x: event.clientX, y: event.clientY }, index, value, share: shown.rows[index]![bin] ?? 0 });
  };
  return (
    <>
      <Canvas paint={paint} height={height} label={`histograms at ${plural(shown.steps.length, "step")}`} onMouseMove={move} onMouseLeave={() => setOver(null)} />
      <p class="hint">
        {shown.log2 ? "Size of the values as powers of two; the leftmost bin also contains zero." : "Values; up to 4,096 of each layer, evenly spaced."} One row per recorded step, the newest at the bottom.
      </p>
      {over && (
        <Tip at={over.at}>
          <dl>
            <dt>step</dt>
            <dd class="num">{digits(shown.steps[over.index])}</dd>
            <dt>{shown.log2 ? "|value| near" : "value near"}</dt>
            <dd class="num">{shown.log2 ? `2^${Math.round(over.value)}` : digits(over.value)}</dd>
            <dt>share</dt>
            <dd class="num">{digits(over.share * 100)}%</dd>
          </dl>
        </Tip>
      )}
    </>
  );
}

function rowAt(shown: Drawn, y: number, height: number, style: string): number {
  const n = shown.steps.length;
  if (style !== "ridge") return Math.floor((y / (height - BELOW)) * n);
  const top = 40;
  return Math.min(n - 1, Math.max(0, Math.round(((y - top) / (height - BELOW - top)) * (n - 1))));
}

/** On whole pixels of the screen there are no seams between neighbours. */
function edge(at: number): number {
  const ratio = window.devicePixelRatio || 1;
  return Math.round(at * ratio) / ratio;
}

function heat(context: CanvasRenderingContext2D, width: number, height: number, shown: Drawn): void {
  const tall = (height - BELOW) / shown.rows.length;
  shown.rows.forEach((row, i) => {
    const most = Math.max(...row) || 1;
    const wide = (width - LEFT) / row.length;
    row.forEach((share, k) => {
      if (!share) return;
      context.fillStyle = css(rgbAt("linear", Math.sqrt(share / most))); // the root shows thin tails too
      const [x, y] = [edge(LEFT + k * wide), edge(i * tall)];
      context.fillRect(x, y, edge(LEFT + (k + 1) * wide) - x, edge((i + 1) * tall) - y);
    });
  });
  paintSteps(context, shown, (i) => (i + 0.5) * tall, tall);
  paintValues(context, width, height, shown);
}

function ridge(context: CanvasRenderingContext2D, width: number, height: number, shown: Drawn): void {
  const n = shown.rows.length;
  const top = 40;
  const base = (i: number) => top + (n > 1 ? (i / (n - 1)) * (height - BELOW - top) : (height - BELOW - top) / 2);
  shown.rows.forEach((row, i) => {
    const most = Math.max(...row) || 1;
    const wide = (width - LEFT) / row.length;
    context.beginPath();
    context.moveTo(LEFT, base(i));
    row.forEach((share, k) => context.lineTo(LEFT + (k + 0.5) * wide, base(i) - (share / most) * 36));
    context.lineTo(width, base(i));
    context.fillStyle = colour("card");
    context.globalAlpha = 0.86;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = css(rgbAt("linear", n > 1 ? (0.85 * i) / (n - 1) : 0.5));
    context.lineWidth = 1.4;
    context.stroke();
  });
  paintSteps(context, shown, base, n > 1 ? (height - BELOW - top) / (n - 1) : 40);
  paintValues(context, width, height, shown);
}

function paintSteps(context: CanvasRenderingContext2D, shown: Drawn, y: (i: number) => number, each: number): void {
  context.font = MONO;
  context.fillStyle = colour("soft");
  context.textBaseline = "middle";
  context.textAlign = "right";
  const every = Math.max(1, Math.ceil(14 / each));
  for (let i = 0; i < shown.steps.length; i += every) context.fillText(digits(shown.steps[i]), LEFT - 8, y(i));
  context.textAlign = "left";
}

function paintValues(context: CanvasRenderingContext2D, width: number, height: number, shown: Drawn): void {
  context.font = MONO;
  context.fillStyle = colour("soft");
  context.textBaseline = "alphabetic";
  for (const tick of ticks("linear", shown.low, shown.high, Math.max(2, Math.floor((width - LEFT) / 90)))) {
    const x = LEFT + ((tick - shown.low) / (shown.high - shown.low)) * (width - LEFT);
    const text = shown.log2 ? `2^${tick}` : digits(tick);
    context.textAlign = x > width - 24 ? "right" : x < LEFT + 10 ? "left" : "center";
    if (shown.log2 && !Number.isInteger(tick)) continue;
    context.fillText(text, x, height - 6);
    context.fillRect(x, height - BELOW, 1, 4);
  }
  context.textAlign = "left";
}
