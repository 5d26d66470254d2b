"""A model of unlike layers: how far influence comes, against convolutions by hand."""

import json
import types

import numpy as np
import pytest
import sympy

from farfield import encoding
from farfield import layered_receptive_field as field
from farfield.numerics.depth import _quantile, _window_of, total_of
from farfield.numerics.search import Bracket
from farfield.theory.algebra.exceptions import OutOfTime, Unreachable
from farfield.theory.answers.answer import InputError

LOCAL = {"window": 100, "mixing": "1/20"}


def by_hand(kernels, q):
    """The quantile of steps that are convolved one by one."""
    total = np.array([1.0])
    for kernel, a in kernels:
        step = a * kernel / kernel.sum()
        step[0] += 1 - a
        total = np.convolve(total, step)
    return 1 + int(np.argmax(np.cumsum(total) >= q))


def test_the_windows_of_the_rule_of_thumb():
    found = field(layers=[LOCAL] * 100)
    assert (found.tokens, round(found.rule)) == (588, 154)
    assert found.tokens == field("window", 100, w=100, mixing="1/20").tokens
    assert found.rule == field("window", 100, w=100, mixing="1/20").rule
    assert field("-n/8", 4).rule is None and field(layers=[LOCAL, {"window": 9}]).rule is None


@pytest.mark.parametrize("q", ["1/2", "9/10", "99/100"])
def test_unlike_layers_are_convolved_one_after_the_other(q):
    layers = [{"window": 40}, "-n/4", {"mechanism": "-n/16", "window": 9, "mixing": 1}, "-n/4"]
    at = np.arange(600.0)
    kernels = [
        (np.ones(40), 0.4),
        (np.exp(-at / 4), 0.4),
        (np.exp(-at[:9] / 16), 1.0),
        (np.exp(-at / 4), 0.4),
    ]
    found = field(layers=layers, q=q)
    assert found.tokens == by_hand(kernels, float(sympy.Rational(q))) and found.layers == 4
    assert found.tokens == field(layers=layers[::-1], q=q).tokens
    assert found.mixing is found.rule is found.formula is None


def test_a_free_layer_needs_its_row_and_looks_across_it(refusal):
    refusal("give length", field, layers=[{"window": 64}, "nope"])
    hybrid = [*[{"mechanism": "rope", "window": 64}] * 3, "rope"]
    far = field(layers=hybrid, length=2048)
    near = field(layers=hybrid[:3] * 2, length=2048)
    assert near.tokens < 384 < 1900 < far.tokens <= 2048
    assert field(layers=["alibi", ["-n/2", "-n/4"]]).status == "exact"


def test_sinks_take_their_share_to_the_beginning_of_the_row(refusal):
    for window, row, keys in ((64, 64, 64), (12, 14, 14), (12, 64, 16), (2, 3, 3)):
        near = field(layers=[{"window": window, "sinks": 4, "mixing": 1}], length=row, q="1/9")
        assert near.sunk == pytest.approx(min(4, row) / keys)
    free = field(layers=[{"mechanism": "-n/8", "sinks": 4, "mixing": 1}], length=64, q="1/2")
    weights = np.exp(-np.arange(64) / 8)
    assert free.sunk == pytest.approx(weights[60:].sum() / weights.sum())
    assert free.tokens == 1 + int(np.argmax(weights.cumsum() >= weights.sum() / 2))
    one = field(layers=[{"window": 12, "sinks": 4, "mixing": 1}], length=512, q="7/10")
    assert one.sunk == pytest.approx(4 / 16) and one.tokens == 12
    assert field(layers=[{"window": 12, "sinks": 4, "mixing": 1}], length=512).tokens == 512
    two = field(layers=[{"window": 12, "sinks": 4, "mixing": "1/2"}] * 2, length=512)
    assert two.sunk == pytest.approx(1 - (1 - 1 / 8) ** 2)
    refusal("attention sinks are its first keys", field, layers=[{"window": 12, "sinks": 4}])


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("where(n<64,-n/8,-oo)", 64),
        ("where(n<=63,0,-oo)", 64),
        ("-n/8", None),
        ("where(n<64,0,-n)", None),
        ("Piecewise((0, n < 64), (-1, n < 70), (-oo, True))", None),
        ("where(2*n+sin(n)<9,0,-oo)", None),
        ("where(n<sqrt(70),0,-oo)", None),
        ("where(n%2<1,0,-oo)", None),
        ("where(n%3==0,0,-oo)", None),
        ("where(n>=0,-n,-oo)", None),
    ],
)
def test_the_keys_of_a_window_are_read_from_its_bias(text, keys):
    assert _window_of(encoding(text).formula) == keys


@pytest.mark.parametrize(
    ("q", "whole", "sunk", "found"),
    [  # of a mass of 1/2, 1/4, 1/8 at the first three distances
        (0.5, True, 0, (1, 0)),
        (0.9, True, 0, (3, 2)),
        (0.5, True, 0.125, (1, 0)),
        (0.75, True, 0.125, (2, 1)),
        (0.875, True, 0.125, (3, 2)),
        (0.9, True, 0.125, (3, 0)),
        (0.9, False, 0, (None, 2)),
        (0.875, False, 0, (3, 2)),
        (0.8, False, 0, (3, 1)),
        (0.75, False, 0, (2, 1)),
    ],
)
def test_a_quantile_is_that_of_the_row_or_of_the_whole_mass(q, whole, sunk, found):
    assert _quantile(np.array([0.5, 0.75, 0.875]), q, whole, sunk) == found


def test_a_bracket_of_several_heads_holds_that_of_each():
    several, wide, narrow = (
        field(f, 3).bracket
        for f in ("[-6/5*log(1+n); -5/4*log(1+n)]", "-6/5*log(1+n)", "-5/4*log(1+n)")
    )
    assert (several.low, several.high) == (narrow.low, wide.high) != (wide.low, narrow.high)
    assert 1 < narrow.low < wide.low and 3 * narrow.low < narrow.high <= 3 * narrow.low + 4


@pytest.mark.parametrize(
    ("layers", "options", "why"),
    [
        (["-n"], {"f": "-n"}, "takes no formula"),
        (["-n"], {"a": 3}, "takes no formula"),
        (10_001, {"f": "-n"}, "layers"),
        (0, {"f": "-n"}, "layers"),
    ],
)
def test_layers_are_a_number_or_a_list_of_all(refusal, layers, options, why):
    refusal(why, field, layers=layers, length=64, **options)


def test_a_step_that_is_seldom_taken_leaves_one_token():
    found = field("-n", 1, mixing="1/10000000000", q="0.999999999")
    assert found.bracket == Bracket(1, 1) and found.span() == (1, 1)


@pytest.mark.parametrize(
    ("why", "said"), [(Unreachable("hard"), InputError), (OutOfTime(), OutOfTime)]
)
def test_a_sum_out_of_reach_is_refused_and_one_out_of_time_is_not(why, said):
    def total():
        raise why

    with pytest.raises(said) as raised:
        total_of(types.SimpleNamespace(total=total))
    assert raised.value is why or "no sum in reach: hard" in str(raised.value)


def test_as_many_layers_are_read_as_a_model_may_have(monkeypatch, refusal):
    assert field("where(n<1,0,-oo)", 10_000).layers == 10_000
    monkeypatch.setattr("farfield.numerics.depth.MAX_LAYERS", 3)
    assert field(layers=["where(n<1,0,-oo)"] * 3).tokens == 1
    refusal("takes no formula", field, layers=["-n"] * 4)


@pytest.mark.parametrize(
    ("layers", "why"),
    [
        ([{"window": 0}], "window"),
        ([{"windw": 3}], "accepted: mechanism, window, sinks, mixing"),
        ([{"window": 4, "scale": 2}], "has 'scale'"),
        (["t5x"], "neither an encoding nor a formula"),
        (["fox"], "has no kernel by distance"),
        ([], "has every layer"),
    ],
)
def test_a_layer_that_says_nothing_is_refused(refusal, layers, why):
    refusal(why, field, layers=layers, length=64)


def test_the_command(run, complaint):
    code, out, _ = run("trf", "--layer", "{window = 100} x100", "--mixing", "1/20", "--json")
    found = json.loads(out)
    assert (code, found["tokens"], round(found["rule"])) == (0, 588, 154)
    assert "accepted alone" in complaint("trf", "-n", "--layer", "{window = 100}")
