"""The flame graphs of a profile as one file, opened from disk."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from clew.records.step_costs import FlameFrame, Profile, StepMemory
from clew.render.profile.flame_graph import html_page, write_html

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>&amp; @DATA@"


def flames() -> Profile:
    fc = FlameFrame("fc1", 0.03, file="train.py", line=12)
    step = FlameFrame(
        "step", 0.1, children=(FlameFrame("forward", 0.04, children=(fc,)), FlameFrame("backward", 0.05))
    )
    python = FlameFrame("main", 0.1, children=(FlameFrame(HOSTILE, 0.06), FlameFrame("other", 0.02)))
    memory = FlameFrame("peak", 4 * 2.0**20, children=(FlameFrame("activations", 3 * 2.0**20),))
    return Profile(
        step_median=0.1, detailed=8, steps=(3, 40), flame=step, python=python, memory=StepMemory(root=memory)
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
    page.set_default_timeout(30_000)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "profile.html").as_uri())
    expect(page.locator(".flame canvas")).to_be_visible()
    yield page
    context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith("data:")] == asked[:1]


def says(page: Page) -> Locator:
    return page.locator(".flame .says")


def click(page: Page, row: int, share: float = 0.02) -> None:
    """Click the bar of a row that is at this share of the width."""
    canvas = page.locator(".flame canvas")
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": share * box["width"], "y": 20 * row + 10})


def expect_bars(page: Page, count: int) -> None:
    expect(page.locator(".flame")).to_have_attribute("data-bars", str(count))


def test_it_says_what_the_profile_is_of(page):
    expect(page.locator("h1")).to_have_text(HOSTILE)
    expect(page.locator("main")).to_contain_text("a step takes 100 ms, 8 of steps 3 to 40")


def test_a_click_zooms_in_and_escape_goes_back_out(page):
    expect(says(page)).to_contain_text("step 100 ms, 100% of the total, 10 ms in the frame itself")
    expect_bars(page, 4)
    click(page, 1)
    expect(says(page)).to_contain_text("forward 40 ms, 40% of the total")
    expect_bars(page, 3)  # step, forward, fc1
    page.keyboard.press("Escape")
    expect_bars(page, 4)


def test_the_arrow_keys_walk_and_enter_zooms(page):
    page.locator(".flame canvas").focus()
    page.keyboard.press("ArrowDown")
    expect(says(page)).to_contain_text("backward")
    page.keyboard.press("ArrowLeft")
    expect(says(page)).to_contain_text("forward")
    page.keyboard.press("ArrowDown")
    expect(says(page)).to_contain_text("train.py:12")
    page.keyboard.press("Enter")
    expect_bars(page, 3)
    page.keyboard.press("ArrowUp")
    expect(says(page)).to_contain_text("forward")


def test_under_the_pointer_is_what_a_frame_took(page):
    page.locator(".flame canvas").hover(position={"x": 30, "y": 50})
    expect(page.get_by_role("tooltip")).to_contain_text("fc1")
    expect(page.get_by_role("tooltip")).to_contain_text("30 ms, 30%")
    expect(page.get_by_role("tooltip")).to_contain_text("train.py:12")


def test_a_search_marks_what_it_finds(page):
    page.keyboard.press("/")
    page.keyboard.type("ward")
    expect(page.locator(".flame .found")).to_have_text("2 frames found")
    page.keyboard.press("Escape")
    expect(page.locator(".flame .found")).to_have_count(0)
    expect(page.get_by_label("Find a function")).to_have_value("")


def test_time_python_and_memory_are_tabs(page):
    tabs = page.get_by_role("radiogroup", name="flame graph of").get_by_role("radio")
    assert tabs.all_inner_texts() == ["Time", "Python", "Memory"]
    tabs.nth(2).click()
    expect(says(page)).to_contain_text("peak 4 MiB")
    click(page, 1)
    expect(says(page)).to_contain_text("activations 3 MiB, 75%")


def test_hostile_names_are_text(page):
    page.get_by_role("radio", name="Python").click()
    click(page, 1)
    expect(says(page).locator("b")).to_have_text(HOSTILE)
    assert page.locator("img").count() == 0
    assert page.title() == HOSTILE


def test_what_is_too_small_to_see_counts_for_its_caller(browser: Browser, tmp_path: Path) -> None:
    small = FlameFrame(
        "main", 1.0, children=(FlameFrame("big", 0.5), *(FlameFrame(f"f{n}", 1e-4) for n in range(100)))
    )
    assert write_html(Profile(python=small), tmp_path / "small.html")
    page = browser.new_page()
    page.goto((tmp_path / "small.html").as_uri())
    expect_bars(page, 2)
    expect(says(page)).to_contain_text("main 1 s, 100% of the total, 490 ms in the frame itself")
    page.close()


def test_it_works_in_the_frame_of_a_notebook(browser: Browser, tmp_path: Path) -> None:
    """Where neither the address nor the storage may be touched."""
    inner = escape(html_page(flames(), "clew.profile") or "")
    (tmp_path / "notebook.html").write_text(f'<iframe sandbox="allow-scripts" srcdoc="{inner}"></iframe>')
    page = browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "notebook.html").as_uri())
    frame = page.frame_locator("iframe")
    expect(frame.locator(".flame .says")).to_contain_text("step 100 ms")
    frame.locator(".flame canvas").click(position={"x": 5, "y": 30})
    expect(frame.locator(".flame .says")).to_contain_text("forward 40 ms")
    page.close()
    assert complaints == []


def test_dark_where_the_reader_wants_it_dark(page):
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body")).not_to_have_css("background-color", light)
