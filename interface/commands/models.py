"""Verbs of models (window, measure, erf, perplexity, audit): windows and fields on this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import farfield
from farfield.options import Count, CountFrom0, CountOrNone, Formula, Kept, Output, Subject
from farfield.output import ask, print_error, reading, write_answers
from farfield.progress_bar import progress
from farfield.theory.answers.errors import refuse

USUAL = {"--error": "1%", "--logit-bound": "1 (|q.k|/sqrt(d) within 1)"}
"""What is assumed of a window that is asked without."""


def window(
    *formulas: Formula,
    error: str | None = None,
    subject: Subject = Subject(),
    logit_bound: str | None = None,
    value_bound: str | None = None,
    sinks: CountFrom0 = 0,
    row: str | None = None,
    temper: str | None = None,
    gate: str | None = None,
    model: str | None = None,
    runs: str = "runs",
    loss: str | None = None,
    text: str | None = None,
    length: CountOrNone = None,
    segments: CountOrNone = None,
    bos: str = "auto",
    device: str | None = None,
    dtype: str | None = None,
    out: str = "out/window",
    output: Output = Output(),
) -> int:
    """How many of the nearest tokens are enough: certified for a formula, measured for a model.

    Args:
        formulas: a formula in n, or a name of the catalogue; several are answered one by one.
        error: budget for the change of a head's output, as 1/100; 1% if not given.
        logit_bound: bound of |q.k|/sqrt(d); 1 if not given.
        value_bound: bound of ||v||; 1 if not given.
        sinks: first tokens that are kept as well, whatever their logits.
        row: tokens of one row, as 4096 or 4k, for a window that is enough there.
        temper: s, where a row's content logits are scaled by s log(tokens).
        gate: bound of the gates of a gated decay.
        model: a folder, a GGUF file, a name in the hub's cache, or the key of a run: its smallest
            window.
        runs: folder where runs are kept.
        loss: with --model, the share by which perplexity may rise; 1% if not given.
        text: with --model, what to read.
        length: with --model, tokens of a row.
        segments: with --model, how many rows in each half of the text; 16 if not given.
        bos: with --model, whether rows begin with the tokenizer's first token; auto, yes or no.
        device: with --model, of torch, as cuda; the CPU if not given.
        dtype: with --model, float32, bfloat16 or float16; float32 if not given.
        out: with --model, folder where measurements are kept; a stopped search goes on from it.
    """
    refuse(
        bool(formulas) == (model is not None),
        "give a formula, or a model's folder with --model, and not both",
    )
    lies = next((f for f in map(str, formulas) if (Path(f) / "config.json").is_file()), None)
    refuse(
        lies is not None,
        f"{lies!r} is the folder of a model; accepted: a formula, or --model {lies}",
    )
    if model is None:
        refuse(
            loss or text or length or segments,
            "--loss, --text, --length and --segments belong to --model",
        )
        subjects = subject.read_each(formulas)
        unsaid = {"--error": error, "--logit-bound": logit_bound}
        assumed = [f"{name} {USUAL[name]}" for name, given in unsaid.items() if given is None]
        if assumed and not isinstance(output, Kept):
            print_error(f"farfield: assumed {' and '.join(assumed)}")
        bounded = error or "1%", logit_bound or "1", value_bound or "1"
        how: dict[str, Any] = {"sinks": sinks, "row": row, "temper": temper, "gate": gate}
        return ask(
            "certified window",
            lambda _: [farfield.certified_window(one, *bounded, **how) for one in subjects],
            output,
            subject,
        )
    refuse(
        subject.given() or error or logit_bound or value_bound or sinks or row or temper or gate,
        "--model is measured on a text, within --loss; leave the options of formulas out",
    )
    require_models()
    from farfield.validation.models.folder import place_of

    place = place_of(model, runs)
    read: dict[str, Any] = {"loss": loss or "1/100", "length": length, "segments": segments or 16}
    read |= {"bos": bos, "folder": out}
    read |= {"device": device, "dtype": dtype}
    return ask(
        "window",
        lambda step: farfield.smallest_window(place, text, progress=step, **read),
        output,
        opening=reading(str(place), text, out),
    )


def measure(
    model: str,
    *,
    runs: str = "runs",
    text: str | None = None,
    context: tuple[str, ...] = ("64", "256"),
    length: CountOrNone = None,
    segments: CountOrNone = None,
    window: CountOrNone = None,
    bca: CountOrNone = None,
    bos: str = "auto",
    device: str | None = None,
    dtype: str | None = None,
    output: Output = Output(),
) -> int:
    """How far a trained model looks back, beside the theory of its bias, and its perplexity.

    Args:
        model: a folder, a GGUF file, a name in the hub's cache, or the key of a run.
        runs: folder where runs are kept.
        text: a file or folder to read; the sources of Python's library if not given.
        context: tokens of context of the perplexity (repeatable).
        length: tokens of a segment of the receptive fields.
        segments: how many.
        window: let queries see a sliding window of this many tokens.
        bca: half-width of blockwise causal attention.
        bos: whether segments begin with the tokenizer's first token; auto, yes or no.
        device: of torch, as cuda; the CPU if not given.
        dtype: float32, bfloat16 or float16; float32 if not given.
    """
    require_models()
    from farfield.numerics.masks import Mask
    from farfield.validation.models.folder import place_of
    from farfield.validation.models.perplexities import model_perplexity

    place = place_of(model, runs)
    how: dict[str, Any] = {"bos": bos, "view": Mask(window, bca)}
    how |= {"device": device, "dtype": dtype}
    field = {**how, "length": length, "segments": segments}

    def question(step: Any) -> list[Any]:
        fields = [
            farfield.empirical_receptive_field(place, text, kind=kind, progress=step, **field)
            for kind in ("attention", "gradient")
        ]
        return [*fields, model_perplexity(place, context, text=text, progress=step, **how)]

    return ask("measure", question, output, opening=reading(str(place), text))


def erf(
    model: str,
    *,
    runs: str = "runs",
    text: str | None = None,
    kind: str = "gradient",
    q: str = "99/100",
    eps: str = "1/100",
    length: CountOrNone = None,
    segments: CountOrNone = None,
    window: CountOrNone = None,
    bca: CountOrNone = None,
    bos: str = "auto",
    device: str | None = None,
    dtype: str | None = None,
    output: Output = Output(),
) -> int:
    """Empirical receptive field: how far a trained model looks back on a text.

    Args:
        model: a folder, a GGUF file, a name in the hub's cache, or the key of a run.
        runs: folder where runs are kept.
        text: a file or folder to read.
        kind: gradient or attention.
        q: share of the gradient.
        eps: attention left outside.
        length: tokens of a segment; 1024, attention 512.
        segments: how many; 32, attention 8.
        window: let queries see a sliding window of this many tokens.
        bca: half-width of blockwise causal attention.
        bos: whether segments begin with the tokenizer's first token; auto, yes or no.
        device: of torch, as cuda; the CPU if not given.
        dtype: float32, bfloat16 or float16; float32 if not given.
    """
    require_models()
    from farfield.numerics.masks import Mask
    from farfield.validation.models.folder import place_of

    place = place_of(model, runs)
    how: dict[str, Any] = {"kind": kind, "q": q, "eps": eps, "length": length, "bos": bos}
    how |= {"segments": segments, "view": Mask(window, bca)}
    how |= {"device": device, "dtype": dtype}
    return ask(
        "erf",
        lambda step: farfield.empirical_receptive_field(place, text, progress=step, **how),
        output,
        opening=reading(str(place), text),
    )


def perplexity(
    model: str,
    *,
    runs: str = "runs",
    length: tuple[str, ...],
    text: str | None = None,
    protocol: str = "last-token",
    samples: Count = 64,
    window: CountOrNone = None,
    sinks: CountFrom0 = 0,
    bca: CountOrNone = None,
    bos: str = "auto",
    device: str | None = None,
    dtype: str | None = None,
    output: Output = Output(),
) -> int:
    """Perplexity of a model by the length of its context, on the same targets.

    Args:
        model: a folder, a GGUF file, a name in the hub's cache, or the key of a run.
        runs: folder where runs are kept.
        length: of the context in tokens (repeatable).
        text: a file or folder to read.
        protocol: last-token, non-overlapping, hf-stride, llama.cpp or lm-eval.
        samples: targets, or rows of the longest length.
        window: let queries see a sliding window of this many tokens.
        sinks: with --window, keep this many first tokens as well.
        bca: half-width of blockwise causal attention.
        bos: whether rows begin with the tokenizer's first token; auto, yes or no.
        device: of torch, as cuda; the CPU if not given.
        dtype: float32, bfloat16 or float16; float32 if not given.
    """
    refuse(
        sinks and window is None,
        "--sinks are kept beside a window: give --window, its nearest tokens",
    )
    require_models()
    from farfield.numerics.masks import Mask
    from farfield.validation.models.folder import place_of
    from farfield.validation.models.perplexities import model_perplexity

    place = place_of(model, runs)
    how: dict[str, Any] = {"text": text, "protocol": protocol, "samples": samples, "bos": bos}
    how |= {"view": Mask(window, bca, sinks)}
    how |= {"device": device, "dtype": dtype}
    return ask(
        "perplexity",
        lambda step: model_perplexity(place, length, progress=step, **how),
        output,
        opening=reading(str(place), text),
    )


def audit(
    model: str,
    *,
    runs: str = "runs",
    trained: str | None = None,
    length: tuple[str, ...] = (),
    rows: str = "1",
    cache_dtype: str = "bf16",
    tensor_parallel: Count = 1,
    page: Count = 16,
    budget: str | None = None,
    eps: tuple[str, ...] = ("1/10", "1/100", "1/1000"),
    error: str = "1/1000",
    logit_bound: str | None = None,
    value_bound: str | None = None,
    out: str | None = None,
    output: Output = Output(),
) -> int:
    """Which layer of a model keeps what, how many bytes that is, and what may be set; and a page.

    Args:
        model: a folder, its config.json, a GGUF file, a name in the hub's cache, or the key of a
            run.
        runs: folder where runs are kept.
        trained: training length in tokens, if not the configuration's.
        length: of another row (repeatable).
        rows: how many rows are served together.
        cache_dtype: of the cache: bf16, fp16, fp32, fp8, int8 or int4.
        tensor_parallel: devices over which heads are spread.
        page: tokens of a page of the cache.
        budget: bytes of the cache on one device, as 24GiB: the longest rows, and how many fit.
        eps: of a bias, mass left outside (repeatable).
        error: of a bias, budget of the certified windows.
        logit_bound: bound of |q.k|/sqrt(d); 1 if not given, a hypothesis.
        value_bound: bound of ||v||, in the same way.
        out: folder of the page; out/audit/ and the name of the model if not given.
    """
    from farfield.figures.answer_pages import write_audit
    from farfield.validation.models.audit import audit as examine
    from farfield.validation.models.folder import place_of

    place = place_of(model, runs)
    with progress("audit"):
        result = examine(
            place,
            trained=trained,
            lengths=length,
            rows=rows,
            cache_dtype=cache_dtype,
            tensor_parallel=tensor_parallel,
            page=page,
            budget=budget,
            eps=eps,
            error=error,
            logit_bound=logit_bound,
            value_bound=value_bound,
        )
    written = write_audit(result, out or Path("out/audit") / _page(place))
    return write_answers(result, output, f"page: {written}")


def _page(model: str | Path) -> str:
    """The folder of the page of a model, named after it."""
    place = Path(os.path.expanduser(model))
    place = place.parent if place.name == "config.json" else place
    name = place.resolve().name if place.exists() else str(model)
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "model"


def require_models() -> None:
    """Raise InputError, which says how to install them, unless models of others can be read."""
    from farfield.validation.optional import require

    require("transformers", "a model from outside", "hf")
    require("torch", "a model from outside", "hf")
