// A flame graph, hanging: each frame as wide as its share, what it called below it.
import type { FlameFrame } from "../answers";

export interface Bar {
  frame: FlameFrame;
  path: number[]; // which child at each level: names the frame in the address
  left: number; // 0 … 1 of the width
  width: number;
  depth: number;
}

/** The frame at a path, and all frames on the way to it. */
export function frameAt(root: FlameFrame, path: number[]): FlameFrame[] {
  const found = [root];
  for (const step of path) {
    const next = found[found.length - 1]!.children?.[step];
    if (!next) break;
    found.push(next);
  }
  return found;
}

/** Bars of what is at least `least` wide (of 1). Above the frame zoomed to, its callers take the whole width. */
export function bars(root: FlameFrame, zoom: number[] = [], least = 0.0005): Bar[] {
  const above = frameAt(root, zoom);
  const found: Bar[] = above.slice(0, -1).map((frame, depth) => ({ frame, path: zoom.slice(0, depth), left: 0, width: 1, depth }));
  const waiting: Bar[] = [{ frame: above[above.length - 1]!, path: zoom.slice(0, above.length - 1), left: 0, width: 1, depth: above.length - 1 }];
  while (waiting.length) {
    const bar = waiting.pop()!;
    found.push(bar);
    const children = bar.frame.children ?? [];
    const inside = children.reduce((sum, child) => sum + Math.max(child.value, 0), 0);
    const whole = Math.max(bar.frame.value, inside); // rounding may make the parts more than the whole
    let left = bar.left;
    children.forEach((child, i) => {
      const width = whole > 0 ? (bar.width * Math.max(child.value, 0)) / whole : 0;
      if (width >= least) waiting.push({ frame: child, path: [...bar.path, i], left, width, depth: bar.depth + 1 });
      left += width;
    });
  }
  return found;
}

export type Way = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight";

/** The bar that an arrow key leads to: its caller, the widest that it calls, or its neighbour in the same row. */
export function beside(shown: Bar[], bar: Bar, way: Way): Bar | undefined {
  const row = (depth: number) => shown.filter((b) => b.depth === depth).sort((a, b) => a.left - b.left);
  if (way === "ArrowUp") return shown.find((b) => b.depth === bar.depth - 1 && samePath(b.path, bar.path.slice(0, -1)));
  if (way === "ArrowDown")
    return row(bar.depth + 1)
      .filter((b) => samePath(b.path.slice(0, -1), bar.path))
      .sort((a, b) => b.width - a.width)[0];
  const level = row(bar.depth);
  return level[level.indexOf(bar) + (way === "ArrowRight" ? 1 : -1)];
}

export function samePath(a: number[], b: number[]): boolean {
  return a.length === b.length && a.every((step, i) => step === b[i]);
}

/** A colour for each name: neighbours differ, and a function has the same colour everywhere. */
export function hueOf(name: string): number {
  let hash = 2166136261;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  return (hash >>> 8) % 360;
}

export function selfOf(frame: FlameFrame): number {
  const own = typeof frame.self === "number" ? frame.self : frame.value - (frame.children ?? []).reduce((sum, child) => sum + child.value, 0);
  return own > frame.value * 1e-9 ? own : 0; // rounding errors count as zero
}
