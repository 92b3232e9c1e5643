import assert from "node:assert/strict";
import { test } from "node:test";
import { chaptersOf } from "../src/draw/chapters";
import type { SignalRow } from "../src/types";

const row = (key: string, title: string | null, together = true, group = "g"): SignalRow =>
  ({ key, group, chart: title === null ? null : { title, together, large: false, robust: false, line: key } }) as unknown as SignalRow;
const keys = (rows: SignalRow[]) => chaptersOf(rows).map((chapter) => chapter.map((one) => one.key));

test("series with the same chart are drawn together, in the order of the list", () => {
  assert.deepEqual(keys([row("loss", "Loss"), row("eval", "Loss"), row("other", null), row("lr", "Learning rate")]), [["loss", "eval"], ["lr"]]);
});

test("series that stand alone get a chart each, even with the same title", () => {
  assert.deepEqual(keys([row("a", "Gradient norm", false), row("b", "Gradient norm", false)]), [["a"], ["b"]]);
});

test("a chart has at most eight lines, and a group at most twelve charts of its own", () => {
  const many = Array.from({ length: 20 }, (_, i) => i);
  assert.equal(keys(many.map((i) => row(`t${i}`, "Memory")))[0]!.length, 8);
  assert.equal(keys(many.map((i) => row(`m${i}`, `metric ${i}`, false))).length, 12);
});
