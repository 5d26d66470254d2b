"""How an object is called where nothing follows it, and what is told of each way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from farfield import InputError, encoding
from farfield.theory.encodings import inspection, row_modules, sampling
from farfield.theory.encodings.row_modules import HIDDEN, OWN, VECTORS, of_row
from farfield.theory.encodings.samples import CAPPED, FACTOR, GROWING, Unfit

torch = pytest.importorskip("torch")
nn = torch.nn
ARRAY, ONE, QK, HQK = "an array of distances", sampling.ONE, "positions q and k", "(h, q, k)"
SCORE, MASK = "score_mod(score, b, h, q, k)", "mask_mod(b, h, q, k)"
NEAR, FAR = (0, 1, 2, 7, 512, 1365, 2047, 4095), sampling.FAR
TRUTH = "a function of the distance gives truth, which may be a mask or 1 and 0"
HUNDRED, SLOPES = [-float(k) for k in range(100)], [1.0, 0.5, 0.25]


def below(size, f):
    """A function of arrays that raises at a position, or an array, of this size."""

    def bounded(*args):
        if max(np.max(np.asarray(args[-1])), -1 if len(args) > 1 else np.size(args[0])) > size:
            raise ValueError("too far")
        return f(*args)

    return bounded


def counted(n, calls=[0]):  # noqa: B006
    calls[0] += 1
    return float(calls[0])


OF_DISTANCES = {  # what is called; how, heads, count of distances, queries, the last values
    "a line": (lambda n: -n / 8, (ARRAY, 1, 4136, (), -(2.0**17))),
    "whole rows": (
        lambda d: -8 * d / np.max(np.asarray(d)),
        (ARRAY, 1, 4096, (15, 31, 63, 127, 255, 511, 1023, 2047, 4095), -8.0),
    ),
    "heads last": (lambda n: np.stack([-n, -2 * n], -1), (ARRAY, 2, 4132, (), -(2.0**20))),
    "heads first": (lambda n: np.stack([-n, -2 * n]), (ARRAY, 2, 4132, (), -(2.0**20))),
    "128 heads": (lambda n: np.zeros((np.size(n), 128)), (ARRAY, 128, 4120, (), 0.0)),
    "a column": (lambda n: -n[:, None] * np.ones(1), (ARRAY, 1, 4133, (), -(2.0**20))),
    "a number": (lambda n: 3, (ARRAY, 1, 4120, (), 3.0)),
    "an edge far out": (
        lambda n: np.where(np.asarray(n) > 5000, -np.inf, 0.0),
        (ARRAY, 1, 4132, (), -np.inf),
    ),
    "two edges": (
        lambda n: np.where((np.asarray(n) > 5000) & (np.asarray(n) < 70_000), -1e9, 0.0),
        (ARRAY, 1, 4148, (), 0.0),
    ),
    "at most 512": (below(512, lambda n: -n), (ARRAY, 1, 512, (), -511.0)),
    "at most 64": (below(64, lambda n: -n), (ARRAY, 1, 64, (), -63.0)),
    "key less query": (
        lambda rel: np.minimum(rel, 0.0) / 2**21,
        (f"{ARRAY}, key less query", 1, 4120, (), -0.5),
    ),
    "a rise, or a bump": (
        lambda rel: ((rel == 2**20) | (rel == -5)) * 1.0,
        (f"{ARRAY}, key less query", 1, 4120, (), 0.0),
    ),
    "a bump before a fall": (
        lambda rel: (rel == 1) * 2.0 - abs(rel),
        (ARRAY, 1, 4133, (), -(2.0**20)),
    ),
    "a rise both ways": (lambda rel: rel * rel * 1.0, (ARRAY, 1, 4120, (), 2.0**40)),
    "query less key": (lambda rel: -np.maximum(rel, 0.0), (ARRAY, 1, 4133, (), -(2.0**20))),
    "either sign": (lambda rel: -np.abs(rel), (ARRAY, 1, 4133, (), -(2.0**20))),
    "a rise in the sign": (
        lambda memory_position: memory_position * 1.0,
        (f"{ARRAY}, key less query", 1, 4133, (), -(2.0**20)),
    ),
    "no sign": (lambda rel: 0 * rel + 2.0, (ARRAY, 1, 4120, (), 2.0)),
    "no sign, of keys up to the query": (
        lambda rel: 0 * rel + 2.0 if np.max(np.asarray(rel)) <= 0 else HUNDRED[100],
        (f"{ARRAY}, key less query", 1, 4120, (), 2.0),
    ),
    "text of a sign": (lambda rel: "a", f"called with {ARRAY}: it gives str, no real numbers"),
    "a length": (len, f"called with {ARRAY}: it gives one number of them all"),
    "a number of one": (
        lambda n: float(np.size(np.asarray(n)) == 1 and np.ravel(np.asarray(n))[0] == 0),
        (ONE, 1, 4120, (), 0.0),
    ),
    "a number at the end": (
        lambda n: float(np.ravel(np.asarray(n))[0] == 2**20),
        (ARRAY, 1, 512, (), 0.0),
    ),
    "a number in the middle": (
        lambda n: float(2000 < np.ravel(np.asarray(n))[0] < 3000),
        (ARRAY, 1, 512, (), 0.0),
    ),
    "129 heads": (
        lambda n: np.zeros((np.size(n), 129)),
        f"called with {ARRAY} of shape (4120,): it gives shape (4120, 129)",
    ),
    "another shape": (
        lambda n: np.zeros((3, 5)),
        f"called with {ARRAY} of shape (4120,): it gives shape (3, 5); called with {ONE}: it "
        "gives (3, 5)",
    ),
    "truth": (lambda n: np.asarray(n) < 5, TRUTH),
    "one number": (lambda n: -float(np.asarray(n).item()), (ONE, 1, 4133, (), -(2.0**20))),
    "an integer": (lambda n: -float(range(10**7)[n]), (ONE, 1, 4133, (), -(2.0**20))),
    "a float": (lambda n: -n.as_integer_ratio()[0] / 1, (ONE, 1, 4133, (), -(2.0**20))),
    "a window": (lambda n: 0.0 if int(n) < 5000 else -math.inf, (ONE, 1, 4132, (), -np.inf)),
    "a hundred": (lambda n: HUNDRED[int(n)], (ONE, 1, 100, (), -99.0)),
    "nine": (lambda n: HUNDRED[:9][int(n)], f"called with {ONE}: list index out of range"),
    "more heads later": (lambda n: [-float(n)] * (1 + (int(n) > 20)), (ONE, 1, 21, (), -20.0)),
    "more heads at once": (
        lambda n: [-float(n)] * (1 + (int(n) > 5)),
        f"called with {ONE}: it gives 2 numbers at 6 and 1 at 0",
    ),
    "a matrix of one": (lambda n: [[float(n)]], f"called with {ONE}: it gives (1, 1)"),
    "129 numbers": (
        lambda n: [float(n)] * 129,
        f"called with {ONE}: it gives 129 numbers; at most 128 are heads",
    ),
    "a count": (counted, f"counted differs from call to call ({ONE}); call .eval() first"),
}
ALL = (*NEAR, *(int(q) for q in FAR if q > 4096))
OF_POSITIONS = {  # order; what is called; how, heads, count of distances, queries, the last values
    "arrays": ("qk", lambda q, k: -(np.asarray(q) - k) / 8, (QK, 1, 4136, ALL, -(2.0**17))),
    "tensors": (
        "qk",
        lambda q, k: -(q - k).abs().double(),
        (QK, 1, 4133, ALL, -(2.0**20)),
    ),
    "numbers": (
        "qk",
        lambda q, k: -abs(q.__index__() - k.__index__()) / 8.0,
        (QK, 1, 552, (0, 1, 2, 7, 64, 170, 255, 511, *ALL[8:]), -(2.0**17)),
    ),
    "one number": ("qk", lambda q, k: 2.0, (QK, 1, 4120, ALL, 2.0)),
    "two matrices": (
        "qk",
        lambda q, k: np.zeros((2, *np.broadcast_shapes(np.shape(q), np.shape(k)))),
        (QK, 2, 4120, ALL, 0.0),
    ),
    "at most 512": (
        "qk",
        below(511, lambda q, k: -(np.asarray(q) - k)),
        (QK, 1, 512, (0, 1, 2, 7, 64, 170, 255, 511), -511.0),
    ),
    "at most 16": (
        "qk",
        below(15, lambda q, k: -(np.asarray(q) - k)),
        (QK, 1, 16, (0, 1, 2, 5, 7, 15), -15.0),
    ),
    "at most 15": (
        "qk",
        below(14, lambda q, k: -(np.asarray(q) - k)),
        f"called with {QK}: too far",
    ),
    "another shape": (
        "qk",
        lambda q, k: np.zeros((3, 4)),
        f"called with {QK} of shape (8, 4096): it gives shape (3, 4); called with {QK}: it gives "
        "shape (3, 4) for each pair",
    ),
    "three heads": (
        "hqk",
        lambda h, q, k: -SLOPES[int(h)] * (np.asarray(q) - k),
        (f"{HQK}, heads 0 to 2 (heads=... asks for others)", 3, 4162, ALL, -(2.0**20)),
    ),
    "heads without end": (
        "hqk",
        lambda h, q, k: -(np.asarray(q) - k) / 2.0**h,
        (f"{HQK}, heads 0 to 7 (heads=... asks for others)", 8, 4232, ALL, -(2.0**20)),
    ),
    "one of all heads": (
        "hqk",
        lambda h, q, k: -(np.asarray(q) - k) / 2.0 + 0 * int(h),
        (HQK, 1, 4134, ALL, -(2.0**19)),
    ),
    "a mask": ("bhqk", lambda b, h, q, k: (q - k).abs() < 5, (MASK, 1, 4120, ALL, -np.inf)),
    "a sum": ("sbhqk", lambda s, b, h, q, k: s - (q - k) / 8, (SCORE, 1, 4136, ALL, -(2.0**17))),
    "twice": ("sbhqk", lambda s, b, h, q, k: 2 * s, (SCORE, 1, 4120, ALL, 0.0, FACTOR)),
    "a square": (
        "sbhqk",
        lambda s, b, h, q, k: s * s.abs(),
        (SCORE, 1, 4120, ALL, 0.0, "the content logit"),
    ),
    "a cap": (
        "sbhqk",
        lambda s, b, h, q, k: 20 * torch.tanh(s / 20),
        (SCORE, 1, 4120, ALL, 0.0, CAPPED),
    ),
    "of the row": (
        "sbhqk",
        lambda s, b, h, q, k: s * torch.log(q + 2.0),
        (SCORE, 1, 4120, ALL, 0.0, GROWING),
    ),
    **{
        f"{rise:.1%} more": (
            "sbhqk",
            lambda s, b, h, q, k, rise=rise: s * (1 + rise * (q > 5000)),
            (SCORE, 1, 4120, ALL, 0.0, kind),
        )
        for rise, kind in ((0.009, FACTOR), (0.011, GROWING))
    },
    "twice, at most 512": (
        "sbhqk",
        lambda s, b, h, q, k: 2 * s + torch.zeros(512)[k],
        (SCORE, 1, 512, (0, 1, 2, 7, 64, 170, 255, 511), 0.0, "the content logit"),
    ),
}


def told(call, meant):
    """What a sample says, as far as it is meant; or how it is refused."""
    try:
        found = call()
    except (InputError, Unfit) as error:
        return meant if isinstance(meant, str) and meant in str(error) else str(error)
    queries = tuple(row.query for row in found.rows)
    what = found.how, *found.values.shape, queries, float(found.values[0, -1])
    assert np.array_equal(found.distances, np.unique(found.distances)) and found.distances[0] == 0
    return (*what, found.content) if found.content else what


@pytest.mark.parametrize("name", OF_DISTANCES)
def test_a_function_of_the_distance(name):
    f, meant = OF_DISTANCES[name]
    with np.errstate(all="ignore"):
        assert told(lambda: sampling._of_distance(f, None), meant) == meant


@pytest.mark.parametrize("name", OF_POSITIONS)
def test_a_function_of_positions(name):
    order, f, meant = OF_POSITIONS[name]
    how = {"qk": QK, "hqk": HQK, "bhqk": MASK, "sbhqk": SCORE}[order]
    assert told(lambda: sampling._of_positions(f, None, order, how), meant) == meant


def test_where_values_end_is_said_and_heads_that_are_asked_for_are_all():
    of_hundred = sampling._one_by_one(lambda n: HUNDRED[int(n)])
    assert of_hundred.ends == f"at distance 100, called with {ONE}: list index out of range"
    assert not of_hundred.twice
    assert sampling._at_one(lambda n: [float(n)] * 128, int, 3).tolist() == [3.0] * 128
    of_pairs = sampling._of_positions(below(511, lambda q, k: -(np.asarray(q) - k)), None)
    assert of_pairs.ends == f"beyond query 511, called with {QK}: too far"
    sloped = lambda h, q, k: -SLOPES[int(h)] * (np.asarray(q) - k)  # noqa: E731
    assert sampling._of_positions(sloped, 2, "hqk", HQK).values.shape == (2, 4147)
    with pytest.raises(Unfit, match="list index out of range"):
        sampling._of_positions(sloped, 4, "hqk", HQK)


@pytest.mark.parametrize(
    ("names", "takes"),
    [
        *(
            ((name,), True)
            for name in ("scores", "attn", "length", "seq_len", "dots", "hidden", "qk")
        ),
        *(((name,), False) for name in ("n", "x", "delta", "positions", "distance", "rel", "t")),
        *((names.split(), True) for names in ("i j", "T S", "ql kl", "n_heads seq_len")),
        *((names.split(), False) for names in ("q k", "a seq_len", "a b c", "q k i j")),
    ],
)
def test_names_that_mean_a_row(names, takes):
    assert sampling._takes_a_row(lambda: 0, [*names]) is takes


def past(size):
    return (torch.arange(size)[:, None] - torch.arange(size)).clamp(min=0).float()


class Of(nn.Module):
    """A module that is a function."""

    def __init__(self, f):
        super().__init__()
        self.f, self.weight = f, nn.Linear(8, 3)

    def forward(self, *args):
        return self.f(*args)


def gates(x, sign=1):
    total = nn.functional.logsigmoid(x[..., :3]).cumsum(1).permute(0, 2, 1)
    return sign * (total[..., :, None] - total[..., None, :])


SHAPE = "called with a length, 512: it gives shape (512, 3); called with a length, 16"
MATRIX = (1, 512, "", 768, -511.0)
OF_ROWS = {  # how; what is called; heads, distances, content, rows, the last value
    "a matrix": ("a length", lambda n: -past(n), MATRIX),
    "two axes before": ("a length", lambda n: -past(n)[None, None, None], MATRIX),
    "one query": ("a length", lambda n: -past(n)[-1:], (1, 512, "", 2, -511.0)),
    "heads of one query": (
        "a length",
        lambda n: (-past(n)[-1:]).expand(5, n),
        (5, 512, "", 2, -511.0),
    ),
    "heads first": (
        "a length",
        lambda n: -past(n)[None].expand(5, n, n)[:, None],
        (5, 512, "", 768, -511.0),
    ),
    "another shape": ("a length", lambda n: -past(n)[:, :3], SHAPE),
    "as many heads as the length says": (
        "a length",
        lambda n: -past(n)[None].expand(n // 64, n, n),
        "called with a length: the number of heads follows the length",
    ),
    "two lengths": ("two lengths", lambda q, k: -past(q), MATRIX),
    "heads and a length": (
        "heads and a length",
        lambda h, n: -past(n)[None] * torch.arange(1, h + 1)[:, None, None],
        (8, 512, "", 768, -511.0),
    ),
    "vectors": (VECTORS, lambda i, j: -(i[:, None] - j).abs(), MATRIX),
    "one of vectors": (
        VECTORS,
        lambda i, j: -(i - j).abs()[None],
        f"called with {VECTORS}, 512: it gives shape (1, 512)",
    ),
    "a sum": ("scores", lambda s: s - past(s.shape[-1]), MATRIX),
    "a masked sum": (
        "scores",
        lambda s: (s - past(s.shape[-1])).masked_fill(
            torch.ones_like(s, dtype=torch.bool).triu(1), -1e9
        ),
        MATRIX,
    ),
    "none of it": ("scores", lambda s: 0 * s - past(s.shape[-1]), MATRIX),
    "twice": ("scores", lambda s: 2 * s, (1, 512, FACTOR, 512, 0.0)),
    "a cap": ("scores", lambda s: 20 * torch.tanh(s / 20), (1, 512, CAPPED, 512, 0.0)),
    "a square": ("scores", lambda s: s * s.abs(), (1, 512, "the scores", 512, 0.0)),
    "of the row": (
        "scores",
        lambda s: s * torch.log(torch.arange(s.shape[-1]) + 2.0)[:, None],
        (1, 512, GROWING, 512, 0.0),
    ),
    **{
        f"{rise:.1%} more": (
            "scores",
            lambda s, rise=rise: s * (1 + rise * (torch.arange(s.shape[-1]) > 100))[:, None],
            (1, 512, kind, 512, 0.0),
        )
        for rise, kind in ((0.009, FACTOR), (0.011, GROWING))
    },
    "less in longer rows": (
        "scores",
        lambda s: s / (torch.arange(s.shape[-1]) + 2.0)[:, None],
        (1, 512, FACTOR, 512, 0.0),
    ),
    "a sum of one query": ("scores", lambda s: s[..., -1:, :] - 2.0, (1, 512, "", 2, -2.0)),
    "twice one query": ("scores", lambda s: 2 * s[..., -1:, :], (1, 512, "the scores", 0, 0.0)),
    "turned": ("scores", lambda s: s.flip(-1), "called with scores: it turns them"),
    "a turn": (HIDDEN, lambda x: x.flip(-1), "it is a rotation of queries and keys"),
    "a longer turn": (HIDDEN, lambda x: x.flip(-1) * (1 + 1.2e-4), "it is a map of the features"),
    "a map": (HIDDEN, lambda x: 2 * x, "it is a map of the features: this is not a bias"),
    "gates": (HIDDEN, Of(gates), (3, 64, "gates of the content", 64, None)),
    "rising gates": (HIDDEN, Of(lambda x: gates(x, -1)), (3, 64, "the hidden states", 64, None)),
    "products": (
        HIDDEN,
        Of(lambda x: x @ x.transpose(1, 2)),
        (1, 64, "the hidden states", 64, None),
    ),
    "no content": (HIDDEN, Of(lambda x: -past(x.shape[1])), (1, 64, "", 96, -63.0)),
    "of queries": (
        OWN,
        lambda q, k, i, j: -past(len(i)).expand(q.shape[1], -1, -1),
        (8, 512, "", 768, -511.0),
    ),
    "products of queries": (OWN, lambda q, k, i, j: q @ k.mT, (8, 512, f"the {OWN}", 512, None)),
    "one of queries": (
        OWN,
        lambda q, k, i, j: -past(len(i))[-1:],
        f"called with {OWN}, 512: it gives shape (1, 512)",
    ),
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_a_module_of_rows(name):
    how, f, meant = OF_ROWS[name]
    try:
        with torch.no_grad():
            found = of_row(f, None, how)
    except Unfit as error:
        assert str(error).startswith(meant)
        return
    last = None if meant[-1] is None else float(found.values[0, -1])
    assert (*found.values.shape, found.content, len(found.rows), last) == meant
    assert found.how == how and found.kind in ("float32", "int64")


def test_a_function_of_queries_keys_and_positions_is_tried_as_one():
    given = encoding(OF_ROWS["of queries"][1])
    assert (given.num_heads, given.seen.distance) == (8, 511)


def test_a_module_of_rows_has_the_heads_that_are_asked_for():
    of_heads = lambda h, n: -past(n)[None].expand(h, n, n)  # noqa: E731
    assert of_row(of_heads, 3, "heads and a length").values.shape == (3, 512)
    assert of_row(lambda s: 2 * s, 3, "scores").content == FACTOR


class OfScores(torch.nn.Module):
    """ALiBi beside what a function makes of scores."""

    def __init__(self, made):
        super().__init__()
        self.made, self.rate = made, torch.nn.Parameter(torch.tensor(0.125))

    def forward(self, scores):
        at = torch.arange(scores.shape[-1])
        return self.made(scores) - (at[:, None] - at).abs() * self.rate.detach()


MOST = row_modules._RowModule(len, "scores", 1, 512).arguments(1)[0].abs().max().item()
AT_MOST = [(49.9 * MOST, CAPPED), (50.5 * MOST, "the scores")]
BEYOND = [(0.09, ""), (0.12, FACTOR), (0.45, FACTOR), (0.6, "the scores")]
BY_ROW = [  # a factor by the row: the first rows say little, some in the middle are looked at
    (lambda q: 1 + 0.5 * (q > 60), FACTOR),
    (lambda q: 1 + 1 * (q == 64) + 0.5 * (q > 300), FACTOR),
    (lambda q: 1 + (q > 200) * (q < 250), GROWING),
    (lambda q: 1 + (q >= 25) * (q <= 30) + 1 * (q == 65) + 0.5 * (q > 300), GROWING),
]


@pytest.mark.parametrize(
    ("made", "content"),
    [
        (lambda s: s, ""),
        (lambda s: 2 * s, FACTOR),
        (lambda s: (s.bfloat16() * 2).float(), FACTOR),
        (lambda s: s * torch.log(2.0 + torch.arange(s.shape[-2]))[:, None], GROWING),
        (lambda s: 5 * torch.tanh(s / 5), CAPPED),
        (lambda s: s.clamp(-8, 8), CAPPED),  # where no usual score is: seen at large ones
        (lambda s: s.clamp(-500, 500), "the scores"),
        (lambda s: s + 0.02 * s.roll(1, -1), "the scores"),
        (lambda s: 2 * s.flip(-1), "the scores"),
        *((lambda s, most=most: s.clamp(-most, most), said) for most, said in AT_MOST),
        *((lambda s, by=by: s + by * s.sign(), said) for by, said in ((9e-5, ""), (12e-5, FACTOR))),
        *((lambda s, by=by: s + by * s.sign() * (s.abs() > 100), said) for by, said in BEYOND),
        *(
            (lambda s, by=by: by(torch.arange(s.shape[-1]))[:, None] * s, said)
            for by, said in BY_ROW
        ),
        (lambda s: s * s.abs(), "the scores"),
    ],
)
def test_what_a_module_does_with_scores_is_named_where_its_identity_holds(made, content):
    assert of_row(OfScores(made), None, "scores").content == content


@pytest.mark.parametrize(
    ("shape", "how", "found"),
    [
        ((6, 6), "a length", (1, 6, 6)),
        ((1, 6), "a length", (1, 1, 6)),
        ((3, 6), "a length", (3, 1, 6)),
        ((1, 1, 2, 6, 6), "a length", (2, 6, 6)),
        ((2, 1, 6, 6), "a length", (2, 6, 6)),
        ((2, 1, 6), "a length", (2, 1, 6)),
        ((2, 1, 6), OWN, None),
        ((2, 6, 5), "a length", None),
        ((2, 5, 6), "a length", None),
        ((2, 3, 6, 6), "a length", None),
        ((6,), "a length", None),
    ],
)
def test_values_are_squares_or_rows_of_heads(shape, how, found):
    values = np.arange(math.prod(shape)).reshape(shape)
    if found is None:
        with pytest.raises(Unfit, match="it gives shape"):
            row_modules._square(values, how, 6)
    else:
        square = row_modules._square(values, how, 6)
        assert square.shape == found and np.array_equal(square.ravel(), values.ravel())


def test_gates_add_the_same_for_all_queries_and_never_less_than_nothing():
    gates = np.array([0.5, 0.25, 0.0, 0.75, 0.5])
    sums = np.concatenate([[0], np.cumsum(gates)])
    summed = np.tril(sums[None, :] - sums[:, None])[None]
    assert row_modules._adds_gates(summed, 2 * summed, summed > -9)
    near, other, last = summed.copy(), summed.copy(), summed.copy()
    last[0, 4, 4] += 0.01
    near[0, 4, 1] += 0.9e-4
    other[0, 4, 1] += 1.2e-4
    first = (np.eye(6)[:1] - np.eye(6)[:, :1])[None]  # the farthest step alone, which falls
    assert row_modules._near(np.array([0.5, -0.5]), 0.5)
    assert row_modules._adds_gates(near, summed, summed > -9)
    assert row_modules._adds_gates(summed, 1e-6 * first, summed > -9)
    falling = 1.2e-6 * first
    for one, two in [
        *((summed, -summed), (-summed, summed), (summed, 0 * summed), (other, summed)),
        *((falling, summed), (last, summed)),
    ]:
        assert not row_modules._adds_gates(one, two, summed > -9)
        assert not row_modules._adds_gates(two, one, summed > -9)


def test_values_that_meet_in_a_narrow_type_are_named():
    at = np.arange(3000.0)
    for scale, names in [
        (-0.125, {"bf16": 256, "fp16": 2048}),
        (-1.0, {"bf16": 256, "fp16": 2048}),
    ]:
        assert dict(inspection._merged(scale * at[None], np.ones((1, 3000), bool))) == names
    assert not dict(inspection._merged(0 * at[None], np.ones((1, 3000), bool)))
    seen = (at < 300)[None]
    assert dict(inspection._merged(-at[None], seen)) == {"bf16": 256}
    for values, way in [
        ([0, -1, -2], "falls"),
        ([0, 1, 1], "rises"),
        ([3, 3, 3], "constant"),
        ([0, 1, 0], "varies"),
        ([0, np.nan, -1], "constant"),
        ([1, 1 - 1e-10, 1], "constant"),
        ([1, 1 - 1e-8, 1 - 2e-8], "falls"),
    ]:
        assert inspection._direction(np.array([values], dtype=float)) == way
