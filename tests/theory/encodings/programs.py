"""Random programs as source text: biases as people write them, with edges anywhere in 1 to 10^6."""

import random
from dataclasses import dataclass

HEADER = "import math\nimport numpy as np\nimport torch\nINF = math.inf\n"


@dataclass(frozen=True)
class Program:
    """A file with a function `bias`.

    Fields:
        kind: of program.
        text: of the file.
        arguments: the names of its arguments.
        edges: distances at which something may happen.
        converges: whether the exp-series of its last piece does; None where it is no bias by
            distance.
        follows: whether a program of its kind is to be followed.
    """

    kind: str
    text: str
    arguments: str = "n"
    edges: tuple[int, ...] = ()
    converges: bool | None = None
    follows: bool = True


class Draw:
    """Pieces of programs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def edge(self) -> int:
        """An edge of any size."""
        return max(1, int(10 ** self.random.uniform(0, 6)))

    def slope(self) -> str:
        return self.random.choice(["0.1", "0.025", "1/8", "0.5", "2", "1/64", "0.3"])

    def tail(self, n: str = "n") -> tuple[str, bool]:
        """A last piece, and whether its series converges."""
        a = self.slope()
        return self.random.choice(
            [
                ("0.0", False),
                (f"-{self.random.randrange(1, 30)}", False),
                ("-INF", True),
                (f"-{a}*{n}", True),
                (f"-2*math.log(1 + {n})", True),
                (f"-0.5*math.log1p({n})", False),
                (f"-math.sqrt({n})", True),
                (f"-{a}*{n}**2", True),
            ]
        )

    def piece(self, n: str = "n") -> str:
        return self.random.choice([self.tail(n)[0], f"{self.slope()}*{n}", f"-({n} % 7)"])

    # -- kinds ------------------------------------------------------------------------------------

    def one_edge(self) -> Program:
        e, (t, c) = self.edge(), self.tail()
        how = self.random.choice(["<", "<=", ">", ">="])
        first, last = (self.piece(), t) if how[0] == "<" else (t, self.piece())
        return self.of(f"return {first} if n {how} {e} else {last}", (e,), c)

    def chain(self) -> Program:
        es, (t, c) = sorted({self.edge() for _ in range(4)}), self.tail()
        lines = [
            f"{'el' * (i > 0)}if n < {e}:\n        return {self.piece()}" for i, e in enumerate(es)
        ]
        return self.of("\n    ".join(lines) + f"\n    else:\n        return {t}", tuple(es), c)

    def nested(self) -> Program:
        a, b = sorted((self.edge(), self.edge()))
        t, c = self.tail()
        inner = f"if n > {b}:\n            return {t}\n        return {self.piece()}"
        text = f"if n >= {a}:\n        {inner}\n    return {self.piece()}"
        return self.of(text, (a, b), c)

    def clipped(self) -> Program:
        e = self.edge()
        text = self.random.choice(
            [
                f"return -min(n, {e}) * {self.slope()}",
                f"return max(-{self.slope()}*n, -{e})",
                f"m = n if n < {e} else {e}\n    return -{self.slope()}*m",
                f"return -np.minimum(n, {e}) / 4",
                f"return -np.clip(n, 0, {e}) / 4",
            ]
        )
        return self.of(text, (e, 2 * e, 8 * e, 10 * e, 40 * e), False)

    def decimal_edge(self) -> Program:
        e, (t, c) = self.edge(), self.tail()
        k = self.random.choice([0.1, 0.3, 0.7, 0.01])
        return self.of(f"return -n/8 if n*{k} <= {e}*{k} else {t}", (e,), c)

    def integers(self) -> Program:
        m, d = self.random.choice([4, 16, 64, 100]), self.random.choice([3, 8, 128])
        text = self.random.choice(
            [
                f"return -(n // {m}) * {self.slope()}",
                f"return -(n // {m}) - 0.5*(n % {d})",
                f"return -int(n / {m})",
                "return -float(n >> 3) - (n & 7)",
                f"return -(n - n % {d}) / {m}",
                f"return -round(n / {m})",
                f"return -int(n * {self.random.choice(['0.29', '0.1', '0.57'])})",
                f"return -math.floor(n / {d}) - math.ceil(n / {m})",
            ]
        )
        return self.of(text, (m, d, m * d), True)

    def remainder(self) -> Program:
        m = self.random.choice([2, 3, 5, 64, 100, 503, 5003])
        t, c = self.tail()
        other, d = self.tail()
        keep = f"return {t} if n % {m} else {other}"
        return self.of(keep, tuple(k * m for k in (1, 2, 7, 100)), c and d)

    def blocks(self) -> Program:
        m = self.random.choice([4, 100, 64])
        return self.of(f"return -0.1*n if (n // {m}) % 2 == 0 else -n", (m, 2 * m), True)

    def bucket(self) -> Program:
        near, far = self.random.choice([(8, 128), (16, 128), (16, 512)])
        text = (
            f"if n < {near}:\n        b = n\n    else:\n"
            f"        b = {near} + int(math.log(n / {near}) / math.log({far} / {near}) * {near})\n"
            f"        b = min(b, {2 * near - 1})\n    return -0.25*b"
        )
        return self.of(text, (near, far, far - 1, near * 2), False)

    def table(self) -> Program:
        size = self.random.randrange(2, 40)
        values = [round(self.random.uniform(-4, 0), 2) for _ in range(size)]
        return self.of(f"return TABLE[min(n, {size - 1})]", (size,), False, f"TABLE = {values}\n")

    def loop(self) -> Program:
        size = self.random.randrange(2, 12)
        each = f"for k in range({size}):\n        total -= abs(n - 3*k) / {size}"
        text = f"total = 0.0\n    {each}\n    return total"
        return self.of(text, tuple(3 * k for k in range(size)), True)

    def helper(self) -> Program:
        e, (t, c) = self.edge(), self.tail("x")
        inner = f"if x < cut:\n        return {self.piece('x')}\n    return {t}"
        before = f"def inner(x, cut={e}):\n    {inner}\n"
        return self.of("return inner(n)", (e,), c, before)

    def closure(self) -> Program:
        e, (t, c) = self.edge(), self.tail()
        inner = f"def f(n):\n        return -n/4 if n < cut else {t}\n    return f"
        before = f"def make(cut):\n    {inner}\n"
        return Program("closure", f"{HEADER}{before}bias = make({e})\n", "n", (e,), c)

    def where(self) -> Program:
        e, a = self.edge(), self.slope()
        lib = self.random.choice(["np", "torch"])
        n = "n" if lib == "np" else "torch.as_tensor(n)"
        far, c = self.random.choice([("0.0", False), ("-INF", True)])
        return self.of(f"return {lib}.where({n} < {e}, -{a}*{n}, {far})", (e,), c)

    def early(self) -> Program:
        e, (t, c) = self.edge(), self.tail()
        return self.of(f"if n == {e}:\n        return -1.0\n    x = {t}\n    return x", (e,), c)

    def logarithm(self) -> Program:
        e, (t, c) = self.edge(), self.tail()
        cut = f"math.log({e} + 0.5)"
        return self.of(f"return -n/16 if math.log(n + 1) < {cut} else {t}", (e,), c)

    def both(self) -> Program:
        a, b = sorted((self.edge(), self.edge()))
        t, c = self.tail()
        return self.of(f"return -n/2 if {a} <= n < {b} or n == 0 else {t}", (a, b), c)

    def positions(self) -> Program:
        e, (t, c) = self.edge(), self.tail("(q - k)")
        return self.of(f"return -(q - k)/8 if q - k < {e} else {t}", (e,), c, arguments="q, k")

    def of_the_row(self) -> Program:
        e = max(2, self.edge())  # blocks of one position are the distance 0
        text = self.random.choice(
            [
                f"return -(q - k)/8 * (q < {e})",
                f"return -(q - k)/8 if q // {e} % 2 == 0 else 0.0",
                f"return 0.0 if q // {e} == k // {e} else -INF",
                f"return -(q - k)/8 - (k > {e})",
            ]
        )
        return self.of(text, (e,), None, arguments="q, k")

    def mask(self) -> Program:
        e = self.edge()
        text = f"return (q >= k) & (q - k < {e})"
        return self.of(text, (e,), True, arguments="b, h, q, k")

    def score(self) -> Program:
        e, (t, c) = self.edge(), self.tail("(q - k)")
        text = f"return score - (q - k)/8 if q - k < {e} else score + ({t})"
        return self.of(text, (e,), c, arguments="score, b, h, q, k")

    def score_part(self) -> Program:
        text = self.random.choice(
            [
                "return 20*torch.tanh(score / 20) - 0.1*(q - k)",
                "return score*torch.log(q + 1.0) - 0.1*(q - k)",
                "return score*abs(score) - 0.1*(q - k)",
                "return torch.where(score > 1, score, score - 0.1*(q - k))",
                "return score * SCALE[q] - 0.1*(q - k)",
            ]
        )
        before = "SCALE = torch.linspace(1, 9, 2000)\n"
        return self.of(text, (), None, before, arguments="score, b, h, q, k", follows=False)

    def whole_loop(self) -> Program:
        t, c = self.random.choice([("0.25", True), ("1/(k + 1)", False)])
        text = f"total = 0.0\n    for k in range(n):\n        total -= {t}\n    return total"
        return self.of(text, (), c, follows=False)

    def captured(self) -> Program:
        e = self.random.randrange(20, 3000)
        before = f"BIAS = torch.linspace(0, -9, {e})\n"
        return self.of("return float(BIAS[n])", (e,), None, before, follows=False)

    def of(
        self,
        body: str,
        edges: tuple[int, ...],
        converges: bool | None,
        before: str = "",
        arguments: str = "n",
        follows: bool = True,
    ) -> Program:
        text = f"{HEADER}{before}def bias({arguments}):\n    {body}\n"
        return Program(self.kind, text, arguments, edges, converges, follows)

    kind = ""


KINDS = [
    name
    for name, value in vars(Draw).items()
    if callable(value) and name[0] != "_" and name not in ("edge", "slope", "tail", "piece", "of")
]


def program(seed: int) -> Program:
    """The program of a seed; kinds take turns."""
    draw = Draw(seed)
    draw.kind = KINDS[seed % len(KINDS)]
    made: Program = getattr(draw, draw.kind)()
    return made
