// The graph as a tree of modules, with the levels that Python has laid out: who is inside whom, what is drawn
// of a module when it is expanded, and what is drawn once for several that are alike.
import type { DrawnGraph, GraphAnswer as Answered, GraphLayout, GraphModel, GraphModule, LayoutBox, LayoutGrid, LayoutLevel, Node } from "../answers";
import { hasWords } from "./search";

/** What a node looks like, as `LayoutBox` lists it. */
export interface Box {
  width: number;
  height: number;
  title: number;
  first: string;
  second: string;
}

/** What is drawn of a module when it is open. */
export interface Level {
  grid: LayoutGrid;
  nodes: number[];
  boxes: Box[];
  tensors: string[];
  more: number;
}

export type ModuleRow = Omit<GraphModule, "trainable" | "order"> & { order: number | null };

export interface GraphNode extends Node {
  children: number[]; // in the order in which they ran
  depth: number;
  count: number; // nodes at and below it
  port?: boolean; // where tensors enter or leave a module: drawn, but no part of the graph
}

export const TOP = -1; // stands above the outermost nodes

export interface Model {
  name: string;
  nodes: Map<number, GraphNode>;
  tops: number[];
  levels: Map<number, Level>; // by module; TOP for the outermost
  unfolded: Map<number, Level>;
  standIn: Map<number, number>; // what is not drawn, and what is drawn for it
  first: number[];
  traced: boolean; // edges are tensors; otherwise only the order is known
}

export function modelOf(raw: DrawnGraph): Model {
  const layout = raw.layout ?? null;
  const nodes = layout ? insideOf(raw.nodes, layout) : raw.nodes;
  const model = tree(raw.name, nodes, firstOps(nodes));
  model.traced = true;
  if (layout) addLayout(model, layout);
  else addColumns(model, false); // a damaged file: the rest is still shown
  return model;
}

/** Inputs and outputs are drawn inside the model: nearest to their use. */
function insideOf(nodes: Node[], layout: GraphLayout): Node[] {
  const holders = new Map<number, number | null>();
  for (const levels of [layout.levels, layout.unfolded])
    for (const [holder, level] of Object.entries(levels)) for (const id of level.nodes) holders.set(id, holder === "" ? null : Number(holder));
  return nodes.map((node) => ({ ...node, parent: holders.get(node.id) ?? node.parent }));
}

function addLayout(model: Model, layout: GraphLayout): void {
  for (const [hidden, shown] of Object.entries(layout.stands_in)) model.standIn.set(Number(hidden), shown);
  for (const [id, repeat] of Object.entries(layout.repeats)) model.nodes.get(Number(id))!.repeat = repeat;
  model.first = layout.first;
  let ports = TOP;
  const levelOf = (holder: number, raw: LayoutLevel): Level => {
    const named = new Map<number, number>();
    for (const port of raw.ports) {
      named.set(port.id, (ports -= 1));
      const depth = (model.nodes.get(holder)?.depth ?? -1) + 1;
      model.nodes.set(ports, { ...port, id: ports, parent: holder, type: "", path: "", children: [], depth, count: 0, port: true });
    }
    return {
      grid: layout.grids[raw.grid]!,
      nodes: raw.nodes.map((id) => named.get(id) ?? id),
      boxes: raw.boxes.map((number) => boxOf(layout.boxes[number]!)),
      tensors: raw.tensors.map((number) => layout.tensors[number] ?? ""),
      more: raw.more,
    };
  };
  for (const [holder, raw] of Object.entries(layout.levels)) model.levels.set(moduleOf(holder), levelOf(moduleOf(holder), raw));
  for (const [holder, raw] of Object.entries(layout.unfolded)) model.unfolded.set(moduleOf(holder), levelOf(moduleOf(holder), raw));
}

function moduleOf(holder: string): number {
  return holder === "" ? TOP : Number(holder);
}

function boxOf([width, height, title, first, second]: LayoutBox): Box {
  return { width, height, title, first, second };
}

/** Who is inside whom; children in the order of `starts`. */
export function tree(name: string, raw: Node[], starts: Map<number, number>): Model {
  const nodes = new Map<number, GraphNode>(raw.map((n) => [n.id, { ...n, repeat: 1, children: [], depth: 0, count: 1 }]));
  const tops: number[] = [];
  const order = [...raw].sort((a, b) => (starts.get(a.id) ?? a.id) - (starts.get(b.id) ?? b.id));
  for (const { id, parent } of order) {
    const above = parent === null ? undefined : nodes.get(parent);
    (above ? above.children : tops).push(id);
  }
  const model: Model = { name, nodes, tops, levels: new Map(), unfolded: new Map(), standIn: new Map(), first: [], traced: false };
  const waiting: [number, number][] = tops.map((id) => [id, 0]);
  const down: number[] = [];
  while (waiting.length) {
    const [id, depth] = waiting.pop()!;
    const node = nodes.get(id)!;
    node.depth = depth;
    down.push(id);
    for (const child of node.children) waiting.push([child, depth + 1]);
  }
  for (const id of down.reverse()) {
    const node = nodes.get(id)!;
    node.count = 1 + node.children.reduce((sum, child) => sum + nodes.get(child)!.count, 0);
  }
  return model;
}

/** When each node began: a module with the first op inside it. Inputs come first, the output last. */
function firstOps(raw: Node[]): Map<number, number> {
  const parents = new Map(raw.map((n) => [n.id, n.parent]));
  const starts = new Map<number, number>();
  for (const node of raw) {
    if (node.kind === "input") starts.set(node.id, -1);
    if (node.kind === "output") starts.set(node.id, Infinity);
    if (node.kind !== "op") continue;
    starts.set(node.id, node.id);
    let above = node.parent;
    while (above !== null && (starts.get(above) ?? Infinity) > node.id) {
      starts.set(above, node.id);
      above = parents.get(above) ?? null;
    }
  }
  return starts;
}

export function pathUp(model: Model, id: number): number[] {
  const up: number[] = [];
  for (let at: number | null = id; at !== null; at = model.nodes.get(at)?.parent ?? null) up.push(at);
  return up;
}

export function childrenOf(model: Model, module: number): number[] {
  return module === TOP ? model.tops : (model.nodes.get(module)?.children ?? []);
}

/** Without a layout: the children of each module one below the other, in the order in which they ran. */
export function addColumns(model: Model, chained: boolean): void {
  for (const module of [TOP, ...[...model.nodes.values()].filter((n) => n.children.length).map((n) => n.id)]) {
    const children = childrenOf(model, module);
    const shown = children.filter((id) => !model.standIn.has(id));
    model.levels.set(module, column(model, shown, chained, true));
    if (shown.length < children.length) model.unfolded.set(module, column(model, children, chained, false));
  }
}

function column(model: Model, nodes: number[], chained: boolean, folded: boolean): Level {
  const lines = chained ? nodes.slice(1).map((_, i): [number, number, number] => [i, i + 1, 0]) : [];
  return {
    grid: { rows: nodes.map((_, i) => [i]), x: nodes.map(() => 0), lines },
    nodes,
    boxes: nodes.map((id) => byLetters(model.nodes.get(id)!, folded)),
    tensors: lines.map(() => ""),
    more: 0,
  };
}

function byLetters(node: GraphNode, folded: boolean): Box {
  const times = folded && (node.repeat ?? 1) > 1 ? ` \u00d7${node.repeat}` : "";
  const first = `${node.label}${times}${node.type !== node.label ? `  ${node.type}` : ""}`;
  const second = node.parameters ? `${node.parameters.toLocaleString("en-US")} params` : "";
  const width = Math.max(60, 7.2 * Math.max(first.length + 2, second.length) + 16);
  return { width, height: second ? 40 : 25, title: 7.2 * (first.length + second.length + 5) + 16, first, second };
}

// ---- what is in sight ----

export interface Sight {
  open: ReadonlySet<number>; // modules that are expanded
  unfolded: ReadonlySet<number>; // first ones of repeats that are drawn one by one
}

/** What is drawn of a module: its repeats are all folded, or all drawn one by one. */
export function levelOf(model: Model, module: number, sight: Sight): { level: Level; folded: boolean } {
  const apart = model.unfolded.get(module);
  const heads = apart ? headsIn(model, module) : null;
  if (apart && [...sight.unfolded].some((id) => heads!.has(id))) return { level: apart, folded: false };
  return { level: model.levels.get(module) ?? NOTHING, folded: true };
}

/** What is drawn once for several, in a module. */
export function headsIn(model: Model, module: number): Set<number> {
  return new Set(childrenOf(model, module).flatMap((id) => model.standIn.get(id) ?? []));
}

const NOTHING: Level = { grid: { rows: [], x: [], lines: [] }, nodes: [], boxes: [], tensors: [], more: 0 };

export function isModule(node: GraphNode): boolean {
  return node.kind === "module" && node.children.length > 0;
}

function holdsModules(model: Model, id: number): boolean {
  return model.nodes.get(id)!.children.some((child) => model.nodes.get(child)!.kind === "module");
}

/** What to expand at first: the outermost, then what is made of modules, the largest first, while all stays on one
 * screen. A plain layer says more closed than as the one operation inside it. */
export function firstSight(model: Model, most = 26): Sight {
  const open = new Set<number>();
  const sight: Sight = { open, unfolded: new Set() };
  const shown = (module: number) => levelOf(model, module, sight).level.nodes;
  let count = shown(TOP).length;
  let ready = shown(TOP).filter((id) => isModule(model.nodes.get(id)!));
  while (ready.length) {
    ready.sort((a, b) => model.nodes.get(a)!.depth - model.nodes.get(b)!.depth || model.nodes.get(b)!.count - model.nodes.get(a)!.count);
    const id = ready.shift()!;
    const inside = shown(id);
    if (open.size && count + inside.length - 1 > most) continue;
    open.add(id);
    count += inside.length - 1;
    ready = [...ready, ...inside.filter((child) => holdsModules(model, child))];
  }
  return sight;
}

/** The state in which a node is in sight: all around it expanded, the repeats that hide it unfolded. */
export function revealing(model: Model, id: number, sight: Sight): Sight {
  const open = new Set(sight.open);
  const unfolded = new Set(sight.unfolded);
  for (const at of pathUp(model, id)) {
    if (at !== id) open.add(at);
    const head = model.standIn.get(at);
    if (head !== undefined) unfolded.add(head);
  }
  return { open, unfolded };
}

export function everything(model: Model): Sight {
  return { open: new Set([...model.nodes.values()].filter(isModule).map((n) => n.id)), unfolded: new Set(model.standIn.values()) };
}

/** Nodes whose label, type or path has all the words; modules first, then by how little else is in the name. */
export function searched(model: Model, text: string, most = 60): GraphNode[] {
  if (!text.trim()) return [];
  const found = [...model.nodes.values()].filter((n) => !n.port && hasWords(`${n.path} ${n.label} ${n.type}`, text));
  found.sort((a, b) => Number(b.kind === "module") - Number(a.kind === "module") || a.path.length - b.path.length || a.id - b.id);
  return found.slice(0, most);
}

// ---- the API's answer ----

/** A file that a person has opened may be of an older Clew: any part of the answer may be absent. */
export type GraphAnswer = Partial<Omit<Answered, "models">> & { models?: (Omit<GraphModel, "modules"> & { modules: ModuleRow[] })[] };

export interface Choice {
  root: string;
  graph: DrawnGraph | null;
  rows: ModuleRow[];
}

export function choicesOf(data: GraphAnswer): Choice[] {
  const laid = (data.graphs ?? []).map((g, i): DrawnGraph => ({ ...g, layout: data.layouts?.[i] ?? null }));
  const graphs = new Map(laid.map((g) => [g.root ?? g.name, g]));
  const listed = (data.models ?? []).map((m) => ({ root: m.root, graph: graphs.get(m.root) ?? null, rows: m.modules ?? [] }));
  const known = new Set(listed.map((c) => c.root));
  const others = [...graphs].filter(([root]) => !known.has(root)).map(([root, graph]) => ({ root, graph, rows: [] }));
  return [...listed, ...others];
}
