r"""Does the exp-series of a bias converge? The question, its answer `Convergence`, its sentences.

For a bias p(n) the exp-series is `sum_n exp(p(n))`. If it converges, full attention is
approximated by window attention, uniformly in the inputs, as the window grows [Q, Theorem 0.4];
and only then (ours: the worst-case error of a window of j tokens is exactly
`2 value_bound T_j/(T_j + e^{-2 logit_bound} B_j)`, which tends to 0 iff the series converges).

`decision.engine` says how it is decided. A `Convergence` has the proved verdict and its meaning for
attention.
"""

from __future__ import annotations

import dataclasses
import enum
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import sympy
from sympy import Basic, Expr, S

from farfield.theory.algebra import door
from farfield.theory.algebra.door import seconds, until, within
from farfield.theory.algebra.exceptions import NotReal, OutOfTime, Undecided, Unreachable
from farfield.theory.answers.answer import (
    Answer,
    Code,
    InputError,
    Label,
    Reason,
    Status,
    folded,
    of_each_head,
    plain,
)
from farfield.theory.answers.blocks import Block, Formula, Note, Sentence, facts, note, table
from farfield.theory.answers.errors import guarded
from farfield.theory.answers.notation import (
    StyledWord,
    Text,
    expression_line,
    in_a_cell,
    listed,
    shortened,
    words,
)
from farfield.theory.answers.number import exact, plural, runs
from farfield.theory.decision import cells
from farfield.theory.decision.engine import decide_series
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.first_terms import skipped_terms
from farfield.theory.formula.bounded_nodes import primitive
from farfield.theory.formula.parameters import interval, parameter
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import kinds, record_of, symbols, unproved_needs
from farfield.theory.mechanisms import MECHANISMS
from farfield.theory.proofs import Decay, Decision, Proof, Step
from farfield.theory.remarks import ROW_NAMES, remarks
from farfield.theory.windowability import Windowable, of_mechanism, of_series, of_support

if TYPE_CHECKING:
    from farfield.theory.certificates import Certifiable, Certificate


class Verdict(enum.StrEnum):
    """The verdict on the exp-series of a bias; `conditional` depends on the parameters."""

    CONVERGES = "converges"
    DIVERGES = "diverges"
    CONDITIONAL = "conditional"
    OUT_OF_SCOPE = "out_of_scope"
    UNDECIDED = "undecided"


IMPLICATION = {
    Verdict.CONVERGES: "Full attention is the uniform limit of window attention as the window "
    "grows, where logits and values are bounded [Q, Theorem 0.4]: a statement about one layer's "
    "outputs, not about perplexity.",
    Verdict.DIVERGES: "No fixed window approximates full attention uniformly: outside any window "
    "the attention mass tends to 1 as the row grows, where logits are bounded (ours). A statement "
    "about one layer's outputs, not about perplexity.",
    Verdict.CONDITIONAL: "Windowable exactly where the condition holds ([Q, Theorem 0.4] and its "
    "converse, ours).",
    Verdict.OUT_OF_SCOPE: "[Q, Theorem 0.4] covers additive biases only; it does not apply.",
    Verdict.UNDECIDED: "Nothing is claimed.",
}

R = TypeVar("R")

SHOWN = 8  # skipped terms that are named


@dataclass(frozen=True, repr=False)
class Convergence(Answer):
    """The verdict on an exp-series, with its proof.

    Fields:
        formula: the bias, None where there is none, or one a head.
        verdict: `converges`, `diverges`, `conditional`, `out_of_scope` or `undecided`.
        condition: for `conditional`, when the series converges; True or False otherwise decided.
        proof: the steps of the decision; for `undecided`, the rules that were tried.
        assumptions: the domain of each parameter, as said or `positive`.
        heads: one answer a head where there are several; then the whole is `diverges` as soon as
            one head does.
        mechanism: how the position enters; `bias` where the exp-series decides it.
        support: the most keys that a row sees under blockwise causal attention, None without.
        skipped_terms: the distances below 4096 whose terms are undefined or infinite, which the
            verdict leaves out; None where the budget was spent. Receptive fields need a formula
            that is finite from n = 0.
        remarks: what the formula may mean in addition, in sentences.
        budget_s: seconds that the question was given, and that a certificate is given; no part of
            the answer.
        label: `theorem`, or None where nothing is proved.
    """

    VALUE: ClassVar[str] = "converges"

    formula: Expr | None
    verdict: Verdict
    condition: Basic | None = None
    proof: Proof = field(default_factory=lambda: Proof(""))
    assumptions: tuple[tuple[str, str], ...] = ()
    heads: tuple[Convergence, ...] = ()
    mechanism: str = "bias"
    support: int | None = None
    skipped_terms: tuple[int, ...] | None = ()
    remarks: tuple[str, ...] = ()
    budget_s: float = field(default=10.0, compare=False)

    @property
    def windowable(self) -> Windowable:
        """Whether a long enough window is ever enough: for an additive bias exactly where the
        series converges, for other mechanisms by theorems of their own."""
        subject = self.subject or expression_line(self.formula or 0)
        if self.support is not None:
            return of_support(self.support, subject)
        if self.mechanism != "bias":
            return of_mechanism(self.mechanism, subject, seen=self.seen)
        return of_series(self.condition, subject, self.reason)

    @property
    def converges(self) -> bool | None:
        """True or False where that is proved for all admissible parameters, else None."""
        return {Verdict.CONVERGES: True, Verdict.DIVERGES: False}.get(self.verdict)

    @property
    def implication(self) -> str:
        """What the verdict says about attention."""
        if any(step.rule == "bounded support" for step in self.proof.steps):
            return f"{self.reason}; not by the theorem."
        return IMPLICATION[self.verdict]

    @guarded
    def at(self, **values: object) -> bool | Basic | None:
        """Whether the series converges at these parameter values: True, False, the condition that
        remains, or None where it is not known.

        Raises:
            InputError: a parameter that is not there, or a value outside its domain.

        >>> from farfield import check_convergence
        >>> check_convergence("-r1*log(1+r2*n)").at(r1="1.2")
        True
        """
        domains = dict(self.assumptions)
        chosen: dict[str, Expr] = {}
        for name, value in values.items():
            if name not in domains:
                raise InputError(
                    f"no parameter {name!r}; parameters: {', '.join(domains) or 'none'}"
                )
            number = exact(value, name)
            if number not in interval(domains[name]):
                raise InputError(f"{name} = {number} is outside its domain ({domains[name]})")
            chosen[name] = number
        if self.condition is None:
            return self.converges
        left = cells.with_values(sympy.sympify(self.condition), chosen)
        return bool(left) if left in (S.true, S.false) else left

    @guarded
    def certificate(self) -> Certificate:
        """The verdict as a file whose theorem a prover checks, on this very formula.

        Raises:
            InputError: there is no verdict to certify, no certificate for this form, or none is
                found within the budget of the question.

        >>> from farfield import check_convergence
        >>> print(check_convergence("-2*log(1+n)").certificate().statement)
        Theorem verdict : ex_series (fun n => exp (p n)).
        """
        from farfield.theory.certificates import NoCertificate, certificate

        claims = self.claims()
        try:
            with within(self.budget_s):
                return certificate(self.formula, claims)
        except Unreachable as why:
            raise NoCertificate(str(why)) from None

    def claims(self) -> dict[str | None, Certifiable]:
        """What a certificate states, by the name of its module: one a head where heads differ."""
        first = {h.formula: k for k, h in reversed(list(enumerate(self.heads, 1)))}
        if len(first) > 1:
            return {f"Head_{k}": self.heads[k - 1]._claim() for k in sorted(first.values())}
        return {None: (self.heads[0] if first else self)._claim()}

    def _claim(self) -> Certifiable:
        """What a certificate has to prove; without a verdict there is none."""
        from farfield.theory.certificates import Certifiable, NoCertificate

        if self.formula is None or (self.converges is None and self.condition is None):
            raise InputError(
                f"no certificate: the verdict is {self.verdict}; accepted: converges, diverges, "
                "conditional"
            )
        if self.reason is not None:  # bounded support, or no series where the formula is not real
            raise NoCertificate(str(self.reason))
        return Certifiable(self.formula, dict(self.assumptions), self.condition)

    def table_blocks(self) -> Sequence[Block]:
        """The verdict as a row, or as one a head."""
        rows = [
            (
                f"{self.subject}, head {k}" if self.heads else self.subject,
                "" if one.formula is None else in_a_cell(one.formula),
                one.verdict,
                one.condition if one.verdict is Verdict.CONDITIONAL else "",
            )
            for k, one in enumerate(self.heads or (self,), 1)
        ]
        return [table(("bias", "`p(n)`", "series", "converges if"), rows)]

    def _blocks(self) -> Iterator[Block]:
        yield Sentence(self._sentence(), self.label or self.windowable.label)
        if self.formula is not None:
            yield Formula(words("`p(n)`"), self.formula)
        for remark in self.remarks:
            yield note("{said}", said=remark)
        if self.assumptions:
            assumed = listed([f"{name} {domain}" for name, domain in self.assumptions], 6)
            yield note("Assumed: {said}.", said=assumed)
        if self.heads:
            rows = [
                (
                    k,
                    h.verdict,
                    "" if h.verdict is not Verdict.CONDITIONAL else h.condition,
                    "" if h.formula is None else in_a_cell(h.formula),
                )
                for k, h in enumerate(self.heads, 1)
            ]
            yield table(("head", "verdict", "converges if", "p(n)"), rows, numeric=(0,))
        if self.verdict is Verdict.OUT_OF_SCOPE:
            window = self.windowable
            yield facts(
                theorem=window.theorem,
                where="; ".join(window.hypotheses),
                why=None if window.reason is None else str(window.reason),
            )
            yield note("The exp-series does not apply: {reason}.", reason=str(self.reason))
        else:
            yield Note(words("{what}", what=self.implication))
        if self.verdict is Verdict.UNDECIDED:
            yield self.proof.block("What was tried")
        elif self.verdict is not Verdict.OUT_OF_SCOPE:
            yield self.proof.block(f"Proof for head {self._deciding}" if self.heads else "Proof")
            if (climbed := self.proof.ladder()) is not None:
                yield climbed

    @property
    def _deciding(self) -> int:
        """The number of the first head whose verdict is the whole's."""
        return 1 + next(i for i, r in enumerate(self.heads) if r.verdict is self.verdict)

    def _sentence(self) -> Text:
        """The answer in one sentence."""
        return (*self._of_whom(), *(self._of_heads() if self.heads else self._of_series()))

    def _of_whom(self) -> Text:
        """What the sentence is about, and where it has no value."""
        line = expression_line(self.formula or 0)
        subject = self.subject or line
        is_formula = len(subject) <= 80 and subject in (line, str(self.formula))
        named = words("{subject}: ", subject=self.formula if is_formula else shortened(subject, 80))
        if self.converges is None or not self.skipped_terms:
            return named
        undefined = words(
            "undefined or infinite at `n = {n}`{more}, so no model can use it as it is. Elsewhere ",
            n=runs(self.skipped_terms[:SHOWN]),
            more=" and further distances" if len(self.skipped_terms) > SHOWN else "",
        )
        return (*named, *undefined)

    def _of_heads(self) -> Text:
        """What holds of how many heads."""
        count, every = sum(h.verdict is self.verdict for h in self.heads), len(self.heads)
        heads = f"{count} of {plural(every, 'head')}" if count < every else f"all {every} heads"
        return words(_OF_HEADS[self.verdict], heads=heads, verdict=self.verdict)

    def _of_series(self) -> Text:
        """The verdict, and what follows from it."""
        match self.verdict:
            case Verdict.CONVERGES | Verdict.DIVERGES:
                how = growth(self.proof.decay, self.converges, self.formula)
                if self.formula is not None and not self.formula.has(n):
                    how = words("its terms are all equal")
                elif isinstance(self.formula, Lookup) and self.formula.args[2].is_finite:
                    how = words("its terms are equal beyond the table")
                comma, so = ", " if how else "", _SO[self.verdict]
                template = "the series {verdict}{comma}{how}; {so}."
                return words(template, verdict=self.verdict, comma=comma, how=how, so=so)
            case Verdict.CONDITIONAL:
                return words(
                    "the series converges exactly if {condition}; there a long enough window is "
                    "enough, elsewhere none is.",
                    condition=self.condition,
                )
            case Verdict.OUT_OF_SCOPE:
                what = MECHANISMS[self.mechanism].words
                if what.startswith(_NEVER):
                    return (StyledWord(_NEVER, "verdict"), f"{what.removeprefix(_NEVER)}.")
                return words("{what}.", what=what)
            case Verdict.UNDECIDED:
                tried = sum(step.rule == "tried" for step in self.proof.steps)
                if tried > 1:
                    return words("undecided: none of {tried} rules decides it.", tried=tried)
                return words("undecided, {reason}.", reason=self.reason)

    def fields(self) -> dict[str, Any]:
        return {k: v for k, v in super().fields().items() if k != "budget_s"} | {
            "windowable": plain(self.windowable),
            "formula": None if self.formula is None else str(self.formula),
            "condition": None if self.condition is None else str(self.condition),
            "converges": self.converges,
            "assumptions": dict(self.assumptions),
            "implication": self.implication,
            "heads": [plain(h) for h in self.heads],
        }


_NEVER = "no fixed window is ever enough"
_SO = {
    Verdict.CONVERGES: "a long enough window matches full attention to any accuracy you ask for",
    Verdict.DIVERGES: "no fixed window is enough, the share outside any window tends to 1",
}
_OF_HEADS = {
    Verdict.CONVERGES: "the series of {heads} {verdict}; a long enough window matches "
    "full attention to any accuracy you ask for.",
    Verdict.DIVERGES: "the series of {heads} {verdict}; there no fixed window is enough.",
    Verdict.CONDITIONAL: "the series of {heads} converges under a condition, of the others always.",
    Verdict.UNDECIDED: "the series of {heads} is undecided, and no other diverges.",
    Verdict.OUT_OF_SCOPE: "no exp-series to decide.",
}


def growth(decay: Decay | None, converges: bool | None, formula: Expr | None) -> Text:
    """How the terms fall, in words; nothing where several cases share the proof."""
    if decay is None:
        return ()
    if not decay.limits:
        return words("it is a finite sum" if converges else "its terms do not tend to 0")
    last, depth = decay.limits[-1], len(decay.limits)
    if depth == 1 and last is sympy.oo:
        return words("its terms fall faster than any power of `n`")
    if decay.of_bound:
        return ()
    if depth == 1 and last == 0 and not _oscillates(formula):
        return words("its terms do not fall fast enough, more slowly than any power of `n`")
    if depth == 1 and last.is_finite and _is_positive(last):
        return words("its terms fall about like {term}", term=n**-last)
    if depth == 2 and last == 0:
        return words("like the harmonic series")
    if depth == 2 and last.is_finite:
        return words("its terms fall about like {term}", term=1 / (n * sympy.log(n) ** last))
    return ()


def _is_positive(e: Expr) -> bool:
    """Whether SymPy knows that, where it can evaluate it at all."""
    with suppress(Undecided):
        return door.known_sign(e) == 1
    return False


def _oscillates(formula: Expr | None) -> bool:
    """Whether a part of a formula may swing: a bounded function, a power of a negative number."""
    parts = () if formula is None else sympy.preorder_traversal(formula)
    return any(
        (x.is_Pow and _is_positive(-x.base))
        or ((record := record_of(x.func)) is not None and record.range is not None)
        for x in parts
    )


DEFAULT_BUDGET = 10.0
FAMILY = 3
"""Heads from which on one decision for all of them is worth while."""


def check_convergence(
    f: object,
    *,
    assumptions: Mapping[str, str] | None = None,
    budget_s: float = DEFAULT_BUDGET,
    **options: object,
) -> Convergence:
    """Decide whether the exp-series of a bias converges, with a proof.

    Args:
        f: a formula in `n` and named parameters, a SymPy expression, the name of an encoding, or
            an `Encoding`.
        assumptions: domain of each parameter: positive (the default), nonnegative, negative,
            nonpositive, real, or an interval such as `[0, 2)`.
        budget_s: seconds after which the verdict is `undecided`.
        **options: values of parameters, or what `encoding` takes (`heads`, `dialect`, ...).

    Returns:
        A `Convergence`. Finitely many terms at the beginning that are undefined or infinite are
        left out of the series (`skipped_terms`).

    Raises:
        InputError: for a text that is no formula, is not real for large n, or contradicts itself.

    >>> check_convergence("-log(1+n)").verdict.value
    'diverges'
    >>> check_convergence("-r1*log(1+r2*n)").condition
    r1 > 1
    >>> str(check_convergence("alibi").verdict)
    'converges'
    """
    budget = seconds(budget_s)
    subject = encoding(f, **_merged(assumptions, options))
    whole = _without_series(subject)
    if whole is None:
        with until(time.monotonic() + budget):
            whole = _by_series(subject)
    return dataclasses.replace(whole, **subject.provenance, budget_s=budget)


def _without_series(subject: Encoding) -> Convergence | None:
    """The answer where no exp-series decides: each row sees few keys, or the bias is not known far
    out, or there is none; None where one does."""
    if subject.bca is not None:
        why = f"bounded support: each row sees at most {2 * subject.bca} keys"
        proof = Proof(
            "every window of that width is exact", (Step("bounded support", {"reason": why}),)
        )
        return Convergence(
            subject.formula,
            Verdict.CONVERGES,
            S.true,
            proof,
            support=2 * subject.bca,
            label=Label.THEOREM,
            reason=Reason(Code.BOUNDED_SUPPORT, why),
        )
    why = str(subject.out_of_scope)
    if subject.known:
        return Convergence(
            None,
            Verdict.UNDECIDED,
            proof=Proof("", (Step("tried", {"what": "a table", "why": why}),)),
            status=Status.UNKNOWN,
            label=None,
            reason=subject.out_of_scope,
        )
    if subject.out_of_scope is not None:
        return Convergence(
            None,
            Verdict.OUT_OF_SCOPE,
            proof=Proof("nothing follows from the theorem", (Step("scope", {"reason": why}),)),
            mechanism=subject.mechanism,
            status=Status.OUT_OF_SCOPE,
            label=None,
            reason=subject.out_of_scope,
        )
    return None


def _by_series(subject: Encoding) -> Convergence:
    """The verdict on the exp-series of each head, as one, and the remarks on all of them."""
    family = _in_one_family(subject.biases)

    def decided(bias: Expr) -> Convergence:
        present = {s.name for s in symbols(bias)}
        domains = {p.name: p.domain for p in subject.parameters if p.name in present}
        return family.get(bias) or _decide_bias(bias, domains)

    heads = of_each_head(subject.biases, decided)
    unclear = [bias for bias in dict.fromkeys(subject.biases) if not _says_all(bias)]
    asides = _in_time(lambda: [r for bias in unclear for r in remarks(bias)]) or ()
    whole = heads[0] if len(heads) == 1 else _together(subject, heads)
    return dataclasses.replace(whole, remarks=tuple(dict.fromkeys(asides))) if asides else whole


def _merged(assumptions: Mapping[str, str] | None, options: dict[str, object]) -> dict[str, Any]:
    """You may give assumptions and values together, but not for the same parameter."""
    both = sorted(set(assumptions or {}) & set(options))
    if both:
        raise InputError(f"{both[0]!r} is given a value and an assumption; give one of them")
    return options | {"assumptions": assumptions} if assumptions else options


def _together(subject: Encoding, heads: tuple[Convergence, ...]) -> Convergence:
    """Several heads: `diverges` as soon as one does, `converges` only if all do."""
    whole = folded(
        heads, lambda h: h.verdict is Verdict.CONDITIONAL, lambda h: h.verdict is Verdict.DIVERGES
    )
    count = sum(h.verdict is whole.verdict for h in heads)
    condition = whole.condition
    if whole.verdict in (Verdict.CONDITIONAL, Verdict.CONVERGES):
        condition = sympy.And(*(h.condition for h in heads))
    skipped = {t for h in heads for t in h.skipped_terms or ()}
    are_known = all(h.skipped_terms is not None for h in heads)
    return dataclasses.replace(
        whole,
        formula=subject.formula,
        condition=condition,
        proof=Proof(f"{count} of {len(heads)} heads: {whole.verdict}", whole.proof.steps),
        assumptions=tuple(dict(a for h in heads for a in h.assumptions).items()),
        skipped_terms=tuple(sorted(skipped)) if are_known else None,
    )


def _in_time(ask: Callable[[], R]) -> R | None:
    """What is asked beside the verdict; None where the budget of the question is spent, or SymPy
    gives no answer."""
    try:
        return ask()
    except (OutOfTime, Undecided):
        return None


def _says_all(p: Expr) -> bool:
    """Whether each term has a minus sign, without cases and names of a row's length: no remark."""
    negative = all(term.as_coeff_Mul(rational=True)[0].p < 0 for term in sympy.Add.make_args(p))
    cases = sympy.Piecewise in kinds(p) or any(s.name in ROW_NAMES for s in symbols(p))
    return negative and not cases


def _skipped(p: Expr) -> tuple[int, ...] | None:
    """The distances whose terms are left out: none where nothing that the formula needs is open."""
    needs = _in_time(lambda: door.supervised(unproved_needs, p))
    return () if needs == [] else _in_time(lambda: skipped_terms(p, needs))


def _in_one_family(biases: tuple[Expr, ...]) -> dict[Expr, Convergence]:
    """Heads that are positive multiples s q of one bias, decided once with s as a parameter. The
    verdict must be the same for all s > 0 by the same steps; each has those steps with its own
    s."""
    distinct = tuple(dict.fromkeys(biases))
    if len(distinct) < FAMILY or any(symbols(b) != {n} for b in distinct):
        return {}
    shares = [primitive(b) for b in distinct]
    one = {q for _, q in shares}
    if len(one) > 1:
        return {}
    factor = parameter("s", "positive")
    try:
        decision = decide_series(factor * one.pop(), {"s": interval("positive")})
    except NotReal:
        return {}
    if decision.condition not in (S.true, S.false) or any(s.rule == "cell" for s in decision.steps):
        return {}
    return {
        b: _convergence(b, decision.with_values({factor: s}), ())
        for b, (s, _) in zip(distinct, shares, strict=True)
    }


def _decide_bias(p: Expr, domains: Mapping[str, str]) -> Convergence:
    """The decision as an answer; a bias that is nowhere real is bad input."""
    try:
        decision = decide_series(p, {name: interval(domain) for name, domain in domains.items()})
    except NotReal as why:
        raise InputError(f"formula {shortened(str(p))!r} is not real for large n ({why})") from None
    return _convergence(p, decision, tuple(domains.items()))


def _convergence(
    p: Expr, decision: Decision, assumptions: tuple[tuple[str, str], ...]
) -> Convergence:
    """A decision as an answer: its condition is the verdict, its steps the proof."""
    truth = decision.condition
    if truth is None:
        return Convergence(
            p,
            Verdict.UNDECIDED,
            None,
            Proof("", decision.steps),
            assumptions,
            skipped_terms=_skipped(p),
            status=Status.UNKNOWN,
            label=None,
            reason=Reason(Code.UNDECIDED, decision.reason),
        )
    verdict = {S.true: Verdict.CONVERGES, S.false: Verdict.DIVERGES}.get(truth, Verdict.CONDITIONAL)
    claim = f"the exp-series {verdict.value}"
    if verdict is Verdict.CONDITIONAL:
        claim = f"the exp-series converges exactly if {truth}"
    reason = Reason(Code.CONDITIONAL, "where the formula is not real there is no series")
    return Convergence(
        p,
        verdict,
        truth,
        Proof(claim, decision.steps, decision.decay),
        assumptions,
        skipped_terms=_skipped(p),
        label=Label.THEOREM,
        reason=None if decision.real else reason,
    )
