"""Where the time goes: recorded steps of every run, and the flames of a profile."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect


@pytest.fixture
def profile(looker, networks) -> Page:
    page = looker.open(f"#/run/{networks.pictures}/profile")
    expect(page.locator("#flame-time canvas")).to_be_visible()
    return page


def test_every_run_shows_what_its_steps_spent_their_time_on(looker, networks):
    page = looker.open(f"#/run/{networks.deep}/profile")
    shares = page.locator("#shares > span")
    expect(shares).to_have_count(6)
    found = [float(re.search(r"([\d.e\u2212-]+)\s%", text)[1]) for text in shares.all_inner_texts()]
    assert sum(found) == pytest.approx(100, abs=2)
    expect(page.get_by_text("No step was profiled in detail")).to_be_visible()


def test_under_the_pointer_are_the_parts_of_that_step(looker, networks):
    page = looker.open(f"#/run/{networks.deep}/profile")
    canvas = page.get_by_label("time of each part of a step, over the run")
    expect(canvas).to_be_visible()
    canvas.hover(position={"x": 500, "y": 200})
    expect(page.locator(".tip")).to_contain_text("forward")
    expect(page.locator(".tip")).to_contain_text("together")


def test_a_flame_zooms_in_and_out_and_the_address_remembers_it(profile):
    flame = profile.locator("#flame-time")
    expect(flame.locator(".says")).to_contain_text("10 ms")
    flame.locator("canvas").click(position={"x": 30, "y": 30})  # forward, below the step
    expect(flame.locator(".says")).to_contain_text("forward")
    expect(flame.locator(".says")).to_contain_text("40 %")
    expect(profile).to_have_url(re.compile("timeFrame=0"))
    flame.locator("canvas").click(position={"x": 30, "y": 50})  # features.0, now as wide as 3 of 4
    expect(flame.locator(".says")).to_contain_text("train.py:20")
    flame.get_by_role("button", name="All").click()
    expect(flame.locator(".says")).to_contain_text("step")


def test_memory_has_a_flame_of_its_own_in_bytes(profile):
    flame = profile.locator("#flame-memory")
    flame.locator("canvas").hover(position={"x": 30, "y": 30})
    expect(profile.locator(".tip")).to_contain_text("activations")
    expect(profile.locator(".tip")).to_contain_text("3 MiB, 75 %")


def test_modules_are_sorted_by_the_column_that_is_clicked(profile):
    first = profile.locator("#modules tbody tr").first
    expect(first).to_contain_text("features.0")
    expect(first).to_contain_text("3 ms")
    profile.locator("#modules th", has_text="own time").click()
    expect(first).to_contain_text("classify")
    first.get_by_role("link").click()
    expect(profile).to_have_url(re.compile("/graph"))
    expect(profile.locator(".graph aside h3")).to_have_text("classify")


def test_what_would_help_is_said_first(profile):
    expect(profile.get_by_text("Convolutions take most of the step")).to_be_visible()
    expect(profile.get_by_text("20 % faster")).to_be_visible()
