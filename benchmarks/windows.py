"""Random rows against every bound on windows: violations, and how near a row comes to the bound.

    python benchmarks/windows.py [--rows 20000]

Each theorem is tried on random rows (content logits uniform in their bound, values on the unit
circle) and on rows of its worst case; shown is the greatest share of the bound that was reached.
"""

import itertools
import math

import numpy as np
from side_by_side import program

from farfield.numerics.windows.row_bound import window_certificate
from farfield.numerics.windows.window import window_error
from farfield.theory.encodings import encoding

BETA = 1.0
ROUNDING = 1e-12  # of a difference of two outputs of norm 1
RNG = np.random.default_rng(0)


def softmax(logits):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def moved(logits, values, kept):
    full = (softmax(logits)[..., None] * values).sum(-2)
    part = (softmax(np.where(kept, logits, -np.inf))[..., None] * values).sum(-2)
    return np.linalg.norm(full - part, axis=-1)


def drawn(count, keys, worst, inside):
    """Content logits and values; in the worst case low and +1 inside, high and -1 outside."""
    x = RNG.uniform(-BETA, BETA, (count, keys))
    turn = RNG.uniform(0, 2 * math.pi, (count, keys))
    v = np.stack([np.cos(turn), np.sin(turn)], -1)
    if worst:
        near = np.broadcast_to(inside, (count, keys))
        x = np.where(near, -BETA, BETA)
        v = np.where(near, 1.0, -1.0)[..., None] * np.array([1.0, 0.0])
    return x, v


def shapes(count):
    """Rows of several lengths, widths and biases, so many in all."""
    biases = (lambda t: -t / 8, lambda t: -2 * np.log1p(t), lambda t: 0 * t, lambda t: np.sin(t))
    each = max(1, count // (3 * 3 * len(biases)))
    for keys in (8, 32, 128):
        for width in (1, keys // 4, keys // 2):
            for bias in biases:
                yield each, keys, width, bias(np.arange(keys, dtype=float))


def biased(content, factor):
    """A bias added to what becomes of the content logits, which stays within a multiple of BETA."""

    def check(count, worst):
        for each, keys, width, p in shapes(count):
            inside = np.arange(keys) < width
            x, v = drawn(each, keys, worst, inside)
            row = encoding(values=p, tail="cut")
            bound = window_error(row, width, factor(keys) * BETA, 1).value
            yield moved(content(x, keys, inside) + p, v, inside), bound

    return check


def bounded(count, worst):
    """The mass outside, at least (i - j)/(i - j + j e^{2 beta}) for every input: as 1 - mass."""
    for each, keys, width, _ in shapes(count):
        inside = np.arange(keys) < width
        x, _ = drawn(each, keys, worst, inside)
        x = -x if worst else x
        mass = softmax(x)[:, width:].sum(-1)
        least = (keys - width) / (keys - width + width * math.exp(2 * BETA))
        yield 1 - mass, 1 - least


def average(count, worst):
    """The leak against the outside mass, its mean over every order of six logits of any size."""
    orders = np.array(list(itertools.permutations(range(6))))
    for width in range(1, 6):
        each = max(1, count // 5)
        p = np.zeros((each, 6)) if worst else -np.sort(RNG.exponential(2, (each, 6)), -1)
        x = RNG.normal(scale=4, size=(each, 6))
        mass = [softmax(x[:, order] + p)[:, width:].sum(-1) for order in orders]
        yield softmax(p)[:, width:].sum(-1), np.mean(mass, axis=0)


def gates(count, worst):
    for each, keys, width, _ in shapes(count):
        gamma = 0.9
        f = RNG.uniform(0.5, gamma, (each, keys)) if not worst else np.full((each, keys), gamma)
        p = np.concatenate([np.zeros((each, 1)), np.log(f[:, :-1]).cumsum(1)], 1)
        inside = np.arange(keys) < width
        x, v = drawn(each, keys, worst, inside)
        ratio = gamma**width / (1 - gamma**width)
        yield moved(x + p, v, inside), 2 * ratio / (ratio + math.exp(-2 * BETA))


def sticks(count, worst):
    for each, keys, width, _ in shapes(count):
        inside = np.arange(keys) < width
        x, v = drawn(each, keys, worst, inside)
        v = np.ones_like(v) / math.sqrt(2) if worst else v
        chance = 1 / (1 + np.exp(-x))
        left = np.concatenate([np.ones((each, 1)), np.cumprod(1 - chance, 1)[:, :-1]], 1)
        dropped = ((chance * left)[..., None] * v)[:, width:].sum(1)
        stays = 1 / (1 + math.exp(-BETA))
        yield np.linalg.norm(dropped, axis=-1), stays**width * (1 - (1 - stays) ** (keys - width))


def sinks(count, worst):
    for each, keys, width, p in shapes(count):
        first = 1 + keys // 16
        if width + first >= keys:
            continue
        at = np.arange(keys)
        inside = at < width
        x, v = drawn(each, keys, worst, inside | (at >= keys - first))
        logits = x + p
        logits[:, keys - first :] = RNG.normal(scale=6, size=(each, first))
        weight = np.exp(logits[:, keys - first :]).sum(-1)
        tail, near = np.exp(p[width : keys - first]).sum(), np.exp(p[:width]).sum()
        kept = math.exp(-2 * BETA) * near + math.exp(-BETA) * weight
        yield moved(logits, v, inside | (at >= keys - first)), 2 * tail / (tail + kept)


def certificates(count, worst):
    keys, size, width, first = 128, 8, 24, 2
    for _ in range(max(1, count // keys)):
        q, k = RNG.normal(size=(2, keys, size)) * RNG.uniform(0.3, 4)
        if worst:
            q, k = np.ones((keys, size)), np.ones((keys, size))
        turn = RNG.uniform(0, 2 * math.pi, keys)
        v = np.stack([np.cos(turn), np.sin(turn)], -1)
        found = window_certificate(q, k, window=width, sinks=first, error="1/10")
        at = np.arange(keys)
        seen = at[None] <= at[:, None]
        kept = seen & ((at[None] > at[:, None] - width) | (at[None] < first))
        if worst:
            v = np.where(kept[-1], 1.0, -1.0)[:, None] * np.array([1.0, 0.0])
        logits = np.where(seen, q @ k.T / math.sqrt(size), -np.inf)
        yield moved(logits, v[None], kept)[found.bound > 0], found.bound[found.bound > 0]


THEOREMS = {
    "window-error": biased(lambda x, keys, inside: x, lambda keys: 1),
    "bounded-logits": bounded,
    "growing-logits": biased(lambda x, keys, _: math.log(keys) / 4 * x, lambda n: math.log(n) / 4),
    "gated-decay": gates,
    "stick-breaking": sticks,
    "kept-sinks": sinks,
    "row-certificate": certificates,
    "average-leak": average,
    # x + F(x, b), F(x, b) = b + |x|/2 with a sign: 1/2-Lipschitz in x, and p = F(0, b) = b
    "lipschitz-mixing": biased(
        lambda x, _, inside: x + np.where(inside, -1, 1) * np.abs(x) / 2, lambda keys: 3 / 2
    ),
}


def main(*, rows: int = 20_000):
    """Random rows against every bound on windows, so many of each theorem and kind."""
    for name, check in THEOREMS.items():
        random, worst = (
            np.concatenate([found / (bound + ROUNDING) for found, bound in check(rows, hard)])
            for hard in (False, True)
        )
        every = np.concatenate([random, worst])
        counted = {"rows": len(every), "violations": int((every > 1 + 1e-9).sum())}
        nearest = {"nearest, random": float(random.max()), "worst case": float(worst.max())}
        yield {"theorem": name, **counted, **nearest}


if __name__ == "__main__":
    program(main, "violations")
