"""The memory of tensors in one step, against programs whose tensors can be counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from watched_programs import run_file, watched

from clew.labs.profiler.memory.memory_window import MemoryWindow
from clew.labs.profiler.memory.tensor_memory import LiveTensors, TensorMemory
from clew.labs.profiler.profile_windows import Skipped
from clew.labs.profiler.torch_trace.kineto_window import LEVEL, ProgramProfiler, _log_level
from clew.records.step_costs import KINDS

PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.head = nn.Linear(256, 8)
    def forward(self, x):
        return self.head(self.body(x))

torch.manual_seed(0)
held = torch.zeros(50_000)
net = Net()
optimizer = torch.optim.{optimizer}
for step in range(8):
    x = torch.randn({batch}, 64)
    y = torch.randint(0, 8, ({batch},))
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PLAIN = "SGD(net.parameters(), lr=0.1)"
PARAMETERS = 4 * (64 * 256 + 256 + 256 * 256 + 256 + 256 * 8 + 8)


def memory_of(
    folder: Path, batch: int = 512, optimizer: str = "SGD(net.parameters(), lr=0.1)"
) -> TensorMemory:
    """Of the sixth step of a program."""
    found: list[TensorMemory | None] = []
    with watched() as program:
        watcher, their_profiler = program.watcher, ProgramProfiler()
        window = MemoryWindow(watcher.models, watcher.optimizers, watcher.models.known, their_profiler)

        def begins(step: int) -> None:
            if step == 5:
                window.start()
            elif step == 6:
                found.append(window.stop())

        their_profiler.install()
        watcher.between_steps.append(begins)
        try:
            run_file(folder, PROGRAM.format(batch=batch, optimizer=optimizer))
        finally:
            their_profiler.remove()
    assert window.note is None
    assert found[0] is not None
    return found[0]


def test_kinds_at_the_peak_are_those_of_the_program(tmp_path: Path) -> None:
    """With a large batch it is right before the backward frees the first activations."""
    memory = memory_of(tmp_path)
    assert memory.kinds["parameters"] == PARAMETERS
    assert memory.kinds["optimizer state"] == 0
    assert memory.kinds["activations"] >= 512 * 256 * 4
    assert memory.kinds["other"] >= 50_000 * 4
    assert set(memory.kinds) == set(KINDS)
    assert sum(memory.kinds.values()) == memory.peak


def test_an_optimizers_state_is_counted_to_the_byte(tmp_path: Path) -> None:
    memory = memory_of(tmp_path, batch=4, optimizer="Adam(net.parameters())")
    counters = 6 * 4
    assert memory.kinds["optimizer state"] == 2 * PARAMETERS + counters
    assert memory.kinds["gradients"] == PARAMETERS  # the peak is in the optimizer's step


def test_what_a_module_keeps_for_the_backward_is_its_own(tmp_path: Path) -> None:
    """A ReLU keeps its output; what a Linear puts out is freed right away, its input is another's."""
    modules = memory_of(tmp_path).modules
    output = 512 * 256 * 4
    assert modules["net", "body.1"].activations == output
    assert modules["net", "body.3"].activations == output
    assert modules["net", "body.0"].activations == 0
    assert modules["net", "body.2"].peak == output
    assert modules["net", "body"].peak >= 2 * output


def test_the_timeline_reaches_the_peak_and_returns(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    sizes = [size for _, size in memory.timeline]
    times = [time for time, _ in memory.timeline]
    assert max(sizes) == memory.peak
    assert times == sorted(times)
    assert sizes[-1] < memory.peak
    assert len(sizes) <= 400


def test_the_tree_at_the_peak_adds_up(tmp_path: Path) -> None:
    root = memory_of(tmp_path).root
    for _, frame in root.walk():
        assert frame.value == frame.self + sum(child.value for child in frame.children)
    parameters = next(child for child in root.children if child.name == "parameters")
    held = {frame.module: frame.value for _, frame in parameters.walk()}
    assert held["body.2"] == 4 * (256 * 256 + 256)


def test_nothing_is_printed_and_nothing_left_set(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LEVEL, raising=False)
    level = _log_level()
    before = level.value
    memory_of(tmp_path)
    assert capfd.readouterr().err == ""
    assert level.value == before
    assert not torch.autograd._profiler_enabled()


def test_a_program_that_profiles_itself_is_left_alone(tmp_path: Path) -> None:
    with watched() as program, torch.profiler.profile() as theirs:
        watcher = program.watcher
        window = MemoryWindow(watcher.models, watcher.optimizers, watcher.models.known, ProgramProfiler())
        with pytest.raises(Skipped, match="uses torch"):
            window.start()
        torch.ones(3) + 1
        assert window.stop() is None
    assert any(event.key == "aten::add" for event in theirs.key_averages())


def test_a_compilers_tensors_hold_nothing_and_are_not_asked() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        stand_in = torch.empty(64)
    found = LiveTensors()
    found.add(stand_in, "other")
    assert found.storages == {}
