// Boxes and lines of all that is open, innermost level first, each level made to fit what is open in it.
import { fit, type Places } from "./graph_grid";
import { type Box, type GraphNode, isModule, type Level, levelOf, type Model, type Sight, TOP } from "./graph_model";

export interface Placed {
  id: number;
  module: number; // whose level it stands in
  place: number; // in that level
  x: number; // left, in the layout's own coordinates
  y: number;
  width: number;
  height: number;
  open: boolean;
  folded: boolean; // stands for its repeats
  first: string; // what is written in it
  second: string;
}

/** Down from a box or a passage to its row's end, over to the column where it ends, and on through a passage. */
export interface Line {
  module: number;
  from: number; // places of the level
  to: number;
  x1: number;
  begin: number;
  low: number;
  x2: number;
  end: number;
  through: number; // as `end`, or how far down a passage leads
  arrow: boolean;
  tensor: string;
}

export interface Note {
  x: number;
  y: number;
  text: string;
}

export interface Layout {
  width: number;
  height: number;
  boxes: Placed[]; // outer ones before what is inside them
  lines: Line[];
  notes: Note[]; // how many boxes of a level are left out
}

// As in src/clew/render/network/node_boxes.py.
export const LINE = 15; // px of a line of text
const [PAD, HEAD] = [16, 34]; // around the boxes inside an open one; for its title

export function layout(model: Model, sight: Sight): Layout {
  const made = new Layouter(model, sight);
  const whole = made.inside(TOP, 0);
  made.place(TOP, whole, 0, 0);
  return { width: whole.width, height: whole.height, boxes: made.boxes, lines: made.lines, notes: made.notes };
}

interface Inside {
  level: Level;
  folded: boolean;
  opened: (Inside | null)[]; // of each box: what is inside it, if it is open
  places: Places;
  width: number;
  height: number;
}

class Layouter {
  boxes: Placed[] = [];
  lines: Line[] = [];
  notes: Note[] = [];

  constructor(
    private model: Model,
    private sight: Sight,
  ) {}

  /** A level and all that is open in it; at least as wide as the title needs. */
  inside(module: number, least: number): Inside {
    const { level, folded } = levelOf(this.model, module, this.sight);
    const opened = level.nodes.map((id, i) => (this.isOpen(this.model.nodes.get(id)!) ? this.inside(id, level.boxes[i]!.title) : null));
    const size = (side: "width" | "height") => level.boxes.map((box, i) => (opened[i] ?? box)[side]);
    const places = fit(level.grid, size("width"), size("height"));
    const width = Math.max(places.width + 2 * PAD, least);
    return { level, folded, opened, places, width, height: above(module) + places.height + PAD + (level.more ? LINE : 0) };
  }

  private isOpen(node: GraphNode): boolean {
    return isModule(node) && this.sight.open.has(node.id);
  }

  /** Put the boxes where they belong, now that it is known where the module itself is. */
  place(module: number, inside: Inside, left: number, top: number): void {
    const { level, folded, opened, places, width, height } = inside;
    const [x, y] = [left + (width - places.width) / 2, top + above(module)];
    level.nodes.forEach((id, i) => {
      const inner = opened[i]!;
      const size: Box | Inside = inner ?? level.boxes[i]!;
      const { first, second } = level.boxes[i]!;
      const repeats = folded && (this.model.nodes.get(id)!.repeat ?? 1) > 1;
      const box = { id, module, place: i, x: x + places.x[i]! - size.width / 2, y: y + places.tops[places.row[i]!]!, width: size.width, height: size.height, open: inner !== null, folded: repeats, first, second };
      this.boxes.push(box);
      if (inner) this.place(id, inner, box.x, box.y);
    });
    level.grid.lines.forEach((_, n) => this.lines.push(this.line(module, inside, n, x, y)));
    if (level.more) this.notes.push({ x: left + PAD, y: top + height - 8, text: `\u2026 and ${level.more.toLocaleString("en-US")} more` });
  }

  private line(module: number, { level, opened, places }: Inside, n: number, x: number, y: number): Line {
    const [from, to, off] = level.grid.lines[n]!;
    const [a, b] = [places.row[from]!, places.row[to]!];
    const back = a > b; // up again, which only a graph with a cycle has
    const low = back ? places.tops[a]! : places.bottoms[a]!;
    const box = from < level.nodes.length ? (opened[from] ?? level.boxes[from]!) : null;
    const begin = back || !box ? low : places.tops[a]! + box.height;
    const end = back ? places.bottoms[b]! : places.tops[b]!;
    const arrow = to < level.nodes.length;
    const through = !back && !arrow ? places.bottoms[b]! : end;
    const [x1, x2] = [x + places.x[from]!, x + places.x[to]! + (back ? 0 : off)];
    return { module, from, to, x1, x2, begin: y + begin, low: y + low, end: y + end, through: y + through, arrow, tensor: level.tensors[n] ?? "" };
  }
}

function above(module: number): number {
  return module === TOP ? PAD : HEAD;
}

/** The innermost box at a place. */
export function boxAt(layout: Layout, x: number, y: number): Placed | null {
  for (let i = layout.boxes.length - 1; i >= 0; i -= 1) {
    const box = layout.boxes[i]!;
    if (x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height) return box;
  }
  return null;
}

/** The line that passes a place within `near`. */
export function lineAt(layout: Layout, x: number, y: number, near: number): Line | null {
  const passes = (line: Line) => {
    const [top, bottom] = [Math.min(line.begin, line.end), Math.max(line.end, line.through)];
    if (y < top - near || y > bottom + near) return false;
    if (line.end < line.low) return Math.abs(x - curveAt(line, y)) <= near;
    return y <= line.low ? Math.abs(x - line.x1) <= near : y >= line.end ? Math.abs(x - line.x2) <= near : Math.abs(x - curveAt(line, y)) <= near;
  };
  return layout.lines.find(passes) ?? null;
}

/** Where the curve of a line is at a height between its two ends. */
function curveAt({ low, end, x1, x2 }: Line, y: number): number {
  let [from, to] = [0, 1];
  const height = (t: number) => low + (end - low) * (1.5 * t * (1 - t) + t ** 3); // controls lie halfway down
  for (let turn = 0; turn < 20; turn += 1) {
    const middle = (from + to) / 2;
    if (Math.abs(height(middle) - low) < Math.abs(y - low)) from = middle;
    else to = middle;
  }
  return x1 + (x2 - x1) * (3 * from ** 2 * (1 - from) + from ** 3);
}

/** The lines that lead to and from a box, all the way through passages. */
export function linesOf(layout: Layout, box: Placed): Set<Line> {
  const isBox = isBoxOf(layout, box.module);
  const level = layout.lines.filter((line) => line.module === box.module);
  const found = new Set<Line>();
  for (const [near, far] of [["from", "to"], ["to", "from"]] as const) {
    const waiting = [box.place];
    while (waiting.length) {
      const at = waiting.pop()!;
      for (const line of level) {
        if (line[near] !== at || found.has(line)) continue;
        found.add(line);
        if (!isBox(line[far])) waiting.push(line[far]);
      }
    }
  }
  return found;
}

function isBoxOf(layout: Layout, module: number): (place: number) => boolean {
  const places = new Set(layout.boxes.filter((b) => b.module === module).map((b) => b.place));
  return (place) => places.has(place);
}
