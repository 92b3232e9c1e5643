"""`clew runs`: lists and removes recorded runs."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import Refusal, folder_option, json_flag, runs_folder
from clew.records.plural import counted

if TYPE_CHECKING:
    from clew.store.read.run_info import RunInfo

STATES = click.Choice(["running", "finished", "failed", "killed", "empty", "unreadable"])
UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def age(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """A duration in seconds: 30m, 12h, 7d, 2w."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text.lower())
    if found is None or found[2] not in UNITS:
        raise click.BadParameter(f"{text!r} is not a duration such as 30m, 12h, 7d or 2w", ctx, param)
    return float(found[1]) * UNITS[found[2]]


class WithRemoval(click.Group):
    """`clew runs WORD` most likely means a search."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            raise click.UsageError(
                f"{args[0]!r} is not a subcommand of clew runs; to search: clew runs --match {args[0]}"
            )
        return super().resolve_command(ctx, args)


@click.group(
    "runs", cls=WithRemoval, invoke_without_command=True, short_help="List the recorded runs, newest first."
)
@click.option("--state", type=STATES, help="Only runs in this state.")
@click.option("--match", metavar="TEXT", help="Only runs whose ID or script contains TEXT.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N runs.")
@json_flag
@folder_option
@click.pass_context
def command(
    ctx: click.Context,
    state: str | None,
    match: str | None,
    limit: int | None,
    as_json: bool,
    folder: Path | None,
) -> int:
    """List the recorded runs, newest first.

    \b
      clew runs --state failed --limit 5
      clew runs rm 20261115-215301
      clew runs rm --older-than 7d
    """
    ctx.obj = folder
    if ctx.invoked_subcommand is not None:
        return 0
    found = _listed(folder, state, match, limit)
    if as_json:
        from clew.render.verdict.runs_table import run_json
        from clew.render.verdict_json import dumps

        sys.stdout.write(dumps([run_json(run) for run in found]))
    elif found:
        from clew.render.verdict.runs_table import render_runs

        render_runs(found, stream=sys.stdout)
    else:
        which = "matching runs" if state or match else "runs"
        click.echo(f"no {which} in {runs_folder(folder)}; record one with: clew run train.py")
    return 0


def _listed(folder: Path | None, state: str | None, match: str | None, limit: int | None) -> list[RunInfo]:
    from clew.store.read.run_folders import list_runs

    found = [
        run
        for run in list_runs(runs_folder(folder))
        if (state is None or run.state == state)
        and (match is None or match.lower() in f"{run.id} {run.script}".lower())
    ]
    return found[:limit]


@command.command("rm")
@click.argument("names", metavar="RUN...", nargs=-1)
@click.option("--older-than", callback=age, metavar="AGE", help="Remove runs older than this: 30m, 12h, 7d.")
@click.option("--force", is_flag=True, help="Also remove a run that is still running.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_flag
@folder_option
@click.pass_obj
def remove(
    outer_folder: Path | None,
    names: tuple[str, ...],
    older_than: float | None,
    force: bool,
    yes: bool,
    as_json: bool,
    folder: Path | None,
) -> int:
    """Remove runs, by name or by age."""
    from clew.store.read.run_folders import remove_run

    paths = _chosen(runs_folder(folder or outer_folder), names, older_than, force)
    if paths and not yes:
        _confirm(paths)
    for path in paths:
        remove_run(path, force=force)
    if as_json:
        from clew.render.verdict_json import dumps

        sys.stdout.write(dumps({"removed": [str(path) for path in paths]}))
    else:
        click.echo(f"removed {counted(len(paths), 'run')}")
    return 0


def _chosen(root: Path, names: tuple[str, ...], older_than: float | None, force: bool) -> list[Path]:
    from clew.store.read.run_folders import find_run, list_runs

    if not names and older_than is None:
        raise Refusal("no runs given: clew runs rm RUN, or --older-than 7d")
    chosen = [find_run(root, name) for name in names]
    if older_than is not None:
        before = time.time() - older_than
        old = [run for run in list_runs(root) if run.started is not None and run.started < before]
        # An age means runs that have ended; a run in progress is only removed by name.
        chosen += [run.path for run in old if run.state != "running"]
    return list(dict.fromkeys(chosen))


def _confirm(paths: list[Path]) -> None:
    if not sys.stdin.isatty():
        raise Refusal(f"this removes {counted(len(paths), 'run')}; add --yes to confirm")
    for path in paths:
        click.echo(f"  {path.name}")
    click.confirm(f"Remove {counted(len(paths), 'run')}?", abort=True)
