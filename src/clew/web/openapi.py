"""The API as an OpenAPI document: paths and answer shapes. Tests compare it with real answers."""

from __future__ import annotations

from clew.records.version import __version__
from clew.web.shape_pages import Schema, schemas

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
                "requestBody": {"required": True, "content": _json(NEW_NOTES)},
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
