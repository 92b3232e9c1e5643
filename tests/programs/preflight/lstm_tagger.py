"""An LSTM that tags every word of a sentence; sentences are padded, and time is the first dimension."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

WORDS, TAGS, PAD = 40, 4, 0


class Sentences(Dataset):
    """A word's tag depends on the word and on the one before it."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(1)
        self.sentences = []
        for _ in range(count):
            length = int(torch.randint(5, 12, (), generator=generator))
            words = torch.randint(1, WORDS, (length,), generator=generator)
            before = torch.cat([torch.zeros(1, dtype=torch.long), words[:-1]])
            self.sentences.append((words, (words % 2) * 2 + before % 2))

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, index):
        return self.sentences[index]


def collate(items):
    words, tags = zip(*items, strict=True)
    return pad_sequence(words, padding_value=PAD), pad_sequence(tags, padding_value=-100)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 32, padding_idx=PAD)
        self.lstm = nn.LSTM(32, 48)
        self.out = nn.Linear(48, TAGS)

    def forward(self, words):
        hidden, _ = self.lstm(self.embedding(words))
        return self.out(hidden)


torch.manual_seed(0)
loader = DataLoader(Sentences(640), batch_size=16, shuffle=True, collate_fn=collate)
tagger = Tagger()
optimizer = torch.optim.Adam(tagger.parameters(), lr=5e-3)
for _ in range(3):
    for words, tags in loader:
        scores = tagger(words)
        loss = F.cross_entropy(scores.reshape(-1, TAGS), tags.reshape(-1), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(tagger.parameters(), 5.0)
        optimizer.step()
print(f"loss {loss.item():.3f}")
