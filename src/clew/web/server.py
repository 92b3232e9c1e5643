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

from clew.web.answers.desk import Desk
from clew.web.app import make_app
from clew.web.gate import Gate

DEFAULT_PORT = 6177
GRACE = 2  # seconds that answers on their way get at the end


def bind(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port the usual one, or any if that is taken."""
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
    """How to get here from another machine."""
    user = ""
    with contextlib.suppress(OSError, KeyError, ImportError):
        user = f"{getpass.getuser()}@"
    return f"ssh -L {port}:127.0.0.1:{port} {user}{socket.gethostname()}"


class _Server(uvicorn.Server):
    """Ends the event streams first: uvicorn would wait for them for ever."""

    def __init__(self, config: uvicorn.Config, gate: Gate) -> None:
        super().__init__(config)
        self._gate = gate

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        state: Any = getattr(self._gate.inner, "state", None)
        ticker = getattr(state, "ticker", None)
        if ticker is not None:
            ticker.stopping.set()
        super().handle_exit(sig, frame)


def serve(
    desk: Desk,
    sock: socket.socket,
    token: str,
    *,
    hosts: tuple[str, ...] = (),
    any_address: bool = False,
    prefix: str = "",
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Answer until interrupted."""
    gate = make_app(desk, token, hosts=hosts, any_address=any_address, prefix=prefix)
    config = uvicorn.Config(
        gate, log_level="error", access_log=False, timeout_graceful_shutdown=GRACE, lifespan="on", ws="none",
        server_header=False, proxy_headers=False,
    )  # fmt: skip
    threading.Thread(target=desk.warm, name="clew-warm", daemon=True).start()
    try:
        ready()
        with contextlib.suppress(KeyboardInterrupt):
            _Server(config, gate).run(sockets=[sock])
    finally:
        desk.close()
        sock.close()
