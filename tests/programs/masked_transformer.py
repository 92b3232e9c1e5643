"""A causal language model with padding: both masks carry -inf, and they are meant to."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

LENGTH, WORDS, PAD = 12, 16, 0


class TinyGPT(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=PAD)
        self.places = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, dim_feedforward=64, dropout=0.1, batch_first=True, norm_first=True, activation="gelu"
        )
        self.blocks = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, WORDS)
        self.register_buffer("causal", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.words(tokens) + self.places(torch.arange(LENGTH))
        padding = torch.zeros(tokens.shape).masked_fill(tokens == PAD, float("-inf"))
        hidden = self.blocks(hidden, mask=self.causal, src_key_padding_mask=padding)
        return self.head(self.norm(hidden))


def counting(count: int) -> torch.Tensor:
    """Sequences that count upwards by one or two, ended by padding."""
    start = torch.randint(1, WORDS, (count, 1))
    tokens = (start + torch.arange(LENGTH + 1) * torch.randint(1, 3, (count, 1))) % (WORDS - 1) + 1
    ends = torch.randint(6, LENGTH + 2, (count, 1))
    return tokens.masked_fill(torch.arange(LENGTH + 1) >= ends, PAD)


torch.manual_seed(17)
model = TinyGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
losses = []
for _step in range(80):
    tokens = counting(32)
    scores = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
