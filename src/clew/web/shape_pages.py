"""The answer shapes as JSON Schema, as TypeScript types, and as the tables of docs/api.md."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from clew.web import answer_shapes
from clew.web.answer_shapes import ANSWERS

Schema = dict[str, Any]

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
    """Every shape by its name, in the order of the file; bases of others are part of those."""
    found = vars(answer_shapes).items()
    return {name: shape for name, shape in found if is_typeddict(shape) and not name.startswith("_")}


def fields(shape: Any) -> Iterator[tuple[str, Any, str, bool]]:
    """Of each field its name, its type, what is said of it, and whether it is always there."""
    for name, hint in get_type_hints(shape, include_extras=True).items():
        note = ""
        if get_origin(hint) is Annotated:
            hint, note = get_args(hint)
        yield name, hint, note, name in shape.__required_keys__


# -- JSON Schema --


def schemas() -> dict[str, Schema]:
    """For the OpenAPI document: its own names first, then the shapes that they are made of."""
    named = {name: _schema(shape, top=True) for name, shape in ANSWERS.items()}
    others = {name: _schema(shape, top=True) for name, shape in shapes().items() if name not in _public()}
    return {**named, **others}


def _public() -> dict[str, str]:
    """Shapes that the OpenAPI document has another name for."""
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
    """The file ui/src/answers.ts."""
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
    """A table for each shape."""
    return "\n".join(_table(name, shape) for name, shape in shapes().items())


def _table(name: str, shape: Any) -> str:
    rows = [_table_row(*field) for field in fields(shape)]
    head = "| field | type | |\n| --- | --- | --- |\n"
    return f"**{name}** {_about(shape)}".rstrip() + f"\n\n{head}{''.join(rows)}"


def _table_row(name: str, hint: Any, note: str, always: bool) -> str:
    kind = _type(hint).replace("|", "\\|")
    return f"| `{name}` | `{kind}` | {'; '.join(filter(None, ['' if always else 'may be absent', note]))} |\n"
