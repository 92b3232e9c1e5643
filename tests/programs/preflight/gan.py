"""A generative adversarial network on points of a ring: two models, two optimizers in turn."""

import torch
from torch import nn

torch.manual_seed(0)


def network(inputs, outputs):
    hidden = [nn.Linear(inputs, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2)]
    return nn.Sequential(*hidden, nn.Linear(32, outputs))


generator, critic = network(4, 2), network(2, 1)
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
for _ in range(120):
    angle = torch.rand(64) * 6.2832
    real = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(64, 2)
    made = generator(torch.randn(64, 4))
    critic_optimizer.zero_grad()
    right, wrong = torch.ones(64, 1), torch.zeros(64, 1)
    critic_loss = criterion(critic(real), right) + criterion(critic(made.detach()), wrong)
    critic_loss.backward()
    critic_optimizer.step()
    generator_optimizer.zero_grad()
    generator_loss = criterion(critic(made), right)
    generator_loss.backward()
    generator_optimizer.step()
print(f"critic {critic_loss.item():.3f}, generator {generator_loss.item():.3f}")
