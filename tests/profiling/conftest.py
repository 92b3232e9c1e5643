"""What holds for all tests of profiling."""

from collections import Counter

import pytest
from torch._dynamo import utils as dynamo

from clew.profiling import compiling


@pytest.fixture(autouse=True)
def nothing_compiled_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have compiled something: it is not this program's."""
    monkeypatch.setitem(dynamo.counters, "frames", Counter())
    assert not compiling.compiles_already()
