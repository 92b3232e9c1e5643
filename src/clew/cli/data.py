"""`clew data`: the data that the network really gets."""

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
    short_help="Show, measure and check the data that a script's loaders return.",
)
@module_flag
@click.option(
    "--loader", default="", metavar="NAME", help="Only this loader: its name in the script, or its number."
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
@click.option("--no-measure", is_flag=True, help="Do not measure the speed of the loaders.")
@click.option("--sweep", is_flag=True, help="Measure different numbers of workers and prefetched batches.")
@click.option("--no-judge", is_flag=True, help="Do not check the whole dataset.")
@click.option("--all", "every", is_flag=True, help="Read the whole dataset, not only a part.")
@time_limit_option(60.0, "Limit for everything together.")
@continue_flag
@fail_on_option
@file_option("json", "Write the report as JSON.")
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
    """Run a script up to its first training steps and inspect its data.

    Shows samples from the dataset next to the same samples as the model gets them, measures how fast
    they are loaded and what takes the time, and reports what is wrong with the dataset. Then the script
    is stopped, or continues to train with --continue.

    \b
      clew data train.py --lr 0.1
      clew data --sample 17 train.py          one sample, stage by stage
      clew data --bare train.py               without workers, so that breakpoints work
    """
    if bare and (sweep or every or sample is not None or go_on):
        raise Refusal(
            "--bare only runs the script; it can't be combined with --sample, --sweep, --all or --continue"
        )
    if sweep and no_measure:
        raise Refusal("--sweep can't be combined with --no-measure")
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
