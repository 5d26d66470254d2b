"""Leak and dtype horizon: closed forms, brute force, NumPy's own rounding."""

import math

import mpmath
import numpy as np
import pytest

from farfield import (
    InputError,
    dtype_horizon,
    encoding,
    leak,
)
from farfield.numerics import horizon


def test_leak_of_a_geometric_series_is_a_power():
    r = leak("-n/2", 10)
    assert r.value == pytest.approx(np.exp(-5), rel=1e-15)
    assert r.enclosure[0] <= r.value <= r.enclosure[1]


def test_leak_against_brute_force():
    for name in ("alibi", "type1", "sandwich", "example2"):
        r = leak(name, 64, 256, heads=2) if name in ("alibi", "sandwich") else leak(name, 64, 256)
        entry = encoding(name, heads=2) if name in ("alibi", "sandwich") else encoding(name)
        weights = np.exp(entry.bias(np.arange(256)))
        expected = 1 - weights[:, :64].sum(1) / weights.sum(1)
        for head, value in zip(r.heads or (r,), expected, strict=True):
            assert head.value == pytest.approx(value, rel=1e-9)
        assert r.value == max(h.value for h in r.heads or (r,))
        if name == "alibi":
            assert [str(h).partition(":")[0] for h in r.heads] == ["−n/16", "−n/256"]


def test_leak_in_the_limit():
    with mpmath.workdps(30):
        value = mpmath.zeta(2, 513) / mpmath.zeta(2)
    assert leak("-2*log(1+n)", 512).value == pytest.approx(float(value), rel=1e-14)
    assert leak("-log(1+n)", 512).enclosure == (1.0, 1.0)
    assert leak("window", 512, w=512).value == 0.0
    assert leak("-n", 5, 5).value == 0.0
    assert leak("rope", 512).value is None


@pytest.mark.parametrize(
    "slope, tokens", [("1/2", (35, 186, 208)), ("1/256", (4437, 23778, 26617))]
)
def test_horizons_of_alibi(slope, tokens):
    assert tuple(dtype_horizon(f"-n*{slope}", t).tokens for t in ("fp16", "bf16", "fp32")) == tokens


@pytest.mark.parametrize(
    "text", ["-n/2", "-sqrt(n)", "-log(1+n)^2", "-n^2/1000+n/10", "-20*log(1+n)", "-(n-40)^2/9"]
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_horizons_against_the_rounding_of_numpy(text, dtype):
    r = dtype_horizon(text, dtype)
    assert r.tokens < 10**5
    bias = encoding(text).bias(np.arange(r.tokens + 50))[0]
    with np.errstate(over="ignore"):
        rounded = np.exp(np.longdouble(bias - bias[0])).astype(dtype)
    assert rounded[r.tokens - 1] > 0 and not rounded[r.tokens :].any()


def test_horizon_ties_round_to_even():
    assert dtype_horizon("-log(1+n)", "fp16").tokens == 2**25 - 1
    assert dtype_horizon("-n*log(2)", "fp32").tokens == 150
    assert dtype_horizon("-n*log(2)", "fp32", flush_to_zero=True).tokens == 127


@pytest.mark.parametrize(
    ("long", "names"),
    [
        ("float16", ("fp16", "half", "FP16")),
        ("bfloat16", ("bf16",)),
        ("float32", ("fp32", "float")),
        ("float64", ("fp64", "double")),
    ],
)
def test_horizons_of_halvings_are_those_of_torch_formats(long, names):
    torch = pytest.importorskip("torch")
    info = torch.finfo(getattr(torch, long))
    normal, eps = (math.frexp(x)[1] - 1 for x in (info.smallest_normal, info.eps))
    for name in (*names, long, getattr(torch, long)):
        found = dtype_horizon("-n*log(2)", name)
        assert (found.dtype, found.tokens) == (names[0], 1 - normal - eps)
        flushed = dtype_horizon("-n*log(2)", name, flush_to_zero=True)
        assert flushed.tokens == 1 - normal and "with subnormals flushed" in str(flushed)


def test_a_slope_that_is_secretly_zero():
    hidden = "-n*(log(6)-log(2)-log(3))-log(1+n)"
    assert dtype_horizon(hidden, "fp16").tokens == 2**25 - 1


def test_horizons_that_do_not_exist():
    for f in ("nope", "n"):
        found = dtype_horizon(f, "fp16")
        assert found.tokens == math.inf and found.reason.code == "never" and found.label
    assert dtype_horizon("cos(n)", "fp16").reason.code == "no_enclosure"


def test_horizon_of_pieces_and_windows():
    assert dtype_horizon("window", "fp16", w=7).tokens == 7
    pieces = "Piecewise((0,n<4),(-100,n<10),(-1,n<12),(-200,True))"
    assert dtype_horizon(pieces, "fp32").tokens == 12
    assert dtype_horizon("alibi", "fp16").tokens == 4437
    with pytest.raises(InputError, match="fp16"):
        dtype_horizon("-n", "int8")


def test_leak_of_a_divergent_bias_without_closed_partial_sums():
    n = np.arange(9216)
    terms = 1 / ((n + 3) * np.log(n + 3))
    for length in (512, 1024, 9216):
        expected = terms[64:length].sum() / terms[:length].sum()
        assert leak("example2", 64, length).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "text, bias",
    [
        ("-n/2+sin(n)", lambda i: -i / 2 + math.sin(i)),
        ("-2^n", lambda i: -(2.0**i)),
        ("-floor(n/2)", lambda i: -(i // 2)),
        ("-n*(2+cos(n))", lambda i: -i * (2 + math.cos(i))),
        ("-(Mod(n,7)+2)*n", lambda i: -(i % 7 + 2) * i),
        ("-loggamma(n+1)", lambda i: -math.lgamma(i + 1)),
        ("-n/log(n+20)", lambda i: -i / math.log(i + 20)),
    ],
)
def test_horizons_of_any_series(text, bias):
    """By the slope or by the tail; the last distance whose term is above 2^-150."""
    last = max(i for i in range(900) if bias(i) - bias(0) > -150 * math.log(2))
    assert dtype_horizon(text, "fp32").tokens == last + 1


def test_a_horizon_that_is_not_proved_is_unknown(short_envelopes, monkeypatch):
    monkeypatch.setattr(horizon, "MAX_BALLS", 500)
    found = dtype_horizon("-2*log(1+n)+sin(n)", "fp32")
    assert found.tokens is None and found.label is None and found.status == "unknown"


def test_the_former_name_of_the_tested_length_works_with_a_hint():
    with pytest.warns(DeprecationWarning, match="tested"):
        former = leak("-2*log(1+n)", 64, evaluated=512)
    assert former == leak("-2*log(1+n)", 64, tested=512) == leak("-2*log(1+n)", 64, 512)
    assert former.to_dict()["evaluated"] == former.to_dict()["tested"] == 512
    with pytest.warns(DeprecationWarning):
        assert former.evaluated == 512


@pytest.mark.parametrize("f", ["-1000*n", "-10^20*log(1+n)", "-10^50*log(3+n)"])
def test_a_share_that_no_float_holds_is_not_told_as_zero(f):
    found = leak(f, 2048, 4096)
    assert 0 < found.value < 1e-300 and "share below 1e-300" in str(found)
    assert leak("window", 64, 256, w=16).value == 0
