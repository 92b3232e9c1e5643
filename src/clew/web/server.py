"""Runs the server: one socket, and a clean shutdown."""

from __future__ import annotations

import contextlib
import errno
import getpass
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn

from clew.web.access_control import AccessControl
from clew.web.answers.api_answers import ApiAnswers
from clew.web.app import make_app

DEFAULT_PORT = 6177
GRACE = 2  # seconds that pending answers get at shutdown


def bind(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port the default one, or any if that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return _bound(family, host, DEFAULT_PORT if port is None else port)
    except OSError as error:
        if port is not None or error.errno != errno.EADDRINUSE:
            raise
        return _bound(family, host, 0)


def _bound(family: int, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(128)
    except BaseException:
        sock.close()
        raise
    return sock


def address(host: str, port: int, prefix: str, token: str) -> str:
    """What to open in a browser."""
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    shown = f"[{shown}]" if ":" in shown else shown
    return f"http://{shown}:{port}{prefix}/?token={token}"


def tunnel(port: int) -> str:
    """How to reach it from another machine."""
    user = ""
    with contextlib.suppress(OSError, KeyError, ImportError):
        user = f"{getpass.getuser()}@"
    return f"ssh -L {port}:127.0.0.1:{port} {user}{socket.gethostname()}"


class _Server(uvicorn.Server):
    """Ends the event streams first: uvicorn would wait for them forever."""

    def __init__(self, config: uvicorn.Config, access: AccessControl) -> None:
        super().__init__(config)
        self._gate = access

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        state: Any = getattr(self._gate.inner, "state", None)
        ticker = getattr(state, "ticker", None)
        if ticker is not None:
            ticker.stopping.set()
        super().handle_exit(sig, frame)


def serve(
    answers: ApiAnswers,
    sock: socket.socket,
    token: str,
    *,
    hosts: tuple[str, ...] = (),
    any_address: bool = False,
    prefix: str = "",
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Answer until interrupted."""
    access = make_app(answers, token, hosts=hosts, any_address=any_address, prefix=prefix)
    config = uvicorn.Config(
        access, log_level="error", access_log=False, timeout_graceful_shutdown=GRACE, lifespan="on",
        ws="none",
        server_header=False, proxy_headers=False,
    )  # fmt: skip
    threading.Thread(target=answers.warm, name="clew-warm", daemon=True).start()
    try:
        ready()
        with contextlib.suppress(KeyboardInterrupt):
            _Server(config, access).run(sockets=[sock])
    finally:
        answers.close()
        sock.close()
