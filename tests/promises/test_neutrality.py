"""Healthy programs of every kind end as they would without Clew, and get a clean bill of health."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from program_process import PROGRAMS, Ended, clew_run, run_warm, start, wait
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim import Optimizer, lr_scheduler
from torch.optim import optimizer as optimizer_hooks
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

import clew

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "fingerprint")
# Looked at on every step as well: those in which there is most to disturb.
CLOSELY = {
    "activation_checkpointing",
    "channels_last",
    "gan",
    "lbfgs_closure",
    "masked_transformer",
    "mixed_precision",
    "random_streams",
    "sparse_embedding",
}
# In a process of their own from its very beginning; the others start where torch is there already.
FROM_THE_START = {
    "compiled_inductor",
    "early_exit",
    "failing_script",
    "gan",
    "no_loader",
    "training_thread",
    "worker_loader",
}


def complaints(verdict: Path) -> list[str]:
    """The findings that a healthy program must not get."""
    findings = json.loads(verdict.read_text())["findings"]
    return [f"{f['check']}: {f['message']}" for f in findings if f["severity"] != "advice"]


@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_program_ends_as_under_python_and_is_found_healthy(name: str, tmp_path: Path) -> None:
    script = f"{name}.py"
    modes = {"default": [], "every-step": ["--every-step"]} if name in CLOSELY else {"default": []}
    play = run_cold if name in FROM_THE_START else run_warm
    expected = play([script])
    for mode, options in modes.items():
        command = clew_run(tmp_path / mode, "--quiet", "--json", tmp_path / f"{mode}.json", *options)
        assert play([*command, script]) == expected, mode
        assert complaints(tmp_path / f"{mode}.json") == [], mode
    assert "tensors" in expected.out


def run_cold(command: Sequence[str | Path]) -> Ended:
    """In a process that has nothing imported yet: torch is attached to while it is imported."""
    return wait(start(command))


def test_the_fingerprint_tells_a_changed_program_from_an_unchanged_one(tmp_path: Path) -> None:
    altered = tmp_path / "altered.py"
    source = (PROGRAMS / "no_loader.py").read_text()
    altered.write_text(source.replace("loss.backward()", "loss.backward(); torch.rand(1)"))
    same, other = start(["no_loader.py"]), start([altered], PYTHONPATH=str(PROGRAMS))
    assert lines(wait(same))["rng"] != lines(wait(other))["rng"]


def lines(ended: Ended) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in ended.out.splitlines())


def owners() -> Iterator[Any]:
    """Everything in torch that has functions worth wrapping."""
    yield from (torch, torch.autograd, torch.jit, torch.amp.GradScaler, torch.Tensor)
    yield from (F, nn, nn.utils, nn.utils.clip_grad, nn.Module, module_hooks)
    yield from (Optimizer, optimizer_hooks, torch.optim.SGD, DataLoader, _BaseDataLoaderIter)
    yield from (kind for kind in vars(lr_scheduler).values() if isinstance(kind, type))


def state_of_torch() -> dict[str, Any]:
    """Every attribute by identity, and the keys of every registry of global hooks."""
    state: dict[str, Any] = {f"{o.__name__}.{name}": id(v) for o in owners() for name, v in vars(o).items()}
    for home in (module_hooks, optimizer_hooks):
        registries = {
            name: list(v) for name, v in vars(home).items() if name.startswith("_global") and "hooks" in name
        }
        state.update(registries)
    return state


def train() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _step in range(5):
        x = torch.randn(16, 4)
        loss = F.mse_loss(model(x), x[:, :1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_attaching_changes_torch_and_leaving_the_block_puts_it_back(tmp_path: Path) -> None:
    train()  # what torch imports on first use is not ours
    before = state_of_torch()
    for _ in range(2):
        with clew.attach(run_root=tmp_path, quiet=True):
            assert state_of_torch() != before
            train()
        assert state_of_torch() == before
    assert len(list(tmp_path.glob("*/run.json"))) == 2


def test_an_inner_attach_joins_the_outer_one_and_only_the_outer_one_detaches(tmp_path: Path) -> None:
    before = state_of_torch()
    with clew.attach(run_root=tmp_path, quiet=True) as outer:
        attached = state_of_torch()
        with clew.attach(run_root=tmp_path, quiet=True) as inner:
            assert inner is outer
            assert state_of_torch() == attached
        assert state_of_torch() == attached
    assert state_of_torch() == before
    assert len(list(tmp_path.glob("*/run.json"))) == 1


def test_an_exception_in_the_block_detaches_and_passes_through(tmp_path: Path) -> None:
    before = state_of_torch()
    with pytest.raises(RuntimeError, match="shapes"), clew.attach(run_root=tmp_path, quiet=True):
        nn.Linear(3, 4)(torch.zeros(2, 5))
    assert state_of_torch() == before


def test_a_paused_session_leaves_nothing_in_torch(tmp_path: Path) -> None:
    before = state_of_torch()
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        attached = state_of_torch()
        session.pause()
        assert state_of_torch() == before
        session.resume()
        assert state_of_torch().keys() == attached.keys()
        assert state_of_torch() != before
    assert state_of_torch() == before


def test_a_function_that_the_user_wrapped_meanwhile_stays_wrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    with clew.attach(run_root=tmp_path, quiet=True):
        inner = F.mse_loss

        def counting(*args: Any, **kwargs: Any) -> torch.Tensor:
            calls.append(1)
            return inner(*args, **kwargs)

        monkeypatch.setattr(F, "mse_loss", counting)
        train()
    assert F.mse_loss is counting
    train()
    assert len(calls) == 10
