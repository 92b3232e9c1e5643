import assert from "node:assert/strict";
import { test } from "node:test";
import { adviceOf, frame, readProfile } from "../src/draw/profile";
import { withUnit } from "../src/format";
import type { Finding } from "../src/types";

test("a profile is read with what is derived from it", () => {
  const found = readProfile({
    step_median: 0.1,
    modules: [{ module: "fc", type: "Linear", forward: 0.01, backward: 0.03, flops: 4e8, roof: 0.5 }],
    ops: [{ op: "aten::addmm", forward: 0.01 }],
    lines: [{ file: "train.py", line: 3, code: "  x = 1" }],
    flame: { unit: "s", root: { name: "step", value: 1, children: [{ name: "a", value: 0.5 }] } },
    memory: { kinds: { activations: 3, parameters: 5, other: 0 }, growth: { slope: 1, owner: "a list" } },
  });
  assert.deepEqual([found.modules[0]!.total, found.modules[0]!.rate, found.modules[0]!.class], [0.04, 1e10, "Linear"]);
  assert.deepEqual([found.ops[0]!.op, found.lines[0]!.where, found.lines[0]!.code], ["addmm", "train.py:3", "x = 1"]);
  assert.deepEqual(found.kinds.map((kind) => kind.name), ["parameters", "activations"]);
  assert.equal(found.flame!.children![0]!.name, "a");
  assert.equal(found.growth, "a list");
});

test("whatever stands in the file, numbers are numbers and lists are lists", () => {
  for (const raw of [null, 3, "x", [], { parts: 5, modules: [1, null, {}], memory: [], flame: "x", steps: ["a"], notes: [1, "b"] }]) {
    const found = readProfile(raw);
    assert.ok(Array.isArray(found.parts) && Array.isArray(found.timeline));
    assert.equal(found.flame, null);
    assert.equal(found.steps, null);
  }
  const odd = readProfile({ parts: [{ name: {}, median: "x", share: Infinity }], memory: { processes: [{ rss: "lots", readings: [[1, 2], [3]] }] } });
  assert.deepEqual(odd.parts[0], { name: "", median: 0, p95: null, share: 0 });
  assert.deepEqual([odd.processes[0]!.rss, odd.processes[0]!.readings], [null, [[1, 2]]]);
});

test("frames are read at any depth, without those that are none", () => {
  let raw: unknown = { name: "bottom", value: 1 };
  for (let n = 0; n < 5000; n += 1) raw = { name: `call ${n}`, value: 1, children: [raw, { name: 3, value: 1 }, null] };
  let depth = 0;
  for (let at = frame(raw); at; at = at.children?.[0] ?? null) depth += 1;
  assert.equal(depth, 5001);
  assert.equal(frame({ name: "nothing", value: 0 }), null);
});

test("of the findings, those about costs are advice, with their place in the verdict", () => {
  const findings = ["LOSS001", "PERF001", "DATA003", "PERF004"].map((id) => ({ id }) as Finding);
  assert.deepEqual(adviceOf(findings).map(({ index }) => index), [1, 3]);
});

test("operations a second have a prefix", () => {
  assert.deepEqual([9.81e9, 173e6, 12, 2e13, 0].map((value) => withUnit(value, "FLOP/s")), ["9.81\u00a0GFLOP/s", "173\u00a0MFLOP/s", "12\u00a0FLOP/s", "20\u00a0TFLOP/s", "0\u00a0FLOP/s"]);
});
