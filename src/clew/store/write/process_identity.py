"""Which process writes a run, and whether it is still alive.

A pid alone is not enough: pids are recycled, containers have their own, and a run may be read from another
host. So a pid counts only on the same machine, boot and pid namespace, and with the same process start time;
otherwise the log's heartbeat decides.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HEARTBEAT_LIMIT = 60.0  # seconds; the writer touches its log every 2, network filesystems cache for up to 60


def identity() -> dict[str, Any]:
    """This process, as written to run.json and at the start of each segment."""
    pid = os.getpid()
    return {
        "pid": pid,
        "hostname": hostname(),
        "machine": machine(),
        "process_start": start_time(pid),
    }


def hostname() -> str:
    """Same as `socket.gethostname()`, without loading the socket module at start-up."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def machine() -> str:
    """Equal for two processes exactly if their pids mean the same thing."""
    parts = [hostname(), _read("/proc/sys/kernel/random/boot_id").strip()]
    try:
        parts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:
        parts.append("")
    return "|".join(parts)


def start_time(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None if it has ended or that is not known."""
    fields = _stat(pid)
    return int(fields[19]) if len(fields) > 19 else None


def is_alive(who: Mapping[str, Any], heartbeat: float | None) -> bool:
    """Whether the process `who` is still alive; `heartbeat` is when it last touched its log."""
    fresh = heartbeat is not None and time.time() - heartbeat < HEARTBEAT_LIMIT
    pid, start = who.get("pid"), who.get("process_start")
    if who.get("machine") != machine() or not isinstance(pid, int) or not 0 < pid < 2**31:
        return fresh
    if start is not None and os.path.isdir("/proc/self"):
        return start_time(pid) == start and _stat(pid)[0] not in ("Z", "X")
    return fresh and _signalable(pid)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may itself contain anything."""
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _signalable(pid: int) -> bool:
    if os.name != "posix":  # on Windows, os.kill would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
