"""The graph as one HTML file: what a click does, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect
from torch import Tensor, nn

import clew
from clew.records.network import Graph
from clew.render.network.graph_files import write_graph

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<img src=x onerror=alert(1)>"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.add_module(EVIL, nn.Linear(4, 4))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        x = left * right
        for block in self.blocks:
            x = block(x)
        return self._modules[EVIL](x)  # type: ignore[misc]


def network() -> Graph:
    return clew.graph(Net(), [torch.zeros(2, 4), torch.zeros(2, 4)])


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """With the network off; what the browser complains about, or asks for, fails the test."""
    write_graph(network(), tmp_path / "net.html")
    context = browser.new_context(viewport={"width": 1200, "height": 1200}, offline=True)
    page = context.new_page()
    page.set_default_timeout(30_000)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else complaints.append(r.url))
    page.goto(f"file://{tmp_path}/net.html")
    expect(field(page)).to_have_attribute("data-zoom", re.compile(r"\d"))
    yield page
    context.close()
    assert complaints == []


def field(page: Page) -> Locator:
    return page.locator(".graph .field")


def boxes(page: Page) -> Locator:
    return page.locator("ul[aria-label='Boxes of the graph'] button")


def texts(page: Page) -> list[str]:
    return [text.split("  ")[0] for text in boxes(page).all_text_contents()]


def place(box: Locator) -> list[float]:
    """Left, top, width and height in the drawing."""
    return [float(n) for n in (box.get_attribute("data-place") or "").split(",")]


def click(page: Page, name: str, dx: float = 12, dy: float = 12) -> None:
    """On the canvas, at the sign of a box; all of the drawing is in sight and its width centred."""
    canvas = field(page).bounding_box()
    assert canvas is not None
    zoom = float(field(page).get_attribute("data-zoom") or 0)
    _, _, width, height = place(boxes(page).first)  # the model, around all
    left, top, *_ = place(boxes(page).filter(has_text=name).last)
    x = canvas["width"] / 2 + (left + dx - width / 2 - 16) * zoom
    y = canvas["height"] / 2 + (top + dy - height / 2 - 16) * zoom
    page.mouse.click(canvas["x"] + x, canvas["y"] + y)


def test_it_opens_with_the_modules_of_the_model_and_a_box_for_each_input(page: Page) -> None:
    assert texts(page) == ["Net", "left", "right", "mul", "blocks.0 ×3", EVIL, "output"]
    expect(page.locator("h1")).to_have_text("Net")
    expect(page.locator("#colour")).to_have_value("flops")


def test_a_click_opens_a_module_and_another_closes_it(page: Page) -> None:
    click(page, "blocks.0")
    expect(boxes(page).filter(has_text="inner")).to_have_count(1)
    page.get_by_role("button", name="Fit").click()
    click(page, "inner")
    expect(boxes(page).filter(has_text="ReLU")).to_have_count(1)
    assert {"input", "inner", "0", "1", "2", "add"} <= set(texts(page))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Collapse").first.click()
    expect(boxes(page).filter(has_text="inner")).to_have_count(0)


def test_repeated_blocks_are_unfolded(page: Page) -> None:
    click(page, "blocks.0", dx=40)
    page.get_by_role("button", name="Show all 3 separately").click()
    expect(boxes(page).filter(has_text="blocks.2")).to_have_count(1)


def test_the_panel_and_the_search_know_a_node_and_its_line(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("blocks.1.inner.2")
    page.get_by_label("Found in the graph").get_by_role("button").first.click()
    page.locator("#find-node").fill("")
    panel = page.locator(".graph aside")
    expect(panel.locator("h3")).to_have_text("blocks.1.inner.2")
    expect(panel).to_contain_text("2×4 float32")
    expect(panel.locator(".where")).to_contain_text("test_model_page.py:")


def test_under_the_pointer_is_what_is_known_of_a_box_and_of_a_line(page: Page) -> None:
    canvas = field(page).bounding_box()
    assert canvas is not None
    middle = canvas["x"] + canvas["width"] / 2
    found = []
    for y in range(int(canvas["y"]) + 4, int(canvas["y"] + canvas["height"]) - 4, 6):
        page.mouse.move(middle, y)
        tip = page.get_by_role("tooltip")
        found += tip.all_inner_texts()
    assert any("blocks.0" in text and "params" in text for text in found)
    assert "2×4 float32" in found  # of a line


def test_no_two_boxes_of_a_level_overlap_and_each_is_inside_its_module(page: Page) -> None:
    page.get_by_role("button", name="Expand all").click()
    expect(boxes(page).filter(has_text="blocks.2")).to_have_count(1)
    seen = [
        (b.get_attribute("data-node"), b.get_attribute("data-module"), place(b)) for b in boxes(page).all()
    ]
    around = {node: rect for node, _, rect in seen}
    for node, module, (x, y, w, h) in seen:
        if module in around:
            ax, ay, aw, ah = around[module]
            assert ax <= x
            assert ay <= y
            assert x + w <= ax + aw + 0.2
            assert y + h <= ay + ah + 0.2
        for other, its, (ox, oy, ow, oh) in seen:
            if other != node and its == module:
                assert x + w <= ox or ox + ow <= x or y + h <= oy or oy + oh <= y


@pytest.mark.parametrize("expand", [False, True])
def test_boxes_stand_where_the_svg_has_them(page: Page, tmp_path: Path, expand: bool) -> None:
    """There is one layout: who draws only makes room for what is open."""
    write_graph(network(), tmp_path / "net.svg", expand=expand)
    if expand:
        page.get_by_role("button", name="Expand all").click()
        expect(boxes(page).filter(has_text="blocks.2")).to_have_count(1)
    drawn: list[tuple[float, ...]] = []

    def walk(element: ElementTree.Element, x: float, y: float) -> None:
        for group in element.findall(f"{SVG}g"):
            dx, dy = map(float, re.findall(r"-?[\d.]+", group.attrib["transform"]))
            rect = group.find(f"{SVG}rect")
            assert rect is not None
            size = (float(rect.attrib["width"]), float(rect.attrib["height"]))
            drawn.append((x + dx, y + dy, *size))
            walk(group, x + dx, y + dy)

    walk(ElementTree.parse(tmp_path / "net.svg").getroot(), 0.0, 0.0)
    shown = sorted(tuple(place(box)) for box in boxes(page).all())
    assert len(shown) == len(drawn) > 5
    assert shown == [pytest.approx(rect, abs=1.0) for rect in sorted(drawn)]


def test_a_hostile_name_is_text(page: Page) -> None:
    page.locator("#find-node").fill("img")
    page.get_by_label("Found in the graph").get_by_role("button").first.click()
    page.locator("#find-node").fill("")
    expect(page.locator(".graph aside h3")).to_have_text(EVIL)
    assert page.locator("img").count() == 0
