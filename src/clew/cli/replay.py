"""`clew replay`: a step that went wrong, run again with every operation checked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.arguments import Refusal, folder_option, json_flag, runs_folder

if TYPE_CHECKING:
    from clew.show.replayed import Replayed
    from clew.trace.rebuild import SavedStep
    from clew.trace.replay import Answer

STILL_WRONG = 1


@click.command("replay", short_help="Run the step that went NaN again, with every operation checked.")
@click.argument("where", metavar="[DIR|RUN]", required=False)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[NAME=]FILE.py:MAKE()",
    help="Make the model like this instead of from what was saved.",
)
@json_flag
@folder_option
def command(where: str | None, models: tuple[str, ...], as_json: bool, folder: Path | None) -> int:
    """Run a saved step again and name the operation that made the first NaN or infinity.

    DIR is a folder as clew run leaves it in repro/ when a loss or gradient is not finite; with the
    id of a run, or nothing, it is that of this run, or of the newest. The models are made from the
    program's own source, of which only the definitions are executed. Replay only what you trust: it runs
    code. The exit code is 1 if the step still goes wrong, 0 if it is finite.

    \b
      clew replay
      clew replay .clew/runs/20261115-215301-train-1f2e/repro/step-45
      clew replay 20261115 --model 'train.py:Net(32, deep=True)'
    """
    place = _place(where, runs_folder(folder))
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise Refusal("replaying a step needs torch: pip install torch") from error
    from clew.trace.rebuild import CannotRebuild
    from clew.trace.saved import replay_saved

    try:
        saved, found = replay_saved(place, _given(models, place))
    except CannotRebuild as error:
        raise Refusal(_with_advice(str(error), models)) from error
    _show(saved, found, as_json)
    return 0 if found.culprit is None else STILL_WRONG


def _place(where: str | None, root: Path) -> Path:
    if where is not None and (Path(where) / "repro.json").is_file():
        return Path(where)
    if where is not None and Path(where).is_dir() and not (Path(where) / "run.json").is_file():
        raise Refusal(f"there is no repro.json in {where}")
    from clew.store.runs import find_run

    run = find_run(root, where)
    steps = sorted(run.glob("repro*/step-*"), key=_order)
    if not steps:
        raise Refusal(
            f"no step was saved in {run}: its losses and gradients were finite, or it was too large"
        )
    return steps[0]


def _order(path: Path) -> tuple[int, bool, str]:
    """The earliest first; of several processes the one whose own loss was wrong."""
    import json

    try:
        where = json.loads((path / "repro.json").read_text(encoding="utf-8"))["where"]
    except (OSError, ValueError, KeyError, TypeError):
        where = None
    return int(path.name[5:] or 0), where != "loss", str(path)


def _given(specs: tuple[str, ...], place: Path) -> dict[str, Any]:
    import json

    from clew.trace.rebuild import CannotRebuild
    from clew.trace.saved import make_model

    if not specs:
        return {}
    try:
        roots = list(json.loads((place / "repro.json").read_text(encoding="utf-8"))["roots"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotRebuild(f"{place / 'repro.json'} is damaged") from error
    models = {}
    for spec in specs:
        name, mark, rest = spec.partition("=")
        named = bool(mark) and name.isidentifier() and ":" in rest
        if named and name not in roots:
            raise CannotRebuild(f"the step has no model {name}; there is {', '.join(roots)}")
        if not named and len(roots) != 1:
            raise CannotRebuild(f"say which model this is, {'=…, '.join(roots)}=…: {spec}")
        models[name if named else roots[0]] = make_model(rest if named else spec)
    return models


def _with_advice(problem: str, models: tuple[str, ...]) -> str:
    if models or "--model" in problem or "repro.json" in problem or "safetensors" in problem:
        return problem
    return f"{problem}; say how the model is made: --model 'file.py:make()'"


def _show(saved: SavedStep, found: Answer, as_json: bool) -> None:
    from clew.trace.alarm import to_fact

    fact = to_fact(saved.data["where"], found)
    if as_json:
        from clew.show.json_out import dumps

        culprit = fact if fact["found"] else None
        report = {"folder": str(saved.folder), "step": saved.data["step"], "finite": culprit is None}
        sys.stdout.write(dumps({**report, "culprit": culprit, "before": saved.data["culprit"]}))
        return
    from clew.show.replayed import render_replay

    render_replay(_replayed(saved, fact), stream=sys.stdout)


def _replayed(saved: SavedStep, fact: dict[str, Any]) -> Replayed:
    from clew.checks.numerics.culprit import Culprit
    from clew.show.replayed import Replayed
    from clew.show.safe_text import short_path

    culprit = Culprit.read(saved.data["step"], fact)
    site = culprit.site
    place = f"{short_path(site.file)}:{site.line}" if site.file else None
    notes = tuple(f"could not be saved: {what}" for what in saved.dropped[:5])
    return Replayed(
        folder=str(saved.folder),
        step=saved.data["step"],
        script=saved.data.get("script"),
        message=culprit.because(site.module) if culprit.found else None,
        place=place,
        evidence=tuple(e.text for e in culprit.evidence()),
        fix=culprit.fix,
        notes=notes,
    )
