"""Runs side by side: curves, settings, findings, and brushes that hold everywhere."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect


@pytest.fixture
def compare(viewer, runs) -> Page:
    page = viewer.open(f"#/compare?runs={runs.healthy},{runs.other},{runs.faulty}")
    expect(page.locator("#settings tbody tr")).to_have_count(3)
    expect(page.locator(".u-over")).to_have_count(4)  # all are drawn: nothing moves from now on
    return page


def test_curves_of_all_runs_lie_over_each_other(compare, runs):
    loss = compare.get_by_label("loss", exact=True)
    expect(loss.locator(".entry")).to_have_count(3)
    expect(loss.locator(".u-over")).to_be_visible()
    names = loss.locator(".entry").all_inner_texts()
    assert runs.healthy[-4:] in names[0]
    assert runs.other[-4:] in names[1]


def test_settings_that_differ_are_marked_and_those_alike_are_shown_on_request(compare):
    rows = compare.locator("#configuration tbody tr")
    rate = rows.filter(has=compare.get_by_role("cell", name="lr", exact=True))
    expect(rate.locator("td.differs").first).to_have_text("0.003")
    expect(rate.locator("td.differs").nth(1)).to_have_text("0.01")
    before = rows.count()
    compare.get_by_label(re.compile("that are equal")).check()
    expect(rows).not_to_have_count(before)


def test_findings_stand_side_by_side_and_lead_to_the_verdict(compare, runs):
    row = compare.locator("#findings tbody tr").first
    expect(row).to_contain_text("missing-zero-grad")
    expect(row.locator("td").nth(1)).to_have_text("not found")
    row.get_by_role("link").click()
    expect(compare).to_have_url(re.compile(rf"{runs.faulty}/verdict\?finding=0"))


def test_results_have_their_noise_and_the_spread_between_runs(compare):
    row = compare.locator("#spread tbody tr").filter(has=compare.get_by_role("cell", name="loss", exact=True))
    cells = row.locator("td.num").all_inner_texts()
    assert len(cells) == 4
    assert all("±" in cell for cell in cells)
    expect(row.locator("circle")).to_have_count(3)


def axis_at(page: Page, name: str) -> tuple[float, float]:
    """The top of an axis of the parallel coordinates, and its foot 230 px below."""
    canvas = page.locator("#parallel canvas")
    canvas.scroll_into_view_if_needed()
    names = page.locator("#settings th.sorts").all_inner_texts()
    place = next(i for i, text in enumerate(names) if text.split()[0] == name)
    box = canvas.bounding_box()
    assert box is not None
    each = (box["width"] - 140) / (len(names) - 1)
    return box["x"] + 70 + place * each, box["y"] + 44


def test_a_brush_along_an_axis_keeps_its_runs_in_table_curves_and_address(compare, runs):
    x, top = axis_at(compare, "accuracy")
    compare.mouse.move(x, top - 2)
    compare.mouse.down()
    compare.mouse.move(x, top + 60, steps=5)
    compare.mouse.up()
    expect(compare.get_by_text("2 of 3 runs in the selected ranges")).to_be_visible()
    dimmed = compare.locator('#settings tr[data-dim="1"]')
    expect(dimmed).to_have_count(1)
    expect(dimmed).to_contain_text("faulty")
    expect(compare).to_have_url(re.compile("brush=accuracy"))
    loss = compare.get_by_label("loss", exact=True)
    expect(loss.locator(".entry").nth(2).locator(".num")).to_have_count(0)
    compare.get_by_role("button", name="All runs").click()
    expect(dimmed).to_have_count(0)


def test_a_run_picked_in_the_table_is_the_one_drawn(compare, runs):
    compare.locator("#settings tbody tr").nth(1).locator("td").nth(1).click()
    expect(compare.locator('#settings tr[data-chosen="1"]')).to_contain_text(runs.other[-4:])
    loss = compare.get_by_label("loss", exact=True)
    expect(loss.locator(".entry").nth(0).locator(".num")).to_have_count(0)
    expect(loss.locator(".entry").nth(1).locator(".num")).not_to_have_count(0)


def test_the_table_is_sorted_by_a_column(compare):
    header = compare.locator("#settings th.sorts", has_text="accuracy")
    header.click()
    expect(compare.locator("#settings tbody tr").first).to_contain_text("faulty")
    header.click()
    expect(compare.locator("#settings tbody tr").last).to_contain_text("faulty")


def test_one_run_alone_is_nothing_to_compare(viewer, runs):
    page = viewer.page
    page.goto(f"{viewer.address}#/compare?runs={runs.healthy}")
    expect(page.get_by_text("Choose two or more runs to compare")).to_be_visible()
