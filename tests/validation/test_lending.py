"""Which far keys a model can use: forecast with the logits that measured models lend."""

import json

import numpy as np
import pytest
import torch

from farfield import forecast
from farfield.cli import main
from farfield.theory.answers.answer import InputError
from farfield.validation.harness.configuration import read_layers
from farfield.validation.harness.mechanism import LayerMechanism, Scale
from farfield.validation.harness.model import Layer
from farfield.validation.reference.lending import (
    Hybrid,
    keep_logits,
    lenders,
    read_logits,
    use_of,
)

LOCAL = ["-n/2", "-n", "-n", "-2*n"]
ASK = {"trained": 64, "tested": 1024}


def test_the_forecast_is_the_prediction_that_the_run_was_given():
    """From 128 of its rows, where all 768 made the committed prediction."""
    name = "local, then free, 64, 0"
    (said,) = (one["predicted"] for one in lenders() if one["name"] == name)
    found = forecast(None, layers=[LOCAL, "0"], **ASK)
    known = dict(found.attention)
    longest = [row for row in said if row["length"] == 1024]
    assert max(abs(known[row["distance"]] - row["attention"]) for row in longest) < 0.05
    assert found.use == name and found.holds is None and found.status == "unknown"


def test_arrays_of_ones_own_give_the_law_in_closed_form():
    """All others at 0 and the target at g: the attention is the logistic function of g - price."""
    logits = {"target": np.full(2, 7.0), "others": np.zeros((2, 8))}
    found = forecast("-n/100", layers=2, heads=4, use=logits, **ASK)
    row = np.exp(-np.arange(1024) / 100)
    for d, share in found.attention:
        mine = row[d] * np.exp(7)
        assert share == pytest.approx(mine / (mine + row.sum() - row[d]), rel=1e-9)
    assert found.reach == max(d for d, share in found.attention if share >= 0.5)
    assert found.use == "the arrays given"


def test_a_window_ends_what_is_reached():
    logits = {"target": np.full(2, 30.0), "others": np.zeros((2, 8))}
    layers = [LOCAL, {"mechanism": "0", "window": 64}]
    assert forecast(None, layers=layers, use=logits, **ASK).reach == 63


def test_where_the_nearest_model_failed_nothing_is_forecast_of_use():
    assert any(not one["learned"] for one in lenders())
    found = forecast(None, layers=["alibi", "0"], **ASK)
    assert found.attention == () and "does not find the key even" in found.use


@pytest.mark.parametrize(
    ("layers", "options", "why"),
    [
        ([LOCAL, "0", "0"], {}, "no model of 3 layers was measured on rows of 64 tokens"),
        ([LOCAL, "0"], {"trained": 100}, "no model of 2 layers was measured on rows of 100"),
        ([LOCAL, "0"], {"tested": 2048}, "the evidence ends at 16 times"),
        (["-5*n", "-3*n"], {}, "no measured model is near"),
    ],
)
def test_beyond_what_was_measured_the_reason_is_said(layers, options, why):
    found = forecast(None, layers=layers, **{**ASK, **options})
    assert found.attention == () and found.reach is None and why in found.use


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"f": None, "layers": 4}, "a bias and a number of layers"),
        ({"f": "-n", "layers": ["0", "0"]}, "a bias and a number of layers"),
        ({"f": None, "layers": [LOCAL, "0"], "use": "nobody"}, "none of the"),
        ({"f": None, "layers": [LOCAL, "0"], "use": {"target": [1.0]}}, "accepted are target"),
        ({"f": None, "layers": [LOCAL, ["-n", "0"]]}, "layer 2: 2 biases; accepted are 1 or 4"),
        ({"f": None, "layers": [{"mechanism": "rope", "window": 65}, "0"]}, "layer 1: window 65"),
        ({"f": None, "layers": []}, "layers is an empty list"),
        ({"f": None, "layers": ["-n", "0"], "use": {}}, "use has nothing; accepted are target"),
        (
            {"f": None, "layers": np.array(["-n", "0"])},
            "layers .* is not a number; accepted: a whole .*, or a list with one entry a layer",
        ),
        ({"f": None, "layers": iter(["-n"])}, "accepted: .* or a list with one entry a layer"),
        (
            {"f": None, "layers": "-n/8"},
            "layers '-n/8' is not a number; .* such as \\['-n/8', '0'\\]",
        ),
        ({"f": None, "layers": [b"0"]}, "layer 1: .*mechanism: b'0' is no formula; accepted: a"),
        ({"f": None, "layers": ["0", ["-n", 2]]}, r"layer 2: .*\['-n', 2\] is no formula"),
        ({"f": None, "layers": ["-n", "0"], "use": []}, "none of the .* measured runs"),
    ],
)
def test_what_contradicts_itself_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        forecast(**given, **ASK)


def test_the_verb(capsys):
    words = ["forecast", "--layer", "[-n/2; -n; -n; -2*n]", "--layer", "0"]
    with pytest.raises(SystemExit, match="1"):
        main([*words, "--trained", "64", "--tested", "1k", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["use"] == "local, then free, 64, 0" and found["attention"]
    with pytest.raises(SystemExit, match="2"):
        main([*words, "-n", "--trained", "64", "--tested", "1k"])
    assert "beside --layer" in capsys.readouterr().err


def test_a_layer_may_begin_with_a_minus(capsys):
    with pytest.raises(SystemExit):
        main(["forecast", "--layer", "-n/8", "--layer", "0", "--trained", "64", "--tested", "1k"])
    assert capsys.readouterr().out.startswith("-n/8, then 0: ")


def test_rows_are_kept_evenly_and_to_a_part_in_30000(tmp_path):
    rng = np.random.default_rng(0)
    logits = {"target": rng.normal(50, 9, 300), "others": rng.normal(0, 9, (300, 6))}
    keep_logits(logits, tmp_path / "kept.npz")
    top = max(np.abs(v[::2]).max() for v in logits.values())
    for name, values in read_logits(tmp_path / "kept.npz").items():
        assert np.abs(values - logits[name][::2]).max() <= top / 65534 * (1 + 1e-9)


@pytest.mark.parametrize("when", ["both", "inference"])
@pytest.mark.parametrize("form", ["log", "1 + a log"])
def test_the_scale_is_the_factor_of_the_model(form, when):
    scale = Scale(form, 0.3, 8, when)
    layer = Layer(2, 1, LayerMechanism(scale=scale)).eval()
    found = layer._scaled(torch.ones(1, 1, 1000, 1), 1000, scale).flatten().tolist()
    assert [scale.at(keys, 64) for keys in range(1, 1001)] == pytest.approx(found, rel=1e-6)


def test_scaled_logits_are_scaled_by_the_length():
    plan = [LOCAL, {"mechanism": "0", "scale": {"form": "log", "when": "inference"}}]
    logits = {"target": np.full(2, 8.0), "others": np.zeros((2, 8))}
    for layers, more in ((plan, np.log(1024) / np.log(64)), ([LOCAL, "0"], 1.0)):
        asked = Hybrid.of(read_layers(layers, 4), 4)
        share = dict(use_of(asked, 64, 1024, logits)["attention"])[500]
        assert share == pytest.approx(1 / (1 + 1023 * np.exp(-8 * more)), rel=1e-9)
