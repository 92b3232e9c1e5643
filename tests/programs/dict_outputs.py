"""Keyword inputs in a dictionary and an output object that carries the loss, as in large model libraries."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from fingerprint import fingerprint
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Output:
    loss: torch.Tensor | None
    logits: torch.Tensor


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.EmbeddingBag(50, 24, mode="mean")
        self.head = nn.Linear(24, 4)

    def forward(
        self, *, input_ids: torch.Tensor, scale: dict[str, float], labels: torch.Tensor | None = None
    ) -> Output:
        logits = self.head(self.embed(input_ids)) * scale["logits"]
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return Output(loss, logits)


class Topics(Dataset[dict[str, torch.Tensor]]):
    def __init__(self, count: int) -> None:
        self.labels = torch.randint(4, (count,))
        common = torch.randint(0, 50, (count, 10))
        telling = self.labels[:, None] * 12 + torch.randint(0, 12, (count, 10))
        self.ids = torch.where(torch.rand(count, 10) < 0.5, common, telling)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.ids[index], "labels": self.labels[index]}


torch.manual_seed(27)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(Topics(1200), batch_size=40, shuffle=True)
losses = []
for _epoch in range(3):
    for batch in loader:
        output = model(**batch, scale={"logits": 1.5})
        output.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(output.loss.item())

fingerprint(model, optimizer, losses=losses)
