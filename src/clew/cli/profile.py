"""`clew profile`: where a training script spends its time and memory."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.options import (
    Refusal,
    ScriptCommand,
    all_flag,
    comma_separated,
    fail_on_option,
    file_option,
    leave_out_flag,
    no_script,
    run_options,
    runs_folder,
    script_group,
    steps_option,
    taken,
)
from clew.session.run_options import ProfileOptions, RunOptions

if TYPE_CHECKING:
    from clew.store.read.run_metadata import RunMeta
    from clew.store.read.run_reader import RunReader

OF_RUNS = ("show", "full", "exports", "compare")  # flags that ask for runs, not for a script
FORMATS = ("csv", "chrome", "pstats", "speedscope", "html")
MOST_SIZES = 32
LARGEST_SIZE = 1 << 20


class ScriptOrRuns(ScriptCommand):
    """Options must come before a script; where runs are asked for, they may also follow them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with contextlib.suppress(click.UsageError):  # reported by the real parsing, below
            given, _, _ = self.make_parser(ctx).parse_args(list(args))
            ctx.allow_interspersed_args = any(given.get(flag) for flag in OF_RUNS)
        return super().parse_args(ctx, args)


def show_run(
    run: str | None, folder: Path | None, *, full: bool = False, json_path: Path | None = None
) -> int:
    """Print the profile of a recorded run, with the findings of the checks."""
    from clew.checks.run_view import RunView
    from clew.checks.runner import judge
    from clew.records.facts.document_facts import tried_changes, tried_changes_json
    from clew.render.profile.profile_terminal import render_profile
    from clew.render.profile.recorded_profile import read_profile
    from clew.render.profile.tried_changes_terminal import render_tried
    from clew.render.run_summary import summarise
    from clew.render.verdict_json import verdict_json, write_json
    from clew.store.read.run_folders import find_run
    from clew.store.read.run_reader import open_run

    reader = open_run(find_run(runs_folder(folder), run))
    profile = read_profile(reader.path)
    verdict = judge(RunView(reader.data))
    summary = summarise(reader, checks=verdict.asked)
    if json_path is not None:
        tried = tried_changes_json(reader.data.facts)
        write_json(json_path, {**verdict_json(verdict, summary), "profile": profile.to_json(), **tried})
    render_profile(profile, verdict, summary, sys.stdout, full=full)
    render_tried(*tried_changes(reader.data.facts), stream=sys.stdout)
    return 0


def export_run(run: str | None, folder: Path | None, out: Path | None, formats: Sequence[str]) -> int:
    """Write the files of a recorded run's profile, and print their names, one per line."""
    from clew.render.profile.profile_exports import export
    from clew.render.profile.recorded_profile import read_profile
    from clew.render.safe_text import neutral, short_path
    from clew.store.read.run_folders import find_run

    path = find_run(runs_folder(folder), run)
    written = export(read_profile(path), path, out or Path.cwd() / f"{path.name}-profile", formats)
    if not written:
        raise Refusal(f"nothing to write: the profile of {path.name} has no data for these formats")
    for file in written:
        sys.stdout.write(neutral(short_path(file), 4000) + "\n")
    return 0


def compare_runs(
    before: str, after: str, folder: Path | None, *, full: bool = False, json_path: Path | None = None
) -> int:
    """Print what became slower or faster from one recorded run to another."""
    from clew.render.profile.profile_diff import compare, to_json
    from clew.render.profile.profile_diff_terminal import render_comparison
    from clew.render.profile.recorded_profile import read_profile
    from clew.render.verdict_json import write_json
    from clew.store.read.run_folders import find_run
    from clew.store.read.run_reader import open_run

    runs = [open_run(find_run(runs_folder(folder), name)) for name in (before, after)]
    profiles = [read_profile(run.path) for run in runs]
    names, about = (runs[0].path.name, runs[1].path.name), (_about(runs[0]), _about(runs[1]))
    comparison = compare(profiles[0], profiles[1], names, about)
    if json_path is not None:
        write_json(json_path, to_json(comparison))
    render_comparison(comparison, sys.stdout, full=full)
    return 0


def _about(run: RunReader) -> RunMeta:
    """Its run.json, with the versions that became known only during the run."""
    from clew.records.facts.fact import facts_of
    from clew.records.facts.run_facts import VersionsFact

    seen = [fact.to_json() for fact in facts_of(VersionsFact, run.data.facts)]
    return replace(run.meta, versions={**run.meta.versions, **(seen[-1] if seen else {})})


def formats(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Names of known formats; an unknown one is refused."""
    names = comma_separated(ctx, param, given)
    unknown = next((name for name in names if name not in FORMATS), None)
    if unknown is not None:
        raise Refusal(f"no such format: {unknown}; available: {', '.join(FORMATS)}")
    return names


def sizes(ctx: click.Context, param: click.Parameter, given: str | None) -> tuple[int, ...]:
    """`8,16,32` as numbers, sorted and without repetitions."""
    texts = [text.strip() for text in (given or "").split(",") if text.strip()]
    try:
        numbers = sorted({int(text) for text in texts})
    except ValueError:
        numbers = [0]
    if given is not None and (not numbers or not 0 < numbers[0] <= numbers[-1] <= LARGEST_SIZE):
        raise Refusal(f"{given!r} is not a list of batch sizes such as 8,16,32")
    if len(numbers) > MOST_SIZES:
        raise Refusal(f"{len(numbers)} batch sizes are too many; the limit is {MOST_SIZES}")
    return tuple(numbers)


@click.command(
    "profile",
    cls=ScriptOrRuns,
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
    help="Time limit for --try and, separately, for --batch-sizes.",
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
@all_flag("Show the complete profile.")
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
        raise no_script("profile")
    return run_options(profile=taken(ProfileOptions, given), **given)


def _one_run(run: str | None, more: tuple[str, ...]) -> str | None:
    if more:
        raise Refusal(f"--show and --export take one run: unexpected {more[0]!r}")
    return run


def _compare(
    before: str | None, more: tuple[str, ...], folder: Path | None, full: bool, json_path: Path | None
) -> int:
    if before is None or len(more) != 1:
        raise Refusal("--compare takes two runs: clew profile --compare RUN_A RUN_B")
    return compare_runs(before, more[0], folder, full=full, json_path=json_path)
