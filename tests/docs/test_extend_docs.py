"""docs/extend.md is run: every example in a script, and from a package with entry points."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew.api import extend
from clew.checks.needs import options, text_of
from clew.store.read.run_folders import find_run

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "extend.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
ENTRY_POINTS = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)[0]
PLACES = ("check", "signal", "experiment", "framework", "tracker", "renderer")

FRAMEWORK = "__version__ = '2.0'\ncallbacks = []\n"
TRAINING = """
import torch

import clew
import our_trainer

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(12):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1))
    loss.backward()
    optimizer.step()
    clew.log(reward=9.0 if step < 6 else 0.5)
    for callback in our_trainer.callbacks:
        callback({"accuracy": 0.9})
print(float(sum(p.sum() for p in model.parameters())), float(torch.rand(())))
"""


def plain(example: str) -> str:
    """Without the decorators: as a package has it."""
    return re.sub(r"(?m)^@clew\.extend\..*\n", "", example)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "our_trainer.py").write_text(FRAMEWORK)
    (tmp_path / "train.py").write_text(TRAINING)
    return tmp_path


def install(folder: Path, source: str, entry_points: str = ENTRY_POINTS) -> None:
    """A package as pip leaves it."""
    (folder / "our_package.py").write_text(source)
    about = folder / "our_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: our-package\nVersion: 1.0\n")
    groups = re.sub(r'\[project\.entry-points\."(.*?)"\]', r"[\1]", entry_points).replace('"', "")
    (about / "entry_points.txt").write_text(groups)


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {n: v for n, v in os.environ.items() if not n.startswith("CLEW")}
    env |= {"PYTHONPATH": f"{REPOSITORY / 'src'}{os.pathsep}{folder}", "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def recorded(folder: Path) -> clew.api.open_run.Run:
    return clew.open_run(find_run(folder / ".clew" / "runs", None))


def must_hold_all(folder: Path) -> None:
    """What the check, the signal, the framework's adapter and the tracker leave behind."""
    run = recorded(folder)
    verdicts = [f.data for f in run.data.facts if f.kind == "custom_check"]
    assert [v["findings"][0]["message"] for v in verdicts if v["check"] == "reward-collapsed"] == [
        "the reward collapsed"
    ]
    biases = {site.module: values for site, _, values in run.data.series("bias.largest")}
    assert set(biases) == {"0", "1"}
    assert all((values > 0).all() for values in biases.values())
    assert [f.data["name"] for f in run.data.facts if f.kind == "custom_signal"] == ["bias.largest"]
    assert [f.data for f in run.data.facts if f.kind == "framework"] == [
        {"name": "our-trainer", "version": "2.0"}
    ]
    assert [float(v) for _, _, values in run.data.series("metric.accuracy") for v in values] == [0.9] * 12
    lines = (folder / "losses.txt").read_text().splitlines()
    assert [int(line.split()[0]) for line in lines[:-1]] == list(range(12))
    assert lines[-1].endswith(" findings")


def test_the_page_names_every_place_and_each_has_a_docstring_and_an_example() -> None:
    functions = [name for name in vars(extend) if name in PLACES]
    assert sorted(functions) == sorted(PLACES)
    for name in PLACES:
        assert f"clew.{name}s" in (getattr(extend, name).__doc__ or "")
        assert f"clew.{name}s" in (extend.__doc__ or "")
        assert f"`clew.extend.{name}`" in PAGE
        assert any(f"@clew.extend.{name}" in example for example in EXAMPLES)


def test_every_entry_of_needs_on_the_page_can_be_used() -> None:
    entries = re.findall(r"(?m)^\| `(\w+\(.*\))` \|", PAGE)
    needs = [eval(entry, vars(extend)) for entry in entries]
    assert [[text_of(one) for one in options(need)] for need in needs] == [
        ["metric.reward"],
        ["fact:optimizer"],
        ["fact:experiment.too-many-parameters"],
        ["lr", "fact:optimizer"],
    ]


def test_the_examples_work_in_a_script(folder: Path) -> None:
    (folder / "train.py").write_text("\n".join([*EXAMPLES, TRAINING]))
    done = command(folder, "-m", "clew", "run", "--every-step", "train.py")
    assert done.returncode == 0, done.stderr
    assert "probe failed" not in done.stderr
    must_hold_all(folder)


def test_the_examples_work_from_a_package(folder: Path) -> None:
    install(folder, "\n".join(map(plain, EXAMPLES)))
    without = command(folder, "train.py")
    done = command(folder, "-m", "clew", "run", "--every-step", "--track", "loss-file", "train.py")
    assert (done.returncode, done.stdout) == (0, without.stdout), done.stderr
    must_hold_all(folder)
    why = command(folder, "-m", "clew", "why", "--format", "one-line")
    assert why.stdout.startswith("train.py: ")
    assert "reward-collapsed" in why.stdout


def test_an_experiment_of_a_package_is_made_and_judged(folder: Path) -> None:
    install(folder, "\n".join(map(plain, EXAMPLES)))
    only = ["--only", "too-many-parameters", "--steps", "2", "--json", "out.json"]
    done = command(folder, "-m", "clew", "check", *only, "train.py")
    (fact,) = [f for f in recorded(folder).data.facts if f.kind == "experiment.too-many-parameters"]
    assert (fact.data["status"], fact.data["data"]) == ("done", {"parameters": 49}), done.stderr
    report = json.loads((folder / "out.json").read_text())
    assert ("too-many-parameters", "49 parameters are too many") in [
        (finding["check"], finding["message"]) for finding in report["findings"]
    ]


def test_a_renderer_of_a_script_renders_a_run(folder: Path) -> None:
    command(folder, "-m", "clew", "run", "--quiet", "train.py")
    exec(EXAMPLES[-1], {})
    try:
        assert recorded(folder).render("one-line").startswith("train.py: ")
        assert recorded(folder).render("json").startswith("{")
        assert "train.py" in recorded(folder).render()
    finally:
        from clew.render.renderers import RENDERERS

        RENDERERS.forget()


FAILING = """
import clew

def boom(*_):
    raise ZeroDivisionError("oh")

def reward_collapsed(run):
    boom()
    yield ""

largest_bias = too_many_parameters = judge_parameters = one_line = boom

class OurTrainer:
    name, module, attach = "our-trainer", "our_trainer", boom

class LossFile:
    def __init__(self, run): pass
    write = boom
"""


def test_extensions_that_fail_are_reported_in_a_line_each_and_change_nothing(folder: Path) -> None:
    install(folder, FAILING)
    without = command(folder, "train.py")
    done = command(folder, "-m", "clew", "run", "--track", "loss-file", "train.py")
    assert (done.returncode, done.stdout) == (0, without.stdout)
    for what in ("framework our-trainer", "signal bias.largest", "tracker loss-file"):
        (line,) = [line for line in done.stderr.splitlines() if what in line and line.startswith("clew: ")]
        assert line == (
            f"clew: the {what} probe failed and is off for this run; "
            "training continues (ZeroDivisionError: oh)"
        )
    why = command(folder, "-m", "clew", "why", "--format", "one-line")
    assert (why.returncode, why.stderr) == (2, "clew: the format one-line failed: ZeroDivisionError: oh\n")


def test_extensions_that_can_not_be_loaded_are_named_and_change_nothing(folder: Path) -> None:
    install(folder, "raise ImportError('no such thing')")
    done = command(folder, "-m", "clew", "run", "train.py")
    assert done.returncode == 0
    for what in ("signal bias.largest", "framework adapter our-trainer"):
        assert f"clew: the {what} could not be loaded: ImportError: no such thing\n" in done.stderr
    asked = command(folder, "-m", "clew", "run", "--track", "loss-file", "train.py")
    assert asked.returncode == 2
    assert asked.stderr == "clew: the tracker loss-file could not be loaded: ImportError: no such thing\n"
    unknown = command(folder, "-m", "clew", "why", "--format", "nothing")
    assert unknown.stderr == "clew: no such format: nothing; available: text, json\n"
