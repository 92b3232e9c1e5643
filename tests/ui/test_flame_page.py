"""The flame graphs of a profile as one file, opened from disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from clew.records.step_costs import Frame, Memory, Profile
from clew.render.profile.flame_html import write_html

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>&amp; @DATA@"


def flames() -> Profile:
    fc = Frame("fc1", 0.03, file="train.py", line=12)
    step = Frame("step", 0.1, children=(Frame("forward", 0.04, children=(fc,)), Frame("backward", 0.05)))
    python = Frame("main", 0.1, children=(Frame(HOSTILE, 0.06), Frame("other", 0.02)))
    memory = Frame("peak", 4 * 2.0**20, children=(Frame("activations", 3 * 2.0**20),))
    return Profile(
        step_median=0.1, detailed=8, steps=(3, 40), flame=step, python=python, memory=Memory(root=memory)
    )


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """With the network off; what the browser complains about fails the test."""
    assert write_html(flames(), tmp_path / "profile.html", HOSTILE)
    context = browser.new_context(viewport={"width": 900, "height": 700}, offline=True)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "profile.html").as_uri())
    yield page
    context.close()
    assert complaints == []
    assert len(asked) == 1


def bar(page: Page, name: str):
    return page.locator(".bar").filter(has_text=name).first


def test_a_click_zooms_in_and_escape_goes_back_out(page):
    expect(page.locator("#says")).to_contain_text("step 100 ms, 100 % of all, itself 10.0 ms")
    bar(page, "forward").click()
    expect(page.locator("#says")).to_contain_text("forward 40.0 ms, 40 % of all")
    expect(page.locator(".bar")).to_have_count(3)  # step, forward, fc1
    page.keyboard.press("Escape")
    expect(page.locator(".bar")).to_have_count(4)


def test_the_arrow_keys_walk_and_enter_zooms(page):
    page.locator(".bar").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#says")).to_contain_text("backward")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#says")).to_contain_text("forward")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#says")).to_contain_text("train.py:12")
    page.keyboard.press("Enter")
    expect(page.locator(".bar")).to_have_count(3)
    page.keyboard.press("ArrowUp")
    expect(page.locator("#says")).to_contain_text("forward")


def test_a_search_marks_what_it_finds(page):
    page.keyboard.press("/")
    page.keyboard.type("ward")
    expect(page.locator(".bar.hit")).to_have_count(2)
    expect(page.locator("#found")).to_have_text("2 of the frames shown")
    page.keyboard.press("Escape")
    expect(page.locator(".bar.hit")).to_have_count(0)


def test_time_python_and_memory_are_tabs(page):
    assert page.locator("#tabs button").all_inner_texts() == ["Time", "Python", "Memory"]
    page.locator("#tab-memory").click()
    expect(page.locator("#says")).to_contain_text("peak 4.00 MiB")
    expect(bar(page, "activations")).to_be_visible()


def test_hostile_names_are_text(page):
    page.locator("#tab-python").click()
    expect(page.locator(".bar").nth(1)).to_have_text(HOSTILE)
    page.locator(".bar").nth(1).click()
    expect(page.locator("#says b")).to_have_text(HOSTILE)
    assert page.locator("img").count() == 0
    assert page.title() == HOSTILE


def test_dark_where_the_reader_wants_it_dark(page):
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
