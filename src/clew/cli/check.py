"""`clew check`: the pre-flight of a training script."""

from __future__ import annotations

from typing import Any

import click

from clew.cli.options import (
    Refusal,
    comma_separated,
    fail_on_warning_option,
    file_option,
    first_steps_group,
    run_options,
    script_group,
    taken,
)
from clew.cli.run import BeforeTheScript
from clew.session.run_options import CheckOptions, RunOptions


@click.command(
    "check",
    cls=BeforeTheScript,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Ask a network questions in its first steps, before training it for long.",
)
@click.option(
    "--only",
    multiple=True,
    callback=comma_separated,
    metavar="NAME",
    help="These experiments (a,b or repeated).",
)
@click.option(
    "--skip", multiple=True, callback=comma_separated, metavar="NAME", help="All experiments but these."
)
@click.option(
    "--steps",
    "batches",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    metavar="N",
    help="Batches of the script's own to use.",
)
@first_steps_group(120.0, "For all experiments together.")
@file_option("junit", "Write it as JUnit XML.")
@fail_on_warning_option
@script_group()
def command(**given: Any) -> RunOptions:
    """Run a script up to its first training steps and try out what it trains.

    Can the network learn a batch by heart? Does it use its input? Do samples leak into each other? The
    experiments run on a snapshot; then the script is ended, or trains on with --continue.

    \b
      clew check train.py --lr 0.1
      clew check --only cannot-overfit-batch,input-ignored train.py
      clew check --continue train.py
    """
    options = taken(CheckOptions, given)
    _must_be_known(options.only, options.skip)
    return run_options(check=options, **given)


def _must_be_known(only: tuple[str, ...], skip: tuple[str, ...]) -> None:
    """Before the script runs. Names are asked of torch's part only if there are any."""
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
