"""The text of a Rocq file: first comment, definition of the bias, theorems, verdict from cases.

(** The exp-series of p(n) = -r1*log(n*r2 + 1)
    for r1 positive; r2 positive
    converges if r1 > 1. *)

Definition p (n : nat) : R := - r1 * ln (r2 * INR n + 1).
Theorem verdict : 0 < r1 -> 0 < r2 -> (ex_series (fun n => exp (p n)) <-> r1 > 1).

All follows from the words: who receives a file reads them, prints it anew, and compares.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import sympy
from sympy import Basic, Expr, S, Symbol

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.certificates.case_proofs import GuardedBias, braced, proof
from farfield.theory.certificates.prover_forms import (
    NoCertificate,
    condition_form,
    coq_name,
    form,
)
from farfield.theory.certificates.totality import has_values, total
from farfield.theory.decision.cells import Leaf, Tree, domain_constraints, leaves
from farfield.theory.formula.parameters import interval
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.relations import BY_KIND, BY_SIGNS

SERIES = "ex_series (fun n => exp (p n))"
NOTE = """`coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo."""


@dataclass(frozen=True)
class Certifiable:
    """What a certificate is to state of one bias: where its series converges.

    Fields:
        formula: the bias.
        domains: of its parameters, by their names.
        condition: True, False, or relations between the parameters.
        cells: the decision of each cell of the parameters, which a proof is printed from.
    """

    formula: Expr
    domains: Mapping[str, str]
    condition: Basic
    cells: Tree | None = field(default=None, compare=False, repr=False)

    @property
    def parameters(self) -> list[Symbol]:
        return sorted(self.formula.free_symbols - {n}, key=lambda s: str(s.name))


Claims = Mapping[str | None, Certifiable]
"""By the name of the module, None where there is one bias alone."""


def in_words(claims: Claims) -> str:
    """The first comment: what is proved, as formulas are spelled."""
    spelled = "\n\n".join(_in_words(name, c) for name, c in claims.items())
    return f"(** {spelled}\n\n    {NOTE} *)"


def source(claims: Claims) -> str:
    """The file.

    Raises:
        NoCertificate: a form is not covered.
    """
    biases = {name: _bias(c) for name, c in claims.items()}
    needed = "Certificate" + any(b.where is not None for b in biases.values()) * " Extended"
    parts = [
        in_words(claims),
        f"From Farfield Require Import {needed}.\nOpen Scope R_scope.",
        *(_module(name, c, biases[name]) for name, c in claims.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _in_words(name: str | None, c: Certifiable) -> str:
    """The statement proved of one bias, as a formula is spelled."""
    of = "The" if name is None else f"{name}: the"
    bias = c.formula
    if isinstance(bias, Lookup):
        bias = f"table({', '.join(map(str, bias.args[1]))}; {bias.args[2]})"
    domains = "; ".join(f"{s.name} {c.domains[s.name]}" for s in c.parameters)
    verdict = {S.true: "converges", S.false: "diverges"}.get(c.condition)
    return (
        f"{of} exp-series of p(n) = {bias}\n"
        + (domains and f"    for {domains}\n")
        + (f"    {verdict or f'converges if {c.condition}'}.")
    )


def _bias(c: Certifiable) -> GuardedBias:
    """The bias as the prover has it."""
    value, where = total(c.formula)
    return GuardedBias(form(value), None if where == S.true else condition_form(where))


def _module(name: str | None, c: Certifiable, bias: GuardedBias) -> str:
    """The sentences about one bias."""
    cases, tactics = _proved(c)
    parts = [
        f"Definition p (n : nat) : {bias.show()}.",
        *cases,
        _theorem(statement(c), [*_introduced(_hypotheses(c)), *tactics]),
    ]
    if c.parameters:
        variables = " ".join(coq_name(s.name) for s in c.parameters)
        parts = ["Section Verdict.", f"Variables {variables} : R.", *parts, "End Verdict."]
    if name is not None:
        parts = [f"Module {name}.", *parts, f"End {name}."]
    text = "\n\n".join(parts)
    if (
        bias.where is not None
    ):  # there `exp` is that of a bias; that of a real number has its full name
        return re.sub(r"(?<![.\w])exp(?=\s)(?!\s+\(p[\s)])", "Rtrigo_def.exp", text)
    return text


def statement(c: Certifiable) -> str:
    """The theorem of the verdict.

    Raises:
        NoCertificate: the condition cannot be stated.
    """
    claim = {S.true: SERIES, S.false: f"~ {SERIES}"}.get(c.condition)
    verdict = claim or f"{SERIES} <-> {relation(c.condition)}"
    assumed = _hypotheses(c)
    body = f"({verdict})" if assumed and claim is None else verdict
    return "Theorem verdict : " + " -> ".join([*assumed, body]) + "."


def _hypotheses(c: Certifiable) -> list[str]:
    """What the domains say of the parameters."""
    return [fact for s in c.parameters for fact in _domain_facts(s, interval(c.domains[s.name]))]


def _domain_facts(symbol: Basic, domain: sympy.Set) -> Iterator[str]:
    low, high, name = domain.inf, domain.sup, coq_name(symbol.name)
    if low.is_finite:
        yield f"{form(low).show()} {'<=' if low in domain else '<'} {name}"
    if high.is_finite:
        yield f"{name} {'<=' if high in domain else '<'} {form(high).show()}"


def relation(c: Basic) -> str:
    """A condition on parameters as a proposition.

    Raises:
        NoCertificate: it is no combination of comparisons.
    """
    if isinstance(c, (sympy.And, sympy.Or)):
        joint = " /\\ " if isinstance(c, sympy.And) else " \\/ "
        parts = sorted(c.args, key=sympy.default_sort_key)
        return joint.join(
            f"({relation(a)})" if isinstance(a, (sympy.And, sympy.Or)) else relation(a)
            for a in parts
        )
    if c.func not in BY_KIND:
        raise NoCertificate(f"the condition {str(c)[:60]} cannot be stated")
    has_values(c)
    return f"{form(c.lhs).show()} {BY_KIND[c.func].prover} {form(c.rhs).show()}"


# -- the proofs -----------------------------------------------------------------------------------


def _proved(c: Certifiable) -> tuple[list[str], list[str]]:
    """The theorems on the cases of the parameters, and the tactics that prove the verdict.

    Raises:
        NoCertificate: the form is not covered.
    """
    bias, assumed, cells = _bias(c), _hypotheses(c), list(leaves(c.cells))
    domains = [
        fact for s in c.parameters for fact in domain_constraints(s, interval(c.domains[s.name]))
    ]
    unconditional = c.condition in (S.true, S.false)
    if not cells or (
        unconditional and any(leaf.outcome.converges != c.condition for _, leaf in cells)
    ):
        raise NoCertificate("a case of the parameters that is not seen to be impossible")
    if unconditional:  # one proof for all cases is shorter
        try:
            return [], proof(bias, domains, cells[0][1].outcome)
        except (NoCertificate, Undecided):
            if len(cells) == 1:
                raise
    cases = []
    for number, (path, leaf) in enumerate(cells, 1):
        premises = [*assumed, *(f"0 {BY_SIGNS[-s,].prover} {form(g).show()}" for g, s in path)]
        verdict = SERIES if leaf.outcome.converges else f"~ {SERIES}"
        lemma = f"Theorem case_{number} : " + " -> ".join([*premises, verdict]) + "."
        proved = proof(bias, [*domains, *path], leaf.outcome)
        cases.append(_theorem(lemma, [*_introduced(premises), *proved]))
    return cases, _folded(c.cells, unconditional)


def _introduced(assumed: list[str]) -> list[str]:
    names = " ".join(f"D{i}" for i in range(1, len(assumed) + 1))
    return [f"intros {names}."] if names else []


def _theorem(statement: str, proof: list[str]) -> str:
    lines = [_wrapped(statement, ""), "Proof.", *(_wrapped(s, "  ") for s in proof), "Qed."]
    return "\n".join(lines)


def _wrapped(sentence: str, indent: str) -> str:
    """A sentence within 100 columns where spaces allow it."""
    lines = []
    for line in sentence.split("\n"):
        margin = indent + line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line.strip(),
            100,
            initial_indent=margin,
            subsequent_indent=margin + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _folded(tree: Tree | None, unconditional: bool) -> list[str]:
    """The verdict from the cases, along the splits that led to them; `unconditional`
    where it is the same in all."""
    numbers = {id(leaf): k for k, (_, leaf) in enumerate(leaves(tree), 1)}
    inexact = any(
        a.is_number and not a.is_Rational
        for path, _ in leaves(tree)
        for g, _ in path
        for a in g.atoms(sympy.Function, sympy.NumberSymbol, sympy.Pow)
    )

    def fold(part: Tree | None, depth: int) -> list[str]:
        if part is None:
            if inexact:
                raise NoCertificate("a case of the parameters that irrational constants exclude")
            return ["exfalso. contrary."]
        if isinstance(part, Leaf):
            case = f"apply case_{numbers[id(part)]}; assumption"
            if unconditional:
                return [f"{case}."]
            if part.outcome.converges:
                return [f"split; intros _; [condition | {case}]."]
            return [f"split; intros Y; exfalso; [revert Y; {case} | contrary]."]
        x = f"X{depth}"
        lines = [f"destruct (Rtotal_order 0 ({form(part.on).show()})) as [{x}|[{x}|{x}]]."]
        for child in (part.positive, part.zero, part.negative):
            lines += braced(fold(child, depth + 1))
        return lines

    return fold(tree, 1)
