"""One source of the API's shapes: the schema, the browser's types and the reference are made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from clew.web.answer_shapes import ANSWERS
from clew.web.openapi import reference, schemas, shapes, typescript

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
        assert f"export interface {name} {{" in types
        assert f"**{name}**" in tables
    assert "  bad?: number[]; // non-finite values; absent where all are zero\n" in types
    assert "  root_cause: RootCause | null;\n" in types
    assert "  class: string | null;\n" in types
    assert "| `bad` | `number[]` | may be absent; non-finite values; absent where all are zero |" in tables
    assert "| `worst` | `SeverityWord \\| null` |  |" in tables


def test_what_is_committed_is_up_to_date() -> None:
    command = [sys.executable, ROOT / "scripts" / "docs", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
