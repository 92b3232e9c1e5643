"""The heat map: a vanishing gradient is seen at a glance, every value is read, a click opens histograms."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

GUTTER = 220
LIGHTS = """
([canvas, share, rows]) => {
    const box = canvas.getBoundingClientRect();
    const ratio = canvas.width / box.width;
    const x = (220 + share * (box.width - 220)) * ratio;
    const { data } = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height);
    return rows.map((y) => {
        const [r, g, b] = data.slice(4 * Math.round(y * ratio));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    });
}
"""


@pytest.fixture
def layers(looker, networks) -> Page:
    page = looker.open(f"#/run/{networks.deep}/layers")
    expect(page.locator(".heat canvas")).to_be_visible()
    expect(page.get_by_text("32 layers")).to_be_visible()
    page.wait_for_timeout(200)  # the canvas is painted in the next frame
    return page


def row(number: int) -> float:
    """The middle of a layer's row: 32 of them are 16 px high at 800 px."""
    return number * 16 + 8


def at(page: Page, x: float, y: float) -> tuple[float, float]:
    box = page.locator(".heat").bounding_box()
    assert box is not None
    return box["x"] + x, box["y"] + y


def test_a_vanishing_gradient_is_dark_in_front_and_bright_at_the_end(layers):
    canvas = layers.locator(".heat canvas").element_handle()
    lights = layers.evaluate(LIGHTS, [canvas, 0.5, [row(n) for n in (0, 8, 16, 24, 30)]])
    assert lights == sorted(lights)
    assert lights[0] < 25
    assert lights[-1] > 170


def test_the_statistic_is_chosen_from_those_recorded_and_is_in_the_address(layers):
    offered = layers.locator("#stat option").all_inner_texts()
    assert offered[0] == "gradient norm"
    assert any("headroom" in text for text in offered)
    layers.locator("#stat").select_option("activation.saturated")
    expect(layers).to_have_url(re.compile("stat=activation.saturated"))
    expect(layers.locator(".legend")).to_contain_text("100")
    expect(layers.locator(".legend")).to_contain_text("%")


def test_under_the_pointer_are_the_layer_the_step_and_the_value(layers):
    layers.mouse.move(*at(layers, GUTTER + 3, row(30)))
    tip = layers.locator(".tip")
    expect(tip).to_contain_text("head.weight")
    expect(tip).to_contain_text("gradient norm")
    expect(tip.locator("dd.num").first).to_have_text("0")
    assert 0.01 < float(tip.locator("dd.num").nth(1).inner_text()) < 10


def test_a_click_opens_the_histograms_of_the_layer_and_the_address_remembers_them(layers):
    layers.mouse.click(*at(layers, 700, row(30)))
    panel = layers.get_by_label("Histograms of the layer")
    expect(panel.locator("h3")).to_have_text("head.weight")
    expect(panel.get_by_role("radio", name="gradients")).to_have_attribute("aria-checked", "true")
    expect(panel.get_by_role("radio", name="values")).to_have_attribute("aria-checked", "true")
    canvas = panel.locator("canvas")
    expect(canvas).to_be_visible()
    panel.get_by_role("radio", name="weights").click()
    panel.get_by_role("radio", name="ridge").click()
    expect(layers).to_have_url(re.compile("site=[0-9a-f]{12}.*what=weight.*look=ridge"))
    layers.reload()
    panel = layers.get_by_label("Histograms of the layer")
    expect(panel.get_by_role("radio", name="weights")).to_have_attribute("aria-checked", "true")
    panel.get_by_role("radio", name="magnitudes").click()
    expect(panel).to_contain_text("powers of two")


def test_the_bars_of_a_histogram_are_where_the_values_are(layers):
    layers.mouse.click(*at(layers, 700, row(30)))
    panel = layers.get_by_label("Histograms of the layer")
    panel.get_by_role("radio", name="weights").click()
    canvas = panel.locator("canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    readings = []
    for place in range(1, 24):
        layers.mouse.move(box["x"] + 64 + place / 24 * (box["width"] - 64), box["y"] + 4)
        numbers = layers.locator(".tip dd.num").all_inner_texts()
        readings.append([float(text.removesuffix("%").replace("\u2212", "-")) for text in numbers[1:]])
    mass = sum(share for _, share in readings)
    assert mass > 5
    assert abs(sum(value * share for value, share in readings) / mass) < 0.1  # linear layers begin at zero


def test_dragging_across_steps_zooms_in_and_a_button_leads_back(layers):
    first, last = at(layers, GUTTER + 300, row(4)), at(layers, GUTTER + 700, row(4))
    layers.mouse.move(*first)
    layers.mouse.down()
    layers.mouse.move(*last, steps=5)
    layers.mouse.up()
    expect(layers).to_have_url(re.compile(r"from=\d+&to=\d+"))
    layers.get_by_role("button", name="Whole run").click()
    expect(layers).not_to_have_url(re.compile("from="))


def test_layers_are_found_by_name_with_a_key_and_those_left_out_are_counted(layers):
    layers.keyboard.press("/")
    layers.keyboard.type("hidden weight")
    expect(layers.get_by_text("14 of 32 layers")).to_be_visible()
    layers.locator("#find-layer").fill("nothing like it")
    expect(layers.get_by_text("No matching layer")).to_be_visible()


def test_the_layer_of_a_finding_is_marked_and_says_so(layers):
    layers.mouse.move(*at(layers, 60, row(0)))
    expect(layers.locator(".tip")).to_contain_text("warning:")
    mark = layers.evaluate(
        """(canvas) => {
            const ratio = canvas.width / canvas.getBoundingClientRect().width;
            return [...canvas.getContext("2d").getImageData(10 * ratio, 8 * ratio, 1, 1).data];
        }""",
        layers.locator(".heat canvas").element_handle(),
    )
    assert mark[:3] == [138, 90, 0]  # the colour of warnings


def test_a_link_from_elsewhere_opens_the_layer_that_it_names(looker, networks):
    page = looker.open(f"#/run/{networks.deep}/layers?layer=hidden.3")
    expect(page.get_by_label("Histograms of the layer").locator("h3")).to_have_text("hidden.3.weight")


def test_cells_can_be_walked_with_the_keyboard(layers):
    layers.locator(".heat").focus()
    layers.keyboard.press("ArrowDown")
    layers.keyboard.press("ArrowRight")
    expect(layers.locator(".tip")).to_contain_text("first.bias")
    layers.keyboard.press("Enter")
    expect(layers.get_by_label("Histograms of the layer").locator("h3")).to_have_text("first.bias")
