"""Random programs as source text: biases as people write them, with edges anywhere in 1 to 10^6."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

HEADER = "import math\nimport numpy as np\nimport torch\nINF = math.inf\n"
TAILS = {  # a last piece, and whether its series converges
    **dict.fromkeys(("0.0", "-{1|7|29}", "-0.5*math.log1p(x)"), False),
    **dict.fromkeys(("-INF", "-{s}*x", "-2*math.log(1 + x)", "-math.sqrt(x)", "-{s}*x**2"), True),
}
PIECES = (*TAILS, "{s}*x", "-(x % 7)")
SLOPES = ("0.1", "0.025", "1/8", "0.5", "2", "1/64", "0.3")
BUCKET = """if n < {near}:
        b = n
    else:
        b = {near} + int(math.log(n / {near}) / math.log({far} / {near}) * {near})
        b = min(b, 2 * {near} - 1)
    return -0.25*b"""
SCORE, FOUR = "score, b, h, q, k", "b, h, q, k"
KINDS = {  # arguments; the body; whether its series converges (None: no bias by distance), or where
    # its last pieces {t} and {u} do; what stands before it, where anything does
    "one edge": ("n", "return {p} if n {<|<=} {a} else {t}", "t"),
    "an edge from above": ("n", "return {t} if n {>|>=} {a} else {p}", "t"),
    "chain": (
        "n",
        "if n < {a}:\n        return {p}\n    elif n < {b}:\n        return {p}\n    elif n < {c}:"
        "\n        return {p}\n    else:\n        return {t}",
        "t",
    ),
    "nested": (
        "n",
        "if n >= {a}:\n        if n > {b}:\n            return {t}\n        return {p}\n"
        "    return {p}",
        "t",
    ),
    "clipped": (
        "n",
        "return {-min(n, EDGE) * {s}|max(-{s}*n, -EDGE)|-np.minimum(n, EDGE) / 4|"
        "-np.clip(n, 0, EDGE) / 4}",
        False,
    ),
    "decimal edge": ("n", "return -n/8 if n*0.{1|3|7|01} <= {a}*0.{1|3|7|01} else {t}", "t"),
    "integers": (
        "n",
        "return {-(n // 16) * {s}|-(n // 64) - 0.5*(n % 8)|-int(n / 100)|"
        "-float(n >> 3) - (n & 7)|-(n - n % 128) / 4|-round(n / 64)|-int(n * 0.29)|"
        "-math.floor(n / 3) - math.ceil(n / 16)}",
        True,
    ),
    "remainder": ("n", "return {t} if n % {2|3|5|64|100|503|5003} else {u}", "tu"),
    "blocks": ("n", "return -0.1*n if (n // {4|100|64}) % 2 == 0 else -n", True),
    "bucket": ("n", BUCKET, False),
    "table": (
        "n",
        "return TABLE[min(n, 6)]",
        False,
        "TABLE = [0, -0.3, -1.2, -3.9, 0.5, -2, -4]\n",
    ),
    "loop": (
        "n",
        "total = 0.0\n    for k in range({2|7|11}):\n        total -= abs(n - 3*k) / 5\n"
        "    return total",
        True,
    ),
    "helper": (
        "n",
        "return inner(n)",
        "t",
        "def inner(x, cut={a}):\n    return {p} if x < cut else {t}\n",
    ),
    "closure": (
        "n",
        "return inner(n)",
        "t",
        "def make(cut):\n    return lambda x: -x/4 if x < cut else {t}\ninner = make({a})\n",
    ),
    "where": ("n", "return np.where(n < {a}, -{s}*n, 0.0)", False),
    "where of torch": ("n", "return torch.where(torch.as_tensor(n) < {a}, -{s}*n, -INF)", True),
    "early": ("n", "if n == {a}:\n        return -1.0\n    x = n\n    y = {t}\n    return y", "t"),
    "logarithm": ("n", "return -n/16 if math.log(n + 1) < math.log({a} + 0.5) else {t}", "t"),
    "both": ("n", "return -n/2 if {a} <= n < {b} or n == 0 else {t}", "t"),
    "positions": ("q, k", "x = q - k\n    return -x/8 if x < {a} else {t}", "t"),
    "of the row": (
        "q, k",
        "return {-(q - k)/8 * (q < EDGE)|-(q - k)/8 if q // EDGE % 2 == 0 else 0.0|"
        "0.0 if q // EDGE == k // EDGE else -INF|-(q - k)/8 - (k > EDGE)}",
        None,
    ),
    "mask": (FOUR, "return (q >= k) & (q - k < {a})", True),
    "score": (SCORE, "x = q - k\n    return score - x/8 if x < {a} else score + ({t})", "t"),
    "score part": (
        SCORE,
        "return {20*torch.tanh(score / 20) - 0.1*(q - k)|score*torch.log(q + 1.0) - 0.1*(q - k)|"
        "score*abs(score) - 0.1*(q - k)|torch.where(score > 1, score, score - 0.1*(q - k))}",
        None,
    ),
    "whole loop": (
        "n",
        "total = 0.0\n    for k in range(n):\n        total -= {0.25|1/(k + 1)}\n    return total",
        None,
    ),
    "captured": ("n", "return float(BIAS[n])", None, "BIAS = torch.linspace(0, -9, 900)\n"),
}


@dataclass(frozen=True)
class Program:
    """A file with a function `bias`.

    Fields:
        kind: of program.
        text: of the file.
        arguments: the names of its arguments.
        edges: distances at which something may happen.
        converges: whether the exp-series of its last piece does; None where it is no bias by
            distance, or may not be followed.
    """

    kind: str
    text: str
    arguments: str
    edges: tuple[int, ...]
    converges: bool | None


def program(seed: int) -> Program:
    """The program of a seed; kinds take turns."""
    draw = random.Random(seed)
    kind = [*KINDS][seed % len(KINDS)]
    arguments, body, converges, *before = KINDS[kind]
    edges = sorted(max(2, int(10 ** draw.uniform(0, 6))) for _ in range(3))
    near, last, other = draw.choice((8, 16)), draw.choice([*TAILS]), draw.choice([*TAILS])
    held = {"t": last, "u": other, "near": str(near), "far": str(8 * near)}
    held |= dict(zip("abc", map(str, edges), strict=True))
    text = f"{HEADER}{''.join(before)}def bias({arguments}):\n    {body}\n"
    text = text.replace("EDGE", str(edges[1]))
    while match := re.search(r"\{([^{}]*)\}", text):
        drawn = {"p": draw.choice(PIECES), "s": draw.choice(SLOPES)} | held
        chosen = drawn.get(match[1]) or draw.choice(match[1].split("|"))
        text = text[: match.start()] + chosen + text[match.end() :]
    name = "x" if "x =" in text or "inner" in text else "n"
    text = re.sub(r"\bx\b", name, text)
    places = {int(x) * k for x in re.findall(r"\d+", text) for k in (1, 2, 7, 8, 10, 40, 100)}
    if isinstance(converges, str):
        converges = all(TAILS[held[piece]] for piece in converges)
    return Program(kind, text, arguments, tuple(sorted(places)), converges)
