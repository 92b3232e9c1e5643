// The heat map itself: canvas, labels, marks of findings, pointer and keyboard.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { LayerRow } from "../answers";
import { Canvas, fitted, MONO, pointOn } from "../draw/canvas";
import { AXIS, cellAt, cellWidth, columnAt, type HeatShape, labelledColumns, labelledRows, pixels, rowHeightFor, visibleRows } from "../draw/heat";
import { type FindingHere, worst } from "../draw/findings_at";
import { fromHex, type Scale } from "../draw/scale";
import { severityPath } from "../draw/severity_shapes";
import { digits, plural, withUnit } from "../format";
import { colour, useTheme } from "../theme";
import type { Layers } from "../views/layers";
import { Tip, type TipAt } from "./tip";

interface Props {
  data: Layers;
  rows: number[];
  scale: Scale;
  findings: Map<string, FindingHere[]>;
  chosen: string;
  step: number | null; // one that a link points to
  roomy: boolean;
  onChoose: (layer: LayerRow) => void;
  onZoom: (from: number, to: number) => void;
}

const LEAST_ROOM = 240; // px of the map on a low screen

export function HeatMap(props: Props) {
  const { data, rows, chosen, roomy, onChoose, onZoom } = props;
  const box = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState(0);
  const [size, setSize] = useState<[number, number]>([900, 400]);
  const [cell, setCell] = useState<{ row: number; column: number; at: TipAt } | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const room = Math.max(LEAST_ROOM, Math.min(window.innerHeight * 0.68, 760));
  const rowHeight = roomy ? 16 : rowHeightFor(rows.length, room - AXIS);
  const inside = rows.length * rowHeight + AXIS;
  const height = Math.min(inside, room);
  const gutter = size[0] < 600 ? 110 : 220;
  const shape: HeatShape = { rows: rows.length, columns: data.columns.length, rowHeight, gutter, width: size[0], scroll, height };
  const theme = useTheme();
  const bad = useMemo(() => new Map(data.bad.map(([row, column, count]) => [row * 100_000 + column, count])), [data]);

  const image = useMemo(() => drawnOnce(props, bad), [data, rows, props.scale, theme]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize([element.clientWidth, element.clientHeight]));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const at = rows.findIndex((row) => data.layers[row]!.site === chosen);
    if (at >= 0 && box.current) keepInSight(box.current, at, rowHeight, height);
  }, [chosen, rowHeight]);

  const paint = useCallback(
    (context: CanvasRenderingContext2D) => draw(context, shape, props, image, cell, drag),
    [image, props.scale, props.findings, chosen, props.step, rowHeight, scroll, size, cell?.row, cell?.column, drag, height],
  );

  const move = (event: MouseEvent) => {
    const [x, y] = pointOn(event);
    const found = cellAt(shape, x, y);
    setCell(found ? { row: found[0], column: found[1], at: { x: event.clientX, y: event.clientY } } : null);
    if (drag) setDrag([drag[0], columnAt(shape, x)]);
  };
  const up = () => {
    if (!drag) return;
    const [a, b] = [Math.min(...drag), Math.max(...drag)];
    setDrag(null);
    if (b - a >= 1) onZoom(data.columns[a]!, data.exact || b + 1 >= data.columns.length ? data.columns[b]! : data.columns[b + 1]! - 1);
    else if (cell) onChoose(data.layers[rows[cell.row]!]!);
  };
  const down = (event: MouseEvent) => {
    const [x] = pointOn(event);
    const column = columnAt(shape, x);
    setDrag(x < gutter ? null : [column, column]);
    if (x < gutter && cell) onChoose(data.layers[rows[cell.row]!]!);
  };
  const byKey = (event: KeyboardEvent) => {
    const step: Record<string, [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const by = step[event.key];
    const here = cell ?? { row: 0, column: 0 };
    if (by) {
      const row = Math.min(Math.max(here.row + by[0], 0), rows.length - 1);
      const column = Math.min(Math.max(here.column + by[1], 0), data.columns.length - 1);
      const place = box.current!.getBoundingClientRect();
      keepInSight(box.current!, row, rowHeight, height);
      const at = { x: place.left + gutter + column * cellWidth(shape), y: place.top + row * rowHeight - box.current!.scrollTop };
      setCell({ row, column, at });
    } else if (event.key === "Enter" && cell) onChoose(data.layers[rows[cell.row]!]!);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      class="heat"
      ref={box}
      tabIndex={0}
      role="application"
      aria-label={`${plural(rows.length, "layer")} by ${plural(data.columns.length, "step")}; arrows move, Enter opens the histograms`}
      style={{ height: `${height + 2}px` }}
      onScroll={(e) => setScroll(e.currentTarget.scrollTop)}
      onKeyDown={byKey}
    >
      <Canvas paint={paint} height={height} label="heat map of layers and steps" onMouseMove={move} onMouseDown={down} onMouseUp={up} onMouseLeave={() => (setCell(null), setDrag(null))} />
      <div style={{ height: `${Math.max(0, inside - height)}px` }} />
      {cell && <CellTip {...props} cell={cell} bad={bad} />}
    </div>
  );
}

function keepInSight(element: HTMLElement, row: number, rowHeight: number, height: number): void {
  const top = row * rowHeight;
  if (top < element.scrollTop) element.scrollTop = top;
  if (top + rowHeight > element.scrollTop + height - AXIS) element.scrollTop = top + rowHeight - height + AXIS;
}

function CellTip({ data, rows, findings, cell, bad }: Props & { cell: { row: number; column: number; at: TipAt }; bad: Map<number, number> }) {
  const row = rows[cell.row]!;
  const layer = data.layers[row];
  if (!layer) return null;
  const value = cell.column < 0 ? undefined : data.mean[row]?.[cell.column];
  const wrong = bad.get(row * 100_000 + cell.column);
  const range = data.exact || cell.column < 0 ? null : ([data.min?.[row]?.[cell.column], data.max?.[row]?.[cell.column]] as const);
  return (
    <Tip at={cell.at}>
      <div class="what">
        {layer.label}
      </div>
      {cell.column >= 0 && (
        <dl>
          <dt>step</dt>
          <dd class="num">
            {digits(data.columns[cell.column])}
            {data.exact ? "" : " and after"}
          </dd>
          <dt>{data.stats.find((s) => s.stat === data.stat)?.label ?? data.stat}</dt>
          <dd class="num">{value === null || value === undefined ? (wrong ? "non-finite" : "not recorded") : withUnit(value, data.unit)}</dd>
          {range && range[0] !== undefined && (
            <>
              <dt>range</dt>
              <dd class="num">
                {withUnit(range[0], data.unit)} to {withUnit(range[1], data.unit)}
              </dd>
            </>
          )}
          {wrong && (
            <>
              <dt>non-finite</dt>
              <dd class="num">{plural(wrong, "value")}</dd>
            </>
          )}
        </dl>
      )}
      {layer.class && <div class="soft">{layer.class}</div>}
      {(findings.get(layer.module ?? "\u0000") ?? []).slice(0, 2).map((f) => (
        <div>
          <b>{f.severity}:</b> {f.message}
        </div>
      ))}
    </Tip>
  );
}

/** All cells as a picture of one pixel each. */
function drawnOnce({ data, rows, scale }: Props, bad: Map<number, number>): HTMLCanvasElement {
  const picture = document.createElement("canvas");
  [picture.width, picture.height] = [Math.max(data.columns.length, 1), Math.max(rows.length, 1)];
  const value = (row: number, column: number) => data.mean[rows[row]!]?.[column];
  const wrong = (row: number, column: number) => bad.has(rows[row]! * 100_000 + column);
  const cells = pixels(rows.length, data.columns.length, value, scale, wrong, fromHex(colour("error")));
  if (cells.length) picture.getContext("2d")?.putImageData(new ImageData(cells, data.columns.length, rows.length), 0, 0);
  return picture;
}

/** The rows in sight of that picture, stretched to the size of cells. */
function paintCells(context: CanvasRenderingContext2D, shape: HeatShape, image: HTMLCanvasElement): void {
  const [first, last] = visibleRows(shape);
  const top = first * shape.rowHeight - shape.scroll;
  context.imageSmoothingEnabled = false;
  if (last > first) context.drawImage(image, 0, first, shape.columns, last - first, shape.gutter, top, shape.width - shape.gutter, (last - first) * shape.rowHeight);
  if (shape.rowHeight < 8) return;
  context.fillStyle = colour("card");
  for (let row = first; row <= last; row += 1) context.fillRect(shape.gutter, row * shape.rowHeight - shape.scroll - 1, shape.width - shape.gutter, 1);
}

function draw(context: CanvasRenderingContext2D, shape: HeatShape, props: Props, image: HTMLCanvasElement, cell: { row: number; column: number } | null, drag: [number, number] | null): void {
  const { data } = props;
  context.save();
  context.beginPath();
  context.rect(0, 0, shape.width, shape.height - AXIS);
  context.clip();
  paintCells(context, shape, image);
  paintLabels(context, shape, props);
  paintFindings(context, shape, props);
  if (cell && cell.column >= 0) outline(context, shape, cell.row, cell.column);
  context.restore();
  if (drag && drag[0] !== drag[1]) paintDrag(context, shape, drag);
  if (props.step !== null) paintStep(context, shape, data.columns, props.step);
  paintAxis(context, shape, data.columns);
}

function outline(context: CanvasRenderingContext2D, shape: HeatShape, row: number, column: number): void {
  const width = cellWidth(shape);
  context.strokeStyle = colour("ink");
  context.lineWidth = 1.5;
  context.strokeRect(shape.gutter + column * width, row * shape.rowHeight - shape.scroll, Math.max(width, 3), shape.rowHeight);
}

function paintLabels(context: CanvasRenderingContext2D, shape: HeatShape, { data, rows, chosen }: Props): void {
  context.font = MONO;
  context.textBaseline = "middle";
  const at = rows.findIndex((row) => data.layers[row]!.site === chosen);
  const far = (row: number) => at < 0 || Math.abs(row - at) * shape.rowHeight >= 13;
  const labelled = [...labelledRows(shape).filter(far), ...(at < 0 ? [] : [at])];
  for (const row of labelled) {
    const layer = data.layers[rows[row]!]!;
    const y = row * shape.rowHeight - shape.scroll + shape.rowHeight / 2;
    context.fillStyle = layer.site === chosen ? colour("accent") : colour("soft");
    context.fillText(fitted(context, layer.label, shape.gutter - 30, "beginning"), 22, shape.rowHeight < 13 ? y + 4 : y);
  }
  if (at >= 0) {
    context.strokeStyle = colour("accent");
    context.lineWidth = 2;
    const left = shape.rowHeight < 13 ? shape.gutter - 4 : 1; // a thin frame would strike the name out
    context.strokeRect(left, at * shape.rowHeight - shape.scroll, shape.width - left - 1, shape.rowHeight);
  }
}

/** A mark of its severity's shape before the layer, and a line in its row at the step it was first seen. */
function paintFindings(context: CanvasRenderingContext2D, shape: HeatShape, { data, rows, findings }: Props): void {
  const [first, last] = visibleRows(shape);
  for (let row = first; row < last; row += 1) {
    const found = findings.get(data.layers[rows[row]!]!.module ?? "\u0000");
    const severity = found && worst(found);
    if (!found || !severity) continue;
    const y = row * shape.rowHeight - shape.scroll;
    context.fillStyle = colour(severity);
    context.fill(severityPath(severity, 10, y + shape.rowHeight / 2, Math.min(5, Math.max(2.5, shape.rowHeight / 2))));
    for (const { step } of found) {
      const column = step === null ? -1 : data.columns.findIndex((c) => c >= step);
      if (column < 0 || step! < data.columns[0]!) continue;
      context.fillRect(shape.gutter + column * cellWidth(shape) - 1, y, 2, shape.rowHeight);
    }
  }
}

function paintDrag(context: CanvasRenderingContext2D, shape: HeatShape, drag: [number, number]): void {
  const width = cellWidth(shape);
  const [a, b] = [Math.min(...drag), Math.max(...drag)];
  context.fillStyle = colour("accent");
  context.globalAlpha = 0.25;
  context.fillRect(shape.gutter + a * width, 0, (b - a + 1) * width, shape.height - AXIS);
  context.globalAlpha = 1;
}

/** A line through all layers at the step that a link points to. */
function paintStep(context: CanvasRenderingContext2D, shape: HeatShape, columns: number[], step: number): void {
  const column = columns.findIndex((c) => c >= step);
  if (column < 0) return;
  context.strokeStyle = colour("ink");
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.beginPath();
  context.moveTo(shape.gutter + column * cellWidth(shape), 0);
  context.lineTo(shape.gutter + column * cellWidth(shape), shape.height - AXIS);
  context.stroke();
  context.setLineDash([]);
}

function paintAxis(context: CanvasRenderingContext2D, shape: HeatShape, columns: number[]): void {
  context.fillStyle = colour("card");
  context.fillRect(0, shape.height - AXIS, shape.width, AXIS);
  context.fillStyle = colour("soft");
  context.font = MONO;
  context.textBaseline = "middle";
  const y = shape.height - AXIS / 2;
  context.fillText("step", 22, y);
  for (const column of labelledColumns(shape)) {
    const x = shape.gutter + (column + 0.5) * cellWidth(shape);
    context.textAlign = x > shape.width - 30 ? "right" : column ? "center" : "left";
    context.fillText(digits(columns[column]), column ? x : shape.gutter, y);
    context.fillRect(x, shape.height - AXIS, 1, 3);
  }
  context.textAlign = "left";
}
