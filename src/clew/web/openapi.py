"""Describes the API: as an OpenAPI document, as TypeScript types, and as the tables of docs/api.md.

All are generated from the shapes in `answer_shapes`. Tests compare the document with real answers.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from clew.records.version import __version__
from clew.web import answer_shapes
from clew.web.answer_shapes import ANSWERS
from clew.web.endpoints import ENDPOINTS, EVENTS, ID, RANK, Endpoint, Parameter
from clew.web.shape_fields import ShapeField, about, fields, is_record, is_row, shapes

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NEW_NOTES: Schema = {"type": "object", "properties": {"markdown": TEXT}, "required": ["markdown"]}
STREAM: Schema = {"text/event-stream": {"schema": TEXT}}


def operations() -> dict[str, dict[str, Schema]]:
    """By path and method: its purpose, its parameters and the name of its answer."""
    found: dict[str, dict[str, Schema]] = {}
    for endpoint in ENDPOINTS:
        found.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return found


def _operation(endpoint: Endpoint) -> Schema:
    listed = [_parameter(parameter) for parameter in endpoint.parameters]
    made: Schema = {"summary": endpoint.summary, **({"parameters": listed} if listed else {})}
    if endpoint.method == "PUT":
        made["requestBody"] = {"required": True, "content": _json(NEW_NOTES)}
    if endpoint.gives in ANSWERS:
        answer = {"description": endpoint.summary, "content": _json(_named(endpoint.gives))}
        problem = {"description": "What is wrong, in one line", "content": _json(_named("Error"))}
        return {**made, "responses": {"200": answer, "default": problem}}
    content = {"content": STREAM} if endpoint.gives == EVENTS else {}
    return {**made, "responses": {"200": {"description": endpoint.gives, **content}}}


def _parameter(parameter: Parameter) -> Schema:
    return {
        "name": parameter.name,
        "in": "path" if parameter.name == "id" else "query",
        "required": parameter.required,
        "schema": parameter.schema(),
        "description": parameter.about,
    }


def _named(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


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
HEAD = "// Generated from src/clew/web/answer_shapes.py by scripts/docs: change it there.\n"


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
    if is_record(hint) or is_row(hint):
        name = hint.__name__
        return _record(hint) if top else _named(_public().get(name, name))
    if hint is Any:
        return {}
    if hint in PLAIN:
        return {"type": PLAIN[hint][0]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is list or (origin is tuple and arguments[1:] == (...,)):
        return {"type": "array", "items": _schema(arguments[0])}
    if origin is tuple:
        return {"type": "array", "prefixItems": [_schema(part) for part in arguments]}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(arguments[1])}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(part) for part in arguments]}
    raise TypeError(f"a shape can't have a {hint}")


def _record(shape: Any) -> Schema:
    described = {"description": about(shape)} if about(shape) else {}
    if is_row(shape):
        return {"type": "array", **described, "prefixItems": [_schema(f.hint) for f in fields(shape)]}
    properties = {
        field.name: {**_schema(field.hint), **({"description": field.note} if field.note else {})}
        for field in fields(shape)
    }
    required = [field.name for field in fields(shape) if field.always]
    return {"type": "object", **described, "properties": properties, "required": required}


# -- TypeScript --


def typescript() -> str:
    """The content of ui/src/answers.ts."""
    words = [f"export type {name} = {_choice(getattr(answer_shapes, name))};\n" for name in WORDS]
    return "\n".join([HEAD, "".join(words), *(_interface(name, shape) for name, shape in shapes().items())])


def _interface(name: str, shape: Any) -> str:
    head = f"/** {about(shape)} */\n" if about(shape) else ""
    if is_row(shape):
        listed = ", ".join(f"{field.name}: {_type(field.hint)}" for field in fields(shape))
        return f"{head}export type {name} = [{listed}];\n"
    lines = [head, f"export interface {name} {{\n"]
    for field in fields(shape):
        said = f" // {field.note}" if field.note else ""
        lines.append(f"  {field.name}{'' if field.always else '?'}: {_type(field.hint)};{said}\n")
    return "".join([*lines, "}\n"])


def _type(hint: Any) -> str:
    if is_record(hint) or is_row(hint):
        return str(hint.__name__)
    if hint is Any:
        return "unknown"
    if hint in PLAIN:
        return PLAIN[hint][1]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _word(hint) or _choice(hint)
    if origin is list or (origin is tuple and arguments[1:] == (...,)):
        inner = _type(arguments[0])
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if origin is tuple:
        return f"[{', '.join(_type(part) for part in arguments)}]"
    if origin in (dict, Mapping):
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
    head = "| field | type | |\n| --- | --- | --- |\n"
    rows = "".join(_table_row(field) for field in fields(shape))
    listed = " A list of:" if is_row(shape) else ""
    return f"**{name}** {about(shape)}{listed}".rstrip() + f"\n\n{head}{rows}"


def _table_row(field: ShapeField) -> str:
    notes = "; ".join(filter(None, ["" if field.always else "may be absent", field.note]))
    return _row(f"`{field.name}`", f"`{_type(field.hint)}`", notes)


def _row(*cells: str) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |\n"


def parameter_table() -> str:
    """The parameters of each endpoint, with their defaults and limits."""
    rows = [
        _row(f"`{endpoint.path.lstrip('/')}`", f"`{known.name}`", *_cells(known))
        for endpoint in ENDPOINTS
        for known in endpoint.parameters
        if known not in (ID, RANK)
    ]
    return "| of | parameter | type | default | limits | meaning |\n" + "| --- " * 6 + "|\n" + "".join(rows)


def _cells(known: Parameter) -> tuple[str, ...]:
    default = "required" if known.required else "" if known.default is None else str(known.default)
    return known.kind, default, known.limits, known.about
