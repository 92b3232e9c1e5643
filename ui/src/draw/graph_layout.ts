// Layout of one module at a time, innermost first. Modules that look the same are laid out once: the result
// is kept by structure, and an expanded stack of equal blocks costs as much as one of them.
import * as dagre from "@dagrejs/dagre";
import { type GraphNode, isModule, type Model, shownChildren, type Sight, TOP, wiringOf } from "./graph_model";

export interface Placed {
  id: number;
  x: number; // left, in the layout's own coordinates
  y: number;
  width: number;
  height: number;
  open: boolean;
  folded: boolean; // stands for its repeats
}

export interface Line {
  points: [number, number][];
  source: number | null; // null: comes from outside of the module
  target: number | null;
}

export interface Layout {
  width: number;
  height: number;
  boxes: Placed[]; // outer ones before what is inside them
  lines: Line[];
  runs: number; // how many modules were really laid out
}

interface Flat {
  width: number;
  height: number;
  places: [number, number][]; // centre of each child
  routes: [number, number][][]; // of each edge
}

export type Cache = Map<string, Flat>;

export const HEAD = 26; // px of an expanded module's title
const PAD = 14;
const MOST_FOR_DAGRE = 120; // children: beyond, it takes seconds, and nobody sees crossings anyway
const GAP = { nodes: 22, ranks: 26 };

/** Width and height of a box; of an expanded one only the width counts, which its title needs. */
export type Measure = (node: GraphNode, folded: boolean, open: boolean) => [number, number];

/** Without a canvas: by the number of letters. */
export const byLetters: Measure = (node) => {
  const letters = Math.max(node.label.length, node.kind === "module" ? node.type.length : 0, 3);
  return [Math.min(230, 34 + letters * 7.2), node.kind === "module" ? 44 : 28];
};

export function layout(model: Model, sight: Sight, cache: Cache, measure: Measure = byLetters): Layout {
  const made = new Layouter(model, sight, cache, measure);
  const size = made.size(TOP);
  made.place(TOP, 0, 0);
  return { width: size[0], height: size[1], boxes: made.boxes, lines: made.lines, runs: made.runs };
}

interface Inside {
  shown: number[];
  folded: boolean[];
  sizes: [number, number][];
  edges: [number | null, number | null][]; // by place in `shown`; null is the border
  flat: Flat;
}

class Layouter {
  boxes: Placed[] = [];
  lines: Line[] = [];
  runs = 0;
  private insides = new Map<number, Inside>();

  constructor(
    private model: Model,
    private sight: Sight,
    private cache: Cache,
    private measure: Measure,
  ) {}

  size(module: number): [number, number] {
    const { flat } = this.inside(module);
    return module === TOP ? [flat.width, flat.height] : [flat.width + 2 * PAD, flat.height + HEAD + PAD];
  }

  private inside(module: number): Inside {
    const known = this.insides.get(module);
    if (known) return known;
    const { shown, standIn } = shownChildren(this.model, module, this.sight);
    const folded = shown.map((id) => (this.model.nodes.get(id)!.repeat ?? 1) > 1 && !this.sight.unfolded.has(id));
    const sizes = shown.map((id, i) => {
      const node = this.model.nodes.get(id)!;
      if (!this.isOpen(node)) return this.measure(node, folded[i]!, false);
      const [width, height] = this.size(id);
      return [Math.max(width, this.measure(node, folded[i]!, true)[0]), height] as [number, number];
    });
    const edges = this.edges(module, shown, standIn);
    const made = { shown, folded, sizes, edges, flat: this.flat(sizes, edges) };
    this.insides.set(module, made);
    return made;
  }

  private isOpen(node: GraphNode): boolean {
    return isModule(node) && this.sight.open.has(node.id);
  }

  private edges(module: number, shown: number[], standIn: Map<number, number>): [number | null, number | null][] {
    const wiring = wiringOf(this.model, module);
    const index = new Map(shown.map((id, i) => [id, i]));
    const place = (id: number) => index.get(standIn.get(id) ?? id)!;
    const seen = new Map<string, [number | null, number | null]>();
    const add = (a: number | null, b: number | null) => void (a !== b && seen.set(`${a}>${b}`, [a, b]));
    for (const [a, b] of wiring.between) add(place(a), place(b));
    for (const child of wiring.entering) add(null, place(child));
    for (const child of wiring.leaving) add(place(child), null);
    return [...seen.values()].filter(([a, b]) => a === null || b === null || !seen.has(`${b}>${a}`) || a < b);
  }

  private flat(sizes: [number, number][], edges: [number | null, number | null][]): Flat {
    const key = `${sizes.map(([w, h]) => `${Math.round(w)}x${Math.round(h)}`).join()}|${edges.map(([a, b]) => `${a ?? ""}>${b ?? ""}`).join()}`;
    const known = this.cache.get(key);
    if (known) return known;
    this.runs += 1;
    const made = sizes.length > MOST_FOR_DAGRE ? byRanks(sizes, edges) : byDagre(sizes, edges);
    this.cache.set(key, made);
    return made;
  }

  /** Put the children where they belong, now that it is known where the module itself is. */
  place(module: number, left: number, top: number): void {
    const { shown, folded, sizes, edges, flat } = this.inside(module);
    shown.forEach((id, i) => {
      const [[width, height], [x, y]] = [sizes[i]!, flat.places[i]!];
      const node = this.model.nodes.get(id)!;
      const open = this.isOpen(node);
      const box = { id, x: left + x - width / 2, y: top + y - height / 2, width, height, open, folded: folded[i]! };
      this.boxes.push(box);
      if (open) {
        const inner = this.inside(id).flat.width;
        this.place(id, box.x + (width - inner) / 2, box.y + HEAD);
      }
    });
    edges.forEach(([a, b], i) => {
      const points = flat.routes[i]!.map(([x, y]): [number, number] => [left + x, top + y]);
      const end = (k: number | null) => (k === null ? null : shown[k]!);
      this.lines.push({ points, source: end(a), target: end(b) });
    });
  }
}

type Ends = [number | null, number | null];

function byDagre(sizes: [number, number][], edges: Ends[]): Flat {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: GAP.nodes, ranksep: GAP.ranks, marginx: 2, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  sizes.forEach(([width, height], i) => graph.setNode(String(i), { width, height }));
  const inner = edges.filter((e): e is [number, number] => e[0] !== null && e[1] !== null);
  const [above, beneath] = [needsPort(edges, inner, 0), needsPort(edges, inner, 1)];
  if (above) graph.setNode("in", { width: 1, height: 1 });
  if (beneath) graph.setNode("out", { width: 1, height: 1 });
  for (const [a, b] of edges) {
    if (a === null ? !above : b === null && !beneath) continue;
    graph.setEdge(a === null ? "in" : String(a), b === null ? "out" : String(b));
  }
  dagre.layout(graph);
  const places = sizes.map((_, i): [number, number] => {
    const { x, y } = graph.node(String(i)) as { x: number; y: number };
    return [x, y];
  });
  const label = graph.graph() as { width?: number; height?: number };
  const [width, height] = [label.width || 60, label.height || 30];
  const routes = edges.map(([a, b]): [number, number][] => {
    if (a === null ? !above : b === null && !beneath) return border(a, b, places, sizes, height);
    const label = graph.edge(a === null ? "in" : String(a), b === null ? "out" : String(b)) as { points?: { x: number; y: number }[] } | undefined;
    const points = (label?.points ?? []).map(({ x, y }): [number, number] => [x, y]);
    if (a === null) return [[points[0]?.[0] ?? 0, 0], ...points];
    return b === null ? [...points, [points[points.length - 1]?.[0] ?? 0, height]] : points;
  });
  return { width, height, places, routes };
}

/** Whether lines over a border need a place of their own there: straight down they would run through other boxes. */
function needsPort(edges: Ends[], inner: [number, number][], side: 0 | 1): boolean {
  const over = edges.filter((e) => e[side] === null).map((e) => e[1 - side]!);
  return over.length > 1 || over.some((child) => inner.some((e) => e[1 - side] === child));
}

/** From the module's upper border down to a child, or from a child to the lower border. */
function border(a: number | null, b: number | null, places: [number, number][], sizes: [number, number][], height: number): [number, number][] {
  const child = a ?? b;
  if (child === null) return [];
  const [x, y] = places[child]!;
  const half = sizes[child]![1] / 2;
  return a === null ? [[x, 0], [x, y - half]] : [[x, y + half], [x, height]];
}

/** For modules with very many children: each one rank below the last that it needs, in the order in which they ran. */
function byRanks(sizes: [number, number][], edges: Ends[]): Flat {
  const ranks = new Array<number>(sizes.length).fill(0);
  const forward = edges.filter((e): e is [number, number] => e[0] !== null && e[1] !== null && e[0] < e[1]).sort((p, q) => p[0] - q[0]);
  for (const [a, b] of forward) ranks[b] = Math.max(ranks[b]!, ranks[a]! + 1);
  const rows: number[][] = [];
  ranks.forEach((rank, i) => (rows[rank] ??= []).push(i));
  const filled = rows.map((row) => row ?? []);
  const widths = filled.map((row) => row.reduce((sum, i) => sum + sizes[i]![0] + GAP.nodes, -GAP.nodes));
  const width = Math.max(...widths, 60);
  const places = new Array<[number, number]>(sizes.length);
  let y = 8;
  filled.forEach((row, rank) => {
    const tall = Math.max(...row.map((i) => sizes[i]![1]), 0);
    let x = (width - widths[rank]!) / 2;
    for (const i of row) {
      places[i] = [x + sizes[i]![0] / 2, y + tall / 2];
      x += sizes[i]![0] + GAP.nodes;
    }
    y += tall + GAP.ranks;
  });
  const routes = edges.map(([a, b]): [number, number][] => {
    if (a === null || b === null) return border(a, b, places, sizes, y);
    const [[ax, ay], [bx, by]] = [places[a]!, places[b]!];
    return [[ax, ay + sizes[a]![1] / 2], [bx, by - sizes[b]![1] / 2]];
  });
  return { width, height: y, places, routes };
}

/** The innermost box at a place; only those of an expanded module's title count for the module itself. */
export function boxAt(layout: Layout, x: number, y: number): Placed | null {
  for (let i = layout.boxes.length - 1; i >= 0; i -= 1) {
    const box = layout.boxes[i]!;
    if (x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height) return box;
  }
  return null;
}
