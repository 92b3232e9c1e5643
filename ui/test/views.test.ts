import assert from "node:assert/strict";
import { test } from "node:test";
import { drawn } from "../src/draw/bins";
import type { Node } from "../src/answers";
import { choicesOf, modelOf } from "../src/draw/graph_model";
import { findingsBelow, readSight, toggled, valueBy, writtenSight } from "../src/draw/graph_sight";
import { matching } from "../src/draw/heat";
import { safeImage } from "../src/draw/images";
import { sortedBy } from "../src/draw/sorting";
import { type FindingHere, findingsByModule, worst } from "../src/draw/findings_at";

test("layers are found by all the words, in any order and case", () => {
  const layers = [{ label: "hidden.1.weight", class: "Linear" }, { label: "hidden.1.bias", class: "Linear" }, { label: "norm.weight", class: "LayerNorm" }];
  assert.deepEqual(matching(layers, "WEIGHT hidden"), [0]);
  assert.deepEqual(matching(layers, "linear"), [0, 1]);
  assert.deepEqual(matching(layers, ""), [0, 1, 2]);
});

test("signed histograms of different ranges share an axis", () => {
  const shown = drawn({ kind: "linear", steps: [0, 5], lo: [-1, -2], hi: [1, 2], counts: [[0.5, 0.5], [0.5, 0.5]] }, 8);
  assert.deepEqual([shown.low, shown.high], [-2, 2]);
  assert.deepEqual(shown.rows.map((row) => row.map((v) => Number(v.toFixed(3)))), [
    [0, 0, 0.25, 0.25, 0.25, 0.25, 0, 0],
    [0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125],
  ]);
});

test("powers of two show the bins in use and one beside them", () => {
  const counts = [0, 1].map(() => Array.from({ length: 32 }, (_, k) => (k === 10 || k === 12 ? 0.5 : 0)));
  const shown = drawn({ kind: "log2", steps: [0, 1], edges: Array.from({ length: 31 }, (_, k) => k - 23), counts });
  assert.equal(shown.rows[0]!.length, 5); // 9 … 13
  assert.deepEqual([shown.low, shown.high], [-15, -10]); // bin 9 begins at 2^-15, bin 13 ends at 2^-10
});

const finding = (module: string | null, severity: string, evidence: string[] = []) => ({
  check: "c", id: "C1", severity, confidence: "", message: "m", site: { module }, step: 3, fix: "", because: [],
  evidence: evidence.map((m) => ({ text: "", signal: null, site: { module: m }, steps: [], values: [] })),
});

test("a finding is at its own module and at those that its evidence names", () => {
  const run = { verdict: { findings: [finding("a", "warning", ["b"]), finding(null, "error")] }, links: [] };
  const found = findingsByModule(run as never);
  assert.deepEqual([...found.keys()], ["a", "b"]);
  assert.equal(found.get("a")![0]!.index, 0);
});

test("the worst severity speaks for all", () => {
  assert.equal(worst([{ severity: "advice" }, { severity: "error" }]), "error");
  assert.equal(worst([]), null);
});

const nodes: Node[] = [
  { id: 0, parent: null, kind: "module", label: "Net", type: "Net", path: "", outputs: [] },
  ...[1, 2].map((id) => ({ id, parent: 0, kind: "module", label: `blocks.${id - 1}`, type: "Block", path: `blocks.${id - 1}`, outputs: [], repeat: id === 1 ? 2 : 1, hidden: id === 2, parameters: 7 })),
  ...[1, 2].map((id) => ({ id: id + 2, parent: id, kind: "op", label: "add", type: "aten.add", path: "", outputs: [{ shape: [2], dtype: "float32", device: "cpu", requires_grad: false, bytes: 8 }] })),
];

test("a finding inside a folded block is seen on the block that stands for it, and on all around", () => {
  const model = modelOf({ name: "Net", nodes, edges: [] });
  model.standIn.set(2, 1);
  const here: FindingHere = { index: 4, severity: "error", message: "", check: "", step: null };
  const found = findingsBelow(model, new Map([["blocks.1", [here]]]));
  assert.deepEqual([0, 1, 2].map((id) => found.get(id)?.map((f) => f.index)), [[4], [4], [4]]);
});

test("what is expanded survives the address", () => {
  const sight = { open: new Set([3, 0]), unfolded: new Set([1]) };
  assert.equal(writtenSight(sight), "0.3*1");
  assert.deepEqual(readSight("0.3*1"), { open: new Set([0, 3]), unfolded: new Set([1]) });
  assert.deepEqual(readSight(writtenSight({ open: new Set(), unfolded: new Set() })), { open: new Set(), unfolded: new Set() });
  assert.deepEqual(toggled(toggled(sight, 3), 3), sight);
});

test("an op has no parameters or time, and its memory is that of its output", () => {
  const model = modelOf({ name: "Net", nodes, edges: [] });
  const op = model.nodes.get(3)!;
  assert.deepEqual([valueBy("parameters", op, null), valueBy("time", op, { "": 1 }), valueBy("memory", op, null)], [null, null, 8]);
  assert.equal(valueBy("time", model.nodes.get(1)!, { "blocks.0": 0.5 }), 0.5);
});

test("a recorded graph belongs to its model, others are listed by their modules", () => {
  const answer = { models: [{ root: "a", class: "A", file: null, line: null, modules: [] }, { root: "b", class: "B", file: null, line: null, modules: [] }], graphs: [{ root: "b", name: "B", nodes: [], edges: [] }, { root: "c", name: "C", nodes: [], edges: [] }] };
  assert.deepEqual(choicesOf(answer).map((c) => [c.root, c.graph !== null]), [["a", false], ["b", true], ["c", true]]);
});

test("only pictures that carry their own bytes are shown", () => {
  assert.ok(safeImage("data:image/png;base64,iVBORw0KGgo="));
  for (const bad of ["https://x/y.png", "data:image/svg+xml;base64,PHN2Zz4=", "data:image/png;base64,\"><script>", "javascript:alert(1)", undefined]) assert.equal(safeImage(bad), null);
});

test("rows without a value are last, whichever way they are sorted", () => {
  const rows = [{ module: "a", self: 1 }, { module: "b" }, { module: "c", self: 3 }];
  assert.deepEqual(sortedBy(rows, "self", true).map((r) => r.module), ["c", "a", "b"]);
  assert.deepEqual(sortedBy(rows, "self", false).map((r) => r.module), ["a", "c", "b"]);
});
