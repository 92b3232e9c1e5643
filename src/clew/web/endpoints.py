"""The endpoints of the API with their parameters: routing, OpenAPI and docs/api.md come from this table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from starlette.requests import Request

from clew.web.answers.api_answers import BadRequest
from clew.web.answers.layer_maps import MOST_COLUMNS
from clew.web.answers.run_comparison import MOST_RUNS
from clew.web.answers.series_points import AXES, MOST_KEYS, MOST_POINTS, MOST_SIGNALS

LONGEST = 10_000  # characters of any one parameter
FURTHEST = float(2**62)  # steps; larger numbers are clipped to this
LARGEST = 10**9  # integer

Kind = Literal["text", "list", "flag", "integer", "number"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a request. Lists are separated by commas, a flag is `1`."""

    name: str
    kind: Kind
    about: str
    default: Any = None
    least: int = 0  # of an integer, or of the length of a list
    most: int = LARGEST
    choices: tuple[str, ...] = ()
    required: bool = False

    def read(self, request: Request) -> Any:
        """Its value in a request; raises `BadRequest`."""
        if self.name in request.path_params:
            return request.path_params[self.name]
        value = request.query_params.get(self.name, "")
        if len(value) > LONGEST:
            raise BadRequest(f"{self.name} is too long")
        if self.kind == "list":
            return [part for part in value.split(",") if part]
        if self.kind == "flag":
            return value == "1"
        if not value:
            return self.default
        if self.kind == "integer":
            return self._integer(value)
        return self._number(value) if self.kind == "number" else value

    def _integer(self, value: str) -> int:
        try:
            number = int(value)
        except ValueError as error:
            raise BadRequest(f"{self.name} must be an integer") from error
        if not self.least <= number <= self.most:
            raise BadRequest(f"{self.name} must be between {self.least} and {self.most}")
        return number

    def _number(self, value: str) -> float:
        try:
            number = float(value)
        except ValueError as error:
            raise BadRequest(f"{self.name} must be a number") from error
        if not math.isfinite(number):
            raise BadRequest(f"{self.name} must be a finite number")
        return min(max(number, -FURTHEST), FURTHEST)

    def schema(self) -> dict[str, Any]:
        """Its type, default and limits, as a JSON Schema."""
        if self.choices:
            return {"enum": list(self.choices), "default": self.default}
        found: dict[str, Any] = {"type": self.kind if self.kind in ("integer", "number") else "string"}
        if self.kind == "integer":
            found |= {"minimum": self.least, "maximum": self.most}
        return found if self.default in (None, "") else {**found, "default": self.default}

    @property
    def limits(self) -> str:
        """For people: `1 to 50`, `at least 0`, or the choices; empty if there are none."""
        if self.most < LARGEST:
            return f"{self.least} to {self.most}"
        return f"at least {self.least}" if self.kind == "integer" else ", ".join(self.choices)


@dataclass(frozen=True)
class Endpoint:
    """A path of the API: what it is for, the name of its answer, and what it can be asked."""

    path: str
    handler: str  # a method of `app.Api`, or else of `ApiAnswers`
    summary: str
    gives: str  # a name in `answer_shapes.ANSWERS`, or what is sent instead
    parameters: tuple[Parameter, ...] = ()
    method: Literal["GET", "PUT"] = "GET"

    def arguments(self, request: Request) -> dict[str, Any]:
        """What the request asks, by the names that `ApiAnswers` has for it."""
        found = {known.name: known.read(request) for known in self.parameters}
        if "id" in found:
            found["name"] = found.pop("id")
        if "from" in found:
            found["span"] = found.pop("from"), found.pop("to")
        return found


EVENTS, DOCUMENT = "Server-sent events", "OpenAPI 3.1"

ID = Parameter("id", "text", "name of the run's folder", required=True)
RANK = Parameter("rank", "integer", "the lowest rank if not given")
FROM = Parameter("from", "number", "start, in units of the axis, inclusive")
TO = Parameter("to", "number", "end, inclusive")


def _columns(default: int) -> Parameter:
    return Parameter("columns", "integer", "maximum number of columns", default, 1, MOST_COLUMNS)


ENDPOINTS = (
    Endpoint("/runs", "runs", "All runs, newest first", "Runs"),
    Endpoint("/runs/{id}", "run", "One run: verdict, configuration, available views", "Detail", (ID, RANK)),
    Endpoint(
        "/runs/{id}/signals",
        "signals",
        "The series of a run",
        "Signals",
        (
            ID,
            RANK,
            Parameter("search", "text", "words that must all occur in signal, site or label", ""),
            Parameter("group", "text", "one group only", ""),
            Parameter("keys", "list", "only these series"),
            Parameter("hist", "flag", "1: also the bins of histograms"),
            Parameter("offset", "integer", "number to skip", 0),
            Parameter("limit", "integer", "maximum number", 200, 1, MOST_SIGNALS),
        ),
    ),
    Endpoint(
        "/runs/{id}/series",
        "series",
        "Points of series at any zoom: minimum, maximum and mean of each interval",
        "Series",
        (
            ID,
            RANK,
            Parameter("keys", "list", "series keys, separated by commas", None, 1, MOST_KEYS, required=True),
            FROM,
            TO,
            Parameter("points", "integer", "maximum number of intervals", 1200, 1, MOST_POINTS),
            Parameter("x", "text", "the axis", "step", choices=AXES),
        ),
    ),
    Endpoint(
        "/runs/{id}/layers",
        "layers",
        "A statistic of every layer over time",
        "Layers",
        (
            ID,
            RANK,
            Parameter("stat", "text", "the first one offered if not given", ""),
            FROM,
            TO,
            _columns(300),
        ),
    ),
    Endpoint(
        "/runs/{id}/histograms",
        "histograms",
        "A layer's histograms over time",
        "Histograms",
        (
            ID,
            RANK,
            Parameter("site", "text", "site id; without it, a list of sites", ""),
            Parameter("stat", "text", "activation, gradient, weight or update", ""),
            Parameter("kind", "text", "log2 (powers of two) or linear (signed values, where recorded)", ""),
            FROM,
            TO,
            _columns(120),
        ),
    ),
    Endpoint("/runs/{id}/graph", "graph", "The model", "Graph", (ID, RANK)),
    Endpoint("/runs/{id}/profile", "profile", "Where time and memory go", "Profile", (ID, RANK)),
    Endpoint("/runs/{id}/data", "data", "Recorded samples and batches", "Data", (ID, RANK)),
    Endpoint("/runs/{id}/notes", "notes", "The notes on a run", "Notes", (ID,)),
    Endpoint("/runs/{id}/notes", "write_notes", "Change the notes on a run", "Notes", (ID,), "PUT"),
    Endpoint("/runs/{id}/events", "run_events", "Changes of one run, live", EVENTS, (ID,)),
    Endpoint(
        "/compare",
        "compare",
        "Runs side by side",
        "Compare",
        (Parameter("runs", "list", "ids, separated by commas", None, 2, MOST_RUNS, required=True),),
    ),
    Endpoint("/events", "events", "Changes in the list of runs, live", EVENTS),
    Endpoint("/openapi.json", "openapi", "This document", DOCUMENT),
)
