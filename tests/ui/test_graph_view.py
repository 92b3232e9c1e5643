"""The graph: folded repeats, expand and collapse, search, colours, what is known of a node."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect


def field(page: Page) -> Locator:
    return page.locator(".graph .field")


def boxes(page: Page) -> int:
    return int(field(page).get_attribute("data-boxes") or 0)


@pytest.fixture
def graph(looker, networks) -> Page:
    page = looker.open(f"#/run/{networks.blocks}/graph")
    expect(field(page)).to_have_attribute("data-zoom", re.compile(r"\d"))
    return page


def find(page: Page, text: str) -> None:
    """Search for a node and take the first one found."""
    page.locator("#find-node").fill(text)
    page.get_by_label("Found in the graph").get_by_role("button").first.click()
    page.locator("#find-node").fill("")


def test_twelve_equal_blocks_are_folded_into_one_and_unfold(graph):
    assert boxes(graph) < 30
    find(graph, "blocks.0")
    panel = graph.locator(".graph aside")
    expect(panel).to_contain_text("12 identical blocks")
    before = boxes(graph)
    panel.get_by_role("button", name="Show all 12 separately").click()
    expect(panel.get_by_role("button", name="Fold again")).to_be_visible()
    assert boxes(graph) >= before + 11


def test_a_module_expands_and_collapses_and_the_address_remembers_it(graph):
    find(graph, "blocks.0.attention")
    before = boxes(graph)
    panel = graph.locator(".graph aside")
    panel.get_by_role("button", name="Expand").click()
    expect(panel.get_by_role("button", name="Collapse")).to_be_visible()
    opened = boxes(graph)
    assert opened > before
    graph.reload()
    expect(field(graph)).to_have_attribute("data-boxes", str(opened))
    graph.locator(".graph aside").get_by_role("button", name="Collapse").click()
    expect(field(graph)).to_have_attribute("data-boxes", str(before))


def test_everything_expands_at_once_and_collapses_again(graph):
    before = boxes(graph)
    graph.get_by_role("button", name="Expand all").click()
    nodes = int(
        re.search(r"([\d,]+) nodes", graph.locator(".tool .says").last.inner_text())[1].replace(",", "")
    )
    expect(field(graph)).to_have_attribute("data-boxes", str(nodes))
    assert nodes > 400
    graph.get_by_role("button", name="Collapse").first.click()
    expect(field(graph)).to_have_attribute("data-boxes", str(before))


def test_search_reaches_into_folded_blocks_and_shows_what_it_found(graph):
    graph.keyboard.press("/")
    graph.keyboard.type("blocks.7.mlp.2")
    found = graph.get_by_label("Found in the graph").get_by_role("button")
    expect(found.first).to_contain_text("blocks.7.mlp.2")
    found.first.click()
    graph.locator("#find-node").fill("")
    panel = graph.locator(".graph aside")
    expect(panel.locator("h3")).to_have_text("blocks.7.mlp.2")
    expect(panel).to_contain_text("Linear")


def test_a_node_shows_shapes_parameters_statistics_and_its_line(graph):
    find(graph, "blocks.0.attention.qkv")
    panel = graph.locator(".graph aside")
    expect(panel.locator(".facts").first).to_contain_text("32\u00d712\u00d796 float32")
    expect(panel.locator(".facts").first).to_contain_text("3,168")
    expect(panel.locator(".where")).to_contain_text("blocks.py:")
    expect(panel).to_contain_text("weight gradient.norm")
    panel.get_by_role("link", name="weight gradient.norm").click()
    expect(graph).to_have_url(re.compile("/charts"))


def test_a_click_on_a_box_chooses_it_and_a_double_click_opens_it(graph):
    box = field(graph).bounding_box()
    assert box is not None
    find(graph, "embed")
    graph.get_by_role("button", name="Fit").click()
    graph.mouse.click(box["x"] + 12, box["y"] + 12)  # beside everything: nothing is chosen
    expect(graph.locator(".graph aside")).to_contain_text("Click a box")


@pytest.mark.parametrize("by", ["parameters", "memory", "flops"])
def test_boxes_are_coloured_by_what_is_asked_for_with_its_unit(graph, by):
    graph.locator("#colour").select_option(by)
    expect(graph.locator(".graph .key .legend")).to_be_visible()
    expect(graph).to_have_url(re.compile(f"colour={by}"))
    unit = {"parameters": "8,544", "memory": "iB", "flops": "FLOPs"}[by]
    expect(graph.locator(".graph .key")).to_contain_text(unit)


def test_dragging_and_the_wheel_move_and_zoom(graph):
    box = field(graph).bounding_box()
    assert box is not None
    before = float(field(graph).get_attribute("data-zoom") or 0)
    graph.mouse.move(box["x"] + 200, box["y"] + 300)
    graph.mouse.wheel(0, -300)
    expect(field(graph)).not_to_have_attribute("data-zoom", f"{before:.3f}")
    assert float(field(graph).get_attribute("data-zoom") or 0) > before


def test_a_finding_colours_its_module_and_is_in_its_panel(looker, networks):
    page = looker.open(f"#/run/{networks.deep}/graph?layer=first")
    panel = page.locator(".graph aside")
    expect(panel.locator("h3")).to_have_text("first")
    expect(panel.get_by_role("link", name=re.compile("gradient"))).not_to_have_count(0)
    panel.locator("a", has=page.locator(".mark")).first.click()
    expect(page).to_have_url(re.compile(r"/verdict\?finding=\d"))


def test_without_a_graph_the_modules_are_shown_in_order_and_how_to_record_one(looker, networks):
    page = looker.open(f"#/run/{networks.pictures}/graph")
    expect(page.get_by_role("note")).to_contain_text("clew run --graph")
    expect(field(page)).to_have_attribute("data-boxes", "11")
    find(page, "features.4")
    expect(page.locator(".graph aside")).to_contain_text("Conv2d")
