"""`clew run`: runs the user's program and records it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

import click

from clew.cli.options import (
    LEVELS,
    Refusal,
    ScriptCommand,
    comma_separated,
    fail_on_option,
    file_option,
    run_options,
    script_group,
    steps_option,
)
from clew.render.stderr_messages import in_short, say
from clew.session.run_options import RunOptions, enabled

if TYPE_CHECKING:
    from clew.hooks.entry.launcher import Outcome
    from clew.session.session import Session


def share(ctx: click.Context, param: click.Parameter, text: str) -> float:
    """A share of something, as `2%` or `0.02`."""
    try:
        value = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1:
        raise click.BadParameter(f"{text!r} is not a share between 0 and 1 such as 2% or 0.02", ctx, param)
    return value


def known_trackers(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Names of trackers from installed packages; an unknown one is refused."""
    names = comma_separated(ctx, param, given)
    if names:
        from clew.session.activities.tracker_feed import TRACKERS

        known = TRACKERS.all()
        unknown = f"is unknown; available: {', '.join(known)}" if known else "is unknown; none is installed"
        for name in names:
            if name not in known:
                raise Refusal(f"the tracker {name} {TRACKERS.broken().get(name, unknown)}")
    return names


@click.command(
    "run",
    cls=ScriptCommand,
    short_help="Run a training script and report what is wrong.",
)
@click.option(
    "--budget",
    callback=share,
    default="2%",
    show_default=True,
    metavar="SHARE",
    help="Share of the step time that Clew may use.",
)
@click.option("--every-step", is_flag=True, help="Record statistics of every layer on every step.")
@file_option("json", "Write the verdict as JSON.")
@steps_option
@click.option("--stop-on", type=LEVELS, help="Stop at the first finding of this severity or worse.")
@click.option(
    "--trace-numerics",
    type=click.Choice(["layer", "op"]),
    help="Check every layer or operation for NaN and infinity; slow.",
)
@click.option("--from-step", type=click.IntRange(min=0), default=0, metavar="N", help="Trace from this step.")
@click.option("--to-step", type=click.IntRange(min=0), metavar="M", help="Trace to this step.")
@click.option("--prove", is_flag=True, help="At the end, try the suggested fixes on a snapshot.")
@click.option("--print-shapes", is_flag=True, help="Print the input and output shapes of each layer, once.")
@click.option("--graph", is_flag=True, help="Record the model's graph (runs one extra forward).")
@click.option(
    "--track",
    multiple=True,
    callback=known_trackers,
    metavar="NAME",
    help="Also send what is recorded to a tracker from an installed package (a,b or repeated).",
)
@fail_on_option
@script_group()
def command(from_step: int, to_step: int | None, **given: Any) -> RunOptions:
    """Run a training script, unmodified, and report what is wrong.

    Options before SCRIPT are for Clew; everything after it is passed to the script.

    \b
      clew run train.py --lr 0.1
      clew run --fail-on error -m package.train
      torchrun --nproc-per-node 4 -m clew run train.py
    """
    if to_step is not None and to_step < from_step:
        raise Refusal(f"--to-step {to_step} is before --from-step {from_step}")
    return run_options(from_step=from_step, to_step=to_step, **given)


def launch(options: RunOptions) -> NoReturn:
    """Run the program and end the process as it would have ended without Clew."""
    from clew.hooks.entry import launcher

    session = _start(options) if enabled() else None
    watched = os.getpid()
    run = launcher.run_module if options.module else launcher.run_script
    outcome = run(options.script, options.args)
    # A child that the program forked also arrives here; the run is its parent's.
    code = _finish(session, outcome) if session is not None and os.getpid() == watched else None
    launcher.leave(outcome, code)


def _start(options: RunOptions) -> Session | None:
    try:
        from clew.session.session import start_run

        return start_run(options)
    except Exception as error:  # noqa: BLE001 - the training must run even if Clew fails
        say(f"clew: recording could not start; the script runs without it ({in_short(error)})")
        return None


def _finish(session: Session, outcome: Outcome) -> int | None:
    try:
        return session.finish(outcome)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the script's own outcome counts
        say(f"clew: the checks could not run ({in_short(error)}); try `clew why`")
        return None
