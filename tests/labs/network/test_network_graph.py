from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from networks import GPT, Experts, ResNet, Siamese
from torch import Tensor, nn

import clew
from clew.records.network import Graph, Node
from clew.render import html_bundle
from clew.render.html_bundle import BundleNotBuilt
from clew.render.network.graph_files import GraphFormatError, render_tree, write_graph
from clew.render.network.graph_layout import MOST, layout_json
from clew.render.network.graph_levels import Level, Levels
from clew.render.network.node_boxes import Colour


def named(graph: Graph) -> dict[int, str]:
    return {n.id: f"{n.path}.{n.label}" if n.kind == "op" else n.label for n in graph.nodes}


def edges(graph: Graph) -> set[tuple[str, str]]:
    names = named(graph)
    return {(names[e.source], names[e.target]) for e in graph.edges}


def test_edges_are_those_of_the_execution() -> None:
    class Skip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x).relu() + x

    graph = clew.graph(Skip(), (2, 3))
    assert edges(graph) == {
        ("input", "inner.addmm"),
        ("inner.addmm", ".relu"),
        (".relu", ".add"),
        ("input", ".add"),
        (".add", "output"),
    }
    assert {e.tensor.shape for e in graph.edges if e.tensor} == {(2, 3)}


def test_a_model_that_torch_export_can_not_take_has_a_graph() -> None:
    x = torch.randn(8, 8)
    graph = clew.graph(Experts(), torch.cat([x, -x]))
    assert {n.path for n in graph.nodes if n.kind == "module"} == {"", "router", "experts.0", "experts.1"}


def test_a_module_used_twice_is_two_calls_in_the_graph() -> None:
    graph = clew.graph(Siamese(), [(2, 6), (2, 6)])
    assert [n.path for n in graph.nodes if n.type == "Linear"] == ["tower.0", "tower.0"]


def test_repeated_blocks_are_folded() -> None:
    blocks = [n for n in clew.graph(GPT(layers=6), (2, 5)).nodes if n.type == "Block"]
    assert [(n.label, n.repeat, n.hidden) for n in blocks[:2]] == [
        ("blocks.0", 6, False),
        ("blocks.1", 1, True),
    ]


def test_the_outermost_level_of_a_folded_graph_is_small() -> None:
    levels = Levels(clew.graph(GPT(layers=6), (2, 5)))
    (root,) = levels.open_at_first()
    shown = [n.label for n in levels.level(root).nodes]
    assert shown == ["input", "tokens", "arange", "positions", "add", "blocks.0", "head", "output"]
    names = {n.id: n.label for n in levels.level(root).nodes}
    drawn = {(names[a], names[b]) for a, b, _ in levels.level(root).edges}
    assert {("add", "blocks.0"), ("blocks.0", "head"), ("tokens", "add")} <= drawn


def rank_of(level: Level) -> dict[str, int]:
    return {
        level.nodes[place].label: number
        for number, row in enumerate(level.rows.rows)
        for place in row
        if place < len(level.nodes)
    }


def test_a_residual_connection_is_drawn_from_the_modules_own_input_beside_the_boxes() -> None:
    graph = clew.graph(GPT(), torch.zeros(1, 5, dtype=torch.long))
    block = next(n for n in graph.nodes if n.type == "Block")
    level = Levels(graph).level(block.id)
    labels = [n.label for n in level.nodes]
    flow = {(labels[a], labels[b]) for a, b, _ in named_edges(level)}
    assert {("input", "norm1"), ("input", "add"), ("norm1", "attention"), ("mlp", "add")} <= flow
    rows = level.rows.rows
    assert any(place >= len(labels) for place in rows[rank_of(level)["norm1"]])


def named_edges(level: Level) -> list[tuple[int, int, object]]:
    places = {n.id: place for place, n in enumerate(level.nodes)}
    return [(places[a], places[b], t) for a, b, t in level.edges]


def test_every_input_has_a_box_with_the_forwards_name_for_it() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, left: Tensor, right: Tensor, extra: list[Tensor]) -> Tensor:
            return self.inner(left) + self.inner(right) + extra[0]

    graph = clew.graph(Pair(), [torch.zeros(2, 3), torch.zeros(2, 3), [torch.zeros(3)]])
    assert [n.label for n in graph.nodes if n.kind == "input"] == ["left", "right", "extra[0]"]
    assert ("right", "inner.addmm") in edges(graph)
    levels = Levels(graph)
    (root,) = levels.open_at_first()
    shown = [n.label for n in levels.level(root).nodes]
    assert shown[:5] == ["left", "right", "extra[0]", "inner", "inner (call 2)"]


def test_the_tensors_of_a_nested_input_are_told_apart() -> None:
    class Nest(nn.Module):
        def forward(self, batch: dict[str, Tensor], states: list[Tensor]) -> Tensor:
            return batch["x"] + batch["y"] + states[0] + states[1]

    x = torch.zeros(2)
    graph = clew.graph(Nest(), [{"x": x, "y": x + 1}, [x + 2, x + 3]])
    labels = [n.label for n in graph.nodes if n.kind == "input"]
    assert labels == ["batch.x", "batch.y", "states[0]", "states[1]"]


def test_the_inputs_of_an_inner_module_are_told_apart_by_where_they_come_from() -> None:
    class Join(nn.Module):
        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return a * b

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right, self.join = nn.Linear(3, 3), nn.Linear(3, 3), Join()

        def forward(self, x: Tensor) -> Tensor:
            return self.join(self.left(x), self.right(x))

    graph = clew.graph(Two(), (2, 3))
    join = next(n for n in graph.nodes if n.type == "Join")
    shown = [n.label for n in Levels(graph).level(join.id).nodes if n.kind == "input"]
    assert sorted(shown) == ["from left", "from right"]


def test_results_that_leave_a_module_from_several_places_meet_in_one_box() -> None:
    class Inner(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y = x.exp()
            return y, y.sin()

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Tensor) -> Tensor:
            y, z = self.inner(x)
            return y + z

    graph = clew.graph(Outer(), (2, 3))
    inner = next(n for n in graph.nodes if n.type == "Inner")
    level = Levels(graph).level(inner.id)
    labels = {n.id: n.label for n in level.nodes}
    assert {(labels[a], labels[b]) for a, b, _ in level.edges} == {
        ("exp", "sin"), ("exp", "output"), ("sin", "output"),
    }  # fmt: skip


class Steps(nn.Module):
    """A loop over time that feeds itself."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], 4)
        found = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            found.append(h)
        return torch.stack(found, 1)


def test_a_loop_is_drawn_once_and_its_parameters_are_counted_once(tmp_path: Path) -> None:
    graph = clew.graph(Steps(), (2, 6, 4))
    levels = Levels(graph)
    (root,) = levels.open_at_first()
    level = levels.level(root)
    assert [(n.label, n.repeat) for n in level.nodes if n.kind == "module"] == [("cell", 6)]
    assert len([n for n in level.nodes if n.label == "select"]) == 1
    write_graph(graph, tmp_path / "net.svg")
    text = (tmp_path / "net.svg").read_text()
    assert "cell ×6  GRUCell" in text
    assert ">2×4 · 120 params" in text


def test_equal_branches_side_by_side_are_no_loop() -> None:
    def three(x: Tensor) -> Tensor:
        parts = [x.exp(), x.exp(), x.exp()]
        return torch.cat(parts)

    level = Levels(clew.graph(three, (2, 3))).level(None)
    assert [n.label for n in level.nodes].count("exp") == 3


def test_blocks_with_something_between_them_are_not_folded_into_one() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

        def forward(self, x: Tensor) -> Tensor:
            return self.layers[1](self.layers[0](x).exp()).sin()

    graph = clew.graph(Mixed(), (2, 3))
    assert [n.repeat for n in graph.nodes if n.type == "Linear"] == [1, 1]


def test_blocks_and_what_runs_between_them_are_folded_together() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(5)])

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = x + layer(x).relu()
            return x

    levels = Levels(clew.graph(Residual(), (2, 3)))
    (root,) = levels.open_at_first()
    shown = [(n.label, n.repeat) for n in levels.level(root).nodes if n.kind in ("op", "module")]
    assert shown == [("layers.0", 5), ("relu", 5), ("add", 5)]


def test_a_graph_has_the_names_that_sizes_have_in_the_table() -> None:
    graph = clew.graph(GPT(), ("batch", "time"))
    shapes = {n.label: n.outputs[0].text() for n in graph.nodes if n.parent in (0, None) and n.outputs}
    assert shapes["input"] == "batch × time"
    assert shapes["tokens"].startswith("batch × time ×")
    assert shapes["arange"] == "time"
    assert shapes["add"].startswith("batch × time ×")
    assert all(e.tensor.text().startswith(("batch", "time")) for e in graph.edges if e.tensor)


def test_a_network_that_takes_no_odd_sizes_is_drawn_with_even_ones() -> None:
    class Halves(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.view(x.shape[0], 2, x.shape[1] // 2)

    graph = clew.graph(Halves(), ("batch", "width"))
    assert next(n for n in graph.nodes if n.kind == "output").outputs[0].shape[1] == 2


@pytest.mark.parametrize("expand", [False, True])
def test_svg_is_well_formed_and_shows_every_module_of_the_level(expand: bool, tmp_path: Path) -> None:
    write_graph(clew.graph(ResNet(), (2, 3, 16, 16)), tmp_path / "net.svg", expand=expand)
    tree = ElementTree.parse(tmp_path / "net.svg")
    texts = {t.text or "" for t in tree.iter("{http://www.w3.org/2000/svg}text")}
    assert any(t.startswith("stem") for t in texts)
    assert any(t.startswith("conv1") for t in texts) == expand


def test_dot_has_a_box_for_each_end_of_each_arrow(tmp_path: Path) -> None:
    for expand in (False, True):
        write_graph(clew.graph(GPT(layers=2), (2, 5)), tmp_path / "net.dot", expand=expand)
        text = (tmp_path / "net.dot").read_text()
        boxes = set(re.findall(r"^  (n\d+) \[", text, re.M))
        ends = {end for pair in re.findall(r"(n\d+) -> (n\d+)", text) for end in pair}
        assert ends
        assert ends <= boxes
        assert text.count("{") == text.count("}")


def test_json_holds_the_whole_graph(tmp_path: Path) -> None:
    graph = clew.graph(ResNet(), (2, 3, 16, 16))
    write_graph(graph, tmp_path / "net.json")
    data = json.loads((tmp_path / "net.json").read_text())
    assert len(data["nodes"]) == len(graph.nodes)
    assert data["edges"][0].keys() == {"source", "target", "tensor"}


class _Resources(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [str(v) for k, v in attrs if k in ("src", "href")]


def test_html_needs_nothing_else_and_opens_collapsed(tmp_path: Path) -> None:
    write_graph(clew.graph(GPT(layers=6), (2, 5)), tmp_path / "net.html")
    text = (tmp_path / "net.html").read_text(encoding="utf-8")
    parser = _Resources()
    parser.feed(text)
    assert parser.fetched == ["data:,"]  # an empty icon, or a browser asks for one
    match = re.search(r'id="clew-data">(.*?)</script>', text, re.S)
    assert match is not None
    layout = json.loads(match.group(1))["graph"]["layout"]
    (opened,) = layout["first"]
    assert len(layout["levels"][str(opened)]["nodes"]) == 8
    names = [layout["boxes"][box][3].split("  ")[0] for box in layout["levels"][str(opened)]["boxes"]]
    assert "blocks.0 ×6" in names
    assert "blocks.1" not in names  # it is drawn when the blocks are unfolded
    names = [layout["boxes"][box][3].split("  ")[0] for box in layout["unfolded"][str(opened)]["boxes"]]
    assert {"blocks.0", "blocks.5"} <= set(names)


def test_what_looks_the_same_is_written_once() -> None:
    small, large = (layout_json(clew.graph(GPT(layers=n), (2, 5))) for n in (4, 24))
    assert len(small["grids"]) + 1 >= len(large["grids"])  # but for the outermost level, unfolded
    assert len(large["levels"]) > 3 * len(small["levels"])


def test_a_name_can_not_break_out_of_the_page(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    node = Node(0, None, "module", evil, evil, evil, ())
    for ending in ("html", "svg", "dot"):
        write_graph(Graph(evil, (node,), ()), tmp_path / f"net.{ending}")
        text = (tmp_path / f"net.{ending}").read_text()
        assert "<script>alert" not in text or ending == "dot"


def test_an_ending_that_is_no_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GraphFormatError, match=r"\.png"):
        write_graph(Graph("net", (), ()), tmp_path / "net.png")


def test_the_tree_is_drawn_in_the_order_of_execution() -> None:
    paper = StringIO()
    render_tree(clew.graph(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), (2, 3)), stream=paper, width=80)
    assert [line.split()[0] for line in paper.getvalue().splitlines()] == [
        "input", "Sequential", "0", "addmm", "1", "relu", "output",
    ]  # fmt: skip


def test_colours_grow_with_what_they_stand_for() -> None:
    graph = clew.graph(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 400)), (2, 4))
    small, large = (next(n for n in graph.nodes if n.path == p and n.kind == "module") for p in ("0", "1"))
    for by in ("flops", "parameters"):
        colour = Colour(graph, by)
        assert colour.of(small) != colour.of(large)


def test_a_graph_of_ten_thousand_ops_is_written(tmp_path: Path) -> None:
    def deep(x: Tensor) -> Tensor:
        for _ in range(10_000):
            x = x + 1
        return x

    graph = clew.graph(deep, (2, 3))
    assert len(graph.nodes) == 10_002
    write_graph(graph, tmp_path / "deep.html")
    layout = layout_json(graph)
    assert len(layout["levels"][""]["nodes"]) == 3  # input, the loop, output
    assert layout["unfolded"][""]["more"] == 10_002 - MOST
    assert len(json.dumps(layout)) < 300_000


def test_without_the_browsers_page_that_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_bundle, "STATIC", tmp_path)
    with pytest.raises(BundleNotBuilt, match=r"^the page is not built: run scripts/build-ui"):
        write_graph(Graph("net", (), ()), tmp_path / "net.html")
    assert not (tmp_path / "net.html").exists()
