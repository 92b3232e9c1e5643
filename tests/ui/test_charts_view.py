"""Charts: zoom that asks again, axes, smoothing beside the raw line, one cursor, thousands in a list."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect


@pytest.fixture
def charts(viewer, runs) -> Page:
    page = viewer.open(f"#/run/{runs.faulty}/charts")
    expect(loss(page).locator("canvas")).to_be_visible()
    return page


def loss(page: Page):
    return page.get_by_label("Loss", exact=True)


def asked(request) -> dict[str, list[str]]:
    return parse_qs(urlsplit(request.url).query)


def drag(page: Page, start: float, end: float) -> None:
    """Across the loss, between two shares of its width."""
    box = loss(page).locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + start * box["width"], box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], box["y"] + 60, steps=6)
    page.mouse.up()


def test_loss_comes_first_then_metric_rate_gradient_time_and_memory(charts):
    titles = charts.locator(".chart-card h3 b")
    expect(titles.nth(5)).to_have_text("Memory")
    assert [titles.nth(i).inner_text() for i in range(6)] == [
        "Loss",
        "accuracy",
        "Learning rate",
        "Gradient norm",
        "Step time",
        "Memory",
    ]


def test_dragging_zooms_every_chart_and_asks_for_the_range_again(charts):
    with charts.expect_request(lambda r: "/series?" in r.url and "from" in asked(r)) as request:
        drag(charts, 0.25, 0.5)
    start, end = (float(asked(request.value)[name][0]) for name in ("from", "to"))
    assert 50 < start < 70
    assert 110 < end < 130
    assert "from=" in charts.url
    charts.keyboard.press("0")
    expect(charts).not_to_have_url(re.compile("from="))


def test_the_wheel_zooms_with_ctrl_and_moves_with_shift(viewer, runs):
    page = viewer.open(f"#/run/{runs.faulty}/charts?from=100&to=140")
    box = loss(page).locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 100)
    page.keyboard.up("Shift")
    expect(page).to_have_url(re.compile("from=104&to=144"))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    expect(page).to_have_url(re.compile(r"from=108(\.\d+)?&to=140"))


def test_the_address_restores_axis_range_smoothing_and_scale(viewer, runs):
    page = viewer.open(f"#/run/{runs.faulty}/charts?x=wall&smooth=30&log=1&from=0&to=1&step=20")
    expect(page.get_by_role("radio", name="Time")).to_have_attribute("aria-checked", "true")
    expect(page.get_by_role("button", name="Log")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Smoothing")).to_have_value("30")
    expect(page.get_by_role("button", name="step 20 ×")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("0 s – 1 s"))).to_be_visible()


def test_another_axis_asks_the_server_for_its_values(charts):
    with charts.expect_response(lambda r: "/series?" in r.url and "x=epoch" in r.url) as response:
        charts.get_by_role("radio", name="Epoch").click()
    x = response.value.json()["series"][0]["x"]
    assert 0 <= x[0] < 1
    assert 10 < x[-1] < 20
    expect(loss(charts).locator(".readout")).to_contain_text("epoch")


SHADES = """(canvas, [least, most]) => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let found = 0;
  for (let i = 0; i < data.length; i += 4)
    found += data[i + 3] >= least && data[i + 3] <= most && data[i + 2] > data[i] + 60;
  return found;
}"""


def test_smoothing_draws_a_line_over_the_raw_one_which_stays(charts):
    canvas = loss(charts).locator("canvas")
    before = canvas.evaluate(SHADES, [1, 255])
    canvas.evaluate("canvas => canvas.classList.add('old')")
    charts.get_by_label("Smoothing").fill("60")
    expect(loss(charts).locator("canvas:not(.old)")).to_be_visible()
    expect(charts).to_have_url(re.compile("smooth=60"))
    assert canvas.evaluate(SHADES, [1, 255]) > 0.9 * before  # a smooth line alone is far shorter
    assert canvas.evaluate(SHADES, [220, 255]) > 500  # the raw line alone is fainter


def test_arrows_walk_from_step_to_step_and_every_chart_reads_there(charts):
    charts.keyboard.press("ArrowLeft")
    expect(charts).to_have_url(re.compile("step=239"))
    charts.keyboard.press("ArrowLeft")
    expect(charts).to_have_url(re.compile("step=238"))
    charts.keyboard.press("Shift+ArrowLeft")
    expect(charts).to_have_url(re.compile("step=228"))
    expect(loss(charts).locator(".readout")).to_contain_text("step 228")
    expect(charts.get_by_label("Gradient norm").locator(".readout")).to_contain_text("step 228")
    charts.keyboard.press("Escape")
    expect(charts).not_to_have_url(re.compile("step="))


def test_the_cursor_is_shared(charts):
    expect(charts.get_by_label("Learning rate").locator(".u-over")).to_be_visible()
    box = loss(charts).locator(".u-over").bounding_box()
    assert box is not None
    charts.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
    expect(loss(charts).locator(".readout")).to_contain_text("step 120")
    expect(charts.get_by_label("Learning rate").locator(".readout")).to_contain_text("step 120")


def test_findings_are_marked_on_the_curve_and_lead_to_the_verdict(charts, runs):
    flag = loss(charts).locator("a.flag[aria-label^='missing-zero-grad']")
    expect(flag).to_have_count(1)
    assert flag.get_attribute("href") == f"#/run/{runs.faulty}/verdict?finding=0"


def test_search_finds_signals_by_words_in_any_order(charts):
    charts.keyboard.press("/")
    charts.keyboard.type("first norm gradient")
    found = charts.get_by_label("All signals").locator(".chart-card h3 b")
    expect(found.first).to_contain_text("gradient.norm")
    for name in found.all_inner_texts():
        assert "first" in name
    assert "search=first+norm+gradient" in charts.url


def test_only_charts_near_the_screen_exist(charts):
    count = charts.get_by_label("All signals").locator("h2 .num")
    expect(count).to_have_text(re.compile(r"^\d+$"))
    assert int(count.inner_text()) > 150
    assert charts.get_by_label("All signals").locator(".chart-card").count() < 40
    charts.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    last = charts.get_by_label("All signals").locator(".chart-card").last
    expect(last.locator("canvas")).to_be_visible()
    assert charts.get_by_label("All signals").locator(".chart-card").count() < 40


def test_a_group_narrows_the_list(charts):
    charts.get_by_role("button", name=re.compile(r"^update\s")).click()
    expect(charts.get_by_label("All signals").locator("h3 b").first).to_contain_text("update.")
    expect(charts).to_have_url(re.compile("group=update"))
