"""What a person waits for, in a real Chromium: the first curve, and the curve after a zoom."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]  # fmt: skip
PATIENCE = 120_000  # milliseconds
INKED = """() => [...document.querySelectorAll(".uplot canvas")].some((canvas) => {
  if (!canvas.width) return false;
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = 0; i < data.length; i += 4) {
    const colours = [data[i], data[i + 1], data[i + 2]];
    if (data[i + 3] > 200 && Math.max(...colours) - Math.min(...colours) > 60) return true;
  }
  return false;
})"""  # a coloured pixel of ours: axes and grid are grey
# TensorBoard draws off the page, where nobody can look: its points have come and its canvas is there.
THERE = """() => document.querySelector("line-chart .series-view canvas") !== null &&
  performance.getEntriesByType("resource").some((r) => r.name.includes("timeSeries") && r.responseEnd > 0)"""


@contextmanager
def browser_page() -> Iterator[Any]:
    """A fresh page at 1280 × 800."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    if found is None:
        raise FileNotFoundError("no chromium here: scripts/chromium installs it")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        yield page
        browser.close()


def first_curve(page: Any, address: str, drawn: str) -> dict[str, float]:
    """Seconds from requesting a page to its first paint, and until `drawn` sees a curve on it."""
    began = time.perf_counter()
    page.goto(address, wait_until="commit", timeout=PATIENCE)
    page.wait_for_function(drawn, timeout=PATIENCE, polling=10)
    curve = time.perf_counter() - began
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN")
    return {"first paint": paint / 1000, "first curve": curve}


# In the page itself, so that the way to the browser and back does not count: from the mouse let go to
# the second frame after the answer has come, which has it drawn.
_TIMING = """() => {
    window.clewZoom = null;
    let up = null;
    addEventListener("mouseup", () => { up = performance.now(); }, true);
    new PerformanceObserver((list) => {
        const answer = list.getEntries().find((e) => e.name.includes("/series?") && e.startTime >= up);
        if (up === null || !answer) return;
        const began = up;
        up = null;
        const drawn = () => { window.clewZoom = performance.now() - began; };
        requestAnimationFrame(() => requestAnimationFrame(drawn));
    }).observe({ type: "resource" });
}"""


def zooms(page: Any, over: str, times: int) -> dict[str, float]:
    """Seconds from releasing the mouse until the new points are drawn: requested, answered, painted."""
    waits = []
    page.evaluate(_TIMING)
    box = page.locator(over).first.bounding_box()
    for n in range(times):
        left = box["x"] + box["width"] * (0.1 + 0.5 * n / times)
        level = box["y"] + box["height"] / 2
        page.mouse.move(left, level)
        page.mouse.down()
        page.mouse.move(left + box["width"] / 3, level, steps=3)
        page.evaluate("() => { window.clewZoom = null; }")
        page.mouse.up()
        page.wait_for_function("() => window.clewZoom !== null", timeout=PATIENCE)
        waits.append(page.evaluate("() => window.clewZoom") / 1000)
        page.wait_for_timeout(300)
        page.mouse.dblclick(left, level)  # out again
        page.wait_for_timeout(700)
    return {"zoom median": statistics.median(waits), "zoom worst": max(waits)}
