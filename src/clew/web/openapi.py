"""The API as an OpenAPI document: docs/api.md for machines. Tests hold it against real answers."""

from __future__ import annotations

from typing import Any

from clew.records.version import __version__

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
ANY: Schema = {}
OBJECT: Schema = {"type": "object"}


def maybe(schema: Schema) -> Schema:
    """Or null."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def named(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


NUMBERS = many(maybe(NUMBER))
SEVERITY: Schema = {"type": "string", "enum": ["error", "warning", "advice"]}
STATE: Schema = {"type": "string", "enum": ["running", "finished", "failed", "killed", "empty", "unreadable"]}
JUDGED: Schema = {"type": "string", "enum": ["ready", "pending", "none", "failed"]}
MISSING = record({"missing": TEXT}, {"stats": many(ANY)})


def schemas() -> dict[str, Schema]:
    site = record(
        {}, dict.fromkeys(("module", "op", "file", "phase", "root", "param"), TEXT) | {"line": WHOLE}
    )
    cause = record({"check": TEXT, "severity": SEVERITY, "message": TEXT})
    row = record(
        {
            "id": TEXT, "name": maybe(TEXT), "state": STATE, "error": maybe(TEXT), "started": maybe(NUMBER),
            "ended": maybe(NUMBER), "duration": maybe(NUMBER), "steps": maybe(WHOLE), "script": maybe(TEXT),
            "command": maybe(TEXT), "host": maybe(TEXT), "user": maybe(TEXT), "hparams": maybe(OBJECT),
            "last_loss": maybe(NUMBER), "metrics": maybe(OBJECT), "ranks": maybe(WHOLE),
            "verdict": {"enum": [*JUDGED["enum"], None]}, "worst": {"enum": [*SEVERITY["enum"], None]},
            "root_cause": maybe(cause),
            "findings": maybe(record({"error": WHOLE, "warning": WHOLE, "advice": WHOLE})),
            "damage": maybe(many(TEXT)), "version": WHOLE,
        }
    )  # fmt: skip
    code = record({"file": TEXT, "line": WHOLE, "first": WHOLE, "lines": many(TEXT)})
    change = record({"line": maybe(WHOLE), "mark": {"enum": [" ", "+", "-"]}, "text": TEXT})
    link = record(
        {
            "code": maybe(code), "diff": maybe(many(change)), "site": maybe(TEXT), "module": maybe(TEXT),
            "evidence": many(record({"key": maybe(TEXT), "site": maybe(TEXT)})), "page": maybe(TEXT),
        }
    )  # fmt: skip
    ends = record({"first": NUMBER, "last": NUMBER})
    epochs = record({"first": NUMBER, "last": NUMBER, "steps": NUMBER, "source": TEXT})
    views = ("series", "layers", "histograms", "graph", "profile", "data", "notes")
    detail = record(
        {
            "run": named("Run"), "meta": OBJECT, "versions": OBJECT, "git": maybe(OBJECT),
            "config": many(record({"source": ANY, "step": WHOLE, "values": ANY})),
            "verdict": maybe(OBJECT), "verdict_state": JUDGED, "verdict_error": maybe(TEXT),
            "verdict_steps": maybe(WHOLE), "links": many(link), "pages": OBJECT,
            "events": many(record({"kind": TEXT, "step": WHOLE, "data": OBJECT})),
            "axes": record({"step": ends, "wall": maybe(ends), "epoch": maybe(epochs)}),
            "models": many(OBJECT), "has": record(dict.fromkeys(views, FLAG)),
            "ranks": many(WHOLE), "damage": many(TEXT), "incidents": many(TEXT),
        }
    )  # fmt: skip
    chart = record({"title": TEXT, "together": FLAG, "large": FLAG, "robust": FLAG, "line": TEXT})
    signal = record(
        {
            "key": TEXT, "signal": TEXT, "site": named("Site"), "site_id": TEXT, "label": TEXT, "group": TEXT,
            "rank": WHOLE, "points": WHOLE, "first": WHOLE, "last": WHOLE, "unit": TEXT, "title": TEXT,
            "about": TEXT, "chart": maybe(chart), "glance": FLAG,
        }
    )  # fmt: skip
    points = record(
        {
            "key": TEXT, "signal": TEXT, "site": named("Site"), "label": TEXT, "unit": TEXT, "exact": FLAG,
            "total": WHOLE, "x": NUMBERS, "steps": many(WHOLE), "mean": NUMBERS,
            "marks": many({"type": "array", "prefixItems": [WHOLE, {"enum": ["nan", "inf", "-inf"]}]}),
        },
        {"min": NUMBERS, "max": NUMBERS, "count": many(WHOLE), "bad": many(WHOLE)},
    )  # fmt: skip
    unknown = record({"key": TEXT, "missing": TEXT})
    layer = record(
        {
            "site": TEXT, "key": TEXT, "module": maybe(TEXT), "param": maybe(TEXT), "op": maybe(TEXT),
            "root": maybe(TEXT), "class": maybe(TEXT), "label": TEXT, "file": maybe(TEXT),
            "line": maybe(WHOLE), "depth": WHOLE, "numel": maybe(WHOLE),
        }
    )  # fmt: skip
    stat = record({"stat": TEXT, "label": TEXT, "unit": TEXT, "scale": TEXT, "good": maybe(many(NUMBER))})
    layers = record(
        {
            "stats": many(stat), "stat": TEXT, "unit": TEXT, "scale": TEXT, "exact": FLAG,
            "columns": many(WHOLE), "layers": many(layer), "mean": many(NUMBERS), "bad": many(many(WHOLE)),
        },
        {"min": many(NUMBERS), "max": many(NUMBERS)},
    )  # fmt: skip
    shown = {
        "stats": many(TEXT), "stat": TEXT, "site": named("Site"), "site_id": TEXT, "label": TEXT,
        "kind": TEXT, "kinds": many(TEXT), "steps": many(WHOLE), "counts": many(NUMBERS), "exact": FLAG,
    }  # fmt: skip
    histograms = record({**shown, "edges": many(NUMBER)})
    signed = record({**shown, "lo": NUMBERS, "hi": NUMBERS})
    sites = record({"sites": many(record({"site": TEXT, "label": TEXT, "stats": many(TEXT)}))})
    setting = record({"name": TEXT, "values": many(ANY), "same": FLAG})
    compared = record(
        {"signal": TEXT, "label": TEXT, "unit": TEXT, "place": maybe(WHOLE), "keys": many(maybe(TEXT))}
    )
    return {
        "Site": site,
        "Run": row,
        "Error": record({"error": record({"code": TEXT, "message": TEXT})}),
        "Runs": record({"dir": TEXT, "version": TEXT, "now": NUMBER, "runs": many(named("Run"))}),
        "Detail": detail,
        "Signals": record(
            {
                "total": WHOLE,
                "offset": WHOLE,
                "groups": many(record({"name": TEXT, "count": WHOLE})),
                "signals": many(signal),
            }
        ),
        "Series": record(
            {
                "x": {"enum": ["step", "wall", "epoch"]},
                "from": maybe(NUMBER),
                "to": maybe(NUMBER),
                "version": WHOLE,
                "series": many({"anyOf": [points, unknown]}),
            }
        ),
        "Layers": {"anyOf": [layers, MISSING]},
        "Histograms": {"anyOf": [histograms, signed, sites, MISSING]},
        "Graph": record(
            {
                "models": many(OBJECT),
                "graphs": many(OBJECT),
                "health": OBJECT,
                "time": maybe(OBJECT),
                "missing": maybe(TEXT),
            }
        ),
        "Profile": record(
            {
                "steps": record(
                    {"unit": TEXT, "parts": many(record({"name": TEXT, "key": TEXT})), "total": maybe(TEXT)}
                ),
                "profile": maybe(OBJECT),
                "missing": maybe(TEXT),
            }
        ),
        "Data": record(
            {
                "files": many(record({"name": TEXT, "content": ANY})),
                "loaders": many(OBJECT),
                "labels": many(OBJECT),
                "inputs": many(TEXT),
                "missing": maybe(TEXT),
            }
        ),
        "Notes": record({"markdown": TEXT, "modified": maybe(NUMBER)}),
        "Compare": record(
            {
                "runs": many(named("Run")),
                "config": many(setting),
                "metrics": many(
                    record({"name": TEXT, "values": many(maybe(OBJECT)), "spread": maybe(OBJECT)})
                ),
                "findings": many(record({"check": TEXT, "id": TEXT, "runs": many(maybe(OBJECT))})),
                "signals": many(compared),
                "versions": many(setting),
            }
        ),
    }


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
    """By path and method: what it is for, what it takes and the name of what it gives."""
    keys = parameter("keys", TEXT, "series keys, separated by commas", required=True)
    return {
        "/runs": {"get": operation("All runs, newest first", "Runs")},
        "/runs/{id}": {
            "get": operation("One run: verdict, configuration, available views", "Detail", [ID, RANK])
        },
        "/runs/{id}/signals": {
            "get": operation(
                "The series of a run",
                "Signals",
                [
                    ID,
                    RANK,
                    parameter("search", TEXT, "words that must all occur"),
                    parameter("group", TEXT, "one group only"),
                    parameter("keys", TEXT, "only these"),
                    parameter("hist", TEXT, "1: also the bins of histograms"),
                    parameter("offset", WHOLE, "number to skip"),
                    parameter("limit", WHOLE, "maximum number, up to 5000"),
                ],
            )
        },
        "/runs/{id}/series": {
            "get": operation(
                "Points of series at any zoom: minimum, maximum and mean of each interval",
                "Series",
                [
                    ID,
                    RANK,
                    keys,
                    FROM,
                    TO,
                    parameter("points", WHOLE, "maximum number of intervals, up to 20000"),
                    parameter("x", {"enum": ["step", "wall", "epoch"]}, "the axis"),
                ],
            )
        },
        "/runs/{id}/layers": {
            "get": operation(
                "A statistic of every layer over time",
                "Layers",
                [ID, RANK, parameter("stat", TEXT, "the first one offered if not given"), FROM, TO, COLUMNS],
            )
        },
        "/runs/{id}/histograms": {
            "get": operation(
                "A layer's histograms over time",
                "Histograms",
                [
                    ID,
                    RANK,
                    parameter("site", TEXT, "site id; without it, a list of sites"),
                    parameter("stat", TEXT, "activation, gradient, weight or update"),
                    parameter("kind", TEXT, "log2 (powers of two) or linear (signed values, where recorded)"),
                    FROM,
                    TO,
                    COLUMNS,
                ],
            )
        },
        "/runs/{id}/graph": {"get": operation("The model", "Graph", [ID, RANK])},
        "/runs/{id}/profile": {"get": operation("Where time and memory go", "Profile", [ID, RANK])},
        "/runs/{id}/data": {"get": operation("Recorded samples and batches", "Data", [ID, RANK])},
        "/runs/{id}/notes": {
            "get": operation("The notes on a run", "Notes", [ID]),
            "put": {
                **operation("Change the notes on a run", "Notes", [ID]),
                "requestBody": {"required": True, "content": _json(record({"markdown": TEXT}))},
            },
        },
        "/runs/{id}/events": {"get": _events("Changes of one run, live", [ID])},
        "/compare": {
            "get": operation(
                "Runs side by side",
                "Compare",
                [parameter("runs", TEXT, "2 to 50 ids, separated by commas", required=True)],
            )
        },
        "/events": {"get": _events("Changes in the list of runs, live", [])},
        "/openapi.json": {
            "get": {"summary": "This document", "responses": {"200": {"description": "OpenAPI 3.1"}}}
        },
    }


def operation(summary: str, gives: str, parameters: list[Schema] | None = None) -> Schema:
    return {
        "summary": summary,
        "parameters": parameters or [],
        "responses": {
            "200": {"description": summary, "content": _json(named(gives))},
            "default": {"description": "What is wrong, in one line", "content": _json(named("Error"))},
        },
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _events(summary: str, parameters: list[Schema]) -> Schema:
    stream = {"text/event-stream": {"schema": TEXT}}
    return {
        "summary": summary,
        "parameters": parameters,
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
