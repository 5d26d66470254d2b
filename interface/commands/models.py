"""Verbs of models: windows, receptive fields and audits of models on this machine."""

from __future__ import annotations

from typing import Any

import farfield
from farfield.options import Count, CountFrom0, CountOrNone, Formula, Output, Subject
from farfield.output import ask, write_answers
from farfield.progress_bar import progress
from farfield.theory.answers.errors import refuse


def window(
    *formulas: Formula,
    error: str,
    subject: Subject = Subject(),
    logit_bound: str | None = None,
    value_bound: str | None = None,
    sinks: CountFrom0 = 0,
    row: str | None = None,
    temper: str | None = None,
    gate: str | None = None,
    model: str | None = None,
    bounds: str | None = None,
    text: str | None = None,
    length: CountOrNone = None,
    segments: CountOrNone = None,
    output: Output = Output(),
) -> int:
    """Certified window: how many keys are provably enough for an error budget.

    Args:
        formulas: a formula in n, or a name of the catalogue; several are several ideas.
        error: budget for the change of a head's output, as 1/100 or 1%.
        logit_bound: bound of |q.k|/sqrt(d).
        value_bound: bound of ||v||; 1 if not given.
        sinks: first keys that are also kept, whatever their logits.
        row: keys of one row, as 4096 or 4k, for a window that is enough there.
        temper: s, where a row's content logits are scaled by s log(keys).
        gate: bound of the gates of a gated decay.
        model: folder of a model on this machine instead: a window for each head.
        bounds: with --model, from text (empirical) or weights (a proof).
        text: with --model, what to read.
        length: with --model, tokens of a segment.
        segments: with --model, how many; 4 if not given.
    """
    refuse(
        bool(formulas) == (model is not None),
        "give a formula, or a model's folder with --model, and not both",
    )
    if model is None:
        refuse(
            bounds or text or length or segments,
            "--bounds, --text, --length and --segments belong to --model",
        )
        refuse(logit_bound is None, "a formula needs a bound of |q.k|/sqrt(d), as --logit-bound 1")
        subjects, bounded = subject.read_each(formulas), (error, logit_bound, value_bound or "1")
        how: dict[str, Any] = {"sinks": sinks, "row": row, "temper": temper, "gate": gate}
        return ask(
            "certified window",
            lambda _: [farfield.certified_window(one, *bounded, **how) for one in subjects],
            output,
            subject,
        )
    refuse(
        subject.given() or logit_bound or value_bound or sinks or row or temper or gate,
        "--model brings its own biases and bounds; leave those options out",
    )
    require_models()
    from farfield.validation.checkpoints.measured.windows import model_window

    read: dict[str, Any] = {"text": text, "length": length, "segments": segments or 4}
    return ask(
        "window of the model",
        lambda step: model_window(model, error, bounds=bounds or "text", progress=step, **read),
        output,
    )


def erf(
    run: str | None = None,
    /,
    *,
    model: str | None = None,
    runs: str = "runs",
    text: str | None = None,
    kind: str = "gradient",
    q: str = "99/100",
    eps: str = "1/100",
    length: CountOrNone = None,
    segments: CountOrNone = None,
    window: CountOrNone = None,
    bca: CountOrNone = None,
    output: Output = Output(),
) -> int:
    """Empirical receptive field: how far a trained model looks back on a text.

    Args:
        run: key of a run.
        model: folder of a model on this machine instead.
        runs: folder where the run is kept.
        text: a file or folder to read.
        kind: gradient or attention.
        q: share of the gradient.
        eps: attention left outside.
        length: tokens of a segment; 1024, attention 512.
        segments: how many; 32, attention 8.
        window: let queries see a sliding window of so many tokens.
        bca: half-width of blockwise causal attention.
    """
    refuse(
        (run is None) == (model is None), "give the key of a run, or a model's folder with --model"
    )
    from farfield.validation.harness.mechanism import Visibility
    from farfield.validation.harness.store import Store, finished_run
    from farfield.validation.optional import require_torch

    require_torch() if model is None else require_models()
    place = model if run is None else finished_run(Store(runs), run)
    how: dict[str, Any] = {"kind": kind, "q": q, "eps": eps, "length": length}
    how |= {"segments": segments, "visible": Visibility(bca, window)}
    return ask(
        "receptive field",
        lambda step: farfield.empirical_receptive_field(place, text, progress=step, **how),
        output,
    )


def perplexity(
    *,
    model: str,
    length: tuple[str, ...],
    text: str | None = None,
    protocol: str = "last-token",
    samples: Count = 64,
    window: CountOrNone = None,
    sinks: CountFrom0 = 0,
    bca: CountOrNone = None,
    output: Output = Output(),
) -> int:
    """Perplexity of a model by the length of its context, on the same targets.

    Args:
        model: folder of a model on this machine.
        length: of the context in tokens (repeatable).
        text: a file or folder to read.
        protocol: last-token or non-overlapping.
        samples: targets, or segments of the longest length.
        window: let queries see a sliding window of so many tokens.
        sinks: and so many first keys.
        bca: half-width of blockwise causal attention.
    """
    refuse(
        sinks and window is None,
        "--sinks are kept beside a window: give --window, its nearest keys",
    )
    require_models()
    from farfield.validation.checkpoints.measured.perplexities import model_perplexity
    from farfield.validation.harness.mechanism import Visibility

    how: dict[str, Any] = {"text": text, "protocol": protocol, "samples": samples}
    how |= {"visible": Visibility(bca, window, sinks)}
    return ask(
        "perplexity", lambda step: model_perplexity(model, length, progress=step, **how), output
    )


def audit(
    folder: str,
    /,
    *,
    trained: str | None = None,
    length: tuple[str, ...] = (),
    eps: tuple[str, ...] = ("1/10", "1/100", "1/1000"),
    error: str = "1/1000",
    bounds: str = "given",
    logit_bound: str | None = None,
    value_bound: str | None = None,
    text: str | None = None,
    out: str = "out/audit",
    output: Output = Output(),
) -> int:
    """The positional encoding of a model, head by head: verdict, fields, windows; and a page.

    Args:
        folder: of the model.
        trained: training length in tokens, if not the configuration's.
        length: test length (repeatable); 2, 4 and 16 times the training length if none is given.
        eps: mass left outside (repeatable).
        error: budget of the windows.
        bounds: given, or from weights.
        logit_bound: bound of |q.k|/sqrt(d); 1 if not given, a hypothesis.
        value_bound: bound of ||v||, in the same way.
        text: a file or folder to measure the windows of its heads on.
        out: folder of the page.
    """
    if text is not None:
        require_models()
    from farfield.figures.pages.audit import write_audit
    from farfield.validation.checkpoints.audit import audit as examine

    with progress("audit", output):
        result = examine(
            folder,
            trained=trained,
            lengths=length,
            eps=eps,
            error=error,
            bounds=bounds,
            logit_bound=logit_bound,
            value_bound=value_bound,
            text=text,
        )
    page = write_audit(result, out)
    return write_answers(result, output, f"page: {page}")


def require_models() -> None:
    """Raise InputError, which says how to install them, unless models of others can be read."""
    from farfield.validation.optional import require

    require("transformers", "a model from outside", "hf")
    require("torch", "a model from outside", "hf")
