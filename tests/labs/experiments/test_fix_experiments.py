"""Fixes tried on a snapshot: those of real faults help, those of faults that are not there do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from clew.labs.experiments.fix_experiments import helped, prove
from clew.labs.experiments.fixes import REPAIRS
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Proof

SIZE = 32


def digits() -> tuple[Tensor, Tensor]:
    x, y = load_digits(return_X_y=True)
    return torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)


def network(*last: nn.Module, outputs: int = 10) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs), *last)


def program(
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    loss: Callable[..., Tensor] = F.cross_entropy,
    change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = lambda x, y: (x, y),
) -> Subject:
    x, y = change(*digits())
    data = [(x[i : i + SIZE], y[i : i + SIZE]) for i in range(0, 16 * SIZE, SIZE)]
    return subject_of(model, loss, data, optimizer or torch.optim.Adam(model.parameters(), 1e-3))


def proof_of(check: str, subject: Subject) -> Proof:
    clock = Clock(600)
    return prove(check, [check], subject, clock)


def adam(model: nn.Module, lr: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr)


def sgd(model: nn.Module, lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr)


def half(model: nn.Sequential) -> torch.optim.Optimizer:
    return torch.optim.Adam(model[2].parameters(), 1e-2)


def in_order(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x[y.argsort()], y.sort().values


def with_holes(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    x = x.clone()
    x[5::SIZE, 3] = float("nan")
    return x, y


def in_eval_mode() -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(8):
        layers += [nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Sigmoid()]
    return nn.Sequential(*layers, nn.Linear(64, 10)).eval()


FAULTS: dict[str, Callable[[], Subject]] = {
    "missing-zero-grad": lambda: program(m := network(), sgd(m, 0.1)),
    "accumulation-lost": lambda: program(m := network(), sgd(m, 0.3)),
    "accumulation-unscaled": lambda: program(m := network(), sgd(m, 0.5)),
    "learning-rate-too-high": lambda: program(m := network(), adam(m, 1.0)),
    "learning-rate-too-low": lambda: program(m := network(), adam(m, 1e-6)),
    "over-regularised": lambda: program(network(nn.Dropout(0.9))),
    "eval-mode-in-training": lambda: program(m := in_eval_mode(), adam(m, 1e-2)),
    "parameter-not-in-optimizer": lambda: program(m := network(nn.ReLU(), nn.Linear(10, 10)), half(m)),
    "softmax-before-cross-entropy": lambda: program(network(nn.Softmax(1))),
    "raw-scores-into-nll": lambda: program(network(), loss=F.nll_loss),
    "silent-broadcast": lambda: program(
        network(outputs=1), loss=F.mse_loss, change=lambda x, y: (x, y.float())
    ),
    "sigmoid-before-bce-with-logits": lambda: program(
        m := network(nn.Sigmoid(), outputs=1),
        adam(m, 1e-2),
        loss=F.binary_cross_entropy_with_logits,
        change=lambda x, y: (x, (y == 0).float()[:, None]),
    ),
    "unnormalised-input": lambda: program(network(), change=lambda x, y: (x * 16_000, y)),
    "unshuffled-data": lambda: program(network(), change=in_order),
    "single-label-batches": lambda: program(network(), change=in_order),
    "nonfinite-input": lambda: program(network(), change=with_holes),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("check", FAULTS)
def test_the_fix_of_a_planted_fault_helps(check: str) -> None:
    proof = proof_of(check, FAULTS[check]())
    assert proof.helped, proof
    assert proof.after < proof.before
    assert proof.seeds == 3


@pytest.mark.parametrize("check", ["learning-rate-too-high", "softmax-before-cross-entropy"])
def test_the_fix_of_a_fault_that_is_not_there_does_not_help(check: str) -> None:
    model = network()
    proof = proof_of(check, program(model, adam(model, 1e-2)))
    assert proof.helped is False, proof


def test_a_fix_that_is_for_more_than_the_training_loss_is_not_refuted_by_it() -> None:
    model = network(nn.Dropout(0.3)).eval()
    assert proof_of("eval-mode-in-training", program(model, adam(model, 1e-2))).helped is None


def test_a_trial_leaves_weights_gradients_modes_and_random_numbers_alone() -> None:
    model = network(nn.Dropout(0.5), nn.BatchNorm1d(10))
    optimizer = adam(model, 1e-3)
    subject = program(model, optimizer)
    model[1].eval()
    F.cross_entropy(
        model(subject.batches[0].values["batch"][0]), subject.batches[0].values["batch"][1]
    ).backward()
    optimizer.step()
    before = state(model, optimizer)
    proof_of("parameter-not-in-optimizer", subject)
    proof_of("unnormalised-input", subject)
    after = state(model, optimizer)
    assert all(torch.equal(a, b) for a, b in zip(before[0], after[0], strict=True))
    assert before[1:] == after[1:]


def state(model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[Any, ...]:
    tensors = [t.clone() for t in model.state_dict().values()] + [torch.get_rng_state()]
    tensors += [p.grad.clone() for p in model.parameters() if p.grad is not None]
    moments = optimizer.state_dict()["state"]
    tensors += [v.clone() for entry in moments.values() for v in entry.values()]
    kept = [(id(p), id(p.grad), p._version, p.requires_grad) for p in model.parameters()]
    return tensors, kept, [m.training for m in model.modules()], len(optimizer.param_groups)


def test_a_fix_that_nobody_but_the_user_can_make_is_refused() -> None:
    with pytest.raises(CannotJudge, match="can't be tested"):
        proof_of("dead-units", program(network()))


def test_without_an_optimizer_no_fix_is_tried() -> None:
    subject = program(network())
    subject.optimizers = []
    with pytest.raises(CannotJudge, match="no optimizer"):
        proof_of("learning-rate-too-high", subject)


def test_without_time_a_trial_says_so() -> None:
    clock = Clock(1.0, now=iter(range(10_000)).__next__)
    with pytest.raises(CannotJudge, match="time limit reached"):
        prove("learning-rate-too-high", [], program(network()), clock)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([2.0, 2.1, 2.2], [0.4, 0.5, 0.6], True),
        ([2.0, 2.1, 2.2], [1.0, 1.9, 2.05], None),  # the seeds differ as much
        ([1.00, 1.00, 1.00], [0.97, 0.97, 0.97], None),  # too little to be sure
        ([1.0, 1.0, 1.0], [1.2, 1.2, 1.2], False),
        ([3.0, 3.0, 3.0], [3.1, 3.1, 3.1], None),  # nothing trains in this time
        ([float("inf")] * 3, [0.5, 0.5, 0.5], True),
        ([float("inf")] * 3, [float("inf")] * 3, None),
    ],
)
def test_what_counts_as_help(before: list[float], after: list[float], expected: bool | None) -> None:
    assert helped(3.0, before, after) is expected


def test_every_repair_names_a_check_of_the_catalogue() -> None:
    from clew.checks.catalog import CHECKS

    assert set(REPAIRS) <= {check.name for check in CHECKS}
