"""What is noted of a run, and read from the notes: each part beside what is known of it."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.masking_utils import (
    and_masks,
    causal_mask_function,
    chunked_overlay,
    or_masks,
    sliding_window_causal_mask_function,
)

from farfield.validation.models import observed
from farfield.validation.models.observed import (
    LONG,
    SHORT,
    NotObserved,
    _all_of,
    _attending,
    _base,
    _both,
    _cache,
    _Call,
    _calls,
    _causal,
    _choices,
    _enter,
    _factor,
    _frequencies,
    _held,
    _Kept,
    _own_patterns,
    _picks,
    _positions,
    _positions_note,
    _read,
    _rope,
    _rotation,
    _rounded,
    _row,
    _source,
    _stops,
    _table,
    _Watch,
    _Zeros,
    attends,
    layer_of,
    pattern,
)
from farfield.validation.models.outline import LayerOutline, Rotary

Some = SimpleNamespace


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


# -- a run without values ------------------------------------------------------------------------


def test_numbers_that_are_not_there_are_zero_and_others_are_as_they_are():
    mask, here = meta(5, dtype=torch.bool), torch.tensor([[0.0, 3.0], [0.0, 4.0]])
    with _Zeros():
        assert (meta(1).item(), meta(1, dtype=torch.long).item()) == (0.0, 0)
        assert isinstance(meta(1, dtype=torch.long).item(), int) and not bool(mask[0])
        assert meta(4, 3).nonzero().shape == (0, 2) and meta(4).nonzero().dtype == torch.long
        assert meta(5, 3)[mask].shape == (5, 3)
        moved, double = meta(2, 3, dtype=torch.long).cpu(), meta(2).to("cpu", torch.float64)
        assert moved.equal(torch.zeros(2, 3, dtype=torch.long)) and double.dtype == torch.float64
        assert meta(2).to(torch.float64).device.type == "meta"
        assert here[1, 1].item() == 4 and here.nonzero().tolist() == [[0, 1], [1, 1]]
        assert here[torch.tensor([True, False])].equal(here[:1])
        assert here.to(torch.long, copy=True).tolist() == [[0, 3], [0, 4]]


@pytest.mark.parametrize(
    ("index", "whole"),
    [
        (torch.tensor([False, True, False]), True),
        (torch.tensor([[False, True]]), False),
        (torch.tensor([2, 0]), False),
        (None, False),
    ],
)
def test_a_mask_of_one_axis_takes_every_entry(index, whole):
    assert _all_of(index).tolist() == [0, 1, 2] if whole else _all_of(index) is index


# -- what a run notes ----------------------------------------------------------------------------


def test_a_mask_is_known_by_its_function():
    watch = _Watch()
    make, numbers = watch.make_mask(torch.bool), watch.make_mask(None)
    first = make(2, 3, torch.tensor(4), 0, mask_function=_both)
    second = numbers(2, 3, 4, dtype=torch.float64)
    assert (first.shape, first.dtype) == ((2, 1, 3, 4), torch.bool)
    assert (second.dtype, numbers(1, 1, 1).dtype) == (torch.float64, torch.float32)
    assert watch.mask_of(first) is watch.mask_of(first[:, :, :2]) is _both
    assert watch.mask_of(second) is _causal and watch.mask_of(None) is None
    assert watch.mask_of(torch.zeros(2)) is watch.mask_of(first.clone()) is False
    watch.masks.append((first, _causal))
    assert watch.mask_of(first) is _causal  # the newest one
    at = torch.arange(3)
    assert _causal(0, 0, at[:, None], at).equal(torch.ones(3, 3).tril().bool())
    assert (
        _both(0, 0, at[:, None] - 1, at - 1).tolist() == [[False] * 3] + [[False, True, True]] * 2
    )


def test_a_call_of_attention_is_noted():
    watch, module = _Watch(), Some(layer_idx=3)
    q, k, v = meta(1, 6, 5, 8), meta(1, 2, 7, 8), meta(1, 2, 7, 4)
    more = {"scaling": 0.25, "softcap": 30.0, "s_aux": meta(6)}
    out, none = watch.attend(module, q, k, v, torch.zeros(1), **more)
    assert out.shape == (1, 5, 6, 4) and none is None
    mask = watch.make_mask(None)(1, 5, 7, mask_function=_both)
    for given, how in ((None, {}), (mask, {}), (None, {"is_causal": False})):
        watch.attend(module, q, k, v, given, **how)
    watch.attend(Some(is_causal=False), q, k, v)
    shape = {"heads": 6, "key_heads": 2, "size": 8, "rows": 5, "keys": 7}
    told = [(3, False, 0.25, 30.0, True), (3, _causal, None, None, False)]
    told += [(3, _both, None, None, False)] * 2 + [(None, _both, None, None, False)]
    assert watch.calls == [
        _Call(layer=layer, mask=made, scaling=scaling, cap=cap, sink=sink, **shape)
        for layer, made, scaling, cap, sink in told
    ]
    with pytest.raises(NotObserved, match="2 heads of keys do not divide 3 heads"):
        watch.attend(module, q[:, :3], k, v)


def test_keys_that_are_chosen_are_counted_where_a_layer_attends():
    watch, scores = _Watch(), torch.arange(24.0).reshape(1, 4, 6)
    for layer, attending in ((None, True), (2, False)):
        watch.layer, watch.attending = layer, attending
        assert watch.choose(scores, 2)[1].tolist() == [[[5, 4]] * 4] and not watch.picks
    watch.attending = True
    assert watch.choose(scores, 3, 1)[0].shape == (1, 3, 6) and watch.picks == {2: (3, 4)}
    watch.tokens, watch.alike = SHORT + 1, False
    assert watch.choose(scores, 1).values.shape == (1, 4, 1) and watch.picks == {2: (1, 6)}
    watch.alike = True
    with pytest.raises(observed._Enough):
        watch.choose(scores, 5)
    assert watch.picks == {2: (5, 6)}


def test_what_turns_a_layer_is_the_newest_output_that_it_is_given():
    watch, (one, other) = _Watch(), (torch.zeros(2, 4) for _ in range(2))
    watch.turn(one)
    assert not watch.turned  # outside a layer
    watch.outputs += [(one, "first"), (other[:1], "second"), (one, "third")]
    for layer, given in enumerate([(3, [one]), (other[1:],), (one[1:],), (7, other)]):
        watch.layer = layer
        watch.turn(*given)
    assert watch.turned == {0: "third", 1: "second", 2: "third", 3: None}
    watch.layer = 0
    watch.turn(one.clone())
    assert watch.turned[0] == "third"


def test_a_row_is_given_as_the_network_takes_it():
    asked = []

    def network(**more):
        asked.append({k: v if v is True else (*v.shape, v.dtype) for k, v in more.items()})
        if more.get("use_cache"):
            raise TypeError
        return "out"

    row, longer = (1, 9, torch.long), (1, 12, torch.long)
    both = {"input_ids": longer, "decoder_input_ids": row}
    for encoder, ids in ((False, {"input_ids": row}), (True, both)):
        network.config = Some(is_encoder_decoder=encoder)
        assert _row(network, 9) == "out"
        assert asked[-2:] == [ids | {"use_cache": True}, ids]


def test_what_a_layer_of_a_cache_keeps():
    keys, values = meta(1, 2, SHORT, 8), meta(1, 2, SHORT, 4)
    index, states = meta(1, SHORT, 16), {"a": meta(1, 3, 5), "b": meta(1, 7)}
    layer = Some(keys=keys[:, :, :0], values=None, idx_keys=index, conv_states=states, seen=meta(3))
    layer.recurrent_states = (meta(2, 2), None, "x")
    assert _held(layer) == _Kept(0, 0, 16, 15 + 7 + 4, None)
    for width, stops in ((None, None), (5, 5), (6, 6), (100, 100)):
        kept = DynamicLayer() if width is None else DynamicSlidingWindowLayer(sliding_window=width)
        kept.update(keys, values)
        assert _held(kept) == _Kept(2, 2 * 8 + 2 * 4, 0, 0, stops)
        assert kept.get_seq_length() == SHORT  # asked of a copy
    for wrong in ({"other": keys}, {"idx_keys": index[:, 1:]}):
        with pytest.raises(NotObserved, match=f"keeps {min(wrong)}, of a form"):
            _held(Some(**wrong))
    assert _stops(Some()) is None is _stops(Some(keys=7))


NOTED = {
    "position_embeddings": (False, 9),
    "embed_positions": (False, 9),
    "wpe": (False, 9),
    "pos_emb": (False, 9),
    "pos": (False, 9),
    "relative_attention_bias": (True, None),
    "relative_position_embed": (False, 9),
    "position_bias": (True, None),
    "positive": (False, None),
    "proj": (False, None),
}


@pytest.mark.parametrize("name", NOTED)
def test_tables_of_positions_are_known_by_name(name):
    watch = _Watch()
    note = _positions_note(name, nn.Embedding(9, 4), watch)
    assert (note is None) == (name in ("positive", "proj"))
    if note is not None:
        note(None, (), {}, None)
    assert (watch.relative, *watch.tables) == tuple(x for x in NOTED[name] if x is not None)
    held = nn.Module()
    held.register_buffer("pos_enc", torch.zeros(2))
    _positions_note("proj", nn.ModuleList([held]), watch)
    assert not watch.held  # it is of the module within
    _positions_note("proj", held, watch)
    assert watch.held


class Made(nn.Module):
    """A rotation that a configuration makes: its frequencies and its factors, by name."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        for name, numbers in config.angles.items():
            self.register_buffer(name, torch.tensor(numbers))
        vars(self).update(config.factors)


TURNS = ("inv_freq", "original_inv_freq", "near_inv_freq")


def turns(**config):
    """A rotation of the library's form."""
    return Made(Some(angles={name: [1.0, 1.0] for name in TURNS}, factors={}, **config))


def test_a_rotation_is_noted_with_the_kind_of_layer_that_it_is_asked_for():
    watch, module, (a, b) = _Watch(), turns(), (torch.zeros(1), torch.ones(1))
    assert _frequencies(module) == ["inv_freq", "near_inv_freq"]
    note = _positions_note("rotary", module, watch)
    note(module, (a, "far"), {}, (a, b))
    note(module, (a,), {"layer_type": "near"}, b)
    note(module, (a,), {}, a)
    said = [(a, "far"), (b, "far"), (b, "near"), (a, "")]
    for (tensor, (by, kind)), (made, name) in zip(watch.outputs, said, strict=True):
        assert tensor is made and by is module and kind == name


def scaled(x, position_scale, scale, attention_mask=None):
    return x


def test_an_attention_is_known_by_its_name_and_its_mask():
    forwards = {"OwnAttention": scaled, "OwnAttn": scaled, "AttentionOfNoMask": len, "Turn": scaled}
    known = [type(name, (), {"forward": staticmethod(f)})() for name, f in forwards.items()]
    assert [*map(attends, known)] == [True, True, False, False]
    told = [Some(layer_idx=2), Some(layer_id=3), Some(layer_idx=0, layer_id=3), Some(layer_idx="1")]
    assert [*map(layer_of, [*told, Some()])] == [2, 3, 0, None, None]


def test_an_attention_that_is_entered_is_noted_with_its_mask_and_its_factors():
    watch, x = _Watch(), torch.zeros(1)
    mask = watch.make_mask(None)(1, 2, 3, mask_function=_both)
    module = Some(forward=scaled)
    _enter(watch, 4, False, module, (x, x, 1.0), {})
    assert (watch.layer, watch.attending, watch.given, watch.scaled) == (4, False, {}, set())
    for layer, args, named in (
        (1, (x, 2.0, 1.0), {"attention_mask": mask}),
        (2, (x,), {"position_scale": x, "scale": 1.0}),
        (3, (x, 2.0, 1.0, x), {}),
        (3, (x, 2.0, 1.0, mask), {}),
        (5, (x,), {}),
    ):
        _enter(watch, layer, True, module, args, named)
    assert (watch.layer, watch.attending, watch.scaled) == (5, True, {2})
    assert watch.given == {1: _both, 2: _causal, 3: False}


def test_the_cache_of_an_output_is_that_of_its_own_keys():
    cache, own = Some(layers=[1]), Some(layers=[2])
    both = Some(self_attention_cache=own)
    given = [Some(cache=None, past_key_values=cache), Some(cache=own, past_key_values=cache)]
    given += [Some(cache_params=cache), Some(past_key_values=both), Some()]
    assert [_cache(out) for out in given] == [cache, own, cache, own, None]
    for strange in (Some(state=1), Some(cache=Some()), Some(cache=cache, state=1)):
        with pytest.raises(NotObserved, match="state of a form"):
            _cache(strange)


# -- what was seen -------------------------------------------------------------------------------


def both_sides(before, after):
    return lambda batch, head, query, key: (key >= query - before) & (key <= query + after)


def chunks(size):
    return and_masks(chunked_overlay(size, torch.zeros(1, dtype=torch.long)), causal_mask_function)


def padded(left_padding):
    return lambda batch, head, query, key: key >= left_padding[batch]


WINDOWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 4095, 4096, 3 << 18)
PATTERNS = [
    *((sliding_window_causal_mask_function(w), (w, False, False)) for w in WINDOWS),
    *((both_sides(w, w), (2 * w + 1, True, False)) for w in (1, 3, 64)),
    (both_sides(5, 2), (8, True, False)),
    *((chunks(size), (size, False, True)) for size in (2, 3, 7, 8, 8192)),
    (causal_mask_function, (None, False, False)),
    (_both, (None, True, False)),
    (or_masks(sliding_window_causal_mask_function(9), _causal), (None, False, False)),
    (lambda batch, head, query, key: key == key, (None, True, False)),
    (lambda batch, head, query, key: key % 2 == query % 2, None),
    (lambda batch, head, query, key: key < query, None),
    (lambda batch, head, query, key: key >= query, None),
    (lambda batch, head, query, key: (key == query) & (query % 2 == 0), None),
    (lambda batch, head, query, key: (key <= query) & (key >= query - query % 7), (7, False, True)),
    (lambda batch, head, query, key: (key <= query + 1) & (key >= query - query % 7), None),
    (lambda batch, head, query, key: (key <= query) & (key >= query - query % 6 - 1), None),
    (lambda batch, head, query, key: 1 / 0, None),
    (and_masks(padded(meta(1, dtype=torch.long)), causal_mask_function), (None, False, False)),
]


@pytest.mark.parametrize(("function", "said"), PATTERNS)
def test_a_pattern_is_the_one_of_the_mask_function(function, said):
    assert pattern(function) == said


def call(layer=None, rows=SHORT, keys=SHORT, mask=_causal, **more):
    usual = {"heads": 4, "key_heads": 2, "size": 8, "scaling": None, "cap": None, "sink": False}
    return _Call(layer=layer, rows=rows, keys=keys, mask=mask, **usual | more)


def test_the_first_whole_call_of_each_layer_counts():
    a, b, c = call(0), call(1), call(0, heads=8)
    others = [call(2, rows=1), call(2, keys=9), call(2, rows=9, keys=9)]
    assert _calls(_Watch(calls=[*others, a, b, c]), 2) == {0: (0, a), 1: (1, b)}
    assert _calls(_Watch(calls=[a, b, c]), 3) == {0: (0, a), 1: (1, b), 2: (0, c)}
    plain = [call(), call(heads=8)]
    assert _calls(_Watch(calls=plain), 2) == {0: (0, plain[0]), 1: (1, plain[1])}


CHOICES = [
    (False, {}, {1: (2, 6), 4: (2, 6)}, [], LONG, (1, 4)),
    (True, {}, {1: (2, 6)}, [], LONG >> 3, (1,)),
    (False, {}, {}, [call(2), call(None)], LONG, (2, 0)),
    (False, {"is_heterogeneous": True}, {1: (2, 6)}, [], LONG, (7,)),
]


@pytest.mark.parametrize(("states", "config", "before", "calls", "tokens", "layers"), CHOICES)
def test_layers_choose_as_many_keys_of_a_long_row(
    states, config, before, calls, tokens, layers, monkeypatch
):
    """The first one that chooses ends the row, unless layers differ; states take a shorter one."""
    watch = _Watch(picks=before, calls=calls)
    monkeypatch.setattr(observed, "_row", lambda of, n: watch.picks.update({7: (3, n)}))
    _choices(network(**config), watch, states)
    assert (watch.tokens, watch.alike) == (tokens, not config)
    assert watch.picks == dict.fromkeys(layers, (3, tokens))
    monkeypatch.setattr(observed, "_row", lambda of, n: None)
    _choices(network(**config), watch, states)
    assert watch.picks == {}, "of a long row none chooses"


def network(*modules, **config):
    made = nn.ModuleList(modules)
    made.config = Some(**config)
    return made


def test_layers_are_read_from_what_a_run_noted():
    window = sliding_window_causal_mask_function(5)
    watch = _Watch(calls=[call(0), call(2, mask=window, heads=6, sink=True, cap=9.0)])
    kept = [_Kept(2, 32, 3, 7, None), _Kept(state=11), _Kept(2, 32, 0, 0, 5), _Kept()]
    config = Some(num_hidden_layers=5, num_attention_heads=4, hidden_size=24)
    found = _read(config, network(), watch, kept)
    usual = {"heads": 4, "key_heads": 2, "head_size": 8, "cached": 32, "positions": "none"}
    nothing = LayerOutline(attends=False)
    assert found.layers == (
        LayerOutline(**usual, indexed=3, state=7),
        LayerOutline(attends=False, state=11),
        LayerOutline(**usual | {"heads": 6}, width=5, sink=True, cap=9.0),
        nothing,
        nothing,
    )
    assert (found.cached, found.table, found.encoded) == (True, None, False)
    watch.tables, watch.calls = [64, None], [*watch.calls, call(rows=SHORT, keys=9)]
    found = _read(config, network(is_encoder_decoder=True), watch, kept)
    assert (len(found.layers), found.table, found.encoded) == (4, 64, True)
    config = Some(num_attention_heads=4, hidden_size=24)
    alone = _read(config, network(), _Watch(given={1: _both}), None)
    assert (alone.cached, len(alone.layers)) == (False, 2)
    assert alone.layers[1] == LayerOutline(
        both_sides=True, heads=4, key_heads=4, head_size=6, positions=""
    )
    for held in (None, [_Kept(), _Kept()]):
        with pytest.raises(NotObserved, match="call no attention"):
            _read(config, network(), _Watch(), held)


def test_a_layer_is_read_from_its_call_and_its_cache():
    config, watch = Some(hidden_size=24), _Watch(scaled={1})
    given = call(1, scaling=0.5)
    shared = _attending(config, watch, 1, given, _Kept(), (5, False, True), True)
    assert shared == LayerOutline(
        width=5,
        chunked=True,
        heads=4,
        key_heads=2,
        head_size=8,
        shares=True,
        positions="none",
        scale=0.5 * math.sqrt(8),
        temper="a function of i",
    )
    kept = _attending(config, watch, 0, None, _Kept(3, 60, 0, 0, 9), None, False)
    assert (kept.heads, kept.key_heads, kept.head_size, kept.keeps) == (3, 3, 10, 9)
    assert (kept.observed, kept.temper, kept.positions, kept.cap) == (False, "", "", None)
    bare = _attending(Some(), watch, 0, None, _Kept(), None, True)
    assert (bare.heads, bare.key_heads, bare.head_size) == (1, 1, 0)
    for stops, width, keeps in ((5, 5, None), (None, 5, math.inf), (None, None, None), (7, 5, 7)):
        view = width, False, False
        assert _attending(config, watch, 0, given, _Kept(2, 8, 0, 0, stops), view, False).keeps == (
            keeps
        )


def test_picks_are_those_of_the_last_layer_below_that_chooses():
    watch = _Watch(picks={1: (4, 100), 3: (2, 25)}, tokens=100)
    other = call(mask=False)
    said = [(0, other, None), (1, other, 4), (2, other, 4), (2, None, None), (2, call(), None)]
    said += [(3, call(), 2 * 4), (9, other, 2 * 4)]
    assert [_picks(watch, layer, given) for layer, given, _ in said] == [x for *_, x in said]
    for count, among, picks in ((99, 100, 99), (100, 100, None), (9, 1000, 9), (25, 26, 75)):
        assert _picks(_Watch(picks={0: (count, among)}, tokens=100), 0, None) == picks


def test_positions_are_what_was_seen_of_them():
    seen = [_Watch(turned={1: None}, relative=True), _Watch(relative=True, held=True)]
    seen += [_Watch(tables=[None]), _Watch(held=True), _Watch(turned={0: None}), _Watch()]
    said = [_positions(watch, 1, call()) for watch in seen]
    assert said == ["rotation", "bias", "absolute", "absolute", "none", "none"]
    assert _positions(_Watch(), 1, None) == _positions(_Watch(), 1, call(mask=False)) == ""
    held = network(nn.Module(), nn.Module(), nn.Linear(1, 1))
    held[0].embed_positions, held[1].embed_positions = torch.zeros(9, 2), torch.zeros(7, 2)
    assert [_table(watch, held) for watch in seen] == [7, None, None, None, 7, None]
    assert _table(_Watch(tables=[8, None, 5]), held) == 5


def test_the_source_of_a_rotation_is_the_only_one_or_the_one_of_its_kind():
    one, two = turns(), turns()
    outputs = [(None, (one, "near")), (None, (one, "near")), (None, (two, "far"))]
    config = Some(layer_types=["near", "far", "other"])
    watch = _Watch(turned=dict.fromkeys(range(4)) | {9: "known"}, outputs=outputs)
    said = [_source(config, watch, k) for k in (0, 1, 2, 3, 9)]
    assert said == [(one, "near"), (two, "far"), None, None, "known"]
    alone = _Watch(turned={0: None}, outputs=outputs[:2])
    assert _source(Some(), alone, 0) == (one, "near")
    assert _source(
        config, _Watch(turned={0: None}, outputs=[*outputs, (None, (two, "near"))]), 0
    ) is (None)


SLOWER = [5e3 ** (-k / 4) for k in range(4)]
UNLIKE = ((None, "default"), (1e4, "linear"), (5e3 * 1.0011, "default"))
BASES = [
    (SLOWER, 5e3, "default", 5e3),
    (SLOWER[:1], 5e3, "default", 5e3),
    (SLOWER, 5e3 * 1.0009, "default", 5e3 * 1.0009),
    ([5e3 ** (-k / 3.5) for k in range(4)], 5e3, "default", 5e3),  # a head with an odd half
    (SLOWER, 7.0, "yarn", 7.0),
    (SLOWER, 7.0, "longrope", 7.0),
    ([], None, "default", 0.0),
    (SLOWER[:2], None, "linear", pytest.approx(5e3 ** (2 / 4))),
    *((SLOWER, *said, pytest.approx(5e3)) for said in UNLIKE),
    *(([*SLOWER, 0.0][::-1], *said, pytest.approx(5e3 ** (5 / 4))) for said in UNLIKE),
]


@pytest.mark.parametrize(("angles", "said", "kind", "base"), BASES)
def test_the_base_of_a_rotation(angles, said, kind, base):
    assert _base(angles, said, kind) == base


def test_settings_and_factors_of_a_rotation():
    by_kind = {"near": {"rope_theta": 1.0}, "far": {"rope_theta": 2.0}, "factor": 2}
    config = Some(layer_types=["near", "far"])
    made = turns(rope_parameters=by_kind)
    said = [
        _rope(config, layer, made, kind) for layer, kind in ((0, ""), (1, ""), (2, ""), (0, "far"))
    ]
    assert said == [by_kind["near"], by_kind["far"], {}, by_kind["far"]]
    assert _rope(config, 0, turns(rope_parameters={"factor": 2}), "") == {"factor": 2}
    assert _rope(config, 0, turns(), "") == _rope(Some(layer_types=None), 0, made, "") == {}
    assert [_rounded(x) for x in (1 + 9e-7, 1 - 9e-7, 1 + 1.2e-6, 2.0)] == [1, 1, 1 + 1.2e-6, 2]
    assert (_factor(None), _factor(call()), _factor(call(scaling=0.5))) == (
        1,
        1,
        0.5 * math.sqrt(8),
    )


ANGLES = [1e2 ** (-k / 4) for k in range(3)]  # and a fourth, which is 0
YARN = {"rope_type": "yarn", "rope_theta": 7.0, "factor": 8.0, "mscale_all_dim": 1.0}
ROTATED = [
    ({}, Rotary(6, pytest.approx(1e2)), 1.0),
    ({"rope_type": "linear", "factor": 4.0}, ("linear", "all angles divided by 4", 1.0), 1.0),
    ({"type": "linear"}, ("linear", "all angles divided by 1", 1.0), 1.0),
    (
        {"type": "linear", "original_max_position_embeddings": 16},
        ("linear", "all angles divided by 4", 1.0),
        1.0,
    ),
    (
        {"rope_type": "longrope", "original_max_position_embeddings": 16},
        (
            "longrope",
            "each angle divided by a number of its own, another one beyond 16 tokens",
            1.0,
        ),
        1.0,
    ),
    (YARN, ("yarn", "slow angles divided by 8", 2.25 * 0.5 * math.sqrt(8)), 1.5),
    ({"rope_type": "llama3", "factor": 2.0}, ("llama3", "slow angles divided by 2", 2.25), 1.5),
    ({"rope_type": "mrope"}, ("mrope", "the angles are rescaled", 1.0), 1.0),
]


@pytest.mark.parametrize(("rope", "said", "factor"), ROTATED)
def test_a_rotation_is_the_one_that_the_library_computes(rope, said, factor):
    config = Some(max_position_embeddings=64, rope_parameters=rope, factors={})
    config.angles = {"inv_freq": [*ANGLES, 0.0], "near_inv_freq": ANGLES[:2]}
    config.factors = {"attention_scaling": factor, "near_attention_scaling": 3.0}
    module = Made(config)
    watch = _Watch(turned={1: (module, ""), 2: (module, "near")})
    found = _rotation(config, watch, 1, call(scaling=0.5))
    made, turned, known = found
    said = said if isinstance(said, Rotary) else Rotary(6, made.base, *(said[k] for k in (0, 2, 1)))
    assert made == replace(said, scale=pytest.approx(said.scale))
    assert (turned, known) == (factor**2, True)
    assert _rotation(config, watch, 1, call(scaling=0.5)) is found
    assert _rotation(config, watch, 1, None)[0].scale == pytest.approx(factor**2)
    near, turned, _ = _rotation(config, watch, 2, None)
    assert (near.size, turned) == (4, 9.0) and _rotation(config, watch, 0, None) == (None, 1, True)


def test_a_rotation_that_is_not_seen_is_the_one_that_is_said():
    class Stops(Made):
        def __init__(self, config):
            raise RuntimeError

    blind = Stops.__new__(Stops)
    nn.Module.__init__(blind)
    blind.config = Some()
    for turned in (None, (blind, "")):
        watch = _Watch(turned={0: turned})
        assert _rotation(Some(rotary_dim=5), watch, 0, None) == (Rotary(5, 10_000.0), 1, False)
        assert _rotation(Some(), watch, 0, None) == (None, 1, False)
    wild = Made(Some(angles={"inv_freq": [1.0, math.inf]}, factors={}))
    with pytest.raises(NotObserved, match="not finite"):
        _rotation(Some(), _Watch(turned={0: (wild, "")}), 0, None)


def lower(size, width=99):
    return torch.ones(size, size).tril().triu(1 - width).bool()


TABLES = [
    (lower(8), (None, False, False)),
    (lower(8, 3)[None, None], (3, False, False)),
    (lower(8, 8), (None, False, False)),
    (lower(8, 1), (1, False, False)),
    (torch.stack([lower(8, 3), lower(8)]), (3, False, False)),
    (lower(8).int(), None),
    (lower(8)[:, 1:], None),
    (lower(1), None),
    (lower(8) & (torch.arange(8) != 5), None),
    (torch.zeros(8, 8).bool(), None),
    (torch.ones(8).bool(), None),
]


@pytest.mark.parametrize(("table", "said"), TABLES)
def test_the_table_of_an_attention_is_what_it_lets_the_last_query_see(table, said):
    inner, outer = nn.Module(), nn.Module()
    for module in (inner, outer):
        module.register_buffer("table", torch.empty(table.shape, dtype=table.dtype, device="meta"))
    inner.layer_idx = 3
    whole = network(outer, inner)
    whole._init_weights = lambda module: setattr(module, "table", table)
    assert _own_patterns(whole) == ({} if said is None else {3: said})
