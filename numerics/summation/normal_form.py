"""One normal form for the biases that have certified sums, whatever identities they came through.

On a stretch `n >= start` a bias is written, where that is possible, as:

    p(n) = gamma + alpha n + sum -r log(n + h)

with constants gamma, alpha, r, h. Logs of products, powers and exponentials of positive things are
expanded, linear arguments scaled to `n + h`, quadratics factored; so `-2 log(1+n)`,
`log(1/(2+2n)^2)` and `-log(n^2+2n+1)` have the same form up to gamma. Every step is an identity on
the stretch: positivity is proved, not assumed.
"""

from __future__ import annotations

import contextlib
from typing import Any

import sympy
from sympy import Expr, S

from farfield.numerics.outcomes import Unrecognised, recognising
from farfield.theory.algebra import door
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import NotReal, OrderTooLow, SignNeeded, Undecided
from farfield.theory.coefficients.signs import sign as proved_sign
from farfield.theory.functions.nodes import n

MAX_DEGREE = 8  # of a polynomial under a logarithm that is factored
MAX_NODES = 2_000  # of a formula that is rewritten


def sign(c: Expr) -> int:
    """The proved sign of a real constant; Unrecognised where the engine cannot tell."""
    if c.is_Rational:
        return int(sympy.sign(c))
    for form in (c, door.expand(c)):
        with contextlib.suppress(Undecided, NotReal, OrderTooLow, SignNeeded):
            return proved_sign(form).value
    raise Unrecognised(f"the sign of {c} is not decided")


NormalForm = dict[tuple[str, Any], Expr]
"""The coefficients of the form above, by what they multiply: `("n", k)` stands for n^k, k = 0 or 1,
`("log", h)` for log(n+h); its coefficient is not 0."""


@recognising()
def normal_form(p: Expr, start: int = 0) -> NormalForm:
    """The normal form of `p` on `n >= start`; Unrecognised where it has none.

    >>> normal_form(sympy.log((2 + 2 * n) ** -2))
    {('log', 1): -2, ('n', 0): -2*log(2)}
    """
    if sum(1 for _ in sympy.preorder_traversal(p)) > MAX_NODES:
        raise Unrecognised("the formula is too large for a closed form")
    if p.has(sympy.functions.elementary.hyperbolic.HyperbolicFunction):
        p = door.rewritten(p, sympy.exp)
    e = _rewrite(p, start)
    atoms: dict[Expr, sympy.Dummy] = {}
    poly_in = _replace_atoms(e, atoms)
    try:
        polynomial = door.polynomial(door.expand(poly_in), n, *atoms.values())
    except Undecided:
        raise Unrecognised(f"{p} is not a combination of logs and powers of n") from None
    names = list(atoms)
    form: NormalForm = {}
    for (degree, *powers), coefficient in polynomial.terms():
        used = [(names[i], k) for i, k in enumerate(powers) if k]
        if coefficient.has(n) or degree + sum(powers) > 1:
            raise Unrecognised("a product or a power of functions of n")
        if sign(coefficient) != 0:
            form[("log", used[0][0].args[0] - n) if used else ("n", degree)] = coefficient
    return form


def _replace_atoms(e: Expr, atoms: dict[Expr, sympy.Dummy]) -> Expr:
    """Logarithms, already in normal form, become symbols."""
    check_time()
    if not e.has(n) or e == n:
        return e
    if e.is_Add or e.is_Mul:
        return e.func(*(_replace_atoms(a, atoms) for a in e.args))
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return _replace_atoms(e.base, atoms) ** e.exp
    if not (isinstance(e, sympy.log) and (e.args[0] - n).is_number):
        raise Unrecognised(f"{e} is no logarithm of n + h")
    return atoms.setdefault(e, sympy.Dummy(positive=True))


def _rewrite(e: Expr, start: int) -> Expr:
    """The formula with logarithms and powers taken apart into factors proved positive."""
    check_time()
    if not e.has(n) or e == n:
        return e
    if e.is_Add or e.is_Mul:
        return e.func(*(_rewrite(a, start) for a in e.args))
    if isinstance(e, sympy.log):
        inside = _factors(_rewrite(e.args[0], start), start, True)
        return sympy.Add(*(k * _log(f) for f, k in inside))
    if isinstance(e, sympy.exp):
        return _exp(_rewrite(e.args[0], start))
    if e.is_Pow:
        base, exponent = _rewrite(e.base, start), _rewrite(e.exp, start)
        if exponent.has(n):
            return sympy.Pow(base, exponent)
        if exponent.is_Integer and exponent > 0:
            return base**exponent
        factors = _factors(base, start, sign(exponent) < 0)
        return sympy.Mul(*(door.raised(f, k * exponent) for f, k in factors))
    raise Unrecognised(f"{e.func.__name__} has no closed form here")


def _log(factor: Expr) -> Expr:
    """The logarithm of a factor; an exponential loses its own."""
    return factor.args[0] if isinstance(factor, sympy.exp) else sympy.log(factor)


def _exp(v: Expr) -> Expr:
    """exp of a sum as a product, with exp(c log x) as a power."""
    terms = sympy.Add.make_args(door.expand(v))
    return sympy.Mul(*(sympy.exp(t) for t in terms))


def _factors(u: Expr, start: int, strict: bool) -> list[tuple[Expr, Expr]]:
    """Positive factors of u with their exponents: a constant, exps, `n + h`.

    Without `strict` (u is raised to a positive power) a factor `n + h` may vanish at `start`.
    """
    if not u.has(n):
        if sign(u) <= 0:
            raise Unrecognised(f"{u} is not positive")
        return [(u, S.One)]
    if u.is_Mul:
        return [f for a in u.args for f in _factors(a, start, strict)]
    if u.is_Pow and not u.exp.has(n):
        return [(f, k * u.exp) for f, k in _factors(u.base, start, strict or sign(u.exp) < 0)]
    if isinstance(u, sympy.exp):
        return [(u, S.One)]
    if not u.is_polynomial(n):
        together = door.factor_terms(door.together(u))
        if together.is_Mul or together.is_Pow:
            return _factors(together, start, strict)
        raise Unrecognised(f"{u} has no factors in closed form")
    return _polynomial_factors(door.polynomial(u, n), start, strict)


def _polynomial_factors(u: sympy.Poly, start: int, strict: bool) -> list[tuple[Expr, Expr]]:
    """Linear factors, each proved positive from the start on."""
    if u.degree() > MAX_DEGREE:
        raise Unrecognised(f"a polynomial of degree {u.degree()}")
    lead = u.LC()
    if u.degree() == 1:
        h = door.cancel(u.nth(0) / lead)
        at_start = sign(start + h)
        if sign(lead) <= 0 or at_start < 0 or (at_start == 0 and strict):
            raise Unrecognised(f"{u.as_expr()} is not proved positive")
        return [(lead, S.One), (n + h, S.One)]
    if u.degree() == 2:
        h = door.cancel(u.nth(1) / (2 * lead))
        c = door.expand(u.nth(0) / lead - h**2)
        kind = sign(c)
        if kind > 0:
            raise Unrecognised(f"{u.as_expr()} has no real factors")
        root = sympy.sqrt(-c)
        roots = [n + h] * 2 if kind == 0 else [n + h - root, n + h + root]
        return [(lead, S.One)] + [
            f for r in roots for f in _polynomial_factors(door.polynomial(r, n), start, strict)
        ]
    if not all(c.is_Rational for c in u.all_coeffs()):
        raise Unrecognised(f"a polynomial of degree {u.degree()}")
    content, parts = u.factor_list()
    if len(parts) == 1 and parts[0][0].degree() > 2:
        raise Unrecognised(f"an irreducible polynomial of degree {parts[0][0].degree()}")
    return [(content, S.One)] + [
        (f, m * k) for part, m in parts for f, k in _polynomial_factors(part, start, strict)
    ]
