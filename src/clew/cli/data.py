"""`clew data`: what the network is really fed."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.options import (
    Refusal,
    continue_flag,
    fail_on_option,
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
from clew.records.data_report import DataOptions
from clew.session.run_options import RunOptions


@click.command(
    "data",
    cls=BeforeTheScript,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="See, measure and judge what a script's loaders deliver.",
)
@module_flag
@click.option(
    "--loader", default="", metavar="NAME", help="Only this one: its name in the script, or number."
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
@click.option("--no-measure", is_flag=True, help="Leave out how fast the data comes.")
@click.option("--sweep", is_flag=True, help="Try numbers of workers and of prefetched batches.")
@click.option("--no-judge", is_flag=True, help="Leave out the look through the whole data set.")
@click.option("--all", "every", is_flag=True, help="Look through all of it, not a part.")
@time_limit_option(60.0, "For all of it together.")
@continue_flag
@fail_on_option
@file_option("json", "Write the report as JSON.")
@file_option("html", "Write it as a page to look at.")
@folder_option
@name_option
@ignore_option
@quiet_flag
@script_argument
def command(
    script: str,
    args: tuple[str, ...],
    module: bool,
    loader: str,
    samples: int,
    sample: int | None,
    bare: bool,
    no_measure: bool,
    sweep: bool,
    no_judge: bool,
    every: bool,
    time_limit: float,
    go_on: bool,
    fail_on: str | None,
    json_path: Path | None,
    html_path: Path | None,
    folder: Path | None,
    name: str | None,
    ignore: tuple[str, ...],
    quiet: bool,
) -> RunOptions:
    """Run a script up to its first training steps and look at its data.

    Samples from the dataset beside the same samples as the model gets them, how fast they come and
    where the time goes, and what is wrong with the data set. Then the script is ended, or trains on
    with --continue.

    \b
      clew data train.py --lr 0.1
      clew data --sample 17 train.py          one sample, stage by stage
      clew data --bare train.py               without workers, so that breakpoints work
    """
    if bare and (sweep or every or sample is not None or go_on):
        raise Refusal(
            "--bare only runs the script; it goes with none of --sample, --sweep, --all, --continue"
        )
    if sweep and no_measure:
        raise Refusal("--sweep measures; it does not go with --no-measure")
    return run_options(
        script,
        args=args,
        module=module,
        folder=folder,
        name=name,
        json_path=json_path,
        fail_on=fail_on,
        ignore=ignore,
        quiet=quiet,
        data=DataOptions(
            loader=loader.strip(),
            samples=samples,
            sample=sample,
            bare=bare,
            measure=not no_measure,
            sweep=sweep,
            judge=not no_judge,
            all=every,
            time_limit=time_limit,
            html_path=html_path,
            go_on=go_on,
        ),
    )
