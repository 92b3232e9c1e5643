"""A variational autoencoder of digits with a custom loss."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.mean = nn.Linear(64, 8)
        self.log_variance = nn.Linear(64, 8)
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        noise = torch.randn_like(mean)
        return self.decoder(mean + noise * torch.exp(0.5 * log_variance)), mean, log_variance


def vae_loss(reconstruction, x, mean, log_variance):
    likelihood = F.binary_cross_entropy_with_logits(reconstruction, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return (likelihood + divergence) / len(x)


torch.manual_seed(0)
pixels = torch.tensor(load_digits().data, dtype=torch.float32) / 16
loader = DataLoader(TensorDataset(pixels), batch_size=64, shuffle=True)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
model.train()
for epoch in range(3):
    total = 0.0
    for (x,) in loader:
        optimizer.zero_grad()
        reconstruction, mean, log_variance = model(x)
        loss = vae_loss(reconstruction, x, mean, log_variance)
        loss.backward()
        total += loss.item()
        optimizer.step()
    print(f"epoch {epoch}: {total / len(loader):.2f}")
