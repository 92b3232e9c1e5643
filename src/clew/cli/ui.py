"""`clew ui`: the runs in the browser."""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path

import click

from clew.cli.options import Refusal, runs_folder


def prefix(ctx: click.Context, param: click.Parameter, text: str) -> str:
    """`clew/` and `/clew` mean the same."""
    parts = [part for part in text.split("/") if part]
    if any(part in (".", "..") or any(c in part for c in "?#%\\ ") for part in parts):
        raise click.BadParameter(f"{text!r} is not a path such as /clew", ctx, param)
    return "".join(f"/{part}" for part in parts)


@click.command("ui", short_help="Show the runs in the browser, live.")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to use; 0 picks a free one.  [default: 6177, or a free one]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; the default is reachable only from this machine.",
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option(
    "--root-path",
    callback=prefix,
    default="",
    metavar="PATH",
    help="Path prefix under which a proxy serves the page.",
)
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="Another host name for this server (may be repeated)."
)
def command(
    folder: Path | None,
    port: int | None,
    host: str,
    no_open: bool,
    root_path: str,
    allow_host: tuple[str, ...],
) -> int:
    """Show the runs under DIR in the browser, live: verdict, charts, layers, graph, comparison.

    The address to open is printed alone on one line. It contains a token; requests without the token are
    refused.

    \b
      clew ui
      clew ui /data/runs --port 0 --no-open
      clew ui --root-path /clew --allow-host jupyter.example.org
    """
    from clew.render.html_bundle import index_file
    from clew.render.stderr_messages import say
    from clew.web.access_control import new_token
    from clew.web.answers.api_answers import ApiAnswers
    from clew.web.server import address, bind, serve, tunnel

    root = _existing(runs_folder(folder))
    token = new_token()
    try:
        sock = bind(host, port)
    except (OSError, UnicodeError) as error:
        raise Refusal(
            f"can't listen on {host}:{port or ''}: {getattr(error, 'strerror', None) or error}"
        ) from error
    number = int(sock.getsockname()[1])
    link = address(host, number, root_path, token)
    local = is_loopback(host)

    def ready() -> None:
        if not local:
            say("clew: warning: open to the network, unencrypted; anyone with the address can see all runs")
        print(link, flush=True)
        say(f"clew: showing {root}; press Ctrl-C to stop")
        say(f"clew: from another machine: run {tunnel(number)}  then open the address above")
        if index_file() is None:
            say("clew: warning: the page is not built; run scripts/build-ui")
        if not no_open and has_screen():
            _open(link)

    names = allow_host if local else (*allow_host, host, *_own_names())
    serve(ApiAnswers.at(root), sock, token, hosts=names, any_address=not local, prefix=root_path, ready=ready)
    return 0


def _existing(root: Path) -> Path:
    """The folder; a project's folder stands for the runs in it. It need not exist yet."""
    inner = root / ".clew" / "runs"
    if root.exists() and not root.is_dir():
        raise Refusal(f"{root} is not a folder; give one that contains runs, such as .clew/runs")
    return inner if inner.is_dir() else root


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _own_names() -> tuple[str, ...]:
    import socket

    return socket.gethostname(), socket.getfqdn()


def has_screen() -> bool:
    """Whether a browser would open on the user's screen: not on a remote machine, nor in this terminal."""
    if os.environ.get("SSH_CONNECTION"):
        return False
    shown = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return shown or not sys.platform.startswith("linux")


def _open(link: str) -> None:
    """In a thread: some browsers block until they are closed."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
