"""An exception in a loader is traced back to its sample, stage and line, in real processes."""

from pathlib import Path

import pytest
import torch
from program_process import Ended, run_warm
from torch.utils.data import DataLoader, Dataset

from clew.api.open_run import open_run
from clew.hooks.seams.loader_seam import Indices
from clew.labs.loaders.failing_sample import find_failing_sample

PROGRAM = """
import os
import sys
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

kind, workers = sys.argv[1], int(sys.argv[2])


def brighter(x):
    if kind == "transform" and float(x[0, 0]) == 37:
        raise ValueError("bad pixel")
    return x + 1


ASLEEP = __file__ + ".asleep"

if kind == "killed in transfer":  # what torch raises if it does not see yet that the worker has ended
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter as Batches

    get = Batches._try_get_data

    def cut_off(batches, *args, **kwargs):
        try:
            return get(batches, *args, **kwargs)
        except RuntimeError:
            raise ConnectionResetError(104, "Connection reset by peer") from None

    Batches._try_get_data = cut_off
    torch.utils.data._utils.signal_handling._set_SIGCHLD_handler = lambda: None


class Pictures(Dataset):
    def __init__(self):
        self.transform = brighter

    def __len__(self):
        return 64

    def load(self, index):
        if kind == "getitem" and index == 37:
            return {"a": 1}["label"]
        if kind.startswith("killed") and index == 37:
            while kind == "killed aside" and not os.path.exists(ASLEEP):
                time.sleep(0.01)
            time.sleep(0.2 if kind == "killed aside" else 0)  # the loop is about to call sleep
            os.kill(os.getpid(), 9)
        if kind == "worker only" and index == 37 and torch.utils.data.get_worker_info():
            raise RuntimeError("only in a worker")
        return torch.full((8, 9 if kind == "collate" and index == 37 else 8), float(index))

    def __getitem__(self, index):
        return self.transform(self.load(index)), index % 2


class Stream(IterableDataset):
    def __iter__(self):
        for n in range(64):
            if n == 21:
                raise EOFError("the stream broke off")
            yield torch.ones(8, 8), 0


if __name__ == "__main__":
    torch.manual_seed(0)
    dataset, shuffle = (Stream(), None) if kind == "stream" else (Pictures(), kind != "killed aside")
    train_loader = DataLoader(dataset, 8, shuffle, num_workers=workers)
    model = nn.Linear(64, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for x, y in train_loader:
        if kind == "killed aside":
            open(ASLEEP, "w").close()
            time.sleep(60)  # until the signal comes
        loss = nn.functional.cross_entropy(model(x.flatten(1)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def ended(folder: Path, kind: str, workers: int, verb: tuple[str, ...] = ("run",)) -> Ended:
    script = folder / "train.py"
    script.write_text(PROGRAM)
    return run_warm(
        ["-m", "clew", *verb, "--dir", folder / "runs", script, kind, str(workers)], COLUMNS="100"
    )


def told(err: str) -> str:
    """What is said about the failure."""
    after = err.split("\nclew  ", 1)[1]
    return " ".join(after.split("────", 1)[0].split())


@pytest.mark.parametrize("workers", [0, 2])
def test_the_sample_that_raises_is_named_with_its_line(tmp_path, workers):
    result = ended(tmp_path, "getitem", workers)
    said = told(result.err)
    assert result.code == 1
    assert "KeyError: 'label'" in said
    assert "index 37 of train_loader" in said
    assert ("in worker" in said) == bool(workers)
    assert "method Pictures.load" in said
    assert 'return {"a": 1}["label"]' in said
    run = open_run(next((tmp_path / "runs").iterdir()))
    fact = next(f.data for f in run.data.facts if f.kind == "data.failure")
    assert (fact["kind"], fact["index"]) == ("sample", 37)
    assert 37 in fact["indices"]


def test_the_transform_that_raises_is_named_with_what_it_was_given(tmp_path):
    said = told(ended(tmp_path, "transform", 2).err)
    assert "ValueError: bad pixel" in said
    assert "transform brighter" in said
    assert "8×8 float32, 37" in said


def test_samples_that_do_not_stack_are_named_with_their_shapes(tmp_path):
    said = told(ended(tmp_path, "collate", 2).err)
    assert "could not be collated" in said
    assert "sample 37: 0 8×9 float32" in said
    assert "the other 7: 0 8×8 float32" in said


def test_a_sample_that_kills_its_worker_is_found_in_another_process(tmp_path):
    said = told(ended(tmp_path, "killed", 2).err)
    assert "a loader's worker died" in said
    assert "index 37 of train_loader" in said
    assert "SIGKILL" in said


def test_a_worker_that_dies_while_it_sends_a_batch_is_found_too(tmp_path):
    result = ended(tmp_path, "killed in transfer", 2)
    assert "ConnectionResetError" in result.err
    said = told(result.err)
    assert "a loader's worker died" in said
    assert "index 37 of train_loader" in said


def test_a_worker_that_dies_while_the_loop_is_elsewhere_is_found_too(tmp_path):
    """Its end is told by a signal then, and the loop's iterator has ended with the loop."""
    result = ended(tmp_path, "killed aside", 2)
    assert "time.sleep" in result.err  # that is where it was told
    assert "index 37 of train_loader" in told(result.err)


class Local(Dataset):
    def __init__(self):
        self.scale = lambda x: x

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.scale(torch.ones(2))


def test_what_can_not_be_pickled_is_named():
    train_loader = DataLoader(Local(), num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(Exception, match=r"pickle|local object") as caught:
        iter(train_loader)
    failure = find_failing_sample(caught.value, Indices())
    assert failure is not None
    assert (failure.kind, failure.loader) == ("unpicklable", "train_loader")
    assert failure.details[0].startswith("dataset.scale: ")


def test_a_failure_that_does_not_come_again_is_said_to_be_so(tmp_path):
    said = told(ended(tmp_path, "worker only", 2).err)
    assert "one of the samples" in said
    assert "none of these samples fails" in said
    assert 'raise RuntimeError("only in a worker")' in said


def test_a_stream_that_breaks_off_is_counted(tmp_path):
    said = told(ended(tmp_path, "stream", 1).err)
    assert "EOFError: the stream broke off" in said
    assert "index 21" in said


def test_bare_the_traceback_is_that_of_the_sample_itself(tmp_path):
    result = ended(tmp_path, "getitem", 2, ("data", "--bare"))
    assert result.code == 1
    assert "in load\n" in result.err
    assert "Caught KeyError in DataLoader worker" not in result.err
    assert "1 loader ran in this process, without the 2 workers" in result.err
