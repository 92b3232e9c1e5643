from __future__ import annotations

from typing import Any

import pytest
import torch
from networks import GPT, VAE, Experts, LeNet, PackedLSTM, ResNet, Seq2Seq, Siamese, UNet
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import clew
from clew.labs.network.network_inputs import BadInputError, Shape
from clew.records.network import ModuleRow, Summary


def row(summary: Summary, path: str, call: int = 1) -> ModuleRow:
    return next(r for r in summary.rows if r.path == path and r.call == call)


def test_lenet_has_the_counts_of_the_textbook() -> None:
    found = clew.summary(LeNet(), (4, 1, 28, 28))
    assert found.parameters == 61_706
    assert [r.path for r in found.rows] == ["", "conv1", "conv2", "fc1", "fc2", "fc3"]
    assert row(found, "conv2").outputs[0].shape == (4, 16, 10, 10)
    assert row(found, "conv2").trainable == 6 * 16 * 25 + 16
    # Two per multiply-add: outputs times what each sums over.
    assert row(found, "conv1").flops == 2 * 4 * (6 * 28 * 28) * 25
    assert row(found, "fc1").flops == 2 * 4 * 400 * 120
    assert found.flops == sum(r.flops for r in found.rows if r.depth == 1)
    assert not found.computed


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (ResNet(), (torch.randn(2, 3, 16, 16),)),
        (UNet(), (torch.randn(2, 3, 16, 16),)),
        (GPT(), (torch.zeros(2, 7, dtype=torch.int64),)),
        (VAE(), (torch.randn(3, 16),)),
        (Siamese(), (torch.randn(3, 6), torch.randn(3, 6))),
        (nn.TransformerEncoderLayer(16, 4, batch_first=True), (torch.randn(2, 5, 16),)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_counts_agree_with_torch_itself(model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    found = clew.summary(model, list(inputs))
    assert found.parameters == sum(p.numel() for p in model.parameters())
    with FlopCounterMode(display=False) as counter:
        model(*inputs)
    assert found.flops >= counter.get_total_flops() > 0
    if not any(isinstance(m, GPT) for m in model.modules()):  # torch does not count the CPU's attention
        assert found.flops == counter.get_total_flops()


def test_attention_counts_both_of_its_products() -> None:
    found = clew.summary(GPT(layers=1, width=32, heads=4), (2, 7))
    attention = row(found, "blocks.0.attention")
    projections = 2 * 2 * 7 * 32 * (3 * 32 + 32)
    assert attention.flops == projections + 2 * (2 * 2 * 7 * 7 * 32)


def test_recurrent_layers_are_counted() -> None:
    found = clew.summary(nn.LSTM(5, 7, batch_first=True), (3, 11, 5))
    assert found.flops == 2 * 3 * 11 * (4 * 7 * 5 + 4 * 7 * 7)


def test_shared_weights_are_counted_once_and_shown_as_shared() -> None:
    found = clew.summary(GPT(), (2, 5))
    head = row(found, "head")
    assert (head.parameters, head.shared) == (0, 3200)
    assert found.parameters == sum(r.parameters for r in found.rows if r.depth == 1)


def test_a_module_called_twice_has_two_rows_and_counts_once() -> None:
    found = clew.summary(Siamese(), [(3, 6), (3, 6)])
    assert (row(found, "tower.0", 1).parameters, row(found, "tower.0", 2).parameters) == (28, 0)
    assert found.parameters == 28 + 12


def test_parameters_that_no_op_reads_are_shown_as_not_used() -> None:
    idle = [r.path for r in clew.summary(Siamese(), [(3, 6), (3, 6)]).rows if not r.ran]
    assert idle == ["unused"]


def test_weights_read_without_calling_their_module_are_used() -> None:
    found = clew.summary(nn.MultiheadAttention(8, 2, batch_first=True), [(2, 5, 8)] * 3)
    assert [r.path for r in found.rows if not r.ran] == []


def test_frozen_parameters_are_told_apart() -> None:
    model = LeNet()
    model.conv1.requires_grad_(False)
    found = clew.summary(model, (4, 1, 28, 28))
    assert (found.trainable, found.frozen) == (61_706 - 156, 156)
    assert found.memory.gradients == 4 * (61_706 - 156)


def test_equal_blocks_in_a_row_are_folded() -> None:
    found = clew.summary(GPT(layers=6), (2, 5))
    assert row(found, "blocks.0").repeat == 6
    assert all(r.hidden for r in found.rows if r.path.startswith("blocks.3"))
    assert "blocks.0 ×6  Block" in str(found)


def test_memory_for_the_backward_is_what_autograd_keeps() -> None:
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))
    memory = clew.summary(model, (3, 10), optimizer="momentum").memory
    # The input, and the output of the ReLU, which both the ReLU and the last layer need.
    assert memory.activations == 4 * (3 * 10 + 3 * 20)
    weights = 4 * (10 * 20 + 20 + 20 * 5 + 5)
    assert (memory.parameters, memory.gradients, memory.optimizer) == (weights, weights, weights)
    assert memory.total == 3 * weights + memory.activations


def test_a_model_of_seventy_billion_parameters_needs_no_memory() -> None:
    with torch.device("meta"):
        model = GPT(vocabulary=32_000, width=8192, heads=64, layers=80)
    found = clew.summary(model, (1, 512))
    assert found.parameters == sum(p.numel() for p in model.parameters()) > 64e9
    assert row(found, "blocks.0").repeat == 80
    assert all(p.device.type == "meta" for p in model.parameters())


def test_a_model_that_decides_on_values_is_run_and_says_so() -> None:
    lengths = torch.tensor([11, 4, 2])
    found = clew.summary(PackedLSTM(), [torch.zeros(3, 11, dtype=torch.int64), lengths])
    assert found.computed
    assert found.parameters == 50 * 16 + 4 * 32 * (16 + 32 + 2) + 4 * 32 * (32 + 32 + 2) + 66
    # 17 positions are not padding.
    assert row(found, "lstm").flops == 2 * 17 * 4 * 32 * (16 + 32 + 32 + 32)
    assert any("depends on them" in note for note in found.notes)
    assert clew.summary(Experts(), torch.randn(16, 8)).computed


def test_loops_are_shown_call_by_call() -> None:
    found = clew.summary(Seq2Seq(), {"x": torch.randn(2, 6, 4), "steps": 3})
    assert [r.call for r in found.rows if r.path == "cell"] == [1, 2, 3]
    assert found.outputs[0].shape == (2, 3, 4)


def test_outputs_in_dataclasses_and_dicts_are_found() -> None:
    assert [t.shape for t in clew.summary(VAE(), (3, 16)).outputs] == [(3, 16), (3, 4), (3, 4)]


def test_statistics_are_those_of_the_values() -> None:
    model, x = nn.Sequential(nn.Linear(4, 3, bias=False)), torch.randn(8, 4)
    found = row(clew.summary(model, x, statistics=True, loss=lambda out: 5 * out.sum()), "0")
    out = model(x)
    assert found.data is not None
    assert found.gradient is not None
    assert found.data.mean == pytest.approx(out.mean().item(), rel=1e-5, abs=1e-6)
    assert found.data.median == pytest.approx(out.median().item(), rel=1e-5)
    assert found.data.std == pytest.approx(out.std(correction=0).item(), rel=1e-5)
    assert (found.data.min, found.data.max) == pytest.approx((out.min().item(), out.max().item()))
    assert (found.gradient.mean, found.gradient.std) == (5.0, 0.0)


def test_what_is_not_finite_is_counted_apart() -> None:
    found = clew.summary(nn.Sequential(nn.Identity()), torch.tensor([1.0, float("nan")]), statistics=True)
    data = row(found, "0").data
    assert data is not None
    assert (data.mean, data.nonfinite) == (1.0, 1)


def test_inputs_are_made_of_the_type_that_the_model_takes() -> None:
    assert clew.summary(GPT(layers=1), (2, 5)).inputs[0][1].dtype == "int64"
    assert clew.summary(LeNet().double(), (2, 1, 28, 28)).inputs[0][1].dtype == "float64"
    given = Shape((2, 5), torch.int32)
    assert clew.summary(GPT(layers=1), given).inputs[0][1].dtype == "int32"


def test_a_compiled_model_is_summed_up_as_the_users_own() -> None:
    assert clew.summary(torch.compile(LeNet(), backend="eager"), (2, 1, 28, 28)).name == "LeNet"


def test_input_that_can_not_be_used_gets_one_clear_line() -> None:
    with pytest.raises(BadInputError, match="no shape yet"):
        clew.summary(nn.LazyLinear(3), (2, 4))
    with pytest.raises(BadInputError, match="optimizer is one of"):
        clew.summary(LeNet(), (2, 1, 28, 28), optimizer="magic")
    with pytest.raises(TypeError, match="takes a module"):
        clew.summary(3)  # type: ignore[arg-type]
    with torch.device("meta"), pytest.raises(BadInputError, match="meta device"):
        clew.summary(nn.Linear(2, 2), (1, 2), statistics=True)


def test_the_table_names_what_it_sums() -> None:
    text = str(clew.summary(LeNet(), (4, 1, 28, 28)))
    assert text.splitlines()[0] == "LeNet  4×1×28×28 float32 → 4×10"
    assert "  conv1  Conv2d" in text
    assert "parameters  61,706 (241 KiB)" in text
    assert "a multiply-add counts as two" in text


def bytes_kept(model: nn.Module, *inputs: Any) -> int:
    """An independent count: all memory that autograd keeps alive, but for the model's own."""
    own = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    kept: dict[int, tuple[int, Tensor]] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        model(*inputs)
    return sum(size for size, _ in kept.values())


class Unrolled(nn.Module):
    """Looks at one time after the other: views, each of which keeps the whole."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.cell = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return torch.stack([self.cell(x[:, t]).tanh() for t in range(x.shape[1])])


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (Unrolled(), (torch.randn(2, 5, 8),)),
        (GPT(), (torch.zeros(2, 7, dtype=torch.int64),)),
        (UNet(), (torch.randn(2, 3, 16, 16),)),
        (nn.TransformerEncoderLayer(16, 4, batch_first=True), (torch.randn(2, 5, 16),)),
        (Unrolled(), (torch.randn(9, 5, 8)[:2],)),
    ],
    ids=["unrolled", "gpt", "unet", "transformer", "part of a data set"],
)
def test_what_is_kept_is_all_memory_that_stays_alive(model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    whole = tuple(t.clone() for t in inputs)  # what an input is a view of is not the step's
    assert clew.summary(model, list(inputs)).memory.activations == bytes_kept(model, *whole)


def test_a_failing_forward_keeps_no_weights() -> None:
    good, bad = nn.Linear(64, 64), nn.Linear(3, 3)
    found = clew.summary(nn.Sequential(good, nn.ReLU(), bad), (2, 64), keep_going=True)
    assert row(found, "0").saved == 2 * 64 * 4
