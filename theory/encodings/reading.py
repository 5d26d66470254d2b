"""An encoding from what a user gives: a name, a formula, a list of them, a table of values."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import sympy
from sympy import Expr, Integer, Rational, S, Symbol

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.names import nearest, plain
from farfield.theory.answers.notation import expression_line
from farfield.theory.answers.number import exact, natural
from farfield.theory.encodings.catalogue import CATALOGUE
from farfield.theory.encodings.encoding import LISTED, Encoding, Parameter, grouped
from farfield.theory.encodings.entry import Entry, Values
from farfield.theory.formula.given import as_expression
from farfield.theory.formula.parameters import parameter
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import spellings

DEFAULT_HEADS = 8


def encoding(
    name: Any = None,
    *,
    heads: int | None = None,
    dialect: str | None = None,
    values: Any = None,
    tail: str = "constant",
    bca: int | None = None,
    assumptions: Mapping[str, str] | None = None,
    **given: Any,
) -> Encoding:
    """An encoding from the catalogue, from a user's formula, or from a table of values.

    Args:
        name: a name of the catalogue (see `encodings`; any case, any separator), a formula in `n`
            as text, a SymPy expression, a Python function of the distance, or a list of them, one
            a head; an array is a table, as `values`.
        heads: number of heads of a per-head formula (8 where nothing is said).
        dialect: which variant of the formula; the entry's first where nothing is said.
        values: instead of a name, a table of the bias at distances 0, 1, ...; shape `(length,)`
            or `(heads, length)`, finite or -inf.
        tail: past the table, `constant` (its last value) or `cut` (masked).
        bca: half-width in tokens of blockwise causal attention at inference [S, 3.3].
        assumptions: domains of parameters without a value: positive (the default), nonnegative,
            negative, nonpositive, real, or an interval such as `[0, 2)`.
        **given: values of parameters (one number, or one a head) and options of the entry
            (`delta`, `slope_exponent`, `d_bar`, `buckets`, `max_distance`, `d`, `gamma`, ...).

    Raises:
        InputError: unknown names (with the nearest known one), values outside their domain,
            options that the encoding does not have.

    >>> encoding("alibi").num_heads, encoding("-log(1+n)").num_heads
    (8, 1)
    >>> encoding("kerple_log", r1="6/5", r2=1).head(1)
    -6*log(n + 1)/5
    >>> encoding(["-n/4", "0", "0"]).head(1)
    -n/4
    """
    given = {k: _per_head(v) for k, v in given.items()}
    if heads is not None and not (isinstance(heads, int) and 1 <= heads <= 1024):
        raise InputError(f"heads {heads!r} must be an integer from 1 to 1024")
    if bca is not None:
        bca = natural(bca, "bca")
    if values is None and getattr(name, "ndim", 0) > 0:
        name, values = None, name
    if values is not None:
        if name is not None or given or dialect:
            raise InputError("a table of values takes no name, dialect or parameters beside it")
        return dataclasses.replace(_from_table(values, tail), bca=bca)
    if isinstance(name, Encoding):
        if dialect or given or heads or assumptions:
            raise InputError("an Encoding is complete: it takes no further options")
        return name if bca is None else dataclasses.replace(name, bca=bca)
    if isinstance(name, (list, tuple)):
        built = _from_heads(name, heads, dialect, given, assumptions or {})
    elif isinstance(name, str) and (entry := named(name)) is not None:
        built = _from_entry(entry, heads, dialect, given)
        built = _assuming(built, assumptions or {})
    else:
        if dialect is not None:
            raise InputError(f"a formula has no dialect; {dialect!r} was given")
        built = _from_formula(name, heads, given, assumptions or {})
    return built if bca is None else dataclasses.replace(built, bca=bca)


def _per_head(value: Any) -> Any:
    """A value, or one a head, of an array of NumPy or torch."""
    return list(value) if getattr(value, "ndim", 0) == 1 else value


def named(name: str) -> Entry | None:
    """The entry of the catalogue called so, in any case and with any separators.

    >>> named("ALiBi").name, named("kerple-log").name, named("Type 1").name
    ('alibi', 'kerple_log', 'type1')
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    return _ENTRIES.get(plain(name)) if re.fullmatch(r"[A-Za-z][\w ,-]*", name.strip()) else None


_ENTRIES = {plain(spelled): e for e in CATALOGUE.values() for spelled in (e.name, e.title)}


def _from_entry(
    entry: Entry, heads: int | None, dialect: str | None, given: dict[str, Any]
) -> Encoding:
    """A catalogue's formula with what is given put in head by head, else the paper's values."""
    if dialect is not None and dialect not in entry.dialects:
        accepted = ", ".join(entry.dialects) or "none"
        raise InputError(f"{entry.name} has no dialect {dialect!r}; accepted: {accepted}")
    dialect = dialect or (entry.dialects[0] if entry.dialects else None)
    chosen = {"dialect": dialect} if dialect else {}
    options = dict(entry.options)
    for key in [k for k in given if k in options]:
        options[key] = given.pop(key)
    _options_fit(entry, dialect, options)
    per_head = entry.per_head(dialect) if callable(entry.per_head) else entry.per_head
    if entry.formula is None:
        if given:
            raise InputError(f"{entry.name} has no parameters; {', '.join(given)} given")
        return Encoding(
            entry.name,
            None,
            source=entry.source,
            dialect=dialect,
            mechanism=entry.mechanism,
            out_of_scope=entry.out_of_scope,
            note=entry.note,
            title=entry.title,
        )
    parameters = entry.parameters
    if callable(parameters):
        parameters = parameters(heads=1, **chosen, **options)
    count = _count(heads, parameters, given, DEFAULT_HEADS if per_head else 1)
    formula = entry.formula(heads=count, **chosen, **options)
    biases = []
    default = entry.values
    for h in range(1, count + 1):
        own = dict(default(h, count, **chosen, **options)) if default else {}
        own |= _head_values(entry.name, parameters, given, h)
        biases.append(_substitute(formula, parameters, own))
    return Encoding(
        entry.name,
        formula,
        tuple(biases),
        parameters,
        dialect,
        entry.source,
        note=entry.note,
        title=entry.title,
    )


def _options_fit(entry: Entry, dialect: str | None, options: Mapping[str, Any]) -> None:
    """`delta` without `dialect="shift"` would be ignored silently: refuse it."""
    for key, value in options.items():
        reading = entry.needs.get(key)
        if value != entry.options[key] and reading is not None and dialect not in reading:
            accepted = " or ".join(f"dialect={d!r}" for d in reading)
            raise InputError(f"{entry.name}: {key} needs {accepted}, not {dialect!r}")


def _assuming(e: Encoding, assumptions: Mapping[str, str]) -> Encoding:
    """The encoding with other domains for its free parameters."""
    if not assumptions:
        return e
    free = {p.name: p for p in e.free}
    for name in assumptions:
        if name not in free:
            has = ", ".join(free) or "none"
            raise InputError(f"{e.name} has no free parameter {name!r}; free parameters: {has}")
    swap = {free[k].symbol: parameter(k, d) for k, d in assumptions.items()}
    parameters = tuple(
        dataclasses.replace(p, domain=assumptions.get(p.name, p.domain)) for p in e.parameters
    )
    formula = None if e.formula is None else e.formula.xreplace(swap)
    biases = tuple(b.xreplace(swap) for b in e.biases)
    return dataclasses.replace(e, formula=formula, biases=biases, parameters=parameters)


def _from_formula(
    source: Any, heads: int | None, given: dict[str, Any], domains: Mapping[str, str]
) -> Encoding:
    """A formula with its free symbols as parameters; a word that is none is refused with a hint."""
    if source is None:
        raise InputError("an encoding needs a name, a formula or a table of values")
    text = source.strip() if isinstance(source, str) else ""
    words = re.split(r"[ -]+", text) if re.fullmatch(r"[A-Za-z][\w -]*", text) else []
    if words and "n" not in words:
        if text in spellings():
            raise InputError(f"{text} is a function, not a formula; write {text}(n)")
        close = nearest(text, [s for e in CATALOGUE.values() for s in (e.name, e.title)])
        hint = f"did you mean {close!r}?" if close else f"known: {', '.join(CATALOGUE)}"
        raise InputError(f"{text[:40]!r} is neither an encoding nor a formula in n; {hint}")
    formula = as_expression(source, domains)
    names = {s.name for s in formula.free_symbols} - {n.name, *domains}
    if wider := {k: "nonnegative" for k, v in given.items() if k in names and _has_zero(v, k)}:
        domains = {**domains, **wider}  # as the formula is read: a/a is 1 where a is positive
        formula = as_expression(source, domains)
    parameters = tuple(
        Parameter(s.name, domains.get(s.name, _domain_of(s)), True)
        for s in sorted(formula.free_symbols - {n}, key=lambda s: str(s.name))
    )
    count = _count(heads, parameters, given, 1)
    biases = tuple(
        _substitute(formula, parameters, _head_values("the formula", parameters, given, h))
        for h in range(1, count + 1)
    )
    plainly = re.fullmatch(r"[\w\s+\-*/%!^().,<>=&|]+", text, re.ASCII)
    return Encoding(
        text if plainly else expression_line(formula, unicode=False), formula, biases, parameters
    )


def _from_heads(
    each: Sequence[Any],
    heads: int | None,
    dialect: str | None,
    given: Mapping[str, Any],
    domains: Mapping[str, str],
) -> Encoding:
    """One bias a head; equal parameters of several heads are one parameter."""
    if dialect is not None:
        raise InputError(f"a list of formulas has no dialect; {dialect!r} was given")
    if not each or heads not in (None, len(each)):
        raise InputError(
            f"{len(each)} formulas are given{'' if heads is None else f' for {heads} heads'}; "
            "accepted: one formula a head"
        )
    parts = [encoding(one) for one in each]
    parameters: dict[str, Parameter] = {}
    for part in parts:
        if part.num_heads > 1 or part.bca is not None or not part.biases:
            what = part.out_of_scope or "it has a bias for several heads, or blocks"
            raise InputError(f"{part.name} is no bias of one head: {what}")
        parameters |= {p.name: p for p in part.free}
    free = tuple(parameters.values())
    biases = []
    for h, part in enumerate(parts, 1):
        own = _head_values("the list of formulas", free, given, h)
        biases.append(_substitute(part.biases[0], free, own))
    label = grouped([part.name for part in parts])
    built = Encoding(label, None, tuple(biases), free, source=LISTED)
    return _assuming(built, domains)


def _has_zero(value: Any, name: str) -> bool:
    """Whether a head's value is 0, where a parameter is otherwise read as positive."""
    each = value if isinstance(value, (list, tuple)) else [value]
    return any(_number(v, name) == 0 for v in each)


def _number(value: Any, name: str) -> Expr:
    return value if isinstance(value, Expr) and value.is_number else exact(value, name)


def _domain_of(symbol: Symbol) -> str:
    """The narrowest domain that the symbol's assumptions say."""
    for domain in ("positive", "nonnegative", "negative", "nonpositive"):
        if getattr(symbol, f"is_{domain}"):
            return domain
    return "real"


def _from_table(values: Any, tail: str) -> Encoding:
    """One lookup a head, exact in the given floats, with the tail behind its last entry."""
    import numpy as np

    if tail not in ("constant", "cut"):
        raise InputError(f"tail {tail!r} is not known; accepted: constant, cut")
    try:
        table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError("a table of values must hold numbers") from None
    if table.ndim != 2 or not table.size or np.isnan(table).any() or (table == np.inf).any():
        raise InputError("a table of values has shape (length,) or (heads, length), finite or -inf")
    biases = []
    for row in table:
        entries = [
            S.NegativeInfinity if v == -np.inf else Rational(*float(v).as_integer_ratio())
            for v in row
        ]
        end = entries[-1] if tail == "constant" else S.NegativeInfinity
        biases.append(Lookup(n, sympy.Tuple(*entries), end))
    return Encoding("table", biases[0], tuple(biases), source=f"table of {table.shape[1]} values")


def _count(
    heads: int | None, parameters: Sequence[Parameter], given: Mapping[str, Any], default: int
) -> int:
    """The number of heads: as many as values are given, else as asked, else the usual."""
    lengths = {len(v) for v in given.values() if isinstance(v, (list, tuple))}
    if len(lengths) > 1:
        raise InputError(f"parameters are given for {sorted(lengths)} heads; they must agree")
    if lengths and heads is not None and {heads} != lengths:
        raise InputError(f"parameters are given for {lengths.pop()} heads, heads={heads}")
    if lengths:
        return lengths.pop()
    fixed = parameters and all(p.name in given for p in parameters)
    return heads or (1 if fixed else default)


def _head_values(
    name: str, parameters: Sequence[Parameter], given: Mapping[str, Any], h: int
) -> dict[str, Expr]:
    """The values that are given for one head, each within its parameter's domain."""
    own: dict[str, Expr] = {}
    known = {p.name: p for p in parameters}
    for key, value in given.items():
        if key not in known:
            close = nearest(key, known)
            hint = f"; did you mean {close!r}?" if close else ""
            has = ", ".join(known) or "none"
            raise InputError(f"{name} has no parameter or option {key!r}{hint} (parameters: {has})")
        if isinstance(value, (list, tuple)):
            value = value[h - 1]
        number = _number(value, key)
        domain = known[key].domain
        test = {
            "positive": number > 0,
            "nonnegative": number >= 0,
            "negative": number < 0,
            "nonpositive": number <= 0,
        }.get(domain, True)
        if not bool(test) and not (known[key].zero and number == 0):
            raise InputError(f"{key} = {number} is outside its domain ({domain})")
        own[key] = number
    return own


def _substitute(formula: Expr, parameters: Sequence[Parameter], own: Values) -> Expr:
    """A head's bias; sums whose bounds are now numbers are written out."""
    symbols = {p.name: p.symbol for p in parameters}
    bias = formula.xreplace({symbols[k]: v for k, v in own.items()})
    return bias.replace(_constant_sum, _written_out) if bias.has(sympy.Sum) else bias


def _constant_sum(e: Any) -> bool:
    return isinstance(e, sympy.Sum) and all(x.is_Integer for x in e.limits[0][1:])


@lru_cache(maxsize=64)
def _written_out(e: Any) -> Expr:
    """A sum term by term; the heads that share it write it out once."""
    index, low, high = e.limits[0]
    return sympy.Add(*(e.function.xreplace({index: Integer(k)}) for k in range(low, high + 1)))
