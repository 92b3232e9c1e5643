"""The options of `clew run`: read from the command line, passed to the session."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from clew.records.data_report import DataOptions

SAW_NOTHING = 2  # the exit code of `clew check` and `clew data` if there was nothing to examine
FAILED_ON = 3  # the exit code of --fail-on: neither the script's 1 nor a usage error's 2


def enabled() -> bool:
    """`CLEW=off` in the environment switches everything off."""
    return os.environ.get("CLEW", "").lower() not in ("off", "0", "false", "no")


@dataclass(frozen=True)
class CheckOptions:
    """What `clew check` adds to a run."""

    only: tuple[str, ...] = ()  # names of experiments; none: all
    skip: tuple[str, ...] = ()
    time_limit: float = 120.0  # seconds for all of them
    batches: int = 16  # of the script's own that are collected
    go_on: bool = False  # keep training afterwards
    junit_path: Path | None = None
    html_path: Path | None = None


@dataclass(frozen=True)
class ProfileOptions:
    """What `clew profile` adds to a run."""

    windows: int = 3  # windows of steps that are profiled in detail, spread over the run
    steps_per_window: int = 8
    python: bool = True  # Python's stacks, by sampling
    cprofile: bool = False  # and every call of the steps in a window, as .prof
    attempts: bool = False  # `--try`: faster settings are tried on a snapshot
    batch_sizes: tuple[int, ...] = ()  # to be measured on a snapshot
    try_limit: float = 60.0  # seconds for the changes that are tried, and the same for the batch sizes
    out: Path | None = None  # folder for the exported files; None: only the run's own
    formats: tuple[str, ...] = ()  # "csv", "chrome", "pstats", "speedscope", "html"


@dataclass(frozen=True)
class RunOptions:
    """One `clew run`, as typed. Unset fields leave the choice to the session."""

    script: str  # path of the script, or the module's name if `module`
    args: tuple[str, ...] = ()  # what the script finds in sys.argv[1:]
    module: bool = False  # `-m`
    root: Path | None = None  # folder that holds the runs; None: the default one
    name: str | None = None  # label used in the run ID
    budget: float = 0.02  # share of step time that Clew may use
    every_step: bool = False  # statistics of every layer on every step
    json_path: Path | None = None  # the verdict goes here at the end
    stop_on: str | None = None  # "error" or "warning": end the run at such a finding
    fail_on: str | None = None  # the same words: exit code FAILED_ON if the verdict has one
    ignore: tuple[str, ...] = ()  # checks to leave out: names, or `name@where`
    steps: int | None = None  # end the run after this many
    trace_numerics: str | None = None  # "layer" or "op": check everything that runs in these steps
    from_step: int = 0
    to_step: int | None = None  # the last one; None: to the end
    print_shapes: bool = False  # the input and output shapes of every layer, on stderr
    graph: bool = False  # the models' graphs go into the run's folder
    prove: bool = False  # at the end, try the fixes of what was found on a snapshot
    track: tuple[str, ...] = ()  # trackers of installed packages, by name
    quiet: bool = False  # nothing on stderr, not even the header
    check: CheckOptions | None = None  # `clew check`: experiments in the first steps
    profile: ProfileOptions | None = None  # `clew profile`: where the time and the memory go
    data: DataOptions | None = None  # `clew data`: what the loaders deliver
