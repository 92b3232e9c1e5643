"""Models that use their input, and models that do not."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, critic, digits, judged, tried
from torch import Tensor, nn

from clew.checks.exp.input_ignored import InputIgnored as Check
from clew.labs.experiments.network.swapped_inputs import SwappedInputs
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of


class Net(nn.Module):
    def __init__(self, scale: float = 1.0, zeros: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.scale, self.zeros = scale, zeros
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(dropout), nn.Linear(64, 10)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = torch.zeros_like(x) if self.zeros else x * self.scale
        scores: Tensor = self.layers(x)
        return scores


def program(model: nn.Module, rate: float = 1e-3, size: int = 32, **data: Tensor) -> Subject:
    x, y = digits()
    x, y = data.get("x", x), data.get("y", y)
    pairs = [(x[i : i + size], y[i : i + size]) for i in range(0, 8 * size, size)]
    return subject_of(model, F.cross_entropy, pairs, torch.optim.Adam(model.parameters(), rate))


def net(**options: float) -> Net:
    torch.manual_seed(0)
    return Net(**options)  # type: ignore[arg-type]


def test_a_model_that_puts_zeros_in_place_of_its_input_is_certain() -> None:
    (finding,) = judged(Check(), tried(SwappedInputs(), program(net(zeros=True))))
    assert (finding.severity.value, finding.confidence) == ("error", "certain")
    assert "does not depend on its input" in finding.message


def test_an_input_divided_once_too_often_is_found_by_the_loss() -> None:
    (finding,) = judged(Check(), tried(SwappedInputs(), program(net(scale=1 / 255 / 255))))
    assert "hardly uses its input" in finding.message


def test_a_step_that_feeds_noise_is_certain() -> None:
    model = net()

    def step(batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(model(torch.randn_like(batch[0])), batch[1])

    subject = program(model)
    subject.step = lambda batch: step(batch.values["batch"])
    (finding,) = judged(Check(), tried(SwappedInputs(), subject))
    assert "the same for any input" in finding.message


def test_samples_that_all_look_the_same_are_found() -> None:
    x, _ = digits()
    (finding,) = judged(Check(), tried(SwappedInputs(), program(net(), x=torch.zeros_like(x))))
    assert "same input" in finding.message


@pytest.mark.parametrize("options", [{}, {"dropout": 0.5}, {"scale": 0.1}])
def test_a_model_that_learns_passes(options: dict[str, float]) -> None:
    result = tried(SwappedInputs(), program(net(**options)))
    assert judged(Check(), result) == []
    assert result.data.tries[-1].used


def test_a_score_of_the_whole_batch_looks_at_its_input_in_whatever_order() -> None:
    result = tried(SwappedInputs(), critic())
    assert all(attempt.given > 0.01 for attempt in result.data.tries)
    assert judged(Check(), result) == []


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_programs_of_all_kinds_pass(name: str) -> None:
    result = tried(SwappedInputs(), HEALTHY[name]())
    assert judged(Check(), result) == []
    assert result.data.tries[-1].used or name == "vae"  # its code is noisy at first


def test_a_slow_optimizer_is_not_taken_for_a_model_that_does_not_look() -> None:
    result = tried(SwappedInputs(), program(net(), rate=1e-7))
    assert [t.used for t in result.data.tries] == [False, True]
    assert judged(Check(), result) == []


def test_an_autoencoder_whose_input_is_its_target_passes() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 64))
    x = digits()[0].flatten(1)
    subject = subject_of(
        model,
        None,
        [(x[i : i + 32],) for i in range(0, 256, 32)],
        torch.optim.Adam(model.parameters(), 3e-3),
        step=lambda batch: F.mse_loss(model(batch[0]), batch[0]),
    )
    assert judged(Check(), tried(SwappedInputs(), subject)) == []


def test_a_sequence_model_that_is_given_its_targets_too_passes() -> None:
    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.out = nn.Embedding(20, 32), nn.Linear(32, 20)

        def forward(self, words: Tensor) -> Tensor:
            scores = self.out(self.words(words[:, :-1]))
            return F.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())

    torch.manual_seed(0)
    model = Language()
    start = torch.randint(0, 20, (256, 1))
    words = (start + torch.arange(12) * 3) % 20
    data = [(words[i : i + 32],) for i in range(0, 256, 32)]
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    subject = subject_of(model, None, data, optimizer, step=lambda batch: model(batch[0]))
    assert judged(Check(), tried(SwappedInputs(), subject)) == []


def test_one_target_for_all_can_not_be_judged() -> None:
    with pytest.raises(CannotJudge, match="same target"):
        tried(SwappedInputs(), program(net(), y=torch.zeros(1797, dtype=torch.long)))


def test_a_handful_of_samples_can_not_be_judged() -> None:
    x, y = digits()
    subject = subject_of(net(), F.cross_entropy, (x[:4], y[:4]), torch.optim.Adam(net().parameters()))
    with pytest.raises(CannotJudge, match="only 4 samples"):
        tried(SwappedInputs(), subject)


def test_the_same_answer_twice_and_nothing_left_behind() -> None:
    model = net(dropout=0.2)
    subject = program(model)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    state = torch.get_rng_state()
    first = tried(SwappedInputs(), subject).data
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert tried(SwappedInputs(), subject).data == first
