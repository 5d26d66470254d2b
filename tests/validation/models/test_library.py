"""Laws of the far field on models of the library transformers, small and random."""

import math
from types import SimpleNamespace

import pytest
import torch

from farfield.numerics.masks import CAUSAL, Mask
from farfield.validation.far_field.long_rows import Sampling, Stages, far_losses
from farfield.validation.harness.measure import token_losses
from farfield.validation.models.folder import describe
from farfield.validation.models.library_network import _hooked
from farfield.validation.models.network import losses, nats
from farfield.validation.models.opened import network_of, open_model
from farfield.validation.models.repairs import Repair, Repaired

transformers = pytest.importorskip("transformers")
SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
}
YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "rope_theta": 1e4,
    "original_max_position_embeddings": 64,
}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
MODELS = {
    "grouped heads": ("llama", {"num_key_value_heads": 2}),
    "yarn": ("llama", {"rope_parameters": YARN}),
    "rotated in part": ("gpt_neox", {}),
    "rotations by layer": (
        "gemma3_text",
        {
            "num_key_value_heads": 2,
            "head_dim": 8,
            "sliding_window": 12,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "window": ("mistral", {"sliding_window": 12, "num_key_value_heads": 2}),
    "alibi": ("bloom", {"n_layer": 2, "n_head": 4}),
    "absolute": ("gpt2", {"n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 256}),
    "bounded logits": (
        "gemma2",
        {
            "num_key_value_heads": 2,
            "head_dim": 8,
            "sliding_window": 12,
            "attn_logit_softcapping": 1.5,
        },
    ),
    "sinks": (
        "gpt_oss",
        {"num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 4, "sliding_window": 12},
    ),
}
ROW, LAST = 16, 4


def a_model(path, kind, more):
    own = {} if "n_head" in more else SIZES
    config = transformers.CONFIG_MAPPING[kind](
        **({"vocab_size": 64, "hidden_size": 32} | own | more)
    )
    torch.manual_seed(0)
    network = transformers.AutoModelForCausalLM.from_config(config)
    for name, weight in network.named_parameters():
        if weight.dim() > 1 or "sinks" in name:
            torch.nn.init.normal_(weight, std=0.3)
    network.save_pretrained(path)
    return open_model(describe(path))


@pytest.fixture(scope="module", params=MODELS)
def opened(request, tmp_path_factory):
    kind, more = MODELS[request.param]
    return a_model(tmp_path_factory.mktemp(kind), kind, more)


@pytest.fixture(scope="module")
def text():
    return torch.randint(0, 64, (6 * ROW + 1,), generator=torch.Generator().manual_seed(3))


def of_library(opened, rows, view=CAUSAL):
    return torch.from_numpy(token_losses(opened, rows.numpy(), view, LAST))


def test_grouped_positions_are_those_that_the_paper_prints(tmp_path):
    """Each logit by itself, from a query that is turned by the relative position of the paper."""
    kind, more = MODELS["grouped heads"]
    network = network_of(a_model(tmp_path, kind, more))
    size, near, row = 3, 5, torch.randint(64, (1, 25), generator=torch.manual_seed(0))
    i = torch.arange(24)
    n = i[:, None] - i
    n = torch.where(n < near, n, i[:, None] // size + near - near // size - i // size)

    def attend(layer, q, k, v):
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        turned = [network.query(layer, q, of_key.clamp(min=0)) for of_key in n.T]
        logits = [
            q @ network.key(layer, k[:, :, j : j + 1], i[:1], 0).mT for j, q in enumerate(turned)
        ]
        weights = torch.cat(logits, -1).masked_fill(i[:, None] < i, -math.inf).softmax(-1)
        return weights @ v

    expected = nats(network.scores(row[:, :-1], i, 4, attend), row)
    assert torch.allclose(losses(Repaired(network, Repair(group=(size, near))), row, 4), expected)
    assert not torch.allclose(losses(network, row, 4), expected, rtol=1e-3)


@pytest.mark.parametrize("growth", (2, math.inf))
def test_the_second_row_of_a_text_at_twice_the_length_is_exact(opened, text, growth):
    rows = text.unfold(0, ROW + 1, ROW)
    far = far_losses(network_of(opened), rows, [2 * ROW], Sampling(8, growth), LAST)
    long = text[None, : 2 * ROW + 1]
    assert torch.allclose(far[ROW], of_library(opened, rows)[1:], atol=1e-3)
    assert torch.allclose(far[2 * ROW][0], of_library(opened, long)[0], atol=1e-3)


def test_the_third_row_of_a_text_at_thrice_the_length_is_exact(tmp_path, text):
    """The row before it is the second one."""
    kind, more = MODELS["grouped heads"]
    opened, rows = a_model(tmp_path, kind, more | {"num_hidden_layers": 1}), text.unfold(0, 17, 16)
    far = far_losses(network_of(opened), rows, [3 * ROW], Sampling(8, math.inf), LAST)
    long = text[None, : 3 * ROW + 1]
    assert torch.allclose(far[3 * ROW][1], of_library(opened, long)[0], atol=1e-3)


def test_keys_of_grouped_heads_are_kept_once(tmp_path, text):
    kind, more = MODELS["grouped heads"]
    opened = a_model(tmp_path, kind, more)
    stages = Stages(network_of(opened), text.unfold(0, ROW + 1, ROW), LAST, Sampling(8))
    stages.plain()
    stages.stage(1, [ROW, 4 * ROW])
    kept = [x for layer in stages.begun.first for x in layer] + [*stages.pools[1][0][:2]]
    assert {x.shape[1] for x in kept} == {more["num_key_value_heads"]}
    assert opened.network.config.num_attention_heads > more["num_key_value_heads"]


def test_logits_are_divided_by_the_root_of_the_head_size_where_the_library_says_nothing():
    given, x = [], torch.zeros(1, 2, 3, 16)
    network = SimpleNamespace(mixed=lambda *all_of: given.append(all_of[4]) or x)
    for scaling in (None, 0.5, 0.0):
        _hooked(SimpleNamespace(far_field=(network, 1)), x, x, x, None, scaling)
    assert given == [16**-0.5, 0.5, 0.0]


def test_a_window_is_the_view_of_the_library(opened, text, monkeypatch):
    if opened.model.kind == "bloom":  # it has no hook, and would say so
        monkeypatch.setattr(opened.network, "set_attn_implementation", pytest.fail)
    views = {
        Repair(): CAUSAL,
        Repair(window=7): Mask(7),
        Repair(window=7, sinks=2): Mask(7, sinks=2),
    }
    for repair, view in views.items():
        found = losses(Repaired(network_of(opened), repair), text[None], LAST)
        assert torch.allclose(found, of_library(opened, text[None], view), atol=1e-3)


def test_what_has_no_keys_is_refused_in_one_line(refusal, tmp_path):
    config = transformers.CONFIG_MAPPING["mamba"](
        vocab_size=64, hidden_size=32, num_hidden_layers=1, state_size=4
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    refusal("has no keys in layer 1", network_of, open_model(describe(tmp_path)))


def test_rotations_that_change_with_the_row_are_those_of_its_end(text, tmp_path):
    """Where every place is read; the rest sees a first row with the states of a short one."""
    more = {"rope_parameters": DYNAMIC, "max_position_embeddings": 24}
    opened = a_model(tmp_path, "llama", more)
    network, rows = network_of(opened), text.unfold(0, ROW + 1, ROW)
    assert torch.allclose(
        losses(network, text[None], LAST), of_library(opened, text[None]), atol=1e-3
    )
    stages = Stages(network, rows, LAST, Sampling(8))
    stages.plain()
    stages.stage(1, [ROW, 4 * ROW])
    at, long = torch.arange(4 * ROW), text[None, : 4 * ROW + 1]
    scores = stages.blocks(long[:, :-1], at, LAST, [ROW, 4 * ROW])
    assert torch.allclose(nats(scores, long), of_library(opened, long), atol=1e-3)
