import assert from "node:assert/strict";
import { test } from "node:test";
import { blocks, inline, safeAddress } from "../src/draw/markdown";

test("the usual forms are understood", () => {
  assert.deepEqual(blocks("# Title\n\ntext `code` **bold**"), [
    { is: "heading", level: 1, inner: ["Title"] },
    { is: "paragraph", inner: ["text ", { is: "code", text: "code" }, " ", { is: "strong", inner: ["bold"] }] },
  ]);
  assert.deepEqual(blocks("- a\n- b"), [
    { is: "list", ordered: false, items: [[{ is: "paragraph", inner: ["a"] }], [{ is: "paragraph", inner: ["b"] }]] },
  ]);
  assert.deepEqual(blocks("```py\nx = '<b>'\n```"), [{ is: "code", language: "py", text: "x = '<b>'" }]);
  assert.equal(blocks("| a | b |\n|---|---|\n| 1 | 2 |")[0]!.is, "table");
});

test("HTML stays text", () => {
  assert.deepEqual(blocks("<script>alert(1)</script>"), [{ is: "paragraph", inner: ["<script>alert(1)</script>"] }]);
});

test("a link that could run is no link", () => {
  for (const target of ["javascript:alert(1)", "data:text/html,x", "JAVASCRIPT:x", "vbscript:x", "//evil"]) assert.equal(safeAddress(target), null);
  assert.deepEqual(inline("[x](javascript:alert)"), ["[x](javascript:alert)"]);
  assert.deepEqual(inline("[x](https://a.b/c)"), [{ is: "link", href: "https://a.b/c", inner: ["x"] }]);
});

test("deep nesting and long lines end", () => {
  assert.ok(blocks(`${">".repeat(5000)} x`).length === 1);
  assert.ok(inline("*a".repeat(20000)).length >= 1);
  assert.ok(blocks("- ".repeat(3000) + "x").length >= 1);
});

test("names with underscores are not emphasis", () => {
  assert.deepEqual(inline("grad_norm_max"), ["grad_norm_max"]);
});
