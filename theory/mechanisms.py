"""Mechanisms: how a position enters a logit or its softmax, and what that decides about windows.

An encoding is *uniformly windowable* if the worst error of keeping the j nearest keys, over all
rows and inputs within stated bounds, tends to 0 as j grows. For an additive bias p(n) that is the
verdict on its exp-series. The other mechanisms are decided here by the same two-line argument, mass
outside = O/(O + I), each under hypotheses that are printed with the answer (ours; `farfield papers`
prints the theorems under the names given).
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy
from sympy import Symbol

from farfield.theory.answers.answer import Code, Reason

CONTENT = "content logits lie in [-beta, beta]"
VALUES = "value norms are bounded and do not depend on the logits"
BOUNDED = "every logit, position included, lies in [-beta, beta]"
GAMMA = Symbol("gamma", positive=True)


@dataclass(frozen=True)
class Mechanism:
    """One way in which a position enters.

    Args:
        name: as in the catalogue.
        words: what it means for windows, for a sentence.
        windowable: True, False, or None where a condition or a missing bound decides.
        condition: on a quantity of the model, where that decides.
        theorem: name of the theorem.
        hypotheses: under which it speaks, in words.
        reason: the bound that is missing where nothing is decided.
    """

    name: str
    words: str
    windowable: bool | None
    theorem: str
    hypotheses: tuple[str, ...]
    condition: sympy.Basic | None = None
    reason: Reason | None = None


def _bounded(name: str, what: str, why: str, *more: str) -> Mechanism:
    """A mechanism whose logits are bounded, so that no window is ever enough."""
    words = (
        f"no fixed window is ever enough: {what}, so outside any window the mass tends to 1 as "
        "rows grow, for every input"
    )
    hypotheses = (f"{BOUNDED}: {why}", "the mask is causal and hides nothing else", VALUES, *more)
    return Mechanism(name, words, False, "bounded-logits", hypotheses)


_NORMS = "|q|, |k| are bounded, and the rotation keeps norms"

MECHANISMS = {
    m.name: m
    for m in (
        Mechanism(
            "bias",
            "windowable exactly where the exp-series converges",
            None,
            "equivalence",
            (CONTENT, VALUES),
        ),
        _bounded("rotation", "its rotations keep every logit bounded", _NORMS),
        _bounded(
            "rotation_decay",
            "its rotations and decays keep every logit bounded",
            "|q|, |k| are bounded, and zeta^n is at most 1",
        ),
        _bounded(
            "scaled_content",
            "a bounded factor of the content logit keeps every logit bounded",
            "|q|, |k| are bounded, and so is the factor by distance",
        ),
        _bounded(
            "capped",
            "a bounded function of the content logit keeps every logit bounded",
            "the function of the logit is bounded, at every position",
        ),
        _bounded(
            "contractions",
            "a product of maps that lengthen no vector keeps every logit bounded",
            "|q|, |k| are bounded, and no map between two tokens has a norm above 1",
        ),
        _bounded(
            "relative_vectors",
            "relative vectors of bounded size keep every logit bounded",
            "|q|, |k| and the vectors of the distances are bounded",
        ),
        _bounded(
            "rotation_rescaled",
            "its rotations keep every logit bounded",
            _NORMS,
            "the scale of the logits does not follow the length",
        ),
        _bounded(
            "sinusoidal",
            "absolute vectors keep every logit bounded",
            "|q|, |k| are bounded, positions included",
        ),
        _bounded(
            "learned_absolute",
            "absolute vectors keep every logit bounded",
            "|q|, |k| are bounded, positions included",
            "rows as long as one likes, though they end with the table of positions",
        ),
        Mechanism(
            "row_dependent",
            "no fixed window is ever enough: distances are normalised by the row, so nearer and "
            "nearer to 0 as rows grow, and outside any window the mass tends to 1",
            False,
            "normalised-bias",
            (
                CONTENT,
                "distances are normalised by what grows without bound with the row",
                "the function of the normalised distance is bounded near 0, as a continuous one is",
                VALUES,
            ),
        ),
        _bounded(
            "interpolated",
            "interpolated vectors of bounded size keep every logit bounded",
            "content and the position vectors are bounded",
        ),
        Mechanism(
            "row_scaled",
            "no fixed window is ever enough: the scale of the logits grows with the row and no "
            "bias falls, so for some inputs the mass outside any window tends to 1",
            False,
            "growing-logits",
            ("logits are s log(i) x for a row of i keys, |x| <= beta, s, beta > 0", VALUES),
        ),
        Mechanism(
            "gated_decay",
            "a long enough window is enough exactly if the gates stay below one: gamma < 1, gamma "
            "their least bound over all inputs",
            None,
            "gated-decay",
            (
                "every gate is at most gamma, for all inputs",
                CONTENT,
                VALUES,
            ),
            condition=GAMMA < 1,
        ),
        Mechanism(
            "stick_breaking",
            "a long enough window matches full attention to any accuracy you ask for: nearer keys "
            "use up the stick, whatever the bias",
            True,
            "stick-breaking",
            ("logits are at least -beta", VALUES),
        ),
        Mechanism(
            "mixed_heads",
            "whether a window is ever enough is not known: a learned network mixes the logits of "
            "the heads, and its bound is missing",
            None,
            "lipschitz-mixing",
            (
                CONTENT,
                "the network is L-Lipschitz in the logits of the heads",
                VALUES,
            ),
            reason=Reason(
                Code.MISSING_BOUND,
                "it differs from the bias F(0, b(n)) by at most (1 + L) beta: windowable exactly "
                "where that exp-series converges; F is learned, give the bias that it has become",
            ),
        ),
    )
}
"""Every mechanism by its name."""
