// How the nodes of a model are coloured, marked and expanded.
import type { FindingHere } from "./findings_at";
import { type GraphNode, headsIn, levelOf, type Model, type Sight, TOP } from "./graph_model";

export type By = "health" | "time" | "memory" | "parameters" | "flops" | "kind";

export function valueBy(by: By, node: GraphNode, time: Record<string, number> | null): number | null {
  if (by === "parameters") return node.parameters || null;
  if (by === "flops") return node.flops || null;
  if (by === "memory") return node.saved || (node.kind === "op" ? (node.outputs[0]?.bytes ?? null) : null);
  if (by === "time") return node.kind === "module" ? (time?.[node.path] ?? null) : null;
  return null;
}

/** Findings at or below each module: a folded or closed module shows what is wrong inside it. */
export function findingsBelow(model: Model, here: Map<string, FindingHere[]>): Map<number, FindingHere[]> {
  const found = new Map<number, FindingHere[]>();
  for (const node of model.nodes.values()) {
    const own = node.kind === "module" ? here.get(node.path) : undefined;
    if (!own) continue;
    for (let at: number | null = node.id; at !== null; at = model.nodes.get(at)?.parent ?? null) {
      const head = model.standIn.get(at) ?? at;
      for (const id of new Set([at, head])) {
        const known = found.get(id) ?? [];
        found.set(id, [...known, ...own.filter((f) => !known.some((k) => k.index === f.index))]);
      }
    }
  }
  return found;
}

export function toggled(sight: Sight, id: number): Sight {
  const open = new Set(sight.open);
  if (!open.delete(id)) open.add(id);
  return { ...sight, open };
}

/** Draw the repeats beside a node one by one, or folded again. */
export function unfolding(model: Model, sight: Sight, id: number): Sight {
  const module = model.nodes.get(id)?.parent ?? TOP;
  if (levelOf(model, module, sight).folded) return { ...sight, unfolded: new Set([...sight.unfolded, id]) };
  const heads = headsIn(model, module);
  return { ...sight, unfolded: new Set([...sight.unfolded].filter((head) => !heads.has(head))) };
}

export function writtenSight(sight: Sight): string {
  const list = (ids: ReadonlySet<number>) => [...ids].sort((a, b) => a - b).join(".");
  return sight.unfolded.size ? `${list(sight.open)}*${list(sight.unfolded)}` : list(sight.open) || "none";
}

export function readSight(text: string): Sight {
  const [open, unfolded] = text.split("*");
  const read = (part: string | undefined) => new Set((part ?? "").split(".").filter(Boolean).map(Number).filter(Number.isInteger));
  return { open: read(open), unfolded: read(unfolded) };
}
