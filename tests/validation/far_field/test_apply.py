"""The live model under a setting: what it generates is what a whole row says."""

from types import SimpleNamespace

import pytest
import torch

import farfield
from farfield.theory.answers.answer import Status
from farfield.theory.answers.errors import InputError
from farfield.validation.far_field import apply as module
from farfield.validation.far_field.mend import Mending
from farfield.validation.far_field.rotary import applied, settings_of
from farfield.validation.models.folder import describe
from farfield.validation.models.network import scores_at
from farfield.validation.models.opened import network_of, open_model
from farfield.validation.models.repairs import Repair, Repaired

TRAINED, TO = 32, 80


@pytest.fixture(scope="module")
def model(small_llama):
    return small_llama(max_position_embeddings=TRAINED)


@pytest.fixture(scope="module")
def network(model):
    return network_of(open_model(describe(model)))


EACH = [
    *(("YaRN 2.5", "NTK-aware 2.5", "linear 2.5", "Llama 3 2.5", "log scale")),
    Repair(group=(4, 8)),
    Repair(group=(3, 30)),
    Repair(window=16),
    Repair(window=16, sinks=3),
    Repair(window=16, sinks=3, in_cache=True),
    Repair(graft=(2, 16)),
    Repair(graft=(2, 8), window=32),
]


def repair_of(model, setting):
    known = {s.name: s for s in settings_of(model.config, TRAINED, TO)}
    return known[setting] if isinstance(setting, str) else setting


def said(network, repair, row):
    with applied(network.network, repair):
        return scores_at(Repaired(network, repair), row, torch.arange(row.shape[1]), row.shape[1])


@pytest.mark.parametrize("setting", EACH, ids=str)
def test_each_token_sees_what_it_sees_in_a_whole_row(model, network, setting, monkeypatch):
    """Read as a whole, in two parts, and token by token through the cache; 7 queries at a time."""
    monkeypatch.setattr(module, "QUERIES", 7)
    row = torch.randint(97, (1, TO), generator=torch.manual_seed(1))
    whole = said(network, repair_of(model, setting), row)
    with farfield.apply(model, setting, to=TO) as live, torch.no_grad():
        once = live(row).logits
        cache, parts = None, []
        for part in (row[:, :20], row[:, 20:50], *row[:, 50:].split(1, 1)):
            out = live(part, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            parts.append(out.logits)
    assert torch.allclose(once, whole, atol=2e-3)
    assert torch.allclose(torch.cat(parts, 1), whole, atol=2e-3)


def test_a_setting_is_gone_afterwards_also_after_an_error(model):
    row = torch.arange(60)[None]
    before, name = model(row).logits, model.config._attn_implementation
    for setting in ("YaRN 2.5", "Self-Extend, groups of 4 from 8"):
        with pytest.raises(KeyError), farfield.apply(model, setting, to=TO) as live:
            assert not torch.allclose(live(row).logits, before, atol=1e-3)
            raise KeyError
        assert torch.equal(model(row).logits, before)
        assert model.config._attn_implementation == name


def test_a_part_of_a_head_that_is_not_turned_stays(outside_models):
    model = outside_models.network("phi")
    network, repair = network_of(open_model(describe(model))), Repair(group=(4, 8))
    row = torch.randint(97, (1, 60), generator=torch.manual_seed(1))
    with farfield.apply(model, repair) as live, torch.no_grad():
        assert torch.allclose(live(row).logits, said(network, repair, row), atol=2e-3)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("YaRN 7", "setting 'YaRN 7'; accepted with to=80: 'window 32', .*'YaRN 2.5'"),
        ("text cut to 32", "cut the tokens before the model reads them"),
        ("Self-Extend, groups of 0 from 8", "setting 'Self-Extend, groups of 0 from 8'; accepted"),
        ("groups of 4 from 8", "setting 'groups of 4 from 8'; accepted"),
        ("Self-Extend, groups of 4", "setting 'Self-Extend, groups of 4'; accepted"),
    ],
)
def test_what_cannot_be_applied_is_refused_in_a_line(refusal, model, setting, message):
    refusal(message, entered, model, setting, TO)


def entered(model, setting, to=None):
    """The name of the attention under a setting."""
    with farfield.apply(model, setting, to=to):
        return model.config._attn_implementation


def test_models_that_no_setting_reaches_are_refused_in_a_line(refusal, outside_models, small_llama):
    """Keys in the cache are moved by the one rotation of a model, which no row changes."""
    gpt = outside_models.network("gpt2")
    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    dynamic = small_llama(max_position_embeddings=TRAINED, rope_parameters=rope)
    kept, grouped = Repair(window=16, sinks=3, in_cache=True), Repair(group=(4, 8))
    for other in (gpt, dynamic):
        plain = other.config._attn_implementation
        for moving in (kept, grouped):
            refusal("moves keys in the cache; accepted are models", entered, other, moving)
        for still in (Repair(window=16, sinks=3), Repair(window=16), Repair(graft=(2, 8))):
            assert entered(other, still) == module.NAME != plain
    assert entered(gpt, Repair()) == gpt.config._attn_implementation
    for other in (object(), SimpleNamespace(config=None), SimpleNamespace(config=dynamic.config)):
        refusal("is no live model; accepted", entered, other, "YaRN 2.5", TO)


def test_an_answer_of_mend_is_its_best_change_at_its_length(model):
    made = {"status": Status.ENCLOSED, "to": TO, "length": 32, "trained": TRAINED, "rows": ()}
    made |= {"log_ratio": 1.0, "advice": "", "encoding": (), "window": None}
    known = {s.name: s for s in settings_of(model.config, TRAINED, TO)}
    for name in ("YaRN 2.5", "log scale"):
        assert module._setting(model, Mending(best=name, **made), None) == known[name]
    assert module._setting(model, "none", None) == Repair()
    plain = model.config._attn_implementation
    assert entered(model, "YaRN 2.5", TO) == plain != entered(model, "log scale", TO)


def test_a_layer_whose_logits_are_bounded_is_refused(refusal):
    x = torch.zeros(1, 2, 3, 4)
    layer, hook = torch.nn.Linear(1, 1), module._Applied(Repair(), TRAINED, None)
    refusal("bounds its logits", hook.attention, layer, x, x, x, None, softcap=30.0)
    q, k, v = torch.randn(3, 1, 2, 9, 4, generator=torch.manual_seed(3)).unbind()
    for scale in (None, 0.25):
        found, _ = hook.attention(layer, q[:, :, 4:], k, v, None, scaling=scale)
        mask = torch.ones(9, 9, dtype=torch.bool).tril()[4:]
        wanted = torch.nn.functional.scaled_dot_product_attention(
            q[:, :, 4:], k, v, attn_mask=mask, scale=scale
        )
        assert torch.allclose(found, wanted.transpose(1, 2), atol=1e-5)


def test_rows_that_are_padded_are_refused(model):
    row, mask = torch.arange(40)[None], torch.ones(1, 40, dtype=torch.long)
    mask[0, :5] = 0
    grouped, refused = Repair(group=(4, 8)), pytest.raises(InputError, match="without padding")
    with farfield.apply(model, grouped) as live, refused:
        live.generate(row, attention_mask=mask, max_new_tokens=2, eos_token_id=None)
