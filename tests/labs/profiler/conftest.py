"""What holds for all tests of profiling."""

import os
from collections import Counter

import pytest
from torch._dynamo import utils as dynamo

from clew.labs.profiler.step_experiments import compiled_step
from clew.labs.profiler.torch_trace.kineto_window import LEVEL, SILENT

# Read when a process profiles for the first time: here that may be a test that plays the user.
os.environ.setdefault(LEVEL, SILENT)


@pytest.fixture(autouse=True)
def nothing_compiled_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have compiled something: it is not this program's."""
    monkeypatch.setitem(dynamo.counters, "frames", Counter())
    assert not compiled_step.compiles_already()
