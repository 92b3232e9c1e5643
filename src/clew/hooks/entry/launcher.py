"""Script launcher: runs the user's program in this process, as plain `python` would.

Python's own order at the end of a program is kept: an uncaught exception is printed at once, then Python
waits for non-daemon threads, then the process ends and `atexit` handlers run. `run_script` and `run_module`
return after the threads have ended, so the caller can work between the last training step and the `atexit`
handlers; `leave` does the rest. Clew's own frames are removed from tracebacks (`clean`).

One thing cannot be imitated: `sys._getframe` shows frames below the script's own.
"""

from __future__ import annotations

import builtins
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from itertools import pairwise
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn

from clew.records.version import DEMO, PACKAGE

FileLoader = SourceFileLoader | SourcelessFileLoader

CANNOT_OPEN = 2  # Python's exit code for a script that it cannot open
INTERRUPTED = 128 + signal.SIGINT  # the exit code that a shell reports for a process killed by SIGINT

_IMPORT_MACHINERY = "<frozen importlib._bootstrap"


@dataclass(frozen=True)
class Outcome:
    """How the program ended."""

    exit_code: int
    exception: BaseException | None = None  # uncaught; SystemExit is not one
    signal: int | None = None  # SIGINT, if an uncaught KeyboardInterrupt ended it


def run_script(path: str, args: Sequence[str] = ()) -> Outcome:
    """Run a script, or a folder or zip file with a `__main__.py`, like `python path args…`."""
    sys.argv = [path, *args]
    if _holds_main(path):
        return _run_importable(path)
    main = _fresh_main()
    full = os.path.join(os.getcwd(), path)  # not normalised, because Python does not normalise it either
    try:
        loader = _loader(full)
        content = loader.get_data(full)
    except OSError as error:
        return _cannot_open(full, error)
    main.__dict__.update(__file__=full, __cached__=None, __loader__=loader)
    _replace_first_path(os.path.dirname(os.path.realpath(path)))
    return _run(lambda: exec(_code(loader, full, content), main.__dict__))


def run_module(name: str, args: Sequence[str] = ()) -> Outcome:
    """Run a module like `python -m name args…`."""
    sys.argv = ["-m", *args]  # runpy replaces this by the file's path once it has found it
    _fresh_main()
    _replace_first_path(os.getcwd())
    return _run(lambda: _run_as_main(name, alter_argv=True))


def leave(outcome: Outcome, code: int | None = None) -> NoReturn:
    """End the process as Python would have, or with another exit code."""
    if code is not None and code != outcome.exit_code:
        sys.exit(code)
    if outcome.signal == signal.SIGINT:
        # Python kills itself with SIGINT after a normal shutdown only for an uncaught KeyboardInterrupt.
        _silence_next_traceback()
        raise KeyboardInterrupt
    sys.exit(outcome.exit_code)


def _run_importable(path: str) -> Outcome:
    _fresh_main()
    _replace_first_path(os.path.join(os.getcwd(), path), even_if_safe=True)
    return _run(lambda: _run_as_main("__main__", alter_argv=False))


def _run_as_main(name: str, *, alter_argv: bool) -> None:
    """Call what the interpreter calls for `-m`, so that its frames in a traceback are the same."""
    import runpy

    runpy._run_module_as_main(name, alter_argv)  # type: ignore[attr-defined]


def _holds_main(path: str) -> bool:
    if os.path.isdir(path):
        return True
    import zipimport

    try:
        zipimport.zipimporter(path)
    except zipimport.ZipImportError:
        return False
    return True


def _fresh_main() -> ModuleType:
    main = ModuleType("__main__")
    if sys.version_info < (3, 14):  # from 3.14 on they are created on demand
        main.__annotations__ = {}
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    return main


def _loader(full: str) -> FileLoader:
    return (
        SourcelessFileLoader("__main__", full)
        if full.endswith(".pyc")
        else SourceFileLoader("__main__", full)
    )


def _code(loader: FileLoader, full: str, content: bytes) -> CodeType:
    if isinstance(loader, SourcelessFileLoader):
        code = loader.get_code("__main__")
        assert code is not None  # a compiled file contains its code; otherwise reading it has already raised
        return code
    # Pass bytes, not text: the compiler then honours a byte-order mark and an encoding line.
    return compile(content, full, "exec", dont_inherit=True)


def _cannot_open(full: str, error: OSError) -> Outcome:
    print(
        f"{sys.executable}: can't open file {full!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr
    )
    return Outcome(CANNOT_OPEN)


def _replace_first_path(entry: str, *, even_if_safe: bool = False) -> None:
    """Replace Clew's own folder at `sys.path[0]` by the program's, or by nothing under `-P` or `-I`."""
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        if even_if_safe:
            sys.path.insert(0, entry)
        return
    sys.path[0:1] = [entry]


def _run(program: Callable[[], None]) -> Outcome:
    raised: BaseException | None = None
    try:
        program()
    except BaseException as error:  # noqa: BLE001 - we report any exception that ends the program
        raised = error
    # Outside the handler, so that the user's excepthook sees no exception being handled.
    outcome = Outcome(0) if raised is None else _report(raised)
    _wait_for_threads()
    return outcome


def _report(error: BaseException) -> Outcome:
    """Print what Python prints for an uncaught exception, at the moment when Python prints it."""
    if isinstance(error, SystemExit):
        return Outcome(_exit_code(error))
    clean(error)
    code = _call_excepthook(error)
    if type(error) is KeyboardInterrupt:  # Python, too, checks for exactly this type
        return Outcome(INTERRUPTED, error, signal.SIGINT)
    return Outcome(code, error)


def _exit_code(stop: SystemExit) -> int:
    code: object = stop.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    if sys.stderr is not None:
        print(code, file=sys.stderr, flush=True)
    return 1


def _call_excepthook(error: BaseException) -> int:
    """Call `sys.excepthook`, which may be the user's, be missing, fail, or exit: see `PyErr_PrintEx`."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        _write_error("sys.excepthook is missing\n")
        _print_exception(error)
        return 1
    sys.audit("sys.excepthook", hook, type(error), error, error.__traceback__)
    second: BaseException
    try:
        hook(type(error), error, error.__traceback__)
        return 1
    except SystemExit as stop:
        return _exit_code(stop)
    except BaseException as failure:  # noqa: BLE001 - printed below, as Python does
        second = failure
    clean(second)
    _write_error("Error in sys.excepthook:\n")
    _print_exception(second)
    _write_error("\nOriginal exception was:\n")
    _print_exception(error)
    return 1


def _print_exception(error: BaseException) -> None:
    sys.__excepthook__(type(error), error, error.__traceback__)


def _write_error(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)


def _wait_for_threads() -> None:
    """Wait for threads: training may run in one.

    Python calls `threading._shutdown` here; it works only once.
    """
    threading = sys.modules.get("threading")
    shutdown = getattr(threading, "_shutdown", None)
    if shutdown is None:
        return
    raised: BaseException | None = None
    try:
        shutdown()
    except BaseException as error:  # noqa: BLE001 - Python, too, ignores an interrupt while waiting
        raised = error
    if raised is not None:
        clean(raised)
        _write_error(f"Exception ignored in: {threading!r}\n")
        _print_exception(raised)


def _silence_next_traceback() -> None:
    users = getattr(sys, "excepthook", None)

    def already_printed(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        sys.excepthook = users or sys.__excepthook__

    sys.excepthook = already_printed


def clean(error: BaseException) -> None:
    """Remove our frames from the exception and from its causes, contexts and group members.

    An uncaught exception then reads as it would without Clew.
    """
    for part in _carried(error):
        part.__traceback__ = without_our_frames(part.__traceback__)


def _carried(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        part = waiting.pop()
        if part is None or id(part) in seen:  # chains may be circular
            continue
        seen.add(id(part))
        yield part
        waiting += [part.__cause__, part.__context__]
        members = getattr(part, "exceptions", None)
        if isinstance(members, tuple):
            waiting += [m for m in members if isinstance(m, BaseException)]


def without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return the same chain of frames, relinked without ours."""
    links = list(_links(traceback))
    hidden = _hidden(links)
    kept = [link for link, hide in zip(links, hidden, strict=True) if not hide]
    if len(kept) == len(links):
        return traceback
    for link, following in pairwise([*kept, None]):
        assert link is not None
        link.tb_next = following
    return kept[0] if kept else None


def _hidden(links: list[TracebackType]) -> list[bool]:
    """Mark our frames, and the import machinery next to them.

    Python trims that machinery only if no loader of ours is in between.
    """
    hidden = [is_ours(link.tb_frame.f_code.co_filename) for link in links]
    machinery = [link.tb_frame.f_code.co_filename.startswith(_IMPORT_MACHINERY) for link in links]
    for order in (range(1, len(links)), range(len(links) - 2, -1, -1)):
        step = order.step
        for i in order:
            hidden[i] = hidden[i] or (machinery[i] and hidden[i - step])
    return hidden


def _links(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def is_ours(filename: str) -> bool:
    """Whether this is code of the package, or code that the package compiled at run time."""
    if filename.startswith("<clew"):
        return True
    return filename.startswith(PACKAGE) and not filename.startswith(DEMO)
