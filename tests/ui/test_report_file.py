"""The report: one file, opened from disk with the network off, in which nothing complains."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from viewing import PATIENCE, TABS, clew

NOTES = "# What I saw\n\nThe gradient **grows**. <script>alert(1)</script>\n"


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory: pytest.TempPathFactory):
    """Makes the report of some runs; the file."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "notes.md").write_text(NOTES)

    def make(name: str, *chosen: str) -> Path:
        file = folder / name
        extra = ["--notes", str(folder / "notes.md"), "--title", "Why it diverges"]
        process = clew(
            "report", *chosen, "--dir", runs.folder, "-o", file, *extra, XDG_CACHE_HOME=str(folder)
        )
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        return file

    return make


@pytest.fixture
def offline(browser: Browser):
    """A page without a network; whatever it complains about or asks for fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page = context.new_page()
    page.set_default_timeout(30_000)
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else complaints.append(r.url))
    yield page
    context.close()
    assert complaints == []


def test_a_report_of_one_run_opens_at_its_verdict_with_the_authors_notes(offline, report, runs):
    offline.goto(report("one.html", runs.faulty).as_uri())
    expect(offline.locator(".finding.lead")).to_have_attribute("data-check", "missing-zero-grad")
    expect(offline.locator(".finding.lead .evidence-chart canvas").first).to_be_visible()
    note = offline.get_by_label("About this report")
    expect(note).to_contain_text("Why it diverges")
    expect(note.locator("strong")).to_have_text("grows")
    expect(note).to_contain_text("<script>alert(1)</script>")
    expect(offline.get_by_role("button", name="Write")).to_have_count(0)


def test_every_view_of_the_report_works_without_a_server(offline, report, runs):
    offline.goto(report("one.html", runs.faulty).as_uri())
    for tab in TABS[1:]:
        offline.get_by_role("navigation").get_by_role("link", name=tab.capitalize()).click()
        expect(offline.locator("main > *").first).to_be_visible()
        expect(offline.get_by_role("alert")).to_have_count(0)


def test_charts_of_the_report_zoom_search_and_change_axis(offline, report, runs):
    offline.goto(f"{report('one.html', runs.faulty).as_uri()}#/run/{runs.faulty}/charts?from=100&to=150")
    readout = offline.get_by_label("Loss", exact=True).locator(".readout")
    expect(readout).to_contain_text("step 15")
    offline.get_by_role("radio", name="Epoch").click()
    expect(readout).to_contain_text("epoch")
    offline.keyboard.press("/")
    offline.keyboard.type("grad.norm")
    expect(offline.get_by_label("All signals").locator("h3 b").first).to_have_text("grad.norm")


def test_a_report_of_several_runs_lists_and_compares_them(offline, report, runs):
    offline.goto(report("two.html", runs.healthy, runs.other).as_uri())
    expect(offline.locator("tbody tr")).to_have_count(2)
    for run in (runs.healthy, runs.other):
        offline.get_by_label(f"Select {run}").check()
    offline.get_by_role("button", name=re.compile("^Compare")).click()
    expect(offline.locator("main")).to_contain_text("optimizer.lr")
    expect(offline.get_by_role("alert")).to_have_count(0)
