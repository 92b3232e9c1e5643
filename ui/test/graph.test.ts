import assert from "node:assert/strict";
import { test } from "node:test";
import type { DrawnGraph, GraphLayout, LayoutGrid, LayoutLevel, Node } from "../src/answers";
import { fit } from "../src/draw/graph_grid";
import { boxAt, layout, type Layout, lineAt, linesOf } from "../src/draw/graph_layout";
import { everything, firstSight, levelOf, modelOf, revealing, searched } from "../src/draw/graph_model";
import { fold, modelOfModules } from "../src/draw/graph_modules";
import { unfolding } from "../src/draw/graph_sight";

/** A net of `blocks` equal blocks of `ops` ops each, in a list, with its layout as Python makes it: in columns. */
function stack(blocks: number, ops: number): DrawnGraph {
  const nodes: Node[] = [{ id: 0, parent: null, kind: "module", label: "Net", type: "Net", path: "", outputs: [] }];
  const first = 1 + blocks;
  for (let b = 0; b < blocks; b += 1) nodes.push({ id: 1 + b, parent: 0, kind: "module", label: `blocks.${b}`, type: "Block", path: `blocks.${b}`, outputs: [], parameters: 10 });
  for (let k = 0; k < blocks * ops; k += 1) nodes.push({ id: first + k, parent: 1 + Math.floor(k / ops), kind: "op", label: `op${k % ops}`, type: "aten.add", path: "", outputs: [{ shape: [2, 3], dtype: "float32", device: "cpu", requires_grad: false, bytes: 24 }] });
  const [input, output] = [first + blocks * ops, first + blocks * ops + 1];
  nodes.push({ id: input, parent: null, kind: "input", label: "input", type: "input", path: "", outputs: [] });
  nodes.push({ id: output, parent: null, kind: "output", label: "output", type: "output", path: "", outputs: [] });
  return { name: "Net", nodes, edges: [], layout: columns(blocks, ops, input) };
}

function columns(blocks: number, ops: number, input: number): GraphLayout {
  const made: GraphLayout = { first: [0], levels: {}, unfolded: {}, stands_in: {}, repeats: blocks > 1 ? { 1: blocks } : {}, grids: [], boxes: [[100, 40, 120, "name", "shape"]], tensors: ["2\u00d73 float32"] };
  const column = (ids: number[]): LayoutLevel => {
    const lines = ids.slice(1).map((_, i): [number, number, number] => [i, i + 1, 0]);
    made.grids.push({ rows: ids.map((_, i) => [i]), x: ids.map(() => 0), lines });
    const ports = ids.filter((id) => id < 0).map((id) => ({ id, kind: "input", label: "input", outputs: [] }));
    return { grid: made.grids.length - 1, nodes: ids, boxes: ids.map(() => 0), tensors: lines.map(() => 0), ports, more: 0 };
  };
  const all = Array.from({ length: blocks }, (_, b) => 1 + b);
  made.levels[""] = column([0]);
  made.levels["0"] = column([input, 1, input + 1]);
  if (blocks > 1) made.unfolded["0"] = column([input, ...all, input + 1]);
  for (const block of all.slice(1)) made.stands_in[block] = 1;
  for (const block of all) made.levels[block] = column([-1, ...Array.from({ length: ops }, (_, k) => 1 + blocks + (block - 1) * ops + k)]);
  return made;
}

function random(seed: number): () => number {
  let state = seed + 1;
  return () => (state = (state * 16807) % 2147483647) / 2147483647;
}

/** Rows with passages in between, as Python makes them for boxes that are 60 wide. */
function someGrid(seed: number): LayoutGrid {
  const next = random(seed);
  const rows: number[][] = Array.from({ length: 6 }, () => []);
  for (let box = 0; box < 14; box += 1) rows[box % 6]!.push(box);
  for (let passage = 14; passage < 24; passage += 1) rows[Math.floor(next() * 6)]!.push(passage);
  const x: number[] = [];
  for (const row of rows) row.reduce((at, place) => (x[place] = Math.round(at + 80 + 40 * next())), 0);
  const lines = rows.slice(1).flatMap((row, n) => row.map((to): [number, number, number] => [rows[n]![Math.floor(next() * rows[n]!.length)]!, to, 0]));
  return { rows, x, lines };
}

test("with all boxes closed, everything stands where Python has put it", () => {
  const grid = someGrid(3);
  const places = fit(grid, new Array<number>(14).fill(60), new Array<number>(14).fill(40));
  const shift = places.x[0]! - grid.x[0]!;
  assert.ok(places.x.every((at, place) => Math.abs(at - shift - grid.x[place]!) < 1e-9));
});

test("boxes of any width have room beside each other, and what stands in one column stays in one column", () => {
  for (let seed = 0; seed < 30; seed += 1) {
    const [grid, next] = [someGrid(seed), random(seed + 100)];
    const widths = Array.from({ length: 14 }, () => 40 + 600 * next());
    const places = fit(grid, widths, Array.from({ length: 14 }, () => 25 + 300 * next()));
    const wide = (place: number) => widths[place] ?? 0;
    for (const row of grid.rows) for (let i = 1; i < row.length; i += 1) assert.ok(places.x[row[i - 1]!]! + wide(row[i - 1]!) / 2 + 11.9 < places.x[row[i]!]! - wide(row[i]!) / 2, String(seed));
    grid.x.forEach((at, a) => grid.x.forEach((other, b) => at !== other || assert.ok(Math.abs(places.x[a]! - places.x[b]!) < 1e-9)));
    assert.ok(places.x.every((at, place) => at - wide(place) / 2 > -1e-9 && at + wide(place) / 2 < places.width + 1e-9));
    places.tops.slice(1).forEach((top, n) => assert.ok(top >= places.bottoms[n]! + 28));
  }
});

test("inputs and output are inside the model, where they are drawn", () => {
  const model = modelOf(stack(2, 2));
  assert.deepEqual(model.tops, [0]);
  assert.deepEqual(model.nodes.get(0)!.children.map((id) => model.nodes.get(id)!.kind), ["input", "module", "module", "output"]);
});

test("repeated blocks are drawn once until they are unfolded, and are folded again", () => {
  const model = modelOf(stack(12, 5));
  const folded = { open: new Set([0]), unfolded: new Set<number>() };
  assert.equal(levelOf(model, 0, folded).level.nodes.length, 3);
  assert.equal(model.standIn.get(12), 1);
  assert.equal(model.nodes.get(1)!.repeat, 12);
  const unfolded = unfolding(model, folded, 1);
  assert.equal(levelOf(model, 0, unfolded).level.nodes.length, 14);
  assert.equal(levelOf(model, 0, unfolding(model, unfolded, 1)).folded, true);
});

test("no boxes overlap, and what is inside a module lies within its box", () => {
  const model = modelOf(stack(4, 6));
  const { boxes } = layout(model, everything(model));
  const by = new Map(boxes.map((b) => [b.id, b]));
  for (const box of boxes) {
    const around = by.get(box.module);
    if (around) {
      assert.ok(box.x >= around.x && box.x + box.width <= around.x + around.width + 1e-6, `${box.id} in ${box.module}`);
      assert.ok(box.y >= around.y && box.y + box.height <= around.y + around.height + 1e-6);
    }
    for (const other of boxes) {
      if (other.id <= box.id || other.module !== box.module) continue;
      const apart = other.x >= box.x + box.width || box.x >= other.x + other.width || other.y >= box.y + box.height || box.y >= other.y + other.height;
      assert.ok(apart, `${box.id} and ${other.id}`);
    }
  }
});

test("a model of 2,000 nodes opens with few boxes, and opens whole", () => {
  const model = modelOf(stack(100, 20));
  const first = layout(model, firstSight(model));
  assert.ok(first.boxes.length <= 40, String(first.boxes.length));
  const all = layout(model, everything(model));
  assert.equal(all.boxes.filter((b) => b.id >= 0).length, 2103);
  assert.equal(all.boxes.length, 2103 + 100); // each block has a port
});

test("the ports of different modules are different boxes, and search does not find them", () => {
  const model = modelOf(stack(3, 2));
  const ports = [...model.nodes.values()].filter((n) => n.port);
  assert.deepEqual(new Set(ports.map((n) => n.parent)), new Set([1, 2, 3]));
  assert.ok(searched(model, "input").every((n) => !n.port));
});

test("a level that is too long says how many are left out", () => {
  const raw = stack(1, 5);
  raw.layout!.levels["1"]!.more = 1234;
  const { notes } = layout(modelOf(raw), { open: new Set([0, 1]), unfolded: new Set() });
  assert.deepEqual(notes.map((note) => note.text), ["\u2026 and 1,234 more"]);
});

/** Three boxes in a column, and a line from the first to the last that goes by beside the second. */
function besideOne(): Layout {
  const nodes: Node[] = [0, 1, 2].map((id) => ({ id, parent: null, kind: "op", label: `op${id}`, type: "", path: "", outputs: [] }));
  const grid: LayoutGrid = { rows: [[0], [1, 3], [2]], x: [0, 0, 0, 80], lines: [[0, 1, 0], [1, 2, -6], [0, 3, 0], [3, 2, 6]] };
  const level: LayoutLevel = { grid: 0, nodes: [0, 1, 2], boxes: [0, 0, 0], tensors: [0, 0, 1, 1], ports: [], more: 0 };
  const raw: GraphLayout = { first: [], levels: { "": level }, unfolded: {}, stands_in: {}, repeats: {}, grids: [grid], boxes: [[100, 40, 120, "name", "shape"]], tensors: ["2\u00d73", "7"] };
  return layout(modelOf({ name: "Net", nodes, edges: [], layout: raw }), { open: new Set(), unfolded: new Set() });
}

test("the lines of a box are followed through passages to the boxes that they lead to", () => {
  const made = besideOne();
  const of = (id: number) => [...linesOf(made, made.boxes.find((b) => b.id === id)!)].map((line) => `${line.from}>${line.to}`).sort();
  assert.deepEqual(of(0), ["0>1", "0>3", "3>2"]);
  assert.deepEqual(of(1), ["0>1", "1>2"]);
  assert.deepEqual(of(2), ["0>3", "1>2", "3>2"]);
});

test("what is under the pointer is a box, a line, or nothing", () => {
  const made = besideOne();
  const second = made.boxes.find((b) => b.id === 1)!;
  assert.equal(boxAt(made, second.x + 5, second.y + 5)!.id, 1);
  const passage = made.lines.find((line) => line.to === 3)!;
  assert.equal(lineAt(made, passage.x2 + 2, passage.through - 3, 5)!.tensor, "7");
  const middle = (passage.x1 + passage.x2) / 2; // half way over, the curve is half way down
  assert.equal(lineAt(made, middle, (passage.low + passage.end) / 2, 2)!.tensor, "7");
  assert.equal(lineAt(made, passage.x2 + 30, passage.through - 3, 5), null);
});

test("without a layout, of a damaged file, the nodes are there one below the other", () => {
  const model = modelOf({ ...stack(2, 3), layout: null });
  assert.equal(layout(model, everything(model)).boxes.length, model.nodes.size);
});

test("without a graph the modules make a tree in the order in which they ran, repeats folded", () => {
  const rows = ["", "embed", "blocks", ...[0, 1, 2].flatMap((n) => [`blocks.${n}`, `blocks.${n}.fc`, `blocks.${n}.act`]), "head"].map((path, i) => ({
    path, class: path.endsWith("fc") ? "Linear" : path === "" ? "Net" : "Block", file: null, line: null, order: path === "head" ? 1 : i, parameters: path.endsWith("fc") ? 5 : 0,
  }));
  const model = modelOfModules("net", rows);
  const root = [...model.nodes.values()].find((n) => n.path === "")!;
  assert.deepEqual(root.children.map((id) => model.nodes.get(id)!.path), ["embed", "head", "blocks"]);
  assert.equal(root.parameters, 15);
  const list = [...model.nodes.values()].find((n) => n.path === "blocks")!;
  assert.equal(model.nodes.get(list.children[0]!)!.repeat, 3);
  assert.equal(levelOf(model, list.id, { open: new Set(), unfolded: new Set() }).level.nodes.length, 1);
  assert.equal(levelOf(model, list.id, everything(model)).level.nodes.length, 3);
  assert.equal(levelOf(model, root.id, everything(model)).level.grid.lines.length, 2);
  assert.equal(model.traced, false);
});

test("blocks that differ inside are not folded", () => {
  const raw: Node[] = [0, 1, 2].flatMap((n) => [
    { id: n, parent: null, kind: "module", label: String(n), type: "Block", path: String(n), outputs: [] },
    { id: 10 + n, parent: n, kind: "module", label: "fc", type: "Linear", path: `${n}.fc`, outputs: [], parameters: n === 2 ? 7 : 5 },
  ]);
  assert.deepEqual([...fold(raw)], [[1, 0]]);
});

test("revealing a node inside a folded block expands what is around it and unfolds the repeat", () => {
  const model = modelOf(stack(12, 5));
  const inside = model.nodes.get(7)!.children[2]!;
  const sight = revealing(model, inside, firstSight(model, 5));
  assert.ok(sight.open.has(7) && sight.unfolded.has(1));
  assert.ok(layout(model, sight).boxes.some((b) => b.id === inside));
});

test("search finds by path, type and label, modules first", () => {
  const model = modelOf(stack(12, 5));
  assert.equal(searched(model, "BLOCKS.11")[0]!.path, "blocks.11");
  assert.equal(searched(model, "op3").length, 12);
  assert.deepEqual(searched(model, "  "), []);
});
