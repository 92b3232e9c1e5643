"""Topics of short texts from a bag of words; few samples."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
topic = torch.randint(0, 3, (300,))
words = torch.where(torch.rand(300, 10) < 0.7, topic.unsqueeze(1) * 20 + torch.randint(0, 20, (300, 10)),
                    torch.randint(0, 60, (300, 10)))  # fmt: skip
loader = DataLoader(TensorDataset(words, topic), batch_size=25, shuffle=True)
model = nn.Sequential(nn.EmbeddingBag(60, 16, mode="mean"), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
for _ in range(6):
    for texts, topics in loader:
        optimizer.zero_grad()
        loss = criterion(model(texts), topics)
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
