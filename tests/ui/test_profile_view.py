"""Where the time goes: recorded steps of every run, and the flames of a profile."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect


@pytest.fixture
def profile(looker, networks) -> Page:
    page = looker.open(f"#/run/{networks.pictures}/profile")
    expect(page.locator("#flame-time canvas")).to_be_visible()
    return page


def test_every_run_shows_what_its_steps_spent_their_time_on(looker, networks):
    page = looker.open(f"#/run/{networks.deep}/profile")
    shares = page.locator("#shares > span")
    expect(shares).to_have_count(6)
    found = [float(re.search(r"([\d.e\u2212-]+)%", text)[1]) for text in shares.all_inner_texts()]
    assert sum(found) == pytest.approx(100, abs=2)
    expect(page.get_by_text("No step was profiled in detail")).to_be_visible()


def test_under_the_pointer_are_the_parts_of_that_step(looker, networks):
    page = looker.open(f"#/run/{networks.deep}/profile")
    canvas = page.get_by_label("time of each part of a step, over the run")
    expect(canvas).to_be_visible()
    canvas.hover(position={"x": 500, "y": 200})
    expect(page.locator(".tip")).to_contain_text("forward")
    expect(page.locator(".tip")).to_contain_text("total")


def test_a_flame_zooms_in_and_out_and_the_address_remembers_it(profile):
    flame = profile.locator("#flame-time")
    expect(flame.locator(".says")).to_contain_text("10 ms")
    flame.locator("canvas").click(position={"x": 30, "y": 30})  # forward, below the step
    expect(flame.locator(".says")).to_contain_text("forward")
    expect(flame.locator(".says")).to_contain_text("40%")
    expect(profile).to_have_url(re.compile("timeFrame=0"))
    flame.locator("canvas").click(position={"x": 30, "y": 50})  # features.0, now as wide as 3 of 4
    expect(flame.locator(".says")).to_contain_text("train.py:20")
    flame.get_by_role("button", name="All").click()
    expect(flame.locator(".says")).to_contain_text("step")


def test_python_has_a_flame_of_its_own_and_the_address_remembers_which(profile):
    profile.get_by_role("radio", name="Python").click()
    expect(profile.locator("#flame-python .says")).to_contain_text("main 10 ms")
    expect(profile).to_have_url(re.compile("flame=python"))
    expect(profile.locator("#flame-time")).to_have_count(0)


def test_memory_has_a_flame_of_its_own_in_bytes(profile):
    profile.get_by_role("radio", name="Memory").click()
    flame = profile.locator("#flame-memory")
    flame.locator("canvas").hover(position={"x": 30, "y": 30})
    expect(profile.locator(".tip")).to_contain_text("activations")
    expect(profile.locator(".tip")).to_contain_text("3 MiB, 75%")


def test_what_is_below_stays_where_it_is_when_the_times_of_the_steps_arrive(looker, networks):
    held: list[Route] = []
    looker.page.route("**/series*", lambda route: held.append(route))
    page = looker.open(f"#/run/{networks.pictures}/profile")
    flame = page.locator("#flame-time")
    expect(flame.locator("canvas")).to_be_visible()
    expect(page.get_by_text("Reading the times")).to_be_visible()
    before = flame.bounding_box()
    for route in held:
        route.continue_()
    expect(page.get_by_label("time of each part of a step, over the run")).to_be_visible()
    assert flame.bounding_box() == before


def test_modules_are_sorted_by_the_column_that_is_clicked(profile):
    first = profile.locator("#modules tbody tr").first
    expect(first).to_contain_text("features.0")
    expect(first).to_contain_text("3 ms")
    profile.locator("#modules th", has_text="own time").click()
    expect(first).to_contain_text("classify")
    first.get_by_role("link").click()
    expect(profile).to_have_url(re.compile("/graph"))
    expect(profile.locator(".graph aside h3")).to_have_text("classify")


def test_the_parts_of_a_step_have_median_and_p95_and_add_up(profile):
    expect(profile.locator("#summary header")).to_contain_text("3,200 samples/s")
    rows = profile.locator(".parts tbody tr").all_inner_texts()
    assert [row.replace("\u00a0", " ").split("\t") for row in rows] == [
        ["data wait", "600 µs", "2 ms", "6%", ""],
        ["forward", "4 ms", "5 ms", "40%", ""],
        ["backward", "5 ms", "6 ms", "50%", ""],
        ["left over", "400 µs", "", "4%", ""],
    ]


def test_lines_show_their_code_as_text_whatever_it_is(profile):
    rows = profile.locator("#lines tbody tr")
    expect(rows.first).to_contain_text("loss.backward()")
    expect(rows.nth(1)).to_contain_text("<img src=x onerror=alert(1)>")
    expect(profile.locator("#syncs tbody tr")).to_contain_text(".item()")


def test_operations_outside_the_model_have_no_link_into_its_graph(profile):
    rows = profile.locator("#ops tbody tr")
    expect(rows.first).to_contain_text("conv2d")
    expect(rows.first.get_by_role("link")).to_have_count(1)
    expect(rows.nth(1)).to_contain_text("(optimizer)")
    expect(rows.nth(1).get_by_role("link")).to_have_count(0)


def test_memory_is_listed_by_kind_and_by_process_and_what_grows_is_named(profile):
    expect(profile.locator("#memory .bars")).to_contain_text("activations3 MiB, 75%")
    expect(profile.get_by_label("tensor memory over one step")).to_be_visible()
    expect(profile.locator(".notice.growth")).to_contain_text("list `losses` in train.py:33")
    first = profile.locator("#processes tbody tr").first
    expect(first).to_contain_text("main")
    expect(first.locator("svg.spark")).to_be_visible()
