import assert from "node:assert/strict";
import { test } from "node:test";
import { type Compared, firstSignals, namesOf, noisy, placesOf, sortedRuns, tableOf } from "../src/draw/compared";

const cell = (last: number, mean: number, std: number, tail = 10) => ({ last, min: last, max: last, mean_tail: mean, std_tail: std, tail, step: 9 });
const data = {
  runs: [{ id: "1-train-aa" }, { id: "2-train-bb" }],
  config: [
    { name: "lr", values: [0.1, 0.01], same: false },
    { name: "opt", values: [{ name: "sgd" }, null], same: false },
    { name: "seed", values: [1, 1], same: true },
  ],
  metrics: [
    { name: "loss", values: [cell(1, 1.1, 0.1), cell(3, 3.1, 0.1)], spread: null },
    { name: "gone", values: [null, null], spread: null },
  ],
  findings: [],
  signals: [],
  versions: [],
} as unknown as Compared;

test("runs of the same name are told apart by the end of their id", () => {
  assert.deepEqual(namesOf([{ id: "x-train-aa", name: "train" }, { id: "y-train-bb", name: "train" }, { id: "z", name: "other" }]), ["train aa", "train bb", "other"]);
  assert.deepEqual(namesOf([{ id: "only", name: null }]), ["only"]);
});

test("the table has the settings that differ and the results that there are", () => {
  const { columns, results, rows } = tableOf(data);
  assert.deepEqual(columns, ["lr", "opt", "loss"]);
  assert.deepEqual([...results], ["loss"]);
  assert.deepEqual(rows, [{ lr: 0.1, opt: '{"name":"sgd"}', loss: 1 }, { lr: 0.01, opt: null, loss: 3 }]);
});

test("sorting puts runs without a value last, whichever way", () => {
  const rows = [{ a: null }, { a: 2 }, { a: 1 }];
  assert.deepEqual(sortedRuns(rows, "a"), [2, 1, 0]);
  assert.deepEqual(sortedRuns(rows, "-a"), [1, 2, 0]);
  assert.deepEqual(sortedRuns(rows, ""), [0, 1, 2]);
});

test("loss and metrics come before rates, and timings only on request", () => {
  const places: Record<string, number> = { loss: 0, "metric.acc": 1, lr: 3 }; // as the server gives them
  const signals = ["time.data", "lr", "metric.acc", "loss", "step.time"].map((signal) => ({ signal, label: signal, unit: "", place: places[signal] ?? null, keys: [] }));
  assert.deepEqual(firstSignals(signals).map((s) => s.signal), ["loss", "metric.acc", "lr"]);
});

test("results are placed between the lowest and the highest, noise included", () => {
  const [a, b] = placesOf(data.metrics[0]!);
  assert.equal(a!.from, 0);
  assert.equal(b!.to, 1);
  assert.ok(a!.at < b!.at && a!.to < b!.from);
  assert.deepEqual(placesOf(data.metrics[1]!), [null, null]);
});

test("the noise of a single point is not known", () => {
  assert.equal(noisy(cell(1, 1, 0, 1)), "1");
  assert.equal(noisy(cell(1, 1, 0.5, 5)), "1 ± 0.5");
});
