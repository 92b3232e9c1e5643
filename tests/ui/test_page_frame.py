"""What holds for every view: help, light and dark, addresses, errors, small screens."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect
from viewing import base_of


def test_question_mark_lists_the_keys_and_escape_closes_it(viewer):
    page = viewer.open()
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keys")
    expect(sheet).to_contain_text("compare the selected runs")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)


def test_the_help_lists_the_keys_of_the_view_that_is_open(viewer, runs):
    page = viewer.open(f"#/run/{runs.faulty}/charts")
    expect(page.get_by_label("Search all signals")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next recorded step")
    expect(page.get_by_role("dialog")).not_to_contain_text("compare the selected runs")


def test_dark_follows_the_system_until_it_is_switched_and_then_stays(browser: Browser, address):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(address)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Switch to light").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    context.close()


def test_number_keys_open_tabs_and_back_returns(viewer, runs):
    page = viewer.open(f"#/run/{runs.faulty}/verdict")
    expect(page.locator(".finding").first).to_be_visible()
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("/charts"))
    page.go_back()
    expect(page).to_have_url(re.compile("/verdict"))


@pytest.mark.parametrize("width", [1280, 390])
def test_no_view_is_wider_than_the_screen(browser: Browser, address, runs, width):
    context = browser.new_context(viewport={"width": width, "height": 844})
    page = context.new_page()
    page.goto(address)
    for place in ("#/", f"#/run/{runs.faulty}/verdict", f"#/run/{runs.faulty}/charts"):
        page.evaluate("place => { window.location.hash = place }", place)
        expect(page.locator("main :is(table, .finding, .chart canvas)").first).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, place
    context.close()


def test_a_run_that_is_not_there_is_said_in_words(browser: Browser, address):
    page = browser.new_page()
    page.goto(f"{address}#/run/no-such-run/verdict")
    expect(page.get_by_role("alert")).to_contain_text("no-such-run")
    expect(page.locator(".offline")).to_have_count(0)
    page.close()


def test_without_a_token_the_page_says_where_to_find_it(browser: Browser, address):
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(base_of(address))
    assert answer is not None
    assert answer.status == 401
    expect(page.locator("body")).to_contain_text("token")
    context.close()
