"""The README's commands are run, and they print what it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", README, flags=re.DOTALL)


def masked(text):
    """Without what differs between machines: numbers and the curve that they draw."""
    text = re.sub(r"[▁▂▃▄▅▆▇█]+", "~", text)
    return re.sub(r"\d[\d.,e+]*", "#", text)


def test_the_shown_diagnosis_is_what_the_demo_prints(tmp_path):
    environment = {**os.environ, "COLUMNS": "80", "CLEW_DIR": str(tmp_path / "runs"), "PYTHONUTF8": "1"}
    script = tmp_path / "digits.py"
    script.write_text((REPOSITORY / "src/clew/demo/digits.py").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "clew", "run", "digits.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=True,
    )
    shown = masked(blocks("text")[0].split("…\n", 1)[1].strip())
    assert shown in masked(done.stderr)


def test_the_python_example_runs(tmp_path):
    setting = f"""
import os
os.environ["CLEW_DIR"] = {str(tmp_path / "runs")!r}
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    for _ in range(5):
        nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.arange(8) % 2).backward()
        optimizer.step()
"""
    done = subprocess.run(
        [sys.executable, "-c", setting + blocks("python")[0]], capture_output=True, text=True, check=True
    )
    assert "missing-zero-grad" in done.stdout


def test_every_named_command_exists():
    named = set(re.findall(r"clew (run|why|explain|runs|demo|[a-z]+)\b", "\n".join(blocks("console"))))
    for verb in named:
        help_text = subprocess.run(
            [sys.executable, "-m", "clew", verb, "--help"], capture_output=True, text=True, check=True
        ).stdout
        assert help_text.startswith("Usage: clew")
    for script in re.findall(r"scripts/\w+", README):
        assert os.access(REPOSITORY / script, os.X_OK), script


def test_every_link_leads_somewhere():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (REPOSITORY / target).exists(), target
