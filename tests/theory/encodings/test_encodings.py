"""The catalogue against values computed independently from the papers and the reference code."""

import csv
import io
import itertools
import math
import random
import sys
import warnings
from fractions import Fraction
from importlib.resources import files

import numpy as np
import pytest
import sympy

from farfield import InputError, check_convergence
from farfield.theory.encodings import (
    alibi_slope,
    catalogue,
    encoding,
    encodings,
    listing,
    t5_bucket_starts,
)
from farfield.theory.encodings.catalogue import CATALOGUE
from farfield.theory.encodings.catalogue_formulas import t5_tables
from farfield.theory.encodings.references import cite
from farfield.theory.functions.nodes import n

AT = np.arange(200)
ADDITIVE = [k for k in encodings() if encoding(k).formula is not None]
OUT_OF_SCOPE = [k for k in encodings() if encoding(k).formula is None]
VALUES = {
    "window": {"w": 7},
    "kerple_log": {"r1": "6/5", "r2": 1},
    "kerple_power": {"r1": 1, "r2": "1/2"},
    "alibi_log": {"m": 2},
    "bam": {"s": 0, "mu": 3, "eps": "1e-5", "beta": 1},
    "t5": {f"b{k}": f"-{k}/8" for k in range(32)},
}


def valued(name, **options):
    """The encoding with a value for every parameter; 1 or -1 where none is chosen above."""
    given = VALUES.get(name, {}) | options
    free = encoding(name, **given).free
    return encoding(name, **given, **{p.name: -1 if p.symbol.is_negative else 1 for p in free})


def press_slopes(heads):
    """The rule of the original ALiBi code, by recursion and in floating point."""
    if math.log2(heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return [start * start**i for i in range(heads)]
    closest = 2 ** math.floor(math.log2(heads))
    return press_slopes(closest) + press_slopes(2 * closest)[0::2][: heads - closest]


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 8, 12, 16, 20, 31, 32, 129])
def test_alibi_slopes_are_those_of_the_original_code(heads):
    ours = [float(alibi_slope(h, heads)) for h in range(1, heads + 1)]
    assert ours == pytest.approx(press_slopes(heads), rel=1e-12)


def t5_bucket(distance, buckets=32, max_distance=128):
    """The causal rule as the reference code writes it, in floating point away from the ties."""
    near = buckets // 2
    if distance < near:
        return distance
    share = math.log(distance / near) / math.log(max_distance / near)
    return min(buckets - 1, near + int(share * (buckets - near) + 1e-9))


@pytest.mark.parametrize(("buckets", "far"), [(32, 128), (8, 20), (16, 64), (32, 512)])
def test_t5_buckets(buckets, far):
    starts = t5_bucket_starts(buckets, far)
    for t in range(2 * far):
        assert sum(s <= t for s in starts) - 1 == t5_bucket(t, buckets, far)


def test_t5_bucket_starts_and_the_constant_tail():
    last = [16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
    assert t5_bucket_starts(32, 128) == list(range(16)) + last
    bias = valued("t5").bias(np.arange(400))[0]
    assert (bias[113:] == bias[113]).all() and bias[112] != bias[113]
    scaled = valued("t5", dialect="scaled", d_head=16).bias(AT)[0]
    assert scaled == pytest.approx(4 * bias[:200])


def test_tables_of_t5_are_tried_by_their_greatest_distance_powers_of_two_first():
    def first(count):
        return [table["max_distance"] for table in itertools.islice(t5_tables(count), 10)]

    assert first(32) == [32, 64, 128, 256, 512, 1024, 2048, 4096, 17, 18]
    assert first(2)[:3] == [2, 4, 8] and first(0) == first(31) == []
    assert sorted(table["max_distance"] for table in t5_tables(32)) == [*range(17, 4097)]


@pytest.mark.parametrize(
    ("options", "heads", "size", "first", "constant"),
    [
        ({}, 8, 128, 0, 0),
        ({"dialect": "equation"}, 8, 128, 1, 0),
        ({"dialect": "code"}, 8, 2 * (512 // 8), 1, 1e-4),
        ({"d_bar": 16, "heads": 1}, 1, 16, 0, 0),
    ],
)
def test_sandwich_is_the_sum_of_cosines(options, heads, size, first, constant):
    angles = 10000.0 ** (-2 * np.arange(first, first + size // 2) / size)
    total = np.cos(np.outer(AT, angles)).sum(1) - size / 2 - constant
    wanted = np.outer(1 / np.arange(1, heads + 1), total * heads / 8)
    bias = encoding("sandwich", **options).bias(AT)
    assert bias == pytest.approx(wanted, abs=1e-10)
    assert bias[:, 0] == pytest.approx(wanted[:, 0], abs=1e-12)


CODE = {"dialect": "code"}


@pytest.mark.parametrize(
    ("name", "options", "heads", "formula"),  # of a head h = 1, 2, ..., at the distances t
    [
        ("nope", {}, 1, lambda h, t: 0 * t),
        ("kerple_log", {"r1": 1.2, "r2": 1}, 1, lambda h, t: -1.2 * np.log1p(t)),
        ("kerple_power", {"r1": 2, "r2": 0.5}, 1, lambda h, t: -2 * np.sqrt(t)),
        ("type1", {}, 1, lambda h, t: -2 * np.log1p(t)),
        ("type2", {}, 1, lambda h, t: -(np.log1p(t) ** 2)),
        ("example1", {}, 1, lambda h, t: -np.log1p(t)),
        ("example2", {}, 1, lambda h, t: -np.log(t + 3) - np.log(np.log(t + 3))),
        ("alibi_log", {"m": 3}, 1, lambda h, t: -3 * np.log1p(t)),
        (
            "bam",
            {"s": 0, "mu": 4, "eps": 0.5, "beta": 2},
            1,
            lambda h, t: -((abs(t - 4) + 0.5) ** 2),
        ),
        ("type1", CODE, 8, lambda h, t: -np.log1p((t / 2**h) ** 2)),
        ("type2", CODE, 8, lambda h, t: -(np.log(3 + t / 2**h) ** 2)),
        ("example1", CODE, 8, lambda h, t: -np.log1p(t / 2**h)),
        ("example2", CODE, 8, lambda h, t: -np.log((3 + t / 2**h) * np.log(3 + t / 2**h))),
        ("sandwich_smoothed", {}, 8, lambda h, t: (-0.825 * np.log1p(t) - 0.8) * 8 / h),
        ("alibi", {"dialect": "shift", "delta": -3}, 8, lambda h, t: -t / 2.0 ** (h - 3)),
        ("alibi", {"dialect": "equal", "slope_exponent": 4}, 8, lambda h, t: -t / 16),
        ("alibi", {"dialect": "geometric", "heads": 12}, 12, lambda h, t: -t / 2 ** (h / 1.5)),
        ("alibi", {"heads": 12}, 12, lambda h, t: -t * press_slopes(12)[h - 1]),
        ("window", {"w": 5}, 1, lambda h, t: np.where(t < 5, 0, -np.inf)),
        ("window", {"w": 5, "dialect": "inclusive"}, 1, lambda h, t: np.where(t < 6, 0, -np.inf)),
    ],
)
def test_formulas_of_the_papers(name, options, heads, formula):
    wanted = np.array([formula(h, AT) for h in range(1, heads + 1)])
    np.testing.assert_allclose(encoding(name, **options).bias(AT), wanted, rtol=1e-12, atol=1e-15)


def test_learned_parameters_begin_where_the_published_codes_draw_them():
    drawn = {
        "kerple_log": {"r1": ((0, 2), (0.01, None)), "r2": ((0, 1), (0.01, None))},
        "kerple_power": {"r1": ((0, 1), (0.01, None)), "r2": ((0, 2), (0.01, 2))},
        "bam": {k: ((0, end), (None, None)) for k, end in (("s", 0), ("mu", 0), ("beta", 1))},
    }
    for name, right in drawn.items():
        found = [p for p in encoding(name).free if p.learned]
        assert {p.name: (p.init, p.clamp) for p in found} == right


@pytest.mark.parametrize("dialect", ["code", "printed"])
@pytest.mark.parametrize(
    "options", [{}, {"d": 6, "gamma": 0, "base": 7, "theta": 90}, {"d": 2, "gamma": "3/2"}]
)
def test_surrogates_are_the_sums_of_rotations(dialect, options):
    kept = {"d": 64, "gamma": "2/5", "base": 512, "theta": 10000} | options
    d, gamma, base, theta = (float(Fraction(kept[k])) for k in ("d", "gamma", "base", "theta"))
    i = np.arange(d // 2 + (dialect == "printed"))
    zeta = (i / (d / 2) + gamma) / (1 + gamma)
    waves = np.cos(np.outer(AT, theta ** (-2 * i / d)))
    of_rope = {k: v for k, v in options.items() if k in ("d", "theta")}
    rope = encoding("rope_surrogate", dialect=dialect, **of_rope).bias(AT)[0]
    xpos = encoding("xpos_surrogate", dialect=dialect, **options).bias(AT)[0]
    assert rope == pytest.approx(waves.sum(1), abs=1e-11)
    assert xpos == pytest.approx((waves * zeta ** (AT[:, None] / base)).sum(1), abs=1e-11)
    assert (zeta[-1] == 1) == (dialect == "printed")


@pytest.mark.parametrize("name", ADDITIVE)
def test_every_additive_encoding_has_every_view(name):
    e = valued(name)
    assert e.bias([0, 1, 9]).shape == (e.num_heads, 3)
    assert e.latex() and e.formula_text() != "-" and e.source
    assert e.to_dict()["kind"] == "Encoding" and e.to_dict()["name"] == name
    assert not e.free


@pytest.mark.parametrize("name", OUT_OF_SCOPE)
def test_what_is_out_of_scope_says_which_hypothesis_fails(refusal, name):
    e = encoding(name)
    codes = ("not_additive", "not_toeplitz", "content_dependent", "not_softmax")
    assert e.out_of_scope.code in codes and e.out_of_scope.sentence
    result = check_convergence(name)
    assert result.verdict == "out_of_scope" and result.reason == e.out_of_scope
    refusal("no additive bias", e.head, 1)
    assert e.latex() == ""
    assert check_convergence(encoding(name, bca=32)).verdict.value == "converges"


def test_a_table_is_an_encoding(refusal):
    values = [[0.0, -1.5, -np.inf, -0.25], [0.0, -1.0, -2.0, -4.0]]
    held, cut = (encoding(values=values, tail=tail) for tail in ("constant", "cut"))
    assert held.bias(range(6)).tolist() == [v + [v[-1]] * 2 for v in values]
    assert np.isneginf(cut.bias([4, 5])).all() and (cut.bias(range(4)) == values).all()
    assert check_convergence(held).verdict.value == "diverges"
    assert check_convergence(cut).verdict.value == "converges"
    table = [[0.0, -1.5, -0.25], [0.0, -1.0, -2.0]]
    line = encoding(values=table, tail="linear")
    assert line.bias(range(6)).tolist() == [[0, -1.5, -0.25, 1, 2.25, 3.5], [0, -1, -2, -3, -4, -5]]
    assert [h.verdict.value for h in check_convergence(line).heads] == ["diverges", "converges"]
    refusal("up to distance 2; tail=", encoding(values=table).bias, [3])
    for h in (0, 3):
        refusal(f"has heads 1 to 2; {h} was asked for", line.head, h)
    assert [line.head(h) for h in (1, 2)] == [*line.biases]
    assert [line.one_head(h).biases for h in (1, 2)] == [(bias,) for bias in line.biases]
    only = encoding("-n")
    assert only.one_head(1) is only and line.one_head(2).name == f"{line.name}, head 2"


@pytest.mark.parametrize(
    ("row", "tail", "beyond"),
    [
        ([0, -1, -3], "linear", [-5, -7]),
        ([0, 2], "linear", [4, 6]),
        ([0, -2, -2], "linear", [-2, -2]),
        ([-3], "linear", [-3, -3]),
        ([-math.inf, -3], "linear", [-3, -3]),
        ([0, -math.inf], "linear", [-math.inf] * 2),
        ([-math.inf, -2], "constant", [-2, -2]),
        ([0, -math.inf], "constant", [-math.inf] * 2),
        ([0, -2], "cut", [-math.inf] * 2),
    ],
)
def test_a_table_goes_on_as_its_tail_says(row, tail, beyond):
    found = encoding(values=row, tail=tail).bias(range(len(row) + 2))
    assert found.tolist() == [[*row, *beyond]]


def test_an_entry_of_a_table_is_the_number_that_is_given(refusal):
    most = int(sys.float_info.max)
    given = [0.1, "0.1", Fraction(1, 3), np.float64(-0.3), most]
    right = [sympy.Rational(Fraction(v)) for v in given]
    entries = encoding(values=[-math.inf, *given], tail="cut").formula.args[1]
    assert [*entries] == [-sympy.oo, *right]
    for bad in (math.inf, math.nan, most + 1, -most - 1, "x"):
        refusal("a table of values holds", encoding, values=[0, bad])


def test_parameters_can_differ_between_heads():
    e = encoding("kerple_log", r1=["6/5", 2, 1], r2=1)
    assert e.num_heads == 3 and str(e.head(2)) == "-2*log(n + 1)"
    assert [r.converges for r in check_convergence(e).heads] == [True, True, False]


def test_a_users_formula_is_an_encoding():
    e = encoding("-a*log(1+n)", a=2)
    assert e.bias([1])[0, 0] == pytest.approx(-2 * math.log(2)) and not e.free
    assert [p.name for p in encoding("-b*n-a").free] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["alibbi"], {}, "did you mean 'ALiBi'"),
        (["alibi"], {"dialect": "prss"}, "accepted: press"),
        (["rope"], {"dialect": "x"}, "rope has no dialect 'x'; accepted: none$"),
        (["alibi"], {"delta": 1}, "delta needs dialect='shift'"),
        (["alibi"], {"heads": 0}, "from 1 to 1024"),
        (["alibi"], {"heads": 2.5}, "from 1 to 1024"),
        (["alibi"], {"heads": 1025}, "from 1 to 1024"),
        (["[0 x4097]"], {}, "1 to 4096 heads"),
        (["[0 x4000; -n x97]"], {}, "1 to 4096 heads"),
        ([["-n"] * 4097], {}, "1 to 4096 heads"),
        (["alibi"], {"m": -1}, "outside its domain"),
        (["kerple_log"], {"r3": 1}, "no parameter or option 'r3'"),
        (["kerple_log"], {"r1": [1, 2], "r2": [1, 2, 3]}, "must agree"),
        (
            ["bam"],
            {"betta": 1},
            r"bam has no parameter or option 'betta'; did you mean 'beta'\? "
            r"\(parameters: s, mu, eps, beta\)",
        ),
        (["kerple_log"], {"r1": "x"}, "not a rational number"),
        (["window"], {"w": 0}, "outside its domain"),
        (["sandwich"], {"d_bar": 7}, "even"),
        (["sandwich"], {"d_bar": 4098}, "from 2 to 4096"),
        (["sandwich"], {"heads": 8, "d_model": 7, "dialect": "code"}, "to 4096"),
        (["rope_surrogate"], {"d": 5}, "even"),
        (["xpos_surrogate"], {"d": 4098}, "from 2 to 4096"),
        (["xpos_surrogate"], {"gamma": "-1/10"}, "gamma must be >= 0"),
        (["xpos_surrogate"], {"base": 0}, "base > 0"),
        (["sandwich"], {"d_bar": 64, "dialect": "code"}, "d_bar needs"),
        (["t5"], {"buckets": 7}, "even number"),
        (["t5"], {"max_distance": 16}, "greater than half"),
        (["t5"], {"buckets": 514, "max_distance": 300}, "up to 512"),
        (["t5"], {"max_distance": 10**6 + 1}, "at most 10.6"),
        (["rope"], {"d": 64}, "no parameters"),
        (["rope"], {"bca": 0}, "bca .0. is out of range"),
        (["-log(1+n)"], {"dialect": "code"}, "no dialect"),
        ([None], {}, "needs a name, a formula or a table"),
        (["alibi"], {"values": [1.0]}, "takes no name"),
        ([], {"values": [float("nan")]}, "finite numbers and -inf"),
        ([], {"values": []}, "shape"),
        ([], {"values": [1.0], "tail": "on"}, "accepted: constant, linear, cut"),
        (["alibi"], {"assumptions": {"m": "real"}}, "has values for m"),
        ([3.5], {"q": 1}, "no parameter or option 'q'"),
        ([lambda n: -n], {"tail": "cut"}, "<lambda> has a formula; tail 'cut' belongs to what is"),
        ([lambda n: -n], {"m": 2}, "takes no dialect, parameters or assumptions beside it"),
        ([np.eye(4)], {"dialect": "x"}, "an array of biases takes no dialect, parameters or"),
        (["alibi"], {"assumptions": {"z": "real"}}, "'z', which alibi does not have; it has: m$"),
        (["nope"], {"assumptions": {"z": "real"}}, "which nope does not have; it has: none$"),
        (["rope"], {"d": 64, "assumptions": {"z": "real"}}, "has no parameters; d, z given"),
        (["-r*n"], {"r": [1, 2], "heads": 3}, "given for 2 heads, heads=3$"),
        (
            ["-r*n-a-b"],
            {"a": 0, "b": [1], "r": []},
            "^r has no value; accepted: a number, or one for each head",
        ),
        (["-n"], {"assumptions": 5}, "assumptions 5: accepted is a domain for each name"),
        ([], {"values": [[1, 2], [3]]}, "has shape .length,. or .heads, length., each row alike"),
        ([], {"values": [[1.0], 2.0]}, r"holds '\[1.0\]'; accepted are finite numbers"),
        ([], {"values": [10**400]}, "accepted are finite numbers and -inf"),
        ([[1, sympy.nan]], {}, "holds 'nan'; accepted are finite numbers"),
        ([[np.str_("a"), 1]], {}, "holds 'a'; accepted are finite numbers"),
        ([], {"values": [1.0], "heads": 2}, "takes no name, heads, dialect, parameters"),
        ([["-n"]], {"heads": 2}, "^1 formulas are given for 2 heads; accepted: one formula a head"),
        ([["-n"]], {"dialect": "x"}, "a list of formulas has no dialect; 'x' was given"),
        (["-n"], {"tail": "cut"}, "tail 'cut' says how a table of values goes on"),
        ([encoding("-n")], {"heads": 2}, "an Encoding is complete: it takes no further options"),
        (["window=4096"], {}, "is no formula in n; write window --set w=4096$"),
        (["a=3, b=4"], {}, "write it after the formula as --set a=3 --set b=4$"),
        (["n=512"], {}, "write --length 512 for the keys of a row; n is the distance$"),
        (["t5 12"], {}, "write t5 --heads 12$"),
        (["nope 4"], {}, "write nope --heads 4$"),
        (["window(4096)"], {}, "write window --set w=4096$"),
        (["alibi 12 heads"], {}, "write alibi --heads 12$"),
        (["w=64"], {}, "write it after the formula as --set w=64$"),
        (["alibi_slope=3"], {}, "write alibi --set m=3$"),
        (["kerple_log=3"], {}, "write it after the formula as --set kerple_log=3$"),
        (["n=512, a=3"], {}, "write --length 512 for the keys of a row; n is the distance$"),
        (["log"], {}, r"log is a function, not a formula; write log\(n\)$"),
        (["where(n>=0,-oo,0)"], {}, "masks every key: at distances 0 to 4096"),
        (["where(n<2^49+2,-oo,0)"], {}, "masks every key"),
        (["softplus"], {}, r"a function, not a formula; write softplus\(n\)$"),
        (["2*alibi"], {}, r"column 3: alibi may mean the encoding ALiBi, written -m\*n, or a par"),
        (["2*rope"], {}, "column 3: rope may mean the encoding RoPE, or a parameter"),
        (["causal"], {}, "causal is no encoding of the catalogue; write 0$"),
        (["qwertz"], {}, "'qwertz' is neither an encoding nor a formula in n; the nearest of 35"),
        (["kerple_log"], {"r1": 0}, "r1 = 0 is outside its domain .positive.$"),
        (["-a*n"], {"b": 1}, "the formula has no parameter or option 'b' .parameters: a.$"),
    ],
)
def test_bad_input(refusal, arguments, options, message):
    refusal(message, encoding, *arguments, **options)


def test_as_many_heads_as_are_accepted():
    assert encoding("alibi", heads=1024).num_heads == 1024
    for most in ("[0 x4096]", "[0 x4000; -n x96]", ["-n"] * 4096):
        assert encoding(most).num_heads == 4096


def test_arrays_are_tables_and_values_of_heads():
    torch = pytest.importorskip("torch")
    for table in (np.array([0.0, -1.0]), torch.tensor([0.0, -1.0])):
        assert encoding(table).known == encoding(values=[0, -1]).known != ()
    for values in (np.array([2.0, 1.0]), torch.tensor([2.0, 1.0])):
        assert encoding("-r*n", r=values).biases == encoding("-r*n", r=[2, 1]).biases
    assert encoding("-r*n", r=np.float32(0.1)).head(1) == -n / 10
    with warnings.catch_warnings(action="error"):
        table = encoding([np.float32(0.5), np.float32("-inf")])
    assert table.bias(np.arange(2)).tolist() == [[0.5, -math.inf]]


ENTRIES = [
    (
        encoding("alibi", heads=2),
        "ALiBi (press): −m·n. | p(n) = −m·n | heads: 2 | source: Press et al. 2022; Chi "
        "et al. 2023, Eq. 3 (geometric) | shift: 2^-(8h/H + delta); equal: "
        "2^-slope_exponent for every head. | dialects: press, geometric, shift, equal | "
        "options: delta = 0 (dialect shift), slope_exponent = 0 (dialect equal) | biases:"
        " head 1: −n/16; head 2: −n/256",
    ),
    (
        encoding("kerple_log"),
        "KERPLE-log: −r₁·log(n·r₂ + 1). | p(n) = −r₁·log(n·r₂ + 1) | free parameters: r1 "
        "(positive, learned), r2 (positive, learned) | source: Chi et al. 2022 (KERPLE); "
        "Qin et al. 2024 | usual: --set r1=6/5 --set r2=1",
    ),
    (
        encoding("-m*n", m=2),
        "-2*n: −m·n. | p(n) = −m·n | with values: −2·n | source: user formula",
    ),
    (
        encoding("rope"),
        "RoPE: no bias by distance (not additive: it rotates queries and ke…of adding a "
        "bias; its additive surrogate is rope_surrogate). | source: Su et al. 2021",
    ),
    (
        encoding("bam"),
        "BAM: −(ε + |μ − n|)^β·exp(s). | p(n) = −(ε + |μ − n|)^β·exp(s) | free "
        "parameters: s (real, learned), mu (real, learned), eps (positive), beta (real, "
        "learned) | source: Bianchessi et al. 2025 (Bayesian attention mechanism)",
    ),
    (
        encoding("sandwich_smoothed", heads=2),
        "Sandwich smoothed: (−33·log(n + 1)/5 − 32/5)/c. | p(n) = (−33·log(n + 1)/5 − "
        "32/5)/c | heads: 2 | source: Chi et al. 2023, Section 5.3, the printed log fit "
        "at c = 8 | the scaling from c = 8 to the other heads is an assumption of this "
        "project. | biases: head 1: −33·log(n + 1)/20 − 8/5; head 2: −33·log(n + 1)/40 − "
        "4/5",
    ),
    (
        encoding("-n/8"),
        "-n/8: −n/8. | p(n) = −n/8 | source: user formula",
    ),
    (
        encoding("alibi", bca=8, m=2),
        "ALiBi (press): −m·n. | p(n) = −m·n | with values: −2·n | blockwise causal "
        "attention: half = 8 tokens | source: Press et al. 2022; Chi et al. 2023, Eq. 3 "
        "(geometric) | shift: "
        "2^-(8h/H + delta); equal: 2^-slope_exponent for every head. | dialects: press, "
        "geometric, shift, equal | options: delta = 0 (dialect shift), slope_exponent = 0"
        " (dialect equal)",
    ),
    (
        encoding("window", dialect="inclusive"),
        "Window (inclusive): {0 for n ≤ w; −∞ otherwise}. | p(n) = {0 for n ≤ w; −∞ "
        "otherwise} | free parameters: w (positive) | source: Chi et al. 2023, Section "
        "3.3; Qin et al. 2024, Eq. 7 (inclusive: Eq. 8) | exclusive: w tokens, distances "
        "0 to w-1; inclusive: w+1 tokens. | dialects: exclusive, inclusive | usual: --set"
        " w=64",
    ),
    (
        encoding("alibi_log"),
        "ALiBi in log distance: −m·log(n + 1). | p(n) = −m·log(n + 1) | free parameters: "
        "m (positive) | source: ALiBi in log distance",
    ),
]


def test_encodings_of_one_paper_share_its_entry():
    """Each entry stood beside a name of the others."""
    found = cite("kerple_log", "ALiBi", "kerple_power")
    assert found.names == ("kerple_log, kerple_power", "alibi")
    assert ["KERPLE" in entry for entry in found.bibtex] == [True, False]
    rows = [*csv.reader(io.StringIO(found.csv()))]
    assert rows == [["name", "BibTeX"], *map(list, zip(found.names, found.bibtex, strict=True))]


def test_views_are_made_of_the_rows_that_are_asked_for(monkeypatch):
    module = sys.modules["farfield.theory.encodings.encoding"]
    made = lambda name: lambda *given, **options: (name, *given, options)  # noqa: E731
    monkeypatch.setattr(module, "view", made)
    table = encoding([0, -1, -2])
    for name in ("tensor", "score_mod", "block_mask"):
        for length in (3, 4):  # of which the table knows three
            asked = getattr(table, name)(length, block=16)
            assert asked == (name, table.row(length), length, {"block": 16})


@pytest.mark.parametrize(("entry", "said"), ENTRIES)
def test_an_entry_says_all_that_it_takes(entry, said):
    lines = listing.of_entry(entry).text(width=1000).splitlines()
    assert " | ".join(map(str.strip, lines)) == said


def test_the_lines_that_are_shown_at_once_are_the_catalogue():
    kept = files("farfield").joinpath("theory/encodings/index.txt").read_text(encoding="utf-8")
    assert kept == f"{listing.catalogue()}\n"


def test_a_title_is_the_name_as_it_is_written():
    for name, entry in CATALOGUE.items():
        said = "".join(filter(str.isalnum, entry.title)).lower()
        assert said.startswith(name.partition("_")[0])


def test_slopes_are_those_of_a_line_and_nothing_else_has_any():
    """Every entry, and formulas at random: slopes give the table again, or one line says why."""
    draw, lines = random.Random(0), 0
    made = [f"-{draw.randrange(1, 9)}*n/{draw.randrange(1, 9)}+log(2)" for _ in range(5)]
    made += [f"-{f}(n)/3" for f in ("floor", "abs", "frac", "log1p", "sign", "gamma")]
    for name in (*encodings(), *made, "[-n/4; 0 x3]", "[0, -1, -2]", "where(n<4,0,-n)"):
        subject = encoding(name)
        try:
            slopes = subject.slopes()
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 400
            continue
        table, lines = subject.bias(range(64)), lines + 1
        np.testing.assert_allclose(table - table[:, :1], -slopes[:, None] * np.arange(64))
    assert lines >= 8


LEARNED = {  # as the papers' code draws them, and keeps them
    "kerple_log": {"r1": ((0, 2), (0.01, None)), "r2": ((0, 1), (0.01, None))},
    "kerple_power": {"r1": ((0, 1), (0.01, None)), "r2": ((0, 2), (0.01, 2))},
    "bam": {"s": ((0, 0), None), "mu": ((0, 0), None), "beta": ((0, 1), None)},
}
DEFAULTS = {
    "alibi": {"delta": 0, "slope_exponent": 0},
    "sandwich": {"d_bar": 128, "d_model": 512},
    "t5": {"buckets": 32, "max_distance": 128, "d_head": 64},
    "rope_surrogate": {"d": 64, "theta": 10000},
    "xpos_surrogate": {"d": 64, "gamma": "2/5", "base": 512, "theta": 10000},
}
TRAINED = {  # on rows of 1, 8, 20, 128 and 2048 tokens
    "window": [{"w": w} for w in (1, 2, 5, 32, 512)],
    "t5": [
        {"buckets": b, "max_distance": d} for b, d in ((2, 2), (2, 4), (4, 10), (32, 64), (32, 128))
    ],
    "alibi_log": [{"m": 2}] * 5,
}


def test_what_is_learned_what_is_usual_and_how_a_row_is_trained():
    for name, entry in CATALOGUE.items():
        parameters = () if callable(entry.parameters) else entry.parameters
        learned = {p.name: (p.init, p.clamp) for p in parameters if p.learned}
        assert learned == {k: (i, c or (None, None)) for k, (i, c) in LEARNED.get(name, {}).items()}
        assert entry.options == DEFAULTS.get(name, {})
        assert [entry.trained(k) for k in (1, 8, 20, 128, 2048)] == TRAINED.get(name, [{}] * 5)
    assert {p.name: p.zero for p in CATALOGUE["alibi"].parameters} == {"m": True}
    assert [k for k, e in CATALOGUE.items() if e.baseline] == ["nope", "alibi"]
    assert {k: e.stands_for for k, e in CATALOGUE.items() if e.stands_for} == {
        "rope_surrogate": "rope",
        "xpos_surrogate": "xpos",
    }
    assert catalogue.of_mechanism("rotation").name == "rope"
    assert catalogue.surrogate_of("xpos").name == "xpos_surrogate"
    assert catalogue.surrogate_of("alibi") is None
    assert catalogue.usual_values("kerple_power", ["r2"]) == {"r2": "1/2"}
    assert catalogue.usual_values("kerple_power", []) == {} == catalogue.usual_values("-n", ["a"])
    assert catalogue.usual_values("kerple_log", ["r1", "c"]) == {}
