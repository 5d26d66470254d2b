"""Windows that are certified or a theorem are broken by no measurement.

On rows of random logits and on rows of the worst case, of random biases with masks, residue
classes, pieces and humps, and on random tiny models. Masses, prices and rows of queries and keys
have laws of their own in `numerics`.
"""

import math
import random
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from farfield.numerics.windows.window import certified_window, window_error
from farfield.theory.answers.answer import Label, Status
from farfield.theory.encodings import encoding

sys.path.insert(0, str(Path(__file__).parent / "validation" / "models"))
pytestmark = pytest.mark.timeout(600)
ROW = 240  # keys of the longest rows
NEAR = 1e-9  # of what float64 leaves open
ROUNDING = 1e-14  # of a difference of outputs of norm 1
PROVED = (Label.CERTIFIED, Label.THEOREM)
SHAPES = (
    *("-{0}*n/16", "-{0}/8*log(1+n)", "-((n-{0})^2)/{1}", "{0}/16*cos(n/{1})-n/{2}"),
    *("-abs(n-{0})/{1}", "-max(n-{0},0)/{1}", "-{0}/16*sqrt(n)", "-n/{2}", "0", "-log(2+n)*{0}/4"),
    "log(exp(-n/{0})+exp(-n)/{1})",
)
MASKS = (
    *("{p}", "{p}", "where(n<{a},{p},-inf)", "where(n<{a},{p},{q})"),
    *("where(n%{m}=={r},{p},-inf)", "where(n%{m}=={r},{p},{q})", "where(n%{m}=={r},-inf,{p})"),
    *("where((n>={a})&(n<{b}),-inf,{p})", "where((n%{m}==0)|(n<{a}),{p},-inf)"),
)


def seeds(few, many):
    """A few random cases by default, many more with the slow tests."""
    slow = (pytest.param(k, marks=pytest.mark.slow) for k in range(few, many))
    return pytest.mark.parametrize("seed", [*range(few), *slow])


def drawn(seed):
    """A random bias, its table on the longest row, and where more is drawn from."""
    draw = random.Random(seed)
    while True:
        p, q = (draw.choice(SHAPES).format(*(draw.randint(1, 30) for _ in range(3))) for _ in "pq")
        a, m = draw.randint(1, 60), draw.randint(2, 5)
        ends = {"a": a, "b": a + draw.randint(1, 40), "m": m, "r": draw.randrange(m)}
        text = draw.choice(MASKS).format(p=f"({p})", q=f"({q})", **ends)
        table = encoding(text).bias(np.arange(ROW))[0]
        if np.isfinite(table[0]):
            return text, table, draw


def softmax(logits):
    """Attention of each row, 0 where no key has a weight."""
    top = logits.max(-1, keepdims=True)
    weights = np.exp(logits - np.where(np.isfinite(top), top, 0))
    return weights / np.maximum(weights.sum(-1, keepdims=True), np.finfo(float).tiny)


def contents(rng, beta, inside):
    """Content logits within a bound: anywhere, at its ends, and worst against the kept keys."""
    size = len(inside)
    anywhere, ends = rng.uniform(-1, 1, (6, size)), rng.choice([-1.0, 1.0], (6, size))
    worst = np.where(inside, -1.0, 1.0)[None]
    return float(beta) * np.concatenate([anywhere, ends, worst, -worst])


def largest_change(rng, p, kept, beta, value, first=0):
    """The largest change of an output where a row keeps some keys; `first` are at any logits."""
    x = contents(rng, beta, kept)
    if first:
        x[:, len(p) - first :] = rng.normal(scale=6, size=(len(x), first))
    turn = rng.uniform(0, 2 * math.pi, x.shape)
    v = np.stack([np.cos(turn), np.sin(turn)], -1)
    v[-2:] = np.where(kept, 1.0, -1.0)[:, None] * np.array([1.0, 0.0])
    full, part = softmax(x + p), softmax(np.where(kept, x + p, -np.inf))
    moved = np.linalg.norm(((full - part)[..., None] * v).sum(-2), axis=-1)
    return float(value) * moved.max()


def rows(draw, p):
    """Rows of several lengths in which some key has a weight."""
    for size in (*draw.sample(range(1, ROW), 4), ROW):
        if np.isfinite(p[:size]).any():
            yield size


@seeds(25, 1500)
def test_no_row_leaves_a_certified_window_by_more_than_its_error(seed):
    text, p, draw = drawn(seed)
    rng = np.random.default_rng(seed)
    beta, value = Fraction(draw.choice([0, 1, 1, 2, 6]), 4), Fraction(draw.randint(1, 8), 2)
    error, first = value * Fraction(draw.randint(1, 39), 20), draw.choice([0, 0, 1, 3])
    row = draw.choice([None, draw.randint(max(4, first), ROW)])
    found = certified_window(text, error, beta, value, sinks=first, row=row)
    width, rounding = ROW // 3, float(value) * ROUNDING
    if found.status is Status.EXACT:
        assert found.label in PROVED
        width = int(found)
        for size in (row,) if row else rows(draw, p):
            if np.isfinite(p[:size]).any() and width + first < size:
                kept = (np.arange(size) < width) | (np.arange(size) >= size - first)
                moved = largest_change(rng, p[:size], kept, beta, value, first)
                assert moved <= float(error) * (1 + NEAR) + rounding, (text, found, size)
    said = window_error(text, max(width, first), beta, value, sinks=first)
    if said.label in PROVED:
        most = said.enclosure[1]
        for size in rows(draw, p):
            if max(width, first) + first < size:
                kept = (np.arange(size) < max(width, first)) | (np.arange(size) >= size - first)
                moved = largest_change(rng, p[:size], kept, beta, value, first)
                assert moved <= most * (1 + NEAR) + rounding, (text, said, size)


# -- models ---------------------------------------------------------------------------------------

SMALL = {
    "bloom": {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4, "seq_length": 48},
    "mpt": {"vocab_size": 64, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 60},
    **{kind: {} for kind in ("llama", "mistral", "qwen2", "gemma2", "gpt_oss", "cohere2")},
}


@seeds(6, 120)
def test_no_model_breaks_what_is_certified_of_its_logits(seed, tmp_path):
    """Windows of heads with a bias, for the range of its logits, and keys that a layer sees."""
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("weighed")
    from farfield.validation.models.audit import audit
    from farfield.validation.models.folder import describe
    from farfield.validation.models.opened import open_model

    draw = random.Random(seed)
    kind = list(SMALL)[seed % len(SMALL)]
    made, _ = library.tiny(kind, **SMALL[kind])
    times = 10 ** draw.uniform(-1.5, 0.5)
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(times if weight.dim() > 1 else draw.uniform(0.5, 2))
    made.save_pretrained(tmp_path / kind)
    folder = describe(tmp_path / kind)
    error = Fraction(draw.randint(1, 30), 10)
    length = 60
    tokens = torch.randint(0, 64, (length,), generator=torch.Generator().manual_seed(seed))
    at = torch.arange(length)
    distance = at[:, None] - at
    rows = [(k, attention.double()) for k, attention in open_model(folder).weights(tokens)]
    halves = [Fraction(1)]
    for k, weights in rows:
        if (bias := folder.layers[k].encoding) is not None:
            added = torch.from_numpy(np.asarray(bias.bias(np.arange(length))))
            content = weights.log() - added[:, distance.clamp(min=0)]
            hidden = (distance < 0) | (weights < 1e-30)
            high = content.masked_fill(hidden, -math.inf).amax(-1)
            low = content.masked_fill(hidden, math.inf).amin(-1)
            halves.append(Fraction(math.ceil(float((high - low).max()) * 500 + 1), 1000))
    bounds = {"logit_bound": max(halves), "value_bound": 1}
    found = audit(folder, trained=folder.trained or 48, error=error, **bounds)
    for k, weights in rows:
        width = folder.layers[k].width
        if width is not None:
            assert not weights[:, distance >= width].any(), kind
        for head in found.heads:
            if k + 1 in head.layers and head.window is not None and head.window < length:
                own = weights[head.head - 1]
                near = own.masked_fill(distance >= head.window, 0)
                change = (own - near / near.sum(-1, keepdim=True)).abs().sum(-1).max()
                moved = float(change) * head.value_bound  # of the worst values within the bound
                assert moved <= float(error) * (1 + 1e-5), (kind, head)
