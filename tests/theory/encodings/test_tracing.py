"""Programs as people write them: the formula that each has, or why it has none."""

from __future__ import annotations

import copy
import dataclasses
import enum
import errno
import functools
import math
import operator
import os
import pickle
import re
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import sympy
from sympy import Rational

from farfield.theory.encodings import branches, tracing
from farfield.theory.encodings.branches import Domain, NotTraced, Path
from farfield.theory.encodings.traced_values import _SMOOTH, OPERATORS
from farfield.theory.encodings.tracing import Untraced, traced
from farfield.theory.functions.nodes import n

torch = pytest.importorskip("torch")
USED = (copy, np, operator, pickle, Fraction)  # by the programs below
BIAS, GRID = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([[0.0, 1.0, 3.0], [2.0, 4.0, 7.0]])
HALF, LONG = torch.nn.Parameter(torch.tensor([0.5])), [0.0] * 64


class Sloped:
    slope = 3

    def bias(self, n, power=1):
        return -self.slope * n**power


class Mode(enum.Enum):
    LINEAR, FLAT = 1, 2


@dataclasses.dataclass
class Held:
    """A bias as people write it: it holds its slopes, makes a table at its first call."""

    slope: float
    mode: Mode = Mode.LINEAR
    table: list[float] | None = None

    def __call__(self, n):
        if self.table is None:
            self.table = [self.slope, 0.0]
        return -self.table[self.mode == Mode.FLAT] * n


HELD, KNOWN = Held(0.125), {}
squared = functools.lru_cache(partial(Sloped().bias, power=2))
FOLLOWED = """
n: -n[None] / 8
    -n/8
n: -torch.as_tensor(n)[None][:] / 8
    -n/8
n: -torch.as_tensor(n)[..., None] / 8
    -n/8
n: -9.0 if n < 4 and n in {1, 2} else -n
    Piecewise((0, n < 1), (-9, n < 3), (-n, True))
n: [0.0, -1.0, -5.0][n] if n < 3 else -3.0
    Piecewise((0, n < 1), (-1, n < 2), (-5, n < 3), (-3, True))
n: [0.0, -1.0][n > 5]
    Piecewise((0, n < 6), (-1, True))
n: -n.T / 8 + n.ndim + len(n.shape)
    -n/8
n: -n.to(n.device) / 8 - n.to("cpu")
    -9*n/8
n: -n.double() - n.type(torch.float32)
    -2*n
n: -n.long() - (n / 3).int() - n.to(torch.int64)
    -2*n - floor(n/3)
n: -np.float64(n / 3).astype(np.int64) - np.int64(n / 7)
    -floor(n/7) - floor(n/3)
n: -n.sqrt() - n.add(n) - n.clamp(max=8)
    Piecewise((-sqrt(n) - 3*n, n < 9), (-sqrt(n) - 2*n - 8, True))
n: -n.clone().detach().cpu().contiguous().unsqueeze(0).squeeze().expand(1).view(1).item()
    -n
n: (b := -n / 8, operator.setitem(b, n >= 64, -math.inf), b)[-1]
    Piecewise((-n/8, n < 64), (-oo, True))
n: -n * np.array([0.5])
    -n/2
n: -n * Fraction(1, 3) - n * np.float32(0.5)
    -5*n/6
n: Fraction(1, 3) if n < Fraction(7, 2) else -n
    Piecewise((1/3, n < 4), (-n, True))
n: n - sympy.log(1 + n)
    n - log(n + 1)
n: n / (n / 3)
    3
n: 0.0 if n < 9 else torch.finfo(torch.float32).min
    Piecewise((0, n < 9), (-oo, True))
n: 0.0 if n < 9 else -65504.0
    Piecewise((0, n < 9), (-oo, True))
n: 0.0 if n < 9 else -65503.0
    Piecewise((0, n < 9), (-65503, True))
n: 0.0 if n < 9 else -3.4e38
    Piecewise((0, n < 9), (-oo, True))
n: 0.0 if n < 9 else -3.2e38
    Piecewise((0, n < 9), (-320000000000000000000000000000000000000, True))
n: n * -math.pi - n * math.tau + n * -math.e - n * math.pi / 2 - n * True
    -7*pi*n/2 - E*n - n
n: -n if n > 3 else math.nan
    -n
n: math.inf if n == 0 else -n
    Piecewise((oo, n < 1), (-n, True))
n: -n if n.new_zeros(1) < 1 else 0.0
    -n
n: -n if n.new_ones(1) < 1 else n.new_full((1,), 2.0) - n.new_tensor(3.0)
    -1
n: -n if (0 * n - math.inf) == -math.inf else 0.0
    -n
n: -n if (0 * n - math.inf) < -math.inf else 0.0
    0
b, h, q, k: (q - k > 3) ^ (q - k < 8)
    Piecewise((0, n < 4), (-oo, n < 8), (0, True))
b, h, q, k: torch.logical_not(q - k < 8) | (q - k == 2)
    Piecewise((-oo, n < 2), (0, n < 3), (-oo, n < 8), (0, True))
b, h, q, k: True & (q - k < 8) & (k >= 0)
    Piecewise((0, n < 8), (-oo, True))
b, h, q, k: False ^ (q - k < 8)
    Piecewise((0, n < 8), (-oo, True))
n: -(n > 3).float() - (n < 9) * n
    Piecewise((-n, n < 4), (-n - 1, n < 9), (-1, True))
n: ((n > 3) & (n < 8)) * 1.0
    Piecewise((0, n < 4), (1, n < 8), (0, True))
n: -math.inf + n if n > 8 else n - math.inf if n > 4 else 0.0
    Piecewise((0, n < 5), (-oo, True))
n: -n / math.inf
    0
n: -(n // 4 // 8) - math.ceil(math.ceil(n / 3) / 4)
    -ceiling(n/12) - floor(n/32)
n: math.floor(-(n // 3) / 2)
    floor(-floor(n/3)/2)
n: math.floor((n // 3) * 2 / 3)
    floor(2*floor(n/3)/3)
n: -(n % 7) - n * 0.5 % 3 - 9 % 4
    -Mod(n, 6)/2 - Mod(n, 7) - 1
n: -(n % 0.3)
    -Mod(n, 3)/10
n: -(math.sqrt(n) % 3)
    -sqrt(n) + 3*floor(sqrt(n)/3)
n: -(n & 7) - (n >> 2) - (n >> 0) - (n & 0)
    -n - Mod(n, 8) - floor(n/4)
n: -1.0 * (n % 2 & (n > 3))
    Piecewise((0, n < 4), (0, (n >= 4) & Eq(Mod(n, 2), 0)), (-1, True))
n: -(n**0.5) - (n - 3) ** 2 - 2**-n
    -sqrt(n) - (n - 3)**2 - 1/2**n
n: n**-1.0 - (n + 2) ** (n / 10**7) - pow(n, 2)
    -n**2 - (n + 2)**(n/10000000) + 1/n
n: -((n - 3) ** -2)
    Piecewise((-1/(n - 3)**2, n < 3), (-1/(n - 3)**2, True))
n: 1 / (n - 7)
    Piecewise((1/(n - 7), n < 7), (1/(n - 7), True))
n: +n - 2 * -n - abs(n - 8) - math.trunc(n / 3)
    Piecewise((4*n - floor(n/3) - 8, n < 8), (2*n - floor(n/3) + 8, True))
n: -round(n) - round(n / 4)
    Piecewise((-n - floor(n/4 + 1/2) + 1, Eq(Mod(n, 8), 2)), (-n - floor(n/4 + 1/2), True))
n: -round(n / 2, 1) - round(n / 3, ndigits=2)
    -n/2 - floor(100*n/3 + 1/2)/100
n: -round(math.sqrt(n))
    -floor(sqrt(n) + 1/2)
n: -int(n / 3 - 2)
    Piecewise((2 - ceiling(n/3), n < 6), (2 - floor(n/3), True))
n: -min(n, 8) - min([n, 9]) - max(n, 3, 8)
    Piecewise((-2*n - 8, n < 8), (-24, n < 9), (-n - 17, True))
n: np.fmin(n, 3) + np.fmax(n, 5) + np.absolute(n) + np.fabs(n)
    Piecewise((3*n + 5, n < 4), (16, n < 5), (3*n + 3, True))
n: -np.clip(n, 2, 8) - np.clip(n, None, 9)
    Piecewise((-n - 2, n < 2), (-2*n, n < 9), (-17, True))
n: -np.clip(n, 2, None) - np.clip(n, a_min=3, a_max=11)
    Piecewise((-5, n < 3), (-2*n, n < 12), (-n - 11, True))
n: -torch.clamp(n, min=2) - n.clamp(1, 8)
    Piecewise((-3, n < 2), (-2*n, n < 9), (-n - 8, True))
n: -np.sign(n - 3)
    Piecewise((1, n < 3), (0, n < 4), (-1, True))
n: -math.log(n + 1, 2) - np.log2(n + 1) - np.log10(n + 2) - math.log(n + 1)
    -2*log(n + 1)/log(2) - log(n + 1) - log(n + 2)/log(10)
n: np.log(0 * n) if n > 3 else -n
    Piecewise((-n, n < 4), (-oo, True))
n: -np.sqrt(n) - np.reciprocal(1.0 + n) - torch.rsqrt(torch.as_tensor(n + 1.0))
    -sqrt(n) - 1/(n + 1) - 1/sqrt(n + 1)
n: torch.nn.functional.softplus(-n) - torch.special.expit(n)
    log(1 + exp(-n)) - 1/(1 + exp(-n))
n: torch.tensor(-0.1) * torch.log(1 + n.float())
    -log(n + 1)/10
n: np.where(np.less(n, 8), 0.0, np.where(np.greater_equal(n, 12), -1.0, -2.0))
    Piecewise((0, n < 8), (-2, n < 12), (-1, True))
n: torch.where(n.lt(8), 0.0, torch.where(torch.ge(n, 12), -1.0, -2.0))
    Piecewise((0, n < 8), (-2, n < 12), (-1, True))
n: -torch.relu(n - 4)
    Piecewise((0, n < 5), (4 - n, True))
n: -n if np.isinf(0 * n - math.inf) else 0.0
    -n
n: -n if np.isnan(n) or not np.isfinite(n) else 0.0
    0
n: -n if np.logical_and(n > 3, n < 8) or np.logical_or(n == 1, n == 2) else 0.0
    Piecewise((0, n < 1), (-1, n < 2), (-2, n < 3), (0, n < 4), (-n, n < 8), (0, True))
n: (-n / 8).masked_fill(torch.logical_not(n < 64), -torch.inf)
    Piecewise((-n/8, n < 64), (-oo, True))
n: -n + np.ones_like(n) + np.full_like(n, 3) + torch.zeros_like(torch.as_tensor(n))
    4 - n
n: -divmod(n, 4)[0] - divmod(n, 4)[1] * 2 - np.ndim(n)
    -2*Mod(n, 4) - floor(n/4)
n: -sum([n, 1], 2) - sum([n, n], start=5) - sum([1, 2]) * n
    -6*n - 8
n: -float(n) - torch.tensor(n, dtype=torch.float64) - torch.as_tensor(n, device="cpu")
    -3*n
n: -copy.copy(n) - np.copy(n) - np.array(n)
    -3*n
n: -torch.squeeze(torch.as_tensor(n)) - torch.clone(torch.as_tensor(n))
    -2*n
n: -np.add(n, 1, dtype=np.int64) - np.sqrt(n, out=None)
    -sqrt(n) - n - 1
n: -np.power(n, 0.5) - np.subtract(n, 2) - np.multiply(n, 3) - np.divide(n, 4)
    -sqrt(n) - 17*n/4 + 2
n: np.array(0.5, np.float64) * -n - n * np.array(0.5, dtype=np.float64)
    -n
n: -BIAS[min(n, len(BIAS) - 1)]
    Piecewise((-1, n < 1), (-2, n < 2), (-4, True))
n: -BIAS[n.clamp(max=2)]
    Piecewise((-1, n < 1), (-2, n < 2), (-4, True))
n: -GRID[1, min(n, 2)] - GRID[0][min(n, 2)]
    Piecewise((-2, n < 1), (-5, n < 2), (-10, True))
n: -HALF * n
    -n/2
n: HELD(n)
    -n/8
n: 0.0 if copy.deepcopy(n) % 100 == 99 else -n / 8
    Piecewise((0, Eq(Mod(n, 100), 99)), (-n/8, True))
n: -1 / (1 - 0.5**n) if n else -9.0
    Piecewise((-9, n < 1), (-1/(1 - (1/2)**n), True))
n: -np.asarray(n / 3, dtype=np.int64)
    -floor(n/3)
n: -n / 8 * torch.ones((), dtype=n.dtype) + 0 * torch.as_tensor(n).ndim
    -n/8
n: -n / 8 if isinstance(n, (int, np.integer)) else 0.0
    -n/8
n: -max([n, 500, 300]) / 8
    Piecewise((-125/2, n < 500), (-n/8, True))
n: squared(n) - n * math.gcd(4, 6)
    -3*n**2 - 2*n
n: -n / 8 if isinstance(n, int) and isinstance(np.log(0 * n), float) and isinstance(3, int) else 0.0
    -n/8
n: -n / 8 if isinstance(n, (float, np.floating)) else -n
    -n
n: -n if n + 0 == n else 0.0
    -n
n: 0.0 if (n * 0.1) % 1 == 0 else -n
    Piecewise((0, Eq(Mod(n, 10), 0)), (-n, True))
n: 0.0 if (n - 5) * (n - 9) > 0 else -1.0
    Piecewise((0, n < 5), (-1, n < 10), (0, True))
n: 0.0 if n * math.pi < 10 else -1.0
    Piecewise((0, n < 4), (-1, True))
n: 0.0 if n < 8 and math.sin(n) > 0.5 else -n
    Piecewise((0, n < 3), (-n, n < 7), (0, n < 8), (-n, True))
n: -n if n // 4 % 2 == 0 else 0.0
    Piecewise((-n, Mod(n, 8) < 4), (0, True))
n: -n if n % 6 // 2 == 1 else 0.0
    Piecewise((-n, (Mod(n, 6) >= 2) & (Mod(n, 6) < 4)), (0, True))
n: -n if n % 3 and n > 10 else 0.0
    Piecewise((0, (n < 11) & (Mod(n, 3) >= 1)), (0, Eq(Mod(n, 3), 0)), (-n, True))
n: 0.0 if n == 5 else -n
    Piecewise((-n, n < 5), (0, n < 6), (-n, True))
n: -n if n < 5 else -5.0 if n == 5 else -n
    Piecewise((-n, n < 5), (-n, True))
n: -n if n < 5 else -1.0 * n
    -n
n: -n if n**0.5 == 3 else 0.0
    Piecewise((0, n < 9), (-9, n < 10), (0, True))
n: -n if n**0.5 != 3 else 0.0
    Piecewise((-n, n < 9), (0, n < 10), (-n, True))
n: 0.0 if math.log(n + 1) < 3 else -n
    Piecewise((0, n < 20), (-n, True))
n: 0.0 if n < 20 and math.log(n + 1) < 60 else -n
    Piecewise((0, n < 20), (-n, True))
n: 0.0 if 1 / (n + 1) < 0.01 else -n
    Piecewise((-n, n < 100), (0, True))
n: 0.0 if math.floor(n / 3) + n > 50 else -n
    Piecewise((-n, n < 39), (0, True))
n: -n if n < 2**63 else 0.0
    Piecewise((-n, n < 9223372036854775808), (0, True))
n: LONG[n] if n < 63 else 0.0
    0
q, k: -(q - k) if k >= 0 and k > -1 and k != -1 and not k < 0 and not k == -1 else 0.0
    -n
n: 0.0 if n * 0.1 <= 346.9 else -math.inf
    Piecewise((0, n < 3469), (-oo, True))
n: 0.0 if n * 0.1 <= 3743.6 else -math.inf
    Piecewise((0, n < 37436), (-oo, True))
n: 0.0 if n * 0.3 <= 900.3 else -math.inf
    Piecewise((0, n < 3002), (-oo, True))
n: 0.0 if n * 0.7 <= 4.9 else -math.inf
    Piecewise((0, n < 8), (-oo, True))
n: -int(n * 0.07)
    -floor(7*n/100)
h, q, k: torch.as_tensor(q - k) < 257
    Piecewise((0, n < 257), (-oo, True))
q, k: (q - k < 257) & (q >= k)
    Piecewise((0, n < 257), (-oo, True))
q, k: q - k < 5
    Piecewise((0, n < 5), (-oo, True))
h, q, k: -(q - k) if h >= 0 else 0.0
    -n
score, b, h, q, k: score - (q - k)
    -n
"""
REFUSED = """
b, h, q, k: ~(q - k < 8)
    at distance 0 the program gives 0.0, its formula -inf
n: -n[0]
    the distance as an array (line 1)
n: -n[None, 0]
    the distance as an array (line 1)
n: -float("%f" % n)
    the distance is handed to code that is not followed (line 1)
n: -len(pickle.dumps(n))
    the distance is stored (line 1)
n: -int(n * 0.29)
    at distance 300 the program gives -87.0, its formula -86.0
n: KNOWN.setdefault(n, -n / 8)
    the distance is stored (line 1)
n: {0: 0.0}.get(n, -n)
    the distance is stored (line 1)
n: [0.0, -1.0][n / 2]
    a position or a fraction as an index (line 1)
q, k: [0.0, -1.0][k]
    a position or a fraction as an index (line 1)
n: -(n / 3).half()
    half of the distance (line 1)
n: -n.to(torch.float16)
    the distance as float16 (line 1)
n: -n.type("foo")
    the distance as foo (line 1)
n: -n.min()
    min of the distance (line 1)
n: -n * np.array([1.0, 2.0])
    an array of shape (2,) (line 1)
n: -n * "a"
    a value of type str (line 1)
n: -n if n != 8 else math.nan
    it raises ValueError (nan) at distance 8
n: -n + math.nan
    it raises ValueError (nan) at distance 0
n: 1 / (n - 8)
    it raises ZeroDivisionError (division by zero) at distance 8
n: -n * 10**400
    it gives a whole number beyond all floats at 1
n: np.divide(n, 0.0) if n > 3 else -n
    it raises ZeroDivisionError (division by zero) at distance 4
n: -(3.0 ** (n / 2))
    it raises OverflowError ((34, 'ERANGE')) at 2047
n: -(n % -7)
    a remainder by what is no positive number (line 1)
n: -(7 % (n + 1))
    a remainder by what is no positive number (line 1)
n: -(n & 6)
    bits of the distance (line 1)
n: -(n & -1)
    bits of the distance (line 1)
n: -(n / 2 & 7)
    bits of the distance (line 1)
n: -(7 & n)
    bits of the distance (line 1)
n: -(~n)
    bits of the distance (line 1)
n: -(n << 1)
    bits of the distance (line 1)
n: -1e300 * n
    an infinite multiple of the distance (line 1)
n: -(n >> -1)
    a shift by the distance (line 1)
n: -(8 >> n)
    a shift by the distance (line 1)
n: -((n - 3) ** 0.5)
    a root of a negative number (line 1)
n: -((n - 5) ** (n / 2))
    a root of a negative number (line 1)
n: -min(n)
    the least or largest of all distances (line 1)
n: -np.max([n, 3])
    max of all distances (line 1)
n: -torch.max(n, 0)
    max of all distances (line 1)
n: np.log(n)
    log where it has no value (line 1)
n: np.log1p(n - 1)
    log1p where it has no value (line 1)
n: np.sqrt(n - 3)
    sqrt where it has no value (line 1)
n: np.reciprocal(n - 3.0)
    reciprocal where it has no value (line 1)
n: np.reciprocal(0 * n) if n > 3 else -n
    reciprocal where it has no value (line 1)
n: -np.sqrt(n, where=True)
    sqrt with where= (line 1)
n: -np.heaviside(n, 0)
    heaviside of the distance has no formula here (line 1)
n: -n if n < 9 else [] + 1
    TypeError: can only concatenate list (not "int") to list
n: -9.0 if n * 0.1 * 3 == n * 0.3 else -n
    rounding decides a comparison of equal numbers (line 1)
n: 0.0 if n * 0.1 % 0.3 == 0 else -n
    rounding changes a remainder (line 1)
n: 0.0 if n % 16385 else -1.0
    remainders of a period of 16385 (line 1)
n: 0.0 if math.exp(n) > 5 else -n
    it raises OverflowError (math range error) at distance 1023 (line 1)
n: 0.0 if math.sin(n) > 0.5 else -n
    a branch whose edges are not known, on sin(n) - 1/2 (line 1)
n: 0.0 if n - math.sqrt(n) < 30 else -n
    a branch whose edges are not known, on -sqrt(n) + n - 30 (line 1)
n: 0.0 if math.log(n + 1) < 60 else -n
    a branch whose edges are not known, on log(n + 1) - 60 (line 1)
n: LONG[n] if n < 64 else 0.0
    a loop over the distance (line 1)
n: -list(range(n))[0]
    a loop over the distance (line 1)
n: n < 5
    True or False where a number is due
q, k: True if q - k < 5 else -1.0
    True or False where a number is due
q, k: -k
    rows differ by a constant each
q, k: -(q - k) * k
    the value depends on the positions
q, k: 0.0 if k > 0 else -1.0
    a branch on the positions (line 1)
h, q, k: -(q - k) * h
    the value depends on the head
h, q, k: -(q - k) if h > 0 else 0.0
    a branch on the head (line 1)
score, b, h, q, k: score - b * (q - k)
    the value depends on the batch
score, b, h, q, k: score if score > 0 else -1.0
    a branch on the score (line 1)
score, b, h, q, k: 2 * score - (q - k)
    the value depends on the score in another way than by a sum
"""


@pytest.mark.filterwarnings("ignore:The use of `x.T`")
@pytest.mark.parametrize("row", re.findall(r"^(\S.*)\n    (.*)$", FOLLOWED + REFUSED, re.M))
def test_a_program_has_this_formula_or_this_reason(row):
    """What is called ERANGE here has the words of the system's C library."""
    program, meant = row[0], row[1].replace("ERANGE", os.strerror(errno.ERANGE))
    kind = "".join(name.strip()[0] for name in program.partition(":")[0].split(","))
    try:
        found = str(traced(eval(f"lambda {program}"), kind, head=None))
    except Untraced as why:
        found = str(why)
    assert found == meant and not KNOWN


def test_a_function_of_torch_takes_the_number_of_a_head():
    program = lambda h, q, k: -(q - k) * torch.clamp(h, max=2)  # noqa: E731
    assert [str(traced(program, "hqk", head)) for head in (1, 4)] == ["-n", "-2*n"]


@pytest.mark.parametrize("name", [*_SMOOTH, *OPERATORS])
def test_an_operation_computes_its_expression(name):
    """The tape, by which edges are decided, plays what the formula says."""
    make, call = {**_SMOOTH, **OPERATORS}[name]
    exact = [Rational(3, 4), Rational(2)] if name in _SMOOTH else [Rational(22), Rational(3)]
    exact = exact[: make.__code__.co_argcount - 1]
    numbers = [int(x) if x.q == 1 else float(x) for x in exact]
    assert call(*numbers) == pytest.approx(float(make(None, *exact)), rel=1e-14)


@pytest.mark.parametrize(
    ("domain", "condition"),
    [
        (Domain(), "True"),
        (Domain(3), "n >= 3"),
        (Domain(0, 8), "n < 9"),
        (Domain(4, 30, 6, frozenset({1, 2, 4})), None),
        (Domain(0, None, 6, frozenset({0, 1})), "Mod(n, 6) < 2"),
        (Domain(0, None, 6, frozenset({4, 5})), "Mod(n, 6) >= 4"),
        (Domain(0, None, 6, frozenset({2, 3})), "(Mod(n, 6) >= 2) & (Mod(n, 6) < 4)"),
        (Domain(0, None, 6, frozenset({0, 1, 3, 4, 5})), None),
        (Domain(5, 40, 7, frozenset({0, 1, 5, 6})), None),
        (Domain(7, 9, 5, frozenset({0})), None),
    ],
)
def test_the_condition_of_a_domain_is_what_it_has(domain, condition):
    high = math.inf if domain.high is None else domain.high
    inside = {
        k for k in range(60) if domain.low <= k <= high and k % domain.period in domain.residues
    }
    assert {k for k in range(60) if domain.has(k)} == inside
    assert {k for k in range(60) if domain.condition().subs(n, k)} == inside
    assert domain.first() == min(inside, default=None)
    assert condition in (None, str(domain.condition()))
    twice = [r for r in range(2 * domain.period) if r % domain.period in domain.residues]
    assert domain.lifted(2 * domain.period) == twice


@pytest.mark.parametrize(
    ("text", "way", "period", "roots"),  # where it goes, how it repeats, integers beside its roots
    [
        ("n", 1, None, [0]),
        ("5 - 2*n", -1, None, [2, 3]),
        ("(n - 5)*(n - 9)", None, None, [5, 9]),
        ("n**2 - 2", 1, None, [-2, -1, 1, 2]),
        ("pi*n - 3", 1, None, None),
        ("sqrt(n) - n", None, None, None),
        ("sqrt(n) + log(1 + n)", 1, None, None),
        ("exp(-n)", -1, None, None),
        ("1/(n + 1)", -1, None, None),
        ("1/(n - 3)", None, None, None),
        ("floor(n/3)", 1, None, None),
        ("-log(floor(n/3) + 1)", None, None, None),
        ("Mod(n, 6)", None, 6, None),
        ("Mod(n, 6)/2 + Mod(n, 4)", None, 12, None),
        ("Mod(floor(n/4), 2) - 1", None, 8, None),
        ("Mod(n/2, 3)", None, 6, None),
        ("Mod(n, 6) + n", None, None, None),
        ("Mod(sqrt(n), 2)", None, None, None),
    ],
)
def test_where_the_sign_of_an_expression_may_change(text, way, period, roots):
    e = sympy.sympify(text, {"n": n})
    found = branches.direction(e), branches._period(e), branches._roots(e)
    assert found == (way, period, roots)


def test_an_expression_keeps_its_sign_far_out_or_that_is_not_known():
    for text, settled in {
        "n - 2**62 + 1": True,
        "n - 2**63": False,
        "1/(n + 1) - 1/100": True,
        "1/(n + 1)": True,
        "1/(n + 1) - 2**-70": False,
        "floor(n/2**63) - 1": False,
        "floor(1 - 1/(n + 1)) - 2": False,  # SymPy's limits of rounded values are not asked
    }.items():
        e = sympy.sympify(text, {"n": n})
        assert branches._settled(e, branches.direction(e)) is settled, text


def test_places_where_a_program_is_looked_at():
    assert [*branches.powers(8)] == [0, 1, 2, 1, 2, 3, 3, 4, 5, 7, 8]
    assert {*branches.powers(9)} == {0, 1, 2, 3, 4, 5, 7, 8, 9}
    assert [*branches._multiples(3, 513)] == [3, 516, 3 + 513 * 2044]
    assert [*branches._multiples(1, 512)][:5] == [1, 513, 1025, 1537, 1]
    assert max(branches._multiples(1, 512)) == 1 + 2**20


def test_a_value_that_is_hidden_in_one_of_two_is_another():
    """A finite value was held to be near a formula of minus infinity."""
    cases = [(0.0, -math.inf), (-math.inf, 0.0), (-65504.0, -math.inf), (-65504.0, -65504.0)]
    cases += [(-3.4e38, -math.inf), (-3.2e38, -math.inf), (math.nan, 0.0), (8.0, 8.0000001)]
    close = [tracing._close(theirs, ours, 1e-9) for theirs, ours in cases]
    assert close == [False, False, True, True, True, False, False, False]
    assert tracing._close(8.0, 8.00000001, 1e-8) and not tracing._close(0.0, 2e-8, 1e-8)


def test_a_tape_has_an_end():
    path = Path(Domain(), Counter(), lambda: 1, False)
    for _ in range(10_000):
        path.written(abs, 1)
    with pytest.raises(NotTraced, match="more than 10,000 operations"):
        path.written(abs, 1)
