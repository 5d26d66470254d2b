"""The source of a certificate: the bias, one theorem a case of the parameters, the verdict.

Definition p (n : nat) : R := - r1 * ln (r2 * INR n + 1).
Theorem verdict : 0 < r1 -> 0 < r2 -> (ex_series (fun n => exp (p n)) <-> r1 > 1).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import sympy
from sympy import Expr, S

from farfield.theory.certificates.prover_forms import (
    NoCertificate,
    bias_form,
    coq_name,
    form,
    is_extended,
)
from farfield.theory.certificates.verdicts import braced, decide
from farfield.theory.decision.cells import Leaf, Tree, explore, leaves
from farfield.theory.functions.nodes import n
from farfield.theory.relations import BY_KIND, BY_SIGNS

SERIES = "ex_series (fun n => exp (p n))"


def definition(formula: Expr) -> str:
    """The bias as the prover reads it."""
    kind = "Rbar" if is_extended(formula) else "R"
    return f"Definition p (n : nat) : {kind} := {bias_form(formula).show()}."


def domain_facts(symbol: Any, own: sympy.Set) -> Iterator[str]:
    """What a domain says of a parameter."""
    low, high, name = own.inf, own.sup, coq_name(symbol.name)
    if low.is_finite:
        yield f"{form(low).show()} {'<=' if low in own else '<'} {name}"
    if high.is_finite:
        yield f"{name} {'<=' if high in own else '<'} {form(high).show()}"


def relation(c: Any) -> str:
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
    return f"{form(c.lhs).show()} {BY_KIND[c.func].prover} {form(c.rhs).show()}"


def statement(assumed: list[str], verdict: str) -> str:
    """The theorem of the verdict, `verdict` being what follows from the hypotheses."""
    body = f"({verdict})" if assumed and "<->" in verdict else verdict
    return "Theorem verdict : " + " -> ".join([*assumed, body]) + "."


def claim(converges: bool) -> str:
    """The series converges, or does not."""
    return SERIES if converges else f"~ {SERIES}"


def sentences(formula: Expr, domains: Mapping[str, sympy.Set], condition: Any) -> tuple[str, str]:
    """The definition of the bias, and the theorem of its verdict, each without its proof.

    Raises:
        NoCertificate: the condition cannot be stated.
    """
    verdict = {S.true: SERIES, S.false: f"~ {SERIES}"}.get(condition)
    if verdict is None:
        verdict = f"{SERIES} <-> {relation(condition)}"
    said = statement(hypotheses(formula, domains), verdict)
    return _named(definition(formula), formula), _named(said, formula)


def hypotheses(formula: Expr, domains: Mapping[str, sympy.Set]) -> list[str]:
    """What the domains say of the parameters, by their names."""
    return [f for s in _parameters(formula) for f in domain_facts(s, domains[s.name])]


def _parameters(formula: Expr) -> list[Any]:
    return sorted(formula.free_symbols - {n}, key=lambda s: str(s.name))


def _named(text: str, formula: Expr) -> str:
    """Beside -oo, `exp` is the exponential of a bias; that of a real number has its full name."""
    if not is_extended(formula):
        return text
    return re.sub(r"(?<![.\w])exp(?=\s)(?!\s+\(p[\s)])", "Rtrigo_def.exp", text)


def source(
    formula: Expr, domains: Mapping[str, sympy.Set], condition: Any, name: str | None = None
) -> str:
    """The sentences about one bias; `condition` says when it converges (true, false or a relation).

    Raises:
        NoCertificate: the form is not covered.
    """
    symbols, assumed = _parameters(formula), hypotheses(formula, domains)
    defined, said = sentences(formula, domains, condition)
    bias = bias_form(formula)
    tree = explore(formula, domains, lambda _, facts: decide(bias, facts), solve=False)
    parts = [defined]
    if isinstance(tree, Leaf):
        _agree(tree.outcome.converges, condition)
        proof = [*_introduced(assumed), *tree.outcome.proof]
    else:
        parts += _cases(tree, assumed)
        proof = [*_introduced(assumed), *_folded(tree, condition)]
    parts.append(_theorem(said, proof))
    if symbols:
        variables = " ".join(coq_name(s.name) for s in symbols)
        parts = ["Section Verdict.", f"Variables {variables} : R.", *parts, "End Verdict."]
    if name is not None:
        parts = [f"Module {name}.", *parts, f"End {name}."]
    return _named("\n\n".join(parts), formula)


def _agree(converges: bool, condition: Any) -> None:
    """No file says other than the engine: here a case that cannot occur may not be excluded."""
    if condition not in (S.true, S.false) or bool(condition) != converges:
        raise NoCertificate("a case of the parameters that is not seen to be impossible")


def _introduced(assumed: list[str]) -> list[str]:
    names = " ".join(f"D{i}" for i in range(1, len(assumed) + 1))
    return [f"intros {names}."] if names else []


def _theorem(said: str, proof: list[str]) -> str:
    lines = [_wrapped(said, ""), "Proof.", *(_wrapped(s, "  ") for s in proof), "Qed."]
    return "\n".join(lines)


def _wrapped(sentence: str, indent: str) -> str:
    """A sentence within 100 columns where spaces allow it."""
    lines = []
    for line in sentence.split("\n"):
        own = indent + line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line.strip(),
            100,
            initial_indent=own,
            subsequent_indent=own + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _cases(tree: Tree, assumed: list[str]) -> Iterator[str]:
    """One theorem a case."""
    for number, (path, leaf) in enumerate(leaves(tree), 1):
        own = [*assumed, *(f"0 {BY_SIGNS[-s,].prover} {_operand(g)}" for g, s in path)]
        verdict = claim(leaf.outcome.converges)
        said = f"Theorem case_{number} : " + " -> ".join([*own, verdict]) + "."
        yield _theorem(said, [*_introduced(own), *leaf.outcome.proof])


def _operand(g: Expr) -> str:
    return form(g).show()


def _folded(tree: Tree, condition: Any) -> list[str]:
    """The verdict from the cases, along the splits that led to them."""
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
            decision = part.outcome
            case = f"apply case_{numbers[id(part)]}; assumption"
            if condition in (S.true, S.false):
                _agree(decision.converges, condition)
                return [f"{case}."]
            if decision.converges:
                return [f"split; intros _; [condition | {case}]."]
            return [f"split; intros Y; exfalso; [revert Y; {case} | contrary]."]
        x = f"X{depth}"
        lines = [f"destruct (Rtotal_order 0 ({_operand(part.on)})) as [{x}|[{x}|{x}]]."]
        for child in (part.positive, part.zero, part.negative):
            lines += braced(fold(child, depth + 1))
        return lines

    return fold(tree, 1)
