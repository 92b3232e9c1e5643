"""Programs whose memory grows from step to step, and what is named as the owner; or that nothing is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from watched_programs import run_file, watched

from clew.labs.profiler.memory.growth_watch import GrowthWatch

MODEL = """
import collections, functools
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def step(x, y, keep=lambda out, loss: None):
    out = model(x)
    loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return out, loss

def batches(n=40):
    for _ in range(n):
        yield torch.randn(4, 8), torch.randint(0, 4, (4,))
"""


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests are the user's modules here: a survey of them takes longer than one of a program."""
    monkeypatch.setattr("clew.labs.profiler.memory.named_objects.MOST_VISITED", 2_000_000)
    monkeypatch.setattr("clew.labs.profiler.memory.named_objects.MOST_SECONDS", 60.0)


def growth_of(
    source: str, folder: Path, closely: bool = True, **given: Any
) -> tuple[dict[str, Any] | None, list[str]]:
    """Run a program in this process; the last `growth` fact, and the source's lines."""
    text = MODEL + source
    with watched() as program:
        watch = GrowthWatch(program.watcher, program.guard)
        if closely:
            watch.watch_closely()
        program.watcher.between_steps.append(watch.step_begins)
        run_file(folder, text, **given)
        watch.finish(program.watcher.step)
    facts = program.notes.of("growth")
    return (facts[-1] if facts else None), text.splitlines()


CLASSICS = {
    "losses in a list": (
        """
losses = []
for x, y in batches():
    out, loss = step(x, y)
    losses.append(loss)  # here
""",
        ("losses", "list", "graph"),
    ),
    "a running sum, in place": (
        """
def train():
    total = 0
    for x, y in batches():
        out, loss = step(x, y)
        total += loss  # here
    return float(total.detach())
train()
""",
        ("total", "tensor", "graph"),
    ),
    "a running sum, written out": (
        """
def train():
    running = torch.zeros(())
    for x, y in batches():
        out, loss = step(x, y)
        running = running + loss  # here
train()
""",
        ("running", "tensor", "graph"),
    ),
    "outputs in a trainer's history": (
        """
class Trainer:
    def __init__(self):
        self.history = {"loss": [], "outputs": []}
    def fit(self):
        for x, y in batches():
            out, loss = step(x, y)
            self.history["loss"].append(loss.item())
            self.history["outputs"].append(out)  # here
Trainer().fit()
""",
        ("self.history['outputs']", "list", "graph"),
    ),
    "a hook's closure": (
        """
def remember(module):
    kept = []
    def hook(module, args, output):
        kept.append(output)  # here
    module.register_forward_hook(hook)
remember(model[0])
for x, y in batches():
    step(x, y)
""",
        ("kept", "list", "graph"),
    ),
    "a dict by step": (
        """
seen = {}
for n, (x, y) in enumerate(batches()):
    out, loss = step(x, y)
    seen[n] = {"loss": loss, "x": x}  # here
""",
        ("seen", "dict", "graph"),
    ),
    "a mutable default": (
        """
def keep(loss, kept=[]):
    kept.append(loss)  # here
for x, y in batches():
    keep(step(x, y)[1])
""",
        ("kept", "list", "graph"),
    ),
    "a layer that keeps its outputs": (
        """
class Keeping(nn.Linear):
    def forward(self, x):
        out = super().forward(x)
        self.__dict__.setdefault("outputs", []).append(out)
        return out
model[2] = Keeping(16, 4)
model[2].outputs = []
class Keeper:
    pass
for x, y in batches():
    step(x, y)
""",
        ("outputs", "list", "graph"),
    ),
}


@pytest.mark.parametrize("name", CLASSICS)
def test_the_owner_is_named_as_the_user_calls_it_with_its_line(name: str, tmp_path: Path) -> None:
    source, (owner, container, kind) = CLASSICS[name]
    fact, lines = growth_of(source, tmp_path)
    assert fact is not None
    assert fact["name"].endswith(owner)
    assert (fact["container"], fact["kind"]) == (container, kind)
    marked = [number for number, line in enumerate(lines, 1) if line.endswith("# here")]
    if marked:
        assert fact["line"] == marked[0]
        assert f":{marked[0]}" in fact["owner"]
    assert fact["objects"] > 0
    assert fact["slope"] > 0


def test_hooks_that_are_registered_again_in_each_step_are_named(tmp_path: Path) -> None:
    fact, lines = growth_of(
        """
for x, y in batches():
    model[0].register_forward_hook(lambda module, args, output: None)  # here
    step(x, y)
""",
        tmp_path,
    )
    assert fact is not None
    assert fact["container"] == "hooks"
    assert lines[fact["line"] - 1].endswith("# here")
    assert round(fact["objects"]) == 1


HEALTHY = {
    "a list of numbers": """
losses = []
for x, y in batches():
    losses.append(step(x, y)[1].item())
""",
    "detached losses": """
losses = []
for x, y in batches():
    losses.append(step(x, y)[1].detach())
""",
    "a running sum of numbers": """
total = 0.0
for x, y in batches():
    total += step(x, y)[1].item()
""",
    "a buffer with a length": """
recent = collections.deque(maxlen=100)
for x, y in batches():
    recent.append(step(x, y)[1])
""",
    "losses of one step, summed": """
for x, y in batches():
    losses = []
    for part in (x[:2], x[2:]):
        losses.append(F.cross_entropy(model(part), y[:2]))
    optimizer.zero_grad()
    sum(losses).backward()
    optimizer.step()
""",
    "a cache of samples": """
class Cached(Dataset):
    def __init__(self):
        self.cache = {}
    def __len__(self):
        return 400
    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = (torch.randn(8), index % 4)
        return self.cache[index]
for x, y in DataLoader(Cached(), batch_size=8):
    step(x, y)
""",
    "a memoised function": """
@functools.lru_cache(maxsize=None)
def load(index):
    return torch.randn(4, 8)
for index in range(40):
    step(load(index), torch.randint(0, 4, (4,)))
""",
    "outputs of an evaluation": """
for x, y in batches():
    step(x, y)
    with torch.no_grad():
        outputs = [model(x) for _ in range(3)]
""",
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nobody_is_named_where_nothing_is_lost(name: str, tmp_path: Path) -> None:
    fact, _ = growth_of(HEALTHY[name], tmp_path)
    assert fact is None


HOSTILE = """
class Hostile:
    def __len__(self): raise RuntimeError("len")
    def __eq__(self, other): raise RuntimeError("eq")
    def __hash__(self): raise RuntimeError("hash")
    def __bool__(self): raise RuntimeError("bool")
    def __repr__(self): raise RuntimeError("repr")
    def __getattr__(self, name): raise RuntimeError(name)
    @property
    def __class__(self): raise RuntimeError("class")
    @property
    def __dict__(self): raise RuntimeError("dict")

class Lying(list):
    def __len__(self): raise RuntimeError("len")
    def __iter__(self): raise RuntimeError("iter")
    def __getitem__(self, index): raise RuntimeError("getitem")

class Meta(type):
    def __getattribute__(cls, name): raise RuntimeError(name)

class Odd(metaclass=Meta):
    pass

hostile, lying, odd = Hostile(), Lying(), object.__new__(Odd)
within = {"a": hostile, "b": [lying, odd], hostile.__init__: 3}
huge = list(range(2_000_000))
looped = []
looped.append(looped)
losses = Lying()
for x, y in batches():
    out, loss = step(x, y)
    losses.append(loss)  # here
"""


def test_hostile_objects_neither_hurt_nor_hide_the_owner(tmp_path: Path) -> None:
    fact, lines = growth_of(HOSTILE, tmp_path)
    assert fact is not None
    assert fact["name"] == "losses"
    assert lines[fact["line"] - 1].endswith("# here")


def test_an_ordinary_run_looks_through_nothing_unless_its_memory_grows(tmp_path: Path) -> None:
    source, _ = CLASSICS["losses in a list"]
    fact, _ = growth_of(source, tmp_path, closely=False)
    assert fact is None


def test_an_ordinary_run_whose_memory_grows_clearly_gets_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    base = 1 << 30

    def rising() -> float:
        taken.append(1)
        return float(base + len(taken) * (4 << 20))

    monkeypatch.setattr("clew.labs.profiler.memory.growth_watch.own_memory", rising)
    monkeypatch.setattr("clew.labs.profiler.memory.growth_watch.EVERY", 0.0)
    monkeypatch.setattr("clew.labs.profiler.memory.growth_watch.FIRST_FIT", 22)
    source = """
kept = []
for x, y in batches(90):
    out, loss = step(x, y)
    kept.append(torch.zeros(1 << 20))  # here
"""
    fact, lines = growth_of(source, tmp_path, closely=False)
    assert fact is not None
    assert (fact["name"], fact["kind"], fact["measured"]) == ("kept", "tensor", True)
    assert lines[fact["line"] - 1].endswith("# here")
    assert fact["slope"] > 1 << 20


def test_looking_keeps_nothing_alive(tmp_path: Path) -> None:
    import gc
    import weakref

    from clew.labs.profiler.memory.named_objects import take_survey

    died = []

    def train() -> None:
        loss = torch.ones(3, requires_grad=True).sum()
        weakref.finalize(loss, died.append, True)
        survey = take_survey(0, sys._getframe(0), [])
        assert any(holder.name.text == "loss" for holder in survey.holders.values())
        del loss
        gc.collect()
        assert died == [True]

    train()


METRIC = """
class Metric:
    def __init__(self):
        self.preds = []
    def update(self, value):
        self.preds.append(value)
"""


def test_what_an_installed_package_keeps_is_named_by_the_users_variable(tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "metrics"}
    installed = tmp_path / "site-packages" / "metrics.py"
    exec(compile(METRIC, str(installed), "exec"), names)
    module = sys.modules["metrics"] = ModuleType("metrics")
    module.__file__ = str(installed)
    try:
        fact, _ = growth_of(
            """
accuracy = Metric()
for x, y in batches():
    out, loss = step(x, y)
    accuracy.update(out)
""",
            tmp_path,
            Metric=names["Metric"],
        )
    finally:
        del sys.modules["metrics"]
    assert fact is not None
    assert (fact["name"], fact["kind"]) == ("accuracy.preds", "graph")
    assert fact["line"] is None


def test_a_subclass_of_tensor_is_not_told_that_it_is_looked_at(tmp_path: Path) -> None:
    fact, _ = growth_of(
        """
class Told(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        told.append(function)
        return super().__torch_function__(function, types, args, kwargs or {})

told = []
held = [torch.ones(2).as_subclass(Told)]
before = len(told)
for x, y in batches():
    step(x, y)
assert len(told) == before
""",
        tmp_path,
    )
    assert fact is None
