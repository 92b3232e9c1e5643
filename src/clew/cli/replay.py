"""`clew replay`: replays a step that failed, and checks every operation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.options import Refusal, folder_option, json_flag, runs_folder

if TYPE_CHECKING:
    from clew.labs.replay.repro.rebuilt_step import RerunResult
    from clew.labs.replay.step_replay import ReplayAnswer
    from clew.render.verdict.replay_text import Replayed

_WANTS_MODEL = ("could not be saved", "is needed from", "not defined")  # problems that --model may solve


@click.command("replay", short_help="Replay a step with a NaN or infinity, and check every operation.")
@click.argument("where", metavar="[DIR|RUN]", required=False)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[NAME=]FILE.py:MAKE()",
    help="Create the model with this call instead of from the saved step.",
)
@json_flag
@folder_option
def command(where: str | None, models: tuple[str, ...], as_json: bool, folder: Path | None) -> int:
    """Replay a saved step and name the operation that produced the first NaN or infinity.

    DIR is a folder that clew run writes to repro/ when a loss or gradient is not finite. You can also
    give the ID of a run; without either, the newest run is used. The models are created from the
    program's own source, of which only the definitions are executed. Replay only what you trust: it runs
    code. The exit code is 1 if the step still fails, 0 if it is finite now, and 3 if the saved step does
    not show the failure, so that finite values prove nothing.

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
    from clew.labs.replay.repro.rebuilt_step import exit_code
    from clew.labs.replay.repro.saved_sources import CannotRebuild
    from clew.labs.replay.repro.saved_step import replay_saved

    try:
        again, found = replay_saved(place, _given(models, place))
    except CannotRebuild as error:
        raise Refusal(_with_advice(str(error), models)) from error
    _show(again, found, as_json)
    return exit_code(again)


def _place(where: str | None, root: Path) -> Path:
    if where is not None and (Path(where) / "repro.json").is_file():
        return Path(where)
    if where is not None and Path(where).is_dir() and not (Path(where) / "run.json").is_file():
        raise Refusal(f"there is no repro.json in {where}")
    from clew.store.read.run_folders import find_run

    run = find_run(root, where)
    steps = sorted(run.glob("repro*/step-*"), key=_order)
    if not steps:
        raise Refusal(
            f"{run} has no saved step: its losses and gradients were finite, or the step could not be saved"
        )
    return steps[0]


def _order(path: Path) -> tuple[int, bool, str]:
    """The earliest first; of several processes, the one whose own loss was not finite."""
    import json

    try:
        where = json.loads((path / "repro.json").read_text(encoding="utf-8"))["where"]
    except (OSError, ValueError, KeyError, TypeError):
        where = None
    return int(path.name[5:] or 0), where != "loss", str(path)


def _given(specs: tuple[str, ...], place: Path) -> dict[str, Any]:
    import json

    from clew.labs.replay.repro.saved_sources import CannotRebuild
    from clew.labs.replay.repro.saved_step import make_model

    if not specs:
        return {}
    try:
        roots = list(json.loads((place / "repro.json").read_text(encoding="utf-8"))["roots"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotRebuild(f"{place / 'repro.json'} is damaged") from error
    if not roots:
        raise CannotRebuild("the step was saved without a model, so --model has no effect")
    models = {}
    for spec in specs:
        name, mark, rest = spec.partition("=")
        named = bool(mark) and name.isidentifier() and ":" in rest
        if named and name not in roots:
            raise CannotRebuild(f"the step has no model {name}; available: {', '.join(roots)}")
        if not named and len(roots) != 1:
            raise CannotRebuild(f"several models: write {'=…, '.join(roots)}=… instead of {spec}")
        models[name if named else roots[0]] = make_model(rest if named else spec)
    return models


def _with_advice(problem: str, models: tuple[str, ...]) -> str:
    if models or not any(sign in problem for sign in _WANTS_MODEL):
        return problem
    return f"{problem}; say how to create the model: --model 'file.py:make()'"


def _show(again: RerunResult, found: ReplayAnswer, as_json: bool) -> None:
    from clew.labs.replay.replay_alarm import culprit_fact

    data = again.step.data
    fact = culprit_fact(data["where"], found).to_json()
    if as_json:
        from clew.render.verdict_json import dumps

        report = {
            "folder": str(again.step.folder),
            "step": data["step"],
            "finite": not again.bad,
            "covered": bool(again.bad) or again.problem is None,
            "problem": again.problem,
            "culprit": fact if fact["found"] else None,
            "before": data["culprit"],
        }
        sys.stdout.write(dumps(report))
        return
    from clew.render.verdict.replay_text import render_replay

    render_replay(_replayed(again, fact), stream=sys.stdout)


def _replayed(again: RerunResult, fact: dict[str, Any]) -> Replayed:
    from clew.checks.evidence.nan_culprit import CulpritReading
    from clew.records.facts.nan_facts import CulpritFact
    from clew.render.safe_text import short_path
    from clew.render.verdict.replay_text import Replayed

    saved = again.step
    culprit = CulpritReading(CulpritFact.read(fact, saved.data["step"]))
    site = culprit.site
    place = f"{short_path(site.file)}:{site.line}" if site.file else None
    message = culprit.because(site.module) if culprit.fact.found else None
    if message is None and again.bad:
        message = f"{again.problem}; the operation that produced it was not found"
    return Replayed(
        folder=str(saved.folder),
        step=saved.data["step"],
        script=saved.data.get("script"),
        message=message,
        place=place,
        evidence=tuple(e.text for e in culprit.evidence()),
        fix=culprit.fact.fix,
        notes=tuple(_notes(again, fact)),
        uncovered=None if again.bad else again.problem,
    )


def _notes(again: RerunResult, fact: dict[str, Any]) -> Iterator[str]:
    saved = again.step
    if saved.other_versions:
        yield saved.other_versions
    before = saved.data["culprit"]
    another = any(before.get(field) != fact.get(field) for field in ("phase", "op"))
    if again.bad and before.get("found") and another:
        yield f"when it was saved: {saved.data['summary']}"
    yield from (f"could not be saved: {what}" for what in saved.dropped[:5])
