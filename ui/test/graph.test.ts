import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cache, layout } from "../src/draw/graph_layout";
import { everything, firstSight, headOf, modelOf, type RawGraph, type RawNode, revealing, searched, shownChildren, TOP } from "../src/draw/graph_model";
import { fold, modelOfModules } from "../src/draw/graph_modules";

/** A net of `blocks` equal blocks of `ops` ops each, in a list, as a recorded graph has them. */
function stack(blocks: number, ops: number): RawGraph {
  const nodes: RawNode[] = [{ id: 0, parent: null, kind: "module", label: "Net", type: "Net", path: "", outputs: [] }];
  const edges: RawGraph["edges"] = [];
  const first = 1 + blocks;
  for (let b = 0; b < blocks; b += 1)
    nodes.push({ id: 1 + b, parent: 0, kind: "module", label: `blocks.${b}`, type: "Block", path: `blocks.${b}`, outputs: [], repeat: b ? 1 : blocks, hidden: b > 0, parameters: 10 });
  for (let k = 0; k < blocks * ops; k += 1) {
    nodes.push({ id: first + k, parent: 1 + Math.floor(k / ops), kind: "op", label: `op${k % ops}`, type: "aten.add", path: "", outputs: [{ shape: [2, 3], dtype: "float32" }] });
    if (k) edges.push({ source: first + k - 1, target: first + k });
    if (k % ops > 1) edges.push({ source: first + k - 2, target: first + k });
  }
  const [input, output] = [first + blocks * ops, first + blocks * ops + 1];
  nodes.push({ id: input, parent: null, kind: "input", label: "input", type: "input", path: "", outputs: [] });
  nodes.push({ id: output, parent: null, kind: "output", label: "output", type: "output", path: "", outputs: [] });
  edges.push({ source: input, target: first }, { source: output - 2, target: output });
  return { name: "Net", nodes, edges };
}

test("an edge belongs to the innermost module that holds both ends and crosses the borders in between", () => {
  const model = modelOf(stack(3, 4));
  assert.deepEqual(model.wiring.get(0)!.between, [[1, 2], [2, 3]]);
  assert.deepEqual(model.wiring.get(2)!.entering, [8]);
  assert.deepEqual(model.wiring.get(2)!.leaving, [11]);
  assert.deepEqual(model.wiring.get(TOP)!.between, [[16, 0], [0, 17]]);
});

test("the outermost level reads from the input to the output", () => {
  const model = modelOf(stack(2, 2));
  assert.deepEqual(model.tops.map((id) => model.nodes.get(id)!.kind), ["input", "module", "output"]);
});

test("repeated blocks are drawn once until they are unfolded", () => {
  const model = modelOf(stack(12, 5));
  const folded = shownChildren(model, 0, { open: new Set([0]), unfolded: new Set() });
  assert.deepEqual(folded.shown, [1]);
  assert.equal(folded.standIn.get(12), 1);
  const unfolded = shownChildren(model, 0, { open: new Set([0]), unfolded: new Set([1]) });
  assert.equal(unfolded.shown.length, 12);
});

test("repeats with operations between them are drawn one by one", () => {
  const nodes: RawNode[] = [0, 1, 2].map((n) => ({ id: n, parent: null, kind: "module", label: `layers.${n}`, type: "Linear", path: `layers.${n}`, outputs: [], repeat: n ? 1 : 3, hidden: n > 0 }));
  for (const n of [0, 1, 2]) nodes.push({ id: 10 + 2 * n, parent: n, kind: "op", label: "addmm", type: "", path: "", outputs: [], hidden: n > 0 });
  for (const n of [0, 1]) nodes.push({ id: 11 + 2 * n, parent: null, kind: "op", label: "relu", type: "", path: "", outputs: [] });
  const model = modelOf({ name: "Net", nodes, edges: [] });
  const { shown, standIn } = shownChildren(model, TOP, { open: new Set(), unfolded: new Set() });
  assert.deepEqual(shown, [0, 11, 1, 13, 2]);
  assert.equal(standIn.size, 0);
  assert.equal(model.nodes.get(0)!.repeat, 1);
});

test("no boxes overlap, and what is inside a module lies within its box", () => {
  const model = modelOf(stack(4, 6));
  const { boxes } = layout(model, everything(model), new Map());
  const by = new Map(boxes.map((b) => [b.id, b]));
  for (const box of boxes) {
    const parent = model.nodes.get(box.id)!.parent;
    const around = parent === null ? undefined : by.get(parent);
    if (around) {
      assert.ok(box.x >= around.x && box.x + box.width <= around.x + around.width + 1e-6, `${box.id} in ${parent}`);
      assert.ok(box.y >= around.y && box.y + box.height <= around.y + around.height + 1e-6);
    }
    for (const other of boxes) {
      if (other.id <= box.id || model.nodes.get(other.id)!.parent !== parent) continue;
      const apart = other.x >= box.x + box.width || box.x >= other.x + other.width || other.y >= box.y + box.height || box.y >= other.y + other.height;
      assert.ok(apart, `${box.id} and ${other.id}`);
    }
  }
});

test("equal modules are laid out once, and not again when something else is expanded", () => {
  const model = modelOf(stack(12, 8));
  const cache: Cache = new Map();
  const all = layout(model, everything(model), cache);
  assert.ok(all.runs <= 6, String(all.runs)); // the first, middle and last block differ at their borders
  assert.equal(layout(model, everything(model), cache).runs, 0);
});

test("a model of 2,000 nodes opens with few boxes, and opens whole without a flat layout", () => {
  const model = modelOf(stack(100, 20));
  assert.ok(model.nodes.size > 2000);
  const cache: Cache = new Map();
  const first = layout(model, firstSight(model), cache);
  assert.ok(first.boxes.length <= 40, String(first.boxes.length));
  const all = layout(model, everything(model), cache);
  assert.equal(all.boxes.length, model.nodes.size);
  assert.ok(all.runs <= 6);
});

test("a module with hundreds of ops of its own is laid out too", () => {
  const model = modelOf(stack(1, 1500));
  const all = layout(model, everything(model), new Map());
  assert.equal(all.boxes.length, model.nodes.size);
  const ys = all.boxes.filter((b) => model.nodes.get(b.id)!.kind === "op").map((b) => b.y);
  assert.ok(ys[ys.length - 1]! > ys[0]!);
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
  assert.equal(shownChildren(model, list.id, { open: new Set(), unfolded: new Set() }).shown.length, 1);
  assert.equal(model.traced, false);
});

test("blocks that differ inside are not folded", () => {
  const raw: RawNode[] = [0, 1, 2].flatMap((n) => [
    { id: n, parent: null, kind: "module", label: String(n), type: "Block", path: String(n), outputs: [] },
    { id: 10 + n, parent: n, kind: "module", label: "fc", type: "Linear", path: `${n}.fc`, outputs: [], parameters: n === 2 ? 7 : 5 },
  ]);
  fold(raw);
  assert.deepEqual(raw.filter((n) => n.parent === null).map((n) => [n.repeat ?? 1, n.hidden ?? false]), [[2, false], [1, true], [1, false]]);
});

test("revealing a node inside a folded block expands what is around it and unfolds the repeat", () => {
  const model = modelOf(stack(12, 5));
  const inside = model.nodes.get(7)!.children[2]!;
  const sight = revealing(model, inside, firstSight(model, 5));
  assert.equal(headOf(model, 7), 1);
  assert.ok(sight.open.has(7) && sight.unfolded.has(1));
  assert.ok(layout(model, sight, new Map()).boxes.some((b) => b.id === inside));
});

test("search finds by path, type and label, modules first", () => {
  const model = modelOf(stack(12, 5));
  assert.equal(searched(model, "BLOCKS.11")[0]!.path, "blocks.11");
  assert.equal(searched(model, "op3").length, 12);
  assert.deepEqual(searched(model, "  "), []);
});
