"""Only code that does nothing but compute is run again, and only the part that made the loss."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from clew.labs.snapshot.users_step.loss_recipe import recipe
from clew.labs.snapshot.users_step.side_effects import CannotRerun

collected = []


def here():
    """The caller's frame, and the line after the call: where `backward()` is."""
    frame = sys._getframe(1)
    return frame, frame.f_lineno + 1


def noting(x):
    collected.append(x)
    return x


def doubled(x, by=2.0):
    """Pure."""
    parts = []
    for part in x:
        parts.append(part * by)
    return torch.stack(parts)


def test_statements_that_the_loss_does_not_need_are_left_out():
    model = nn.Linear(2, 1)
    x = torch.ones(3, 2)
    output = model(x)
    noting(output)
    loss = doubled(output).mean()
    made = recipe(*here())
    loss.backward()
    assert made.source.splitlines() == [
        "output = model(x)",
        "loss = doubled(output).mean()",
        "__clew_loss__ = loss",
    ]
    assert torch.equal(made.run(), loss)
    assert len(collected) == 1


def test_what_came_before_the_model_is_taken_as_it_is():
    model = nn.Linear(2, 1)
    x = torch.rand(3, 2)
    y = torch.rand(3, 1)
    loss = (model(x) - y).pow(2).mean()
    made = recipe(*here())
    loss.backward()
    assert made.source.startswith("loss = ")
    assert torch.equal(made.run(), loss)


def test_a_loop_that_collects_outputs_is_kept_whole():
    cell = nn.RNNCell(2, 2)
    x = torch.rand(4, 3, 2)
    h = torch.zeros(3, 2)
    outputs = []
    for t in range(4):
        h = cell(x[t], h)
        outputs.append(h)
    loss = torch.stack(outputs).pow(2).sum()
    made = recipe(*here())
    loss.backward()
    assert torch.equal(made.run(), loss)
    assert len(outputs) == 4


def test_the_scaled_loss_of_a_with_block_is_found():
    model = nn.Linear(2, 1)
    x = torch.rand(3, 2)
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(x).float().mean()
        collected.append(loss)
    made = recipe(*here())
    (loss / 4).backward()
    assert "collected" not in made.source
    assert torch.equal(made.run(), loss / 4)


def test_a_function_with_an_effect_is_refused():
    model = nn.Linear(2, 1)
    x = torch.rand(3, 2)
    loss = noting(model(x)).mean()
    frame, line = here()
    loss.backward()
    with pytest.raises(CannotRerun, match="side effect"):
        recipe(frame, line)


def test_printing_is_refused(capsys):
    def shown(value):
        print(value)
        return value

    model = nn.Linear(2, 1)
    loss = shown(model(torch.rand(3, 2))).mean()
    capsys.readouterr()
    frame, line = here()
    loss.backward()
    with pytest.raises(CannotRerun):
        recipe(frame, line)
    assert capsys.readouterr().out == ""


def test_a_name_that_the_step_has_overwritten_is_refused():
    model = nn.Linear(2, 2)
    x = torch.rand(3, 2)
    x = model(x)
    loss = x.mean()
    frame, line = here()
    loss.backward()
    with pytest.raises(CannotRerun, match="x was overwritten"):
        recipe(frame, line)


class Owner:
    def __init__(self):
        self.model = nn.Linear(2, 1)
        self.last = None

    def loss(self, x):
        self.last = self.model(x).mean()
        return self.last


owner = Owner()


def test_setting_an_attribute_is_refused():
    x = torch.rand(3, 2)
    loss = owner.loss(x)
    frame, line = here()
    loss.backward()
    with pytest.raises(CannotRerun, match="sets an attribute"):
        recipe(frame, line)


def test_a_call_that_is_only_known_when_it_runs_is_refused():
    model = nn.Linear(2, 1)
    kind = [lambda t: t.mean()]
    x = torch.rand(3, 2)
    chosen = kind[int(x.sum() * 0)]
    loss = chosen(model(x))
    frame, line = here()
    loss.backward()
    with pytest.raises(CannotRerun):
        recipe(frame, line)


def test_another_name_for_a_list_of_the_programs_is_not_appended_to():
    def stacked(values):
        parts = collected
        parts.append(values)
        return values

    model = nn.Linear(2, 1)
    loss = stacked(model(torch.rand(3, 2))).mean()
    frame, line = here()
    loss.backward()
    with pytest.raises(CannotRerun, match="side effect"):
        recipe(frame, line)


def test_a_backward_that_shares_its_line_is_found():
    model = nn.Linear(2, 1)
    x = torch.rand(3, 2)
    loss = model(x).mean()
    frame, line = here()
    model.zero_grad(); loss.backward()  # fmt: skip  # noqa: E702 - the point of it
    assert recipe(frame, line).source.splitlines()[0] == "loss = model(x).mean()"


def test_an_iterator_of_the_programs_is_not_used_up():
    model = nn.Linear(2, 1)
    batches = iter([torch.ones(1, 2), torch.ones(1, 2)])
    total = 0
    for x in batches:
        total = total + model(x).sum()
        break
    frame, line = here()
    total.backward()
    with pytest.raises(CannotRerun, match="iterator"):
        recipe(frame, line)
    assert len(list(batches)) == 1


def test_a_loss_that_another_function_made_is_refused():
    def apply(loss):
        frame, line = here()
        loss.backward()
        with pytest.raises(CannotRerun, match="another function"):
            recipe(frame, line)

    apply(nn.Linear(2, 1)(torch.ones(1, 2)).sum())
