// A line for each run through its settings and results; drag along an axis to keep only runs in that range.
import { useCallback, useRef, useState } from "preact/hooks";
import { Canvas, fitted, pointOn } from "../draw/canvas";
import { type Axis, type Brushes, placeOn, type Value, valueAt, valueText } from "../draw/parallel";
import { Tip, type TipAt } from "../parts/tip";
import { colour } from "../theme";
import type { Shared } from "./compare";

interface Props extends Shared {
  axes: Axis[];
  rows: Record<string, Value>[];
  results: Set<string>;
  brushes: Brushes;
  setBrushes: (next: Brushes) => void;
}

interface Drag {
  axis: number;
  from: number;
  to: number;
}

const HEIGHT = 300;
const TOP = 44;
const BELOW = 26;
const SIDE = 70;

export function Parallel({ axes, rows, results, brushes, setBrushes, data, names, pass, chosen, pick }: Props) {
  const [over, setOver] = useState<{ at: TipAt; run: number } | null>(null);
  const [drag, show] = useState<Drag | null>(null);
  const held = useRef<Drag | null>(null); // what the mouse does between two paints must not be lost
  const setDrag = (next: Drag | null) => show((held.current = next));
  const live = drag ? { ...brushes, [axes[drag.axis]!.name]: sorted(drag.from, drag.to) } : brushes;
  const bright = data.runs.map((run, i) => pass[i]! && (!chosen || run.id === chosen));
  const paint = useCallback(
    (context: CanvasRenderingContext2D, width: number) => draw(context, width, axes, rows, results, live, bright, over?.run ?? null),
    [axes, rows, drag, brushes, pass, chosen, over?.run],
  );
  const read = (event: MouseEvent) => {
    const [x, y] = pointOn(event);
    const width = (event.currentTarget as HTMLElement).getBoundingClientRect().width;
    const each = (width - 2 * SIDE) / Math.max(axes.length - 1, 1);
    const axis = Math.round((x - SIDE) / each);
    const near = axis >= 0 && axis < axes.length && Math.abs(x - SIDE - axis * each) < 16 ? axis : null;
    return { x, y, each, near, place: Math.min(1, Math.max(0, 1 - (y - TOP) / (HEIGHT - TOP - BELOW))) };
  };
  const runAt = ({ x, y, each }: ReturnType<typeof read>): number | null => {
    let [best, least] = [null as number | null, 8];
    rows.forEach((row, i) => {
      const at = heightAt(axes, row, (x - SIDE) / each);
      if (at !== null && Math.abs(at - y) < least) [best, least] = [i, Math.abs(at - y)];
    });
    return best;
  };
  const down = (event: MouseEvent) => {
    const here = read(event);
    if (here.near !== null) setDrag({ axis: here.near, from: here.place, to: here.place });
  };
  const move = (event: MouseEvent) => {
    const here = read(event);
    if (held.current) return setDrag({ ...held.current, to: here.place });
    const run = runAt(here);
    setOver(run === null ? null : { run, at: { x: event.clientX, y: event.clientY } });
  };
  const up = () => {
    if (held.current) {
      const { axis, from, to } = held.current;
      const name = axes[axis]!.name;
      const { [name]: _, ...others } = brushes;
      setBrushes(Math.abs(to - from) < 0.02 ? others : { ...others, [name]: sorted(from, to) });
      setDrag(null);
    } else if (over) pick(data.runs[over.run]!.id);
  };
  return (
    <section class="panel parallel" id="parallel">
      <header>
        <h3>Parallel coordinates</h3>
        <span class="hint">drag along an axis to keep only the runs in that range; click the axis to reset; click a line to select its run</span>
      </header>
      <div class="inside">
        <Canvas paint={paint} height={HEIGHT} label={`parallel coordinates of ${rows.length} runs`} onMouseDown={down} onMouseMove={move} onMouseUp={up} onMouseLeave={() => (setOver(null), setDrag(null))} />
      </div>
      {over && !drag && (
        <Tip at={over.at}>
          <b>{names[over.run]}</b>
          <dl>
            {axes.slice(0, 12).map((axis) => (
              <>
                <dt>{axis.name}</dt>
                <dd class="num">{valueText(rows[over.run]![axis.name])}</dd>
              </>
            ))}
          </dl>
        </Tip>
      )}
    </section>
  );
}

function sorted(a: number, b: number): [number, number] {
  return [Math.min(a, b), Math.max(a, b)];
}

const yOf = (place: number) => TOP + (1 - place) * (HEIGHT - TOP - BELOW);

/** How high a run's line is at a place between axes; null where it is broken. */
function heightAt(axes: Axis[], row: Record<string, Value>, at: number): number | null {
  const left = Math.min(Math.max(Math.floor(at), 0), axes.length - 2);
  const [a, b] = [placeOn(axes[left]!, row[axes[left]!.name]), placeOn(axes[left + 1]!, row[axes[left + 1]!.name])];
  if (a === null || b === null || at < 0 || at > axes.length - 1) return null;
  return yOf(a + (b - a) * (at - left));
}

function draw(context: CanvasRenderingContext2D, width: number, axes: Axis[], rows: Record<string, Value>[], results: Set<string>, brushes: Brushes, bright: boolean[], over: number | null): void {
  const each = (width - 2 * SIDE) / Math.max(axes.length - 1, 1);
  const order = rows.map((_, i) => i).sort((a, b) => Number(a === over) - Number(b === over) || Number(bright[a]) - Number(bright[b]));
  for (const i of order) {
    context.strokeStyle = bright[i] ? colour(`series-${i % 8}`) : colour("line");
    context.lineWidth = i === over ? 3.5 : bright[i] ? 2 : 1;
    context.beginPath();
    let pen = false;
    axes.forEach((axis, k) => {
      const place = placeOn(axis, rows[i]![axis.name]);
      if (place === null) pen = false;
      else if (pen) context.lineTo(SIDE + k * each, yOf(place));
      else context.moveTo(SIDE + k * each, yOf(place));
      pen = place !== null;
    });
    context.stroke();
    axes.forEach((axis, k) => {
      const place = placeOn(axis, rows[i]![axis.name]);
      if (place === null) return;
      context.fillStyle = context.strokeStyle;
      context.beginPath();
      context.arc(SIDE + k * each, yOf(place), 3, 0, 2 * Math.PI);
      context.fill();
    });
  }
  axes.forEach((axis, k) => paintAxis(context, axis, SIDE + k * each, each, results.has(axis.name), brushes[axis.name]));
}

function paintAxis(context: CanvasRenderingContext2D, axis: Axis, x: number, each: number, result: boolean, brush: readonly [number, number] | undefined): void {
  context.fillStyle = colour("faint");
  context.fillRect(x - 0.5, TOP, 1, HEIGHT - TOP - BELOW);
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  context.font = `${result ? "600 " : ""}12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`;
  context.fillStyle = colour("ink");
  context.fillText(fitted(context, axis.name, Math.max(each - 12, 60)), x, 16);
  context.font = '11px ui-monospace, "SF Mono", Menlo, Consolas, monospace';
  context.fillStyle = colour("soft");
  const label = (place: number) => valueText(valueAt(axis, place));
  if (axis.kind === "word" && axis.words.length <= 8)
    axis.words.forEach((word) => {
      context.textAlign = "left";
      context.fillText(fitted(context, word, Math.max(each - 14, 40)), x + 6, yOf(placeOn(axis, word)!) - 6);
    });
  else {
    context.fillText(label(1), x, TOP - 6);
    if (axis.low !== axis.high) context.fillText(label(0), x, HEIGHT - BELOW + 14);
  }
  context.textAlign = "left";
  if (!brush) return;
  context.fillStyle = colour("accent");
  context.globalAlpha = 0.3;
  context.fillRect(x - 7, yOf(brush[1]), 14, yOf(brush[0]) - yOf(brush[1]));
  context.globalAlpha = 1;
  context.fillRect(x - 7, yOf(brush[1]), 14, 2);
  context.fillRect(x - 7, yOf(brush[0]), 14, 2);
}
