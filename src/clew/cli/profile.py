"""`clew profile`: where a training script spends its time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clew.cli.options import (
    Refusal,
    all_flag,
    comma_separated,
    fail_on_option,
    file_option,
    leave_out_flag,
    run_options,
    script_group,
    steps_option,
    taken,
)
from clew.cli.recorded_profiles import ScriptOrRuns, compare_runs, export_run, show_run
from clew.session.run_options import ProfileOptions, RunOptions

FORMATS = ("csv", "chrome", "pstats", "speedscope", "html")
MOST_SIZES = 32
LARGEST_SIZE = 1 << 20
SAY_WHAT = "no script given: clew profile train.py, or clew profile -m package.train"


def formats(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Kinds of files that there are."""
    names = comma_separated(ctx, param, given)
    unknown = next((name for name in names if name not in FORMATS), None)
    if unknown is not None:
        raise Refusal(f"unknown format: {unknown}; choose from {', '.join(FORMATS)}")
    return names


def sizes(ctx: click.Context, param: click.Parameter, given: str | None) -> tuple[int, ...]:
    """`8,16,32` as numbers, each once and in order."""
    texts = [text.strip() for text in (given or "").split(",") if text.strip()]
    try:
        numbers = sorted({int(text) for text in texts})
    except ValueError:
        numbers = [0]
    if given is not None and (not numbers or not 0 < numbers[0] <= numbers[-1] <= LARGEST_SIZE):
        raise Refusal(f"{given!r} is not a list of batch sizes such as 8,16,32")
    if len(numbers) > MOST_SIZES:
        raise Refusal(f"{len(numbers)} batch sizes are too many; the most is {MOST_SIZES}")
    return tuple(numbers)


@click.command(
    "profile",
    cls=ScriptOrRuns,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Show where a training script spends its time and memory.",
)
@steps_option
@click.option(
    "--windows",
    type=click.IntRange(min=1, max=20),
    default=3,
    show_default=True,
    metavar="N",
    help="Number of windows of steps to profile in detail.",
)
@click.option(
    "--steps-per-window",
    type=click.IntRange(min=1, max=100),
    default=8,
    show_default=True,
    metavar="N",
    help="Steps in each window.",
)
@leave_out_flag("--no-python", "python", "Do not sample Python's stacks.")
@click.option("--cprofile", is_flag=True, help="Also count every Python call; slow.")
@click.option("--try", "attempts", is_flag=True, help="Try faster settings on a snapshot at the end.")
@click.option(
    "--batch-sizes", callback=sizes, metavar="8,16,…", help="Measure these batch sizes on a snapshot."
)
@click.option(
    "--try-limit",
    type=click.FloatRange(min=1.0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Limit for --try, and the same again for --batch-sizes.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=lambda ctx, param, folder: folder.absolute() if folder is not None else None,
    metavar="DIR",
    help="Write files for other tools to this folder.",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    callback=formats,
    metavar="KIND",
    help=f"Formats to write: {', '.join(FORMATS)} (a,b or repeated).  [default: all]",
)
@file_option("json", "Write the whole profile as JSON.")
@fail_on_option
@click.option("--show", is_flag=True, help="Show the profile of a recorded run: clew profile --show RUN.")
@all_flag("The same, in full.")
@click.option("--export", "exports", is_flag=True, help="Write the files for a recorded run.")
@click.option("--compare", is_flag=True, help="Show what became slower: clew profile --compare RUN_A RUN_B.")
@script_group(required=False)
def command(show: bool, full: bool, exports: bool, compare: bool, **given: Any) -> RunOptions | int:
    """Run a training script and show where its steps spend time and memory.

    By part of the step, module, operation and line. A few short windows of steps are profiled in detail
    while it trains; the results of the training do not change.

    \b
      clew profile train.py --lr 0.1
      clew profile --steps 200 --out files -m package.train
      clew profile --compare RUN_A RUN_B
    """
    script, args, folder, json_path = (given[name] for name in ("script", "args", "folder", "json_path"))
    if compare:
        return _compare(script, args, folder, full, json_path)
    if exports:
        return export_run(_one_run(script, args), folder, given["out"], given["formats"])
    if show or full:
        return show_run(_one_run(script, args), folder, full=full, json_path=json_path)
    if script is None:
        raise Refusal(SAY_WHAT)
    return run_options(profile=taken(ProfileOptions, given), **given)


def _one_run(run: str | None, more: tuple[str, ...]) -> str | None:
    if more:
        raise Refusal(f"only one run at a time: unexpected {more[0]!r}")
    return run


def _compare(
    before: str | None, more: tuple[str, ...], folder: Path | None, full: bool, json_path: Path | None
) -> int:
    if before is None or len(more) != 1:
        raise Refusal("--compare takes two runs: clew profile --compare RUN_A RUN_B")
    return compare_runs(before, more[0], folder, full=full, json_path=json_path)
