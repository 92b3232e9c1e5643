from __future__ import annotations

import pytest
from web_runs import Client, make_run


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """Two runs that no test changes: the second has a spike, a NaN and another learning rate."""
    root = tmp_path_factory.mktemp("runs")
    first = make_run(root)
    second = make_run(root, spike=120, bad=50, lr=0.01)
    return root, first.name, second.name


@pytest.fixture
def api(recorded):
    with Client(recorded[0]) as made:
        yield made


@pytest.fixture
def own(tmp_path):
    """A folder of a test's own, and the app over it."""
    with Client(tmp_path) as made:
        yield tmp_path, made
