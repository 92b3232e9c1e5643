"""`clew data` on real scripts in real processes: what it prints and writes; training goes on unchanged."""

import json
from pathlib import Path

import pytest
from program_process import Ended, run_warm

LOADERS = """
import random
import sys
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)


class Noisy:
    def __call__(self, x):
        return x + 0.01 * torch.randn(x.shape) + 0.01 * random.random() + 0.01 * np.random.rand()


class Squares(Dataset):
    classes = ("dark", "bright")

    def __init__(self, count):
        self.count, self.transform, self.seen = count, Noisy(), []
        self.generator = torch.Generator().manual_seed(5)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.seen.append(index)
        jitter = torch.rand(1, generator=self.generator)
        return self.transform(torch.full((1, 8, 8), float(index % 2)) + jitter), index % 2


def main():
    train_loader = DataLoader(Squares(48), batch_size=8, shuffle=True, num_workers=int(sys.argv[1]))
    val_loader = DataLoader(Squares(16), batch_size=8)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model((x - 0.5) / 0.5), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        right = sum(int((model(x).argmax(1) == y).sum()) for x, y in val_loader)
    print(right, [p.double().sum().item().hex() for p in model.parameters()])
    print(torch.rand(1).item(), random.random(), np.random.rand(), train_loader.dataset.seen)


if __name__ == "__main__":
    main()
"""
NO_LOADER = """
import torch
from torch import nn
torch.manual_seed(0)
text = "the quick brown fox jumps over the lazy dog " * 8
itos = sorted(set(text))
data = torch.tensor([itos.index(c) for c in text])
model = nn.Sequential(nn.Embedding(len(itos), 8), nn.Linear(8, len(itos)))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(8):
    starts = torch.randint(len(data) - 17, (4,)).tolist()
    x = torch.stack([data[n : n + 16] for n in starts])
    y = torch.stack([data[n + 1 : n + 17] for n in starts])
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
QUICK = ("--no-measure", "--no-judge")


def data(folder: Path, *options: str | Path, text: str = LOADERS, args: tuple[str, ...] = ("0",)) -> Ended:
    script = folder / "train.py"
    script.write_text(text)
    return run_warm(["-m", "clew", "data", "--dir", folder / "runs", *options, script, *args], COLUMNS="100")


def run_folder(folder: Path) -> Path:
    return next((folder / "runs").iterdir())


def test_samples_stand_beside_what_the_model_gets_and_the_script_ends(tmp_path):
    result = data(tmp_path, *QUICK, "--json", tmp_path / "out.json", "--html", tmp_path / "out.html")
    assert result.code == 0
    assert result.out == ""  # it did not train to its end
    assert "Squares → Noisy → default_collate" in result.err
    assert "between loader and model, values" in result.err
    assert "reading is random" in result.err
    found = json.loads((tmp_path / "out.json").read_text())
    train, val = found["loaders"]
    assert (train["name"], train["role"], train["length"]) == ("train_loader", "train", 48)
    assert (val["name"], val["role"]) == ("val_loader", "eval")
    assert [s["index"] for s in train["samples"]] == [r["index"] for r in train["rows"]]
    assert train["rows_of"] == "model"
    assert train["inputs"][0]["shape"] == [8, 1, 8, 8]
    assert (tmp_path / "out.html").read_text().count("data:image/png;base64,") >= 16


def test_the_browser_view_finds_samples_and_batches_in_the_run(tmp_path):
    data(tmp_path, *QUICK)
    folder = run_folder(tmp_path) / "data"
    samples = json.loads((folder / "samples.json").read_text())["samples"]
    batches = json.loads((folder / "batches.json").read_text())["batches"]
    pairs = [(s["id"], s["source"]) for s in samples if s["loader"] == "train_loader"]
    assert pairs[0][0] == pairs[1][0]
    assert (pairs[0][1], pairs[1][1]) == ("dataset", "model")
    assert samples[0]["image"].startswith("data:image/png;base64,")
    assert samples[0]["label"] in ("0 (dark)", "1 (bright)")
    assert [b["source"] for b in batches] == ["loader", "model", "loader"]
    assert batches[0]["targets"][0]["shape"] == [8]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_with_continue_training_is_bit_identical_to_one_without(tmp_path, workers):
    script = tmp_path / "plain.py"
    script.write_text(LOADERS)
    plain = run_warm([script, workers])
    watched = data(tmp_path, "--continue", "--time-limit", "6", args=(workers,))
    assert watched.out == plain.out
    assert watched.code == 0
    assert "loader alone" in watched.err
    assert "samples checked in" in watched.err


def test_one_sample_goes_through_every_stage(tmp_path):
    result = data(tmp_path, "--sample", "5")
    assert "sample 5 of train_loader, stage by stage" in result.err
    assert "Noisy · transform · random" in result.err
    assert "Squares.__getitem__ · read" in result.err


def test_bare_the_script_trains_without_workers_on_the_same_order(tmp_path):
    result = data(tmp_path, "--bare", args=("2",))
    assert result.code == 0
    assert "without the 2 workers of the script" in result.err
    assert len(json.loads(result.out.splitlines()[1].split(" ", 3)[3])) == 96  # read in this process


def test_without_a_loader_the_models_inputs_are_shown_in_words(tmp_path):
    result = data(tmp_path, *QUICK, text=NO_LOADER, args=())
    assert "no DataLoader was found" in result.err
    assert any(word in result.err for word in ("quick", "brown", "jumps"))


def test_a_script_that_only_makes_a_loader_is_looked_at_when_it_ends(tmp_path):
    text = LOADERS.replace("for epoch in range(2)", "for epoch in range(0)").replace(
        "\n    with ", "\n    if 0: pass\n    with "
    )
    result = data(tmp_path, *QUICK, text=text)
    assert "val_loader" in result.err
    assert result.code == 0


def test_a_script_without_data_is_said_to_have_none(tmp_path):
    result = data(tmp_path, text="import torch\n", args=())
    assert result.code == 2
    assert "no data was found" in result.err


def test_a_loader_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    result = data(tmp_path, *QUICK, "--loader", "trian")
    assert result.code == 2
    assert "loader 'trian' is unknown; available: 1 train_loader, 2 val_loader" in result.err


def test_options_that_contradict_each_other_are_refused(tmp_path):
    result = data(tmp_path, "--bare", "--sweep")
    assert result.code == 2
    assert result.err.count("\n") == 1
