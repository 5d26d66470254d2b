"""The command line: `farfield VERB FORMULA`, one verb per public function.

A formula may begin with a minus, so verbs that take one have no short options and hand on what
they do not know. Exit codes: 0 every question was answered, 1 something stayed undecided or
differs from `--expect`, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import itertools
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from farfield.theory.results import InputError, Result

if TYPE_CHECKING:
    from farfield.theory.convergence import Convergence
    from farfield.validation.claims import Claim
    from farfield.validation.settings.plan import Job

UNDECIDED, BAD_INPUT, INTERRUPTED = 1, 2, 130


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning wastes cores that are shared
    try:
        code = cli.main(args=args, prog_name="farfield", standalone_mode=False)
    except InputError as error:
        click.echo(f"farfield: {error}", err=True)
        code = BAD_INPUT
    except click.ClickException as error:
        click.echo(f"farfield: {error.format_message()}", err=True)
        code = BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        click.echo("farfield: interrupted", err=True)
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    sys.exit(code or 0)


class _Verb(click.Command):
    """A verb; verbs of a formula hand on what they do not know, but no name of an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {name for p in self.get_params(ctx) for name in (*p.opts, *p.secondary_opts)}
        for word in itertools.takewhile(lambda word: word != "--", args):
            name = word.partition("=")[0]
            if re.fullmatch("--[a-z][a-z-]+", name) and name not in known:
                close = difflib.get_close_matches(name, known, 1)
                accepted = ", ".join(sorted(o for o in known if o.startswith("--")))
                hint = f"did you mean {close[0]}? " if close else ""
                raise InputError(f"{self.name} has no option {name}; {hint}accepted: {accepted}")
        return super().parse_args(ctx, args)


class _Verbs(click.Group):
    command_class = _Verb


@click.group(cls=_Verbs, context_settings={"max_content_width": 100})
@click.version_option(package_name="farfield")
def cli() -> None:
    """Relative positional encodings: convergence, receptive fields, checks on models."""


_FORMULA = {"ignore_unknown_options": True, "help_option_names": ["--help"]}


def _options(*extra: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options that describe an encoding, and those of one verb."""
    shared = [
        click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                     help="Value of a parameter or an option of the encoding (repeatable)."),
        click.option("--assume", "assumed", multiple=True, metavar="NAME=DOMAIN",
                     help="Domain of a parameter: positive, real, [0, 2), ... (repeatable)."),
        click.option("--heads", type=int, help="Number of heads of a per-head encoding."),
        click.option("--dialect", help="Variant of an encoding of the catalogue."),
        click.option("--bca", type=int, metavar="HALF",
                     help="Blockwise causal attention with blocks of HALF tokens."),
        click.option("--json", "as_json", is_flag=True, help="JSON instead of text."),
        *extra,
    ]  # fmt: skip

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(shared):
            function = option(function)
        return function

    return decorate


def _formula_verb(
    *extra: Callable[..., Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A verb of one formula: the function gets the encoding that its arguments describe, `as_json`
    and its own options."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(
            formula: str, settings: tuple[str, ...], assumed: tuple[str, ...],
            heads: int | None, dialect: str | None, bca: int | None, **own: Any,
        ) -> Any:  # fmt: skip
            return function(_subject(formula, settings, assumed, heads, dialect, bca), **own)

        return cli.command(context_settings=_FORMULA)(
            click.argument("formula")(_options(*extra)(call))
        )

    return decorate


def _pairs(given: Iterable[str], option: str) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(f"{option} {item!r}: expected NAME=VALUE, as {option} r1=6/5")
        if name.strip() in pairs:
            raise InputError(f"{option} gives {name.strip()!r} twice")
        pairs[name.strip()] = value.strip()
    return pairs


def _subject(
    formula: str, settings: Iterable[str], assumed: Iterable[str], heads: int | None,
    dialect: str | None, bca: int | None,
) -> Any:  # fmt: skip
    """The encoding that the arguments of a verb describe."""
    from farfield.theory.encodings import encoding, encodings

    values: dict[str, Any] = {
        name: value.split(",") if "," in value else value
        for name, value in _pairs(settings, "--set").items()
    }
    assumptions = _pairs(assumed, "--assume")
    taken = sorted(set(values) & {"heads", "dialect", "bca", "values", "name", "assumptions"})
    if taken:
        raise InputError(f"--set {taken[0]}=...: use the option --{taken[0]} where there is one")
    both = sorted(set(values) & set(assumptions))
    if both:
        raise InputError(f"--set and --assume both name {both[0]!r}; give one of them")
    subject = encoding(
        formula, heads=heads, dialect=dialect, bca=bca, assumptions=assumptions or None, **values
    )
    symbols = getattr(subject.formula, "free_symbols", None)
    if formula not in encodings() and symbols is not None and "n" not in map(str, symbols):
        raise InputError(
            f"formula {formula[:40]!r} has no n, the distance; a constant bias is the "
            "encoding 'nope'"
        )
    return subject


def _emit(results: Result | tuple[Any, ...] | list[Any], as_json: bool) -> None:
    many = list(results) if isinstance(results, (tuple, list)) else None
    if as_json:
        out: Any = [r.to_dict() for r in many] if many is not None else results.to_dict()  # type: ignore[union-attr]
        click.echo(json.dumps(out, indent=2, ensure_ascii=False))
    else:
        click.echo("\n\n".join(map(str, many)) if many is not None else str(results))


# -- verbs ----------------------------------------------------------------------------------------


@cli.command(context_settings=_FORMULA)
@click.argument("formula", required=False)
@_options(
    click.option("--error", required=True, help="Budget for the change of a head's output."),
    click.option("--logit-bound", help="Bound of |q.k|/sqrt(d)."),
    click.option("--value-bound", help="Bound of ||v||; 1 if not given."),
    click.option("--model", metavar="FOLDER",
                 help="A model on this machine instead of a formula: a window for each head."),
    click.option("--bounds", help="With --model: from text (empirical) or weights (a proof)."),
    click.option("--text", metavar="PATH", help="With --model: what to read."),
    click.option("--length", type=int, metavar="TOKENS", help="With --model: of a segment."),
    click.option("--segments", type=int, metavar="COUNT", help="With --model: 4 if not given."),
)  # fmt: skip
def window(
    formula: str | None, settings: tuple[str, ...], assumed: tuple[str, ...], heads: int | None,
    dialect: str | None, bca: int | None, as_json: bool, error: str, logit_bound: str | None,
    value_bound: str | None, model: str | None, bounds: str | None, text: str | None,
    length: int | None, segments: int | None,
) -> int:  # fmt: skip
    """Certified window: how many keys are provably enough for an error budget."""
    if (formula is None) == (model is None):
        raise InputError("give a formula, or a model's folder with --model, and not both")
    if formula is not None:
        if bounds or text or length or segments:
            raise InputError("--bounds, --text, --length and --segments belong to --model")
        if logit_bound is None:
            raise InputError("a formula needs --logit-bound, a bound of |q.k|/sqrt(d)")
        from farfield.numerics.window import certified_window

        subject = _subject(formula, settings, assumed, heads, dialect, bca)
        found = certified_window(subject, error, logit_bound, value_bound or "1")
        _emit(found, as_json)
        return UNDECIDED if found.label == "none" else 0
    if settings or assumed or heads or dialect or bca or logit_bound or value_bound:
        raise InputError("--model brings its own biases and bounds; leave those options out")
    _require_torch()
    from farfield.validation.outside.windows import model_window

    with _bar() as progress:
        result = model_window(
            model, error, bounds=bounds or "text", text=text, length=length,
            segments=4 if segments is None else segments, progress=progress,
        )  # fmt: skip
    _emit(result, as_json)
    return 0 if result.decided else UNDECIDED


@cli.command(context_settings=_FORMULA)
@click.argument("first")
@click.argument("second")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def compare(first: str, second: str, as_json: bool) -> int:
    """Which of two biases has the lighter tail, and from which eps on."""
    from farfield.numerics.comparison import compare_tails

    found = compare_tails(first, second)
    _emit(found, as_json)
    return 0 if found.lighter is not None else UNDECIDED


@cli.command(context_settings=_FORMULA)
@click.argument("formula", required=False)
@_options(
    click.option("--file", "listed", metavar="FILE",
                 help="Decide each line of a file (- for standard input)."),
    click.option("--expect", help="Exit with 1 unless the verdict is this one."),
    click.option("--budget", "budget_s", type=float, default=10.0, show_default=True,
                 metavar="SECONDS", help="Time after which the verdict is undecided."),
)  # fmt: skip
def check(
    formula: str | None, settings: tuple[str, ...], assumed: tuple[str, ...], heads: int | None,
    dialect: str | None, bca: int | None, as_json: bool, listed: str | None, expect: str | None,
    budget_s: float,
) -> int:  # fmt: skip
    """Does the exp-series of FORMULA (or of a catalogue entry) converge? With proof."""
    from farfield.theory.convergence import Verdict, check_convergence

    verdicts = [v.value for v in Verdict]
    if expect is not None and expect not in verdicts:
        raise InputError(f"--expect {expect!r}: accepted: {', '.join(verdicts)}")
    if (formula is None) == (listed is None):
        raise InputError("give a formula, or a list of them with --file (- for standard input)")
    if formula is not None:
        subject = _subject(formula, settings, assumed, heads, dialect, bca)
        result = check_convergence(subject, budget_s=budget_s)
        _emit(result, as_json)
        missed = result.verdict is Verdict.UNDECIDED or expect not in (None, result.verdict.value)
        return int(missed)
    assert listed is not None
    options = (settings, assumed, heads, dialect, bca)
    return _check_list(listed, options, as_json, expect, budget_s)


def _check_list(
    listed: str, options: tuple[Any, ...], as_json: bool, expect: str | None, budget_s: float
) -> int:
    from farfield.theory.convergence import Verdict, check_convergence

    lines = [line.strip() for line in _read(listed).splitlines()]
    formulas = [line for line in lines if line and not line.startswith("#")]
    if not formulas:
        raise InputError(f"{listed!r} holds no formula; expected one a line")
    settings, assumed, *rest = options
    code, rows = 0, []
    for formula in _progress(formulas, "deciding"):
        try:
            own = [_concerning(formula, pairs) for pairs in (settings, assumed)]
            result: Convergence | InputError = check_convergence(
                _subject(formula, own[0], own[1], *rest), budget_s=budget_s
            )
        except InputError as error:
            result = error
        if isinstance(result, InputError):
            code = BAD_INPUT
            rows.append({"formula": formula, "error": str(result)})
            if not as_json:
                click.echo(f"error         {formula[:60]}   {result}")
            continue
        missed = result.verdict is Verdict.UNDECIDED or expect not in (None, result.verdict.value)
        code = max(code, int(missed))
        rows.append(result.to_dict() | {"given": formula})
        if not as_json:
            condition = f"   {result.condition}" if result.verdict is Verdict.CONDITIONAL else ""
            click.echo(f"{result.verdict.value:<13} {formula}{condition}")
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    return code


def _concerning(formula: str, pairs: Iterable[str]) -> list[str]:
    """In a list, settings and assumptions apply to the formulas that contain their parameter."""
    import re

    words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", formula))
    return [p for p in pairs if p.partition("=")[0].strip() in words]


def _read(listed: str) -> str:
    try:
        if listed == "-":
            return sys.stdin.read()
        return Path(listed).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not text in UTF-8"
        raise InputError(f"cannot read the list {listed!r}: {why}") from None


def _progress(items: list[Any], what: str) -> Iterable[Any]:
    """The items, with a progress bar on a terminal."""
    if len(items) < 20 or not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, what, console=Console(stderr=True), transient=True)


@_formula_verb(
    click.option("--eps", multiple=True, default=("1/10", "1/100", "1/1000"), show_default=True,
                 help="Mass left outside, as 0.01 or 1/100 (repeatable)."),
    click.option("--length", type=int, metavar="TOKENS",
                 help="The finite-row receptive field of a row with that many keys."),
    click.option("--layers", metavar="COUNT",
                 help="The layered receptive field of that many layers (approximate)."),
    click.option("--mixing", default="2/5", show_default=True, help="With --layers: share that a "
                 "layer passes through attention."),
    click.option("--q", default="99/100", show_default=True, help="With --layers: the quantile."),
)  # fmt: skip
def trf(
    subject: Any, as_json: bool, eps: tuple[str, ...], length: int | None, layers: str | None,
    mixing: str, q: str,
) -> int:  # fmt: skip
    """Theoretical receptive field: how many keys hold all but a share eps of the mass."""
    if layers is not None:
        if click.get_current_context().get_parameter_source("eps") is ParameterSource.COMMANDLINE:
            raise InputError("--eps is of one layer; with --layers accepted is --q, the quantile")
        from farfield.numerics.depth import layered_receptive_field

        _emit(layered_receptive_field(subject, layers, mixing=mixing, q=q, length=length), as_json)
        return 0
    from farfield.numerics.receptive_field import theoretical_receptive_field

    fields = theoretical_receptive_field(subject, list(eps), length=length)
    _emit(fields[0] if len(fields) == 1 else fields, as_json)
    return UNDECIDED if any(f.label == "none" for f in fields) else 0


@_formula_verb(
    click.option("--trained", type=int, metavar="TOKENS", help="Training length."),
    click.option("--evaluated", type=int, metavar="TOKENS", help="Test length; all if not given."),
    click.option("--dtype", help="Distance from which terms round to 0: fp16, bf16, fp32, fp64."),
)  # fmt: skip
def leak(
    subject: Any, as_json: bool, trained: int | None, evaluated: int | None, dtype: str | None
) -> int:
    """Share of a row's prior mass beyond the training length; and the horizon of a dtype."""
    from farfield.numerics.horizon import dtype_horizon
    from farfield.numerics.leak import leak as share

    if trained is None and (dtype is None or evaluated is not None):
        raise InputError("give --trained, the training length (or --dtype alone)")
    results: list[Any] = [] if trained is None else [share(subject, trained, evaluated)]
    results += [] if dtype is None else [dtype_horizon(subject, dtype)]
    _emit(results[0] if len(results) == 1 else results, as_json)
    return UNDECIDED if any(r.label == "none" for r in results) else 0


@cli.command(context_settings=_FORMULA)
@click.argument("formula", required=False)
@_options(
    click.option("--length", metavar="TOKENS", help="Tokens of the row; its limit if not given."),
    click.option("--scale", help="Factor of the bias or scores, as 1/32 or 1/sqrt(64)."),
    click.option("--mask", metavar="MASK", help='"window 128" or "bca 512".'),
    click.option("--scores", "listed", metavar="FILE",
                 help="Measured scores s_0, s_1, ... instead of a formula (- for standard input)."),
    click.option("--best-gamma", "best", is_flag=True,
                 help="With xpos_surrogate and --length: the gamma that maximises R, and its "
                      "fp16 range."),
)  # fmt: skip
def resolution(
    formula: str | None, settings: tuple[str, ...], assumed: tuple[str, ...], heads: int | None,
    dialect: str | None, bca: int | None, as_json: bool, length: str | None, scale: str | None,
    mask: str | None, listed: str | None, best: bool,
) -> int:  # fmt: skip
    """Attention resolution of FORMULA (or of a catalogue entry, or of measured scores)."""
    from farfield.numerics.resolution import attention_resolution, best_gamma, fp16_range

    if (formula is None) == (listed is None):
        raise InputError("give a formula, or a file of scores with --scores")
    if listed is not None:
        words = _read(listed).replace(",", " ").split()
        _emit(attention_resolution(words, length, scale=scale, mask=mask), as_json)
        return 0
    assert formula is not None
    if best:
        given = _pairs(settings, "--set")
        if formula != "xpos_surrogate" or length is None or not set(given) <= {"d", "base"}:
            raise InputError(
                "--best-gamma takes xpos_surrogate with --length, and --set of d or base alone"
            )
        found = best_gamma(length, scale=scale, dialect=dialect or "code", **given)
        _emit((found, fp16_range(found.gamma, length, base=found.base)), as_json)
        return 0
    subject = _subject(formula, settings, assumed, heads, dialect, bca)
    result = attention_resolution(subject, length, scale=scale, mask=mask)
    _emit(result, as_json)
    return int(result.value is None and not subject.out_of_scope)


@cli.command()
@click.argument("name", required=False)
@click.option("--latex", is_flag=True, help="LaTeX instead of text.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def prove(name: str | None, latex: bool, as_json: bool) -> int:
    """A theorem with its proof, its computed steps re-checked; all names without NAME."""
    from farfield.numerics.theorems import verify
    from farfield.theory.theorems import theorem, theorems

    if name is None:
        known = tuple(theorems().values())
        if as_json:
            _emit(known, True)
        elif latex:
            click.echo("\n\n".join(t.latex() for t in known))
        else:
            click.echo("\n".join(f"{t.name:<20} {t.title}  [{t.source}]" for t in known))
        return 0
    chosen = theorem(name)
    checked = verify(chosen)
    if latex:
        click.echo(chosen.latex())
    elif as_json:
        both = chosen.to_dict() | {"verification": checked.to_dict()}
        click.echo(json.dumps(both, indent=2, ensure_ascii=False))
    else:
        click.echo(f"{chosen}\n  {checked}")
    return int(not checked.passed)


@cli.command("claims")
@click.argument("identifier", required=False, metavar="[ID]")
@click.option("--paper", help="qin2024, sun2023 or chi2023.")
@click.option("--kind", help="proof, certified number, printed tables, experiment, ...")
@click.option(
    "--results",
    "given",
    multiple=True,
    metavar="FILE",
    help="Results of trained models, as the study.json of a report (repeatable).",
)
@click.option("--fresh", is_flag=True, help="Train and measure models for them (needs torch).")
@click.option("--preset", default="demo", show_default=True, help="With --fresh: how large.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def claims_(
    identifier: str | None, paper: str | None, kind: str | None, given: tuple[str, ...],
    fresh: bool, preset: str, as_json: bool,
) -> int:  # fmt: skip
    """The claims of the three papers, decided one by one; one in full with its ID."""
    from farfield.validation.claims import checks, claim, claims
    from farfield.validation.claims.results import fresh as fresh_study
    from farfield.validation.claims.results import read_results, using

    if identifier is not None and (paper or kind):
        raise InputError("--paper and --kind select from the ledger; leave out the id")
    studies = [read_results(path) for path in given]
    if fresh:
        with _watching(9, 9) as notice:
            studies.append(fresh_study(preset, notice=notice))
    with using(*studies) if studies else nullcontext():
        if identifier is not None:
            _emit([claim(identifier)] if as_json else claim(identifier), as_json)
            return 0
        count = len(checks(paper, kind))
        if as_json:
            _emit(claims(paper, kind), True)
            return 0
        with _deciding(count) as step:
            decided = claims(paper, kind, step)
    totals: dict[str, int] = {}
    for c in decided:
        totals[c.verdict.value] = totals.get(c.verdict.value, 0) + 1
    click.echo(f"{count} claims: " + ", ".join(f"{n} {v}" for v, n in sorted(totals.items())))
    return 0


@contextmanager
def _deciding(count: int) -> Iterator[Callable[[Claim], None]]:
    """A line for each claim as it is decided, with a progress bar below on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True,
                  disable=not sys.stderr.isatty()) as bar:  # fmt: skip
        task = bar.add_task("deciding", total=count)

        def step(c: Claim) -> None:
            click.echo(f"{c.verdict.value:<13} {c.id:<40} {c.label:<12} {c.seconds:5.2f} s")
            bar.advance(task)

        yield step


@cli.command()
@click.argument("name", required=False)
@click.option("--heads", type=int, help="Number of heads of a per-head encoding.")
@click.option("--dialect", help="Variant of the encoding.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def encodings(name: str | None, heads: int | None, dialect: str | None, as_json: bool) -> None:
    """The catalogue: one encoding, or all of them."""
    from farfield.theory.encodings import encoding
    from farfield.theory.encodings import encodings as names

    if name is not None:
        _emit(encoding(name, heads=heads, dialect=dialect), as_json)
        return
    if heads is not None or dialect is not None:
        raise InputError("--heads and --dialect describe one encoding; name it")
    entries = [encoding(k) for k in names()]
    if as_json:
        _emit(entries, True)
        return
    for e in entries:
        formula = e.formula_text() if e.formula is not None else f"out of scope: {e.out_of_scope}"
        click.echo(f"{e.name:<18} {formula if len(formula) <= 80 else formula[:77] + '...'}")


@cli.command()
@click.argument("run", required=False)
@click.option("--model", "folder", metavar="FOLDER", help="A Hugging Face model on this machine.")
@click.option(
    "--runs", default="runs", show_default=True, metavar="FOLDER", help="Where the run is kept."
)
@click.option("--text", metavar="PATH", help="A file or folder to read.")
@click.option("--kind", default="gradient", show_default=True, help="gradient or attention.")
@click.option("--q", default="99/100", show_default=True, help="Share of the gradient.")
@click.option("--eps", default="1/100", show_default=True, help="Attention left outside.")
@click.option("--length", type=int, metavar="TOKENS", help="Of a segment; 1024, attention 512.")
@click.option("--segments", type=int, metavar="COUNT", help="32; attention 8.")
@click.option("--window", type=int, metavar="TOKENS", help="Let queries see a sliding window.")
@click.option("--bca", type=int, metavar="HALF", help="Blockwise causal attention.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def erf(
    run: str | None, folder: str | None, runs: str, text: str | None, kind: str, q: str, eps: str,
    length: int | None, segments: int | None, window: int | None, bca: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Empirical receptive field: how far a trained model looks back on a text."""
    if (run is None) == (folder is None):
        raise InputError("give the key of a run, or a model's folder with --model")
    _require_torch()
    from farfield.validation.outside.empirical import empirical_receptive_field
    from farfield.validation.runs.inventory import finished_run
    from farfield.validation.runs.store import Store
    from farfield.validation.settings.visibility import Visibility

    place = folder if run is None else finished_run(Store(runs), run)
    with _bar() as progress:
        found = empirical_receptive_field(
            place, text, kind=kind, q=q, eps=eps, length=length, segments=segments,
            visible=Visibility(bca, window), progress=progress,
        )  # fmt: skip
    _emit(found, as_json)


@cli.command()
@click.argument("folder")
@click.option("--trained", metavar="TOKENS", help="Training length, if not the configuration's.")
@click.option(
    "--length",
    "lengths",
    multiple=True,
    metavar="TOKENS",
    help="Test length (repeatable); 2, 4 and 16 times the training length if none is given.",
)
@click.option("--eps", multiple=True, default=("1/10", "1/100", "1/1000"), show_default=True)
@click.option("--error", default="1/1000", show_default=True, help="Budget of the windows.")
@click.option("--bounds", default="given", show_default=True, help="given or weights.")
@click.option("--logit-bound", default="1", show_default=True, help="Bound of |q.k|/sqrt(d).")
@click.option("--value-bound", default="1", show_default=True, help="Bound of ||v||.")
@click.option("--out", default="out/audit", show_default=True, metavar="FOLDER")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def audit(
    folder: str, trained: str | None, lengths: tuple[str, ...], eps: tuple[str, ...], error: str,
    bounds: str, logit_bound: str, value_bound: str, out: str, as_json: bool,
) -> None:  # fmt: skip
    """The positional encoding of a model, head by head: verdict, fields, windows; and a page."""
    _require_torch()
    from farfield.figures.pages.audit import write_audit
    from farfield.validation.outside.audit import audit as examine

    result = examine(
        folder, trained=trained, lengths=lengths, eps=eps, error=error, bounds=bounds,
        logit_bound=logit_bound, value_bound=value_bound,
    )  # fmt: skip
    page = write_audit(result, out)
    _emit(result, as_json)
    if not as_json:
        click.echo(f"page: {page}")


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on a terminal, called as (stage, done, total); nothing elsewhere."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True,
                  disable=not sys.stderr.isatty()) as bar:  # fmt: skip
        task = bar.add_task("reading", total=None)
        yield lambda stage, done, total: bar.update(
            task, description=stage, completed=done, total=total
        )


def _require_torch() -> None:
    from farfield.validation.optional import require_torch

    require_torch()


@cli.command()
@click.option("--train", is_flag=True, help="Train and measure small models too (needs torch).")
@click.option("--all", "every", is_flag=True, help="Train every trainable encoding, not eight.")
@click.option("--preset", default="demo", show_default=True, help="Architecture and schedule.")
@click.option("--text", metavar="PATH", help="A file or folder to train on.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--runs", metavar="FOLDER", help="Where runs are kept; OUT/runs if not given.")
@click.option(
    "--claims/--no-claims",
    "ledger",
    default=True,
    show_default=True,
    help="The claims of the three papers as a chapter (half a minute).",
)
@click.option("--out", default="out/report", show_default=True, metavar="FOLDER")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def report(
    train: bool, every: bool, preset: str, text: str | None, seed: int, runs: str | None,
    ledger: bool, out: str, as_json: bool,
) -> int:  # fmt: skip
    """Theory of the whole catalogue, beside models trained and measured; one page."""
    from farfield.figures.pages.study import write_page
    from farfield.validation.files import writable_folder
    from farfield.validation.settings.presets import preset as named
    from farfield.validation.study.study import catalogue, demo_encodings, survey, trainable

    if not train and (every or text or runs):
        raise InputError("--all, --text and --runs belong to --train")
    subjects = catalogue(named(preset).length)
    chosen: list[str] = []
    if train:
        chosen = (
            [n for n, e in subjects if trainable(e)] if every else [n for n, _ in demo_encodings()]
        )
        order = {name: i for i, name in enumerate(chosen)}
        subjects = tuple(sorted(subjects, key=lambda pair: order.get(pair[0], len(order))))
    folder = writable_folder(out)
    with _watching(len(subjects), len(chosen)) as notice:
        result = survey(
            subjects, train=chosen, preset_name=preset, text=text, seed=seed,
            store=runs or folder / "runs", ledger=ledger, notice=notice,
            title="Relative positional encodings: theory and measurement",
        )  # fmt: skip
    page = write_page(result, folder)
    if as_json:
        _emit(result, True)
    else:
        from farfield.validation.study.study import findings

        for finding in findings(result):
            click.echo(f"* {finding.sentence} [{finding.label}]")
        click.echo(f"page: {page}")
    return 0


def _token_counts(text: str, option: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 10**9 for part in parts):
        raise InputError(f"{option} {text[:40]!r}: accepted are numbers of tokens, as 64,256,1024")
    return tuple(map(int, parts))


@cli.command(context_settings=_FORMULA)
@click.argument("formula")
@_options(
    click.option("--preset", default="demo", show_default=True, help="Architecture and schedule."),
    click.option("--text", metavar="PATH", help="A file or folder to train on."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
    click.option("--runs", default="runs", show_default=True, metavar="FOLDER"),
    click.option("--tokens", type=int, metavar="N",
                 help="Train on a byte-pair encoding of the text with N entries, not on bytes."),
    click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda."),
    click.option("--length", type=click.IntRange(min=1), metavar="N",
                 help="Training length in tokens; the preset's if not given."),
    click.option("--tested", metavar="N,N,...", help="Context lengths to measure, in tokens."),
    click.option("--window", type=click.IntRange(min=1), metavar="N",
                 help="Measure with a sliding window of N tokens."),
)  # fmt: skip
def train(
    formula: str, settings: tuple[str, ...], assumed: tuple[str, ...], heads: int | None,
    dialect: str | None, bca: int | None, as_json: bool, preset: str, text: str | None, seed: int,
    runs: str, tokens: int | None, device: str, length: int | None, tested: str | None,
    window: int | None,
) -> int:  # fmt: skip
    """Train a model with this encoding and measure it; a killed training continues."""
    from farfield.validation.optional import require_torch
    from farfield.validation.runs.inventory import Trained
    from farfield.validation.runs.store import Store
    from farfield.validation.settings.configuration import Configuration
    from farfield.validation.settings.presets import preset as named
    from farfield.validation.settings.presets import resized
    from farfield.validation.settings.trainable import variants
    from farfield.validation.settings.visibility import Visibility

    chosen = resized(named(preset), length or named(preset).length)
    measure = chosen.measurement
    if tested is not None:
        measure = dataclasses.replace(measure, lengths=_token_counts(tested, "--tested"))
    if window is not None and bca is not None:
        raise InputError("--window and --bca: accepted is one of them")
    subject = _subject(formula, settings, assumed, heads, dialect, bca)
    if heads is None and subject.num_heads not in (1, chosen.heads):
        subject = _subject(formula, settings, assumed, chosen.heads, dialect, bca)
    require_torch()
    from farfield.validation.runs.experiment import chosen_device, follow, train_and_measure
    from farfield.validation.text.reading import corpus
    from farfield.validation.training.parallel import leader_first, together
    from farfield.validation.training.training import TrainingDiverged

    with together(chosen_device(device)) as leads:
        with leader_first():
            source = corpus(text)
            if tokens is not None:
                from farfield.validation.text.tokens import tokenized

                place = Path(runs) / f".tokens-{source.sha256[:16]}-{tokens}"
                source = tokenized(source, tokens, place)
        views = variants(subject, chosen.length) if window is None else (Visibility(window=window),)
        configuration = Configuration(subject, source, chosen, seed, measure, views)
        if not leads:
            follow(configuration, device)
            return 0
        with _watching(1, 1) as notice:
            try:
                result = train_and_measure(
                    configuration, Store(runs), lambda *event: notice(subject.name, *event),
                    device=device,
                )  # fmt: skip
            except TrainingDiverged as error:
                raise click.ClickException(str(error)) from None
    _emit(Trained(result), as_json)
    return 0


@cli.command()
@click.argument("plan", metavar="PLAN.toml")
@click.option("--runs", "folder", default="runs", show_default=True, metavar="FOLDER")
@click.option("--text", metavar="PATH", help="A file or folder to train on.")
@click.option("--engine", default="local", show_default=True, help="local or ray.")
@click.option("--workers", type=int, metavar="N", help="Jobs at a time; 1 if not given.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option("--address", metavar="ADDRESS", help="With --engine ray: of a cluster, or auto.")
@click.option("--cpus-per-job", "cpus", type=float, metavar="N", help="With --engine ray.")
@click.option("--gpus-per-job", "gpus", type=float, metavar="X", help="With --engine ray.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def sweep(
    plan: str, folder: str, text: str | None, engine: str, workers: int | None, device: str,
    address: str | None, cpus: float | None, gpus: float | None, as_json: bool,
) -> int:  # fmt: skip
    """Run every job of a plan that is not finished; killed and begun again, it continues."""
    from farfield.validation.optional import require_torch
    from farfield.validation.runs.store import Store
    from farfield.validation.settings.plan import read_plan

    if engine not in ("local", "ray"):
        raise InputError(f"--engine {engine!r}: accepted: local, ray")
    if engine == "local" and (address is not None or cpus is not None or gpus is not None):
        raise InputError("--address, --cpus-per-job and --gpus-per-job belong to --engine ray")
    read = read_plan(plan)
    require_torch()
    from farfield.validation.runs.experiment import chosen_device
    from farfield.validation.runs.sweep import Engine, Here, Processes
    from farfield.validation.runs.sweep import sweep as run
    from farfield.validation.text.reading import corpus

    jobs = read.jobs(corpus(text))
    chosen: Engine
    if engine == "ray":
        from farfield.validation.runs.cluster import Cluster

        if device != "auto":
            raise InputError("--device belongs to --engine local; --gpus-per-job decides for Ray")
        chosen = Cluster(
            workers, address, cpus=1 if cpus is None else cpus, gpus=0 if gpus is None else gpus
        )
    else:
        chosen_device(device)  # refused now, not by every job
        chosen = Here(device) if workers in (None, 1) else Processes(workers, device)
    with _board(read.title, len(jobs)) as watch:
        swept = run(jobs, Store(folder), chosen, watch)
    _emit(swept, as_json)
    return int(swept.failed > 0)


@cli.command()
@click.argument("keys", nargs=-1)
@click.option("--runs", "folder", default="runs", show_default=True, metavar="FOLDER")
@click.option("--prune", "pruning", is_flag=True, help="Name what is unfinished or corrupted.")
@click.option("--yes", is_flag=True, help="With --prune: remove it.")
@click.option("--older", type=float, default=0.0, metavar="DAYS", help="With --prune: not newer.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def runs(
    keys: tuple[str, ...], folder: str, pruning: bool, yes: bool, older: float, as_json: bool
) -> int:
    """List the runs of a folder; compare those with these KEYS; prune."""
    from farfield.validation.runs.inventory import Inventory, compare, inventory, prunable, prune
    from farfield.validation.runs.store import Store

    if (pruning and keys) or (not pruning and (yes or older)):
        raise InputError("--prune takes no keys, and --yes and --older belong to it")
    store = Store(folder)
    if keys:
        _emit(compare(store, keys), as_json)
    elif pruning:
        found = prunable(store, older)
        pruned = prune(store, found) if yes else found
        _emit(Inventory(pruned, "no unfinished or corrupted runs"), as_json)
        if found and not as_json:
            click.echo("removed" if yes else "nothing was removed; --yes removes these")
    else:
        _emit(inventory(store), as_json)
    return 0


@cli.command()
@click.argument("names", nargs=-1, metavar="[ID]...")
@click.option("--list", "listing", is_flag=True, help="Name the figures and tables.")
@click.option("--format", "kind", default="svg", show_default=True, help="svg, png or pdf.")
@click.option("--runs", metavar="FOLDER", help="Runs to draw the measured ones from.")
@click.option("--out", default="out/figures", show_default=True, metavar="FOLDER")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def figures(
    names: tuple[str, ...], listing: bool, kind: str, runs: str | None, out: str, as_json: bool
) -> int:
    """Every figure and table of the three papers, or those named; CSV beside each."""
    from farfield.figures.gallery import draw, exhibits, save

    if listing:
        for e in exhibits():
            click.echo(f"{e.id:<20} {e.kind:<10} {e.title}")
        return 0
    from farfield.figures.style import FORMATS
    from farfield.validation.files import writable_folder

    if kind not in FORMATS:
        raise InputError(f"--format {kind!r}: accepted: {', '.join(FORMATS)}")
    writable_folder(out)
    gallery = save(draw(names, runs=runs), out, kind, page=not names)
    if names and gallery.missing:
        raise InputError("; ".join(f"{name}: {why}" for name, why in gallery.missing.items()))
    _emit(gallery, as_json)
    if not as_json:
        for drawing in gallery.drawn.values() if len(names) == 1 else ():
            click.echo(drawing.caption)
        click.echo(f"{len(gallery.files)} files in {out}")
    return 0


@cli.command(context_settings=_FORMULA)
@click.argument("formulas", nargs=-1, metavar="FORMULA...")
@_options(
    click.option("--train", is_flag=True, help="Train and measure small models (needs torch)."),
    click.option("--baseline", "baselines", multiple=True, metavar="FORMULA",
                 help="What to train beside it (repeatable); alibi and nope if not given."),
    click.option("--preset", default="demo", show_default=True, help="Architecture and schedule."),
    click.option("--text", metavar="PATH", help="A file or folder to train on."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
    click.option("--runs", metavar="FOLDER", help="Where runs are kept; OUT/runs if not given."),
    click.option("--out", default="out/study", show_default=True, metavar="FOLDER"),
)  # fmt: skip
def study(
    formulas: tuple[str, ...], settings: tuple[str, ...], assumed: tuple[str, ...],
    heads: int | None, dialect: str | None, bca: int | None, as_json: bool, train: bool,
    baselines: tuple[str, ...], preset: str, text: str | None, seed: int, runs: str | None,
    out: str,
) -> int:  # fmt: skip
    """All that is known of an idea for a bias: theory, place, page; measured with --train."""
    from farfield.figures.pages.study import write_page
    from farfield.validation.files import writable_folder
    from farfield.validation.study.study import BASELINES
    from farfield.validation.study.study import study as examine

    if not train and (baselines or text or runs):
        raise InputError("--baseline, --text and --runs belong to --train")
    subjects = [
        _subject(
            f, _concerning(f, settings) if len(formulas) > 1 else settings,
            _concerning(f, assumed) if len(formulas) > 1 else assumed, heads, dialect, bca,
        )
        for f in formulas
    ]  # fmt: skip
    folder = writable_folder(out)
    with _watching(len(subjects), len(subjects)) as notice:
        result = examine(
            subjects, train=train, preset=preset, baselines=baselines or BASELINES, text=text,
            store=runs or folder / "runs", seed=seed, notice=notice,
        )  # fmt: skip
    page = write_page(result, folder)
    _emit(result, as_json)
    if not as_json:
        click.echo(f"\npage: {page}")
    undecided = (e.prediction.convergence.verdict.value == "undecided" for e in result.entries)
    return int(any(undecided))


@contextmanager
def _watching(subjects: int, trained: int) -> Iterator[Callable[[str, str, int, int, str], None]]:
    """Progress bars on a terminal, a line as each stage begins elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description:<46}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            whole = bars.add_task("all encodings", total=subjects)
            part = bars.add_task("", total=1)

            def show(name: str, stage: str, done: int, total: int, note: str) -> None:
                if stage == "done":
                    bars.advance(whole)
                elif stage == "notice":
                    bars.console.print(f"{name}: {note}")
                else:
                    bars.update(part, description=f"{name}: {stage}", completed=done, total=total)

            yield show
        return
    seen: set[tuple[str, str]] = set()

    def tell(name: str, stage: str, done: int, total: int, note: str) -> None:
        if stage == "notice":
            click.echo(f"{name}: {note}", err=True)
        elif stage != "done" and (name, stage) not in seen:
            seen.add((name, stage))
            begun = sum(s == "train" for _, s in seen)
            what = f"training {begun} of {trained}" if stage == "train" else f"measuring {stage}"
            click.echo(f"{name}: {what}", err=True)

    yield tell


@contextmanager
def _board(title: str, count: int) -> Iterator[Callable[[Job, str, int, int, str], None]]:
    """A live table of the jobs that run on a terminal, a line for each event elsewhere."""
    ends = ("finished", "failed", "held", "lost")
    if not sys.stderr.isatty():

        def tell(job: Job, stage: str, done: int, total: int, note: str) -> None:
            if stage in (*ends, "started", "notice") and note != "before":
                click.echo(f"{job.name}: {stage}" + (f", {note}" if note else ""), err=True)

        yield tell
        return
    from rich.console import Console
    from rich.live import Live
    from rich.markup import escape
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    states: dict[str, str] = {}
    running: dict[str, tuple[Job, str, int, int, str]] = {}
    console = Console(stderr=True)

    def table() -> Table:
        now = list(states.values())
        line = f"{title}: {now.count('finished')} of {count} jobs finished"
        for state, what in (("failed", "failed"), ("held", "held by other processes")):
            line += f", {now.count(state)} {what}" if state in now else ""
        grid = Table(title=escape(line), title_justify="left", box=None, show_header=False)
        for job, stage, done, total, note in list(running.values()):
            bar = ProgressBar(total=max(total, 1), completed=done, width=24)
            named = (job.name, job.configuration.preset.name, stage)
            grid.add_row(*map(escape, named), bar, escape(note))
        return grid

    with Live(console=console, get_renderable=table, refresh_per_second=4, transient=True):

        def show(job: Job, stage: str, done: int, total: int, note: str) -> None:
            if stage in ends:
                running.pop(job.key, None)
                states[job.key] = stage
            elif stage != "notice":
                running[job.key] = (job, stage, done, total, note)
            if stage in ("failed", "lost", "notice"):
                console.print(f"{job.name}: {stage}, {note}", markup=False, highlight=False)

        yield show


if __name__ == "__main__":
    main()
