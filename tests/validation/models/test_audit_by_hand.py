"""The whole text of an audit, word by word and number by number, of layers that are made by hand.

Keys and values of a token are 32 numbers, of two heads of keys with 8 numbers each: 64 bytes.
"""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from farfield.theory.answers.answer import Status
from farfield.theory.answers.blocks import Table
from farfield.theory.encodings import encoding
from farfield.validation.models.audit import _measurable, audit, reach, which
from farfield.validation.models.outline import RUN, LayerOutline, ModelOutline, Rotary

FAR = LayerOutline(heads=4, key_heads=2, head_size=8, cached=32, positions="none")
NEAR = replace(FAR, width=100, positions="rotation", rotation=Rotary(8, 1e4))
STATE, NOTHING = LayerOutline(attends=False, state=96), LayerOutline(attends=False)
SLOPES, SLOW = encoding("alibi", m=["1/2", "1/4", "1/8", "1/16"]), encoding("-log(n+1)/2")
OPEN = encoding("-n*abs(sin(n))")  # its series is not decided


def biased(bias, width=None):
    return replace(FAR, encoding=bias, positions="bias", width=width)


def outline(*layers, **more):
    told = {"trained": 4096, "trained_from": "by hand"} | more
    return ModelOutline(Path("/nowhere/small"), "toy", layers, **told)


HEADER = "layers how many sees positions heads a token a row, each"
TEXTS = {
    "of windows": (
        outline(NEAR, replace(NEAR, width=200), NEAR, notes=("it is small",), longest=4096),
        {"page": 32},  # windows of 100 and 200 keys touch 5 and 8 pages at worst
        f"""\
small (toy), 3 layers: every layer with attention sees at most 200 keys; set sliding_window = 200, \
no output changes. [theorem]
Cache: 25.0 KiB at 4096 tokens, numbers of bf16; the library keeps these keys. In pages of 32 \
tokens it takes 36.0 KiB, or 768 KiB where an engine keeps whole rows in every layer. [theorem]
training length: 4096 tokens, by hand
It is small.
What each layer sees, and what it keeps of 4096 tokens
{HEADER}
1, 3 2 nearest 100 rotation of 8 of 8, base 10000 4 of size 8, 2 for keys 64 bytes 6.25 KiB
2 1 nearest 200 rotation of 8 of 8, base 10000 4 of size 8, 2 for keys 64 bytes 12.5 KiB
Through depth, the last output depends on the nearest 398 tokens at most. [theorem]""",
    ),
    "of all kinds": (  # 16 bytes a token and device; of 1000 tokens 2 x 100 and 2 x 1000 keys
        outline(NEAR, NEAR, replace(NEAR, keeps=math.inf), replace(FAR, state=96), STATE, NOTHING),
        {"rows": 3, "budget": "1MiB", "lengths": [1000, 5000], "page": 64}
        | {"tensor_parallel": 2, "cache_dtype": "fp8"},
        f"""\
small (toy), 6 layers: 2 keep 100 keys, 1 see 100 keys, 1 keep all, 1 keep a state; a narrower \
window changes the output; 3 rows of 1000 tokens take 103 KiB. [theorem]
Cache: 34.4 KiB at 1000 tokens, numbers of fp8 on each of 2 devices, and 384 bytes of states; the \
library keeps these keys. In pages of 64 tokens it takes 38.0 KiB, or 64.0 KiB where an engine \
keeps whole rows in every layer. [theorem]
3 rows of 1000 tokens: 104 KiB, in pages 115 KiB. [theorem]
Within 1.00 MiB: 10688 tokens are the longest of 3 rows, and 26 rows of 1000 tokens fit together. \
[theorem]
training length: 4096 tokens, by hand
What each layer sees, and what it keeps of 4096 tokens
{HEADER}
1 to 2 2 nearest 100 rotation of 8 of 8, base 10000 4 of size 8, 2 for keys 16 bytes 1.56 KiB
3 1 nearest 100 rotation of 8 of 8, base 10000 4 of size 8, 2 for keys 16 bytes 64.0 KiB
4 1 all and a state none 4 of size 8, 2 for keys 16 bytes 64.0 KiB
5 1 a state - - 0 bytes 0 bytes
6 1 no keys - - 0 bytes 0 bytes
tokens keys least paged whole rows
4096 8,392 131 KiB 134 KiB 256 KiB
1000 2,200 34.4 KiB 38.0 KiB 64.0 KiB
5000 10,200 159 KiB 164 KiB 316 KiB""",
    ),
    "of a cache that drops keys": (
        outline(
            replace(FAR, keeps=60, key_heads=5, heads=5, positions="absolute"),
            replace(FAR, keeps=50),
        ),
        {"lengths": ["8"]},
        f"""\
small (toy), 2 layers: a row read at once sees every key, and the cache keeps the nearest 50, 60; \
1 row of 8 tokens takes 1.00 KiB. [theorem]
Cache: 1.00 KiB at 8 tokens, numbers of bf16; the library keeps these keys. In pages of 16 tokens \
it takes 2.00 KiB, or 2.00 KiB where an engine keeps whole rows in every layer. [theorem]
training length: 4096 tokens, by hand
What each layer sees, and what it keeps of 4096 tokens
{HEADER}
1 1 all absolute 5 of size 8 64 bytes 3.75 KiB
2 1 all none 4 of size 8, 2 for keys 64 bytes 3.12 KiB
tokens keys least paged whole rows
4096 110 6.88 KiB 10.0 KiB 512 KiB
8 16 1.00 KiB 2.00 KiB 2.00 KiB""",
    ),
    "of every key": (
        outline(FAR, FAR),
        {"budget": "1GiB"},
        f"""\
small (toy), 2 layers: every layer keeps every key, and a narrower window changes the output. \
[theorem]
Cache: 512 KiB at 4096 tokens, numbers of bf16; the library keeps these keys. In pages of 16 \
tokens it takes 512 KiB, or 512 KiB where an engine keeps whole rows in every layer. [theorem]
Within 1.00 GiB: 8388608 tokens are the longest row, and 2048 rows of 4096 tokens fit together. \
[theorem]
training length: 4096 tokens, by hand
What each layer sees, and what it keeps of 4096 tokens
{HEADER}
all 2 all none 4 of size 8, 2 for keys 64 bytes 256 KiB""",
    ),
    "of states": (
        outline(STATE, replace(STATE, state=None), trained=None),
        {"budget": "1KiB", "rows": 2},
        f"""\
small (toy), 2 layers: its layers keep states, and no keys; 2 rows of 2048 tokens take 0 bytes.
Cache: 0 bytes at 2048 tokens, numbers of bf16, and states of a size that is not known; the \
library keeps these keys. In pages of 16 tokens it takes 0 bytes, or 0 bytes where an engine keeps \
whole rows in every layer. [theorem]
2 rows of 2048 tokens: 0 bytes, in pages 0 bytes. [theorem]
Within 1.00 KiB: rows of any length fit, and 0 rows of 2048 tokens fit together. [theorem]
training length: 2048 tokens, assumed: the configuration names none
What each layer sees, and what it keeps of 2048 tokens
{HEADER}
1 1 a state - - 0 bytes 0 bytes
2 1 a state - - 0 bytes 0 bytes""",
    ),
    "of an indexer": (  # whose keys are 32 bytes a token, on every device
        outline(
            replace(FAR, picks=7, indexed=16, state=5, sink=True, cap=30.0, observed=False),
            replace(NEAR, chunked=True, shares=True, cached=0, rotation=Rotary(4, 5e5, "yarn")),
            replace(NEAR, both_sides=True, cached=0, positions="", rotation=None, temper="i"),
        ),
        {"rows": 2, "trained": 300},
        f"""\
small (toy), 3 layers: there is no cache, and no window of the past: every token sees tokens after \
it; 2 rows of 300 tokens take 37.5 KiB.
Cache: 18.8 KiB at 300 tokens, numbers of bf16, 9.50 KiB of an indexer's keys, and 20 bytes of \
states; the library keeps these keys. In pages of 16 tokens it takes 19.0 KiB, or 19.0 KiB where \
an engine keeps whole rows in every layer. [approximate]
2 rows of 300 tokens: 56.5 KiB, in pages 57.0 KiB. [approximate]
training length: 300 tokens, as given
What each layer sees, and what it keeps of 300 tokens
{HEADER}
1 1 all, of which 7 are picked and a state none + sink, logits capped at 30 4 of size 8, 2 for \
keys 64 bytes 18.8 KiB
2 1 its chunk of 100 rotation of 4 of 8, base 500000, yarn 4 of size 8, 2 for keys shared 0 bytes
3 1 nearest 100, after it too not known, logits grow 4 of size 8, 2 for keys 0 bytes 0 bytes""",
    ),
    "of no cache": (
        outline(NEAR, cached=False),
        {"budget": "1GiB", "lengths": [9]},
        f"""\
small (toy), 1 layer: the library keeps no cache of it: each token is computed from the whole row.
What each layer sees, and what it keeps of 4096 tokens
{HEADER}
all 1 nearest 100 rotation of 8 of 8, base 10000 4 of size 8, 2 for keys 64 bytes 6.25 KiB
Through depth, the last output depends on the nearest 100 tokens at most. [theorem]""",
    ),
    "of nothing known": (
        outline(unknown="nobody knows it"),
        {},
        "small (toy): no number is given, since nobody knows it.",
    ),
    "of biases": (  # a tail of e^(-n/8) beside logits within 1 is e^(2 - n/8) of a sum
        outline(biased(SLOPES), replace(NEAR, width=5), trained=20),
        {"error": "1/10", "eps": ["1/2"]},
        f"""\
small (toy), 2 layers: a window of 80 keys, more than its rows of 20 tokens, is useless; none \
below is known to keep every head within 1/10, if its logits stay within 1 and its values within 1 \
(assumed, not measured). [approximate]
Cache: 1.56 KiB at 20 tokens, numbers of bf16; the library keeps these keys. In pages of 16 tokens \
it takes 4.00 KiB, or 4.00 KiB where an engine keeps whole rows in every layer. [theorem]
training length: 20 tokens, by hand
source: Press et al. 2022; Chi et al. 2023, Eq. 3 (geometric)
What each layer sees, and what it keeps of 20 tokens
{HEADER}
1 1 all alibi 4 of size 8, 2 for keys 64 bytes 1.25 KiB
2 1 nearest 5 rotation of 8 of 8, base 10000 4 of size 8, 2 for keys 64 bytes 320 bytes
Heads: 4 of 4 converge. [theorem]
Nobody measured these logits and values.
layers head bias series TRF(1/2) window logits within values within
1 1 −n/2 converges 2 10 1 1
1 2 −n/4 converges 3 20 1 1
1 3 −n/8 converges 6 40 1 1
1 4 −n/16 converges 12 80 1 1
Receptive fields in tokens, exact integers, certified; infinite where the series diverges. A \
window keeps the output of a head within 1/10 in norm: one head, one layer, exact arithmetic, \
before the output projection; for logits and values within the bounds of the table. The whole \
model is another question, which a measurement answers.""",
    ),
}


BESIDE = {
    "of windows": ("rope", 4, None, {(1,)}),
    "of all kinds": ("rope, nope", 4, 26, {(1,), (0, 1)}),
    "of a cache that drops keys": ("learned_absolute, nope", 5, None, {(1,), (0, 1)}),
    "of every key": ("nope", 4, 2048, {(1,)}),
    "of states": ("no attention", 0, None, {(1,)}),
    "of an indexer": ("nope, rope", 4, None, {(1,)}),
    "of no cache": ("rope", 4, None, {(1,)}),
    "of nothing known": ("no attention", 0, None, set()),
    "of biases": ("alibi, rope", 4, None, {(1,), (1, 4, 5, 6, 7)}),
}
"""The encodings by name, the most heads, rows within the budget, and columns of numbers."""


@pytest.mark.parametrize("name", TEXTS)
def test_the_text(name):
    model, how, text = TEXTS[name]
    found = audit(model, **how)
    lines = found.text(details=True, width=1000).splitlines()
    assert [" ".join(line.split()) for line in lines] == text.splitlines()
    columns = {tuple(block.numeric) for block in found.blocks() if isinstance(block, Table)}
    assert (found.encoding, found.head_count, found.requests, columns) == BESIDE[name]
    for layer, kind in zip(json.loads(found.to_json())["kinds"], found.kinds, strict=True):
        said = {n for n in ("cached", "indexed") if n in layer["layer"]}
        assert said == {n for n in ("cached", "indexed") if getattr(kind.layer, n)}


def enough(logit, value, error=1e-3, slope=1 / 16):
    """The certified window of -slope n: what is hidden is a share of at most error / (2 value)."""
    return math.ceil(math.log1p(math.exp(2 * logit) * (2 * value / error - 1)) / slope)


BOTH = {"logit_bound": 2, "value_bound": "1/2"}
USUAL, ASKED = enough(1, 1), enough(2, 0.5)  # 154 and 175 keys
DECIDED = {
    "keys": (outline(NEAR, trained=100), {}, 100, "theorem", "set sliding_window = 100"),
    "useless": (outline(NEAR, trained=99), {}, 100, "theorem", "99 tokens have, so this"),
    "said": (outline(replace(NEAR, observed=False), NOTHING), {}, 100, "approximate", "sees at"),
    "bias": (outline(biased(SLOPES)), {}, USUAL, "approximate", "stay within 1 and"),
    "bounds": (outline(biased(SLOPES)), BOTH, ASKED, "certified", "values within 1/2."),
    "a bound": (outline(biased(SLOPES)), {"value_bound": 1}, USUAL, "approximate", "assumed"),
    "other": (outline(biased(SLOPES)), {"logit_bound": 1}, USUAL, "approximate", "assumed"),
    "beside": (outline(NEAR, biased(SLOPES)), BOTH, ASKED, "certified", "= 175 keeps the"),
    "wider": (outline(NEAR, biased(SLOPES, 9)), BOTH, 100, "theorem", "= 100 keeps the"),
    "own": (outline(biased(SLOPES, 174)), BOTH, 174, "theorem", "= 174 keeps the"),
    "within": (outline(biased(SLOPES, 175)), BOTH, ASKED, "certified", "= 175 keeps the"),
    "slow": (outline(biased(SLOW)), {}, math.inf, "theorem", "no window serves every head"),
    "near": (outline(biased(SLOW, 7)), {}, 7, "theorem", "sliding_window = 7 keeps the output"),
    "open": (outline(biased(OPEN, 7)), {}, 7, "theorem", "sliding_window = 7 keeps the output"),
    "far": (outline(biased(SLOPES), FAR), {}, math.inf, "theorem", "no window serves every head"),
    "not seen": (
        outline(biased(SLOPES), replace(FAR, observed=False)),
        BOTH,
        math.inf,
        "approximate",
        "no window serves every head",
    ),
}


@pytest.mark.parametrize("name", DECIDED)
def test_a_window_is_enough_for_every_layer(name):
    """Of layers with a bias and without one; the window of a layer itself is one too."""
    model, how, width, label, words = DECIDED[name]
    found = audit(model, **how)
    status = Status.EXACT if math.isfinite(width) else Status.INFINITE
    assert (found.sliding_window, found.status, found.label) == (width, status, label)
    assert words in found.text(width=1000).splitlines()[0]
    free = [k for k, layer in enumerate(model.layers, 1) if layer == FAR]
    assert not free or str(found.reason) == f"layer {free[0]} sees all keys"


def test_a_series_that_is_not_decided_gives_no_window():
    found = audit(outline(biased(OPEN), NEAR))
    assert (found.status, found.sliding_window) == (Status.UNKNOWN, None)


def test_rows_are_within_the_table_of_positions(refusal):
    end = outline(FAR, longest=64)
    assert audit(end, lengths=[64]).caches[1].length == 64
    refusal("length 65: accepted are lengths up to 64", audit, end, lengths=[64, 65])


CHUNK, WINDOW = (replace(NEAR, width=8, chunked=chunked) for chunked in (True, False))
REACHES = [
    ((), 1),
    ((WINDOW, replace(WINDOW, width=3), NOTHING), 1 + 7 + 2),
    ((CHUNK, CHUNK, CHUNK), 8),
    ((CHUNK, replace(CHUNK, width=4)), 8 + 3),
    ((WINDOW, CHUNK), 8 + 7),
    ((CHUNK, WINDOW, CHUNK), 8 + 7 + 7),
    ((CHUNK, replace(CHUNK, width=4), CHUNK), 8 + 3 + 7),
    ((WINDOW, replace(WINDOW, state=1)), math.inf),
    ((WINDOW, STATE), math.inf),
    ((WINDOW, FAR), math.inf),
    ((WINDOW, replace(WINDOW, both_sides=True)), math.inf),
]


@pytest.mark.parametrize("layers, far", REACHES)
def test_how_far_the_last_output_reaches_through_depth(layers, far):
    assert reach(layers) == far


NAMED = {
    "every 2nd from 1": ([1, 3, 5, 7], 8),
    "every 3rd from 2": ([2, 5, 8, 11], 13),
    "every 4th from 4": ([4, 8, 12, 16], 19),
    "all but every 4th from 1": ([2, 3, 4, 6, 7, 8, 10, 11, 12, 14], 14),
    "2, 4, 6, 8": ([2, 4, 6, 8], 10),
    "1, 3, 5": ([1, 3, 5], 6),
    "5 to 8": ([5, 6, 7, 8], 8),
    "1, 3, 5, 8": ([1, 3, 5, 8], 8),
    "1 to 3, 5, 7, 9 to 10": ([1, 2, 3, 5, 7, 9, 10], 10),
}


@pytest.mark.parametrize("words", NAMED)
def test_layers_in_words(words):
    """A pattern is one up to the last layer: else a reader goes on with it."""
    assert which(*NAMED[words]) == words


def test_what_can_be_measured_is_a_run_or_a_causal_model_with_its_weights(tmp_path):
    whole = replace(outline(FAR), path=tmp_path, causal=True)
    (tmp_path / "config.json").write_text("{}")
    assert not _measurable(whole)
    (tmp_path / "model-1-of-2.safetensors").write_text("")
    packed = replace(whole, values={"quantization_config": {"bits": 4}})
    told = [whole, packed, replace(whole, causal=False), replace(packed, kind=RUN)]
    assert [*map(_measurable, told)] == [True, False, False, True]
    lines = [audit(each).text(width=1000).splitlines()[-1] for each in told]
    assert ["farfield window" in line for line in lines] == [True, False, False, True]
    (tmp_path / "config.json").unlink()
    assert not _measurable(whole)
