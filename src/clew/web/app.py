"""The HTTP application: routes, errors, the page and its files."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router
from starlette.staticfiles import StaticFiles

from clew.render.html_bundle import STATIC
from clew.store.index.index_cache import is_busy
from clew.store.read.run_errors import RunError
from clew.web.access_control import AccessControl
from clew.web.answers.api_answers import ApiAnswers, BadRequest
from clew.web.answers.run_files import LARGEST_NOTES, TooLarge
from clew.web.endpoints import ENDPOINTS, Endpoint
from clew.web.live_events import Ticker, all_runs, one_run, stream
from clew.web.openapi import document
from clew.web.responses import index_page, problem, reply
from clew.web.runs.run_library import NoSuchRun, RunGone

PACKED = Middleware(GZipMiddleware, minimum_size=10_000, compresslevel=3)
THREADS = 8  # concurrent requests: more would only use more memory
API = "/api/v1"


class Api:
    """Handles the requests of all endpoints. What is not `async` runs in threads."""

    def __init__(self, answers: ApiAnswers, ticker: Callable[[], Ticker], prefix: str) -> None:
        self._answers = answers
        self._ticker = ticker
        self._prefix = prefix

    def routes(self) -> list[Route]:
        return [
            Route(known.path, self._handler(known), methods=[known.method], name=known.handler)
            for known in ENDPOINTS
        ]

    def _handler(self, endpoint: Endpoint) -> Callable[[Request], Any]:
        """Most endpoints pass on an answer of `ApiAnswers`; the others have a method here."""
        if hasattr(self, endpoint.handler):
            return getattr(self, endpoint.handler)  # type: ignore[no-any-return]
        return lambda request: reply(self._answer(endpoint, request))

    def _answer(self, endpoint: Endpoint, request: Request) -> Any:
        return getattr(self._answers, endpoint.handler)(**endpoint.arguments(request))

    async def write_notes(self, request: Request) -> Response:
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise BadRequest("notes must be sent as application/json")
        markdown = await _markdown(request)
        name = request.path_params["id"]
        return reply(await anyio.to_thread.run_sync(self._answers.write_notes, name, markdown))

    async def events(self, request: Request) -> Response:
        return stream(all_runs(self._ticker()))

    async def run_events(self, request: Request) -> Response:
        name = request.path_params["id"]
        await anyio.to_thread.run_sync(self._answers.library.glance, name)
        return stream(one_run(self._ticker(), name, lambda: self._answers.state(name)))

    def openapi(self, request: Request) -> Response:
        return reply(document(self._prefix))


async def _markdown(request: Request) -> str:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > 2 * LARGEST_NOTES:  # escaped, it may be longer than what it says
            raise TooLarge("notes are limited to 1 MB")
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest("this is not JSON") from error
    markdown = sent.get("markdown") if isinstance(sent, dict) else None
    if not isinstance(markdown, str):
        raise BadRequest('send {"markdown": "…"}')
    return markdown


def make_app(
    answers: ApiAnswers, token: str, *, hosts: Iterable[str] = (), any_address: bool = False, prefix: str = ""
) -> AccessControl:
    """The whole application, behind access control."""
    inner = Starlette(exception_handlers=ANSWERS, lifespan=_lifespan(answers), middleware=[PACKED])
    api = Api(answers, lambda: inner.state.ticker, prefix)
    inner.router.routes += [
        Route("/", _page, methods=["GET"]),
        Mount(API, Router(api.routes(), redirect_slashes=False)),
        Mount("/static", StaticFiles(directory=STATIC, check_dir=False)),
    ]
    inner.router.redirect_slashes = False
    return AccessControl(inner, token=token, hosts=hosts, any_address=any_address, prefix=prefix)


def _lifespan(answers: ApiAnswers) -> Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        app.state.ticker = Ticker(answers.rows)
        yield
        app.state.ticker.stopping.set()

    return lifespan


def _page(request: Request) -> Response:
    return index_page()


def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    code = {404: "not-found", 405: "bad-request"}.get(status, "failed")
    return problem(status, code, f"this address does not support {request.method}")


def _says(status: int, code: str) -> Callable[[Request, Exception], Response]:
    return lambda request, error: problem(status, code, str(error))


def _busy(request: Request, error: Exception) -> Response:
    """Another viewer is filling the same index; it will be done in a moment."""
    if not isinstance(error, sqlite3.Error) or not is_busy(error):
        return _failed(request, error)
    return problem(503, "busy", "another viewer is reading this run for the first time; try again")


def _failed(request: Request, error: Exception) -> Response:
    """Access control reports it on stderr."""
    return problem(
        500, "failed", f"this request failed ({type(error).__name__}); the server is still running"
    )


ANSWERS: dict[Any, Callable[[Request, Exception], Response]] = {
    NoSuchRun: _says(404, "not-found"),
    RunGone: _says(410, "gone"),
    RunError: _says(409, "unreadable"),
    BadRequest: _says(400, "bad-request"),
    TooLarge: _says(413, "too-large"),
    sqlite3.OperationalError: _busy,
    HTTPException: _http,
    Exception: _failed,
}
