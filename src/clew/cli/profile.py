"""`clew profile`: where the time and the memory of a training script go."""

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
SAY_WHAT = "say what to run: clew profile train.py, or clew profile -m package.train"


def formats(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Kinds of files that there are."""
    names = comma_separated(ctx, param, given)
    unknown = next((name for name in names if name not in FORMATS), None)
    if unknown is not None:
        raise Refusal(f"no such format: {unknown}; there are {', '.join(FORMATS)}")
    return names


def sizes(ctx: click.Context, param: click.Parameter, given: str | None) -> tuple[int, ...]:
    """`8,16,32` as numbers, each once and in order."""
    texts = [text.strip() for text in (given or "").split(",") if text.strip()]
    try:
        numbers = sorted({int(text) for text in texts})
    except ValueError:
        numbers = [0]
    if given is not None and (not numbers or not 0 < numbers[0] <= numbers[-1] <= LARGEST_SIZE):
        raise Refusal(f"{given!r} is no list of batch sizes, as 8,16,32")
    if len(numbers) > MOST_SIZES:
        raise Refusal(f"{len(numbers)} batch sizes are too many: {MOST_SIZES} at most")
    return tuple(numbers)


@click.command(
    "profile",
    cls=ScriptOrRuns,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Say where the time and the memory of a training script go.",
)
@steps_option
@click.option(
    "--windows",
    type=click.IntRange(min=1, max=20),
    default=3,
    show_default=True,
    metavar="N",
    help="How often to look in detail.",
)
@click.option(
    "--steps-per-window",
    type=click.IntRange(min=1, max=100),
    default=8,
    show_default=True,
    metavar="N",
    help="Steps looked at each time.",
)
@leave_out_flag("--no-python", "python", "Leave Python's stacks out.")
@click.option("--cprofile", is_flag=True, help="Count every call of Python's, too: slow.")
@click.option("--try", "attempts", is_flag=True, help="Try faster settings on a snapshot at the end.")
@click.option(
    "--batch-sizes", callback=sizes, metavar="8,16,…", help="Try batches of these sizes on a snapshot."
)
@click.option(
    "--try-limit",
    type=click.FloatRange(min=1.0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="For what --try does, and as much again for --batch-sizes.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=lambda ctx, param, folder: folder.absolute() if folder is not None else None,
    metavar="DIR",
    help="Write the profile's files here, for other tools.",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    callback=formats,
    metavar="KIND",
    help=f"Of which kinds: {', '.join(FORMATS)} (a,b or repeated).  [default: all]",
)
@file_option("json", "Write all of it as JSON.")
@fail_on_option
@click.option("--show", is_flag=True, help="The profile of a recorded run: clew profile --show RUN.")
@all_flag("The same, and leave nothing out.")
@click.option("--export", "exports", is_flag=True, help="The files of a recorded run.")
@click.option("--compare", is_flag=True, help="What became slower: clew profile --compare RUN_A RUN_B.")
@script_group(required=False)
def command(show: bool, full: bool, exports: bool, compare: bool, **given: Any) -> RunOptions | int:
    """Run a training script and say where the time of its steps goes, and its memory.

    By part of the step, module, operation and line. A few short windows are looked at in detail while it
    trains on; nothing that it computes is changed.

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
        raise Refusal(f"one run at a time: what is {more[0]!r}?")
    return run


def _compare(
    before: str | None, more: tuple[str, ...], folder: Path | None, full: bool, json_path: Path | None
) -> int:
    if before is None or len(more) != 1:
        raise Refusal("two runs are compared: clew profile --compare RUN_A RUN_B")
    return compare_runs(before, more[0], folder, full=full, json_path=json_path)
