"""The additive biases of families, beside their papers' slopes; the factors of finished runs."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import sympy
import torch
from safetensors.torch import save_file

from farfield.theory.functions.nodes import n
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Run, ScaleSettings
from farfield.validation.models.biases import with_bias
from farfield.validation.models.finished_run import _outline, _temper
from farfield.validation.models.outline import LayerOutline, ModelOutline, Rotary

Some = SimpleNamespace


def model(heads, layers=1, **more):
    layer = LayerOutline(heads=heads, key_heads=1, head_size=16, rotation=Rotary(16, 1e4))
    return ModelOutline(Path("/nowhere/small"), "toy", (layer,) * layers, notes=("one",), **more)


def mpt(most=8, **more):
    usual = {"alibi": True, "qk_ln": False, "prefix_lm": False, "alibi_bias_max": most}
    return Some(model_type="mpt", attn_config=Some(**usual | more))


def powers(*exponents):
    return [sympy.Integer(2) ** -sympy.Rational(x) for x in exponents]


BLOOM, FALCON = Some(model_type="bloom"), Some(model_type="falcon", alibi=True)
EVEN_FIRST = {8: [2, 4, 6, 8, 1, 3], 12: [3, 6, 9, 12, "3/2", "9/2"]}
SLOPES = [
    (BLOOM, 6, powers(*EVEN_FIRST[8]), "rounds slope times position"),
    (FALCON, 2, [slope / 4 for slope in powers(4, 8)], "to bfloat16 at every position"),
    (mpt(), 6, powers(*EVEN_FIRST[8]), ""),
    (mpt(12), 6, powers(*EVEN_FIRST[12]), "alibi_bias_max 12, as configured; .* computes with 8 "),
    (mpt(64), 4, powers(16, 32, 48, 64), "alibi_bias_max 64, as"),
    (mpt(1), 1, powers(1), "alibi_bias_max 1, as"),
]


@pytest.mark.parametrize(("text", "heads", "slopes", "note"), SLOPES)
def test_the_slopes_of_a_family(text, heads, slopes, note):
    found = with_bias(model(heads, 2), text)
    for layer in found.layers:
        assert [*layer.encoding.biases] == [-slope * n for slope in slopes]
        assert (layer.positions, layer.rotation) == ("bias", None)
    own = {
        "bloom": "Press",
        "falcon": "Falcon: ALiBi divided by sqrt",
        "mpt": "MPT: ALiBi, exponents",
    }
    assert found.layers[0].encoding.source.startswith(own[text.model_type])
    assert re.fullmatch(f"one(;.*{note}.*)?", ";".join(found.notes))
    assert len(found.notes) == 1 + bool(note)


def test_what_is_no_bias_by_distance_is_refused(refusal):
    plain = model(2)
    assert with_bias(plain, Some(model_type="falcon", alibi=False)) is plain
    for name, value in (("alibi", False), ("qk_ln", True), ("prefix_lm", True)):
        told = f"has {name} {value}; accepted: {not value}"
        refusal(told, with_bias, plain, mpt(**{name: value}))
    for most in (0, 65, True, 1.5, None):
        refusal(f"alibi_bias_max {most}; accepted: a whole", with_bias, plain, mpt(most))


def t5(buckets=8, farthest=20, kind="umt5"):
    names = {"relative_attention_num_buckets": buckets, "relative_attention_max_distance": farthest}
    return Some(model_type=kind, **names)


def test_a_table_of_each_layer_is_its_own_in_umt5(refusal, tmp_path):
    name = "decoder.block.{}.layer.0.SelfAttention.relative_attention_bias.weight"
    names = [f"{prefix}language_model.{name}".format(k) for k, prefix in enumerate(("", "model."))]
    tables = {name: torch.arange(16.0).reshape(8, 2) + 100 * k for k, name in enumerate(names)}
    save_file(tables, tmp_path / "model.safetensors")
    for kind, firsts in (("umt5", [[0, 1], [100, 101]]), ("t5", [[0, 1], [0, 1]])):
        whole = ModelOutline(tmp_path, kind, model(2, 2).layers)
        found = with_bias(whole, t5(kind=kind))
        assert [[*layer.encoding.bias([0])[:, 0]] for layer in found.layers] == firsts
        assert [*found.layers[0].encoding.bias([10**6])[:, 0]] == [14, 15]
        assert found.notes == ("the logits are not divided by sqrt(head size)",)
        assert {o.encoding.source for o in found.layers} == {
            "table of 8 learned values a head, read from the weights"
        }
    wide = ModelOutline(tmp_path, "t5", model(3).layers)
    refusal(r"a table of shape \(8, 2\); accepted: \(8, 3\)", with_bias, wide, t5())
    refusal(r"has a table of shape \(8, 2\)", with_bias, whole, t5(2, 2))
    for buckets, farthest in ((0, 20), (2001, 5000), (8, 4), (8, (1 << 14) + 1)):
        refusal(
            f"{buckets} buckets to distance {farthest}", with_bias, whole, t5(buckets, farthest)
        )
    assert with_bias(whole, t5(8, 5)) and with_bias(whole, t5(8, 1 << 14))
    save_file({"x": torch.zeros(1)}, tmp_path / "model.safetensors")
    refusal("lacks 'decoder.block.0.layer.0.*accepted: a model with enc", with_bias, whole, t5())


TEMPERS = [
    (None, ""),
    (ScaleSettings(when="training"), ""),
    (ScaleSettings(), "log(i)/log(64)"),
    (ScaleSettings(length=9), "log(i)/log(9)"),
    (ScaleSettings(when="inference"), "max(1, log(i)/log(64))"),
    (ScaleSettings(heads=(1, 2, 4)), "log(i)/log(64) in heads 1 to 2, 4"),
    (ScaleSettings(form="1 + a log", a=0.2), "1 + 0.2 log(1 + floor(i/64))"),
    (ScaleSettings(form="1 + a log", heads=(2,)), "1 + 0.1 log(1 + floor(i/64)) in heads 2"),
]


@pytest.mark.parametrize(("scale", "said"), TEMPERS)
def test_the_factor_of_a_run(scale, said):
    assert _temper(scale, 64) == said


@pytest.mark.parametrize(
    ("asked", "rotation"),
    [
        ({"share": 0.5, "base": 500.0, "window": 5, "sinks": True}, Rotary(6, 500.0)),
        ({"share": 0.4}, Rotary(4, 10_000.0)),
        ({"mechanism": "xpos"}, Rotary(12, 10_000.0, "xpos")),
        ({"scaling": 4.0}, Rotary(12, 10_000.0, "linear", note="all angles divided by 4")),
    ],
)
def test_the_rotation_of_a_run_is_that_of_its_settings(asked, rotation):
    layers = {"label": "own", "layers": [{"mechanism": "rope"} | asked]}
    net = model_of(Run(encoding=layers, layers=1, width=48, heads=4, length=12))
    found = _outline(net, net.layers[0], None)
    assert (found.rotation, found.positions) == (rotation, "rotation")
    assert (found.width, found.sink) == (asked.get("window"), "sinks" in asked)
    assert (found.heads, found.key_heads, found.head_size, found.cached) == (4, 4, 12, 96)
