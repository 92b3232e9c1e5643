"""`clew check`: the pre-flight of a training script."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.options import (
    Refusal,
    continue_flag,
    file_option,
    folder_option,
    ignore_option,
    module_flag,
    name_option,
    quiet_flag,
    run_options,
    script_argument,
    time_limit_option,
)
from clew.cli.run import BeforeTheScript
from clew.session.run_options import CheckOptions, RunOptions

LEVELS = click.Choice(["error", "warning", "none"])


def names(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Names of experiments, one by one or with commas between them."""
    return tuple(name.strip().lower() for text in given for name in text.split(",") if name.strip())


@click.command(
    "check",
    cls=BeforeTheScript,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Test a network with short experiments before a long training.",
)
@module_flag
@click.option(
    "--only",
    multiple=True,
    callback=names,
    metavar="NAME",
    help="Run only these experiments (a,b or repeated).",
)
@click.option(
    "--skip", multiple=True, callback=names, metavar="NAME", help="Skip these experiments (a,b or repeated)."
)
@time_limit_option(120.0, "Limit for all experiments together.")
@continue_flag
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    metavar="N",
    help="Number of the script's batches to use.",
)
@click.option(
    "--fail-on",
    type=LEVELS,
    default="warning",
    show_default=True,
    help="Exit with code 3 on a finding of this severity or worse.",
)
@file_option("json", "Write the report as JSON.")
@file_option("junit", "Write the report as JUnit XML.")
@file_option("html", "Write the report as an HTML page.")
@folder_option
@name_option
@ignore_option
@quiet_flag
@script_argument
def command(
    script: str,
    args: tuple[str, ...],
    module: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    time_limit: float,
    go_on: bool,
    steps: int,
    fail_on: str,
    json_path: Path | None,
    junit_path: Path | None,
    html_path: Path | None,
    folder: Path | None,
    name: str | None,
    ignore: tuple[str, ...],
    quiet: bool,
) -> RunOptions:
    """Run a script up to its first training steps and run experiments on its network.

    Can the network memorise a batch? Does it use its input? Do samples leak into each other? The
    experiments run on a snapshot; then the script is stopped, or continues to train with --continue.

    \b
      clew check train.py --lr 0.1
      clew check --only cannot-overfit-batch,input-ignored train.py
      clew check --continue train.py
    """
    _must_be_known(only, skip)
    return run_options(
        script,
        args=args,
        module=module,
        folder=folder,
        name=name,
        json_path=json_path,
        fail_on=None if fail_on == "none" else fail_on,
        ignore=ignore,
        quiet=quiet,
        check=CheckOptions(
            only=only,
            skip=skip,
            time_limit=time_limit,
            batches=steps,
            go_on=go_on,
            junit_path=junit_path,
            html_path=html_path,
        ),
    )


def _must_be_known(only: tuple[str, ...], skip: tuple[str, ...]) -> None:
    """Check the names before the script runs; torch is imported only if any are given."""
    if not only and not skip:
        return
    try:
        from clew.labs.experiments.run import UnknownExperiment, chosen
    except ImportError as error:
        raise Refusal("experiments need torch: pip install torch") from error

    try:
        wanted = chosen(only, skip)
    except UnknownExperiment as error:
        raise Refusal(str(error)) from error
    if not wanted:
        raise Refusal("--only and --skip leave no experiment")
