"""What the browser view costs on a large run, compared with TensorBoard: `python -m benchmarks.ui`.

A run of ten million points is written as Clew's log and as TensorBoard's event files. Each server is
started on it with nothing cached; a real Chromium requests the first curve, and then ranges of the loss
are requested over HTTP. Memory is the server's peak, alone and with all processes that it started.
TensorBoard is measured with its defaults (1,000 points per series, chosen at random) and with all points
kept. Needs chromium; TensorBoard is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.ui.browsing import INKED, THERE, browser_page, first_curve, zooms
from benchmarks.ui.event_files import write_events
from benchmarks.ui.making import SPIKE, tables, write_clew
from benchmarks.ui.watching import Watched, line_in, watched

SOURCE = str(Path(__file__).parents[2] / "src")
ALL = 100_000_000  # points a series; its 0 means none
PATIENCE = 600  # seconds
Row = dict[str, float | str]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ui", description=__doc__)
    parser.add_argument("--points", type=float, default=1e7)
    parser.add_argument("--zooms", type=int, default=100, help="ranges to request over HTTP")
    parser.add_argument("--no-tensorboard", action="store_true")
    parser.add_argument("--no-browser", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="clew-benchmark-ui-") as folder:
        base = Path(folder)
        made = tables(int(options.points))
        points, steps = sum(table.points for table in made), len(made[0].steps)
        print(f"{points:,} points in {sum(t.values.shape[1] for t in made)} series, {steps:,} steps")
        write_clew(base / "runs", made)
        rows = [told(clew(base, steps, options))]
        if not options.no_tensorboard and find_spec("tensorboard"):
            write_events(base / "events", made)
            rows += [told(tensorboard(base, steps, options, kept)) for kept in (1000, ALL)]
        elif not options.no_tensorboard:
            print("tensorboard is not installed here: pip install tensorboard")
    show(rows)
    return 0


def clew(base: Path, steps: int, options: argparse.Namespace) -> Row:
    """Clew, from an empty cache."""
    cache = base / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    log = base / "clew.log"
    command = [sys.executable, "-m", "clew", "ui", str(base / "runs"), "--port", "0", "--no-open"]
    began = time.perf_counter()
    with watched(command, log, {"CLEW_CACHE": str(cache), "PYTHONPATH": SOURCE}) as server:
        link = line_in(log, "?token=").strip()
        root, _, token = link.partition("?token=")
        row: Row = {"": "clew ui", "server up": time.perf_counter() - began}
        run = asked(root, token, "runs")["runs"][0]["id"]
        if not options.no_browser:
            row |= in_browser(link, f"{root}#/run/{run}/charts")
        key = asked(root, token, f"runs/{run}/signals?limit=1")["signals"][0]["key"]
        query = f"runs/{run}/series?keys={key}&points=1200"
        row["spike kept"] = _yes(max(asked(root, token, query)["series"][0]["max"]) == SPIKE)
        row |= over_http(
            lambda lo, hi: asked(root, token, f"{query}&from={lo}&to={hi}"), steps, options.zooms
        )
        row["verdict"] = verdict_after(root, token, run, began)
        return row | memory(server)


def in_browser(link: str, address: str) -> Row:
    with browser_page() as page:
        page.goto(link, wait_until="commit")  # the cookie
        page.goto("about:blank")
        row: Row = dict(first_curve(page, address, INKED))
        return row | zooms(page, ".u-over", 8)


def verdict_after(root: str, token: str, run: str, began: float) -> float:
    while asked(root, token, f"runs/{run}")["verdict_state"] == "pending":
        time.sleep(0.1)
    return time.perf_counter() - began


def tensorboard(base: Path, steps: int, options: argparse.Namespace, kept: int) -> Row:
    """TensorBoard, keeping this many points of each series, chosen at random."""
    log = base / f"tensorboard-{kept}.log"
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(base / "events"), "--port", "0",
               "--bind_all", "--samples_per_plugin", f"scalars={kept}"]  # fmt: skip
    began = time.perf_counter()
    with watched(command, log, {}) as server:
        port = line_in(log, "http://").rpartition(":")[2].split("/")[0]
        root = f"http://127.0.0.1:{port}/"
        row: Row = {"": f"tensorboard, {'all points' if kept == ALL else f'{kept} points'}"}
        row["server up"] = time.perf_counter() - began
        last = loaded(root, steps)
        row["all read after"] = time.perf_counter() - began
        if not options.no_browser:
            with browser_page() as page:
                row |= first_curve(page, f"{root}#timeseries", THERE)
        row["spike kept"] = _yes(any(point[2] == SPIKE for point in last))
        row |= over_http(lambda lo, hi: scalars(root), steps, 5 if kept == ALL else options.zooms)
        return row | memory(server)


def loaded(root: str, steps: int) -> list[list[float]]:
    """Wait until the last step has arrived: TensorBoard answers before it has read everything."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            points = scalars(root)
        except OSError:
            points = []
        if points and points[-1][1] >= steps - 1:
            return points
        time.sleep(0.2)
    raise TimeoutError("TensorBoard has not read everything")


def scalars(root: str) -> list[list[float]]:
    """All points of the loss that TensorBoard returns; it has no way to request a range."""
    with urllib.request.urlopen(f"{root}data/plugin/scalars/scalars?run=.&tag=loss", timeout=600) as answer:
        points: list[list[float]] = json.load(answer)
    return points


def asked(root: str, token: str, path: str) -> Any:
    request = urllib.request.Request(f"{root}api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)


def over_http(ask: Callable[[int, int], Any], steps: int, times: int) -> Row:
    """Ranges of all sizes, at random places."""
    dice = random.Random(0)
    waits = []
    for _ in range(times):
        size = int(steps ** dice.uniform(0.3, 1.0))
        lo = dice.randrange(max(steps - size, 1))
        began = time.perf_counter()
        ask(lo, lo + size)
        waits.append(time.perf_counter() - began)
    return {"stretch median": statistics.median(waits), "stretch worst": max(waits)}


def told(row: Row) -> Row:
    """Print each as it finishes: ten million points take a while."""
    print(f"  {row['']} done", flush=True)
    return row


def memory(server: Watched) -> Row:
    return {"memory, server": server.peak_alone / 1e6, "memory, all": server.peak_together / 1e6}


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def show(rows: list[Row]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row if name))
    wide = max(len(str(row[""])) for row in rows) + 2
    print(f"{'':18}" + "".join(f"{row['']!s:>{wide}}" for row in rows))
    for name in names:
        print(f"{name:18}" + "".join(f"{_cell(name, row.get(name)):>{wide}}" for row in rows))


def _cell(name: str, value: float | str | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if name.startswith("memory"):
        return f"{value:.0f} MB"
    return f"{value * 1000:.0f} ms" if value < 10 else f"{value:.1f} s"


if __name__ == "__main__":
    sys.exit(main())
