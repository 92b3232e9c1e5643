"""Describes the API: as an OpenAPI document, as TypeScript types, and as the tables of docs/api.md.

All are generated from the shapes in `answer_shapes`. Tests compare the document with real answers.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from clew.records.version import __version__
from clew.web import answer_shapes
from clew.web.answer_shapes import ANSWERS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
NEW_NOTES: Schema = {"type": "object", "properties": {"markdown": TEXT}, "required": ["markdown"]}


def named(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def parameter(
    name: str, schema: Schema, about: str, *, required: bool = False, where: str = "query"
) -> Schema:
    return {"name": name, "in": where, "required": required, "schema": schema, "description": about}


ID = parameter("id", TEXT, "name of the run's folder", required=True, where="path")
RANK = parameter("rank", WHOLE, "the lowest rank if not given")
FROM = parameter("from", NUMBER, "start, in units of the axis, inclusive")
TO = parameter("to", NUMBER, "end, inclusive")
COLUMNS = parameter("columns", WHOLE, "maximum number of columns")


def operations() -> dict[str, dict[str, Schema]]:
    """By path and method: its purpose, its parameters and the name of its answer."""
    return {
        "/runs": _get("All runs, newest first", "Runs"),
        "/runs/{id}": _get("One run: verdict, configuration, available views", "Detail", ID, RANK),
        "/runs/{id}/signals": _get(
            "The series of a run",
            "Signals",
            ID,
            RANK,
            parameter("search", TEXT, "words that must all occur"),
            parameter("group", TEXT, "one group only"),
            parameter("keys", TEXT, "only these"),
            parameter("hist", TEXT, "1: also the bins of histograms"),
            parameter("offset", WHOLE, "number to skip"),
            parameter("limit", WHOLE, "maximum number, up to 5000"),
        ),
        "/runs/{id}/series": _get(
            "Points of series at any zoom: minimum, maximum and mean of each interval",
            "Series",
            ID,
            RANK,
            parameter("keys", TEXT, "series keys, separated by commas", required=True),
            FROM,
            TO,
            parameter("points", WHOLE, "maximum number of intervals, up to 20000"),
            parameter("x", {"enum": ["step", "wall", "epoch"]}, "the axis"),
        ),
        "/runs/{id}/layers": _get(
            "A statistic of every layer over time",
            "Layers",
            ID,
            RANK,
            parameter("stat", TEXT, "the first one offered if not given"),
            FROM,
            TO,
            COLUMNS,
        ),
        "/runs/{id}/histograms": _get(
            "A layer's histograms over time",
            "Histograms",
            ID,
            RANK,
            parameter("site", TEXT, "site id; without it, a list of sites"),
            parameter("stat", TEXT, "activation, gradient, weight or update"),
            parameter("kind", TEXT, "log2 (powers of two) or linear (signed values, where recorded)"),
            FROM,
            TO,
            COLUMNS,
        ),
        "/runs/{id}/graph": _get("The model", "Graph", ID, RANK),
        "/runs/{id}/profile": _get("Where time and memory go", "Profile", ID, RANK),
        "/runs/{id}/data": _get("Recorded samples and batches", "Data", ID, RANK),
        "/runs/{id}/notes": {
            **_get("The notes on a run", "Notes", ID),
            "put": {
                **operation("Change the notes on a run", "Notes", ID),
                "requestBody": {"required": True, "content": _json(NEW_NOTES)},
            },
        },
        "/runs/{id}/events": {"get": _events("Changes of one run, live", ID)},
        "/compare": _get(
            "Runs side by side",
            "Compare",
            parameter("runs", TEXT, "2 to 50 ids, separated by commas", required=True),
        ),
        "/events": {"get": _events("Changes in the list of runs, live")},
        "/openapi.json": {
            "get": {"summary": "This document", "responses": {"200": {"description": "OpenAPI 3.1"}}}
        },
    }


def _get(summary: str, gives: str, *parameters: Schema) -> dict[str, Schema]:
    return {"get": operation(summary, gives, *parameters)}


def operation(summary: str, gives: str, *parameters: Schema) -> Schema:
    return {
        "summary": summary,
        "parameters": list(parameters),
        "responses": {
            "200": {"description": summary, "content": _json(named(gives))},
            "default": {"description": "What is wrong, in one line", "content": _json(named("Error"))},
        },
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _events(summary: str, *parameters: Schema) -> Schema:
    stream = {"text/event-stream": {"schema": TEXT}}
    return {
        "summary": summary,
        "parameters": list(parameters),
        "responses": {"200": {"description": "Server-sent events", "content": stream}},
    }


def document(prefix: str = "") -> Schema:
    """The whole document, for a server under this prefix."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Clew", "version": "1", "description": f"The HTTP API of clew ui {__version__}"},
        "servers": [{"url": f"{prefix}/api/v1"}],
        "security": [{"token": []}],
        "paths": operations(),
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


# ---- from the shapes -------------------------------------------------------------------------

WORDS = ("SeverityWord", "StateWord", "VerdictWord", "AxisWord", "ScaleWord")
PLAIN: dict[Any, tuple[str, str]] = {  # in JSON Schema, in TypeScript
    str: ("string", "string"),
    int: ("integer", "number"),
    float: ("number", "number"),
    bool: ("boolean", "boolean"),
    type(None): ("null", "null"),
}
HEAD = "// Made from src/clew/web/answer_shapes.py by scripts/docs: change it there.\n"


def shapes() -> dict[str, Any]:
    """Every shape by its name, in the order of the file; base classes are part of their subclasses."""
    found = vars(answer_shapes).items()
    return {name: shape for name, shape in found if is_typeddict(shape) and not name.startswith("_")}


def fields(shape: Any) -> Iterator[tuple[str, Any, str, bool]]:
    """For each field its name, type and description, and whether it is always present."""
    for name, hint in get_type_hints(shape, include_extras=True).items():
        note = ""
        if get_origin(hint) is Annotated:
            hint, note = get_args(hint)
        yield name, hint, note, name in shape.__required_keys__


# -- JSON Schema --


def schemas() -> dict[str, Schema]:
    """For the OpenAPI document: its own names first, then the shapes they consist of."""
    named = {name: _schema(shape, top=True) for name, shape in ANSWERS.items()}
    others = {name: _schema(shape, top=True) for name, shape in shapes().items() if name not in _public()}
    return {**named, **others}


def _public() -> dict[str, str]:
    """Shapes that have another name in the OpenAPI document."""
    return {shape.__name__: name for name, shape in ANSWERS.items() if is_typeddict(shape)}


def _schema(hint: Any, *, top: bool = False) -> Schema:
    if is_typeddict(hint):
        name = hint.__name__
        return _record(hint) if top else {"$ref": f"#/components/schemas/{_public().get(name, name)}"}
    if hint is Any:
        return {}
    if hint in PLAIN:
        return {"type": PLAIN[hint][0]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0])}
    if origin is tuple:
        return {"type": "array", "prefixItems": [_schema(part) for part in arguments]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1])}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(part) for part in arguments]}
    raise TypeError(f"a shape can't have a {hint}")


def _record(shape: Any) -> Schema:
    described = {"description": _about(shape)} if _about(shape) else {}
    properties = {
        name: {**_schema(hint), **({"description": note} if note else {})}
        for name, hint, note, _ in fields(shape)
    }
    required = [name for name, _, _, always in fields(shape) if always]
    return {"type": "object", **described, "properties": properties, "required": required}


# -- TypeScript --


def typescript() -> str:
    """The content of ui/src/answers.ts."""
    words = [f"export type {name} = {_choice(getattr(answer_shapes, name))};\n" for name in WORDS]
    return "\n".join([HEAD, "".join(words), *(_interface(name, shape) for name, shape in shapes().items())])


def _interface(name: str, shape: Any) -> str:
    about = _about(shape)
    lines = [f"/** {about} */\n"] if about else []
    lines += [f"export interface {name} {{\n"]
    for field, hint, note, always in fields(shape):
        said = f" // {note}" if note else ""
        lines.append(f"  {field}{'' if always else '?'}: {_type(hint)};{said}\n")
    return "".join([*lines, "}\n"])


def _about(shape: Any) -> str:
    """The first words of its documentation; a shape that is written as a call has none."""
    about = " ".join((shape.__doc__ or "").split())
    return "" if about.startswith("dict(") else about


def _type(hint: Any) -> str:
    if is_typeddict(hint):
        return str(hint.__name__)
    if hint is Any:
        return "unknown"
    if hint in PLAIN:
        return PLAIN[hint][1]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _word(hint) or _choice(hint)
    if origin is list:
        inner = _type(arguments[0])
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if origin is tuple:
        return f"[{', '.join(_type(part) for part in arguments)}]"
    if origin is dict:
        return f"Record<string, {_type(arguments[1])}>"
    return " | ".join(dict.fromkeys(_type(part) for part in arguments))


def _choice(hint: Any) -> str:
    return " | ".join(f'"{value}"' for value in get_args(hint))


def _word(hint: Any) -> str | None:
    """The name of a choice of words, if it has one."""
    return next((name for name in WORDS if getattr(answer_shapes, name) == hint), None)


# -- docs/api.md --


def reference() -> str:
    """One table per shape."""
    return "\n".join(_table(name, shape) for name, shape in shapes().items())


def _table(name: str, shape: Any) -> str:
    rows = [_table_row(*field) for field in fields(shape)]
    head = "| field | type | |\n| --- | --- | --- |\n"
    return f"**{name}** {_about(shape)}".rstrip() + f"\n\n{head}{''.join(rows)}"


def _table_row(name: str, hint: Any, note: str, always: bool) -> str:
    kind = _type(hint).replace("|", "\\|")
    return f"| `{name}` | `{kind}` | {'; '.join(filter(None, ['' if always else 'may be absent', note]))} |\n"
