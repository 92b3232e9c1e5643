"""`clew data`: the data that the network really gets."""

from __future__ import annotations

from typing import Any

import click

from clew.cli.options import (
    Refusal,
    ScriptCommand,
    fail_on_option,
    first_steps_group,
    leave_out_flag,
    run_options,
    script_group,
    taken,
)
from clew.records.data_report import DataOptions
from clew.session.run_options import RunOptions


@click.command(
    "data",
    cls=ScriptCommand,
    short_help="Show, measure and check the data that a script's loaders return.",
)
@click.option(
    "--loader",
    default="",
    callback=lambda ctx, param, name: name.strip(),
    metavar="NAME",
    help="Only this loader: its name in the script, or its number.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0, max=64),
    default=8,
    show_default=True,
    metavar="N",
    help="Number of samples to show.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=0),
    metavar="I",
    help="Show only one sample, stage by stage through its transforms.",
)
@click.option(
    "--bare",
    is_flag=True,
    help="Only run the script, with its loaders in this process, so that a debugger works.",
)
@leave_out_flag("--no-measure", "measure", "Do not measure the speed of the loaders.")
@click.option("--sweep", is_flag=True, help="Measure different numbers of workers and prefetched batches.")
@leave_out_flag("--no-judge", "judge", "Do not check the whole dataset.")
@click.option("--all", is_flag=True, help="Read the whole dataset, not only a part.")
@first_steps_group(60.0, "Time limit for the whole inspection.")
@fail_on_option
@script_group()
def command(**given: Any) -> RunOptions:
    """Run a script up to its first training steps and inspect its data.

    Shows samples from the dataset next to the same samples as the model gets them, measures how fast
    they are loaded and what takes the time, and reports what is wrong with the dataset. Then the script
    is stopped, or continues to train with --continue.

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
            "--bare only runs the script; it can't be combined with --sample, --sweep, --all or --continue"
        )
    if options.sweep and not options.measure:
        raise Refusal("--sweep can't be combined with --no-measure")
