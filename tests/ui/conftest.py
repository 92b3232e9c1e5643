"""Real runs, recorded once; a real server on them; a real browser, whose complaints fail the test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from beside import add_files
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from viewing import CHROMIUM, FLAGS, record, served

MOST_MS = 30_000  # until something must be there; a busy machine must not fail a test
expect.set_options(timeout=MOST_MS)


@dataclass(frozen=True)
class Recorded:
    """The runs that all views are tested on."""

    folder: Path
    faulty: str  # forgets zero_grad; one layer is named like a script element
    healthy: str
    other: str  # as `healthy`, with another learning rate


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("runs")
    return Recorded(
        folder,
        # Every step: what is found must not depend on how busy the machine is.
        faulty=record(folder, "faulty.py", options=["--every-step"]).name,
        healthy=record(folder, "healthy.py", "--lr", "0.003").name,
        other=record(folder, "healthy.py", "--lr", "0.01", "--width", "16").name,
    )


@pytest.fixture(scope="session")
def address(runs: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server on the recorded runs, with its token."""
    with served(runs.folder, tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None, "no Chromium: scripts/chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Viewer:
    """A page of its own, let in by the token; `open` goes to a place of the address bar."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints: list[str] = []
        page.set_default_timeout(MOST_MS)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _console(self, message: ConsoleMessage) -> None:
        reading = "willReadFrequently" in message.text  # of the test itself, which looks at pixels
        if message.type in ("error", "warning") and not reading:
            self.complaints.append(message.text)

    def open(self, place: str = "#/") -> Page:
        self.page.goto(f"{self.address}{place}")
        expect(self.page.locator("main > *").first).to_be_visible()
        expect(self.page.locator("main > .state")).to_have_count(0)  # nothing is being read any more
        return self.page

    def move(self, place: str) -> Page:
        """Within the page, as a link does."""
        self.page.evaluate("place => { window.location.hash = place }", place)
        return self.page


@pytest.fixture
def viewer(browser: Browser, address: str) -> Iterator[Viewer]:
    """1280 × 800, light; what the browser complains about fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    viewer = Viewer(context.new_page(), address)
    yield viewer
    context.close()
    assert viewer.complaints == []


@dataclass(frozen=True)
class Networks:
    """Runs of models worth looking into."""

    folder: Path
    deep: str  # sigmoids without normalisation, with its graph: the gradient vanishes
    pictures: str  # convolutions, without a graph; with files of a profile and of samples
    blocks: str  # a transformer of twelve equal blocks, with its graph


@pytest.fixture(scope="session")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Networks:
    folder = tmp_path_factory.mktemp("networks")
    found = Networks(
        folder,
        deep=record(folder, "vanishing.py", options=["--graph", "--every-step"]).name,
        pictures=record(folder, "convolutions.py").name,
        blocks=record(folder, "blocks.py", options=["--graph"]).name,
    )
    add_files(folder / found.pictures)
    return found


@pytest.fixture(scope="session")
def networks_address(networks: Networks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(networks.folder, tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture
def looker(browser: Browser, networks_address: str) -> Iterator[Viewer]:
    """As `viewer`, on the networks."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    viewer = Viewer(context.new_page(), networks_address)
    yield viewer
    context.close()
    assert viewer.complaints == []
