"""Options of the verbs: declared once, and handed on under the names that the session knows."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import clew.cli
from clew.cli.verbs import interpret
from clew.records.data_report import DataOptions
from clew.session.run_options import CheckOptions, ProfileOptions, RunOptions

VERBS = Path(clew.cli.__file__).parent
MEAN_SOMETHING_ELSE = {  # in one verb than in another
    "--all",  # `clew data`: through all of the data; elsewhere: print everything
    "--format",  # `clew profile`: files to write; `clew why`: how to print
    "--graph",  # `clew run`: record it; `clew show`: a file to draw it to
    "--steps",  # `clew check`: batches to use; elsewhere: end the run after so many
}


def declared() -> dict[str, set[str]]:
    """The files in which each option is declared."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in VERBS.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.option":
                for word in node.args:
                    if isinstance(word, ast.Constant) and str(word.value).startswith("-"):
                        found[str(word.value)].add(path.name)
    return found


def test_an_option_of_several_verbs_is_declared_in_one_file() -> None:
    several = {option: files for option, files in declared().items() if len(files) > 1}
    assert set(several) == MEAN_SOMETHING_ELSE, several


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    return tmp_path


def asked(line: str) -> RunOptions:
    options = interpret(line.split())
    assert isinstance(options, RunOptions)
    return options


@pytest.mark.parametrize("verb", ["run", "check", "data", "profile"])
def test_verbs_that_run_a_script_take_the_same_group(verb: str, script: Path) -> None:
    line = f"{verb} --dir runs --name tuned --ignore dead-units@gate --quiet --json out.json train.py --lr 1"
    options = asked(line)
    assert (options.script, options.args, options.module) == ("train.py", ("--lr", "1"), False)
    assert (options.root, options.name) == (script / "runs", "tuned")
    assert (options.ignore, options.quiet) == (("dead-units@gate",), True)
    assert options.json_path == script / "out.json"


def test_options_of_a_run_arrive(script: Path) -> None:
    line = "run --budget 5% --every-step --steps 9 --stop-on error --fail-on warning --prove --graph train.py"
    options = asked(line)
    assert (options.budget, options.every_step, options.steps) == (0.05, True, 9)
    assert (options.stop_on, options.fail_on) == ("error", "warning")
    assert (options.prove, options.graph) == (True, True)
    assert (options.check, options.data, options.profile) == (None, None, None)


def test_options_of_a_check_arrive(script: Path) -> None:
    line = "check --only a-b,input-ignored --steps 4 --time-limit 9 --continue --html a.html train.py"
    with_experiment = line.replace("a-b,", "")
    options = asked(with_experiment)
    assert options.fail_on == "warning"
    assert options.check == CheckOptions(
        only=("input-ignored",), time_limit=9.0, batches=4, go_on=True, html_path=script / "a.html"
    )
    assert asked("check --fail-on none train.py").fail_on is None
    assert interpret(line.split()) == 2


def test_options_of_a_look_at_data_arrive(script: Path) -> None:
    options = asked("data --loader train --samples 2 --no-measure --no-judge --all --continue train.py")
    assert options.data == DataOptions(
        loader="train", samples=2, measure=False, judge=False, all=True, go_on=True
    )
    assert asked("data train.py").data == DataOptions()


def test_options_of_a_profile_arrive(script: Path) -> None:
    line = "profile --steps 50 --windows 2 --steps-per-window 5 --no-python --out files --format csv train.py"
    options = asked(line)
    assert options.steps == 50
    assert options.profile == ProfileOptions(
        windows=2, steps_per_window=5, python=False, out=script / "files", formats=("csv",)
    )
    assert asked("profile train.py").profile == ProfileOptions()
