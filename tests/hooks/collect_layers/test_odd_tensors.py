"""Programs whose tensors are not one block of numbers: what can't be measured of them costs nothing else."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew
from clew.measure.readable_tensors import has_values, shape_of, stored_values
from clew.store.read.run_reader import open_run

pytestmark = pytest.mark.filterwarnings("ignore:.*(beta|prototype|deprecated).*")  # torch's own word on them

ROWS = (torch.rand(16, 6, generator=torch.Generator().manual_seed(1)) * 3).round()
LABELS = ROWS[:, 0].long() % 2


def nested(layout):
    parts = [ROWS[:5], ROWS[5:8], ROWS[8:]]
    return torch.nested.nested_tensor(parts, layout=layout)


ODD = {
    "sparse": ROWS.to_sparse,
    "sparse-csr": ROWS.to_sparse_csr,
    "sparse-csc": ROWS.to_sparse_csc,
    "sparse-bsr": lambda: ROWS.to_sparse_bsr((2, 2)),
    "nested": lambda: nested(torch.strided),
    "jagged": lambda: nested(torch.jagged),
    "quantised": lambda: torch.quantize_per_tensor(ROWS, 0.1, 0, torch.quint8),
    "mkldnn": ROWS.to_mkldnn,
    "complex": lambda: torch.complex(ROWS, ROWS).conj(),
    "negated": lambda: torch.complex(ROWS, ROWS).conj().imag,
    "meta": lambda: ROWS.to("meta"),
}
UNREADABLE = sorted(ODD.keys() - {"complex", "negated"})


class Net(nn.Module):
    """Takes the odd tensor as its first, its only or its last argument; it need not compute with it."""

    def __init__(self, odd_output=False):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.fc2 = nn.Linear(8, 2)
        self.odd_output = odd_output

    def forward(self, *args):
        out = self.fc2(F.relu(self.fc1(ROWS)))
        return (out, args[0]) if self.odd_output else out


def recorded(folder, program):
    with clew.attach(run_root=folder, quiet=True) as session:
        program()
    return open_run(session.path).data


def train(model, args, steps=12):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        out = model(*args())
        F.cross_entropy(out[0] if isinstance(out, tuple) else out, LABELS).backward()
        optimizer.step()
        if step % 4 == 3:
            with torch.no_grad():
                model(*args())


def incidents(data):
    return [fact.data for fact in data.facts if fact.kind == "incident"]


def sites(data, signal):
    return [site.op or site.module for site, _, _ in data.series(signal)]


@pytest.mark.parametrize("kind", sorted(ODD))
def test_an_odd_tensor_as_input_leaves_everything_else_measured(kind, tmp_path):
    odd, model = ODD[kind](), Net()
    data = recorded(tmp_path, lambda: train(model, lambda: (odd, ROWS)))
    assert incidents(data) == []
    assert sites(data, "activation.std") == ["fc1", "relu", "fc2"]
    assert "input[1]" in sites(data, "input.feature_spread")
    assert ("input[0]" in sites(data, "input.feature_spread")) == (kind == "negated")


@pytest.mark.parametrize("kind", sorted(ODD))
def test_an_odd_tensor_alone_and_handed_back_is_no_incident(kind, tmp_path):
    odd, model = ODD[kind](), Net(odd_output=True)
    data = recorded(tmp_path, lambda: train(model, lambda: (odd,)))
    assert incidents(data) == []
    assert data.last_step == 11


def test_a_graph_network_has_its_outputs_and_dense_inputs_measured(tmp_path):
    class Gcn(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 2)

        def forward(self, x, adjacency):
            return torch.sparse.mm(adjacency, self.layer(x))

    adjacency = torch.eye(16).to_sparse()
    data = recorded(tmp_path, lambda: train(Gcn(), lambda: (ROWS, adjacency)))
    assert incidents(data) == []
    assert sites(data, "input.mean") == ["input[0]"]
    assert sites(data, "loss_call.value") == ["cross_entropy"]


def test_sparse_weights_and_gradients_are_no_incident(tmp_path):
    table = nn.Embedding(6, 3, sparse=True)
    weight = nn.Parameter(torch.eye(6).to_sparse())

    def program():
        optimizer = torch.optim.SGD([*table.parameters(), weight], lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            loss = torch.sparse.mm(weight, ROWS[:6]).square().mean() + table(LABELS).square().mean()
            loss.backward()
            optimizer.step()

    data = recorded(tmp_path, program)
    assert incidents(data) == []
    assert data.last_step == 5


def test_odd_masks_are_left_alone(tmp_path):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x):
            factor = ROWS[:, :, None].to_sparse()
            return self.layer(x * torch.mul(factor, factor).to_dense()[:, :, 0])

    def program():
        model = Masked()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            F.mse_loss(model(ROWS), ROWS).backward()
            optimizer.step()

    assert incidents(recorded(tmp_path, program)) == []


@pytest.mark.parametrize("kind", UNREADABLE)
def test_only_dense_tensors_in_memory_have_values(kind):
    assert has_values(ROWS)
    assert has_values(nn.Parameter(ROWS))
    assert not has_values(ODD[kind]())


def test_the_values_that_a_sparse_tensor_stores_can_be_had():
    values = stored_values(torch.eye(3).to_sparse())
    assert values is not None
    assert values.tolist() == [1.0, 1.0, 1.0]
    assert stored_values(torch.eye(3).to_sparse_csr()) is None


def test_a_nested_tensor_has_a_number_of_parts():
    assert shape_of(nested(torch.strided)) == (3,)
    assert shape_of(nested(torch.jagged)) == (3,)
    assert shape_of(ROWS) == (16, 6)
