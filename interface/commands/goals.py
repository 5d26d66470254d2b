"""From a goal to an encoding: `design`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farfield.options import Formula, Output, Subject, pairs, seconds
from farfield.output import emit, say
from farfield.progress import progress
from farfield.theory.answers.errors import InputError

Text = Annotated[str | None, Parameter(allow_leading_hyphen=True)]


@Parameter(name="*", negative=())
@dataclass(frozen=True, kw_only=True)
class Goal:
    """What the encoding must reach: targets, each with its options. A target is a number, or one
    after a sign, as ">=1024"; with --heads first:last, spaced geometrically, or a list."""

    trf: Text = None
    "Receptive field in tokens, with --eps (and --length)."
    eps: Text = None
    "Share of the mass left outside, 1/100 if not given."
    leak: Text = None
    "Share beyond the training length at most, with --trained (and --evaluated)."
    trained: Text = None
    "Training length in tokens, 2048 if not given."
    evaluated: Text = None
    "Test length in tokens; all lengths if not given."
    window: Text = None
    "Certified window in tokens, with --error, --logit-bound, --value-bound."
    error: Text = None
    "Error budget of the window, 1/100 if not given."
    logit_bound: Text = None
    "Bound of the content logits, 1 if not given."
    value_bound: Text = None
    "Bound of the values, 1 if not given."
    sinks: Text = None
    "First tokens that the window keeps."
    row: Text = None
    "Keys of the row of the window; all lengths if not given."
    temper: Text = None
    "Factor of the logits of the window."
    layered: Text = None
    "Receptive field of several layers in tokens, with --layers."
    layers: Text = None
    "Number of layers."
    mixing: Text = None
    "Share that a layer passes through attention, 2/5 if not given."
    q: Text = None
    "Quantile of the layered field, 99/100 if not given."
    horizon: Text = None
    "Distance in tokens from which on weights round to 0, with --dtype."
    dtype: Text = None
    "fp16, bf16 (if not given), fp32 or fp64."
    flush_to_zero: bool | None = None
    "Subnormal weights are 0."
    resolution: Text = None
    "Attention resolution at least (with --length, --scale)."
    length: Text = None
    "Keys of the row of the receptive fields and the resolution; all lengths if not given."
    scale: Text = None
    "Factor of the bias for the resolution."


def design(
    formula: Formula | None = None, /, *, goal: Goal = Goal(), subject: Subject = Subject(),
    family: tuple[Formula, ...] = (), parameter: str | None = None, optimise: str | None = None,
    plan: str | None = None, output: Output = Output(),
) -> int:  # fmt: skip
    """Which parameters meet a target? The exact interval, with the simplest value inside.

    Args:
        formula: a formula in n with one free parameter, or a name of the catalogue.
        family: a formula or a name; several are ranked (repeatable).
        parameter: the free one, where the formula has several and --set fixes the others.
        optimise: rank by this quantity, and take its best value: trf, leak, window, layered,
            horizon or resolution.
        plan: write a plan for `farfield sweep` that trains the encoding to this file.
    """
    from farfield.numerics.design.answer import Designs
    from farfield.numerics.design.search import design as search

    families = [*([formula] if formula is not None else ()), *family]
    if not families:
        raise InputError("give a formula with one free parameter, or several with --family")
    if subject.head is not None or subject.bca is not None:
        raise InputError("a design has no --head and no --bca; accepted: --heads, one value each")
    budget = 10.0 if subject.budget is None else seconds(subject.budget)
    with progress("design", output) as step:
        found = search(
            families if len(families) > 1 else families[0], parameter=parameter,
            heads=subject.heads, budget_s=budget, optimise=optimise, dialect=subject.dialect,
            values=pairs(subject.set, "--set"), assumptions=pairs(subject.assume, "--assume"),
            notice=step, **asdict(goal),
        )  # fmt: skip
    written = None
    if plan is not None:
        chosen = found.designs[0] if isinstance(found, Designs) else found
        written = chosen.plan()
        try:
            Path(plan).write_text(written, encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write {plan!r}: {error.strerror}") from None
    code = emit(found, output)
    if written is not None and not output.json:
        say(f"\nplan: {plan}, for farfield sweep {plan}")
    return code
