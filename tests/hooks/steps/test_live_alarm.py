"""A NaN is reported during training only after the step has been replayed."""

import torch
from torch import nn

import clew
from clew.api.open_run import open_run

STEPS = 40
BAD = 18


def train() -> None:
    """The batch is finite, the program's own scaling of it is not: 0 / 0 at one step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        x = torch.randn(8, 4)
        if step == BAD:
            x[3] = 0.0
        scaled = x / x.norm(dim=1, keepdim=True)
        optimizer.zero_grad()
        model(scaled).square().mean().backward()
        optimizer.step()


def test_a_look_while_the_step_is_run_again_tells_nothing_yet(tmp_path):
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        judge, explain, asked = session.judge, session.watcher.on_alarm, []
        judge._pace.is_due = lambda *_: True

        def slowly(*alarm) -> None:
            asked.append(judge._explaining())
            judge._judged = -1
            session.judge.catch_up(5.0)  # the alarm is in the log, and the log is looked at
            asked.append(judge._explaining())
            explain(*alarm)

        session.watcher.on_alarm = slowly
        train()
        session.judge.catch_up(5.0)
        assert not judge._explaining()
    assert asked[:2] == [False, True]
    facts = open_run(session.path).data.facts
    told = [f["check"] for fact in facts if fact.kind == "announced" for f in fact.data["findings"]]
    assert "nonfinite-input" not in told
    assert session.verdict.findings[0].check == "non-finite"
    assert session.verdict.findings[0].site.op == "div"
