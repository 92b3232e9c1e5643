"""Options that several verbs share, alone and in groups, and how their values are passed on.

An option that two verbs have is declared here once. A verb's own options are named after the fields of
its dataclass in `run_options`, so that passing them on needs no second list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clew.records.data_report import DataOptions
from clew.session.run_options import FAILED_ON, CheckOptions, ProfileOptions, RunOptions

if TYPE_CHECKING:
    from clew.checks.base import UnknownCheck
    from clew.checks.ignore_rules import Rule
    from clew.records.verdict import Verdict

Command = TypeVar("Command", bound=Callable[..., Any])

Options = TypeVar("Options", CheckOptions, ProfileOptions, DataOptions)

LEVELS = click.Choice(["error", "warning"])
FAIL_ON = f"Exit with code {FAILED_ON} on a finding of this severity or worse."


class Refusal(click.ClickException):
    """Input that can't be used; the message is one clear line."""

    exit_code = 2


def no_script(verb: str | None) -> Refusal:
    """The error where a script is required and none was given."""
    return Refusal(f"no script given: clew {verb} train.py, or clew {verb} -m package.train")


class ScriptCommand(click.Command):
    """A verb that runs a script: its options end where the script begins; the rest is the script's."""

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A wrong option is most likely one of the script's, put before it."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise Refusal(
                f"clew {self.name} has no option {error.option_name}; options of the script go after it: "
                f"clew {self.name} train.py {error.option_name} …"
            ) from error
        except click.MissingParameter as error:
            raise no_script(self.name) from error


# -- options that several verbs have --


def folder_option(function: Command) -> Command:
    return click.option(
        "--dir",
        "folder",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Folder of the runs.  [default: $CLEW_DIR or .clew/runs]",
    )(function)


def json_flag(function: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def all_flag(what: str) -> Callable[[Command], Command]:
    """`--all` of a verb that prints a shortened text."""
    return click.option("--all", "full", is_flag=True, help=what)


def fail_on_option(function: Command) -> Command:
    return click.option("--fail-on", type=LEVELS, help=FAIL_ON)(function)


def fail_on_warning_option(function: Command) -> Command:
    """The same, for a verb that fails on warnings by default."""
    return click.option(
        "--fail-on",
        type=click.Choice([*LEVELS.choices, "none"]),
        default="warning",
        show_default=True,
        callback=lambda ctx, param, level: None if level == "none" else level,
        help=FAIL_ON,
    )(function)


def ignore_option(function: Command) -> Command:
    return click.option(
        "--ignore",
        multiple=True,
        metavar="CHECK[@WHERE]",
        help="Ignore a check, or its findings at a module, file or line (may be repeated).",
    )(function)


def steps_option(function: Command) -> Command:
    return click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Stop after N steps.")(
        function
    )


def file_option(flag: str, what: str) -> Callable[[Command], Command]:
    """`--json FILE` as `json_path`: absolute, as the script may change the working folder."""
    return click.option(
        f"--{flag}",
        f"{flag}_path",
        type=click.Path(path_type=Path),
        callback=lambda ctx, param, path: path.absolute() if path is not None else None,
        metavar="FILE",
        help=what,
    )


def leave_out_flag(flag: str, name: str, what: str) -> Callable[[Command], Command]:
    """`--no-python` as `python=False`: a field of the options that is on unless it is left out."""
    return click.option(flag, name, is_flag=True, callback=lambda ctx, param, given: not given, help=what)


def comma_separated(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Names from repeated options or separated by commas, without repetitions."""
    names = (name.strip().lower() for text in given for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


# -- groups of options --


def group(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator; `--help` lists them in this order."""

    def add_all(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return add_all


def script_group(required: bool = True) -> Callable[[Command], Command]:
    """For all verbs that run a script: the script with its arguments, and how the run is recorded.

    The command passes their values on to `run_options`.
    """
    return group(
        click.option("-m", "module", is_flag=True, help="SCRIPT is a module, as with python -m."),
        folder_option,
        click.option("--name", help="Label used in the run ID.  [default: the script's name]"),
        ignore_option,
        click.option("--quiet", is_flag=True, help="Print nothing from Clew."),
        click.argument("script", required=required),
        click.argument("args", nargs=-1, type=click.UNPROCESSED),
    )


def first_steps_group(seconds: float, what: str) -> Callable[[Command], Command]:
    """For verbs that work on a script's first steps: the time limit, what follows, and the report."""
    return group(
        click.option(
            "--time-limit",
            type=click.FloatRange(min=0, min_open=True),
            default=seconds,
            show_default=True,
            metavar="SECONDS",
            help=what,
        ),
        click.option(
            "--continue",
            "go_on",
            is_flag=True,
            help="Restore the state afterwards and let training continue.",
        ),
        file_option("json", "Write the report as JSON."),
        file_option("html", "Write the report as an HTML page."),
    )


# -- what the user gave --


def run_options(*, script: str, module: bool, folder: Path | None, **given: Any) -> RunOptions:
    """The options of a run for the session; refuses a script that does not exist.

    `given` are the other fields of `RunOptions`, under the same names.
    """
    from clew.cli.script_targets import must_be_found, must_exist

    (must_be_found if module else must_exist)(script)
    given["ignore"] = known_checks(given["ignore"])
    root = runs_folder(folder).absolute()  # the script may change the working folder
    return RunOptions(script=script, module=module, root=root, **given)


def taken(kind: type[Options], given: dict[str, Any]) -> Options:
    """Take the options of one verb out of all that were given, by the names of its fields."""
    return kind(**{field.name: given.pop(field.name) for field in fields(kind) if field.name in given})


def runs_folder(folder: Path | None) -> Path:
    from clew.store.read.run_folders import default_root

    return folder if folder is not None else default_root()


def known_checks(names: Sequence[str]) -> tuple[str, ...]:
    """The same rules with the checks' names instead of IDs; an unknown check is an error."""
    if not names:
        return ()
    from clew.checks import catalog
    from clew.checks.base import UnknownCheck

    try:
        split = [name.partition("@") for name in names]
        return tuple("".join((catalog.find(name).name, at, where)) for name, at, where in split)
    except UnknownCheck as error:
        raise unknown_check(error) from error


def project_rules() -> list[Rule]:
    """What the pyproject.toml of this folder ignores; invalid settings are an error."""
    from clew.session import project_settings

    try:
        return list(project_settings.project_settings(Path.cwd()).rules)
    except project_settings.BadSettings as error:
        raise Refusal(str(error)) from error


def unknown_check(error: UnknownCheck) -> Refusal:
    """The error message, with a hint where no check has a similar name."""
    return Refusal(str(error) if error.close else f"{error}; `clew explain` lists all checks")


def fails(verdict: Verdict, fail_on: str | None) -> bool:
    """Whether the verdict has a finding of that severity or worse."""
    from clew.records.finding import Severity

    worst = verdict.worst()
    return fail_on is not None and worst is not None and worst.rank <= Severity(fail_on).rank
