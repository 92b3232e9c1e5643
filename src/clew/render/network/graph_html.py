"""The graph as one HTML file: the browser page with only the graph in it."""

from __future__ import annotations

from clew.records.network import Graph
from clew.render.bundle import bundled_page
from clew.render.network.graph_layout import layout_json
from clew.render.safe_text import neutral
from clew.render.verdict_json import dumps


def html_page(graph: Graph, colour: str) -> str:
    """It opens collapsed, coloured by `colour`, and needs no network. Raises `BundleNotBuilt`."""
    title = neutral(graph.name, 80)
    page = {"shows": "graph", "title": title, "about": "", "colour": colour}
    drawn = {**graph.to_json(), "layout": layout_json(graph)}
    return bundled_page(dumps({"page": page, "graph": drawn}, dense=True), title)
