from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from clew_command import clew
from safetensors.torch import save_file

from clew.cli.verbs import interpret

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, hidden=8, classes=3):
        super().__init__()
        self.first = nn.Linear(4, hidden)
        self.last = nn.Linear(8, classes)

    def forward(self, x, scale=None):
        x = self.first(x).relu()
        return self.last(x) if scale is None else self.last(x) * scale

class Tokens(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.table = nn.Embedding(size, 6)

    def forward(self, ids):
        return self.table(ids)

def build(hidden=8):
    return Net(hidden)

model = Net()
number = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = interpret(["show", *arguments])
    told = capsys.readouterr()
    assert (code, told.err) == (0, "")
    return told.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = interpret(["show", *arguments])
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert len(told.err.splitlines()) == 1
    return told.err


@pytest.mark.parametrize("name", ["Net", "build", "build()", "build(hidden=8)", "model"])
def test_a_model_is_a_class_a_function_a_call_or_a_variable(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shown(capsys, f"net.py:{name}", "--input", "5,4")
    assert out.startswith("Net  5×4 float32 → 5×3")
    assert "parameters  67 (268 B)" in out


def test_nothing_is_wider_than_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, "net.py:Net", "-i", "batch,4", "--stats")
    assert max(map(len, out.splitlines())) <= 80


def test_named_sizes_and_their_values(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, "net.py:Net", "-i", "5,time,4", "--dims", "batch=5,time=17")
    assert "batch × time × 4 float32 → batch × time × 3" in out
    assert "batch = 5, time = 17" in out


def test_a_dtype_and_a_keyword_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert "5×7 int32 → 5×7×6" in shown(capsys, "net.py:Tokens(20)", "-i", "ids=5,7:int32")
    out = shown(capsys, "net.py:Net", "-i", "5,4", "-i", "scale=1")
    assert "scale 1 float32" in out


def test_an_input_from_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(folder / "x.npy", np.zeros((6, 4), dtype=np.float32))
    save_file({"x": torch.zeros(7, 4)}, folder / "x.safetensors")
    assert "6×4 float32" in shown(capsys, "net.py:Net", "-i", "x.npy")
    assert "7×4 float32" in shown(capsys, "net.py:Net", "-i", "x=x.safetensors")


def test_json_has_the_rows_and_the_sums(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(shown(capsys, "net.py:Net", "-i", "5,4", "--json"))
    assert data["parameters"] == 67
    assert [row["path"] for row in data["rows"]] == ["", "first", "last"]


def test_a_fault_is_listed_beneath_the_table_and_in_json_unless_it_is_ignored(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "straight.py").write_text(
        "from torch import nn\n\nclass Straight(nn.Sequential):\n    def __init__(self):\n"
        "        super().__init__(nn.Linear(4, 8), nn.Linear(8, 4))\n"
    )
    model = ["straight.py:Straight", "--input", "3,4"]
    drawn = shown(capsys, *model)
    assert "no-nonlinearity  warning" in drawn
    assert "fix: add nn.ReLU() between them" in drawn
    found = json.loads(shown(capsys, *model, "--json"))
    assert [f["check"] for f in found["findings"]] == ["no-nonlinearity"]
    assert found["not_judged"] == []
    assert "no-nonlinearity" not in shown(capsys, *model, "--ignore", "no-nonlinearity")


def test_settings_of_the_project_leave_a_check_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "straight.py").write_text(
        "from torch import nn\n\ndef build():\n    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4))\n"
    )
    (folder / "pyproject.toml").write_text('[tool.clew]\nignore = ["no-nonlinearity"]\n')
    assert "no-nonlinearity" not in shown(capsys, "straight.py:build", "--input", "3,4")


def test_thresholds_of_the_project_hold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wild.py").write_text(
        "from torch import nn\n\ndef build():\n"
        "    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))\n"
        "    for layer in net[::2]:\n        nn.init.normal_(layer.weight, std=3)\n    return net\n"
    )
    model = ["wild.py:build", "--input", "3,64", "--stats"]
    assert "poor-initialisation  warning" in shown(capsys, *model)
    (folder / "pyproject.toml").write_text("[tool.clew.thresholds]\npoor-initialisation.large.gain = 1000\n")
    assert "poor-initialisation" not in shown(capsys, *model)


PRINTING = NET.replace(
    "        x = self.first(x).relu()", "        print('shape', x.shape)\n        x = self.first(x).relu()"
).replace("import torch\n", "import os, torch\nprint('imported')\nos.system('echo from a child')\n", 1)


@pytest.mark.parametrize("options", [["--json"], ["--graph", "-"], []])
def test_what_the_program_prints_is_kept_out_of_the_result(folder: Path, options: list[str]) -> None:
    (folder / "printing.py").write_text(PRINTING)
    done = clew(folder, "show", "printing.py:Net", "-i", "5,4", *options)
    assert done.returncode == 0
    for printed in ("imported", "from a child", "shape torch.Size"):
        assert printed in done.stderr
        assert printed not in done.stdout
    if options == ["--json"]:
        assert json.loads(done.stdout)["parameters"] == 67


def test_lines_are_the_users_or_none(folder: Path) -> None:
    """In a process of its own: here pytest would be what called."""
    rows = json.loads(clew(folder, "show", "net.py:Net", "-i", "5,4", "--json").stdout)["rows"]
    assert [(Path(row["file"]).name, row["line"]) for row in rows] == [
        ("net.py", 5),  # where its class is
        ("net.py", 12),
        ("net.py", 13),
    ]
    (folder / "chain.py").write_text(
        "from torch import nn\nchain = nn.Sequential(nn.Linear(4, 4), nn.ReLU())\n"
    )
    rows = json.loads(clew(folder, "show", "chain.py:chain", "-i", "5,4", "--json").stdout)["rows"]
    assert [row["file"] for row in rows] == [None, None, None]


def test_a_file_with_several_tensors_gives_keyword_inputs_where_the_names_fit(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_file({"x": torch.zeros(7, 4), "scale": torch.ones(3)}, folder / "both.safetensors")
    out = shown(capsys, "net.py:Net", "-i", "both.safetensors")
    assert "x 7×4 float32" in out
    assert "scale 3 float32" in out


def test_a_file_with_several_tensors_is_a_dict_where_the_names_do_not_fit(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_file({"a": torch.zeros(7, 4), "b": torch.ones(3)}, folder / "both.safetensors")
    (folder / "taking.py").write_text(
        "from torch import nn\nclass Net(nn.Module):\n"
        "    def forward(self, batch):\n        return batch['a']\n"
    )
    assert "input.a 7×4 float32, input.b 3 float32" in shown(capsys, "taking.py", "-i", "both.safetensors")


def test_several_inputs_have_the_names_of_the_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert "x 5×4 float32, scale 3 float32" in shown(capsys, "net.py:Net", "-i", "5,4", "-i", "3")


def test_the_header_stands_above_its_columns_at_any_depth(capsys: pytest.CaptureFixture[str]) -> None:
    _, header, row, *_ = shown(capsys, "net.py:Net", "-i", "5,4", "--depth", "0").splitlines()
    assert header.index("output") == row.index("5×3")


WIDE = """
from torch import nn

class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.an_encoder_of_images = nn.Sequential(
            nn.ConvTranspose2d(3, 8, 3, stride=2), nn.Conv2d(8, 8, 3, stride=2)
        )

    def forward(self, x):
        return self.an_encoder_of_images(x)
"""


def test_at_eighty_columns_long_shapes_wrap_and_no_column_is_lost(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "wide.py").write_text(WIDE)
    out = shown(capsys, "wide.py", "-i", "batch,3,height,width")
    table = out[: out.index("──")].splitlines()
    assert max(map(len, table)) <= 80
    for title in ("output", "parameters", "FLOPs", "kept"):
        assert title in table[1]
    start, end = table[1].index("output"), table[1].index("parameters")
    assert "".join(line[start:end].strip() for line in table[2:4]).startswith("batch×8×")


def test_a_column_that_has_to_go_is_told_with_how_to_see_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "wide.py").write_text(WIDE)
    monkeypatch.setenv("COLUMNS", "50")
    out = " ".join(shown(capsys, "wide.py", "-i", "batch,3,height,width").split())
    assert "no room for FLOPs, kept: use a wider terminal, or --json" in out


def test_a_model_is_built_without_memory_for_its_weights(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, "net.py:Tokens(10**10)", "-i", "5,7", "--meta")
    assert "60,000,000,000" in out


def test_a_graph_is_written_where_its_name_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for ending in ("svg", "html", "dot", "json"):
        assert interpret(["show", "net.py:Net", "-i", "5,4", "--graph", f"net.{ending}"]) == 0
        assert (folder / f"net.{ending}").stat().st_size > 100
    capsys.readouterr()
    assert "first  Linear" in shown(capsys, "net.py:Net", "-i", "5,4", "--graph", "-")
    assert "not '.png'" in refused(capsys, "net.py:Net", "-i", "5,4", "--graph", "net.png")
    assert "could not be written" in refused(capsys, "net.py:Net", "-i", "5,4", "--graph", "nowhere/net.svg")


def test_a_forward_that_fails_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    code = interpret(["show", "net.py:build(hidden=9)", "-i", "5,4"])
    told = capsys.readouterr()
    assert (code, told.out) == (1, "")
    assert "Linear(in_features=8) got 9: first before it outputs 9" in " ".join(told.err.split())
    assert "net.py:13" in told.err


def test_the_rest_is_shown_all_the_same_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    code = interpret(["show", "net.py:build(hidden=9)", "-i", "5,4", "--keep-going"])
    told = capsys.readouterr()
    assert code == 1
    assert "first  Linear  5×9" in told.out
    assert "shapes do not match" in told.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nett.py:Net"], "no such file: nett.py; did you mean net.py?"),
        (["net.py:Nett"], "has no 'Nett'; did you mean Net?"),
        (["net.py:number"], "number is a int, not a model"),
        (["net.py:Tokens"], "needs arguments: write it as a call, Tokens(size=…)"),
        (["net.py:Net(bad=1)"], "failed: TypeError"),
        (["net.py:Net("], "is neither a name nor a call"),
        (["net.py:Net", "-i", "4,three?"], "'three?' is not a size"),
        (["net.py:Net", "-i", "4,-1"], "a size can't be negative"),
        (["net.py:Net", "-i", "4,4:float99"], "torch has no dtype 'float99'"),
        (["net.py:Net", "-i", "x.npy"], "no such file: x.npy"),
        (["net.py:Net", "-i", "net.py"], "inputs must be .npy or .safetensors files"),
        (["net.py:Net", "-i", "4,4", "--dims", "4=batch"], "is not a named size"),
        (["net.py:Net", "-i", "4,4", "--optimizer", "magic"], "optimizer is one of"),
        (["broken.py:Net"], "broken.py failed: ZeroDivisionError: division by zero (broken.py:2)"),
        (["unread.py"], "unread.py failed: SyntaxError: invalid syntax (unread.py:2)"),
        (["outer.py"], "outer.py failed: SyntaxError: invalid syntax (unread.py:2)"),
        (["leaving.py"], "leaving.py ended the program"),
        (["empty.py"], "empty.py has no model"),
    ],
)
def test_a_mistake_gets_one_clear_line(
    arguments: list[str], told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.py").write_text("x = 1\ny = 1 / 0\n")
    (folder / "unread.py").write_text("x = 1\ndef (:\n")
    (folder / "outer.py").write_text("import unread\n")
    (folder / "leaving.py").write_text("import sys\nsys.exit(3)\n")
    (folder / "empty.py").write_text("")
    assert told in refused(capsys, *arguments)


def test_without_a_name_the_only_model_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "net.py", "-i", "5,4").startswith("Net")


def test_the_real_command_draws_in_plain_ascii_where_it_must(folder: Path) -> None:
    done = clew(folder, "show", "net.py:Net", "-i", "5,4", environment={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Net  5x4 float32 -> 5x3" in done.stdout


DYING = (
    NET
    + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    x = torch.randn(5 if step < 4 else 2, 4 if step < 5 else 3)
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""
)


def test_a_training_that_dies_of_a_shape_is_explained_after_its_traceback(folder: Path) -> None:
    (folder / "dying.py").write_text(DYING)
    done = clew(folder, "run", "dying.py")
    assert done.returncode == 1
    traceback, _, explanation = done.stderr.partition("RuntimeError: mat1 and mat2")
    assert traceback.count("Traceback (most recent call last)") == 1
    assert "first  Linear(in_features=4, out_features=8, bias=True) ✗  input 2×3" in explanation
    assert "Linear(in_features=4) got 3" in explanation
    assert "incident" not in done.stderr


def test_shapes_are_printed_once_and_again_when_they_change(folder: Path) -> None:
    (folder / "dying.py").write_text(DYING)
    done = clew(folder, "run", "--print-shapes", "dying.py")
    lines = [line for line in done.stderr.splitlines() if line.startswith("shapes: first")]
    assert lines == ["shapes: first  Linear  5×4 → 5×8", "shapes: first  Linear  2×4 → 2×8  (new)"]


def test_a_quiet_run_explains_nothing(folder: Path) -> None:
    (folder / "dying.py").write_text(DYING)
    done = clew(folder, "run", "--quiet", "dying.py")
    assert "shapes do not match" not in done.stderr


def test_an_attached_block_that_dies_of_a_shape_is_explained_too(folder: Path) -> None:
    (folder / "dying.py").write_text(DYING.replace("for step", "import clew\nfor step"))
    text = (folder / "dying.py").read_text()
    head, _, loop = text.partition("for step")
    inside = "\n".join(f"    {line}" for line in f"for step{loop}".splitlines())
    (folder / "attached.py").write_text(f"{head}with clew.attach(model, optimizer):\n{inside}\n")
    done = subprocess.run(
        [sys.executable, "attached.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Linear(in_features=4) got 3" in done.stderr
