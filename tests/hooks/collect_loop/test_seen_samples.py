"""What is recorded of the samples that a program feeds its models."""

import gc

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

import clew
from clew.hooks.collect_layers.pretrained_statistics import distance
from clew.hooks.collect_loop import dataset_contents
from clew.hooks.collect_loop.batch_samples import (
    LabelSignal,
    flattened,
    is_constant,
    labels_of,
    predicted_labels,
    sample_hashes,
)
from clew.store.read.run_reader import open_run

X = torch.randn(48, 6, generator=torch.Generator().manual_seed(1))
Y = torch.arange(48) % 3


def recorded(program, tmp_path):
    with clew.attach(run_root=tmp_path, quiet=True, every_step=True) as session:
        program()
    data = open_run(session.path).data
    assert not facts(data, "incident")
    return data


def facts(data, kind):
    return [fact.data for fact in data.facts if fact.kind == kind]


def values(data, name):
    found = [list(v) for _, _, v in data.series(name)]
    assert len(found) == 1, (name, found)
    return found[0]


def train(batches, model=None):
    model = model or nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_samples_have_the_same_hash_if_and_only_if_their_content_is_the_same(dtype):
    rows = (torch.randn(40, 3, 700, generator=torch.Generator().manual_seed(0)) * 100).to(dtype)
    rows[7], rows[30] = rows[3], rows[3]
    if dtype is torch.bool:
        rows = torch.rand(40, 3, 700) < 0.5
        rows[7], rows[30] = rows[3], rows[3]
    hashes = sample_hashes(flattened(rows))
    same = [[bool((a == b).all()) for b in flattened(rows)] for a in flattened(rows)]
    assert (hashes[:, None] == hashes[None, :]).tolist() == same
    assert (sample_hashes(flattened(rows[3:9])) == hashes[3:9]).all()


def test_blank_samples_are_those_of_one_value():
    rows = torch.tensor([[0.0, 0.0], [2.0, 2.0], [1.0, 2.0]])
    assert is_constant(rows).tolist() == [True, True, False]


def test_labels_are_class_indices_or_a_column_of_zeros_and_ones():
    assert labels_of(torch.tensor([2, 0])).tolist() == [2, 0]
    assert labels_of(torch.tensor([[1.0], [0.0]])).tolist() == [1, 0]
    assert labels_of(torch.tensor([0.5, 1.0])) is None
    assert labels_of(torch.zeros(4, 2)) is None


def test_predictions_are_read_from_scores_logits_and_probabilities():
    assert predicted_labels(torch.tensor([[0.1, 0.9], [3.0, 2.0]]), 2).tolist() == [1, 0]
    assert predicted_labels(torch.tensor([[-0.3], [4.0]]), 2).tolist() == [0, 1]
    assert predicted_labels(torch.tensor([0.2, 0.7]), 2).tolist() == [0, 1]
    assert predicted_labels(torch.zeros(3, 4, 5), 3) is None


def test_copies_and_samples_that_come_again_are_counted(tmp_path):
    batch = torch.cat([X[:6], X[:2]])
    data = recorded(lambda: train([(batch, Y[:8]), (X[4:12], Y[4:12])]), tmp_path)
    assert values(data, "sample.count") == [8.0, 8.0]
    assert values(data, "sample.distinct") == [0.75, 1.0]
    assert values(data, "sample.seen") == [0.0, 0.25]


def test_a_sample_that_comes_again_with_another_label_is_noticed(tmp_path):
    labels = Y[:8].clone()
    labels[:2] = (labels[:2] + 1) % 3
    data = recorded(lambda: train([(X[:8], Y[:8]), (X[:8].clone(), labels)]), tmp_path)
    assert np.isnan(values(data, "sample.relabelled")[0])
    assert values(data, "sample.relabelled")[1] == 0.25


def test_features_that_never_vary_are_counted_over_the_run(tmp_path):
    first, second = X[:8].clone(), X[8:16].clone()
    first[:, :3], second[:, :3] = 1.0, 1.0
    second[0, 0] = 2.0
    data = recorded(lambda: train([(first, Y[:8]), (second, Y[:8])]), tmp_path)
    assert values(data, "sample.constant_features") == pytest.approx([3 / 6, 2 / 6])


def test_the_order_of_labels_is_that_of_the_batch(tmp_path):
    labels = torch.tensor([0, 0, 1, 1, 2, 2, 2, 2])
    data = recorded(lambda: train([(X[:8], labels)]), tmp_path)
    assert values(data, "label.classes") == [3.0]
    assert values(data, "label.top_share") == [0.5]
    assert values(data, "label.switches") == pytest.approx([2 / 7])


def test_class_counts_and_hits_are_summed(tmp_path):
    model = nn.Linear(6, 3)
    with torch.no_grad():
        model.weight.zero_()
        model.bias.copy_(torch.tensor([9.0, 0.0, 0.0]))  # always says 0
    data = recorded(lambda: train([(X, Y)] * 8, model=model), tmp_path)
    counts = facts(data, "labels")[0]["counts"]
    assert [row[:2] for row in counts] == [[0, 128], [1, 128], [2, 128]]
    assert counts[0][2] == 128


def test_targets_of_the_loader_are_told_from_those_of_the_program(tmp_path):
    loader = DataLoader(TensorDataset(X, Y), batch_size=16)
    data = recorded(lambda: train(loader), tmp_path)
    assert values(data, "target.given") == [1.0] * 3
    made_up = recorded(lambda: train((x, torch.zeros_like(y)) for x, y in loader), tmp_path)
    assert values(made_up, "target.given") == [0.0] * 3
    without = recorded(lambda: train([(X, Y)]), tmp_path)
    assert np.isnan(values(without, "target.given")).all()


def test_labels_that_the_program_made_up_are_not_counted_beside_a_loader(tmp_path):
    loader = DataLoader(TensorDataset(X, Y), batch_size=16)
    data = recorded(lambda: train((x, torch.zeros_like(y)) for x, y in loader), tmp_path)
    assert "label.classes" not in data.signal_names()


def test_a_batch_cut_from_a_larger_tensor_in_every_step_is_noticed(tmp_path):
    data = recorded(lambda: train((X[:8], Y[:8]) for _ in range(3)), tmp_path)
    assert values(data, "sample.sliced") == [48.0] * 3
    held = X[:8]
    data = recorded(lambda: train((held, Y[:8]) for _ in range(3)), tmp_path)
    assert values(data, "sample.sliced")[1:] == [0.0, 0.0]


def evaluate(model, val_loader):
    with torch.no_grad():
        for x, _ in val_loader:
            model(x)


def test_evaluated_samples_that_were_trained_on_are_counted(tmp_path):
    whole = TensorDataset(X, Y)
    train_loader = DataLoader(Subset(whole, range(32)), batch_size=16)
    val_loader = DataLoader(Subset(whole, range(28, 48)), batch_size=10)

    def program():
        evaluate(train(train_loader), val_loader)

    data = recorded(program, tmp_path)
    assert values(data, "eval.samples") == [10.0, 10.0]
    assert values(data, "eval.seen") == [4.0, 0.0]
    assert values(data, "eval.known") == [32.0, 32.0]
    source = next(f for f in facts(data, "fed") if f["phase"] == "eval")
    assert source["names"] == ["val_loader"]
    assert values(data, "eval_input.mean") == pytest.approx([float(X[28:38].mean()), float(X[38:].mean())])


def test_predictions_and_labels_of_an_evaluation_meet_in_a_confusion_matrix(tmp_path):
    model = nn.Linear(6, 3)
    with torch.no_grad():
        model.weight.zero_()
        model.bias.copy_(torch.tensor([0.0, 9.0, 0.0]))
    loader = DataLoader(TensorDataset(X[:12], Y[:12]), batch_size=6)

    def program():
        train([(X, Y)], model=model)
        evaluate(model, loader)

    (confusion,) = facts(recorded(program, tmp_path), "confusion")
    assert confusion["counts"] == [[0, 1, 4], [1, 1, 4], [2, 1, 4]]


def test_an_evaluation_without_a_loader_is_paired_by_its_loss_call(tmp_path):
    def program():
        model = train([(X, Y)])
        with torch.no_grad():
            F.cross_entropy(model(X[:9]), Y[:9])

    (confusion,) = facts(recorded(program, tmp_path), "confusion")
    assert sum(count for _, _, count in confusion["counts"]) == 9


class Stored(Dataset):
    def __init__(self, in_place):
        self.rows = X[:16].clone().numpy()
        self.in_place = in_place

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index] if self.in_place else self.rows[index].copy()
        row *= 0.5
        return row, int(Y[index])


@pytest.mark.parametrize("in_place", [True, False])
def test_stored_data_that_changes_between_epochs_is_noticed(in_place, tmp_path):
    def program():
        loader = DataLoader(Stored(in_place), batch_size=8)
        train(batch for _ in range(3) for batch in loader)

    changes = facts(recorded(program, tmp_path), "dataset_changed")
    assert [c["array"] for c in changes] == (["rows", "rows"] if in_place else [])
    if in_place:
        assert changes[0]["std_now"] == pytest.approx(changes[0]["std"] / 2)


def test_a_new_order_of_stored_samples_is_no_change():
    rows = np.arange(600.0).reshape(100, 6)
    before = dataset_contents.summary(rows)
    rows[:] = rows[::-1].copy()
    assert not dataset_contents.differs(before, dataset_contents.summary(rows))


class Drawing(Dataset):
    def __init__(self, strength=1.0):
        self.rng = np.random.default_rng(0)
        self.strength = strength

    def __getitem__(self, index):
        return self._noise(index)

    def _noise(self, index):
        return index + self.strength * self.rng.normal()


class Quiet(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, index):
        return index


def test_a_generator_counts_if_getitem_uses_it():
    assert dataset_contents.held_generator(Drawing()) == "rng"
    assert dataset_contents.held_generator(Quiet()) is None


def test_random_transforms_count_if_nothing_is_switched_off():
    assert dataset_contents.draws(Drawing())
    assert not dataset_contents.draws(Drawing(strength=0.0))
    assert not dataset_contents.draws(Quiet())


def test_a_seed_without_regard_to_the_worker_is_told_from_one_with():
    assert dataset_contents.seeds_alike(lambda worker: np.random.seed(42))
    assert not dataset_contents.seeds_alike(lambda worker: np.random.seed(42 + worker))
    assert not dataset_contents.seeds_alike(lambda worker: np.random.seed(torch.initial_seed() % 2**32))
    assert not dataset_contents.seeds_alike(lambda worker: print("hello"))


def signal_of(inputs, labels):
    signal = LabelSignal()
    signal.add(inputs, labels)
    assert signal.is_full
    return signal.judge()


def test_labels_of_their_inputs_are_told_from_shuffled_ones():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 4, (512,), generator=generator)
    inputs = torch.randn(512, 8, generator=generator) + 2 * F.one_hot(labels, 8)
    belonging = signal_of(inputs, labels)
    apart = signal_of(inputs, labels[torch.randperm(512, generator=generator)])
    assert belonging.separation > 10
    assert belonging.deviations > 10
    assert apart.separation < 2
    assert abs(apart.deviations) < 3


def test_neighbours_show_a_signal_that_class_means_do_not():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(512, 2, generator=generator) * 2 - 1
    checkerboard = signal_of(inputs, ((inputs[:, 0] > 0) ^ (inputs[:, 1] > 0)).long())
    assert checkerboard.separation < 6
    assert checkerboard.deviations > 10


def test_loaded_statistics_are_compared_channel_by_channel():
    value = torch.randn(64, 3, 8, 8, generator=torch.Generator().manual_seed(0)) * 6 + 10
    shift, scale = distance(value, torch.zeros(3), torch.full((3,), 4.0), 0.0)
    oracle = np.median(np.abs(value.mean((0, 2, 3)).numpy()) / 2)
    assert shift == pytest.approx(oracle, rel=1e-4)
    assert scale == pytest.approx(3, rel=0.02)


@pytest.mark.parametrize("load", [True, False])
def test_only_models_that_were_loaded_are_compared(load, tmp_path):
    def made():
        return nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))

    old = made()
    old(X * 3)

    def program():
        model = made()
        if load:
            model.load_state_dict(old.state_dict())
        train([(X[:24], Y[:24]), (X[24:], Y[24:])] * 3, model=model)

    data = recorded(program, tmp_path)
    assert (
        len(values(data, "pretrained.scale")) == 3 if load else "pretrained.scale" not in data.signal_names()
    )


def test_loaders_stay_alive_until_everyone_who_keeps_them_has_released_them(tmp_path):
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        samples = session.watcher.seen_samples
        first, second = samples.keep_loaders(), samples.keep_loaders()
        train(DataLoader(TensorDataset(X, Y), batch_size=16))
        first()
        first()
        gc.collect()
        assert list(samples.existing_loaders()) == [0]
        second()
        gc.collect()
        assert samples.existing_loaders() == {}
