"""Ordinary networks with their data, as an experiment gets them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes, load_digits, load_wine
from torch import Tensor, nn

from clew.checks.base import Check
from clew.checks.run_view import RunView
from clew.checks.runner import ask
from clew.labs.experiments.base import Experiment, Result
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Finding


def batches(*tensors: Tensor, size: int = 32, most: int = 8) -> list[tuple[Tensor, ...]]:
    """Shuffled batches, the same each time."""
    order = torch.randperm(len(tensors[0]), generator=torch.Generator().manual_seed(7))
    parts = [index for index in order.split(size) if len(index) == size][:most]
    return [tuple(t[index] for t in tensors) for index in parts]


def tried(experiment: Experiment, subject: Subject, seconds: float = 600.0) -> Result:
    clock = Clock(seconds)
    return experiment.run(subject, clock)


@dataclass(frozen=True)
class Fact:
    kind: str
    data: Mapping[str, Any]
    step: int = 0


class Recorded:
    """A run of which only facts are known."""

    events: tuple[Fact, ...] = ()
    last_step = -1
    end = None

    def __init__(self, *facts: Fact) -> None:
        self.facts = facts

    def signal_names(self) -> list[str]:
        return []

    def series(self, name: str) -> Iterator[Any]:
        return iter(())


def judged(check: Check, result: Result, *facts: Fact) -> list[Finding]:
    """What the check says of what the experiment found, after a way through JSON."""
    fact = Fact(f"experiment.{check.name}", json.loads(json.dumps(result.fact().to_json())))
    found, reason = ask(check, RunView(Recorded(fact, *facts)))
    assert reason is None or "the check failed" not in reason, reason
    return found


def digits() -> tuple[Tensor, Tensor]:
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1)
    return (images - images.mean()) / images.std(), torch.tensor(data.target)


def wine() -> tuple[Tensor, Tensor]:
    data = load_wine()
    features = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
    return features, torch.tensor(data.target)


def diabetes() -> tuple[Tensor, Tensor]:
    data = load_diabetes()
    features = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
    target = (data.target - data.target.mean()) / data.target.std()
    return features, torch.tensor(target, dtype=torch.float32).unsqueeze(1)


def mlp(inputs: int, outputs: int, width: int = 32) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)
    )


def cnn() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(32 * 4 * 4, 10),
    )


# -- healthy programs --


def cnn_classifier(lr: float = 1e-3) -> Subject:
    torch.manual_seed(0)
    model = cnn()
    return subject_of(model, F.cross_entropy, batches(*digits()), torch.optim.Adam(model.parameters(), lr=lr))


def wine_classifier(lr: float = 0.05) -> Subject:
    torch.manual_seed(0)
    model = mlp(13, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    return subject_of(model, F.cross_entropy, batches(*wine(), size=16), optimizer)


def normalised_regression(lr: float = 0.02) -> Subject:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(10, 32, bias=False),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, 16),
        nn.ReLU(),
        nn.Linear(16, 1),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    return subject_of(model, F.mse_loss, batches(*diabetes()), optimizer)


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, 48)
        self.out = nn.Linear(48, 4)

    def forward(self, words: Tensor) -> Tensor:
        return self.out(self.lstm(self.embedding(words))[0])


def tagger() -> Subject:
    """Words of a sentence along the first dimension, some of them padding."""
    torch.manual_seed(0)
    made = []
    for _ in range(8):
        words = torch.randint(1, 40, (10, 16))
        before = torch.cat([torch.zeros(1, 16, dtype=torch.long), words[:-1]])
        tags = (words % 2) * 2 + before % 2
        tags[7:, ::3] = -100
        made.append((words, tags))
    model = Tagger()

    def loss(scores: Tensor, tags: Tensor) -> Tensor:
        return F.cross_entropy(scores.reshape(-1, 4), tags.reshape(-1), ignore_index=-100)

    return subject_of(model, loss, made, torch.optim.Adam(model.parameters(), lr=5e-3))


class Vae(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(64, 8), nn.Linear(64, 8)
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        return self.decoder(mean + torch.randn_like(mean) * (0.5 * log_variance).exp()), mean, log_variance


def vae() -> Subject:
    torch.manual_seed(0)
    model = Vae()
    pixels = torch.tensor(load_digits().data, dtype=torch.float32) / 16

    def step(x: Any) -> Tensor:
        reconstruction, mean, log_variance = model(x[0])
        likelihood = F.binary_cross_entropy_with_logits(reconstruction, x[0], reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        return (likelihood + divergence) / len(x[0])

    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return subject_of(model, None, batches(pixels, size=64), optimizer, step=step)


class Matcher(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.queries, self.items = mlp(20, 16, 64), mlp(30, 16, 64)

    def forward(self, query: Tensor, item: Tensor) -> Tensor:
        return F.normalize(self.queries(query), dim=-1) @ F.normalize(self.items(item), dim=-1).T * 5


def two_towers() -> Subject:
    torch.manual_seed(0)
    meaning = torch.randn(512, 6)
    queries = torch.tanh(meaning @ torch.randn(6, 20)) + 0.1 * torch.randn(512, 20)
    items = torch.tanh(meaning @ torch.randn(6, 30)) + 0.1 * torch.randn(512, 30)
    model = Matcher()

    def step(pair: Any) -> Tensor:
        scores = model(*pair)
        own = torch.arange(len(scores))
        return (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2

    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return subject_of(model, None, batches(queries, items), optimizer, step=step)


class Gpt(nn.Module):
    def __init__(self, letters: int, width: int = 48) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(letters, width), nn.Embedding(32, width)
        self.block = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, batch_first=True, norm_first=True)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.block(x, src_mask=mask, is_causal=True)))


def gpt() -> Subject:
    torch.manual_seed(0)
    text = "the thread leads back out of the labyrinth and the hero follows the thread home again. " * 9
    letters = sorted(set(text))
    data = torch.tensor([letters.index(c) for c in text])
    windows = data.unfold(0, 33, 3)
    model = Gpt(len(letters))

    def loss(scores: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(scores.transpose(1, 2), targets)

    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
    made = batches(windows[:, :-1], windows[:, 1:], size=16)
    return subject_of(model, loss, made, optimizer)


def segmentation() -> Subject:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 1, 1),
    )  # fmt: skip
    masks = (F.interpolate(torch.randn(64, 1, 4, 4), scale_factor=4, mode="bilinear") > 0.4).float()
    images = masks * 1.5 + 0.5 * torch.randn_like(masks)
    made = batches(images, masks, size=8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    return subject_of(model, F.binary_cross_entropy_with_logits, made, optimizer)


class Distance(nn.Module):
    """A critic: how far apart two groups of points are. Its output does not go by sample."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, points: Tensor) -> Tensor:
        return self.critic(points[:, 0]).mean() - self.critic(points[:, 1]).mean()


def critic() -> Subject:
    """Its loss has no lowest value."""
    torch.manual_seed(0)
    model = Distance()
    points = torch.randn(256, 2, 2) + torch.tensor([[0.5], [-0.5]])
    pairs = batches(points, torch.arange(256.0), size=32)
    return subject_of(model, lambda score, _: -score, pairs, torch.optim.RMSprop(model.parameters(), lr=1e-3))


def annotators(by_hand: bool = False) -> Subject:
    """The targets are shares of votes: rows that add up to one."""
    torch.manual_seed(0)
    model, features = mlp(20, 3), torch.randn(256, 20)
    votes = torch.softmax(features @ torch.randn(20, 3) * 0.5, 1)

    def divergence(scores: Tensor, votes: Tensor) -> Tensor:
        return (torch.xlogy(votes, votes) - votes * scores.log_softmax(1)).sum(1).mean()

    def overlap(scores: Tensor, votes: Tensor) -> Tensor:
        shares = scores.softmax(1)
        return 1 - 2 * (shares * votes).sum() / (shares + votes).sum()

    wanted = F.one_hot(votes.argmax(1), 3).float() if by_hand else votes
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return subject_of(model, overlap if by_hand else divergence, batches(features, wanted), optimizer)


HEALTHY: dict[str, Callable[[], Subject]] = {
    "cnn": cnn_classifier,
    "wine": wine_classifier,
    "regression": normalised_regression,
    "tagger": tagger,
    "vae": vae,
    "two_towers": two_towers,
    "gpt": gpt,
    "segmentation": segmentation,
}
