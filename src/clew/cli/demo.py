"""`clew demo`: a small network with two planted faults, trained under `clew run`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from clew.cli.options import Refusal, folder_option, runs_folder
from clew.session.run_options import RunOptions

NEEDED = {"torch": "torch", "sklearn": "scikit-learn"}  # module and what to install
PLACE = Path(".clew", "demo", "digits.py")


@click.command("demo", short_help="Watch Clew find two faults in a small program, in ten seconds.")
@folder_option
def command(folder: Path | None) -> RunOptions:
    """Train a small network with two planted faults and read the diagnosis."""
    missing = [package for module, package in NEEDED.items() if find_spec(module) is None]
    if missing:
        raise Refusal(f'the demo needs {" and ".join(missing)}: pip install "clew[demo]"')
    script = _script()
    click.echo(f"$ clew run {script}", err=True)
    return RunOptions(script=str(script), root=runs_folder(folder).absolute())


def _script() -> Path:
    """A copy next to the runs, to read, fix and run again; otherwise the packaged file itself."""
    packaged = Path(__file__).parents[1] / "demo" / "digits.py"
    try:
        PLACE.parent.mkdir(parents=True, exist_ok=True)
        PLACE.write_bytes(packaged.read_bytes())
    except OSError:
        return packaged
    return PLACE
