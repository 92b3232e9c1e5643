"""What the model was fed: loaders, labels, batches, samples; all of it untrusted."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect


@pytest.fixture
def data(looker, networks) -> Page:
    page = looker.open(f"#/run/{networks.pictures}/data")
    expect(page.get_by_text("32 samples", exact=True)).to_be_visible()
    return page


def test_the_loader_and_the_labels_are_those_of_the_program(data):
    expect(data.get_by_text("TensorDataset, 640 samples")).to_be_visible()
    labels = data.locator("#labels")
    expect(labels).to_contain_text("Labels of cross_entropy")
    expect(labels.locator(".bars .track")).to_have_count(4)


def test_batches_are_listed_with_shapes_ranges_and_labels(data):
    row = data.locator("#batches tbody tr").first
    expect(row).to_contain_text("32\u00d71\u00d712\u00d712 float32, \u22120.5 to 1.6")
    expect(row).to_contain_text("3, 1, 0")


def test_samples_show_pictures_and_those_predicted_wrong_alone(data):
    expect(data.locator(".sample")).to_have_count(4)
    expect(data.locator(".sample img")).to_have_count(2)  # of the third the picture lies elsewhere
    assert data.locator(".sample img").first.evaluate(
        "image => [image.naturalWidth, image.naturalHeight]"
    ) == [4, 4]
    data.get_by_label("only wrong predictions").check()
    expect(data.locator(".sample")).to_have_count(1)
    expect(data.locator(".sample")).to_contain_text("3, wrong")


def test_text_of_a_sample_is_text(data):
    expect(data.locator(".sample pre")).to_have_text("<img src=x onerror=alert(1)>")


def test_a_run_without_samples_says_so_and_still_shows_its_loader(looker, networks):
    page = looker.open(f"#/run/{networks.deep}/data")
    expect(page.get_by_text("No samples in this run")).to_be_visible()
    expect(page.get_by_text("TensorDataset, 512 samples")).to_be_visible()
