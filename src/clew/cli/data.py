"""`clew data`: what the network is really fed."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.arguments import LEVELS, Refusal, folder_option, ignore_option, known_checks, runs_folder
from clew.cli.run import BeforeTheScript, must_exist
from clew.options import DataOptions, RunOptions


@click.command(
    "data",
    cls=BeforeTheScript,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="See, measure and judge what a script's loaders deliver.",
)
@click.option("-m", "module", is_flag=True, help="SCRIPT names a module, as for python -m.")
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
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="For all of it together.",
)
@click.option("--continue", "go_on", is_flag=True, help="Train on afterwards, as if nothing had been.")
@click.option("--fail-on", type=LEVELS, help="Exit with 3 if there is such a finding, or a worse one.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as JSON."
)
@click.option(
    "--html",
    "html_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it as a page to look at.",
)
@folder_option
@click.option("--name", help="A word for the run's id.  [default: the script's name]")
@ignore_option
@click.option("--quiet", is_flag=True, help="Print nothing.")
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
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
    if not module:
        must_exist(script)
    if bare and (sweep or every or sample is not None or go_on):
        raise Refusal(
            "--bare only runs the script; it goes with none of --sample, --sweep, --all, --continue"
        )
    if sweep and no_measure:
        raise Refusal("--sweep measures; it does not go with --no-measure")
    return RunOptions(
        script=script,
        args=args,
        module=module,
        root=runs_folder(folder).absolute(),  # the script may change the working folder
        name=name,
        json_path=json_path.absolute() if json_path else None,
        fail_on=fail_on,
        ignore=known_checks(ignore),
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
            html_path=html_path.absolute() if html_path else None,
            go_on=go_on,
        ),
    )
