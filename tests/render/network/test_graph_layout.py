"""Where the boxes and lines of a graph are placed; without torch."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from random import Random
from xml.etree import ElementTree

import pytest

from clew.records.network import Edge, Graph, Node
from clew.render.network.box_places import fit, grid_of, pressed
from clew.render.network.box_rows import ranks_of, rows_of
from clew.render.network.graph_layout import layout_json
from clew.render.network.graph_levels import Levels
from clew.render.network.graph_loops import loops_of
from clew.render.network.graph_svg import svg
from clew.render.network.node_boxes import Colour, box_width, text_width
from clew.render.network.recorded_graph import read_graph

SVG = "{http://www.w3.org/2000/svg}"


def some_edges(boxes: int, seed: int) -> list[tuple[int, int]]:
    random = Random(seed)
    chain = [(n, n + 1) for n in range(boxes - 1) if random.random() < 0.8]
    far = {tuple(sorted(random.sample(range(boxes), 2))) for _ in range(boxes)}
    return sorted({*chain, *((a, b) for a, b in far)})


def test_ranks_follow_the_longest_way_and_survive_cycles() -> None:
    assert ranks_of([1, 2, 3], [(1, 2), (2, 3), (1, 3)]) == {1: 0, 2: 1, 3: 2}
    assert set(ranks_of([1, 2], [(1, 2), (2, 1)])) == {1, 2}


def test_a_long_line_has_a_passage_in_every_row_between() -> None:
    rows = rows_of(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert [len(row) for row in rows.rows] == [1, 2, 2, 1]
    assert {(a, b) for a, b, edge in rows.lines if edge == 3} == {(0, 4), (4, 5), (5, 3)}


def test_lines_of_one_tensor_share_their_passages() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (0, 2), (0, 3)]
    assert sum(len(row) for row in rows_of(4, edges).rows) == 4 + 2


def test_lines_that_end_in_one_box_share_their_passages() -> None:
    chain = [(n, n + 1) for n in range(6)]
    edges = [*chain, *((n, 6) for n in range(4))]
    assert sum(len(row) for row in rows_of(7, edges).rows) == 7 + 5


def test_what_is_needed_late_stands_just_above_where_it_is_needed() -> None:
    rows = rows_of(5, [(0, 1), (1, 2), (2, 3), (4, 3)])
    assert next(n for n, row in enumerate(rows.rows) if 4 in row) == 2


def test_rows_are_ordered_so_that_lines_do_not_cross_where_they_need_not() -> None:
    rows = rows_of(6, [(0, 5), (1, 4), (2, 3)], first=(0, 1, 2))
    top, bottom = rows.rows
    partner = {0: 5, 1: 4, 2: 3}
    assert [partner[place] for place in top] == bottom


def test_places_keep_their_order_and_distance_and_are_nearest_to_what_was_wanted() -> None:
    assert pressed([0, 100], [1, 1], [10]) == [0, 100]
    assert pressed([5, 5], [1, 1], [10]) == [0, 10]
    assert pressed([5, 5], [1, 3], [10]) == pytest.approx([-2.5, 7.5])


@pytest.mark.parametrize("seed", range(12))
def test_boxes_of_a_row_never_overlap(seed: int) -> None:
    boxes = 14
    rows = rows_of(boxes, some_edges(boxes, seed))
    widths = [float(Random(seed + n).randint(40, 300)) for n in range(boxes)]
    places = fit(grid_of(rows, widths), widths, [40.0] * boxes)
    for row in rows.rows:
        spans = [
            (places.x[p] - w / 2, places.x[p] + w / 2) for p in row for w in [widths[p] if p < boxes else 0.0]
        ]
        assert all(one[1] < other[0] for one, other in pairwise(spans))


def test_columns_stay_columns_when_a_box_is_opened() -> None:
    rows = rows_of(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    widths = [100.0] * 4
    grid = grid_of(rows, widths)
    closed = fit(grid, widths, [40.0] * 4)
    opened = fit(grid, [100.0, 100.0, 700.0, 100.0], [40.0, 40.0, 500.0, 40.0])
    for places in (closed, opened):
        assert places.x[1] == places.x[2]  # a single file
        assert places.x[4] == places.x[5]  # the passages beside it
        assert places.x[0] == places.x[3]
    assert opened.x[5] - opened.x[2] >= 350 + 12
    assert opened.bottoms[2] - opened.tops[2] == 500


@pytest.mark.parametrize("seed", range(12))
def test_opened_boxes_of_a_row_never_overlap(seed: int) -> None:
    boxes = 14
    rows = rows_of(boxes, some_edges(boxes, seed))
    grid = grid_of(rows, [60.0] * boxes)
    widths = [float(Random(seed + n).choice([60, 60, 400, 900])) for n in range(boxes)]
    places = fit(grid, widths, [40.0] * boxes)
    for row in rows.rows:
        wide = [widths[p] if p < boxes else 0.0 for p in row]
        spans = [(places.x[p] - w / 2, places.x[p] + w / 2) for p, w in zip(row, wide, strict=True)]
        assert all(one[1] + 11.9 < other[0] for one, other in pairwise(spans))


def module(number: int, parent: int | None, name: str, kind: str, hidden: bool) -> Node:
    return Node(number, parent, "module", name, kind, f"{parent}.{name}", (), hidden=hidden)


def repeats(between: bool) -> Graph:
    """Three layers recorded as repeats of the first, with or without an op after each."""
    nodes = [module(n, None, f"layers.{n}", "Linear", n > 0) for n in range(3)]
    nodes[0] = replace(nodes[0], repeat=3)
    nodes += [Node(10 + 2 * n, n, "op", "addmm", "", "", (), hidden=n > 0) for n in range(3)]
    nodes += [Node(11 + 2 * n, None, "op", f"op{n}", "", "", ()) for n in range(3)] if between else []
    order = sorted(node.id for node in nodes if node.id >= 10)
    return Graph("net", tuple(nodes), tuple(Edge(a, b) for a, b in pairwise(order)))


def test_repeats_with_ops_between_them_are_drawn_one_by_one() -> None:
    shown = [(n.label, n.repeat) for n in Levels(repeats(between=False)).level(None).nodes]
    assert shown == [("layers.0", 3)]
    shown = [(n.label, n.repeat) for n in Levels(repeats(between=True)).level(None).nodes]
    assert shown == [("layers.0", 1), ("op0", 1), ("layers.1", 1), ("op1", 1), ("layers.2", 1), ("op2", 1)]


def test_a_repeat_that_is_not_drawn_has_all_its_parts_inside_when_it_is_unfolded() -> None:
    nodes = [module(n, None, f"blocks.{n}", "Block", n > 0) for n in range(2)]
    for n in range(2):
        first = 10 * n + 2
        nodes += [module(first + k, n, name, name, n > 0) for k, name in enumerate("ab")]
        nodes += [Node(first + 2 + k, first + k, "op", "add", "", "", (), hidden=n > 0) for k in range(2)]
    graph = Graph("net", tuple(nodes), (Edge(4, 5), Edge(5, 14), Edge(14, 15)))
    assert [n.label for n in Levels(graph).level(1).nodes] == ["a", "b"]
    layout = layout_json(graph)
    assert layout["stands_in"] == {"1": 0}
    assert layout["unfolded"][""]["nodes"] == [0, 1]
    assert layout["levels"]["1"]["nodes"] == [12, 13]


def test_a_recorded_graph_is_read_back_as_it_was() -> None:
    graph = repeats(between=True)
    assert read_graph(json.loads(json.dumps(graph.to_json()))) == graph


@pytest.mark.parametrize(
    "damage",
    [
        {"nodes": [{"id": 0, "parent": 1, "kind": "op"}, {"id": 1, "parent": 0, "kind": "op"}]},  # in circles
        {"nodes": [{"id": 0, "parent": 7, "kind": "op"}]},  # inside what is not there
        {
            "nodes": [{"id": 0, "parent": None, "kind": "op"}, {"id": 0, "parent": None, "kind": "op"}]
        },  # twice
        {"nodes": [{"id": "0", "parent": None, "kind": "op"}]},
        {"nodes": [{"id": -3, "parent": None, "kind": "op"}]},
        {"nodes": []},
        {},
        [],
        None,
    ],
)
def test_a_damaged_graph_has_no_layout(damage: object) -> None:
    assert read_graph(damage) is None


def test_what_is_odd_in_a_recorded_graph_is_left_out() -> None:
    node = {"id": 0, "parent": None, "kind": "op", "label": 3, "flops": "x", "outputs": [{"shape": "y"}, 5]}
    edges = [{"source": 0, "target": 9}, {"source": None}, 3, {"source": 0, "target": 0}]
    graph = read_graph({"nodes": [node], "edges": edges})
    assert graph == Graph("", (Node(0, None, "op", "", "", "", ()),), (Edge(0, 0),))
    assert layout_json(graph)["levels"][""]["nodes"] == [0]


def picture(boxes: int, edges: list[tuple[int, int]]) -> Graph:
    nodes = [Node(n, None, "op", "a" * (1 + 5 * (n % 4)), "", "", ()) for n in range(boxes)]
    return Graph("net", tuple(nodes), tuple(Edge(a, b) for a, b in edges))


@pytest.mark.parametrize("seed", range(12))
def test_no_line_runs_through_a_box(seed: int) -> None:
    graph = picture(14, some_edges(14, seed))
    tree = ElementTree.fromstring(svg(graph, Colour(graph), expand=True))
    rects = []
    for group in tree.iter(f"{SVG}g"):
        x, y = map(float, re.findall(r"[\d.]+", group.attrib["transform"]))
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        rects.append((x, y, x + float(rect.attrib["width"]), y + float(rect.attrib["height"])))
    paths = [p.attrib["d"] for p in tree.iter(f"{SVG}path") if p.attrib.get("fill") == "none"]
    assert len(paths) >= len(graph.edges) - 14
    for x, y in (point for path in paths for point in points(path)):
        assert not any(
            left + 1 < x < right - 1 and top + 1 < y < bottom - 1 for left, top, right, bottom in rects
        )


def points(path: str) -> list[tuple[float, float]]:
    """Many points along a path of M, V and C."""
    found: list[tuple[float, float]] = []
    x = y = 0.0
    for command, text in re.findall(r"([MVC])([^MVC]*)", path):
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", text)]
        if command == "M":
            x, y = numbers
        elif command == "V":
            found += [(x, y + (numbers[0] - y) * t / 20) for t in range(21)]
            y = numbers[0]
        else:
            x1, y1, x2, y2, x3, y3 = numbers
            for t in (n / 40 for n in range(41)):
                weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
                found.append(
                    (
                        sum(w * c for w, c in zip(weights, (x, x1, x2, x3), strict=True)),
                        sum(w * c for w, c in zip(weights, (y, y1, y2, y3), strict=True)),
                    )
                )
            x, y = x3, y3
    return found


def test_boxes_are_wide_enough_for_wide_letters() -> None:
    assert text_width("WWWW") >= 4 * 10.5  # of DejaVu Sans, at eleven points
    assert text_width("日本") >= 22
    assert box_width(["3×7×16 · 1,632 params · 64.5 kFLOPs"]) > 218 + 8  # measured in DejaVu Sans


def test_steps_that_feed_each_other_are_a_loop() -> None:
    wires = {2: [1], 3: [2], 4: [3], 5: [4], 6: [5]}
    assert loops_of([1, 2, 3, 4, 5, 6], "ababab", wires) == [[[1, 2], [3, 4], [5, 6]]]


def test_steps_that_look_alike_and_are_wired_otherwise_are_no_loop() -> None:
    assert loops_of([1, 2, 3], "aaa", {2: [0], 3: [0]}) == []
    assert loops_of([1, 2, 3, 4], "aaaa", {2: [1], 3: [1], 4: [3]}) == []
    assert loops_of([1, 2, 3], "aaa", {2: [1, "x"], 3: [2, "y"]}) == []


def test_the_longest_loop_wins() -> None:
    things = list(range(12))
    wires = {n: [n - 1] for n in things[1:]}
    (turns,) = loops_of(things, "aaab" * 3, wires)
    assert [len(turn) for turn in turns] == [4, 4, 4]
