"""A curve fitted with LBFGS: the loss is computed in a closure, on all data at once."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-2, 2, 128).unsqueeze(1)
y = torch.sin(2 * x) + 0.1 * torch.randn_like(x)
model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")
for _ in range(25):

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    loss = optimizer.step(closure)
print(f"loss {loss.item():.4f}")
