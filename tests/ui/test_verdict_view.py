"""The first page of a run: what is wrong, the evidence drawn, the fix as a diff, where to look further."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from viewing import TABS

HOSTILE = "<script>alert(1)</script>"
UNUSED = "<img src=x onerror=alert(2)>"

INKED = """canvas => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let inked = 0;
  for (let i = 3; i < pixels.length; i += 4) inked += pixels[i] > 0;
  return inked;
}"""


@pytest.fixture
def verdict(viewer, runs) -> Page:
    page = viewer.open(f"#/run/{runs.faulty}")
    expect(page.locator(".finding.lead")).to_be_visible()
    return page


def test_the_root_cause_comes_first_with_its_severity_and_place(verdict):
    lead = verdict.locator(".finding").first
    expect(lead).to_have_attribute("data-check", "missing-zero-grad")
    expect(lead.locator(".finding-head")).to_contain_text("error")
    expect(lead).to_contain_text(re.compile(r"faulty\.py:\d+"))
    expect(verdict.locator("h1")).to_have_text("1 problem and 1 possible problem")


def test_the_evidence_is_drawn_from_the_very_series(verdict):
    canvas = verdict.locator(".finding.lead .evidence-chart canvas")
    expect(canvas.first).to_be_visible()
    expect(canvas).to_have_count(2)
    assert canvas.nth(1).evaluate(INKED) > 500
    expect(verdict.locator(".finding.lead .evidence-chart").nth(1)).to_contain_text("grad.norm")


def test_the_fix_is_a_diff_at_the_users_line(verdict):
    added = verdict.locator(".finding.lead .diff .code-line.added")
    expect(added).to_contain_text("optimizer.zero_grad()")
    expect(verdict.locator(".finding.lead .diff")).to_contain_text("loss.backward()")


def test_what_follows_what_was_ruled_out_and_what_was_not_judged_are_there(verdict):
    expect(verdict.get_by_text("Consequences").first).to_be_visible()
    effects = verdict.locator(".effects .finding-line")
    assert effects.count() >= 1
    effects.first.locator("summary").first.click()
    expect(effects.first.locator(".finding h2")).to_be_visible()
    verdict.locator(".remainder").get_by_text("Ruled out").click()
    expect(verdict.locator(".remainder")).to_contain_text("poor-initialisation")
    verdict.locator(".remainder").get_by_text("Skipped").click()
    expect(verdict.locator(".remainder dl")).to_contain_text("train-val-leakage")


def test_a_finding_leads_to_its_charts_at_its_step(verdict):
    verdict.locator(".finding.lead .places").get_by_role("link", name="charts").click()
    expect(verdict).to_have_url(re.compile(r"/charts\?keys=[0-9a-f]{12}%2C[0-9a-f]{12}&step=1"))
    expect(verdict.get_by_role("heading", name="From the finding")).to_be_visible()
    expect(verdict.get_by_label("grad.stale").first.locator("canvas")).to_be_visible()


def test_a_layer_named_like_a_script_is_shown_as_text_everywhere(viewer, runs):
    dialogs: list[str] = []
    viewer.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page = viewer.open(f"#/run/{runs.faulty}/verdict")
    expect(page.locator("[data-check='unused-parameter']").first).to_contain_text(UNUSED)
    viewer.move(f"#/run/{runs.faulty}/charts?search=script+weight+norm")
    expect(page.get_by_text(f"{HOSTILE}.weight").first).to_be_visible()
    for tab in TABS:
        viewer.move(f"#/run/{runs.faulty}/{tab}")
        expect(page.locator("main > *").first).to_be_visible()
    assert dialogs == []
    assert page.locator("#app :is(script, img)").count() == 0


def test_a_healthy_run_says_so_and_names_what_looked(viewer, runs):
    page = viewer.open(f"#/run/{runs.healthy}")
    expect(page.locator("h1")).to_have_text("No problems found")
    expect(page.locator(".remainder")).to_contain_text("missing-zero-grad")
    expect(page.locator(".chart canvas")).to_be_visible()


def test_notes_are_kept_and_shown_as_nodes(viewer, runs):
    page = viewer.open(f"#/run/{runs.other}")
    page.get_by_role("button", name="Write").click()
    page.get_by_label("Notes in Markdown").fill(
        "# Tried\n\n**lr** 0.01 <img src=x onerror=alert(1)> [x](javascript:alert(1))"
    )
    page.get_by_role("button", name="Save").click()
    notes = page.locator(".notes .markdown")
    expect(notes.locator("strong")).to_have_text("lr")
    expect(notes).to_contain_text("<img src=x onerror=alert(1)>")
    assert notes.locator("img, a").count() == 0
    assert (runs.folder / runs.other / "notes.md").read_text().startswith("# Tried")
    page.reload()
    expect(notes.locator("strong")).to_have_text("lr")
