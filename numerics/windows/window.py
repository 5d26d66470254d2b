"""The public questions of windows: each is sent to its mechanism, or to the bias of each head."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from farfield.numerics.heads import BUDGET_S, per_head, resolve
from farfield.numerics.windows.question import Window, WindowError, WindowQuestion, read_bounds
from farfield.numerics.windows.toeplitz import error_of, no_window, of_bias
from farfield.numerics.windows.without_bias import error_of_mechanism, of_mechanism
from farfield.theory.answers.answer import InputError, Label
from farfield.theory.answers.number import inside, natural


def certified_window(
    f: Any,
    error: Any,
    logit_bound: Any,
    value_bound: Any,
    *,
    sinks: Any = 0,
    row: Any = None,
    temper: Any = None,
    gate: Any = None,
    budget_s: float = BUDGET_S,
    **values: Any,
) -> Window:
    """The least window whose output error is at most `error` for every input (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        error: the budget eta > 0.
        logit_bound: a bound beta of |q.k|/sqrt(d), at least 0; of the whole logit where there is
            no additive bias.
        value_bound: a bound of ||v||, positive.
        sinks: first keys that are also kept, whatever their logits are.
        row: keys of one row, for a window that is enough there; None for every row.
        temper: s, where the content logits of a row of i keys are scaled by `s log i`.
        gate: the bound gamma of the gates of a gated decay.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: an error that is not positive; bounds out of range; free parameters; `temper`
            without `row`; a gated decay without `gate`.

    >>> certified_window("-n/2", "1/100", 1, 1).width
    15
    >>> certified_window("-n/2", "1/100", 1, 1, sinks=4).keys
    19
    >>> certified_window("-log(1+n)", "1/100", 1, 1).width
    inf
    >>> certified_window("rope", "1/10", 1, 1, row=1000).width
    993
    """
    asked = WindowQuestion.read(error, logit_bound, value_bound, sinks, row, temper)
    subject = resolve(f, values)
    if not subject.biases and subject.bca is None:
        found = of_mechanism(subject.mechanism, asked, gate)
        return replace(asked.blank(), subject=subject.name, **found)
    if gate is not None:
        raise InputError(f"{subject.name} has no gates: gate {gate} belongs to a gated decay")
    return per_head(
        subject,
        asked.blank(),
        lambda bias: of_bias(bias, asked),
        lambda head: head.width,
        divergent=no_window(),
        budget_s=budget_s,
    )


def window_error(
    f: Any,
    width: Any,
    logit_bound: Any,
    value_bound: Any,
    *,
    sinks: Any = 0,
    sink_weight: Any = 0,
    budget_s: float = BUDGET_S,
    **values: Any,
) -> WindowError:
    """The worst-case error of keeping the `width` nearest keys, and the first ones (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        width: keys that are kept, the query's own included, at least 1.
        logit_bound: a bound of |q.k|/sqrt(d), at least 0.
        value_bound: a bound of ||v||, positive.
        sinks: first keys that are also kept, at any logits.
        sink_weight: a lower bound S of the sum of exp(logit) over them, at least 0.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: a width that is no natural number; more sinks than that; bounds out of range;
            free parameters.

    >>> round(window_error("-2*log(1+n)", 61, 0, 1).value, 6)
    0.01977
    >>> window_error("rope", 4096, 1, 1).value
    2.0
    >>> round(window_error("-2*log(1+n)", 61, 0, 1, sinks=4, sink_weight=2).value, 6)
    0.008922
    """
    w, first = natural(width, "width"), natural(sinks, "sinks", 0)
    logit, value = read_bounds(logit_bound, value_bound)
    weight = inside(sink_weight, "sink_weight", "[0, oo)")
    if weight and not first:
        raise InputError(f"sink_weight {weight} without sinks; accepted: with sinks")
    if first > w:
        raise InputError(f"sinks {first} are more than the window of {w} keys")
    subject = resolve(f, values)
    asked = WindowError(None, w, sinks=first)
    if not subject.biases and subject.bca is None:
        found = error_of_mechanism(subject.mechanism, w, logit, value)
        return replace(asked, subject=subject.name, **found)
    worst = float(2 * value)
    return per_head(
        subject,
        asked,
        lambda bias: error_of(bias, w, logit, value, weight),
        lambda head: (head.span() or (0, 0))[1],
        lambda head: head.label is Label.THEOREM,
        divergent={"value": worst, "enclosure": (worst, worst), "label": Label.THEOREM},
        budget_s=budget_s,
    )
