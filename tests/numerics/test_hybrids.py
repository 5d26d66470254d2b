"""A model of unlike layers: how far influence comes, against convolutions by hand."""

import json

import numpy as np
import pytest
import sympy

from farfield import layered_receptive_field as field

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
    assert found.mixing is None and found.rule is None


def test_a_free_layer_needs_its_row_and_looks_across_it(refusal):
    refusal("give length", field, layers=[{"window": 64}, "nope"])
    hybrid = [*[{"mechanism": "rope", "window": 64}] * 3, "rope"]
    far = field(layers=hybrid, length=2048)
    near = field(layers=hybrid[:3] * 2, length=2048)
    assert near.tokens < 384 < 1900 < far.tokens <= 2048
    assert field(layers=["alibi", ["-n/2", "-n/4"]]).status == "exact"


def test_sinks_take_their_share_to_the_beginning_of_the_row(refusal):
    one = field(layers=[{"window": 12, "sinks": 4, "mixing": 1}], length=512, q="7/10")
    assert one.sunk == pytest.approx(4 / 16) and one.tokens == 12
    assert field(layers=[{"window": 12, "sinks": 4, "mixing": 1}], length=512).tokens == 512
    two = field(layers=[{"window": 12, "sinks": 4, "mixing": "1/2"}] * 2, length=512)
    assert two.sunk == pytest.approx(1 - (1 - 1 / 8) ** 2)
    refusal("attention sinks are its first keys", field, layers=[{"window": 12, "sinks": 4}])


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
