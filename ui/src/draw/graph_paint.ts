// Boxes and lines of a laid-out graph, of which only what is in sight is drawn.
import { colour } from "../theme";
import type { Severity } from "../types";
import { fitted } from "./canvas";
import { type Layout, LINE, type Line, linesOf, type Note, type Placed } from "./graph_layout";
import type { GraphNode, Model } from "./graph_model";
import { severityPath } from "./severity_shapes";

export interface Camera {
  x: number; // of the layout, at the left of the canvas
  y: number;
  zoom: number;
}

export interface Look {
  fill: (node: GraphNode) => string | null; // null: by its kind
  ink: (node: GraphNode) => string | null;
  mark: (node: GraphNode) => Severity | null; // of the worst finding at it
}

const FONT = '500 11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'; // Python has measured for 11 px
const LEFT = 8; // px before a text

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
  const passes = (l: Line) => Math.min(l.x1, l.x2) < sight.right && Math.max(l.x1, l.x2) > sight.left && Math.min(l.begin, l.end) < sight.bottom && Math.max(l.low, l.through) > sight.top;
  const from = layout.boxes.find((box) => box.id === chosen);
  const near = from ? linesOf(layout, from) : new Set<Line>();
  for (const line of layout.lines) if (passes(line)) paintLine(context, line, paper, model.traced, near.has(line));
  for (const box of boxes) if (!box.open) paintBox(context, box, model.nodes.get(box.id)!, look, paper, box.id === chosen, camera.zoom);
  for (const note of layout.notes) paintNote(context, note, paper);
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
  context.font = FONT;
  context.textBaseline = "middle";
  const mark = look.mark(node);
  const left = mark ? 22 : LEFT;
  const head = fitted(context, `\u2212 ${box.first}`, box.width - left - LEFT);
  context.fillStyle = paper.get("ink");
  context.fillText(head, box.x + left, box.y + LINE);
  const beside = left + context.measureText(head).width + 10;
  context.fillStyle = paper.get("soft");
  if (box.second) context.fillText(fitted(context, box.second, box.width - beside - LEFT), box.x + beside, box.y + LINE);
  if (mark) paintMarkAt(context, mark, box.x + 12, box.y + LINE, paper);
}

function paintNote(context: CanvasRenderingContext2D, note: Note, paper: Palette): void {
  context.font = FONT;
  context.textBaseline = "alphabetic";
  context.fillStyle = paper.get("soft");
  context.fillText(note.text, note.x, note.y);
}

function paintBox(context: CanvasRenderingContext2D, box: Placed, node: GraphNode, look: Look, paper: Palette, chosen: boolean, zoom: number): void {
  const fill = look.fill(node) ?? (node.kind === "module" ? paper.get("accent-soft") : node.kind === "op" ? paper.get("card") : paper.get("good-soft"));
  const round = node.kind === "module" ? 7 : 14;
  if (box.folded)
    for (const shift of [6, 3]) {
      rounded(context, box.x + shift, box.y + shift, box.width, box.height, round); // below: above, arrows end
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
  context.fillStyle = ink;
  context.textBaseline = "middle";
  context.font = FONT;
  const first = node.children.length > 0 ? `+ ${box.first}` : box.first;
  const middle = box.y + box.height / 2;
  context.fillText(fitted(context, first, box.width - LEFT - 4), box.x + LEFT, box.second ? middle - LINE / 2 : middle);
  if (!box.second) return;
  context.globalAlpha = 0.8;
  context.fillText(fitted(context, box.second, box.width - LEFT - 4), box.x + LEFT, middle + LINE / 2);
  context.globalAlpha = 1;
}

function paintMarkAt(context: CanvasRenderingContext2D, severity: Severity, x: number, y: number, paper: Palette): void {
  const path = severityPath(severity, x, y, 6);
  context.fillStyle = paper.get(severity);
  context.fill(path);
  context.strokeStyle = paper.get("card");
  context.lineWidth = 1.2;
  context.stroke(path);
}

function paintLine(context: CanvasRenderingContext2D, line: Line, paper: Palette, traced: boolean, near: boolean): void {
  const { x1, begin, low, x2, end, through } = line;
  const middle = (low + end) / 2;
  context.beginPath();
  context.moveTo(x1, begin);
  context.lineTo(x1, low);
  context.bezierCurveTo(x1, middle, x2, middle, x2, end);
  context.lineTo(x2, through);
  context.strokeStyle = near ? paper.get("accent") : paper.get("faint");
  context.lineWidth = near ? 2.2 : 1.2;
  if (!traced) context.setLineDash([2, 4]);
  context.stroke();
  context.setLineDash([]);
  if (!traced || !line.arrow) return;
  const up = end < low ? -1 : 1;
  context.beginPath();
  context.moveTo(x2, end);
  context.lineTo(x2 - 3.5, end - 7 * up);
  context.lineTo(x2 + 3.5, end - 7 * up);
  context.fillStyle = context.strokeStyle;
  context.fill();
}

/** All of it in the canvas, but never larger than life, nor too small to read; a tall graph begins at its top. */
export function fitting(layout: Layout, width: number, height: number): Camera {
  const whole = Math.min((width - 40) / layout.width, (height - 40) / layout.height, 1.3);
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
