"""What `clew profile` does with recorded runs: show, export and compare them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.options import Refusal, runs_folder
from clew.cli.run import BeforeTheScript

if TYPE_CHECKING:
    from clew.store.read.run_reader import RunReader

OF_RUNS = ("show", "full", "exports", "compare")  # flags that ask for runs, not for a script


class ScriptOrRuns(BeforeTheScript):
    """Options end where a script begins; where runs are asked for, they may also follow them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with contextlib.suppress(click.UsageError):  # said in the real reading, below
            given, _, _ = self.make_parser(ctx).parse_args(list(args))
            ctx.allow_interspersed_args = any(given.get(flag) for flag in OF_RUNS)
        return super().parse_args(ctx, args)


def show_run(
    run: str | None, folder: Path | None, *, full: bool = False, json_path: Path | None = None
) -> int:
    """Print the profile of a recorded run, with the findings of the checks."""
    from clew.checks.run_view import RunView
    from clew.checks.runner import judge
    from clew.records.tried_changes import recorded, recorded_json
    from clew.render.profile.attempts_terminal import render_tried
    from clew.render.profile.profile_terminal import render_profile
    from clew.render.profile.recorded_profile import read_profile
    from clew.render.run_summary import summarise
    from clew.render.verdict_json import verdict_json, write_json
    from clew.store.read.run_folders import find_run
    from clew.store.read.run_reader import open_run

    reader = open_run(find_run(runs_folder(folder), run))
    profile = read_profile(reader.path)
    verdict = judge(RunView(reader.data))
    summary = summarise(reader, checks=verdict.asked)
    if json_path is not None:
        tried = recorded_json(reader.data.facts)
        write_json(json_path, {**verdict_json(verdict, summary), "profile": profile.to_json(), **tried})
    render_profile(profile, verdict, summary, sys.stdout, full=full)
    render_tried(*recorded(reader.data.facts), stream=sys.stdout)
    return 0


def export_run(run: str | None, folder: Path | None, out: Path | None, formats: Sequence[str]) -> int:
    """Write the files of a recorded run's profile, and print their names, one per line."""
    from clew.render.profile.files.profile_exports import export
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


def _about(run: RunReader) -> dict[str, Any]:
    """Its run.json, with the versions that were known only once it ran."""
    seen = [fact.data for fact in run.data.facts if fact.kind == "versions"]
    known = run.meta.get("versions")
    first = known if isinstance(known, dict) else {}
    return {**run.meta, "versions": {**first, **(seen[-1] if seen else {})}}
