"""The parser: text to a SymPy expression in `n`, safely; calls, refused names, `i - j` as `n`.

A formula is untrusted text. It is read by the small grammar below, never by `eval` or `sympify`,
and each node is built so that SymPy cannot hang on it: numbers are bounded before they are
formed, special functions of numbers stay unevaluated, comparisons are never decided here.

    formula   := choice
    choice    := sum ["if" condition "else" choice]
    sum       := product (("+" | "-") product)*
    product   := unary (("*" | "/" | "//" | "%" | nothing) unary)*
    unary     := ("+" | "-") unary | power
    power     := atom [("**" | "^") unary]
    atom      := (number | name | call | "(" choice ")" | "|" sum "|") ["!" | "." call]*
    call      := name "(" arguments ")" | name "^" number "(" arguments ")" | name name+

What people write is spelled alike first (`reading`): signs of print, LaTeX, `np.log1p`. Where a
text may mean two things (`1/2n`, `x^1/2`, `log n^2`) it is refused, with both (`ambiguities`).
Numbers are exact: `0.1` is 1/10. Every name that is no function and no constant is a parameter; so
are Greek letters that name a function, where no argument follows.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

import sympy
from sympy import Expr, Integer, Rational, S
from sympy.core.relational import Relational

from farfield.theory.algebra.door import after, unless
from farfield.theory.algebra.exceptions import Undecided, Unreachable
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.names import closest
from farfield.theory.formula import ambiguities, conditions, finite_sums, latex
from farfield.theory.formula.bounded_nodes import (
    MAX_DIGITS,
    MAX_LENGTH,
    READ_S,
    power,
    substituted,
)
from farfield.theory.formula.parameters import parameter
from farfield.theory.formula.reading import GREEK, POSITIONS, Reading, positions_of
from farfield.theory.formula.vocabulary import AMBIGUOUS, CALLED, CONSTANTS, SYNONYMS
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import (
    SPELLINGS,
    UNDEFINED,
    Refused,
    Spelling,
    kinds,
    records,
    register,
    symbols,
)

_CASTS = ("float", "double", "to", "astype", "float64", "float32", "half", "asarray", "array")
_BOUNDS = ("clip", "clamp")
OF_ROWS = "it takes the {name} of a row; {name}imum(a, b) is the {name} of two"


def call(p: Reading, value: str, column: int) -> Expr:
    """A name with the bracket that follows it."""
    if value == "Piecewise":
        return conditions.piecewise(p, column)
    if value in ("Sum", "Product"):
        return finite_sums.finite_sum(p, column, value)
    if value == "where":
        return conditions.chosen(p, column)
    if value in _CASTS:
        p.expect("(")
        inner = p.sum()
        p.expect(")")
        return inner
    return _applied(p, value, column, [])


def method(p: Reading, value: Expr) -> Expr:
    """`.log()`, `.clamp(min=1)`, `.float()` after a value, as of a tensor."""
    p.expect(".")
    kind, name, column = p.next()
    if kind != "name" or not p.begins("("):
        p.fail(column, f"expected a method such as .log(), found {name!r}")
    if name in _CASTS:
        hint = ""
        while (word := p.next()[1]) != ")":
            hint += word
            if p.token[0] == "end":
                p.fail(column, f"the bracket of .{name}( is not closed")
        if hint != "(" and not re.search("float|double|half|device|cpu|cuda", hint):
            p.fail(column, f".{name}{hint}) may round its argument; write floor(...) where it does")
        return value
    if name in ("min", "max"):
        p.fail(column, OF_ROWS.format(name=name))
    return _applied(p, name, column, [value])


def to_the(p: Reading, column: int) -> Expr:
    """`exp^...`."""
    p.next()
    begin = p.position
    exponent = p.nested(p.exponent)
    ambiguities.require_closed(p, S.Exp1, column, begin)
    return p.build(column, SPELLINGS["exp"].build, exponent)


def power_of(p: Reading, value: str, column: int) -> Expr:
    """`log^2(1 + n)`, the square of the logarithm."""
    p.next()
    if value in GREEK and not (p.token[0] == "number" and p.ahead(2)[1:] == ["("]):
        p.position -= 1
        return p.parameter(value, column)
    grouped = p.accept("{") or p.accept("(")
    place = p.column
    if not grouped:
        digits = p.next()[1]
        exponent = Integer(int(digits)) if digits.isdigit() else None
    elif grouped == "{" and p.begins("("):
        p.fail(
            place, f"{value}^{{(...)}} may mean a power or a function applied again; write which"
        )
    else:
        exponent = p.choice()
        p.expect("}" if grouped == "{" else ")")
    if exponent is None or not exponent.is_Rational or not 0 < exponent < 100:
        p.fail(place, f"{value}^... takes a positive power, as {value}^2(n); write another outside")
    if p.begins("/"):
        shown = "".join(p.ahead(2))
        p.fail(
            place,
            f"{value}^{exponent}{shown}(...) may mean {value}^({exponent}{shown})(...) or a "
            "quotient; write it with brackets",
        )
    if not p.begins("(") and not names_argument(p):
        p.fail(p.column, f"expected the argument of {value} in brackets")
    base = _applied(p, value, column, []) if p.begins("(") else of_argument(p, value, column)
    return p.build(column, power, base, exponent)


def names_argument(p: Reading) -> bool:
    """Whether a function is followed by its argument without brackets."""
    kind, value, _ = p.token
    plain = value not in ("if", "else", "and", "or", "not") and value not in CALLED
    return (kind == "name" and plain) or (p.braces and p.begins("{"))


def of_argument(p: Reading, value: str, column: int) -> Expr:
    """`log n`."""
    spelling = SPELLINGS[value]
    if spelling.least > 1:
        p.fail(column, f"{value} takes {spelling.least} arguments; write {value}(...)")
    return p.build(column, spelling.build, _argument(p, value, column))


def _argument(p: Reading, value: str, column: int) -> Expr:
    """The one name, group or function that a function is applied to without brackets."""
    grouped, argument = p.begins("{"), p.bare()
    if grouped:
        return argument
    follows = p.token[1]
    open_ended = ("^", "**", "!", "(", "/", "//", "%", *(() if p.latex else ("*",)))
    if follows in open_ended or names_argument(p):
        word = p.tokens[p.position - 1][1]
        next_one = p.ahead(2)[1]
        after = next_one if next_one.isalnum() else "..."
        rest = f" {follows}" if follows.isalnum() else f"{follows}{after}"
        p.fail(
            column,
            f"{value} {word}{rest} may mean {value}({word}{rest}) or {value}({word}){rest}; write "
            "it with brackets",
        )
    ambiguities.require_end(p, value, column, p.tokens[p.position - 1][1])
    return argument


def _applied(p: Reading, value: str, column: int, args: list[Expr]) -> Expr:
    """A function with the arguments in the bracket that opens here, after those given."""
    if value not in SPELLINGS and value not in _BOUNDS:
        _no_function(p, value, column)
    named = _arguments(p, args)
    if value in _BOUNDS:
        return _clipped(p, value, column, args, named)
    if named:
        p.fail(column, f"{value} takes no argument {next(iter(named))!r} by name")
    spelling = SPELLINGS[value]
    least, most = spelling.least, spelling.most
    if not least <= len(args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        p.fail(column, f"{value} takes {wanted} argument(s), {len(args)} given")
    if any(a in (S.Infinity, S.NegativeInfinity) for a in args):
        p.fail(column, f"{value} of infinity")
    if value == "log" and len(args) == 2:
        ambiguities.require_base(p, column, args)
    return p.build(column, spelling.build, *args)


def _no_function(p: Reading, value: str, column: int) -> NoReturn:
    """Refuse a name with a bracket behind it that is no function, with what may be meant."""
    if base := re.fullmatch(r"(?:log)?_(\d+|[a-z])", value):
        p.fail(column, f"a logarithm to base {base[1]} is written log(...)/log({base[1]})")
    if len(value) == 1:
        p.fail(column, f"{value} is no function; write a product as {value}*(...)")
    if value in AMBIGUOUS:
        p.fail(column, f"{value} may mean {AMBIGUOUS[value]}; write which")
    p.fail(column, f"unknown function {value!r}{_meant(value, SPELLINGS)}")


def _arguments(p: Reading, args: list[Expr]) -> dict[str, Expr]:
    """Read the bracket that opens here: its values are put behind those given, `name=value` is
    returned."""
    named: dict[str, Expr] = {}
    p.expect("(")
    while not p.accept(")"):
        if args or named:
            p.accept(",")
        if p.ahead(2)[1:] == ["="] and p.token[0] == "name":
            key = p.next()[1]
            p.expect("=")
            named[key] = p.choice()
        else:
            args.append(p.choice())
        if not p.begins(",") and not p.begins(")"):
            p.expect(")")
    return named


def _clipped(p: Reading, value: str, column: int, args: list[Expr], named: dict[str, Expr]) -> Expr:
    """`clip(x, low, high)`, either end left out or given by name."""
    keys = {
        "min": "min",
        "a_min": "min",
        "low": "min",
        "max": "max",
        "a_max": "max",
        "high": "max",
    }
    ends = {keys[k]: v for k, v in named.items() if k in keys}
    if not args or len(ends) < len(named) or len(args) > 3:
        p.fail(column, f"{value} takes a value, a least and a greatest one")
    for key, end in zip(("min", "max"), args[1:], strict=False):
        ends.setdefault(key, end)
    clipped = args[0]
    if ends.get("min", S.NegativeInfinity) != S.NegativeInfinity:
        clipped = p.build(column, SPELLINGS["Max"].build, clipped, ends["min"])
    if ends.get("max", S.Infinity) != S.Infinity:
        clipped = p.build(column, SPELLINGS["Min"].build, clipped, ends["max"])
    return clipped


def _meant(word: str, names: Iterable[str]) -> str:
    """What a user may have meant by a word that is misspelt, never another function."""
    alike = [k for k in names if k.lower() == word.lower()]
    letters = word.rstrip("0123456789")
    if not alike and letters == word and len(word) > 3:
        alike = [k for k in difflib.get_close_matches(word, list(names), 1, 0.8) if k.isalpha()]
    if alike:
        return f"; did you mean {alike[0]!r}?"
    accepted = sorted(record.names[0] for record in records() if record.names)
    return f"; {closest(word, accepted)}"


_FUNCTION_LETTERS = "fghpq"  # before a bracket: a function that nobody has defined


_OTHERWISE = {
    **dict.fromkeys(("nan", "NaN", "None", "none", "null"), "no number"),
    **dict.fromkeys(("infinity", "Infinity"), "oo"),
    "zoo": "complex infinity",
    "i": "the imaginary unit or a position",
    "j": "the imaginary unit or a position",
}
"""Names that people give to something else than a parameter."""


def _require_name(p: Reading, name: str, column: int) -> None:
    """Refuse a parameter whose name reads as something else, unless its domain is given."""
    positions = {"i", "j"} <= {value for _, value, _ in p.tokens}
    if name in p.domains or (positions and name in ("i", "j")):
        return
    if re.fullmatch(r"[eE]\d+", name):
        digits = name[1:]
        p.fail(
            column,
            f"{name} may mean 1e{digits}, or e^{digits}, or a parameter; write which, or say that "
            f"it is a parameter: --assume {name}=positive",
        )
    if meaning := _OTHERWISE.get(name):
        p.fail(
            column,
            f"{name} may mean {meaning}, or a parameter; write another letter, or say that it is a "
            f"parameter: --assume {name}=positive",
        )
    function = name.removesuffix("n")
    if function != name and len(function) > 1 and function in SPELLINGS:
        p.fail(
            column,
            f"{name} may mean {function}(n), or a parameter; write {function}(n), or say that it "
            f"is a parameter: --assume {name}=positive",
        )


def _by_distance(p: Reading, e: Expr) -> Expr:
    """A function of `i - j`, a query's position less its key's, as one of the distance."""
    written = {value for kind, value, _ in p.tokens if kind == "name"}
    free = written - ({p.distance, *p.domains} - {"n"})
    for names in POSITIONS:
        if {*names} <= free and (of_distance := _of_positions(p, e, names, written)) is not None:
            return of_distance
    return e


def _of_positions(
    p: Reading, e: Expr, names: tuple[str, str], written: Collection[str]
) -> Expr | None:
    """A function of the difference of these two positions as one of the distance; None where they
    may be parameters. The text has the names `written`."""
    query, key = (n if name == "n" else parameter(name) for name in names)
    sure = names[0] == "i" or names == positions_of(p.text)
    if not (e.has(query, key) if sure else e.has(query) and e.has(key)):
        return None
    distance = sympy.Dummy(integer=True, nonnegative=True)
    sides = {
        r: r.func(*(distance if x == query else S.Zero for x in r.args), evaluate=False)
        for r in e.atoms(Relational)
        if {*r.args} == {query, key}
    }
    between_bars = substituted(e, {sympy.Abs(query - key): distance})
    moved = substituted(e, {**sides, query: key + distance})
    is_meant = sure or "n" not in written or not between_bars.has(query, key)
    if is_meant and not moved.has(query, key, n):
        of_distance = substituted(moved, {distance: n})
        if any(map(conditions.ended, (x.args for x in of_distance.atoms(sympy.Piecewise)))):
            p.fail(0, conditions.ENDED)
        return of_distance
    difference = " - ".join(names)
    column = next(place for _, value, place in p.tokens if value == names[0])
    if sure or between_bars.has(distance):
        p.fail(
            column,
            f"{names[0]} beside {difference}: a bias is a function of the distance alone, which is "
            f"{difference} or n; give a parameter or a length another name",
        )
    if not moved.has(key):
        p.fail(
            column,
            f"{difference} may mean the distance n, of a query at {names[0]} and a key at "
            f"{names[1]}, or a difference with a parameter; write n, or |{difference}|, or say "
            f"that it is a parameter: --assume {names[0]}=positive",
        )
    return None


class Parser(Reading):
    """The grammar, one method a rule; calls, conditions, finite sums have modules of their own."""

    def formula(self) -> Expr:
        value = self.choice()
        kind, text, column = self.token
        if kind != "end":
            self.fail(column, f"unexpected {text!r}{self._hint(text)}")
        return _by_distance(self, value)

    def build(self, column: int, make: Callable[..., Expr], *args: object) -> Expr:
        if not isinstance(make, Synonym):
            return super().build(column, make, *args)
        try:
            return make(*args)  # reading it supervises each step
        except Refused as wrong:
            self.fail(column, str(wrong))

    def _hint(self, reason: str) -> str:
        if reason == ",":
            return "; a decimal number has a point, 0.5, and a list of heads brackets, [-n/4; 0]"
        return "; write * for a product" if reason == "(" or reason.isalnum() else ""

    def choice(self) -> Expr:
        return self.nested(self._choice)

    def _choice(self) -> Expr:
        """Python's `value if condition else value`, which binds least of all."""
        column, value = self.column, self._sum()
        if not self.accept_name("if"):
            return value
        held = conditions.condition(self)
        if not self.accept_name("else"):
            self.fail(self.column, "expected else: value if condition else value")
        return conditions.where(self, column, held, value, self.choice())

    def sum(self) -> Expr:
        return self.nested(self._sum)

    def _sum(self) -> Expr:
        column = self.column
        terms = [self.product()]
        while op := self.accept("+", "-"):
            term = self.product()
            terms.append(-term if op == "-" else term)
        return terms[0] if len(terms) == 1 else self.build(column, sympy.Add, *terms)

    def product(self) -> Expr:
        column, begin = self.column, self.position
        factors, op = [self.unary()], "*"
        while True:
            place, before = self.column, op
            op = self.accept("*", "/", "//", "%") or self._implied()
            if not op:
                break
            if op == "implied":
                ambiguities.require_product(self)
            elif op in ("//", "%"):
                ambiguities.require_remainder(self, begin, op)
            if op == "implied" and before in ("/", "//", "%"):
                ambiguities.require_apart(self, place, before)
            place = self.column
            factor = self.power() if op == "implied" else self.unary()
            if op in ("/", "//"):
                factors.append(self.build(place, power, factor, S.NegativeOne))
            elif op == "%":
                whole = self.build(column, sympy.Mul, *factors)
                factors = [self.build(place, SPELLINGS["Mod"].build, whole, factor)]
            else:
                factors.append(factor)
            if op == "//":
                whole = self.build(column, sympy.Mul, *factors)
                factors = [self.build(place, SPELLINGS["floor"].build, whole)]
        infinite = any(f is S.Infinity or f is S.NegativeInfinity for f in factors)
        if infinite and not all(f.is_number for f in factors):
            self.fail(column, "a product with infinity; write where(n > 64, -oo, 0) or the like")
        return factors[0] if len(factors) == 1 else self.build(column, sympy.Mul, *factors)

    def _implied(self) -> str:
        """Whether a factor follows without a sign: `2n`, `3(1 + n)`, `n log(n)`."""
        kind, value, _ = self.token
        if kind == "name":
            starts = value not in ("if", "else", "and", "or", "not", "for")
        else:
            starts = value == "(" or (value == "{" and self.braces)
            starts |= value == "|" and not self.bars
        return "implied" if starts else ""

    def unary(self) -> Expr:
        sign = 1
        while op := self.accept("+", "-"):
            sign = -sign if op == "-" else sign
        value = self.power()
        return -value if sign < 0 else value

    def power(self) -> Expr:
        column = self.column
        base = self.atom()
        if self.accept("**", "^") is None:
            return base
        begin = self.position
        exponent = self.nested(self.exponent)
        ambiguities.require_closed(self, base, column, begin)
        return self.build(column, power, base, exponent)

    def exponent(self) -> Expr:
        """After `^`: in LaTeX a group or a single digit or letter."""
        if self.braces and self.begins("{"):
            return latex.group(self)
        if self.braces and self.token[0] == "number" and len(self.token[1]) > 1:
            self.fail(self.column, "an exponent of several digits needs braces: ^{...}")
        return self.unary()

    def atom(self) -> Expr:
        column = self.column
        value = self.bare()
        while True:
            if self.accept("!"):
                if self.begins("!"):
                    self.fail(column, "!! may mean a double factorial, or (x!)!; write which")
                value = self.build(column, SPELLINGS["factorial"].build, value)
            elif self.begins("."):
                value = method(self, value)
            else:
                return value

    def bare(self) -> Expr:
        """An operand without sign and power: number, name, bracket, bars, group of LaTeX."""
        kind, value, column = self.next()
        if kind == "number":
            return self.number(value, column)
        if kind == "name":
            return self.name(value, column)
        if kind == "tex":
            return latex.cases(self, value, column)
        if value == "(":
            ambiguities.require_bracket(self, column)
            if conditions.opened(self):  # a comparison as a number, 1 where it holds
                held = conditions.condition(self)
                self.expect(")")
                return conditions.where(self, column, held, S.One, S.Zero)
            inner = self.apart(self.choice)
            self.expect(")")
            return inner
        if value == "{" and self.braces:
            self.position -= 1
            ambiguities.require_group(self)
            return latex.group(self)
        if value == "|":
            inner = self.within_bars(self.sum)
            self.expect("|")
            return self.build(column, SPELLINGS["Abs"].build, inner)
        reason = "the formula ends here" if kind == "end" else f"{value!r} cannot stand here"
        self.fail(column, f"{reason}; expected a number, a name, a function or a bracket")

    def number(self, value: str, column: int) -> Expr:
        mantissa, _, exponent = value.lower().partition("e")
        if len(mantissa) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > MAX_DIGITS:
            self.fail(column, f"a number of more than {MAX_DIGITS} digits")
        whole, _, fraction = mantissa.partition(".")
        scale = int(exponent or 0) - len(fraction)
        digits = int((whole + fraction) or "0")
        return Integer(digits * 10**scale) if scale >= 0 else Rational(digits, 10**-scale)

    def name(self, value: str, column: int) -> Expr:
        if value == "Indicator":
            return conditions.indicator(self, column)
        if self.begins("(") and not self._is_factor(value, column):
            return call(self, value, column)
        if value == self.distance and value not in self.bound:
            return n
        if value in self.bound or value in CONSTANTS:
            return self.bound[value] if value in self.bound else CONSTANTS[value]
        if self.latex and (command := latex.command(self, value, column)) is not None:
            return command
        if value == "exp" and self.begins("^"):  # LaTeX has both e^{...} and \exp^{...}
            return to_the(self, column)
        if value in SPELLINGS:
            if self.begins("^") or self.begins("**"):
                return power_of(self, value, column)
            if value not in GREEK:
                if self.token[0] == "number":
                    self.fail(
                        column,
                        f"{value} {self.token[1]} has no brackets; write {value}(...), which shows "
                        "where the argument ends",
                    )
                if not names_argument(self):
                    self.fail(column, f"{value} is a function here; write {value}(...)")
                return of_argument(self, value, column)
        elif value in CALLED or value in ("if", "else"):
            self.fail(column, f"{value} is a function here; write {value}(...)")
        return self.parameter(value, column)

    def parameter(self, value: str, column: int) -> Expr:
        """A name that is no function, as a symbol of its domain."""
        _require_name(self, value, column)
        if (index := value.rpartition("_")[2]) in self.bound and index != value:
            self.fail(column, f"{value} changes with the index {index}; write its formula instead")
        try:
            return parameter(value, self.domains.get(value, "positive"))
        except InputError as error:
            self.fail(column, str(error))

    def _is_factor(self, value: str, column: int) -> bool:
        """Whether a name before a bracket is a factor, `m(1 + n)`, and no function."""
        if value == self.distance or value in (*self.domains, *self.bound):
            return True
        if value not in SPELLINGS:
            ambiguities.require_factor(self, value, column)
        if value in CONSTANTS or (value == "beta" and not self._has_comma()):
            return True
        if value in SPELLINGS and value in GREEK and self.latex and value != "zeta":
            self.fail(
                column,
                rf"\{value}( may mean \{value} times the bracket or a function; write "
                rf"\{value} \cdot ( or \{value.capitalize()}(",
            )
        base = str(re.match("[A-Za-z]*", value)[0])  # type: ignore[index]
        letter = len(base) == 1 and base not in _FUNCTION_LETTERS
        return (letter or base in GREEK) and value not in SPELLINGS

    def _has_comma(self) -> bool:
        """Whether the bracket that opens here has a comma of its own: then it holds arguments."""
        depth = 0
        for _, value, _ in self.tokens[self.position :]:
            depth += (value in ("(", "[", "{")) - (value in (")", "]", "}"))
            if depth == 0 or (depth == 1 and value == ","):
                break
        return depth == 1


class _Body(Parser):
    """The body of a synonym; an error names the place of the synonym."""

    def fail(self, column: int, what: str) -> NoReturn:
        raise Refused(what)


@dataclass(frozen=True)
class Synonym:
    """What a library's function is in the words of the grammar: it is read, like all else."""

    arguments: tuple[str, ...]
    body: str

    def __call__(self, *values: Expr) -> Expr:
        reading = copy.copy(_begun(self.body))
        reading.bound = dict(zip(self.arguments, values, strict=True))
        return reading.formula()


@lru_cache(maxsize=64)
def _begun(body: str) -> _Body:
    """A body of which nothing is read yet: its tokens are cut once."""
    return _Body(body, {})


def _spelling(head: str, body: str) -> Spelling:
    """A synonym from its line: `name(arguments)` and what it means."""
    name, _, inner = head.rstrip(")").partition("(")
    arguments = tuple(inner.split(", "))
    return Spelling(name, Synonym(arguments, body), len(arguments), len(arguments))


register(*(_spelling(head, body) for head, body in SYNONYMS.items()))


def read(text: str, domains: Mapping[str, str] | None = None, variable: str = "n") -> Expr:
    """The SymPy expression of a formula in the distance `n` and named parameters.

    Args:
        text: the formula, at most 10,000 characters.
        domains: the domain of each parameter (see `parameter`); positive where nothing is said.
        variable: what the formula is in, where that is not the distance but a parameter.

    Raises:
        InputError: one line with the column and the accepted texts.

    >>> read("-r1*log(1 + r2*n)")
    -r1*log(n*r2 + 1)
    >>> read("-0.1*|n|")
    -n/10
    >>> read("-log(1+x)")
    Traceback (most recent call last):
        ...
    farfield.theory.answers.errors.InputError: formula '-log(1+x)' has no n, the distance; ...
    """
    text, domains = _formula_text(text), dict(domains or {})
    for name, domain in domains.items():
        parameter(name, domain)
    try:
        with unless(after(READ_S)):
            printed = "mod" in text or "otherwise" in text
            expr = Parser(conditions.reprinted(text) if printed else text, domains).formula()
    except (Undecided, Unreachable) as why:
        raise InputError(f"formula {text[:40]!r} is too hard to be read ({why})") from None
    if expr in (S.Infinity, S.NegativeInfinity) or not UNDEFINED.isdisjoint(kinds(expr)):
        raise InputError(f"formula {text[:40]!r} is infinite or undefined for all n")
    _names_fit(text, {s.name for s in symbols(expr)}, variable, domains)
    return expr


def _formula_text(text: object) -> str:
    """The text of a formula, blanks in place of quotes around it."""
    if not isinstance(text, str):
        raise InputError(f"a formula is text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise InputError(f"the formula has {len(text)} characters; at most {MAX_LENGTH} are read")
    if not text.strip():
        raise InputError("the formula is empty; expected a bias in the distance n, as -log(1+n)")
    quoted = text[0] == text[-1] and text[0] in "\"'"
    return f" {text[1:-1]} " if quoted else text


def _names_fit(text: str, given: set[str], variable: str, domains: Mapping[str, str]) -> None:
    """Refuse a formula of names alone without its variable, and a domain of a name that it has
    not."""
    names = sorted(given - {n.name})
    if variable not in given and not set(names) <= set(domains):
        what = f"{variable}, the distance" if variable == "n" else variable
        mean = f"did you mean {variable} for {names[0]}?"
        hint = mean if len(names) == 1 else "write n for the distance"
        raise InputError(f"formula {text[:40]!r} has no {what}; {hint}")
    for unused in sorted(set(domains) - set(names)):
        raise InputError(
            f"assumption about {unused!r}, which formula {text[:40]!r} does not contain; "
            f"its parameters: {', '.join(names) or 'none'}"
        )
