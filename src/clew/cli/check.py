"""`clew check`: the pre-flight of a training script."""

from __future__ import annotations

from typing import Any

import click

from clew.cli.options import (
    Refusal,
    ScriptCommand,
    comma_separated,
    fail_on_warning_option,
    file_option,
    first_steps_group,
    run_options,
    script_group,
    taken,
)
from clew.session.run_options import CheckOptions, RunOptions


@click.command(
    "check",
    cls=ScriptCommand,
    short_help="Test a network with short experiments before a long training.",
)
@click.option(
    "--only",
    multiple=True,
    callback=comma_separated,
    metavar="NAME",
    help="Run only these experiments (a,b or repeated).",
)
@click.option(
    "--skip",
    multiple=True,
    callback=comma_separated,
    metavar="NAME",
    help="Skip these experiments (a,b or repeated).",
)
@click.option(
    "--steps",
    "batches",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    metavar="N",
    help="Number of the script's batches to use.",
)
@first_steps_group(120.0, "Time limit for all experiments.")
@file_option("junit", "Write the report as JUnit XML.")
@fail_on_warning_option
@script_group()
def command(**given: Any) -> RunOptions:
    """Run a script up to its first training steps and run experiments on its network.

    Can the network memorise a batch? Does it use its input? Do samples leak into each other? The
    experiments run on a snapshot; then the script is stopped, or continues to train with --continue.

    \b
      clew check train.py --lr 0.1
      clew check --only cannot-overfit-batch,input-ignored train.py
      clew check --continue train.py
    """
    options = taken(CheckOptions, given)
    _must_be_known(options.only, options.skip)
    return run_options(check=options, **given)


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
        raise Refusal("--only and --skip exclude every experiment")
