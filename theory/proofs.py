"""The classes `Step`, `Decision` and `Proof`: the rules that a verdict used, in order, in words.

A step names its rule (one of `RULES`, each a theorem) and the expressions it speaks of; its text
is built only when asked for. A proof ends in the claim it establishes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
from sympy import Basic, Expr

from farfield.theory.answers.answer import Result, plain
from farfield.theory.answers.blocks import Block, Ladder, Rung, Sentence, Steps
from farfield.theory.answers.notation import Text, as_text, latex, terminal, words

RULES: dict[str, str] = {
    "eventual": "Finitely many terms do not matter: for all large `n`, `p = {p}`.",
    "masked": "For all large `n`, `p = -oo`: the terms are 0, the sum is finite.",
    "infinite": "For all large `n`, `p = +oo`: the terms are infinite.",
    "class": "Residue class `n = {period}k + {residue}`, `k = 0, 1, 2, ...`: `p = {p}`.",
    "classes": "The series is the sum of its {period} residue classes modulo {period}; terms are "
    "positive, so it converges if and only if each of them does.",
    "zero": "The constant {constant} is 0: {how}.",
    "expansion": "As `n -> oo`, `rho_0 = -p = {rho}{error}`.",
    "rung": "Rung {k}: `rho_{k_before} / {scale} -> {limit}`.",
    "tie": "The limit is exactly 1: go on with `rho_{k} = rho_{k_before} - {scale}`.",
    "converges": "The limit exceeds 1: `b_n = exp(-rho_0) <= {comparison}` for all large `n`, for "
    "any `c` in `(1, limit)`; that series converges, so `sum b_n` converges.",
    "diverges": "The limit is below 1: `b_n = exp(-rho_0) >= {comparison}` for all large `n`, for "
    "some `c` in `(limit, 1)`; that series diverges, so `sum b_n` diverges.",
    "term test": "`p` is bounded below (or tends to `+oo`), so the terms do not tend to 0.",
    "upper bound": "Oscillating parts are bounded: `p <= {bound}{error}` for all large `n`, and a "
    "series with larger terms converges.",
    "lower bound": "Oscillating parts are bounded: `p >= {bound}{error}` for all large `n`, and a "
    "series with smaller terms diverges.",
    "average": "{phase} is equidistributed modulo `2pi`, up to a power of `n`: the mean of "
    "`exp(-m (f - inf f))` over a block, `m = {scale}`, `inf f = {infimum}`, is between multiples "
    "of `m^(-1/2)`, since `f` is a sinusoid; the series behaves like `sum exp(-({bound}{error}))`.",
    "returns": "Khinchin: {phase} comes within `C/n` of a zero of the coefficient infinitely "
    "often, where the coefficient is `O(1/n^2)`, and `{scale} = O(n^2)`: infinitely many terms "
    "stay above a positive constant.",
    "tried": "Tried {what}: inconclusive, {why}.",
    "bounded support": "{reason}",
    "cell": "Where {condition}:",
    "compared": "Compare the tails of `p_a = {a}` and `p_b = {b}`.",
    "supports": "Terms vanish from `n = {a}` on for a, from `n = {b}` on for b (None: never).",
    "difference": "`lim (p_a - p_b) = {limit}`: the ratio of the terms tends to its exponential.",
    "ratio": "The limit is finite, so the sums decide: `exp({limit}) B_b/B_a {relation} 1` in "
    "balls.",
    "blocks": "Residue classes modulo {period} have formulas of their own: for `j = {period}k + i` "
    "the tails are sums of blocks of {period} terms, from `{period}k + i` on.",
    "block": "Blocks of a over those of b, each over its total, for `i = {residue}`: the limit is "
    "{quotient}, `{relation} 1` in balls.",
    "dominated": "For every `t >= {index}`, the normalised term of the lighter series is the "
    "smaller one (a majorant of the difference of the biases), so its tail is too.",
    "crossover": "Below that the normalised tails `u_j`, `v_j` are compared in balls, from the far "
    "end: last `j` with `u_j > v_j`: {index}. `eps* = v_j` there, 1 if there is none.",
    "window": "The worst case over all inputs with those bounds, attained as the row grows, is "
    "`2 V T_w/(T_w + exp(-2 beta) B_w)`, `beta` the bound of the logits, `V` that of the values; "
    "it does not increase with `w`.",
    "enough": "At `w = {width}` it is at most {budget}, in balls.",
    "least": "At `w = {width}` it exceeds {budget}, in balls: no smaller window can be guaranteed.",
    "bounded logits": "The mass outside is `O/(O + I)`, with `O` and `I` bounded by that of the "
    "logits (theorem {theorem}).",
    "stick breaking": "What is dropped is at most the stick that is left, `sigma(beta)^j` (theorem "
    "stick-breaking).",
    "scope": "The theorem does not apply: {reason}.",
}
"""Every rule a step may name, as a template of `words` over the step's values."""

DECIDING = (
    "converges",
    "diverges",
    "term test",
    "masked",
    "infinite",
    "upper bound",
    "lower bound",
    "returns",
    "average",
    "bounded support",
    "enough",
    "ratio",
    "difference",
    "block",
)
"""Rules that settle what they are asked."""


@dataclass(frozen=True)
class Step:
    """One step of a proof: the rule and the values it speaks of."""

    rule: str
    values: Mapping[str, Any] = field(hash=False)

    def words(self) -> Text:
        """What the step says."""
        values = dict(self.values)
        if "error" in values:
            order = words("`" + " + O({order})" + "`", order=values["error"])
            values["error"] = () if values["error"] == 0 else order
        return words(RULES[self.rule], **values)

    def with_values(self, values: Mapping[object, object]) -> Step:
        """The step for these values of its symbols."""
        moved = {
            name: value.xreplace(values) if hasattr(value, "xreplace") else value
            for name, value in self.values.items()
        }
        return Step(self.rule, moved)

    @property
    def text(self) -> str:
        """The step in plain text."""
        return terminal(self.words())


@dataclass(frozen=True)
class Decay:
    """How the terms of a series fall.

    Fields:
        limits: those of the rungs of the logarithmic scale, each but the last 1; none where the
            terms are 0 from some point on, or do not tend to 0.
        of_bound: whether they are the limits of a bound of the terms.
    """

    limits: tuple[Expr, ...] = ()
    of_bound: bool = False


@dataclass(frozen=True)
class Decision:
    """What is decided of a series: on one cell of the parameters, or on all.

    Fields:
        condition: when it converges: true, false, or a condition on the parameters; None where that
            is not decided.
        steps: what carried the decision, or the attempts.
        reason: why it is not decided.
        real: whether the formula is real for all the parameters.
        fall: how the terms fall, where one case decides and tells it.
        cells: the tree of the cells, each with its decision; None on one cell.
    """

    condition: Basic | bool | None
    steps: tuple[Step, ...] = ()
    reason: str = ""
    real: bool = True
    decay: Decay | None = None
    cells: Any = field(default=None, compare=False, repr=False)

    @property
    def converges(self) -> bool:
        """Whether the series converges, on a cell that is decided."""
        return self.condition is not None and bool(self.condition)

    def after(self, *steps: Step) -> Decision:
        """The decision with steps on the same terms before its own."""
        return replace(self, steps=(*steps, *self.steps))

    def of_bound(self, step: Step) -> Decision:
        """The decision on the series that this one's series bounds."""
        decay = self.decay and replace(self.decay, of_bound=True)
        return replace(self, steps=(step, *self.steps), decay=decay)

    def with_values(self, values: Mapping[object, object]) -> Decision:
        """The decision for these values of its symbols."""
        limits = () if self.decay is None else self.decay.limits
        decay = self.decay and replace(self.decay, limits=tuple(c.xreplace(values) for c in limits))
        return replace(
            self, steps=tuple(step.with_values(values) for step in self.steps), decay=decay
        )


def _rung(values: Mapping[str, object]) -> Rung | None:
    """A step of the logarithmic scale as a picture shows it; None where its limit is no number."""
    limit = sympy.sympify(values["limit"])
    if not limit.is_extended_real or limit.free_symbols:
        return None
    ratio = "rho_{k}" if values["k_before"] else "-p(n)"
    template = f"`{ratio}/{{scale}} -> {{limit}}`"
    text = words(template, k=values["k_before"], scale=values["scale"], limit=limit)
    return Rung(text, float(limit))


@dataclass(frozen=True)
class Proof(Result):
    """A claim and the steps that establish it, in order (for `undecided`: the attempts)."""

    claim: str
    steps: tuple[Step, ...] = ()
    decay: Decay | None = None

    def block(self, title: str = "Proof") -> Steps:
        """The proof as one block."""
        deciding_steps = [k for k, step in enumerate(self.steps) if step.rule in DECIDING]
        deciding = deciding_steps[0] if len(deciding_steps) == 1 else -1  # else one of a case each
        return Steps(words(title), self.steps, as_text(self.claim) if self.claim else (), deciding)

    def ladder(self) -> Ladder | None:
        """The rungs as a picture; None where the proof climbs none, several ladders, or to limits
        that depend on parameters."""
        rules = [step.rule for step in self.steps]
        decided = [r for r in rules if r in ("converges", "diverges")]
        rungs = [_rung(step.values) for step in self.steps if step.rule == "rung"]
        if len(decided) != 1 or rules.count("tie") != len(rungs) - 1 or None in rungs:
            return None
        return Ladder(
            "How the proof goes: a limit above 1 converges, below 1 diverges; exactly 1 leads to "
            "the next row.",
            tuple(r for r in rungs if r is not None),
            decided[0],
        )

    def blocks(self) -> Sequence[Block]:
        return (Sentence(as_text(self.claim)), self.block())

    def text(self, *, details: bool = True, unicode: bool = True, **terminal: object) -> str:
        return super().text(details=details, unicode=unicode, **terminal)

    def latex(self) -> str:
        """The proof as a LaTeX enumeration."""
        items = "\n".join(rf"\item {latex(step.words())}" for step in self.steps)
        return f"\\begin{{enumerate}}\n{items}\n\\end{{enumerate}}\nHence: {self.claim}"

    def fields(self) -> dict[str, Any]:
        return {
            "claim": self.claim,
            "steps": [
                {"rule": s.rule, "values": plain(dict(s.values)), "text": s.text}
                for s in self.steps
            ],
        }
