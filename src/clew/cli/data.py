"""`clew data`: what the network is really fed."""

from __future__ import annotations

from typing import Any

import click

from clew.cli.options import (
    Refusal,
    fail_on_option,
    first_steps_group,
    leave_out_flag,
    run_options,
    script_group,
    taken,
)
from clew.cli.run import BeforeTheScript
from clew.records.data_report import DataOptions
from clew.session.run_options import RunOptions


@click.command(
    "data",
    cls=BeforeTheScript,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="See, measure and judge what a script's loaders deliver.",
)
@click.option(
    "--loader",
    default="",
    callback=lambda ctx, param, name: name.strip(),
    metavar="NAME",
    help="Only this one: its name in the script, or number.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0, max=64),
    default=8,
    show_default=True,
    metavar="N",
    help="How many to show.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=0),
    metavar="I",
    help="One sample through every transform, and no more.",
)
@click.option(
    "--bare", is_flag=True, help="Only run the script, with its loaders in this process, to debug them."
)
@leave_out_flag("--no-measure", "measure", "Leave out how fast the data comes.")
@click.option("--sweep", is_flag=True, help="Try numbers of workers and of prefetched batches.")
@leave_out_flag("--no-judge", "judge", "Leave out the look through the whole data set.")
@click.option("--all", is_flag=True, help="Look through all of it, not a part.")
@first_steps_group(60.0, "For all of it together.")
@fail_on_option
@script_group()
def command(**given: Any) -> RunOptions:
    """Run a script up to its first training steps and look at its data.

    Samples from the dataset beside the same samples as the model gets them, how fast they come and
    where the time goes, and what is wrong with the data set. Then the script is ended, or trains on
    with --continue.

    \b
      clew data train.py --lr 0.1
      clew data --sample 17 train.py          one sample, stage by stage
      clew data --bare train.py               without workers, so that breakpoints work
    """
    options = taken(DataOptions, given)
    _must_go_together(options)
    return run_options(data=options, **given)


def _must_go_together(options: DataOptions) -> None:
    if options.bare and (options.sweep or options.all or options.sample is not None or options.go_on):
        raise Refusal(
            "--bare only runs the script; it goes with none of --sample, --sweep, --all, --continue"
        )
    if options.sweep and not options.measure:
        raise Refusal("--sweep measures; it does not go with --no-measure")
