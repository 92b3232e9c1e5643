"""Sizes with names."""

from __future__ import annotations

import pytest
import torch
from networks import GPT, LeNet, Siamese, UNet
from torch import Tensor, nn

import clew
from clew.labs.network.network_inputs import BadInputError
from clew.records.network import Summary


def shape(summary: Summary, path: str) -> str:
    return next(r for r in summary.rows if r.path == path).outputs[0].text()


def test_names_flow_through_the_network() -> None:
    found = clew.summary(GPT(layers=1), ("batch", "time"))
    assert shape(found, "blocks.0.mlp.0") == "batch × time × 128"
    assert shape(found, "positions") == "time × 32"
    assert found.outputs[0].text() == "batch × time × 100"


def test_sizes_are_primes_that_the_model_has_nowhere() -> None:
    found = clew.summary(nn.Sequential(nn.Linear(3, 5)), ("batch", 3))
    assert dict(found.dims) == {"batch": 7}


def test_given_sizes_are_recognised_by_value() -> None:
    found = clew.summary(GPT(layers=1), (4, 17), dims={"batch": 4, "time": 17})
    assert found.outputs[0].text() == "batch × time × 100"


def test_dimensions_that_got_merged_are_written_as_a_product() -> None:
    class Merging(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(-1, 8)

    assert clew.summary(Merging(), ("batch", "time", 8)).outputs[0].text() == "batch·time × 8"


def test_strides_are_written_as_people_do() -> None:
    found = clew.summary(UNet(), ("batch", 3, "height", "width"))
    assert shape(found, "down2") == "batch × 32 × ceil(height/2) × ceil(width/2)"
    assert shape(clew.summary(nn.Sequential(nn.MaxPool2d(2)), (2, 3, "h", 8)), "0") == "2 × 3 × h//2 × 4"


def test_a_network_that_needs_even_sizes_gets_them_and_says_so() -> None:
    found = clew.summary(UNet(), ("batch", 3, "height", "width"))
    assert all(size % 2 == 0 for _, size in found.dims)
    assert any("it fails at" in note for note in found.notes)


class Placed(nn.Module):
    """A position for each of 17 places: no other length fits."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.zeros(17, 16))
        self.out = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x + self.places)


def test_a_name_that_the_model_fixes_is_told() -> None:
    found = clew.summary(Placed(), ("batch", "time", 16), dims={"time": 17})
    assert [n for n in found.notes if "only one size" in n] == [
        "the model fixes time: it works with only one size, and failed with the others tried"
    ]
    assert found.outputs[0].text() == "batch × 17 × 8"


def test_a_layer_over_a_flattened_image_fixes_its_size() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 30 * 28, 5))
    found = clew.summary(model, ("batch", 3, "height", "width"), dims={"height": 32, "width": 30})
    assert any(n.startswith("the model fixes height, width:") for n in found.notes)
    assert shape(found, "0") == "batch × 8 × 30 × 28"


def test_a_size_that_python_made_a_number_is_not_fixed_by_that() -> None:
    class Picky(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.ones(int(x.shape[0])) if int(x.shape[0]) == 6 else x

    found = clew.summary(Picky(), ("batch", 2), dims={"batch": 4})
    assert (found.outputs[0].text(), found.notes) == ("batch × 2", ())


def test_the_same_name_in_two_inputs_is_the_same_size() -> None:
    found = clew.summary(Siamese(), [("batch", 6), ("batch", 6)])
    assert found.outputs[0].text() == "batch"


def test_two_names_of_the_same_size_are_refused() -> None:
    with pytest.raises(BadInputError, match="can't be told apart"):
        clew.summary(LeNet(), ("a", 1, "b", 28), dims={"a": 28, "b": 28})


class Tagger(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.rnn = kind(16, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.rnn(x)[0])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_names_flow_through_recurrent_layers(kind: type[nn.RNNBase]) -> None:
    found = clew.summary(Tagger(kind), ("batch", "time", 16))
    assert [t.text() for t in found.rows[1].outputs[:2]] == ["batch × time × 64", "2 × batch × 32"]
    assert found.outputs[0].text() == "batch × time × 5"
    assert found.notes == ()


def test_states_that_are_given_vary_with_their_batch() -> None:
    state = (torch.zeros(1, 4, 8), torch.zeros(1, 4, 8))
    found = clew.summary(nn.LSTM(16, 8), [("time", "batch", 16), state], dims={"batch": 4})
    assert [t.text() for t in found.outputs] == ["time × batch × 8", "1 × batch × 8", "1 × batch × 8"]


class Reader(nn.Module):
    """Strides before and sums after a layer that torch can't follow names through."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, 2, 1)
        self.rnn = nn.LSTM(64, 8, batch_first=True)
        self.start = nn.Parameter(torch.zeros(1, 1, 8))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.rnn(self.conv(x).permute(0, 3, 1, 2).flatten(2))[0]
        longer = torch.cat([self.start.expand(len(x), 1, 8), y.repeat(1, 2, 1)], 1)
        return y, y.reshape(-1, 8), x.flatten(2).repeat(1, 1, 2)[..., 3:], longer.flatten(1)


def test_what_is_known_from_before_such_a_layer_is_recognised_after_it() -> None:
    found = clew.summary(Reader(), ("batch", 1, 16, "width"))
    assert [t.text() for t in found.outputs[:3]] == [
        "batch × ceil(width/2) × 8",
        "batch·ceil(width/2) × 8",
        "batch × 1 × (32·width - 3)",
    ]
    assert found.outputs[3].text() == "batch × 72"  # no simple formula: the number itself


def test_a_loop_over_time_does_not_fix_it() -> None:
    class Steps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.Linear(16, 16)

        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([self.cell(x[:, t]) for t in range(x.shape[1])], 1)

    found = clew.summary(Steps(), ("batch", "time", 16))
    assert (found.outputs[0].text(), found.notes) == ("batch × time × 16", ())
    assert [r.outputs[0].text() for r in found.rows[1:]] == ["batch × 16"] * dict(found.dims)["time"]


def test_a_limit_on_a_size_does_not_fix_it() -> None:
    class Limited(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.places = nn.Embedding(9, 16)
            self.rnn = nn.GRU(16, 8, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.rnn(x + self.places.weight[: x.shape[1]])[0]

    for time in (5, 9):
        found = clew.summary(Limited(), ("batch", "time", 16), dims={"time": time})
        assert (found.outputs[0].text(), found.notes) == ("batch × time × 8", ())


def test_lengths_of_packed_sequences_stay_numbers() -> None:
    class Packing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(16, 8, batch_first=True)

        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            pack = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return nn.utils.rnn.pad_packed_sequence(self.rnn(pack)[0], batch_first=True)[0]

    inputs = [torch.randn(4, 17, 16), torch.tensor([11, 3, 5, 9])]
    found = clew.summary(Packing(), inputs, dims={"batch": 4, "time": 17})
    assert found.outputs[0].text() == "batch × 11 × 8"
    assert not any("fixes" in n or "could not" in n for n in found.notes)


def test_a_size_that_depends_on_values_is_a_number() -> None:
    class Choosing(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x[x[:, 0] > 0], x

    found = clew.summary(Choosing(), ("batch", 4))
    assert found.outputs[0].dims[0].isdigit()
    assert found.outputs[1].text() == "batch × 4"


def test_a_name_may_be_of_size_one() -> None:
    found = clew.summary(nn.Linear(16, 8), ("batch", 16), dims={"batch": 1})
    assert (found.outputs[0].text(), found.notes) == ("batch × 8", ())


def test_trying_other_sizes_leaves_model_and_inputs_as_they_were() -> None:
    model = nn.Sequential(nn.BatchNorm1d(16), Tagger(nn.GRU))
    model[1].register_buffer("seen", torch.zeros(()))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    x = torch.randn(4, 16, 16)
    kept, random = x.clone(), torch.get_rng_state()
    clew.summary(model, x, dims={"batch": 4})
    assert torch.equal(x, kept)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_sums_and_divisions_can_be_read_one_way_only() -> None:
    class Windows(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            b, h, c = x.shape
            return x.view(b, h // 4, 4, c)

    class Start(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([x, x[:, :1]], 1)

    pool = nn.Sequential(nn.AvgPool2d(8), nn.Upsample(scale_factor=8))
    assert clew.summary(pool, (2, 3, "height", 16)).outputs[0].text() == "2 × 3 × 8·(height//8) × 16"
    assert clew.summary(Start(), ("batch", "time", 8)).outputs[0].text() == "batch × (time + 1) × 8"
    windows = clew.summary(Windows(), ("batch", "height", 8)).outputs[0].text()
    assert windows.startswith("batch × height//4 × ")
    assert "//height//" not in windows
