"""A model with several inputs, given as a dictionary: numbers, a category and words with their mask."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Listings(Dataset):
    """The price follows the numbers, the district and how many good words are in the text."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(3)
        self.numbers = torch.randn(count, 5, generator=generator)
        self.district = torch.randint(0, 8, (count,), generator=generator)
        self.words = torch.randint(1, 30, (count, 12), generator=generator)
        self.mask = torch.arange(12)[None] < torch.randint(4, 13, (count, 1), generator=generator)
        good = ((self.words < 10) & self.mask).float().sum(1) / self.mask.sum(1)
        price = self.numbers @ torch.tensor([1.0, -0.5, 0.3, 0.0, 0.8]) + self.district / 4 + 3 * good
        self.price = (price - price.mean()) / price.std()

    def __len__(self):
        return len(self.price)

    def __getitem__(self, index):
        return {
            "numbers": self.numbers[index],
            "district": self.district[index],
            "words": self.words[index],
            "mask": self.mask[index],
            "price": self.price[index],
        }


class Pricer(nn.Module):
    def __init__(self):
        super().__init__()
        self.district = nn.Embedding(8, 8)
        self.words = nn.Embedding(30, 16)
        self.layers = nn.Sequential(nn.Linear(5 + 8 + 16, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, numbers, district, words, mask):
        weights = mask.float() / mask.float().sum(1, keepdim=True)
        text = (self.words(words) * weights.unsqueeze(-1)).sum(1)
        return self.layers(torch.cat([numbers, self.district(district), text], 1)).squeeze(1)


class Trainer:
    def __init__(self, model, loader, device):
        self.model, self.loader, self.device = model.to(device), loader, device
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        self.loss_fn = nn.SmoothL1Loss()

    def train_step(self, batch):
        batch = {name: value.to(self.device) for name, value in batch.items()}
        target = batch.pop("price")
        prediction = self.model(**batch)
        loss = self.loss_fn(prediction, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, epochs):
        for _ in range(epochs):
            losses = [self.train_step(batch) for batch in self.loader]
            print(f"loss {sum(losses) / len(losses):.3f}")


torch.manual_seed(0)
Trainer(Pricer(), DataLoader(Listings(768), batch_size=32, shuffle=True), torch.device("cpu")).fit(3)
