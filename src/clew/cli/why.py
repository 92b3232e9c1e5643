"""`clew why`: the diagnosis of a recorded run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import (
    Refusal,
    all_flag,
    fail_on_option,
    fails,
    folder_option,
    ignore_option,
    json_flag,
    known_checks,
    runs_folder,
)
from clew.session.run_options import FAILED_ON

if TYPE_CHECKING:
    from clew.records.verdict import Verdict
    from clew.render.run_summary import RunSummary


@click.command("why", short_help="Report what is wrong with a run, the evidence, and the fix.")
@click.argument("run", required=False)
@all_flag("Show everything.")
@json_flag
@click.option(
    "--format", "form", metavar="NAME", help="Print as text, json, or a format from an installed package."
)
@fail_on_option
@ignore_option
@folder_option
def command(
    run: str | None,
    full: bool,
    as_json: bool,
    form: str | None,
    fail_on: str | None,
    ignore: tuple[str, ...],
    folder: Path | None,
) -> int:
    """Report what is wrong with a run, the evidence, and how to fix it.

    RUN is an ID from clew runs, the start of one, or a path; the newest run by default.

    \b
      clew why
      clew why 20261115 --all
      clew why --json | jq .findings[0].check
    """
    from clew.checks.run_view import RunView
    from clew.checks.runner import judge
    from clew.render.run_summary import summarise
    from clew.store.read.run_folders import find_run
    from clew.store.read.run_reader import open_run

    asked = known_checks(ignore)
    reader = open_run(find_run(runs_folder(folder), run))
    verdict = judge(RunView(reader.data, reader.ranks), ignore=asked)
    summary = summarise(reader, checks=verdict.asked)
    if summary.idle is not None and not verdict.findings:
        raise Refusal(f"nothing to check in {reader.path}: {summary.idle}")
    if form is not None or as_json:
        sys.stdout.write(_rendered("json" if form is None else form, verdict, summary))
    else:
        from clew.render.verdict.verdict_terminal import render_verdict

        render_verdict(verdict, summary, stream=sys.stdout, full=full)
    return FAILED_ON if fails(verdict, fail_on) else 0


def _rendered(form: str, verdict: Verdict, summary: RunSummary) -> str:
    from clew.render.renderers import CannotRender, rendered

    try:
        return rendered(form.lower(), verdict, summary)
    except CannotRender as error:
        raise Refusal(str(error)) from error
