"""`clew run --trace-numerics`: the steps of a window are traced."""

from __future__ import annotations

import pytest
from program_process import clew_run, start, wait

import clew

SCRIPT = """
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    output = model(torch.randn(8, 3))
    loss = output.pow(2).mean()
    if step in (10, 35):
        ignored = torch.log(output.detach() * 0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("level", ["op", "layer"])
def test_a_run_is_traced_from_one_step_to_another(tmp_path, level):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    window = ["--trace-numerics", level, "--from-step", "33", "--to-step", "37"]
    ended = wait(start([*clew_run(tmp_path, *window), script], OMP_NUM_THREADS="1"))
    assert ended.code == 0, ended.err
    (run,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    traced = [(f.step, f.data["op"]) for f in clew.open_run(run).data.facts if f.kind == "traced"]
    assert traced == ([(35, "log")] if level == "op" else [])
    assert (
        "--trace-numerics: " + ("step 35: log is infinite" if level == "op" else "every traced value")
        in ended.err
    )


def test_a_window_that_ends_before_it_begins_is_refused(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("")
    window = ["--trace-numerics", "op", "--from-step", "5", "--to-step", "3"]
    ended = wait(start([*clew_run(tmp_path, *window), script]))
    assert ended.code == 2
    assert "--to-step 3 is before --from-step 5" in ended.err
