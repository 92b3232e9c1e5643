import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, dedented, digits, fromJson, seconds, shortPath, withUnit } from "../src/format";

test("three digits say enough, and thousands are grouped", () => {
  assert.equal(digits(0.123456), "0.123");
  assert.equal(digits(1234.5), "1,235");
  assert.equal(digits(128), "128");
  assert.equal(digits(-2.5), "\u22122.5");
  assert.equal(digits(1.5e-7), "1.5e\u22127");
  assert.equal(digits(2e9), "2e9");
  assert.equal(digits(0), "0");
});

test("what is not a number is said by name, and nothing is a dash", () => {
  assert.equal(digits(NaN), "NaN");
  assert.equal(digits(Infinity), "\u221e");
  assert.equal(digits(null), "\u2013");
});

test("every unit has its own words", () => {
  assert.equal(withUnit(0.0123, "s"), "12.3\u00a0ms");
  assert.equal(withUnit(0.5, "share"), "50%");
  assert.equal(withUnit(1536, "B"), "1.5\u00a0KiB");
  assert.equal(withUnit(3, "bits"), "3\u00a0bits");
  assert.equal(withUnit(0.1, ""), "0.1");
  assert.equal(seconds(5e-6), "5\u00a0\u00b5s");
  assert.equal(seconds(3600 * 3), "3\u00a0h");
  assert.equal(bytes(5), "5\u00a0B");
});

test("moments are relative until they are long ago", () => {
  assert.equal(ago(1000, 1030), "just now");
  assert.equal(ago(1000, 1000 + 7200), "2\u00a0h ago");
  assert.equal(ago(0, 1e8), "1970-01-01");
});

test("NaN and infinities travel through JSON as words", () => {
  assert.ok(Number.isNaN(fromJson("nan")));
  assert.equal(fromJson("-inf"), -Infinity);
  assert.equal(fromJson(2), 2);
  assert.equal(fromJson(null), null);
});

test("code loses the indentation that all lines share, and paths the folder of the run", () => {
  assert.deepEqual(dedented(["    a", "", "      b"]), ["a", "", "  b"]);
  assert.equal(shortPath("/home/me/train.py", "/home/me"), "train.py");
  assert.equal(shortPath("/home/mercury/train.py", "/home/me"), "/home/mercury/train.py");
  assert.equal(shortPath("/opt/env/lib/python3.11/site-packages/numpy/core.py", "/home/me"), "numpy/core.py");
});
