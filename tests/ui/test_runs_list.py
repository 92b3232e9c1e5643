"""The list of runs: what each is, what is wrong with it, and which to open or compare."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from playwright.sync_api import Browser, expect
from viewing import served


def test_every_run_is_a_row_with_its_state_and_what_is_wrong(viewer, runs):
    page = viewer.open()
    faulty = page.locator(f"tr[data-run='{runs.faulty}']")
    expect(faulty).to_contain_text("finished")
    expect(faulty).to_contain_text("missing-zero-grad")
    expect(faulty.get_by_role("img", name="error")).to_be_visible()
    expect(page.locator(f"tr[data-run='{runs.healthy}']")).to_contain_text("nothing found")
    expect(page.locator("tbody tr")).to_have_count(3)


def test_the_filter_keeps_matching_runs_and_lives_in_the_address(viewer, runs):
    page = viewer.open()
    page.keyboard.press("/")
    page.keyboard.type("missing-zero")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "search=missing-zero" in page.url
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Filter the runs").focus()
    page.keyboard.press("Escape")
    expect(page.locator("tbody tr")).to_have_count(3)


def test_a_click_on_a_column_sorts_and_a_second_one_turns_it_round(viewer, runs):
    page = viewer.open()
    page.get_by_role("button", name="Last loss").click()
    expect(page.locator("tbody tr").last).to_have_attribute("data-run", runs.faulty)
    page.get_by_role("button", name="Last loss").click()
    expect(page.locator("tbody tr").first).to_have_attribute("data-run", runs.faulty)
    assert "sort=-loss" in page.url


def test_selected_runs_go_to_the_comparison(viewer, runs):
    page = viewer.open()
    compare = page.get_by_role("button", name=re.compile("^Compare"))
    expect(compare).to_be_disabled()
    page.get_by_label(f"Select {runs.healthy}").check()
    page.get_by_label(f"Select {runs.other}").check()
    compare.click()
    expect(page).to_have_url(re.compile(f"#/compare\\?runs={runs.healthy}%2C{runs.other}"))


def test_keys_move_through_the_list_and_open_a_run(viewer, runs):
    page = viewer.open("#/?sort=started")
    expect(page.locator("tr.current")).to_have_attribute("data-run", runs.faulty)
    page.keyboard.press("ArrowDown")
    expect(page.locator("tr.current")).to_have_attribute("data-run", runs.healthy)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#/run/{runs.healthy}/verdict"))


def test_a_run_that_is_damaged_unreadable_or_deleted_breaks_nothing_else(
    browser: Browser, runs, tmp_path: Path
):
    folder = tmp_path / "runs"
    for name in (runs.healthy, "broken", "newer"):
        shutil.copytree(runs.folder / runs.healthy, folder / name)
    (folder / "broken" / "run.json").write_text("{not json")
    (folder / "newer" / "run.json").write_text('{"format_version": 99}')
    with served(folder, tmp_path / "cache") as address:
        page = browser.new_page()
        page.goto(address)
        expect(page.locator(f"tr[data-run='{runs.healthy}']")).to_contain_text("nothing found")
        expect(page.locator("tr[data-run='broken']")).to_contain_text("damaged")
        expect(page.locator("tr[data-run='newer'] .run-state")).to_have_text("unreadable")
        shutil.rmtree(folder / "broken")
        expect(page.locator("tr[data-run='broken']")).to_have_count(0)
        expect(page.locator("tbody tr")).to_have_count(2)
        page.close()


def test_an_empty_folder_says_how_to_record_a_run(browser: Browser, tmp_path: Path):
    (tmp_path / "runs").mkdir()
    with served(tmp_path / "runs", tmp_path / "cache") as address:
        page = browser.new_page()
        page.goto(address)
        expect(page.get_by_text("clew run train.py")).to_be_visible()
        page.close()
