"""Whatever fails inside Clew, the training ends as it would have, and one line says what was lost."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from program_process import PROGRAMS, Ended, clew_run, start, wait

import clew
from clew.hooks.collect_layers.activations import Activations
from clew.hooks.steps import light_recorder, native_steps
from clew.hooks.steps.forward_calls import Forwards, Modes
from clew.hooks.steps.full_recorder import FullRecorder
from clew.hooks.steps.light_recorder import LightRecorder
from clew.hooks.steps.native_steps import NativeSteps
from clew.hooks.steps.watcher import Watcher
from clew.measure.gradient_norm import GradientNorm
from clew.store.read.run_folders import list_runs
from clew.store.read.run_reader import open_run

sys.path.insert(0, str(PROGRAMS))
from every_seam import train
from fingerprint import digest_tensor, rng_state, shape_of, tensors

PROBES = (
    "backward",
    "batch",
    "clip",
    "compile",
    "feeding",
    "forward",
    "functions",
    "growth",
    "histograms",
    "indices",
    "load",
    "load-state",
    "loader",
    "loader-made",
    "loop",
    "loss",
    "mode",
    "module-made",
    "optimizer-made",
    "save",
    "scale",
    "scaler",
    "scheduler",
    "signals",
    "step",
    "structure",
    "unscale",
    "zero-grad",
)
# These work on steps between samples, on loaded weights and after an alarm: they fail in tests of their own.
ALL_PROBES = tuple(sorted((*PROBES, "light", "pretrained", "repro")))
METHODS = (
    (Activations, "function_output"),
    (Forwards, "enter"),
    (Forwards, "leave"),
    (Forwards, "_dropout_called"),
    (Modes, "were_set"),
    (FullRecorder, "_loss"),
    (Watcher, "scaled"),
    (FullRecorder, "_before_backward"),
    (FullRecorder, "_after_backward"),
    (FullRecorder, "_before_update"),
    (FullRecorder, "_after_update"),
)
SCRIPT = "every_seam.py"


def outcome() -> list[Any]:
    """Everything that training left."""
    model, optimizer, losses = train(epochs=3)
    weights = [digest_tensor(t) for thing in (model, optimizer) for t in tensors(thing)]
    return [losses, weights, [shape_of(m) for m in model.modules()], rng_state()]


@pytest.fixture(scope="module")
def undisturbed() -> list[Any]:
    return outcome()


def said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return capfd.readouterr().err.splitlines()


@pytest.mark.parametrize("probe", PROBES)
def test_training_survives_a_failing_probe_and_one_line_names_it(
    probe: str,
    undisturbed: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CLEW_FAULT_INJECTION", probe)
    with clew.attach(run_root=tmp_path, quiet=True):
        disturbed = outcome()
    assert disturbed == undisturbed
    (line,) = said(capfd)
    assert line.startswith(f"clew: the {probe} probe failed")
    assert "training continues" in line


def long_training() -> list[Any]:
    """Steps enough for most of them to be light ones; the parameters that come out."""
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(32, 6)
    for _ in range(120):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), x[:, :1]).backward()
        optimizer.step()
    return [p.tolist() for p in model.parameters()]


IN_PYTHON = [
    "forward_entered",
    "forward_left",
    "backward_entered",
    "number",
    "backward_left",
    "update_entered",
    "norm",
    "update_left",
    "_end_step",
    "gradients_zeroed",
]
OF_THE_LIBRARY = ["forward_entered", "forward_left", "backward_entered", "backward_left"]
OF_THE_LIBRARY += ["update_entered", "update_left", "gradients_zeroed"]
TAKEN_OVER = ["settle", "write", "round_off"]


@pytest.mark.parametrize(
    ("name", "names"),
    [(name, names) for names in (IN_PYTHON, OF_THE_LIBRARY, TAKEN_OVER) for name in names],
)
def test_training_survives_a_failure_on_a_light_step(
    name: str,
    names: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    undisturbed = long_training()
    calls = []

    def failing_later(original: Any) -> Any:
        def fails_later(*args: Any) -> Any:
            calls.append(name)
            if len(calls) == 3:
                raise RuntimeError("planted")
            return original(*args)

        return fails_later

    if names is IN_PYTHON:  # where the library notes steps, these are hardly called
        monkeypatch.setattr(native_steps, "natives", lambda: None)
    if name == "norm":  # only light steps ask for it at once
        prepare = GradientNorm.__init__

        def prepared(self: GradientNorm, parameters: Any) -> None:
            prepare(self, parameters)
            self.at_once = failing_later(self.at_once)

        monkeypatch.setattr(GradientNorm, "__init__", prepared)
    elif names is OF_THE_LIBRARY:
        make = NativeSteps.__init__

        def made(self: NativeSteps, *given: Any) -> None:
            make(self, *given)
            self.functions[name] = failing_later(self.functions[name])

        monkeypatch.setattr(NativeSteps, "__init__", made)
    else:
        owner: Any = light_recorder if name == "number" else LightRecorder
        monkeypatch.setattr(owner, name, failing_later(getattr(owner, name)))
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        assert long_training() == undisturbed
    assert len(calls) >= 3
    (line,) = said(capfd)
    assert "planted" in line
    assert "training continues" in line
    assert session.step >= 100


def test_training_survives_a_failure_on_loaded_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fine_tune() -> list[Any]:
        torch.manual_seed(5)
        layers = [torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 1)]
        model = torch.nn.Sequential(*layers)
        model.load_state_dict({name: value.clone() for name, value in model.state_dict().items()})
        optimizer = torch.optim.Adam(model.parameters())
        x = torch.randn(32, 6)
        for _ in range(10):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), x[:, :1]).backward()
            optimizer.step()
        return [p.tolist() for p in model.state_dict().values()]

    undisturbed = fine_tune()
    monkeypatch.setenv("CLEW_FAULT_INJECTION", "pretrained")
    with clew.attach(run_root=tmp_path, quiet=True):
        assert fine_tune() == undisturbed
    (line,) = said(capfd)
    assert line.startswith("clew: the pretrained probe failed")


def test_every_probe_is_among_those_made_to_fail(tmp_path: Path) -> None:
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        assert tuple(session.probes()) == ALL_PROBES


@pytest.mark.parametrize("call", [1, 5])
@pytest.mark.parametrize(("owner", "method"), METHODS, ids=[name for _, name in METHODS])
def test_training_survives_an_exception_anywhere_in_the_watcher(
    owner: type,
    method: str,
    call: int,
    undisturbed: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    original, calls = getattr(owner, method), []

    def failing(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise MemoryError("made to fail")
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, method, failing)
    with clew.attach(run_root=tmp_path, quiet=True):
        disturbed = outcome()
    assert disturbed == undisturbed
    (line,) = said(capfd)
    assert "MemoryError: made to fail" in line


def test_training_survives_a_killed_writer_thread(
    undisturbed: list[Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        kill(next(t for t in threading.enumerate() if t.name == "clew-log"))
        disturbed = outcome()
    assert disturbed == undisturbed
    assert session.verdict.worst() is None
    assert all(line.startswith("clew: ") for line in said(capfd))


def kill(thread: threading.Thread) -> None:
    """Raise SystemExit inside a thread, as if something had ended it."""
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    thread.join(timeout=60)  # a busy machine may take its time
    assert not thread.is_alive()


def test_an_interrupt_during_a_probe_reaches_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FullRecorder, "_before_update", interrupted)
    with pytest.raises(KeyboardInterrupt), clew.attach(run_root=tmp_path, quiet=True):
        train(epochs=1)


@pytest.fixture(scope="module")
def plain() -> Ended:
    return wait(start([SCRIPT]))


def a_file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("in the way")
    return tmp_path / "file" / "runs"


UNWRITABLE: dict[str, Callable[[Path], Path]] = {
    "under-a-file": a_file,
    "under-proc": lambda _: Path("/proc/clew-runs"),
}


@pytest.mark.parametrize("where", UNWRITABLE)
def test_an_unwritable_run_folder_costs_the_record_and_nothing_else(
    where: str, plain: Ended, tmp_path: Path
) -> None:
    ended = wait(start([*clew_run(UNWRITABLE[where](tmp_path), "--quiet"), SCRIPT]))
    assert (ended.code, ended.out) == (plain.code, plain.out)
    (line,) = ended.err.splitlines()
    assert line.startswith("clew: ")
    assert "runs" in line


def test_an_unwritable_run_folder_still_gets_a_verdict(tmp_path: Path) -> None:
    ended = wait(start([*clew_run(a_file(tmp_path), "--json", tmp_path / "verdict.json"), SCRIPT]))
    assert ended.code == 0
    assert '"findings": []' in (tmp_path / "verdict.json").read_text()


def test_a_full_disk_costs_the_record_and_nothing_else(plain: Ended, tmp_path: Path) -> None:
    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

    ended = wait(start([*clew_run(tmp_path, "--quiet"), SCRIPT], before=fill))
    assert (ended.code, ended.out) == (plain.code, plain.out)
    (line,) = ended.err.splitlines()
    assert line.startswith("clew: ")
    assert str(tmp_path) in line


VANISHING = """
import os, shutil, sys
from pathlib import Path
sys.path.insert(0, {programs!r})
import every_seam
from fingerprint import fingerprint
evaluate = every_seam.evaluate
def vanish(*args):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    return evaluate(*args)
every_seam.evaluate = vanish
model, optimizer, losses = every_seam.train()
fingerprint(model, optimizer, losses=losses)
"""


def test_a_run_folder_deleted_meanwhile_costs_the_record_and_nothing_else(tmp_path: Path) -> None:
    script, runs = tmp_path / "vanishing.py", tmp_path / "runs"
    script.write_text(VANISHING.format(programs=str(PROGRAMS)))
    expected = wait(start([script, runs]))
    ended = wait(start([*clew_run(runs, "--quiet"), script, runs]))
    assert (ended.code, ended.out) == (expected.code, expected.out) == (0, expected.out)
    (line,) = ended.err.splitlines()
    assert line.startswith("clew: ")
    assert str(runs) in line


@pytest.mark.parametrize("options", [["--quiet"], []], ids=["quiet", "talking"])
def test_without_a_stderr_nothing_goes_to_stdout_instead(
    options: list[str], plain: Ended, tmp_path: Path
) -> None:
    ended = wait(start([*clew_run(tmp_path, *options), SCRIPT], before=lambda: os.close(2)))
    assert (ended.code, ended.out) == (plain.code, plain.out)


def to_a_reader_that_is_gone() -> None:
    read, write = os.pipe()
    os.close(read)
    os.dup2(write, 2)


def to_a_full_device() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)


@pytest.mark.parametrize("stderr", [to_a_reader_that_is_gone, to_a_full_device, lambda: os.close(2)])
def test_a_stderr_that_takes_nothing_changes_neither_exit_code_nor_record(
    stderr: Callable[[], None], plain: Ended, tmp_path: Path
) -> None:
    ended = wait(start([*clew_run(tmp_path), SCRIPT], before=stderr))
    assert (ended.code, ended.out) == (plain.code, plain.out)
    (run,) = list_runs(tmp_path)
    assert (run.state, run.damage) == ("finished", ())


def test_an_unrecorded_run_is_not_announced_as_recorded(plain: Ended, tmp_path: Path) -> None:
    ended = wait(start([*clew_run(a_file(tmp_path)), SCRIPT]))
    assert (ended.code, ended.out) == (plain.code, plain.out)
    assert "training continues without recording" in ended.err.splitlines()[0]
    assert "recording to" not in ended.err
    assert os.devnull not in ended.err


def test_a_failure_with_pages_of_text_is_one_line_and_the_first_is_all_that_quiet_says(
    undisturbed: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def failing(*_: Any) -> None:
        raise NotImplementedError("Could not run 'aten::as_strided'" + "\nCPU: registered at x.cpp:1" * 60)

    monkeypatch.setattr(Modes, "were_set", failing)
    monkeypatch.setattr(FullRecorder, "_before_backward", failing)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        assert outcome() == undisturbed
    (line,) = said(capfd)
    assert line.startswith("clew: the ")
    assert len(line) < 300
    assert "registered" not in line
    incidents = open_run(session.path).data.facts
    assert len({fact.data["probe"] for fact in incidents if fact.kind == "incident"}) == 2


def test_clew_off_runs_the_script_and_records_nothing(plain: Ended, tmp_path: Path) -> None:
    ended = wait(start([*clew_run(tmp_path / "runs"), SCRIPT], CLEW="off"))
    assert ended == plain
    assert not (tmp_path / "runs").exists()


def test_clew_off_makes_attach_do_nothing(
    undisturbed: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch.nn.functional as F

    monkeypatch.setenv("CLEW", "off")
    original = F.cross_entropy
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        assert F.cross_entropy is original
        assert outcome() == undisturbed
        assert session.probes() == []
    assert session.verdict.findings == ()
    assert list(tmp_path.iterdir()) == []


def test_the_probes_can_be_listed(tmp_path: Path) -> None:
    ended = wait(start([*clew_run(tmp_path, "--quiet"), SCRIPT], CLEW_FAULT_INJECTION="list"))
    assert ended.err.splitlines() == [f"clew: probes: {' '.join(ALL_PROBES)}"]
