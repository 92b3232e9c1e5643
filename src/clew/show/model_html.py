"""The graph as one HTML file: the page of the browser with nothing but the graph in it."""

from __future__ import annotations

from clew.show.bundle import bundled_page
from clew.show.json_out import dumps
from clew.show.model_layout import layout_json
from clew.show.safe_text import neutral
from clew.structure import Graph


def html_page(graph: Graph, colour: str) -> str:
    """It opens collapsed, coloured by `colour`, and needs no network. Raises `BundleNotBuilt`."""
    title = neutral(graph.name, 80)
    page = {"shows": "graph", "title": title, "about": "", "colour": colour}
    drawn = {**graph.to_json(), "layout": layout_json(graph)}
    return bundled_page(dumps({"page": page, "graph": drawn}, dense=True), title)
