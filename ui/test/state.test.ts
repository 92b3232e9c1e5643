import assert from "node:assert/strict";
import { test } from "node:test";
import { format, hrefTo, parse } from "../src/state";

test("an address is read and written back unchanged", () => {
  for (const hash of ["#/", "#/run/20261116-a/charts?x=wall&from=1&to=2", "#/compare?runs=a%2Cb", "#/run/a%2Fb/graph?layer=%3Cb%3E"])
    assert.equal(format(parse(hash)), hash);
});

test("a tab that does not exist is the verdict, a page that does not exist is the list", () => {
  assert.deepEqual(parse("#/run/abc/nonsense"), { at: "run", run: "abc", tab: "verdict", params: {} });
  assert.deepEqual(parse("#/nowhere"), { at: "runs", params: {} });
  assert.equal(parse("#/run/%E0%A4%A").at, "run");
});

test("a hostile layer name stays inside its parameter", () => {
  const href = hrefTo("r", "layers", { layer: "<script>&step=1#" });
  assert.equal(parse(href).params["layer"], "<script>&step=1#");
  assert.equal(parse(href).params["step"], undefined);
});

test("empty parameters are left out", () => {
  assert.equal(hrefTo("r", "charts", { keys: "", step: "3" }), "#/run/r/charts?step=3");
});
