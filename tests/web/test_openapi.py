"""One source of the API's shapes: the schema, the browser's types and the reference are made from it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema

from clew.records.finding import Evidence, Exhibit, Finding, Proof, Severity
from clew.records.network import Graph, Node, TensorInfo
from clew.records.site import Site
from clew.records.step_costs import FlameFrame, ModuleCost, Profile, StepMemory, TimelineEvent
from clew.records.verdict import Ignored, NotJudged, Verdict
from clew.render.network.graph_layout import layout_json
from clew.render.run_summary import RunSummary
from clew.render.verdict_json import dumps, verdict_json
from clew.web.answer_shapes import ANSWERS
from clew.web.openapi import parameter_table, reference, schemas, typescript
from clew.web.shape_fields import shapes

ROOT = Path(__file__).parents[2]


def test_every_reference_of_the_schema_leads_somewhere() -> None:
    made = schemas()
    assert ANSWERS.keys() <= made.keys()
    asked = set()

    def walk(part: object) -> None:
        if isinstance(part, dict):
            asked.update([part["$ref"].rpartition("/")[2]] if "$ref" in part else [])
            for each in part.values():
                walk(each)
        elif isinstance(part, list):
            for each in part:
                walk(each)

    walk(made)
    assert asked <= made.keys()


def test_fields_that_may_be_absent_are_not_required() -> None:
    series = schemas()["DrawnSeries"]
    assert "min" in series["properties"]
    assert "min" not in series["required"]
    assert {"key", "mean", "x"} <= set(series["required"])


def test_types_and_tables_have_every_shape_with_its_notes() -> None:
    types, tables = typescript(), reference()
    for name in shapes():
        assert f"export interface {name} {{" in types or f"export type {name} = [" in types
        assert f"**{name}**" in tables
    assert "  bad?: number[]; // non-finite values; absent where all are zero\n" in types
    assert "  root_cause: RootCause | null;\n" in types
    assert "  class: string | null;\n" in types
    assert "| `bad` | `number[]` | may be absent; non-finite values; absent where all are zero |" in tables
    assert "| `worst` | `SeverityWord \\| null` |  |" in tables


def test_the_fields_of_a_dataclass_are_those_of_its_json() -> None:
    loader, frame = schemas()["LoaderFact"], schemas()["FlameFrame"]
    assert "num_workers" in loader["properties"]  # its name in the JSON, not in Python
    assert not {"workers", "step"} & loader["properties"].keys()  # `step` is not written
    assert loader["required"] == []  # an older version may have recorded less
    assert frame["required"] == ["name", "value"]
    assert frame["properties"]["children"]["items"] == {"$ref": "#/components/schemas/FlameFrame"}
    types = typescript()
    assert "  children?: FlameFrame[];\n" in types
    assert "  readings?: [number, number][]; // step, rss\n" in types
    assert "export type LayoutBox = [width: number, height: number, title: number, " in types
    assert "type: ignore" not in types


def conforms(data: object, shape: str) -> None:
    """It is as the schema says, and has no field that the schema does not know."""
    closed = {
        name: {**one, "additionalProperties": False} if one.get("properties") else one
        for name, one in schemas().items()
    }
    jsonschema.validate(data, {**closed[shape], "components": {"schemas": closed}})


def test_a_profile_is_written_as_its_shape_says() -> None:
    frame = FlameFrame("step", 1.0, children=(FlameFrame("forward", 0.5),))
    event = TimelineEvent("forward", 0.0, 0.5)
    profile = Profile(
        modules=(ModuleCost("fc", "Linear"),), flame=frame, timeline=(event,), memory=StepMemory(root=frame)
    )
    conforms(profile.to_json(), "ProfileJson")
    assert profile.to_json().keys() == schemas()["ProfileJson"]["properties"].keys()


def test_a_verdict_is_written_as_its_shape_says() -> None:
    """With every field: what `to_json` leaves out or adds differs from the shape."""
    place = Site("fc1", "backward", "train.py", 3, "train", "net", "weight")
    evidence = Evidence("it rose", "loss", place, (1,), (3.0,), (0.1,), "learning rate")
    finding = Finding(
        check="dead-units",
        id="ACT001",
        severity=Severity.ERROR,
        message="dead",
        fix="none",
        site=place,
        evidence=(evidence,),
        exhibits=(Exhibit("numbers", "sample 3", [1]),),
        proof=Proof("none", 30, 3, 2.5, 0.5, (2.0, 3.0), (0.25, 0.75), True),
    )
    verdict = Verdict((finding,), (NotJudged("a", "b"),), ("c",), (Ignored("d", "e"),))
    data = json.loads(dumps(verdict_json(verdict, RunSummary("x", "", "train.py", "finished", 3, 4))))
    conforms(data, "VerdictJson")
    (found,) = data["findings"]
    parts = {
        "VerdictJson": data,
        "JudgedRun": data["run"],
        "FindingJson": found,
        "EvidenceJson": found["evidence"][0],
        "ExhibitJson": found["exhibits"][0],
        "ProofJson": found["proof"],
        "NotJudgedJson": data["not_judged"][0],
        "IgnoredJson": data["ignored"][0],
    }
    for shape, part in parts.items():
        assert part.keys() == schemas()[shape]["properties"].keys()


def test_a_graph_and_its_layout_are_written_as_their_shapes_say() -> None:
    tensor = TensorInfo((2,), "float32", "cpu", False, 8)
    graph = Graph(
        "Net", (Node(0, None, "module", "Net", "Net", "", ()), Node(1, 0, "op", "add", "", "", (tensor,))), ()
    )
    conforms(json.loads(json.dumps(graph.to_json())), "GraphFile")
    conforms(json.loads(json.dumps(layout_json(graph))), "GraphLayout")


def test_every_parameter_is_listed_with_its_limits() -> None:
    assert (
        "| `runs/{id}/signals` | `limit` | integer | 200 | 1 to 5000 | maximum number |\n"
        in parameter_table()
    )
    assert "| `compare` | `runs` | list | required | 2 to 50 |" in parameter_table()


def test_what_is_committed_is_up_to_date() -> None:
    command = [sys.executable, ROOT / "scripts" / "docs", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
