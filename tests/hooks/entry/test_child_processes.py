"""Children of the program: multiprocessing and data loaders find the script, not the launcher."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from both_ways import both_ways

POOL = """
    import multiprocessing, sys

    class Job:
        def __init__(self, n): self.n = n

    def work(job):
        return job.n * 2, __name__, sys.argv, sys.path[0]

    if __name__ == "__main__":
        with multiprocessing.get_context("{method}").Pool(2) as pool:
            print(pool.map(work, [Job(1), Job(2), Job(3)]))
    else:
        assert __name__ == "__mp_main__"
"""

# The end waits for the threads that feed the workers' queues: a daemon thread that is stopped between freeing
# a semaphore and reporting it leaves a warning about a leak.
LOADER = """
    import threading, torch
    from torch.utils.data import DataLoader, Dataset

    class Squares(Dataset):
        def __len__(self): return 8
        def __getitem__(self, i): return torch.tensor(i * i)

    if __name__ == "__main__":
        loader = DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context="{method}")
        print([batch.tolist() for batch in loader])
        for thread in set(threading.enumerate()) - {{threading.current_thread()}}:
            thread.join(30)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pool_workers_unpickle_what_the_script_defines(method: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(dedent(POOL).format(method=method))
    plain, launched = both_ways(tmp_path, "train.py", "--epochs", "3")
    assert plain.code == 0
    assert launched == plain


def test_spawned_workers_of_a_module_find_it_by_name(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").touch()
    (tmp_path / "package/train.py").write_text(dedent(POOL).format(method="spawn"))
    plain, launched = both_ways(tmp_path, "-m", "package.train")
    assert plain.code == 0
    assert launched == plain


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loader_workers_deliver_the_same_batches(method: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(dedent(LOADER).format(method=method))
    plain, launched = both_ways(tmp_path, "train.py")
    assert "[[0, 1, 4, 9], [16, 25, 36, 49]]" in plain.stdout
    assert launched == plain
