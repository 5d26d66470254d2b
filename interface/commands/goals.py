"""Verbs of a goal (design, plot, map): parameters that meet it, figures to choose by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, make_dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farfield.options import CODE, Formula, Output, Subject, pairs
from farfield.output import write_answers
from farfield.progress_bar import progress
from farfield.theory.answers.errors import refuse

Text = Annotated[str | None, Parameter(allow_leading_hyphen=True)]


TARGETS = {
    "trf": "receptive field in tokens, with --eps (and --length).",
    "eps": "share of the mass left outside, 1/100 if not given.",
    "leak": "share beyond the training length at most, with --trained (and --tested).",
    "trained": "training length in tokens, 2048 if not given.",
    "tested": "longest length at inference in tokens, of the leak; all lengths if not given.",
    "window": "certified window in tokens, with --error, --logit-bound, --value-bound.",
    "error": "error budget of the window, 1/100 if not given.",
    "logit_bound": "bound of the content logits, 1 if not given.",
    "value_bound": "bound of the values, 1 if not given.",
    "sinks": "first tokens that the window keeps.",
    "row": "tokens of the row of the window; all lengths if not given.",
    "temper": "factor of the logits of the window.",
    "layered": "receptive field of several layers in tokens, with --layers.",
    "layers": "number of layers.",
    "mixing": "share that a layer passes through attention, 2/5 if not given.",
    "q": "quantile of the layered field, 99/100 if not given.",
    "reach": "distances that an advantage reaches at least, with --advantage (and --share, "
    "--length).",
    "advantage": "of one key's logit over the others, in nats.",
    "share": "share of the attention that this key gets, 1/2 if not given.",
    "horizon": "distance in tokens from which on weights round to 0, with --dtype.",
    "dtype": "fp16, bf16 (if not given), fp32 or fp64.",
    "resolution": "attention resolution at least (with --length, --scale).",
    "length": "tokens of the row of the receptive fields and the resolution; all lengths if not "
    "given.",
    "scale": "factor of the bias for the resolution.",
}
"""What the encoding must reach: targets, each with its options. A target is a number, or one after
a sign, as ">=1024"; with --heads first:last, spaced geometrically, or a list."""

_SUBNORMAL = Annotated[bool | None, Parameter(help="subnormal weights are 0.")]
Goal = Parameter(name="*")(
    make_dataclass(
        "Goal",
        [
            *(
                (name, Annotated[Text, Parameter(help=said)], None)
                for name, said in TARGETS.items()
            ),
            ("flush_to_zero", _SUBNORMAL, None),
        ],
        namespace={"__module__": __name__},  # else cyclopts takes it for a type of Python's own
        kw_only=True,
        frozen=True,
    )
)
"""The targets as options."""
NO_GOAL = Goal()


def design(
    *formulas: Formula,
    goal: Goal = NO_GOAL,  # type: ignore[valid-type]
    subject: Subject = Subject(),
    parameter: str | None = None,
    optimise: str | None = None,
    plan: str | None = None,
    output: Output = Output(),
) -> int:
    """Which parameters meet a target? The exact interval, with the simplest value inside.

    Args:
        formulas: a formula in n with one free parameter, or a name of the catalogue; each of
            several has a design of its own.
        parameter: the free one, where the formula has several and --set fixes the others.
        optimise: take the best value of this quantity: trf, leak, window, layered, reach, horizon
            or resolution.
        plan: write a plan for `farfield sweep` that trains the encoding to this file.
    """
    from farfield.numerics.design.solve import design as search
    from farfield.theory.files import write

    refuse(not formulas, "give a formula with one free parameter")
    _require_no_code(formulas)
    refuse(plan is not None and len(formulas) != 1, "--plan goes with one formula")
    refuse(
        subject.head is not None or subject.bca is not None,
        "a design has no --head and no --bca; accepted: --heads, one value each",
    )
    with progress("design") as step:
        found = [
            search(
                formula,
                parameter=parameter,
                heads=subject.heads,
                budget_s=subject.seconds(10),
                optimise=optimise,
                dialect=subject.dialect,
                values=pairs(subject.set, "--set"),
                assumptions=pairs(subject.assume, "--assume"),
                notice=step,
                **asdict(goal),
            )
            for formula in formulas
        ]
    if plan is None:
        return write_answers(found, output)
    write(Path(plan), found[0].plan().encode())
    return write_answers(found, output, f"\nplan: {plan}, for farfield sweep {plan}")


def plot(
    *formulas: Formula,
    subject: Subject = Subject(),
    what: str = "bias",
    length: str = "1024",
    eps: str = "1/100",
    out: str = "plot.svg",
    output: Output = Output(),
) -> int:
    """Several formulas in one figure, with its data as CSV beside it.

    Args:
        formulas: formulas in n, or names of the catalogue.
        what: bias, weights, trf, leak, price or window.
        length: the largest distance or training length that is drawn, in tokens.
        eps: receptive fields and windows are drawn down to a thousandth of this share.
        out: the figure, .svg, .png or .pdf.
    """
    from farfield.figures.formula_plots import plot as draw

    subjects = subject.read_each(formulas)
    with subject.within_budget(), progress("plot") as step:
        drawn = draw(*subjects, what=what, length=length, eps=eps, notice=step)
    return write_answers(drawn, output, "files: {}, {}".format(*drawn.save(out)))


def map(
    formula: Formula,
    /,
    *ranges: Formula,
    subject: Subject = Subject(),
    eps: str = "1/100",
    points: str = "16",
    out: str = "map.svg",
    output: Output = Output(),
) -> int:
    """A formula over one or two parameters: boundary of convergence and TRF; --a 0.01:1.

    Args:
        formula: a formula in n, or a name of the catalogue.
        ranges: of one or two parameters by their names, as --a 0.01:1.
        eps: mass left outside, of the receptive field.
        points: in each direction.
        out: the figure, .svg, .png or .pdf.
    """
    from farfield.figures.parameter_map import parameter_map

    _require_no_code([formula])
    refuse(
        subject.head is not None or subject.bca is not None or subject.heads is not None,
        "a map draws one formula; accepted: --set, --assume, --dialect",
    )
    with subject.within_budget(), progress("map") as step:
        drawn = parameter_map(
            formula,
            _ranges(ranges),
            eps=eps,
            points=points,
            dialect=subject.dialect,
            values=pairs(subject.set, "--set"),
            assumptions=pairs(subject.assume, "--assume"),
            notice=step,
        )
    return write_answers(drawn, output, "files: {}, {}".format(*drawn.save(out)))


def _require_no_code(formulas: Sequence[str]) -> None:
    """Refuse functions and modules: their parameters are not known.

    Raises:
        InputError: one of the formulas is `FILE.py:NAME`.
    """
    code = next((f for f in formulas if re.fullmatch(CODE, str(f))), None)
    refuse(
        code is not None,
        f"{code!r} is code, whose parameters are not known; accepted: a formula in n with a free "
        "parameter, as -a*log(1+n)",
    )


def _ranges(words: Sequence[str]) -> dict[str, str]:
    """Ranges by the name of the parameter, from `--a 0.01:1` or `--a=0.01:1`."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        name, equals, given = rest.pop(0).partition("=")
        refuse(equals and not name.startswith("-"), f"'{name}={given}': write --{name} {given}")
        refuse(
            not name.startswith("--") or len(name) == 2,
            f"{name[:40]!r}: a map draws one formula; accepted after it are ranges of its "
            "parameters, as --a 0.01:1",
        )
        if not equals:
            refuse(not rest, f"{name} has no range; accepted: {name} 0.01:1")
            given = rest.pop(0)
        found[name[2:]] = given
    return found
