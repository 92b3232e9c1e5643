"""What is measured where a model's output meets the loss, against a naive computation."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from recorded_program import facts, recorded, values
from torch import nn

from clew.hooks.collect_loop.model_outputs import (
    OUTPUT_NAMES,
    Origin,
    normalised_axis,
    origin_of,
    outputs_row,
)

SCORES = torch.tensor([[2.0, 1.0, 0.0], [0.0, 3.0, 0.0], [4.0, 0.0, 1.0], [5.0, 0.0, 0.0]])
LINEAR = Origin("")
LABELS = torch.tensor([0, 1, 1, -100])


def numbers(kind, prediction, target, origin=LINEAR, **given):
    result = getattr(F, kind)(prediction, target, **given)
    row = outputs_row(kind, prediction, target, given, result, origin)
    return dict(zip(OUTPUT_NAMES, row.tolist(), strict=True))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_classification_is_measured_for_one_label_whatever_the_reduction(reduction):
    row = numbers("cross_entropy", SCORES[:3], LABELS[:3], reduction=reduction)
    assert row["loss_call.value"] == pytest.approx(F.cross_entropy(SCORES[:3], LABELS[:3]).item())
    assert row["loss_call.chance"] == pytest.approx(math.log(3))


def test_right_answers_are_counted_without_the_ignored_ones():
    row = numbers("cross_entropy", SCORES, LABELS)
    assert row["prediction.accuracy"] == pytest.approx(2 / 3)
    assert row["prediction.top_share"] == 0.75
    assert row["prediction.classes"] == 2


def test_log_probabilities_have_a_logsumexp_of_zero_and_scores_have_not():
    target = torch.tensor([0, 1, 1, 2])
    assert numbers("nll_loss", SCORES.log_softmax(1), target)["loss_input.logsum"] < 1e-5
    expected = SCORES.exp().sum(1).log().abs().median().item()
    assert numbers("nll_loss", SCORES, target)["loss_input.logsum"] == pytest.approx(expected)


def test_yes_or_no_questions_are_measured_by_sign_or_by_half():
    score, truth = torch.tensor([-1.0, 0.3, 2.0, 0.7]), torch.tensor([0.0, 0.0, 1.0, 1.0])
    row = numbers("binary_cross_entropy_with_logits", score, truth)
    assert (row["prediction.accuracy"], row["prediction.target_top_share"]) == (0.75, 0.5)
    row = numbers("binary_cross_entropy", torch.tensor([0.0, 0.3, 1.0, 0.4]), truth)
    assert (row["prediction.accuracy"], row["loss_input.ends"]) == (0.75, 0.5)
    assert row["loss_call.chance"] == pytest.approx(math.log(2))


def test_targets_of_a_regression_are_compared_with_what_its_activation_can_reach():
    target = torch.tensor([[-1.0], [0.5], [3.0], [0.0]])
    prediction = torch.tensor([[0.0], [1.0], [2.0], [1.0]])
    assert numbers("mse_loss", prediction, target, Origin("relu"))["target.outside"] == 0.25
    assert numbers("mse_loss", prediction, target, Origin("sigmoid"))["target.outside"] == 0.5
    row = numbers("mse_loss", prediction, target)
    assert row["target.outside"] == 0.0
    assert row["target.whole"] == 0.75
    assert row["prediction.spread"] == pytest.approx((prediction.std() / target.std()).item())
    assert row["loss_call.chance"] == pytest.approx(target.square().mean().item())


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_dimension_of_a_softmax_is_found(axis):
    scores = torch.randn(6, 4, 5, generator=torch.Generator().manual_seed(0))
    assert normalised_axis(scores.softmax(axis)) == axis
    assert normalised_axis(scores.log_softmax(axis)) == axis
    assert normalised_axis(scores) == -1


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda x: torch.sigmoid(x).squeeze(), Origin("sigmoid")),
        (lambda x: F.relu(x).view(-1), Origin("relu")),
        (lambda x: x.tanh()[:, 0], Origin("tanh", picked=True)),
        (lambda x: x.softmax(-1), Origin("softmax", dim=-1)),
        (lambda x: F.log_softmax(x, 0), Origin("log_softmax", dim=0)),
        (lambda x: torch.log(x.softmax(1) + 1e-9), Origin("softmax", dim=1, logged=True)),
        (lambda x: x.sigmoid().clamp(1e-6, 1), Origin("sigmoid", clamped=True)),
        (lambda x: x.clamp(0, 1), Origin("clamp", clamped=True)),
        (lambda x: x * 2, Origin("")),
    ],
)
def test_the_activation_that_made_a_tensor_is_read_from_its_graph(made, expected):
    assert origin_of(made(torch.randn(4, 3, requires_grad=True))) == expected


def trained(tmp_path, model, loss, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def program():
        for _ in range(steps):
            optimizer.zero_grad()
            loss(model(torch.randn(8, 4))).backward()
            optimizer.step()

    return recorded(program, tmp_path)


def test_a_loss_call_tells_what_made_its_input(tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=0))
    data = trained(tmp_path, model, lambda out: F.nll_loss(out, torch.arange(8) % 3))
    (fact,) = facts(data, "output")
    assert (fact["kind"], fact["made_by"], fact["dim"], fact["shape"]) == (
        "nll_loss",
        "log_softmax",
        0,
        [8, 3],
    )
    assert values(data, "loss_input.axis") == [0.0, 0.0, 0.0]


def test_terms_have_the_share_of_the_loss_that_they_contribute(tmp_path):
    seen = []

    def loss(out):
        one, two = F.mse_loss(out, torch.ones(8, 2)), F.l1_loss(out, torch.zeros(8, 2))
        total = 3 * one + two / 2
        seen.append(((3 * one / total).item(), (two / 2 / total).item()))
        return total

    data = trained(tmp_path, nn.Linear(4, 2), loss)
    for op, place in (("mse_loss", 0), ("l1_loss", 1)):
        assert values(data, "term.share", op=op) == pytest.approx([pair[place] for pair in seen], rel=1e-4)


def test_a_single_loss_has_no_terms(tmp_path):
    data = trained(tmp_path, nn.Linear(4, 2), lambda out: F.mse_loss(out, torch.ones(8, 2)))
    assert values(data, "term.share") == []


def test_a_loss_call_that_torch_refuses_is_recorded_and_still_raises(tmp_path):
    def program():
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            F.binary_cross_entropy(torch.tensor([-1.5, 2.0]), torch.ones(2))

    (fact,) = facts(recorded(program, tmp_path), "loss_failed")
    assert (fact["kind"], fact["input_min"], fact["input_max"]) == ("binary_cross_entropy", -1.5, 2.0)
    assert fact["file"] == __file__


class Noisy(nn.Module):
    def __init__(self, scale, plus):
        super().__init__()
        self.mean, self.raw, self.scale, self.plus = nn.Linear(4, 2), nn.Linear(4, 2), scale, plus

    def forward(self, x):
        mean, raw = self.mean(x), self.raw(x)
        self.share = (self.scale(raw) < 0).float().mean().item()
        return self.plus(mean, self.scale(raw), raw)


def reparameterised(mean, scale, raw):
    return mean + scale * torch.randn_like(scale)


def in_place(mean, scale, raw):
    return torch.randn(scale.shape).mul(scale).add_(mean)


@pytest.mark.parametrize("plus", [reparameterised, in_place])
def test_the_share_of_a_noise_scale_that_is_negative_is_recorded(plus, tmp_path):
    model = Noisy(lambda raw: raw * 1, plus)
    data = trained(tmp_path, model, lambda out: out.square().mean())
    recorded_shares = values(data, "noise.negative")
    assert recorded_shares[-1] == pytest.approx(model.share)
    assert len(recorded_shares) == 3


def test_a_positive_scale_is_recorded_as_such_and_other_noise_not_at_all(tmp_path):
    model = Noisy(torch.exp, reparameterised)
    assert values(trained(tmp_path, model, lambda out: out.square().mean()), "noise.negative") == [0.0] * 3
    multiplied = Noisy(lambda raw: raw * 1, lambda mean, scale, raw: scale + scale * torch.randn_like(scale))
    assert values(trained(tmp_path, multiplied, lambda out: out.square().mean()), "noise.negative") == []


TOKENS = torch.tensor([[3, 4, 5, 0], [6, 7, 0, 0], [8, 9, 3, 0]])


class Attending(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.embedding = nn.Embedding(10, 4, padding_idx=0)
        self.attention = nn.MultiheadAttention(4, 1, batch_first=True)
        self.attend = attend

    def forward(self, tokens):
        return self.attend(self, self.embedding(tokens), tokens)


def key_padding(hidden):
    return lambda net, x, t: net.attention(x, x, x, key_padding_mask=hidden(t), need_weights=False)[0]


def seen_keys(seen):
    return lambda net, x, t: F.scaled_dot_product_attention(x, x, x, seen(t)[:, None, :].expand(3, 4, 4))


def filled(hidden):
    def attend(net, x, t):
        scores = (x @ x.transpose(1, 2)).masked_fill(hidden(t)[:, None, :], -1e9)
        return scores.softmax(-1) @ x

    return attend


def pooled(kept):
    return lambda net, x, t: (x * kept(t).float().unsqueeze(-1)).sum(1)


@pytest.mark.parametrize(
    ("attend", "inverted"),
    [
        (key_padding(lambda t: t == 0), 0.0),
        (key_padding(lambda t: t != 0), 1.0),
        (seen_keys(lambda t: t != 0), 0.0),
        (seen_keys(lambda t: t == 0), 1.0),
        (filled(lambda t: t == 0), 0.0),
        (filled(lambda t: t != 0), 1.0),
        (pooled(lambda t: t != 0), 0.0),
        (pooled(lambda t: t == 0), 1.0),
    ],
)
def test_masks_are_compared_with_the_padding(attend, inverted, tmp_path):
    model = Attending(attend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def program():
        for _ in range(2):
            optimizer.zero_grad()
            model(TOKENS).square().mean().backward()
            optimizer.step()

    data = recorded(program, tmp_path)
    assert values(data, "mask.inverted") == [inverted] * 2
    assert values(data, "mask.padding") == pytest.approx([1 / 3] * 2)


@pytest.mark.parametrize(
    ("mask", "future"), [(torch.ones(4, 4).tril(-1).bool(), 1.0), (torch.ones(4, 4).triu(1).bool(), 0.0)]
)
def test_a_causal_mask_that_hides_the_past_is_recorded(mask, future, tmp_path):
    model = Attending(lambda net, x, t: net.attention(x, x, x, attn_mask=mask, need_weights=False)[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def program():
        model(TOKENS).square().mean().backward()
        optimizer.step()

    assert values(recorded(program, tmp_path), "mask.future_only") == [future]
