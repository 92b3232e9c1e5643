"""The graph as one HTML file: what a click does, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page, expect
from torch import Tensor, nn

import clew
from clew.render.network.graph_files import write_graph

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


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Page:
    write_graph(clew.graph(Net(), [torch.zeros(2, 4), torch.zeros(2, 4)]), tmp_path / "net.html")
    page = browser.new_page(viewport={"width": 1200, "height": 1200})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(f"file://{tmp_path}/net.html")
    yield page
    page.close()
    assert complaints == []


def texts(page: Page) -> list[str]:
    return [t.split("  ")[0] for t in page.locator("svg g > text:first-of-type").all_text_contents()]


def open_or_close(page: Page, name: str) -> None:
    box = page.locator("g.opens", has=page.locator(f"text:text-matches('^[+−] {name}')")).last
    box.locator("> rect").click(position={"x": 4, "y": 4})


def test_it_opens_with_the_modules_of_the_model_and_a_box_for_each_input(page: Page) -> None:
    assert texts(page)[1:] == ["left", "right", "mul", "+ blocks.0 ×3", f"+ {EVIL}", "output"]


def test_a_click_opens_a_module_and_another_closes_it(page: Page) -> None:
    open_or_close(page, "blocks.0")
    expect(page.locator("text", has_text="inner")).to_have_count(1)
    open_or_close(page, "inner")
    assert {"input", "− inner", "+ 0", "+ 1", "+ 2", "add"} <= set(texts(page))
    open_or_close(page, "blocks.0")
    assert "− inner" not in texts(page)


def test_every_text_is_inside_its_box_and_no_two_boxes_of_a_level_overlap(page: Page) -> None:
    page.get_by_role("button", name="open all").click()
    wrong = page.evaluate(
        """() => {
          const inside = (a, b) => a.left >= b.left && a.right <= b.right + 1 && a.bottom <= b.bottom + 1;
          const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
          const wrong = [];
          for (const group of document.querySelectorAll("svg g")) {
            const box = group.querySelector(":scope > rect").getBoundingClientRect();
            for (const text of group.querySelectorAll(":scope > text"))
              if (!inside(text.getBoundingClientRect(), box)) wrong.push(text.textContent);
            for (const other of group.parentNode.querySelectorAll(":scope > g")) {
              const its = other.querySelector(":scope > rect").getBoundingClientRect();
              if (other !== group && meet(box, its)) wrong.push("overlap");
            }
          }
          return wrong;
        }"""
    )
    assert wrong == []


def test_no_line_runs_through_a_box(page: Page) -> None:
    page.get_by_role("button", name="open all").click()
    struck = page.evaluate(
        """() => {
          let struck = 0;
          for (const path of document.querySelectorAll("svg path[fill=none]")) {
            const boxes = [...path.parentNode.querySelectorAll(":scope > g")].map(g => {
              const [x, y] = g.getAttribute("transform").match(/-?[\\d.]+/g).map(Number);
              const r = g.querySelector(":scope > rect");
              return [x, y, x + Number(r.getAttribute("width")), y + Number(r.getAttribute("height"))];
            });
            const length = path.getTotalLength();
            for (let at = 0; at <= length; at += 3) {
              const {x, y} = path.getPointAtLength(at);
              if (boxes.some(b => x > b[0] + 1 && x < b[2] - 1 && y > b[1] + 1 && y < b[3] - 1)) struck++;
            }
          }
          return struck;
        }"""
    )
    assert struck == 0
