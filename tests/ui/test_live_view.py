"""A page that is open while a real training runs follows it without being touched."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from viewing import PATIENCE, clew, served


@pytest.fixture
def training(tmp_path: Path):
    """A training that goes on until `stop` appears."""
    stop = tmp_path / "stop"
    process = clew("run", "--dir", tmp_path / "runs", "endless.py", str(stop))
    try:
        yield process, stop
    finally:
        stop.touch()
        process.communicate(timeout=PATIENCE)


def steps_in(text: str | None) -> int:
    found = re.search(r"after ([\d,]+) steps", text or "")
    return int(found[1].replace(",", "")) if found else -1


def digits_of(selector: str) -> str:
    """JavaScript for the number that an element shows."""
    return f"Number(document.querySelector('{selector}').innerText.replace(/\\D/g, '') || 0)"


def grows(page: Page, script: str) -> None:
    """What the script reads from the page becomes larger by itself."""
    before = page.evaluate(script)
    page.wait_for_function(f"before => ({script}) > before", arg=before)


def test_the_open_page_follows_the_training_to_its_end(browser: Browser, training, tmp_path: Path):
    process, stop = training
    (tmp_path / "runs").mkdir(exist_ok=True)
    with served(tmp_path / "runs", tmp_path / "cache") as address:
        page = browser.new_page()
        page.goto(address)
        row = page.locator("tbody tr")
        expect(row.locator(".run-state")).to_have_text("running")
        grows(page, digits_of("tbody td.right"))

        row.get_by_role("link").first.click()
        page.keyboard.press("2")
        expect(page.get_by_label("Loss", exact=True).locator("canvas")).to_be_visible()
        grows(page, digits_of("[aria-label=Loss] .readout .faint"))

        page.keyboard.press("1")
        stop.touch()
        process.wait(timeout=PATIENCE)
        expect(page.locator("header .run-state")).to_have_text("finished")
        expect(page.locator(".headline")).to_contain_text("Finished after")
        assert steps_in(page.locator(".headline").inner_text()) > 5
        page.close()


def test_a_page_says_when_its_run_is_deleted_and_when_the_server_is_gone(
    browser: Browser, runs, tmp_path: Path
):
    folder = tmp_path / "runs"
    shutil.copytree(runs.folder / runs.healthy, folder / runs.healthy)
    page = browser.new_page()
    with served(folder, tmp_path / "cache") as address:
        page.goto(f"{address}#/run/{runs.healthy}/verdict")
        expect(page.locator("h1")).to_have_text("No problems found")
        shutil.rmtree(folder / runs.healthy)
        expect(page.locator(".offline")).to_contain_text(runs.healthy)
        expect(page.locator("h1")).to_have_text("No problems found")
        page.get_by_title("All runs").click()
        expect(page.get_by_text("No runs yet")).to_be_visible()
    expect(page.locator(".offline").first).to_contain_text("does not respond")
    page.close()


def test_a_finished_run_is_read_once_and_not_again_for_nothing(viewer, runs):
    asked: list[str] = []
    viewer.page.on("request", lambda request: asked.append(request.url))
    page = viewer.open(f"#/run/{runs.healthy}/verdict")
    expect(page.locator("h1")).to_have_text("No problems found")  # by now it is judged
    asked.clear()
    page.reload()
    expect(page.locator("h1")).to_have_text("No problems found")
    page.wait_for_timeout(3000)  # longer than it takes to act on the first event
    assert sum(url.endswith(f"/runs/{runs.healthy}") for url in asked) == 1
