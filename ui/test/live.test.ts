import assert from "node:assert/strict";
import { test } from "node:test";
import { rowsAreKnown } from "../src/live";

const rows = [{ id: "a", version: 3, verdict: "ready" as const }];

test("an event that tells what is on screen is no news", () => {
  assert.ok(rowsAreKnown({ runs: [{ id: "a", version: 3, verdict: "ready" }], gone: [] }, rows));
  assert.ok(rowsAreKnown({ runs: [], gone: ["never-seen"] }, rows));
});

test("a new version, a verdict, a new run, one that is gone, and an unread list are news", () => {
  assert.ok(!rowsAreKnown({ runs: [{ id: "a", version: 4, verdict: "ready" }] }, rows));
  assert.ok(!rowsAreKnown({ runs: [{ id: "a", version: 3, verdict: "pending" }] }, rows));
  assert.ok(!rowsAreKnown({ runs: [{ id: "b", version: 1, verdict: "ready" }] }, rows));
  assert.ok(!rowsAreKnown({ runs: [], gone: ["a"] }, rows));
  assert.ok(!rowsAreKnown({ runs: [] }, undefined));
  assert.ok(!rowsAreKnown(null, rows));
});
