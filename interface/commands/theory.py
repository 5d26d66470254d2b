"""Verbs of formulas: check, trf, reach, forecast, compare, resolution, lint; one, or a file."""

from __future__ import annotations

import json
import re
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import farfield
from farfield.options import CountOrNone, Formula, Formulas, Kept, Listed, Output, Subject
from farfield.output import (
    BAD_INPUT,
    OK,
    UNKNOWN,
    ask,
    exit_code,
    print_error,
    print_out,
    write_answers,
    write_rows,
)
from farfield.progress_bar import progress
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.names import one_of

VERDICTS = ("converges", "diverges", "conditional", "out_of_scope", "undecided")
BUDGET = 10.0


def check(
    *formulas: Formula,
    subject: Subject = Subject(),
    file: Listed | None = None,
    expect: str | None = None,
    certificate: str | None = None,
    verify: bool = False,
    trained: CountOrNone = None,
    output: Output = Output(),
) -> int:
    """Does the exp-series of a bias converge? With proof.

    Args:
        formulas: a formula in n, or a name of the catalogue; several are answered one by one.
        file: decide each line of a file instead (- for standard input); numbers alone are a table.
        expect: exit with 1 unless the verdict is this one.
        certificate: write the verdict there, as a theorem that a prover checks.
        verify: with --certificate, have the prover check it (coqc on the path); without a formula
            the file is checked that is there, and the answer says which theorem it proves.
        trained: tokens of a training row: how far the bias sees beside it, what the nearest trained
            models lost at 16 times that, and which size would fit.
    """
    if expect is not None:
        one_of(expect, "--expect", VERDICTS)
    if verify and certificate is not None and not formulas and file is None:
        refuse(
            subject != Subject(budget=subject.budget),
            "a certificate is checked with --budget alone",
        )
        patience = {} if subject.budget is None else {"budget_s": subject.budget}
        return ask(
            "checking", lambda _: farfield.verify_certificate(certificate, **patience), output
        )
    refuse(
        bool(formulas) == (file is not None),
        'give a formula, as farfield check "-2*log(1+n)", or a list of them with --file (- for '
        "standard input)",
    )
    refuse(
        (verify and certificate is None) or (certificate is not None and len(formulas) != 1),
        "--certificate goes with one formula, and --verify with --certificate",
    )
    if file is not None:
        return _check_list(file, subject, output, expect)
    from farfield.theory.algebra.door import until

    subjects = subject.read_each(formulas)
    with progress("deciding"):
        begin = time.monotonic()
        found = [_decide(one, subject) for one in subjects]
        written = None
        if certificate is not None:
            with until(begin + found[0].budget_s):
                written = found[0].certificate().source
    rejected = 0 if written is None else _certify(str(certificate), written, verify)
    missed = [_missed(name, one, expect) for name, one in zip(formulas, found, strict=True)]
    beside: list[Any] = []
    if trained is not None:
        from farfield.validation.study.beside_rows import beside_rows

        with progress("nearest trained models"):
            beside = [
                beside_rows(one, name, trained=int(trained), tested=16 * int(trained))
                for name, one in zip(formulas, subjects, strict=True)
            ]
    return max(write_answers([*found, *beside], output), *missed, rejected)


def _certify(name: str, written: str, checked: bool) -> int:
    """Write the certificate of a verdict, and have the prover check it if that is asked."""
    from farfield.theory.files import write

    write(Path(name), written.encode())
    found = farfield.verify_certificate(name) if checked else None
    how = "" if found is None else f", and {found.reason or 'checked by the prover'}"
    print_error(f"farfield: {name}: certificate written{how}")
    return OK if found is None or found.proved else UNKNOWN


def _decide(found: farfield.Encoding, subject: Subject) -> farfield.Convergence:
    return farfield.check_convergence(found, budget_s=subject.seconds(BUDGET))


def _missed(formula: str, found: farfield.Convergence, expect: str | None) -> int:
    if expect in (None, found.verdict.value):
        return 0
    print_error(f"farfield: {formula[:60]}: expected {expect}, found {found.verdict.value}")
    return UNKNOWN


def _check_list(listed: str, subject: Subject, output: Output, expect: str | None) -> int:
    lines = (line.strip() for line in read_text(listed).splitlines())
    formulas = [line for line in lines if line and not line.startswith("#")]
    refuse(not formulas, f"{listed!r} holds no formula; expected one a line")
    if table := _as_table(formulas, listed):
        return check(table, subject=subject, expect=expect, output=output)
    code, rows, answers = OK, [], []
    with progress("deciding") as step:
        for k, formula in enumerate(formulas):
            step(formula[:40], k, len(formulas))
            try:
                found = _decide(subject.restricted_to(formula).read(formula, code=False), subject)
            except InputError as error:
                if isinstance(output, Kept):
                    raise InputError(f"{listed}: {formula[:60]}: {error}") from None
                code = BAD_INPUT
                rows.append({"formula": formula, "error": str(error)})
                if output.latex or output.csv:
                    print_error(f"farfield: {formula[:60]}: {error}")
                said = f"error         {formula[:60]}   {error}"
            else:
                code = max(code, exit_code([found]), _missed(formula, found, expect))
                rows.append(found.to_dict() | {"given": formula})
                answers.append(found)
                said = f"{found.verdict.value:<13} {formula}{_condition(found, output)}"
            if output.is_text:
                print_out(said)
    if output.json:
        print_out(json.dumps(rows, indent=2, ensure_ascii=output.ascii))
    elif not output.is_text:
        write_answers(tuple(answers), output)
    return code


def _as_table(lines: Sequence[str], listed: str) -> str | None:
    """Numbers alone, one a line or all on one, as a table; None for formulas."""
    rows = [line.replace(",", " ").split() for line in lines]
    words = [word for row in rows for word in row]
    if not all(re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|-inf|-oo", w) for w in words):
        return None
    refuse(
        len(rows) > 1 and len(words) > len(rows),
        f"{listed!r} holds several numbers on several lines; accepted: a table with one number "
        "a line, the bias at distances 0, 1, 2, ..., or formulas, one a line",
    )
    return f"[{', '.join(words)}]"


def _condition(found: farfield.Convergence, output: Output) -> str:
    from farfield.theory.answers.notation import expression_line

    if found.verdict.value != "conditional":
        return ""
    return f"   {expression_line(found.condition, unicode=not output.ascii)}"


def read_text(listed: str) -> str:
    """A text file, or standard input for `-`.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    try:
        return sys.stdin.read() if listed == "-" else Path(listed).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not text in UTF-8"
        raise InputError(f"cannot read {listed!r}: {why}") from None


def trf(
    *formulas: Formula,
    subject: Subject = Subject(),
    eps: tuple[str, ...] = ("1/10", "1/100", "1/1000"),
    length: str | None = None,
    exact: bool = False,
    layers: str | None = None,
    layer: Formulas = (),
    mixing: str = "2/5",
    q: str = "99/100",
    trained: str | None = None,
    tested: str | None = None,
    dtype: str | None = None,
    output: Output = Output(),
) -> int:
    """How far does a bias see? How many of the nearest tokens hold all but eps of the mass.

    --trained adds the share of the mass beyond the training length, --dtype the distance from which
    on weights round to 0.

    Args:
        formulas: a formula in n, or a name of the catalogue; several are answered one by one.
        eps: mass left outside, as 0.01, 1/100 or 1% (repeatable).
        length: tokens of the row, for the receptive field of one row; 4k is 4096.
        exact: all digits of a count beyond 10^18, whose logarithm is enclosed otherwise.
        layers: number of layers; the receptive field through depth (approximate).
        layer: a layer of a hybrid in place of a formula, once for each layer from the first: a
            bias, or a table of some of mechanism, window, sinks, mixing, such as '{window = 128}';
            one that ends with x12 represents twelve.
        mixing: with --layers, the share that a layer passes through attention.
        q: with --layers, the quantile.
        trained: training length in tokens, as 4096 or 4k.
        tested: with --trained, the test length in tokens; all lengths if not given.
        dtype: fp16, bf16, fp32 or fp64.
    """
    for share in eps:
        refuse(
            "," in share,
            f"--eps {share!r} holds several shares; write --eps {' --eps '.join(share.split(','))}",
        )
    refuse(tested and not trained, "--tested belongs to --trained, the training length")
    other = trained is not None or dtype is not None
    refuse(other and (layers or length), "--trained and --dtype take no --layers and no --length")
    if layer:
        from farfield.theory.encodings.head_lists import repeated

        refuse(bool(formulas or layers or other), "--layer has every layer; accepted alone")
        each = [_layer(one) for one in repeated(list(layer))]
        hybrid = farfield.layered_receptive_field(
            layers=each, mixing=mixing, q=q, length=length, budget_s=subject.seconds(60)
        )
        return write_answers(hybrid, output)
    subjects = subject.read_each(formulas)
    if other:
        asked: dict[Any, Any] = {} if trained is None else {farfield.leak: (trained, tested)}
        asked |= {} if dtype is None else {farfield.dtype_horizon: (dtype,)}
        return ask(
            "leak",
            lambda _: [found(one, *how) for one in subjects for found, how in asked.items()],
            output,
            subject,
        )
    if layers is not None:
        how: dict[str, Any] = {"mixing": mixing, "q": q, "length": length}
        return ask(
            "layered receptive field",
            lambda _: [farfield.layered_receptive_field(one, layers, **how) for one in subjects],
            output,
            subject,
        )
    from farfield.numerics.receptive_field import receptive_fields

    fields: list[Any] = []
    for one in subjects:
        with progress(f"receptive field of {one.name[:40]}"):
            found: Any = receptive_fields(
                one, list(eps), length=length, exact=exact, budget_s=subject.seconds(60)
            )
        fields += found if output.json or isinstance(found, tuple) else [found]
    return write_answers(fields, output)


def reach(
    *formulas: Formula,
    subject: Subject = Subject(),
    advantage: str | None = None,
    distance: str | None = None,
    share: str = "1/2",
    length: str | None = None,
    logit_bound: str | None = None,
    output: Output = Output(),
) -> int:
    """How far a logit advantage reaches, and which advantage a distance costs.

    Args:
        formulas: a formula in n, or a name of the catalogue; several are answered one by one.
        advantage: of one key's logit over the others, in nats; 7 if nothing is asked.
        distance: from the query to a key: which advantage gives the key half of the attention.
        share: with --advantage, share of the attention that this key gets.
        length: tokens of the row, as 4096 or 4k; the whole series if not given.
        logit_bound: with --length, the most attention that any input within this bound of the
            logits gives the key at --distance, or the farthest; of rotations too.
    """
    if advantage is None and distance is None and logit_bound is None:
        advantage = "7"
    refuse(
        logit_bound is not None and length is None,
        "--logit-bound needs --length, the tokens of the row",
    )
    subjects, row = subject.read_each(formulas), dict[str, Any](length=length)

    def answers(found: farfield.Encoding) -> Iterator[Any]:
        if advantage is not None:
            yield farfield.reach(found, advantage, share=share, **row)
        if logit_bound is not None:
            yield farfield.attention_ceiling(found, logit_bound, distance=distance, **row)
        elif distance is not None:
            yield farfield.price_of_distance(found, distance, **row)

    return ask(
        "reach", lambda _: [one for found in subjects for one in answers(found)], output, subject
    )


def forecast(
    *formulas: Formula,
    subject: Subject = Subject(),
    trained: str = "64",
    tested: str = "1024",
    layers: str = "4",
    steps: str | None = None,
    runs: str | None = None,
    output: Output = Output(),
) -> int:
    """What did the nearest trained models lose beyond their training length?

    Args:
        formulas: a formula in n, a name of the catalogue, or heads as "[-n/4; 0 x7]"; several are
            several ideas.
        trained: training length in tokens, as 64 or 4k (4096).
        tested: longest length at inference in tokens.
        layers: depth of the model.
        steps: of training; 1000 where none are given.
        runs: a folder of runs, or a CSV file of results, in place of farfield's own.
    """
    asked = {"trained": trained, "tested": tested, "layers": layers, "steps": steps, "runs": runs}
    heads = subject.heads
    return write_answers(
        [farfield.forecast(one, **asked, heads=heads) for one in subject.read_each(formulas)],
        output,
    )


def compare(*formulas: Formula, subject: Subject = Subject(), output: Output = Output()) -> int:
    """Which of several biases has the lighter tail, and from which eps on.

    Args:
        formulas: two or more formulas or names; every head of a name is compared, or --head.
    """
    refuse(
        len(formulas) < 2,
        f"compare takes two formulas or more, as farfield compare alibi '-2*log(1+n)'; "
        f"{len(formulas)} given",
    )
    subjects = subject.read_each(formulas)
    return ask("comparing tails", lambda _: farfield.compare_tails(*subjects), output, subject)


def resolution(
    *formulas: Formula,
    subject: Subject = Subject(),
    length: str | None = None,
    scale: str | None = None,
    mask: str | None = None,
    output: Output = Output(),
) -> int:
    """How sharply a bias tells neighbouring keys apart: its attention resolution.

    Args:
        formulas: a formula in n, or a name of the catalogue; several are answered one by one.
        length: tokens of the row, as 4096 or 4k; its limit if not given.
        scale: factor of the bias, as 1/32 or 1/sqrt(64).
        mask: "window 128" or "bca 512".
    """
    subjects = subject.read_each(formulas)
    return ask(
        "attention resolution",
        lambda _: [
            farfield.attention_resolution(one, length, scale=scale, mask=mask) for one in subjects
        ],
        output,
        subject,
    )


def lint(
    target: Formula,
    /,
    *,
    heads: CountOrNone = None,
    out: str | None = None,
    output: Output = Output(),
) -> int:
    """What is this function, module or array of biases? It is run on positions, then recognised.

    Does it depend on the distance alone, does it fall, what represents minus infinity, what does
    rounding do, which family is it? Then the verdict.

    Args:
        target: FILE.py:NAME, a file that is imported, and what it calls the bias; FILE.py alone
            lists what it holds.
        heads: heads to ask for, where the object does not say.
        out: a picture of the bias, .svg, .png or .pdf, with its data as CSV beside it.
    """
    from farfield.theory.encodings.python_files import held, load

    named = isinstance(target, str)  # in Python it may be the object itself
    refuse(named and ".py" not in target, f"lint {target!r}: accepted is FILE.py:NAME")
    if named and target.endswith(".py") and len(names := held(load(target))) > 1:
        rows = [(f"farfield lint {target}:{name}",) for name in names]
        return write_rows(("command",), rows, output)
    with progress("lint"):
        found: list[Any] = [farfield.inspect_bias(target, heads=heads)]
        said = (
            found[0].origin == "tabulated" and not output.json
        )  # by the first, how far it is known
        if found[0].formulas or (found[0].mechanism == "bias" and not said):
            found.append(farfield.check_convergence(farfield.encoding(found[0])))
    after = []
    if out is not None:
        from farfield.figures.answer_charts import save_inspection

        after = ["files: {}, {}".format(*save_inspection(found[0], out))]
    write_answers(found, output, *after)
    return exit_code(found[:1])  # the question was what it is


def _layer(text: str) -> Any:
    """A layer as a command line has it: a bias, or a table as a plan writes it."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return tomllib.loads(f"layer = {text.strip()}")["layer"]
    except (ValueError, RecursionError):
        raise InputError(
            f"layer {text[:60]!r} is no table; accepted as in a plan: "
            "{window = 128, mixing = 0.5}"
        ) from None
