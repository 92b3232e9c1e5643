"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clew.session.run_options import FAILED_ON, RunOptions

if TYPE_CHECKING:
    from clew.checks.base import UnknownCheck
    from clew.checks.ignore_rules import Rule
    from clew.records.verdict import Verdict

Command = TypeVar("Command", bound=Callable[..., Any])

LEVELS = click.Choice(["error", "warning"])


class Refusal(click.ClickException):
    """Input that can't be used; the message is one clear line."""

    exit_code = 2


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


def fail_on_option(function: Command) -> Command:
    return click.option(
        "--fail-on", type=LEVELS, help=f"Exit with code {FAILED_ON} on a finding of this severity or worse."
    )(function)


def ignore_option(function: Command) -> Command:
    return click.option(
        "--ignore",
        multiple=True,
        metavar="CHECK[@WHERE]",
        help="Ignore a check, or its findings at a module, file or line (may be repeated).",
    )(function)


def module_flag(function: Command) -> Command:
    return click.option("-m", "module", is_flag=True, help="SCRIPT is a module, as with python -m.")(function)


def name_option(function: Command) -> Command:
    return click.option("--name", help="Label used in the run ID.  [default: the script's name]")(function)


def quiet_flag(function: Command) -> Command:
    return click.option("--quiet", is_flag=True, help="Print nothing.")(function)


def continue_flag(function: Command) -> Command:
    return click.option(
        "--continue", "go_on", is_flag=True, help="Restore the state afterwards and let training continue."
    )(function)


def time_limit_option(default: float, what: str) -> Callable[[Command], Command]:
    return click.option(
        "--time-limit",
        type=click.FloatRange(min=0, min_open=True),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help=what,
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


def script_argument(function: Command) -> Command:
    """The script, and its own arguments after it."""
    args = click.argument("args", nargs=-1, type=click.UNPROCESSED)
    return click.argument("script")(args(function))


def run_options(
    script: str, *, module: bool, folder: Path | None, ignore: tuple[str, ...], **others: Any
) -> RunOptions:
    """The options common to all commands that run a script; raises an error if the script does not
    exist."""
    from clew.cli.script_targets import must_be_found, must_exist

    (must_be_found if module else must_exist)(script)
    return RunOptions(
        script=script,
        module=module,
        root=runs_folder(folder).absolute(),  # the script may change the working folder
        ignore=known_checks(ignore),
        **others,
    )


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
