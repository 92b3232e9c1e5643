"""Access control: a token, the server's own host names, and no requests from other pages.

Reaching the port must not be enough to read: other users of the machine can reach it, and so can
any web page through the browser. The `Host` check stops DNS rebinding, `Origin` and `Sec-Fetch-Site` stop
requests of other pages, and the token stops everybody else.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import sys
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.web.responses import problem, refusal_page

LOOPBACK = ("localhost", "127.0.0.1", "::1")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'"  # the policy of everything that is not the page


def new_token() -> str:
    return secrets.token_urlsafe(24)


class AccessControl:
    """ASGI middleware around the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        hosts: Iterable[str] = (),
        any_address: bool = False,
        prefix: str = "",
    ) -> None:
        self.inner = app
        self._token = token
        self._hosts = {host.lower() for host in (*LOOPBACK, *hosts)}
        self._any_address = any_address
        self._prefix = prefix
        self.cookie = f"clew-{hashlib.sha256(token.encode()).hexdigest()[:8]}"  # several servers, one browser

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.inner(scope, receive, send)
            return
        bare = bool(self._prefix) and scope["path"] == self._prefix
        scope = _without_prefix(scope, self._prefix)
        answer = self._refusal(scope, bare)
        if answer is not None:
            await answer(scope, receive, _guarded(send))
        else:
            await self._answered(scope, receive, _guarded(send))

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A failure in Clew is one bad answer; the server and all other requests go on."""
        try:
            await self.inner(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - a run may cause any failure
            print(f"clew: {scope['path']}: {type(error).__name__}: {error}", file=sys.stderr)

    def _refusal(self, scope: Scope, bare: bool) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_ours(host):
            return problem(403, "forbidden", "unknown host name for this server; see --allow-host")
        if not self._same_origin(headers, host):
            return problem(403, "forbidden", "requests from other origins are refused")
        if bare:
            return _with_slash(scope, self._prefix)
        return self._without_token(scope, headers)

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        if name is None:
            return False
        return name.lower() in self._hosts or (self._any_address and _is_address(name))

    def _same_origin(self, headers: Headers, host: str) -> bool:
        foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")  # another port is another page
        if foreign and headers.get("sec-fetch-mode") != "navigate":
            return False
        origin = headers.get("origin")
        return origin is None or (origin != "null" and urlsplit(origin).netloc.lower() == host.lower())

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """None if the token is present; a token in the URL of the first page becomes a cookie."""
        if self._is_token(_bearer(headers)) or self._is_token(_cookie(headers, self.cookie)):
            return self._tidy(scope)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            if self._is_token((query.get("token") or [""])[0]):
                return self._enter(scope)
            return refusal_page()
        return problem(
            401,
            "unauthorised",
            "requests without the token are refused: open the address that `clew ui` printed",
        )

    def _tidy(self, scope: Scope) -> Response | None:
        """A token in the URL of a client that already has access: set again, and removed from the URL."""
        if scope["path"] == "/" and b"token=" in scope["query_string"]:
            query = parse_qs(scope["query_string"].decode("latin-1"))
            return self._enter(scope) if self._is_token((query.get("token") or [""])[0]) else None
        return None

    def _enter(self, scope: Scope) -> Response:
        answer = RedirectResponse("./", status_code=303)
        answer.set_cookie(
            self.cookie, self._token, path=self._prefix or "/", httponly=True, samesite="lax",
            secure=scope.get("scheme") == "https",
        )  # fmt: skip
        return answer

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self._token.encode())


def _bearer(headers: Headers) -> str:
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""


def _cookie(headers: Headers, name: str) -> str:
    for line in headers.getlist("cookie"):
        try:
            found = SimpleCookie(line).get(name)
        except CookieError:
            continue
        if found is not None:
            return found.value
    return ""


def _is_address(name: str) -> bool:
    """Rebinding needs a name: a page can't make its own name stand for an address in `Host`."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _with_slash(scope: Scope, prefix: str) -> Response:
    """The page requests files next to it, so its URL must end in a slash."""
    query = scope["query_string"].decode("latin-1")
    return RedirectResponse(f"{prefix}/{'?' + query if query else ''}", status_code=307)


def _without_prefix(scope: Scope, prefix: str) -> Scope:
    """A proxy may pass the prefix on or remove it: both work."""
    path: str = scope["path"]
    if prefix and (path == prefix or path.startswith(prefix + "/")):
        rest = path[len(prefix) :]
        return {**scope, "path": rest or "/", "raw_path": (rest or "/").encode(), "root_path": ""}
    return scope


def _guarded(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=_as_scope(message))
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Content-Security-Policy", NOTHING)
        await send(message)

    return guarded


def _as_scope(message: Message) -> dict[str, Any]:
    message.setdefault("headers", [])
    message["headers"] = list(message["headers"])
    return message  # type: ignore[return-value]
