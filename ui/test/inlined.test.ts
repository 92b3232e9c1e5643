import assert from "node:assert/strict";
import { test } from "node:test";
import { answerInlined, seriesOf, signalsOf } from "../src/inlined";
import type { SeriesAnswer, SeriesPart, SignalList, SignalRow } from "../src/types";

const row = (key: string, signal: string, module: string, group: string): SignalRow => ({
  key, signal, site: { module }, site_id: "", label: `${signal}  ${module}`, group, rank: 0, points: 1, first: 0, last: 0, unit: "", title: "", about: "", chart: null, glance: false,
});
const list: SignalList = { total: 3, offset: 0, groups: [], signals: [row("a", "loss", "", "loss"), row("b", "gradient.norm", "fc1", "gradient"), row("c", "gradient.std", "fc1", "gradient")] };
const series = { key: "a", signal: "loss", site: {}, label: "loss", unit: "", exact: true, total: 4, x: [0, 1, 2, 3], steps: [0, 1, 2, 3], wall: [0, 0.5, 1, 1.5], mean: [4, 3, 2, 1], marks: [[2, "nan"]] } as unknown as SeriesPart;
const all: SeriesAnswer = { x: "step", from: null, to: null, series: [series] };

test("a report searches its signals as the server does", () => {
  assert.deepEqual(signalsOf(list, { search: "FC1 norm" })!.signals.map((r) => r.key), ["b"]);
  assert.deepEqual(signalsOf(list, { keys: "a,c" })!.signals.map((r) => r.key), ["a", "c"]);
  const page = signalsOf(list, { offset: 1, limit: 1 })!;
  assert.deepEqual([page.total, page.signals.map((r) => r.key)], [3, ["b"]]);
  assert.deepEqual(signalsOf(list, {})!.groups, [{ name: "loss", count: 1 }, { name: "gradient", count: 2 }]);
});

test("a report cuts out the range asked for, with a neighbour at either end", () => {
  const cut = seriesOf(all, { keys: "a", from: 2, to: 2 })!.series[0]!;
  assert.deepEqual([cut.steps, cut.mean, cut.marks], [[1, 2, 3], [3, 2, 1], [[1, "nan"]]]);
});

test("a report knows other axes than the step", () => {
  const cut = seriesOf(all, { keys: "a", x: "wall" })!;
  assert.deepEqual([cut.x, cut.series[0]!.x], ["wall", [0, 0.5, 1, 1.5]]);
});

test("a series that is not in the report says so", () => {
  assert.ok(seriesOf(all, { keys: "zz" })!.series[0]!.missing);
});

test("stored answers are found by the parameters they were stored with", async () => {
  const stored = { "api/v1/runs/r/layers?stat=gradient.norm": { n: 1 }, "api/v1/runs/r/layers?stat=update.ratio": { n: 2 }, "api/v1/runs/r": { n: 3 }, "api/v1/compare?runs=a%2Cb": { n: 4 } };
  assert.deepEqual(await answerInlined(stored, "runs/r/layers", { stat: "update.ratio", columns: 300 }), { n: 2 });
  assert.deepEqual(await answerInlined(stored, "runs/r/layers", {}), { n: 1 });
  assert.deepEqual(await answerInlined(stored, "runs/r", {}), { n: 3 });
  assert.deepEqual(await answerInlined(stored, "compare", { runs: "a,b" }), { n: 4 });
  await assert.rejects(answerInlined(stored, "runs/other", {}), /does not contain/);
});
