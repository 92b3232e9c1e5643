import assert from "node:assert/strict";
import { test } from "node:test";
import { groupsOf } from "../src/draw/roots";
import type { Finding, RunRow } from "../src/types";
import { differing, matches, sorted } from "../src/views/runs_table";

const finding = (id: string, ...because: string[]) => ({ id, because }) as Finding;

test("effects stand under the root of their chain", () => {
  const groups = groupsOf([finding("A"), finding("B", "A"), finding("C", "B"), finding("D")]);
  assert.deepEqual(groups, [{ root: 0, effects: [1, 2] }, { root: 3, effects: [] }]);
});

test("a circle has no root, and an unknown cause is none", () => {
  assert.deepEqual(groupsOf([finding("A", "B"), finding("B", "A"), finding("C", "Z")]).length, 3);
});

const run = (id: string, more: Partial<RunRow>) => ({ id, state: "finished", hparams: {}, metrics: {}, ...more }) as RunRow;

test("runs are sorted by a column, those without a value last either way", () => {
  const runs = [run("a", { steps: 2 }), run("b", { steps: null }), run("c", { steps: 9 })];
  assert.deepEqual(sorted(runs, "steps").map((r) => r.id), ["a", "c", "b"]);
  assert.deepEqual(sorted(runs, "-steps").map((r) => r.id), ["c", "a", "b"]);
});

test("every word of the filter must occur, settings included", () => {
  const one = run("a", { script: "train.py", hparams: { lr: 0.1 }, root_cause: { check: "dead-units", severity: "error", message: "" } });
  assert.ok(matches(one, "TRAIN lr=0.1 dead"));
  assert.ok(!matches(one, "train lr=0.2"));
});

test("only settings that differ between the runs are shown", () => {
  const [a, b] = [run("a", { hparams: { lr: 0.1, seed: 1 } }), run("b", { hparams: { lr: 0.2, seed: 1 } })];
  assert.deepEqual(differing(a!, [a!, b!]), [["lr", 0.1]]);
});
