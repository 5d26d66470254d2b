"""The tactics that compare constants: rational bounds of logarithms, roots and powers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import sympy
from flint import arb, fmpq
from sympy import Dummy, Expr, Rational, S

from farfield.theory.certificates.prover_forms import CHOICES, NoCertificate, form, without_roots
from farfield.theory.coefficients.exact import expand, to_sympy
from farfield.theory.decision.cells import Constraint, possible
from farfield.theory.functions.nodes import Root
from farfield.theory.values import enclose

Interval = tuple[fmpq, fmpq]
DIGITS = (2, 4, 6, 12)
FACTORED = 10**9


# -- logarithms and powers -------------------------------------------------------------------------


def logarithm(c: Expr) -> tuple[Expr, str]:
    """log c in the logarithms of primes and parameters, and the tactic that proves it; none where
    it is itself."""
    value = sympy.expand_log(sympy.log(c), force=True).replace(
        lambda e: isinstance(e, sympy.log) and isinstance(e.args[0], Root),
        lambda e: e.args[0].args[1] * sympy.expand_log(sympy.log(e.args[0].args[0]), force=True),
    )
    same = c == 1 or value == sympy.log(c, evaluate=False)
    return value, "" if same else f"logs; {_splits(c)}constant"


def root(c: Expr, r: Expr) -> tuple[Expr, str]:
    """c^r, and the tactic that proves it; none where it is itself."""
    if c == 1:
        return S.One, ""
    value = kept_roots(c**r) if c.is_Rational and r.is_Rational else Root(c, r)
    if value == Root(c, r):
        return value, ""
    return value, f"apply Rpower_value; [constant | logs; {_splits(c, value)}constant]"


def kept_roots(c: Expr) -> Expr:
    """A constant whose roots stay apart: SymPy would turn the product of two into one."""
    return c.replace(
        lambda e: e.is_Pow and e.base.is_Rational and e.exp.is_Rational and not e.exp.is_Integer,
        lambda e: Root(*e.args),
    )


def _splits(*es: Expr) -> str:
    """Tactics that split the logarithms of composite numbers into those of primes."""
    numbers = {abs(k) for e in es for q in e.atoms(Rational) for k in (q.p, q.q)}
    composite = sorted(k for k in numbers if 3 < k < FACTORED and not sympy.isprime(k))
    primes = (
        " * ".join(str(p) for p, k in sympy.factorint(m).items() for _ in range(k))
        for m in composite
    )
    return "".join(f"split_log {m} ({t}); " for m, t in zip(composite, primes, strict=True))


# -- bounds ---------------------------------------------------------------------------------------


def facts_of(signs: Mapping[Expr, int], facts: Sequence[Constraint]) -> list[str]:
    """Sentences that put the grounds of these signs into the context, beside the known facts.

    Raises:
        NoCertificate: the prover's tactics do not find one of them.
    """
    digits: dict[Expr, int] = {}
    for c, s in signs.items():
        e = expand(without_roots(c))
        if not e.is_Rational:
            _check(e, s, facts)
        for a, k in _digits_of(e, s):
            digits[a] = max(digits.get(a, 0), k)
    for a, k in digits.items():
        if _is_inverse(a) and k and not _follows(a, k, digits):
            raise NoCertificate(f"the constant {str(a)[:60]} is not enclosed closely enough")
    zeros = {c for c, s in signs.items() if s == 0 and not c.free_symbols}
    logarithms = sorted({a for c in zeros for a in c.atoms(sympy.log)}, key=str)
    sums = {a: _in_primes(a) for a in logarithms}
    return [
        *(sentence for a, k in digits.items() for sentence in _sentences(a, k)),
        *(
            f"assert ({form(a).show()} = {form(b).show()}) by (logs; {_splits(a)}constant)."
            for a, b in sums.items()
            if a != b
        ),
    ]


def _digits_of(e: Expr, s: int) -> Iterator[tuple[Expr, int]]:
    """The constants in an expression, each with as many of its digits as show the sign s; 0 where
    its sign says nothing of them."""
    atoms, enough = list(dict.fromkeys(_atoms(e))), 0
    if s and atoms and not e.free_symbols:
        enough = next((k for k in DIGITS if _decided(e, k)), 0)
        if not enough:
            raise NoCertificate(f"the sign of the constant {str(e)[:60]}")
    yield from ((a, enough) for a in atoms)
    for inverse in filter(_is_inverse, atoms if enough else ()):
        yield from ((b, min(enough + 2, 6)) for b in _atoms(inverse.base))


def _in_primes(e: Expr) -> Expr:
    """A constant with the logarithms of composite numbers as those of primes."""
    return sympy.expand_log(e, force=True, factor=True)


def _check(e: Expr, s: int, facts: Sequence[Constraint]) -> None:
    """NoCertificate unless the prover's arithmetic of constants finds this sign."""
    if e.has(*CHOICES):  # it distinguishes no cases
        raise NoCertificate(f"the sign of {str(e)[:60]}")
    if s == 0 and not _is_arithmetic(expand(_in_primes(e))):
        raise NoCertificate(f"{str(e)[:60]} is 0 by more than arithmetic")
    others = [k for k in (1, 0, -1) if k != s]
    if e.free_symbols and not _is_simple(e) and any(possible([*facts, (e, k)]) for k in others):
        raise NoCertificate(f"the sign of {str(e)[:60]}, a product of many parameters")


def _is_simple(e: Expr) -> bool:
    """Whether the prover's tactics find the sign of a constant that follows from no linear facts:
    a product of positive factors, or a sum of terms of degree 2 at most with one denominator."""
    terms = [
        [(b, k) for b, k in t.as_powers_dict().items() if b.free_symbols]
        for t in sympy.Add.make_args(e)
    ]
    below = {b for t in terms for b, k in t if k.could_extract_minus_sign()}
    if len(terms) == 1 and all(b.is_positive for b, _ in terms[0]):
        return True
    degrees = [sum(abs(k) if k.is_Integer else 1 for _, k in t) for t in terms]
    return max(degrees) <= 2 and len(below) <= 1 and all(b.is_positive for b in below)


def _is_arithmetic(e: Expr) -> bool:
    """Whether only rational numbers and parameters are added, multiplied and divided."""
    powers = e.atoms(sympy.Pow)
    return all(a.exp.is_Integer for a in powers) and not e.has(sympy.Function, sympy.NumberSymbol)


def _atoms(e: Expr) -> Iterator[Expr]:
    """The irrational constants, exponentials and powers in an expression, inner ones first."""
    if e.is_Rational or e.is_Symbol:
        return
    for a in e.args if not _is_root(e) else ():
        yield from _atoms(a)
    if not (e.is_Add or e.is_Mul or (e.is_Pow and e.exp.is_Integer and e.exp > 0)):
        yield e


def _is_root(e: Expr) -> bool:
    return bool(e.is_Pow and e.base.is_Rational and e.exp.is_Rational)


def _is_inverse(e: Expr) -> bool:
    return bool(e.is_Pow and e.exp == -1)


def _decided(e: Expr, digits: int) -> bool:
    """Whether this many digits of its atoms tell the constant's sign."""
    ball = _within(e, dict.fromkeys(_atoms(e), digits))
    return ball is not None and not ball.contains(0)


def _within(e: Expr, digits: Mapping[Expr, int]) -> arb | None:
    """What the bounds of its atoms, with these digits, tell about a constant."""
    symbols = {a: Dummy() for a in digits}
    values = {}
    for a, x in symbols.items():
        low, high = map(arb, _bounds(a, digits[a]))
        values[x] = low.union(high)
    return enclose(e.xreplace(symbols), 128, values)


def _follows(a: Expr, digits: int, known: Mapping[Expr, int]) -> bool:
    """Whether bounds of 1/e follow from those of the atoms of e by linear arithmetic."""
    inner = list(dict.fromkeys(_atoms(a.base)))
    symbols = {b: Dummy() for b in inner}
    linear = sympy.Poly(a.base.xreplace(symbols), *symbols.values()).total_degree() <= 1
    ball = _within(a.base, {b: known[b] for b in inner}) if linear else None
    low, high = _bounds(a, digits)
    return ball is not None and bool(low * ball < 1) and bool(high * ball > 1)


def _bounds(a: Expr, digits: int) -> Interval:
    """Bounds of an atom with this many digits."""
    ball = enclose(a, 128)
    if ball is None:
        raise NoCertificate(f"the constant {str(a)[:60]} is not enclosed")
    scale = 10**digits
    low = fmpq(math.floor(float(ball.lower()) * scale) - 1, scale)
    return low, low + fmpq(3, scale)


def _sentences(a: Expr, digits: int) -> Iterator[str]:
    """The facts about an atom in the context: bounds, or that it is positive."""
    name = form(a).show()
    if a == S.Pi:
        yield "pose proof PI_between."
    elif not digits or (a.is_Pow and a.free_symbols):
        if isinstance(a, sympy.exp) or a.is_Pow:
            yield f"assert (0 < {name}) by constant."
    elif _in_parts(a, digits):
        low, high = (form(to_sympy(end)).show() for end in _bounds(a, digits))
        yield f"assert ({low} < {name} < {high}) by between."
    else:
        raise NoCertificate(f"the constant {str(a)[:60]} is not enclosed closely enough")


def _in_parts(a: Expr, digits: int) -> bool:
    """Whether the prover's tactic finds bounds of this many digits: those of e^x = (e^y)^64 by the
    cubics of e^y and e^-y, whose errors are at most y^4/24; powers by rationals."""
    if isinstance(a, sympy.log):
        x, size = math.log(a.args[0]) if a.args[0].is_Rational else -1, 0.0
    elif isinstance(a, sympy.exp) or a == S.Exp1:
        [exponent] = a.args or [S.One]
        x = size = float(exponent) if exponent.is_Rational else -1
    else:
        return _is_inverse(a) or _is_root(a)
    y = x / 64  # the error is that of 64 factors e^-y, relative to them
    return y > 0 and size + y + 4 * math.log(y) + math.log(64 / 24 * 10**digits) < 0
