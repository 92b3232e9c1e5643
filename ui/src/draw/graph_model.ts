// The graph as a tree of modules: who is inside whom, which edges belong to which module, what is folded.
// An edge belongs to the innermost module that holds both of its ends; on the way there it passes through
// the borders of the modules around each end. So a module can be laid out by itself.

export interface Tensor {
  shape: number[];
  dtype: string;
  bytes?: number;
}

export interface RawNode {
  id: number;
  parent: number | null;
  kind: string; // "module", "op", "input", "output"
  label: string;
  type: string;
  path: string;
  outputs: Tensor[];
  flops?: number;
  parameters?: number;
  saved?: number;
  feeds_result?: boolean;
  file?: string | null;
  line?: number | null;
  repeat?: number;
  hidden?: boolean;
}

export interface RawGraph {
  name: string;
  root?: string;
  nodes: RawNode[];
  edges: { source: number; target: number; tensor?: Tensor | null }[];
}

export interface ModuleRow {
  path: string;
  class: string;
  file: string | null;
  line: number | null;
  order: number | null;
  parameters: number;
}

export interface GraphNode extends RawNode {
  children: number[]; // in the order in which they ran
  depth: number;
  count: number; // nodes at and below it
}

/** Edges of one module: between two of its children, and over its border. */
export interface Wiring {
  between: [number, number][];
  entering: number[]; // children that get something from outside
  leaving: number[]; // children that give something to outside
}

export const TOP = -1; // stands above the outermost nodes

export interface Model {
  name: string;
  nodes: Map<number, GraphNode>;
  tops: number[];
  wiring: Map<number, Wiring>; // by module; TOP for the outermost level
  traced: boolean; // edges are tensors; otherwise only the order is known
}

export function modelOf(raw: RawGraph): Model {
  const model = tree(raw.name, raw.nodes, firstOps(raw.nodes));
  for (const { source, target } of raw.edges) wire(model, source, target);
  model.traced = true;
  return model;
}

/** Who is inside whom; children in the order of `starts`. */
export function tree(name: string, raw: RawNode[], starts: Map<number, number>): Model {
  const nodes = new Map<number, GraphNode>(raw.map((n) => [n.id, { ...n, children: [], depth: 0, count: 1 }]));
  const tops: number[] = [];
  const order = [...raw].sort((a, b) => (starts.get(a.id) ?? a.id) - (starts.get(b.id) ?? b.id));
  for (const { id, parent } of order) {
    const above = parent === null ? undefined : nodes.get(parent);
    (above ? above.children : tops).push(id);
  }
  foldOnlyNeighbours(nodes, tops);
  const model: Model = { name, nodes, tops, wiring: new Map(), traced: false };
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

/** Repeats with something between them (a function called after each) are drawn one by one: folded, the lines
 * to what is between would run in circles. */
function foldOnlyNeighbours(nodes: Map<number, GraphNode>, tops: number[]): void {
  for (const children of [tops, ...[...nodes.values()].map((n) => n.children)]) {
    let head: GraphNode | null = null;
    for (const id of children) {
      const node = nodes.get(id)!;
      if (node.hidden && head) head.repeat = (head.repeat ?? 1) + 1;
      else {
        head = (node.repeat ?? 1) > 1 || node.hidden ? node : null;
        if (head) [head.repeat, head.hidden] = [1, false];
      }
    }
  }
}

/** When each node began: a module with the first op inside it. Inputs come first, the output last. */
function firstOps(raw: RawNode[]): Map<number, number> {
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

export function wiringOf(model: Model, module: number): Wiring {
  let found = model.wiring.get(module);
  if (!found) model.wiring.set(module, (found = { between: [], entering: [], leaving: [] }));
  return found;
}

function wire(model: Model, source: number, target: number): void {
  if (!model.nodes.has(source) || !model.nodes.has(target)) return;
  const [from, to] = [pathUp(model, source), pathUp(model, target)];
  while (from.length && to.length && from[from.length - 1] === to[to.length - 1]) {
    from.pop();
    to.pop();
  }
  const [a, b] = [from[from.length - 1], to[to.length - 1]];
  if (a === undefined || b === undefined) return; // one holds the other: nothing to draw
  wiringOf(model, model.nodes.get(a)!.parent ?? TOP).between.push([a, b]);
  from.slice(0, -1).forEach((child, i) => wiringOf(model, from[i + 1]!).leaving.push(child));
  to.slice(0, -1).forEach((child, i) => wiringOf(model, to[i + 1]!).entering.push(child));
}

// ---- what is in sight ----

export interface Sight {
  open: ReadonlySet<number>; // modules that are expanded
  unfolded: ReadonlySet<number>; // first ones of repeats that are drawn one by one
}

/** The children of a module that are drawn, and who stands for those that are folded away. */
export function shownChildren(model: Model, module: number, sight: Sight): { shown: number[]; standIn: Map<number, number> } {
  const children = module === TOP ? model.tops : (model.nodes.get(module)?.children ?? []);
  const shown: number[] = [];
  const standIn = new Map<number, number>();
  let first = -1;
  for (const id of children) {
    const node = model.nodes.get(id)!;
    if (!node.hidden) first = (node.repeat ?? 1) > 1 ? id : -1;
    if (node.hidden && first >= 0 && !sight.unfolded.has(first)) standIn.set(id, first);
    else shown.push(id);
  }
  return { shown, standIn };
}

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
  let count = shownChildren(model, TOP, sight).shown.length;
  let ready = shownChildren(model, TOP, sight).shown.filter((id) => isModule(model.nodes.get(id)!));
  while (ready.length) {
    ready.sort((a, b) => model.nodes.get(a)!.depth - model.nodes.get(b)!.depth || model.nodes.get(b)!.count - model.nodes.get(a)!.count);
    const id = ready.shift()!;
    const { shown } = shownChildren(model, id, sight);
    if (open.size && count + shown.length - 1 > most) continue;
    open.add(id);
    count += shown.length - 1;
    ready = [...ready, ...shown.filter((child) => holdsModules(model, child))];
  }
  return sight;
}

/** The state in which a node is in sight: all around it expanded, the repeats that hide it unfolded. */
export function revealing(model: Model, id: number, sight: Sight): Sight {
  const open = new Set(sight.open);
  const unfolded = new Set(sight.unfolded);
  for (const at of pathUp(model, id)) {
    const node = model.nodes.get(at)!;
    if (at !== id) open.add(at);
    if (node.hidden) unfolded.add(headOf(model, at));
  }
  return { open, unfolded };
}

/** The first of the repeat that a node belongs to. */
export function headOf(model: Model, id: number): number {
  const parent = model.nodes.get(id)?.parent ?? null;
  const siblings = parent === null ? model.tops : model.nodes.get(parent)!.children;
  let at = siblings.indexOf(id);
  while (at > 0 && model.nodes.get(siblings[at]!)!.hidden) at -= 1;
  return siblings[at] ?? id;
}

export function everything(model: Model): Sight {
  const all = [...model.nodes.values()];
  return { open: new Set(all.filter(isModule).map((n) => n.id)), unfolded: new Set(all.filter((n) => (n.repeat ?? 1) > 1).map((n) => n.id)) };
}

/** Nodes whose label, type or path has all the words; modules first, then by how little else is in the name. */
export function searched(model: Model, text: string, most = 60): GraphNode[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const fits = (n: GraphNode) => {
    const all = `${n.path} ${n.label} ${n.type}`.toLowerCase();
    return words.every((word) => all.includes(word));
  };
  const found = [...model.nodes.values()].filter(fits);
  found.sort((a, b) => Number(b.kind === "module") - Number(a.kind === "module") || a.path.length - b.path.length || a.id - b.id);
  return found.slice(0, most);
}

// ---- the API's answer ----

export interface GraphAnswer {
  models?: { root: string; class: string; file: string | null; line: number | null; modules: ModuleRow[] }[];
  graphs?: RawGraph[];
  health?: Record<string, { severity: string; checks: string[] }>;
  time?: Record<string, number> | null;
  missing?: string | null;
}

export interface Choice {
  root: string;
  graph: RawGraph | null;
  rows: ModuleRow[];
}

export function choicesOf(data: GraphAnswer): Choice[] {
  const graphs = new Map((data.graphs ?? []).map((g) => [g.root ?? g.name, g]));
  const listed = (data.models ?? []).map((m) => ({ root: m.root, graph: graphs.get(m.root) ?? null, rows: m.modules ?? [] }));
  const known = new Set(listed.map((c) => c.root));
  const others = [...graphs].filter(([root]) => !known.has(root)).map(([root, graph]) => ({ root, graph, rows: [] }));
  return [...listed, ...others];
}
