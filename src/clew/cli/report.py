"""`clew report`: writes runs into one file that opens anywhere."""

from __future__ import annotations

import re
from pathlib import Path

import click

from clew.cli.options import Refusal, folder_option, runs_folder

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20}
LARGEST_NOTES = 1 << 20


def size(ctx: click.Context, param: click.Parameter, text: str) -> int:
    """A number of bytes: 10MB, 500kB."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in UNITS:
        raise click.BadParameter(f"{text!r} is not a size such as 10MB or 500kB", ctx, param)
    return int(float(found[1]) * UNITS[found[2]])


@click.command("report", short_help="Write runs into one HTML file that opens anywhere.")
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="File to write.",
)
@click.option(
    "--notes",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Markdown file to include as notes.",
)
@click.option("--title", help="Title of the report.  [default: the names of the runs]")
@click.option(
    "--max-size",
    callback=size,
    default="10MB",
    show_default=True,
    metavar="SIZE",
    help="Maximum size of the file; the resolution is reduced to fit.",
)
@click.option("--open", "show", is_flag=True, help="Open the report in a browser.")
@folder_option
def command(
    names: tuple[str, ...],
    output: Path,
    notes: Path | None,
    title: str | None,
    max_size: int,
    show: bool,
    folder: Path | None,
) -> int:
    """Write runs into one HTML file: the pages of clew ui with their data, without a server or a network.

    RUN is an ID from clew runs, the start of one, or a path; the newest run by default. Several runs are
    compared.

    \b
      clew report -o lr.html --notes what-i-saw.md
      clew report 20261115-10 20261115-11 --open
    """
    from clew.store.read.run_folders import find_run
    from clew.web.answers.api_answers import ApiAnswers
    from clew.web.answers.report_file import ReportError, build_report
    from clew.web.runs.run_library import Shelf

    root = runs_folder(folder)
    paths = list(dict.fromkeys(find_run(root, name) for name in names or (None,)))
    answers = ApiAnswers(Shelf(paths))
    try:
        chosen = answers.library.names()
        heading = title or ", ".join(chosen)
        text = build_report(answers, chosen, notes=_words(notes), limit=max_size, title=heading)
    except ReportError as error:
        raise Refusal(str(error)) from error
    finally:
        answers.close()
    _write(output, text)
    click.echo(f"{output}  {len(text.encode()) / 1e6:.1f} MB")
    if show:
        import webbrowser

        webbrowser.open(output.absolute().as_uri())
    return 0


def _words(file: Path | None) -> str:
    if file is None:
        return ""
    if file.stat().st_size > LARGEST_NOTES:
        raise Refusal(f"{file} is too large for notes; the limit is 1 MB")
    return file.read_text(encoding="utf-8", errors="replace")


def _write(output: Path, text: str) -> None:
    from clew.render.verdict_json import replace_file

    try:
        output.absolute().parent.mkdir(parents=True, exist_ok=True)
        replace_file(output, text)
    except OSError as error:
        raise Refusal(f"can't write {output}: {error.strerror or error}") from error
