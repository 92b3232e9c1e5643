from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import assert_same_stats, naive_dead, naive_hist, naive_saturated, naive_stats

from clew.measure import stats
from clew.measure.kernel import compiled_library

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
LEVELS = [0, 1, 2]  # plain, AVX2, AVX-512; what the processor lacks falls back to what it has


@pytest.fixture(params=["torch", *LEVELS], ids=lambda p: f"level{p}" if isinstance(p, int) else p)
def engine(request, monkeypatch):
    """Every engine gives the same numbers: torch ops, and the kernel for each instruction set."""
    if request.param == "torch":
        monkeypatch.setattr(stats, "KERNEL", None)
        return
    loaded = compiled_library.load(level=request.param)
    assert loaded is not None, "no compiled kernel: python scripts/build_kernel.py"
    monkeypatch.setattr(stats, "KERNEL", loaded)


def measure(t, **bounds):
    out, hist = np.full(7, -1.0), np.full(32, 7, np.uint8)
    saturated = stats.tensor_stats(t, out=out, hist=hist, **bounds)
    return out, hist, saturated


def check(t, label=""):
    out, hist, _ = measure(t)
    assert_same_stats(out, naive_stats(t), label)
    if t.numel() <= 4096:
        np.testing.assert_array_equal(hist, naive_hist(t), err_msg=str(label))


def seeded(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 127, 1023, 1025, 4095, 4096, 4097, 5000, 8192, 100_003])
def test_agrees_with_naive_numpy_at_every_block_boundary(engine, dtype, count):
    check(seeded(count, dtype=dtype, seed=count), (dtype, count))


LARGE = 9973
SPECIAL = {
    "zeros": lambda: torch.zeros(LARGE),
    "negative zeros": lambda: -torch.zeros(LARGE),
    "constant": lambda: torch.full((LARGE,), 0.1),
    "huge mean": lambda: seeded(LARGE) + 1e5,
    "huge mean, tiny spread": lambda: seeded(LARGE) * 1e-2 + 3e4,
    "all NaN": lambda: torch.full((LARGE,), math.nan),
    "all infinite": lambda: torch.full((LARGE,), math.inf),
    "one NaN": lambda: seeded(LARGE).index_fill_(0, torch.tensor([5000]), math.nan),
    "last is -inf": lambda: seeded(LARGE).index_fill_(0, torch.tensor([LARGE - 1]), -math.inf),
    "first is inf": lambda: seeded(LARGE).index_fill_(0, torch.tensor([0]), math.inf),
    "half non-finite": lambda: seeded(LARGE).masked_fill_(seeded(LARGE, seed=1) > 0, math.nan),
    "vanishing": lambda: seeded(LARGE) * 1e-25,
    "subnormal": lambda: seeded(LARGE) * 1e-40,
    "near overflow": lambda: seeded(LARGE).clamp(-1, 1) * 3e38,
    "outlier first": lambda: seeded(LARGE).index_fill_(0, torch.tensor([0]), 1e6),
    "outlier late": lambda: seeded(LARGE).index_fill_(0, torch.tensor([7000]), -1e18),
    "drifting": lambda: seeded(LARGE) + torch.arange(LARGE) * 10,
    "steps": lambda: (torch.arange(LARGE) // 1024).float() * 1e4,
    "steps of blocks": lambda: (torch.arange(LARGE) // 4096).float() * 1e4,
    "rectified": lambda: seeded(LARGE).relu(),
    "all scales": lambda: torch.exp2(torch.linspace(-140, 120, LARGE)),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_agrees_with_naive_numpy_on_difficult_values(engine, name):
    check(SPECIAL[name](), name)
    check(SPECIAL[name]().double(), f"{name}, float64")


@pytest.mark.parametrize(
    "name", ["zeros", "one NaN", "half non-finite", "rectified", "constant", "all infinite"]
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_agrees_with_naive_numpy_on_difficult_half_precision(engine, name, dtype):
    check(SPECIAL[name]().to(dtype), (name, dtype))


def test_every_float16_and_bfloat16_value_is_read_right(engine):
    patterns = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    check(patterns.view(torch.float16), "every float16")
    check(patterns.view(torch.bfloat16), "every bfloat16")


ELEMENTS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, 1e-40, -1e-45, 2.0**-24, 2.0**8]),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)


@st.composite
def tensors(draw):
    shape = draw(st.lists(st.integers(0, 9), min_size=0, max_size=4))
    count = math.prod(shape)
    values = draw(st.lists(ELEMENTS, min_size=1, max_size=8))
    t = torch.tensor(values, dtype=torch.float64).repeat(count // len(values) + 1)[:count].view(shape)
    t = t.to(draw(st.sampled_from(FLOATS)))
    if t.dim() and draw(st.booleans()):
        t = t.permute(draw(st.permutations(range(t.dim()))))
    for dim in range(t.dim()):
        way = draw(st.sampled_from(["all", "all", "second", "one", "expand"]))
        if way == "second":
            t = t.unfold(dim, 1, 2).squeeze(-1) if t.shape[dim] else t
        elif way == "one":
            t = t.narrow(dim, 0, min(1, t.shape[dim]))
        elif way == "expand" and t.shape[dim] == 1:
            t = t.expand([3 if d == dim else -1 for d in range(t.dim())])
    return t


@given(t=tensors(), bounds=st.tuples(st.floats(-2, 0, width=32), st.floats(0, 2, width=32)))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_agrees_with_naive_numpy_for_any_shape_stride_and_value(engine, t, bounds):
    out, hist, saturated = measure(t, lo=bounds[0], hi=bounds[1])
    assert_same_stats(out, naive_stats(t))
    np.testing.assert_array_equal(hist, naive_hist(t))
    if t.numel():
        assert saturated == pytest.approx(naive_saturated(t, *bounds))
    else:
        assert math.isnan(saturated)


@pytest.mark.parametrize("dtype", FLOATS)
def test_saturated_share_counts_both_ends(engine, dtype):
    t = torch.cat([torch.full((1100,), -1.0), torch.zeros(1000), torch.full((1300,), 1.0)]).to(dtype)
    assert measure(t, lo=-1.0, hi=1.0)[2] == pytest.approx(2400 / 3400)
    assert measure(t, hi=1.0)[2] == pytest.approx(1300 / 3400)
    assert math.isnan(measure(t)[2])


def test_sampled_histogram_is_close_to_the_exact_one(engine):
    t = seeded(700_001) * torch.exp2(seeded(700_001, seed=3))
    hist = measure(t)[1].astype(int)
    assert np.abs(hist - naive_hist(t).astype(int)).max() <= 5
    assert (hist[naive_hist(t) > 2] > 0).all()


def test_histogram_is_empty_without_a_countable_value(engine):
    assert not measure(torch.tensor([0.0, -0.0, math.nan, math.inf]))[1].any()


@pytest.mark.parametrize(
    "t",
    [
        torch.tensor([True, False, True]),
        torch.arange(-5, 6, dtype=torch.int8),
        torch.arange(250, dtype=torch.uint8),
        torch.tensor([2**40, -(2**50), 7]),
        torch.tensor([1.0, -2.0, 0.0]).to(torch.float8_e4m3fn),
    ],
    ids=lambda t: str(t.dtype),
)
def test_other_types_are_read_as_numbers(engine, t):
    check(t)


def test_expanded_tensor_is_read_without_a_copy_of_its_full_size(engine):
    t = torch.tensor([3.0, math.nan]).expand(2**40, 2)  # 8 TiB if it were copied
    out = measure(t)[0]
    np.testing.assert_allclose(out, [3, 0, 3, 3, 3 * 2.0**20, 0, 2.0**40])


def test_channels_last_is_read_in_place(monkeypatch):
    t = seeded(4, 8, 5, 5).contiguous(memory_format=torch.channels_last)
    assert stats._flat(t).data_ptr() == t.data_ptr()
    assert stats._flat(t.transpose(1, 2)).data_ptr() == t.data_ptr()
    assert stats._flat(t[:, ::2]).data_ptr() != t.data_ptr()


@pytest.mark.parametrize(
    ("shape", "dim"), [((7, 5), 1), ((7, 5), 0), ((6, 5, 4, 3), 1), ((6, 3, 4, 5), -1), ((5,), 0)]
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_dead_fraction_agrees_with_naive_numpy(engine, shape, dim, dtype):
    t = seeded(*shape, dtype=dtype).relu()
    t.movedim(dim, 0)[1] = -0.0
    t.movedim(dim, 0)[3] = 0.0
    for layout in [t, t.clone(memory_format=torch.preserve_format), *_reordered(t)]:
        assert stats.dead_fraction(layout, dim) == pytest.approx(naive_dead(layout, dim))


def _reordered(t):
    if t.dim() == 4:
        yield t.contiguous(memory_format=torch.channels_last)
    if t.dim() > 1:
        yield t.transpose(0, -1).contiguous().transpose(0, -1)
        yield torch.stack([t, t + 1], -1)[..., 0]


def test_a_unit_that_is_only_ever_nan_is_not_dead(engine):
    assert stats.dead_fraction(torch.tensor([[0.0, math.nan, 0.0]]), 1) == pytest.approx(2 / 3)


def test_dead_fraction_of_one_unit_and_of_none(engine):
    assert stats.dead_fraction(torch.zeros(4, 1), 1) == 1.0
    assert math.isnan(stats.dead_fraction(torch.zeros(4, 0), 1))
    assert math.isnan(stats.dead_fraction(torch.zeros(()), 1))


def test_grad_norm_over_tensors_of_all_kinds(engine):
    grads = [seeded(1000, seed=1), seeded(33, 7, seed=2).t(), seeded(9, dtype=torch.float64), torch.zeros(0)]
    grads += [seeded(2050, dtype=torch.bfloat16), seeded(77, dtype=torch.float16), seeded(10, 10)[::2, ::3]]
    want = math.sqrt(sum(float(g.double().square().sum()) for g in grads))
    assert stats.grad_norm(grads) == pytest.approx(want, rel=1e-7)
    assert stats.grad_norm([]) == 0.0


def test_grad_norm_keeps_small_and_large_gradients(engine):
    assert stats.grad_norm([torch.full((5000,), 1e-30)]) == pytest.approx(1e-30 * math.sqrt(5000), rel=1e-6)
    assert stats.grad_norm([torch.full((5000,), 1e30)]) == pytest.approx(1e30 * math.sqrt(5000), rel=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_single_non_finite_gradient_shows_in_the_norm(engine, bad, dtype):
    grads = [seeded(3000, dtype=dtype), seeded(1500, dtype=dtype)]
    grads[1][1499] = bad
    assert not math.isfinite(stats.grad_norm(grads))


def test_grad_norm_reads_sparse_gradients(engine):
    table = torch.nn.Embedding(9, 1, sparse=True)
    (table(torch.tensor([1, 1, 4])) * torch.tensor([[3.0], [1.0], [3.0]])).sum().backward()
    assert stats.grad_norm([table.weight.grad, torch.zeros(3)]) == pytest.approx(5.0)


@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e18])
def test_the_row_for_accelerators_holds_the_same_numbers(monkeypatch, scale):
    # The ops that run on an accelerator, run here in the precision that they have there.
    monkeypatch.setattr(stats.stats_torch, "_fast_moments", lambda x: None)
    t = seeded(64, 300).relu() * scale
    t[3, 5], t[:, 7] = math.nan, 0.0
    out, hist = np.zeros(7), np.zeros(32, np.uint8)
    row = stats.tensor_stats_async(t, hist=True, hi=scale, unit_dim=1)
    saturated, dead = stats.resolve(row, out, hist)
    assert_same_stats(out, naive_stats(t))
    assert saturated == pytest.approx(naive_saturated(t, -math.inf, scale))
    assert dead == pytest.approx(naive_dead(t, 1))
    assert hist.any()


def test_out_of_the_wrong_type_or_size_is_refused():
    for out in (np.zeros(7, np.float32), np.zeros(6), np.zeros(14)[::2]):
        with pytest.raises((ValueError, TypeError)):
            stats.tensor_stats(torch.ones(3), out=out)
    for hist in (np.zeros(32), np.zeros(31, np.uint8)):
        with pytest.raises((ValueError, TypeError)):
            stats.tensor_stats(torch.ones(3), out=np.zeros(7), hist=hist)
