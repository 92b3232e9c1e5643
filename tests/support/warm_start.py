"""A process that has torch imported and forks a child for every program it is asked to run.

Importing torch takes several times as long as most of these programs. It reads one JSON line for
each: `{"command", "cwd", "environment", "out", "err"}`, and answers with the exit code. What is
tested about the start of a process itself must not use it.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import threading
import traceback
from typing import Any


def serve() -> None:
    import sklearn.datasets  # noqa: F401
    import torch._dynamo
    import torch.utils.data  # noqa: F401

    assert threading.active_count() == 1  # they would not be there after a fork
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def run(asked: dict[str, Any]) -> None:
    """In the child: become `python command…`."""
    for name, number in (("out", 1), ("err", 2)):
        file = os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(asked["environment"])
    os.chdir(asked["cwd"])
    code: object = 1
    try:
        execute(asked["command"])
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - what python itself would print
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def execute(command: list[str]) -> None:
    if command[0] == "-m":
        sys.argv = command[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        sys.path[0] = os.path.dirname(command[0])
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    serve()
