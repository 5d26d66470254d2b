"""The function `encoding(...)`: names, formulas, heads, tables, objects become an `Encoding`."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import sympy
from sympy import Basic, Expr, Integer, Rational, S

from farfield.theory.answers.answer import Code, InputError, Reason, Seen
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.names import bare_name, closest, nearest, one_of
from farfield.theory.answers.notation import expression_line, shortened
from farfield.theory.answers.number import exact, natural, plural
from farfield.theory.encodings.catalogue import CATALOGUE, Entry, Values
from farfield.theory.encodings.encoding import LISTED, Encoding, Parameter
from farfield.theory.encodings.head_lists import as_list, is_table, repeated, worded
from farfield.theory.formula.assumptions import BEHIND, parted
from farfield.theory.formula.bounded_nodes import valued
from farfield.theory.formula.grammar import read
from farfield.theory.formula.parameters import domain_of
from farfield.theory.formula.reading import canonical, settings
from farfield.theory.formula.sympy_expressions import as_expression
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import SPELLINGS, kinds, symbols
from farfield.theory.mechanisms import MECHANISMS
from farfield.theory.values import enclose, tabulate

DEFAULT_HEADS = 8


def encoding(
    name: Any = None,
    *,
    heads: int | None = None,
    dialect: str | None = None,
    values: Any = None,
    tail: str | None = None,
    bca: int | None = None,
    assumptions: Mapping[str, str] | None = None,
    **given: Any,
) -> Encoding:
    """An encoding from the catalogue, from a user's formula, or from a table of values.

    Args:
        name: a name of the catalogue in any case (see `encodings`), a formula in `n` as text, a
            SymPy expression, or what `inspect_bias` takes: a function, a `score_mod`, a module, a
            matrix of queries and keys, slopes. A list has one formula a head, as text
            `[-n/4; 0 x7]`. A list of numbers, as text `[0, -1, -2]`, or an array (heads,
            distances) is a table, as `values`.
        heads: number of heads of a per-head formula (8 where nothing is said).
        dialect: which variant of the formula; the entry's first where nothing is said.
        values: instead of a name, a table of the bias at distances 0, 1, ...; shape `(length,)`
            or `(heads, length)`, finite or -inf.
        tail: how the bias goes on where nobody has seen it: `constant` (its last value), `linear`
            (its last step again and again) or `cut` (masked). Where nothing is said, a table is
            known as far as it goes, and no question about longer rows has an answer.
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
    >>> encoding("[-n/4; 0 x7]").name, encoding([0, -1, -2], tail="cut").name
    ('one head -n/4, seven without bias', 'table of 3 values, masked beyond')
    """
    given = {k: _per_head(v) for k, v in given.items()}
    if isinstance(name, str) or _lists(name):
        given, assumptions = _canonical(given), _canonical(assumptions or {})
    if heads is not None and not (isinstance(heads, int) and 1 <= heads <= 1024):
        raise InputError(f"heads {heads!r} must be an integer from 1 to 1024")
    if bca is not None:
        bca = natural(bca, "bca")
    if isinstance(name, str) and "[" in name:
        name = as_list(name) or name
    size = getattr(name, "ndim", 0)
    numbers = (isinstance(size, int) and size > 0) or (_lists(name) and is_table(name))
    asked = _Asked(name, numbers, values, heads, dialect, tail, given, assumptions or {})
    meaning = next(m for m in _MEANINGS if m.is_meant(asked))
    if tail is not None and "tail" not in meaning.takes:
        raise InputError(
            f"tail {tail!r} says how a table of values goes on; accepted with a table alone, such "
            "as [0, -1, -2]"
        )
    if any(getattr(asked, name) not in (None, {}) for name in _BESIDE - meaning.takes):
        raise InputError(meaning.refusal.format(dialect=dialect))
    built = meaning.read(asked)
    return built if bca is None else replace(built, bca=bca)


class _Asked(NamedTuple):
    """What `encoding` is handed: its first argument, whether that is an array or a list of numbers,
    and the options beside it."""

    subject: Any
    numbers: bool
    values: Any
    heads: int | None
    dialect: str | None
    tail: str | None
    given: dict[str, Any]
    domains: Mapping[str, str]


def _is_values(asked: _Asked) -> bool:
    """Whether values are given, or numbers in the layout of a table."""
    return asked.values is not None or (asked.numbers and _is_table(asked.subject))


def _read_values(asked: _Asked) -> Encoding:
    """Values at distances 0, 1, ..."""
    if asked.values is not None and asked.subject is not None:
        raise InputError(_TABLE_ALONE)
    values = asked.subject if asked.values is None else asked.values
    return _with_a_key(_from_table(values, asked.tail))


def _is_object(asked: _Asked) -> bool:
    """Whether it is other numbers, an inspection, or something to be called."""
    f = asked.subject
    called = callable(f) and not isinstance(f, sympy.Basic)
    return asked.numbers or called or hasattr(f, "findings")


def _read_object(asked: _Asked) -> Encoding:
    """A function, a module, slopes, a matrix; an inspection of one, which is not run again."""
    f = asked.subject
    return _from_object(_numbers(f) if _lists(f) else f, asked.heads, asked.tail)


def _read_entry(asked: _Asked) -> Encoding:
    """An entry of the catalogue."""
    entry = named(asked.subject)
    assert entry is not None
    return _from_entry(entry, asked.heads, asked.dialect, asked.given, asked.domains)


class _Meaning(NamedTuple):
    """What the first argument of `encoding` may mean: its reader, what may be said beside it, and
    the refusal of anything else."""

    is_meant: Callable[[_Asked], bool]
    read: Callable[[_Asked], Encoding]
    takes: frozenset[str] = frozenset()
    refusal: str = ""


_BESIDE = frozenset({"heads", "dialect", "given", "domains"})
_TABLE_ALONE = (
    "a table of values takes no name, heads, dialect, parameters or assumptions beside it; "
    "accepted: tail and bca"
)
_MEANINGS = (
    _Meaning(_is_values, _read_values, frozenset({"tail"}), _TABLE_ALONE),
    _Meaning(
        _is_object,
        _read_object,
        frozenset({"heads", "tail"}),
        "a function, a module or an array of biases takes no dialect, parameters or assumptions "
        "beside it; accepted: heads, tail and bca",
    ),
    _Meaning(
        lambda asked: isinstance(asked.subject, Encoding),
        lambda asked: asked.subject,
        refusal="an Encoding is complete: it takes no further options",
    ),
    _Meaning(
        lambda asked: _lists(asked.subject),
        lambda a: _with_a_key(_from_heads(a.subject, a.heads, a.given, a.domains)),
        _BESIDE - {"dialect"},
        "a list of formulas has no dialect; {dialect!r} was given",
    ),
    _Meaning(
        lambda asked: isinstance(asked.subject, str) and named(asked.subject) is not None,
        lambda asked: _with_a_key(_read_entry(asked)),
        _BESIDE,
    ),
    _Meaning(
        lambda asked: True,
        lambda a: _with_a_key(_from_formula(a.subject, a.heads, a.given, a.domains)),
        _BESIDE - {"dialect"},
        "a formula has no dialect; {dialect!r} was given",
    ),
)
"""The first that is meant is read."""


def _with_a_key(built: Encoding) -> Encoding:
    """The encoding, each of whose heads has a key that it does not mask."""
    for bias in dict.fromkeys(built.biases):
        _require_a_key(bias)
    return built


def _require_a_key(bias: Expr) -> None:
    """Refuse a bias that masks every key that is looked at: its attention is undefined."""
    if type(S.NegativeInfinity) not in kinds(bias) or symbols(bias) - {n}:
        return
    first = enclose(bias, 64, {n: 0})
    if first is None or first.is_finite():
        return
    far = [2**k + d for k in range(12, 50) for d in (-1, 0, 1)]
    if not (tabulate(bias, [*range(4095), *far]) > -math.inf).any():
        raise InputError(
            f"{shortened(expression_line(bias), 60)} masks every key: at distances 0 to 4096, and "
            "at and beside all powers of two below 2^50; accepted: a bias that is finite at n = 0"
        )


def _canonical(values: Mapping[str, object]) -> dict[str, Any]:
    """Values by the names of the reader, which reads `r_1` as `r1`."""
    names: dict[str, Any] = {}
    if not isinstance(values, Mapping):
        raise InputError(
            f"assumptions {values!r}: accepted is a domain for each name of a parameter"
        )
    for name, value in values.items():
        if canonical(name) in names:
            raise InputError(f"{canonical(name)!r} and {name!r} are one parameter; give it once")
        names[canonical(name)] = value
    return names


def _is_table(given: object) -> bool:
    """Whether numbers are a bias at each distance, not slopes and no matrix."""
    from farfield.theory.encodings.layouts import layout

    return layout(_numbers(given))[0] == "table"


def _numbers(given: Any) -> Any:
    """Rows of a list as floats; an array as it is."""
    if hasattr(given, "ndim"):
        return given
    if all(map(_lists, given)) and len({len(row) for row in given}) > 1:
        raise InputError("a table of values has shape (length,) or (heads, length), each row alike")
    return [_numbers(x) if _lists(x) else _float(x) for x in given]


def _float(given: Any) -> float:
    """An entry of a table as a float, minus infinity included; `_entry` refuses all others."""
    try:
        value = float(given)
    except (OverflowError, TypeError, ValueError):
        value = math.nan
    return value if math.isfinite(value) else float(_entry(given))


def _from_object(f: object, heads: int | None, tail: str | None) -> Encoding:
    """What a function, a module or a matrix is, as an encoding."""
    from farfield.theory.encodings.inspection import BiasInspection, inspect_bias

    inspection = f if isinstance(f, BiasInspection) else inspect_bias(f, heads=heads)
    source = f"{inspection.subject}, called with {inspection.how}"
    if inspection.mechanism != "bias":
        finding = inspection.findings[0]
        if inspection.mechanism not in MECHANISMS:
            raise InputError(f"{inspection.subject} {finding}; accepted: a bias by distance")
        code = {"row": Code.NOT_TOEPLITZ, "content": Code.CONTENT_DEPENDENT}[inspection.depends]
        return Encoding(
            inspection.subject,
            None,
            source=source,
            mechanism=inspection.mechanism,
            out_of_scope=Reason(code, finding),
            origin="tabulated",
            seen=inspection.seen,
        )
    note = ". ".join(said[0].upper() + said[1:] for said in inspection.findings)
    if inspection.seen is not None:
        rows = [[_entry(float(v)) for v in row] for row in inspection.table]
        built = _tabulated(rows, tail, inspection.subject, inspection.resembles, inspection.seen)
        reason = built.out_of_scope and inspection.why
        if reason:
            reason = Reason(Code.BEYOND_SEEN, f"{built.out_of_scope}; {inspection.why}")
        return replace(built, source=source, note=note, out_of_scope=reason or built.out_of_scope)
    if tail is not None:
        raise InputError(
            f"{inspection.subject} has a formula; tail {tail!r} belongs to what is known in a table"
        )
    lines = [expression_line(bias, unicode=False) for bias in inspection.formulas]
    name = lines[0] if len(lines) == 1 else worded(lines)
    formula = inspection.formulas[0] if len(inspection.formulas) == 1 else None
    return Encoding(
        name,
        formula,
        inspection.formulas,
        source=source,
        note=note,
        origin=inspection.origin,
    )


def _lists(given: object) -> bool:
    return isinstance(given, (list, tuple))


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
    return (
        _ENTRIES.get(bare_name(name)) if re.fullmatch(r"[A-Za-z][\w ,-]*", name.strip()) else None
    )


_ENTRIES = {
    bare_name(spelled): e for e in CATALOGUE.values() for spelled in (*e.aliases, e.title, e.name)
}
_FORMULAS = {
    "gaussian": "-n^2/(2*sigma^2)",
    "cauchy": "-log(1 + (n/s)^2)",
    "laplace": "-n/s",
    "streaming": "window --set w=1024 (its first tokens: farfield window ... --sinks 4)",
    "ntk": "rope_ntk",
    "dilated": "where((n % 4 == 0) & (n <= 512), 0, -inf)",
    "causal": "0",
    "retnet": "n*log(31/32): its decay gamma^n as a bias, gamma = 31/32 in its first head",
    **dict.fromkeys(
        ("gla", "mamba", "mamba2"),
        "n*log(gamma), the decay of a constant gate; for gates of content in a softmax, fox",
    ),
}
"""Words that people use for a shape, and what to type for it."""


def _from_entry(
    entry: Entry,
    heads: int | None,
    dialect: str | None,
    given: dict[str, object],
    domains: Mapping[str, str],
) -> Encoding:
    """A catalogue's formula with the given values put in head by head, else the paper's values."""
    if dialect is not None and dialect not in entry.dialects:
        accepted = ", ".join(entry.dialects) or "none"
        raise InputError(f"{entry.name} has no dialect {dialect!r}; accepted: {accepted}")
    dialect = dialect or (entry.dialects[0] if entry.dialects else None)
    chosen = {"dialect": dialect} if dialect else {}
    options = dict(entry.options)
    for key in [k for k in given if k in options]:
        options[key] = given.pop(key)
    _options_fit(entry, dialect, options)
    blank = Encoding(
        entry.name,
        None,
        source=entry.source,
        dialect=dialect,
        mechanism=entry.mechanism,
        out_of_scope=entry.out_of_scope,
        note=entry.note,
        title=entry.title,
    )
    if entry.formula is None:
        refuse(
            bool(given or domains),
            f"{entry.name} has no parameters; {', '.join((*given, *domains))} given",
        )
        return blank
    per_head = entry.per_head(dialect) if callable(entry.per_head) else entry.per_head
    parameters = entry.parameters
    if callable(parameters):
        parameters = parameters(heads=1, **chosen, **options)
    usual = {p.name: p.symbol for p in parameters}
    parameters = _with_domains(entry.name, parameters, domains)
    count = _count(heads, parameters, given, DEFAULT_HEADS if per_head else 1)
    formula = entry.formula(heads=count, **chosen, **options)
    if domains:
        formula = formula.xreplace({usual[p.name]: p.symbol for p in parameters})
    biases = []
    for h in range(1, count + 1):
        defaults = dict(entry.values(h, count, **chosen, **options)) if entry.values else {}
        for name in domains.keys() & defaults.keys() - given.keys():
            raise InputError(
                f"{entry.name} has values for {name}, so that an assumption about it says nothing; "
                f"accepted: --set {name}=... beside it, or the formula"
            )
        defaults |= _head_values(entry.name, parameters, given, h)
        biases.append(_substitute(formula, parameters, defaults))
    return replace(blank, formula=formula, biases=tuple(biases), parameters=parameters)


def _options_fit(entry: Entry, dialect: str | None, options: Mapping[str, object]) -> None:
    """`delta` without `dialect="shift"` would be ignored silently: refuse it."""
    for key, value in options.items():
        reading = entry.needs.get(key)
        if value != entry.options[key] and reading is not None and dialect not in reading:
            accepted = " or ".join(f"dialect={d!r}" for d in reading)
            raise InputError(f"{entry.name}: {key} needs {accepted}, not {dialect!r}")


def _from_formula(
    source: Any,
    heads: int | None,
    given: dict[str, object],
    domains: Mapping[str, str],
    assumed: Collection[str] = (),
) -> Encoding:
    """A formula with its free symbols as parameters; a word that is none is refused with a hint."""
    if source is None:
        raise InputError("an encoding needs a name, a formula or a table of values")
    text = source.strip() if isinstance(source, str) else ""
    if BEHIND.search(text):
        source, printed = parted(source)
        domains, text = printed | {**domains}, source.strip()
    pairs = settings(text)
    _no_other_text(text, pairs)
    read_by = read if isinstance(source, str) else as_expression
    valued_names = {*given, *assumed}
    try:
        formula = read_by(source, domains)
    except InputError:
        _no_encodings(text, {*re.findall(r"[A-Za-z]\w*", text)} - valued_names - {*domains})
        raise
    if pairs and not formula.free_symbols:
        _no_settings(text, pairs)
    names = {s.name for s in symbols(formula)} - {n.name, *domains}
    if text:
        _no_encodings(text, names - valued_names)
    if wider := {k: "nonnegative" for k, v in given.items() if k in names and _has_zero(v, k)}:
        domains = {**domains, **wider}  # as the formula is read: a/a is 1 where a is positive
        formula = read_by(source, domains)
    parameters = tuple(
        Parameter(s.name, domains.get(s.name, domain_of(s)), True)
        for s in sorted(symbols(formula) - {n}, key=lambda s: str(s.name))
    )
    biases = tuple(
        _substitute(formula, parameters, _head_values("the formula", parameters, given, h))
        for h in range(1, _count(heads, parameters, given, 1) + 1)
    )
    if not given and re.fullmatch(r"[\w\s+\-*/%!^().,<>=&|]+", text, re.ASCII):
        return Encoding(text, formula, biases, parameters)
    lines = [expression_line(bias, unicode=False) for bias in biases]
    return Encoding(lines[0] if len(lines) == 1 else worded(lines), formula, biases, parameters)


def _no_other_text(text: str, pairs: Mapping[str, str]) -> None:
    """Refuse an encoding with a number, settings alone, a word: no formula, with what to type."""
    _no_number(text)
    number = r"[-+]?[\d.][\d.eEk%_/*^+-]*"
    if len(pairs) > 1 or any(re.fullmatch(number, value) for value in pairs.values()):
        _no_settings(text, pairs)
    words = re.split(r"[ -]+", text) if re.fullmatch(r"[A-Za-z][\w -]*", text) else ["n"]
    if "n" in words:
        return
    if text in SPELLINGS:
        raise InputError(f"{text} is a function, not a formula; write {text}(n)")
    if shape := _FORMULAS.get(bare_name(text)):
        raise InputError(f"{text} is no encoding of the catalogue; write {shape}")
    close = nearest(text, [s for e in CATALOGUE.values() for s in (e.name, e.title)])
    hint = f"did you mean {close!r}?" if close else closest(text, CATALOGUE)
    raise InputError(f"{text[:40]!r} is neither an encoding nor a formula in n; {hint}")


def _no_number(text: str) -> None:
    """Refuse `window 4096`, `window(4096)`, `alibi 12 heads` with what to type."""
    match = re.fullmatch(r"([A-Za-z][\w -]*?)[\s(]+(\d+)\)?\s*(heads?)?", text)
    entry = named(match[1]) if match else None
    if match is None or entry is None:
        return
    heads = match[3] or entry.values or not entry.parameters or callable(entry.parameters)
    option = "--heads" if heads else f"--set {entry.parameters[0].name}"  # type: ignore[index]
    separator = " " if heads else "="
    raise InputError(f"{text[:40]!r}: write {entry.name} {option}{separator}{match[2]}")


def _no_settings(text: str, pairs: Mapping[str, str]) -> NoReturn:
    """Refuse NAME=NUMBER with its right spelling: after an encoding that is meant, or a formula."""
    name = next(iter(pairs))
    inside = (CATALOGUE.get(word) for word in name.lower().split("_"))
    entry = named(name) or next(filter(None, inside), None)
    settings = () if entry is None or callable(entry.parameters) else entry.parameters
    given, before = pairs, "it after the formula as "
    if entry is not None and len(pairs) == len(settings) == 1:
        given, before = {settings[0].name: pairs[name]}, f"{entry.name} "
    options = " ".join(f"--set {k}={v}" for k, v in given.items())
    if "n" in pairs:
        before, options = "", f"--length {pairs['n']} for the keys of a row; n is the distance"
    raise InputError(
        f"{text[:60]!r} sets a parameter and is no formula in n; write {before}{options}"
    )


def _no_encodings(text: str, names: Collection[str]) -> None:
    """Refuse names of the catalogue as parameters that nothing was said of."""
    for name in sorted(names):
        if (entry := _ENTRIES.get(name.replace("_", "").lower())) is not None:
            formula = encoding(entry.name).formula
            means = f", written {expression_line(formula, unicode=False)}" if formula else ""
            column = re.search(rf"\b{name}\b", text)
            raise InputError(
                f"formula {text[:60]!r}, column {column.start() + 1 if column else 1}: {name} may "
                f"mean the encoding {entry.title or entry.name}{means}, or a parameter; write the "
                f"encoding's formula, or give the parameter another name, a value (--set {name}=2) "
                f"or a domain (--assume {name}=positive)"
            )


def _from_heads(
    each: Sequence[object],
    heads: int | None,
    given: Mapping[str, object],
    domains: Mapping[str, str],
) -> Encoding:
    """One bias a head; equal parameters of several heads are one parameter."""
    each = repeated(each)
    if not each or heads not in (None, len(each)):
        raise InputError(
            f"{len(each)} formulas are given{'' if heads is None else f' for {heads} heads'}; "
            "accepted: one formula a head, such as [-n/4; 0 x7]"
        )
    parts = [_one_head(one, {*given, *domains}) for one in each]
    parameters: dict[str, Parameter] = {}
    for part in parts:
        if part.num_heads > 1 or part.bca is not None or not part.biases:
            several = "it has several heads, or blocks; give it alone, or its formula in the list"
            raise InputError(f"{part.name} is no bias of one head: {part.out_of_scope or several}")
        parameters |= {p.name: p for p in part.free}
    free = _with_domains("the list of formulas", tuple(parameters.values()), domains)
    swap = {parameters[p.name].symbol: p.symbol for p in free}
    biases = []
    for h, part in enumerate(parts, 1):
        values = _head_values("the list of formulas", free, given, h)
        biases.append(_substitute(part.biases[0].xreplace(swap), free, values))
    names = [
        expression_line(bias, unicode=False) if given or bias == 0 else part.name
        for bias, part in zip(biases, parts, strict=True)
    ]
    return Encoding(worded(names), None, tuple(biases), free, source=LISTED)


def _one_head(given: object, names: Collection[str]) -> Encoding:
    """A formula of a list, or a name; `names` are the parameters that the list has values for."""
    if isinstance(given, str) and named(given) is None and as_list(given) is None:
        return _from_formula(given, None, {}, {}, names)
    return encoding(given)


def _with_domains(
    name: str, parameters: tuple[Parameter, ...], domains: Mapping[str, str]
) -> tuple[Parameter, ...]:
    """The parameters and their assumptions."""
    for strange in domains.keys() - {p.name for p in parameters}:
        has = ", ".join(p.name for p in parameters) or "none"
        raise InputError(f"assumption about {strange!r}, which {name} does not have; it has: {has}")
    return tuple(replace(p, domain=domains.get(p.name, p.domain)) for p in parameters)


def _has_zero(value: object, name: str) -> bool:
    """Whether a head's value is 0, where a parameter is otherwise read as positive."""
    each = value if isinstance(value, (list, tuple)) else [value]
    return any(_parameter_value(v, name) == 0 for v in each)


def _parameter_value(value: object, name: str) -> Expr:
    return (
        as_expression(value) if isinstance(value, Expr) and value.is_number else exact(value, name)
    )


def _from_table(values: Any, tail: str | None) -> Encoding:
    """One lookup a head, exact in the given numbers."""
    if hasattr(values, "tolist"):
        if "bool" in str(getattr(values, "dtype", "")):
            from farfield.theory.encodings.layouts import masked

            values = masked(values)
        values = values.tolist()
    rows = values if _lists(values) and values and all(map(_lists, values)) else [values]
    if not all(_lists(row) and row and len(row) == len(rows[0]) for row in rows):
        raise InputError("a table of values has shape (length,) or (heads, length), each row alike")
    from farfield.theory.encodings.inspection import resemblance

    table = [[_entry(v) for v in row] for row in rows]
    resembles = resemblance([[float(v) for v in row] for row in table]) if tail is None else ""
    heads = f" for each of {len(rows)} heads" if len(rows) > 1 else ""
    name = f"table of {plural(len(rows[0]), 'value')}{heads}"
    return _tabulated(table, tail, name, resembles, Seen(len(rows[0]) - 1))


_TAILS = {"constant": "constant", "linear": "linear", "cut": "masked"}


def _tabulated(
    table: Sequence[Sequence[Expr]], tail: str | None, name: str, resembles: str, seen: Seen
) -> Encoding:
    """Values of each head at distances 0, 1, ..., and how they go on; unknown where nothing says
    it."""
    size = len(table[0])
    source = f"table of {plural(size, 'value')}"
    if tail is not None:
        one_of(tail, "tail", _TAILS)
        biases = tuple(_continued(row, tail) for row in table)
        return Encoding(
            f"{name}, {_TAILS[tail]} beyond", biases[0], biases, source=source, origin="formula"
        )
    ends = [{t: _end(row, t) for t in ("constant", "linear")} for row in table]
    known = tuple(Lookup(n, sympy.Tuple(*row), S.NegativeInfinity) for row in table)
    verdicts = [
        f'tail="{t}" {"converges" if all(end[t] < 0 for end in ends) else "diverges"}'
        for t in ("constant", "linear")
    ]
    suggestion = f'; resembles {resembles}: farfield check "{resembles}"' if resembles else ""
    up_to = f"known up to distance {seen.distance}"
    up_to += "" if seen.query is None else f" and query {seen.query}"
    return Encoding(
        name,
        None,
        source=source,
        out_of_scope=Reason(Code.BEYOND_SEEN, f"{up_to}; {', '.join(verdicts)}{suggestion}"),
        origin="tabulated",
        seen=seen,
        known=known,
        resembles=resembles,
    )


def _end(row: Sequence[Expr], tail: str) -> Expr:
    """What a tail adds from one distance to the next: minus infinity where it masks."""
    if row[-1] == S.NegativeInfinity:
        return S.NegativeInfinity
    finite = tail == "linear" and len(row) > 1 and row[-2] != S.NegativeInfinity
    return row[-1] - row[-2] if finite else S.Zero


def _continued(row: Sequence[Expr], tail: str) -> Expr:
    """A table of one head with its tail."""
    size, step = len(row), _end(row, tail)
    end = S.NegativeInfinity if tail == "cut" else row[-1]
    bias = Lookup(n, sympy.Tuple(*row), end)
    if tail != "linear" or step in (0, S.NegativeInfinity):
        return bias
    return sympy.Piecewise((bias, n < size), (row[-1] + step * (n - size + 1), S.true))


def _entry(value: object) -> Expr:
    """An entry of a table: a float as its binary value, all else as written."""
    if value == -math.inf:
        return S.NegativeInfinity
    if isinstance(value, float) and math.isfinite(value):
        return Rational(*value.as_integer_ratio())
    try:
        number = exact(value, "entry")
    except InputError:
        number = None
    if number is None or abs(number) > sys.float_info.max:
        raise InputError(
            f"a table of values holds {str(value)[:40]!r}; accepted are finite numbers and -inf"
        )
    return number


def _count(
    heads: int | None, parameters: Sequence[Parameter], given: Mapping[str, object], default: int
) -> int:
    """The number of heads: as many as values are given, else as asked, else the usual."""
    lengths = {len(v) for v in given.values() if isinstance(v, (list, tuple))}
    if 0 in lengths:
        empty = next(k for k, v in given.items() if isinstance(v, (list, tuple)) and not v)
        raise InputError(f"{empty} has no value; accepted: a number, or one for each head")
    if len(lengths) > 1:
        raise InputError(f"parameters are given for {sorted(lengths)} heads; they must agree")
    if lengths and heads is not None and {heads} != lengths:
        raise InputError(f"parameters are given for {lengths.pop()} heads, heads={heads}")
    if lengths:
        return lengths.pop()
    fixed = parameters and all(p.name in given for p in parameters)
    return heads or (1 if fixed else default)


def _head_values(
    name: str, parameters: Sequence[Parameter], given: Mapping[str, object], h: int
) -> dict[str, Expr]:
    """The values that are given for one head, each within its parameter's domain."""
    values: dict[str, Expr] = {}
    by_name = {p.name: p for p in parameters}
    for key, value in given.items():
        if key not in by_name:
            close = nearest(key, by_name)
            hint = f"; did you mean {close!r}?" if close else ""
            has = ", ".join(by_name) or "none"
            raise InputError(f"{name} has no parameter or option {key!r}{hint} (parameters: {has})")
        if isinstance(value, (list, tuple)):
            value = value[h - 1]
        number = _parameter_value(value, key)
        if number not in by_name[key].interval and not (by_name[key].zero and number == 0):
            raise InputError(f"{key} = {number} is outside its domain ({by_name[key].domain})")
        values[key] = number
    return values


def _substitute(formula: Expr, parameters: Sequence[Parameter], chosen: Values) -> Expr:
    """A head's bias; sums whose bounds are now numbers are written out."""
    symbols = {p.name: p.symbol for p in parameters}
    bias = valued(formula, {symbols[k]: v for k, v in chosen.items()})
    return bias.replace(_constant_sum, _written_out) if sympy.Sum in kinds(bias) else bias


def _constant_sum(e: object) -> bool:
    return isinstance(e, sympy.Sum) and all(x.is_Integer for x in e.limits[0][1:])


@lru_cache(maxsize=64)
def _written_out(e: Basic) -> Expr:
    """A sum term by term; the heads that share it write it out once."""
    index, low, high = e.limits[0]
    return sympy.Add(*(e.function.xreplace({index: Integer(k)}) for k in range(low, high + 1)))
