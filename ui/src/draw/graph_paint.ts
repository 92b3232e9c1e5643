// Boxes and lines of a laid-out graph, of which only what is in sight is drawn.
import { colour } from "../theme";
import { fitted } from "./canvas";
import { HEAD, type Layout, type Line, type Measure, type Placed } from "./graph_layout";
import type { GraphNode, Model } from "./graph_model";

export interface Camera {
  x: number; // of the layout, at the left of the canvas
  y: number;
  zoom: number;
}

export interface Look {
  fill: (node: GraphNode) => string | null; // null: by its kind
  ink: (node: GraphNode) => string | null;
  mark: (node: GraphNode) => string | null; // severity of a finding at it
}

const SANS = '600 12.5px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const SMALL = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

/** Sizes from the very fonts that are drawn with. */
export function measureWith(context: CanvasRenderingContext2D): Measure {
  const known = new Map<string, number>();
  const width = (font: string, text: string) => {
    const key = `${font}\n${text}`;
    let size = known.get(key);
    if (size === undefined) {
      context.font = font;
      known.set(key, (size = context.measureText(text).width));
    }
    return size;
  };
  return (node, folded, open) => {
    if (open) return [width(SANS, `\u2212 ${node.label}  ${node.type}`) + (folded ? 70 : 40), 0];
    const wide = Math.max(width(SANS, node.label), width(SMALL, below(node)));
    const extra = (folded ? 34 : 0) + (node.kind === "module" ? 24 : 0);
    return [Math.min(250, Math.max(64, wide + 26 + extra)), node.kind === "module" ? 44 : below(node) ? 40 : 28];
  };
}

export function shapeText(node: { outputs: { shape: number[] }[] }): string {
  const shape = node.outputs[0]?.shape;
  return shape ? (shape.length ? shape.join("\u00d7") : "scalar") : "";
}

/** The second line of a box. */
function below(node: GraphNode): string {
  const shape = shapeText(node);
  const type = node.kind === "module" && node.type !== node.label ? node.type : "";
  return [type, shape].filter(Boolean).join("  ");
}

export function paintGraph(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  model: Model,
  layout: Layout,
  camera: Camera,
  look: Look,
  chosen: number | null,
): void {
  context.save();
  context.scale(camera.zoom, camera.zoom);
  context.translate(-camera.x, -camera.y);
  const sight = { left: camera.x, top: camera.y, right: camera.x + width / camera.zoom, bottom: camera.y + height / camera.zoom };
  const inSight = (b: Placed) => b.x < sight.right && b.x + b.width > sight.left && b.y < sight.bottom && b.y + b.height > sight.top;
  const boxes = layout.boxes.filter(inSight);
  const paper = new Palette();
  for (const box of boxes) if (box.open) paintOpen(context, box, model.nodes.get(box.id)!, look, paper, box.id === chosen, camera.zoom);
  const near = (p: [number, number]) => p[0] > sight.left - 200 && p[0] < sight.right + 200 && p[1] > sight.top - 200 && p[1] < sight.bottom + 200;
  for (const line of layout.lines) if (line.points.some(near) || line.points.length > 2) paintLine(context, line, paper, model.traced, chosen);
  for (const box of boxes) if (!box.open) paintBox(context, box, model.nodes.get(box.id)!, look, paper, box.id === chosen, camera.zoom);
  context.restore();
}

/** Colours of the theme, asked for once a drawing: a lookup costs more than a box. */
class Palette {
  private known = new Map<string, string>();
  get(name: string): string {
    let value = this.known.get(name);
    if (value === undefined) this.known.set(name, (value = colour(name)));
    return value;
  }
}

function rounded(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, r: number): void {
  context.beginPath();
  context.roundRect(x, y, width, height, r);
}

function paintOpen(context: CanvasRenderingContext2D, box: Placed, node: GraphNode, look: Look, paper: Palette, chosen: boolean, zoom: number): void {
  rounded(context, box.x, box.y, box.width, box.height, 8);
  context.fillStyle = node.depth % 2 ? paper.get("sunken") : paper.get("paper");
  context.fill();
  context.strokeStyle = chosen ? paper.get("accent") : paper.get("line");
  context.lineWidth = chosen ? 2.5 : 1.2;
  context.stroke();
  if (zoom < 0.2) return;
  context.fillStyle = paper.get("soft");
  context.font = SANS;
  context.textBaseline = "middle";
  const type = node.type && node.type !== node.label ? `  ${node.type}` : "";
  const times = box.folded ? `  \u00d7${node.repeat}` : "";
  const mark = look.mark(node);
  const left = mark ? 22 : 10;
  context.fillText(fitted(context, `\u2212 ${node.label}${type}${times}`, box.width - left - 10), box.x + left, box.y + HEAD / 2 + 1);
  if (mark) paintMarkAt(context, mark, box.x + 12, box.y + HEAD / 2, paper);
}

function paintBox(context: CanvasRenderingContext2D, box: Placed, node: GraphNode, look: Look, paper: Palette, chosen: boolean, zoom: number): void {
  const fill = look.fill(node) ?? (node.kind === "module" ? paper.get("accent-soft") : node.kind === "op" ? paper.get("card") : paper.get("good-soft"));
  const round = node.kind === "module" ? 7 : 14;
  if (box.folded)
    for (const shift of [6, 3]) {
      rounded(context, box.x + shift, box.y - shift, box.width, box.height, round);
      context.fillStyle = paper.get("card");
      context.fill();
      context.strokeStyle = paper.get("faint");
      context.lineWidth = 1;
      context.stroke();
    }
  rounded(context, box.x, box.y, box.width, box.height, round);
  context.fillStyle = fill;
  context.fill();
  context.strokeStyle = chosen ? paper.get("accent") : node.feeds_result === false ? paper.get("warning") : paper.get("faint");
  context.lineWidth = chosen ? 3 : 1;
  if (node.feeds_result === false) context.setLineDash([4, 3]);
  context.stroke();
  context.setLineDash([]);
  if (zoom < 0.3) return;
  paintText(context, box, node, look.ink(node) ?? paper.get("ink"));
  const mark = look.mark(node);
  if (mark) paintMarkAt(context, mark, box.x + box.width - 1, box.y + 1, paper);
}

function paintText(context: CanvasRenderingContext2D, box: Placed, node: GraphNode, ink: string): void {
  const second = below(node);
  const expandable = node.children.length > 0;
  context.fillStyle = ink;
  context.textBaseline = "middle";
  context.font = SANS;
  const label = `${expandable ? "+ " : ""}${node.label}`;
  const badge = box.folded ? `\u00d7${node.repeat}` : "";
  const room = box.width - 18 - (badge ? 34 : 0);
  const middle = box.y + box.height / 2;
  context.fillText(fitted(context, label, room), box.x + 10, second ? middle - 8 : middle);
  if (badge) {
    context.textAlign = "right";
    context.fillText(badge, box.x + box.width - 9, second ? middle - 8 : middle);
    context.textAlign = "left";
  }
  if (!second) return;
  context.font = SMALL;
  context.globalAlpha = 0.8;
  context.fillText(fitted(context, second, box.width - 18), box.x + 10, middle + 9);
  context.globalAlpha = 1;
}

function paintMarkAt(context: CanvasRenderingContext2D, severity: string, x: number, y: number, paper: Palette): void {
  const r = 6;
  context.beginPath();
  if (severity === "error") {
    context.moveTo(x, y - r);
    context.lineTo(x + r, y + r);
    context.lineTo(x - r, y + r);
  } else if (severity === "warning") {
    context.moveTo(x, y - r);
    context.lineTo(x + r, y);
    context.lineTo(x, y + r);
    context.lineTo(x - r, y);
  } else context.arc(x, y, r - 1, 0, 2 * Math.PI);
  context.closePath();
  context.fillStyle = paper.get(severity);
  context.fill();
  context.strokeStyle = paper.get("card");
  context.lineWidth = 1.2;
  context.stroke();
}

function paintLine(context: CanvasRenderingContext2D, line: Line, paper: Palette, traced: boolean, chosen: number | null): void {
  const { points } = line;
  const [first, last] = [points[0], points[points.length - 1]];
  if (!first || !last) return;
  const near = chosen !== null && (line.source === chosen || line.target === chosen);
  context.beginPath();
  context.moveTo(...first);
  for (let i = 1; i < points.length - 1; i += 1) {
    const [a, b] = [points[i]!, points[i + 1]!];
    context.quadraticCurveTo(a[0], a[1], (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
  }
  context.lineTo(...last);
  context.strokeStyle = near ? paper.get("accent") : paper.get("faint");
  context.lineWidth = near ? 2.2 : 1.2;
  if (!traced) context.setLineDash([2, 4]);
  context.stroke();
  context.setLineDash([]);
  if (!traced || line.target === null) return;
  const before = points[points.length - 2] ?? first;
  const angle = Math.atan2(last[1] - before[1], last[0] - before[0]);
  context.beginPath();
  context.moveTo(...last);
  context.lineTo(last[0] - 7 * Math.cos(angle - 0.4), last[1] - 7 * Math.sin(angle - 0.4));
  context.lineTo(last[0] - 7 * Math.cos(angle + 0.4), last[1] - 7 * Math.sin(angle + 0.4));
  context.fillStyle = context.strokeStyle;
  context.fill();
}

/** All of it in the canvas, but never larger than life, nor too small to read; a tall graph begins at its top. */
export function fitting(layout: Layout, width: number, height: number): Camera {
  const whole = Math.min((width - 40) / layout.width, (height - 40) / layout.height, 1.15);
  const zoom = Math.max(whole, Math.min(0.85, (width - 40) / layout.width));
  const tall = layout.height * zoom > height - 40;
  return { zoom, x: layout.width / 2 - width / 2 / zoom, y: tall ? -16 / zoom : layout.height / 2 - height / 2 / zoom };
}

export function centred(box: Placed, zoom: number, width: number, height: number): Camera {
  return { zoom, x: box.x + box.width / 2 - width / 2 / zoom, y: box.y + Math.min(box.height / 2, height / 2 / zoom - 30) - height / 2 / zoom };
}

/** Zoom about a point of the canvas, which stays where it is. */
export function zoomed(camera: Camera, by: number, x: number, y: number): Camera {
  const zoom = Math.min(3, Math.max(0.03, camera.zoom * by));
  const shift = 1 / camera.zoom - 1 / zoom;
  return { zoom, x: camera.x + x * shift, y: camera.y + y * shift };
}
