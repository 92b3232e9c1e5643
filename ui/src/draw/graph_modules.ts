// Without a recorded graph: the modules by their paths, in the order in which they ran.
import type { Node } from "../answers";
import { addColumns, type Model, type ModuleRow, tree } from "./graph_model";

export function modelOfModules(name: string, rows: ModuleRow[]): Model {
  const raw: Node[] = [];
  const ids = new Map<string, number>();
  const starts = new Map<number, number>();
  const add = (path: string): number => {
    const known = ids.get(path);
    if (known !== undefined) return known;
    const id = raw.length;
    const row = byPath.get(path);
    ids.set(path, id);
    raw.push({ id, parent: null, kind: "module", label: "", type: row?.class ?? "", path, outputs: [], file: row?.file ?? null, line: row?.line ?? null, parameters: row?.parameters ?? 0 });
    if (path !== "") {
      const cut = nearest(path);
      raw[id]!.parent = add(cut);
      raw[id]!.label = cut === "" ? path : path.slice(cut.length + 1);
    } else raw[id]!.label = name;
    return id;
  };
  const byPath = new Map(rows.map((row) => [row.path, row]));
  const nearest = (path: string): string => {
    let at = path;
    while (at.includes(".")) {
      at = at.slice(0, at.lastIndexOf("."));
      if (byPath.has(at)) return at;
    }
    return "";
  };
  rows.forEach((row, i) => {
    const id = add(row.path);
    const begins = row.order ?? 1e9 + i;
    for (let at: number | null = id; at !== null; at = raw[at]!.parent) starts.set(at, Math.min(starts.get(at) ?? Infinity, begins));
  });
  const standIn = fold(raw);
  const model = tree(name, raw, starts);
  model.standIn = standIn;
  for (const head of standIn.values()) model.nodes.get(head)!.repeat! += 1;
  addUp(model);
  addColumns(model, true);
  return model;
}

/** Parameters of a module are those of all below it; rows count a module's own. */
function addUp(model: Model): void {
  const deepest = [...model.nodes.values()].sort((a, b) => b.depth - a.depth);
  for (const node of deepest) {
    const above = node.parent === null ? undefined : model.nodes.get(node.parent);
    if (above) above.parameters = (above.parameters ?? 0) + (node.parameters ?? 0);
  }
}

/** Equal siblings in a row whose names are numbers are drawn as the first of them: of each other one, the first. */
export function fold(raw: Node[]): Map<number, number> {
  const standIn = new Map<number, number>();
  const children = new Map<number | null, Node[]>();
  for (const node of raw) children.set(node.parent, [...(children.get(node.parent) ?? []), node]);
  const signs = new Map<number, string>();
  const sign = (node: Node): string => {
    const known = signs.get(node.id);
    if (known !== undefined) return known;
    const below = (children.get(node.id) ?? []).map((child) => `${/^\d+$/.test(child.label) ? "#" : child.label}${sign(child)}`);
    const made = `${node.type}:${node.parameters ?? 0}(${below.join(",")})`;
    signs.set(node.id, made);
    return made;
  };
  for (const siblings of children.values()) {
    let first: Node | null = null;
    for (const node of siblings) {
      const numbered = /(^|\.)\d+$/.test(node.label) && (children.get(node.id)?.length ?? 0) > 0;
      const stem = node.label.replace(/\d+$/, "");
      if (first && numbered && stem === first.label.replace(/\d+$/, "") && sign(first) === sign(node)) standIn.set(node.id, first.id);
      else first = numbered ? node : null;
    }
  }
  return standIn;
}
