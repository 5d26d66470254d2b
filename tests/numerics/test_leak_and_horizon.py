"""Leak and dtype horizon: closed forms, brute force, NumPy's own rounding."""

import math
import types

import mpmath
import numpy as np
import pytest
from flint import arb

from farfield import design, dtype_horizon, encoding, leak
from farfield.numerics.horizon import _short
from farfield.numerics.questions import numeric


@pytest.mark.parametrize(
    ("name", "options", "length", "of"),
    [
        ("alibi", {"heads": 2}, 256, ["−n/16", "−n/256"]),
        ("sandwich", {"heads": 2}, 256, None),
        ("type1", {}, 256, None),
        *(("example2", {}, length, None) for length in (256, 512, 1024, 9216)),
    ],
)
def test_leak_against_brute_force(name, options, length, of):
    r = leak(name, 64, length, **options)
    weights = np.exp(encoding(name, **options).bias(np.arange(length)))
    each = [h.value for h in r.heads or (r,)]
    assert each == pytest.approx(weights[:, 64:].sum(1) / weights.sum(1), rel=1e-12)
    assert r.value == max(each)
    assert of in (None, [str(h).partition(":")[0] for h in r.heads])


def test_leak_in_the_limit():
    with mpmath.workdps(30):
        value = mpmath.zeta(2, 513) / mpmath.zeta(2)
    assert leak("-2*log(1+n)", 512).value == pytest.approx(float(value), rel=1e-14)
    assert leak("-log(1+n)", 512).enclosure == (1.0, 1.0)
    assert leak("window", 512, w=512).value == 0.0
    assert leak("-n", 5, 5).value == 0.0
    assert leak("rope", 512).value is None


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
        assert dtype_horizon("-n*log(2)", name, flush_to_zero=True).tokens == 1 - normal


@pytest.mark.parametrize(
    ("f", "dtype", "flushed", "tokens"),
    [
        ("-log(1+n)", "fp16", False, 2**25 - 1),  # a tie rounds to even
        (
            "-n*(log(6)-log(2)-log(3))-log(1+n)",
            "fp16",
            False,
            2**25 - 1,
        ),  # a slope that is secretly 0
        ("7/2-log(1+n)", "fp16", False, 2**25 - 1),
        ("5-n*log(2)", "fp16", False, 25),
        ("where(n<7,0,-oo)", "fp16", False, 7),
        ("Piecewise((0,n<4),(-100,n<10),(-1,n<12),(-200,True))", "fp32", False, 12),
        ("alibi", "fp16", False, 4437),
        ("-n/256", "bf16", False, 23778),
        ("where(n%2==0,where(n<11,0,-500*n),where(n<10,-n/100,-500*n))", "fp16", False, 11),
        # a quarter of a step below the smallest normal number, to which it rounds
        ("where(n < 2, n*log(1/2^14 - 1/2^26), -oo)", "fp16", True, 2),
        ("where(n < 2, n*log(1/2^14 - 1/2^24), -oo)", "fp16", True, 1),
    ],
)
def test_horizons_by_hand(f, dtype, flushed, tokens):
    assert dtype_horizon(f, dtype, flush_to_zero=flushed).tokens == tokens


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
    monkeypatch.setattr("farfield.numerics.horizon.MAX_BALLS", 500)
    found = dtype_horizon("-2*log(1+n)+sin(n)", "fp32")
    assert found.tokens is None and found.label is None and found.status == "unknown"


def test_the_former_name_of_the_tested_length_works_with_a_hint():
    with pytest.warns(DeprecationWarning, match="tested") as told:
        former = leak("-2*log(1+n)", 64, evaluated=512)
        assert former.evaluated == 512
        found = design("alibi", leak="1/1000", trained=64, evaluated=512)
    assert [each.filename for each in told] == [__file__] * 3  # where the former name is used
    assert former == leak("-2*log(1+n)", 64, tested=512) == leak("-2*log(1+n)", 64, 512)
    assert former.to_dict()["evaluated"] == former.to_dict()["tested"] == 512
    assert found == design("alibi", leak="1/1000", trained=64, tested=512)


@pytest.mark.parametrize(
    ("middle", "radius", "told"),
    [(1, 2.0**-22, True), (1, 2.0**-21, False), (0, 0.9e-12, True), (0, 1.2e-12, False)],
)
def test_a_number_has_twenty_bits_or_an_error_below_1e_12(middle, radius, told):
    found = numeric(arb(middle, radius), 0.0, 1.0)
    assert ("value" in found, found.get("status") == "enclosed") == (told, not told)
    ends = max(0, middle - radius), min(1, middle + radius)
    assert found["enclosure"] == pytest.approx(ends, abs=1e-14)


@pytest.mark.parametrize("f", ["-1000*n", "-10^20*log(1+n)", "-10^50*log(3+n)"])
def test_a_share_that_no_float_holds_is_not_told_as_zero(f):
    assert 0 < leak(f, 2048, 4096).value < 1e-300
    assert leak("window", 64, 256, w=16).value == 0


@pytest.mark.parametrize("center", [0.25, 0.75])
def test_a_leak_that_is_not_enclosed_is_unknown(monkeypatch, center):
    row = types.SimpleNamespace(tail=lambda m: arb(center, 0.8), total=lambda: arb(1))
    monkeypatch.setattr("farfield.numerics.leak.summed", lambda bias, n: row)
    found = leak("-n", 5)
    assert (found.status, found.value) == ("unknown", None)
    assert str(found.reason) == "the sums are enclosed no further"


def test_a_tie_beyond_all_digits_is_told_by_its_power():
    found, counted = (dtype_horizon(f"-25*n*log(2)/2^{k}", "fp16") for k in (256, 255))
    assert found.status == "unknown" and "b_(about 2^257)/b_0 agrees" in str(found.reason)
    assert counted.tokens == 2**255  # a tie rounds to even
    assert (_short(10**30 - 1), _short(10**30)) == ("9" * 30, "(about 2^100)")
