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
from clew.show.model_graph import GraphFormatError, render_tree, write_graph
from clew.show.model_layers import Colour, Level, Levels, ranks_of
from clew.structure import Graph, Node


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
    assert shown == ["tokens", "positions", "blocks.0", "head", "arange", "add"]
    names = {n.id: n.label for n in levels.level(root).nodes}
    drawn = {(names[a], names[b]) for a, b, _ in levels.level(root).edges}
    assert {("add", "blocks.0"), ("blocks.0", "head"), ("tokens", "add")} <= drawn


def test_ranks_follow_the_longest_way_and_survive_cycles() -> None:
    assert ranks_of([1, 2, 3], [(1, 2), (2, 3), (1, 3)]) == {1: 0, 2: 1, 3: 2}
    assert set(ranks_of([1, 2], [(1, 2), (2, 1)])) == {1, 2}


def test_a_residual_connection_is_drawn_from_the_modules_own_input_beside_the_boxes() -> None:
    graph = clew.graph(GPT(), torch.zeros(1, 5, dtype=torch.long))
    block = next(n for n in graph.nodes if n.type == "Block")
    level = Levels(graph).level(block.id)
    labels = {n.id: n.label for n in level.nodes}
    around = {(labels[a], labels[b]) for a, b in level.lanes()}
    assert around == {("input", "add"), ("add", "add")}
    straight = {(labels[a], labels[b]) for a, b, _ in level.edges} - around
    assert {("input", "norm1"), ("norm1", "attention"), ("mlp", "add")} <= straight


def test_ways_beside_the_boxes_are_shared_only_where_they_do_not_overlap() -> None:
    nodes = [Node(n, None, "op", str(n), "", "", ()) for n in range(7)]
    edges = [(0, 2, None), (2, 4, None), (1, 5, None)]
    level = Level(nodes, edges, {n: n for n in range(7)})
    lanes = level.lanes()
    assert lanes[0, 2] == lanes[2, 4]
    assert lanes[1, 5] != lanes[0, 2]


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
    assert parser.fetched == []
    match = re.search(r"const data = (\{.*\}), open", text)
    assert match is not None
    data = json.loads(match.group(1))
    (opened,) = data["open"]
    assert len(data["levels"][str(opened)]["nodes"]) == 6
    assert "@DATA@" not in text


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
    health = Colour(graph, "health", values={"0": 1.0})
    assert health.of(small) != health.of(large)


def test_a_graph_of_ten_thousand_ops_is_written(tmp_path: Path) -> None:
    def deep(x: Tensor) -> Tensor:
        for _ in range(10_000):
            x = x + 1
        return x

    graph = clew.graph(deep, (2, 3))
    assert len(graph.nodes) == 10_002
    write_graph(graph, tmp_path / "deep.html")
    assert (tmp_path / "deep.html").stat().st_size < 200_000
