"""The commands, and the error for a wrong command line: one clear line, exit code 2."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Sequence

import click

from clew.records.version import __version__
from clew.session.run_options import RunOptions
from clew.store.read.run_errors import RunError

VERBS = (
    "run",
    "check",
    "why",
    "explain",
    "replay",
    "data",
    "profile",
    "show",
    "runs",
    "ui",
    "report",
    "demo",
)
BAD_INPUT = 2
INTERRUPTED = 130


class Verbs(click.Group):
    """A group whose commands are modules of this package, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"clew.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS:
            raise click.UsageError(f"{args[0]!r} is not a command; {_suggestion(args)}")
        return super().resolve_command(ctx, args)


def _suggestion(args: Sequence[str]) -> str:
    if args[0].endswith(".py") or os.path.isfile(args[0]):
        return f"to run a script: clew run {args[0]}"
    close = difflib.get_close_matches(args[0], VERBS, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the commands are: {', '.join(VERBS)}"


@click.command(
    cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True
)
@click.option("--version", is_flag=True, help="Print the version.")
@click.pass_context
def clew(ctx: click.Context, version: bool) -> int | None:
    """Report what is wrong with the training of a neural network, where, and how to fix it.

    \b
      clew check train.py            test the network in its first steps
      clew run train.py --lr 0.1     train as usual, then the diagnosis
      clew why                       the diagnosis of the newest run, again
      clew explain missing-zero-grad
    """
    if version:
        click.echo(f"clew {__version__}")
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    else:
        return None
    ctx.exit(0)


def interpret(arguments: Sequence[str]) -> int | RunOptions:
    """Run a command and return its exit code; for a verb that runs a program, the options of the run."""
    try:
        result = clew.main(list(arguments), prog_name="clew", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        return _refuse(error.format_message(), error.exit_code)
    except RunError as error:
        return _refuse(str(error), BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        return _refuse("interrupted", INTERRUPTED)
    except BrokenPipeError:  # `clew runs | head`: the reader has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return result if isinstance(result, (int, RunOptions)) else 0


def _refuse(message: str, code: int) -> int:
    from clew.render.safe_text import neutral
    from clew.render.stderr_messages import say

    say(neutral(f"clew: {message}"))
    return code
