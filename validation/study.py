"""A study: what the theory predicts of encodings, and what trained models measure, together.

`predict` needs no torch; `study(f, train=True)` trains a small model for each encoding and for
each baseline on the same text and seed. `findings` says in words, computed from the numbers, what
came true. `survey` does the same for any list of encodings, as the report on the catalogue does.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from farfield.numerics.comparison import compare_tails
from farfield.numerics.depth import LayeredReceptiveField, layered_receptive_field
from farfield.numerics.horizon import Horizon, dtype_horizon
from farfield.numerics.leak import Leak, leak
from farfield.numerics.receptive_field import (
    Bracket,
    Enclosure,
    Exact,
    ReceptiveField,
    theoretical_receptive_field,
)
from farfield.numerics.resolution import Resolution, attention_resolution
from farfield.numerics.windows.toeplitz import Window, certified_window
from farfield.theory.convergence import Convergence, Verdict, check_convergence
from farfield.theory.encodings import Encoding, encoding, encodings
from farfield.theory.results import InputError, Result, plain
from farfield.validation.configuration import (
    TRAINABLE,
    Configuration,
    Preset,
    preset,
    require_torch,
    variants,
)
from farfield.validation.runs import Store, write

EPS = ("1/10", "1/100", "1/1000")
PLACE_EPS = ("1/10", "1/1000", "1e-6", "1e-12")
DTYPES = ("fp16", "bf16", "fp32")
WINDOW_ERRORS, LOGIT_BOUND, VALUE_BOUND = ("1/10", "1/100"), 1, 1
BASELINES = ("alibi", "nope")
TOLERANCE = 0.05
"""Of Definition 0.1 [Q]: the relative increase of perplexity that still counts as extrapolating."""

Notice = Callable[[str, str, int, int, str], None]
"""Called as `notice(encoding, stage, done, total, note)`."""


@dataclass(frozen=True)
class Prediction(Result):
    """What the theory says of one encoding, before any training.

    Fields:
        name: of the encoding in the study, with its variant.
        convergence: the verdict with its proof.
        receptive_fields: the TRF at each of `EPS` where the series converges, else empty.
        row_fields: the finite-row TRF at each of `EPS` for rows of `row_length` tokens.
        leaks: the prior mass beyond `trained` tokens for rows of each tested length.
        horizons: the dtype horizon in each of `DTYPES`.
        resolution: the attention resolution of a row of `trained` tokens, at scale 1.
        windows: the certified window at each of `WINDOW_ERRORS`, logits within `LOGIT_BOUND`,
            values within `VALUE_BOUND`; empty where every head diverges, since none has one.
        layered: the predicted gradient ERF of a model of `layers` layers, approximate.
        missing: why a number is absent.
    """

    name: str
    encoding: Encoding
    convergence: Convergence
    receptive_fields: tuple[ReceptiveField, ...] = ()
    row_fields: tuple[ReceptiveField, ...] = ()
    leaks: tuple[Leak, ...] = ()
    horizons: tuple[Horizon, ...] = ()
    resolution: Resolution | None = None
    windows: tuple[Window, ...] = ()
    layered: LayeredReceptiveField | None = None
    layers: int = 4
    trained: int = 64
    row_length: int = 1024
    missing: str = ""

    @property
    def windowless(self) -> bool:
        """Whether no head has a certified window, since every series diverges."""
        heads = self.convergence.heads or (self.convergence,)
        return all(h.verdict is Verdict.DIVERGES for h in heads)

    @property
    def longest_leak(self) -> float | None:
        """The leak to the longest test length."""
        return self.leaks[-1].value if self.leaks else None

    def text(self) -> str:
        lines = [f"{self.name}: {self.convergence.verdict}"]
        for f in (*self.receptive_fields, *self.row_fields):
            where = f"; row of {f.length}" if f.length else ""
            why = f"  ({f.reason})" if f.reason else f"  [{f.label}]"
            lines.append(f"  TRF({f.eps}{where}) = {tokens_text(f)}{why}")
        lines += [f"  {line}" for k in self.leaks for line in str(k).splitlines()]
        for h in self.horizons:
            if h.tokens is None:
                lines.append(f"  dtype horizon ({h.dtype}): none or unknown ({h.reason})")
            else:
                lines.append(f"  {str(h).splitlines()[0]}")
        lines += [f"  {str(self.resolution).splitlines()[0]}"] if self.resolution else []
        if self.layered is not None:
            lines += [f"  {line.strip()}" for line in str(self.layered).splitlines()[:2]]
        if self.windowless:
            lines.append("  certified window: none, the series diverges  [theorem]")
        for w in self.windows:
            lines += [f"  {line.strip()}" for line in str(w).splitlines()[:2]]
        return "\n".join([*lines, *([f"  {self.missing}"] if self.missing else [])])


@dataclass(frozen=True)
class Entry:
    """One encoding of a study: its prediction, and its run where it was trained."""

    prediction: Prediction
    run: Mapping[str, Any] | None = None

    def measurement(self, bca: bool = False) -> Mapping[str, Any] | None:
        """What was measured with causal attention, or with blockwise causal attention."""
        for m in (self.run or {}).get("measurements", ()):
            if (m["inference"]["bca"] is not None) is bca:
                return dict(m)
        return None


@dataclass(frozen=True)
class Study(Result):
    """Predictions and measurements of several encodings; see `study`.

    Fields:
        entries: one an encoding.
        preset: architecture and schedule of the models; its length is the training length.
        corpus: the text they were trained on, None without training.
        title: of the page.
        asked: names of the entries the question was about; the others are baselines.
        place: these among the catalogue.
        claims: the ledger of claims, where it was asked for.
    """

    entries: tuple[Entry, ...]
    preset: Preset
    corpus: Mapping[str, Any] | None = None
    title: str = "Study"
    asked: tuple[str, ...] = ()
    place: Place | None = None
    claims: tuple[Result, ...] = ()

    @property
    def lengths(self) -> tuple[int, ...]:
        """Training length and tested lengths, in tokens."""
        return (self.preset.length, 4 * self.preset.length, 16 * self.preset.length)

    def text(self) -> str:
        parts = []
        for e in self.entries:
            proof = [str(e.prediction.convergence)] if e.prediction.name in self.asked else []
            parts.append("\n".join([*proof, str(e.prediction)]))
        parts += [str(self.place)] if self.place else []
        return "\n\n".join([*parts, *(f"[{f.label}] {f.sentence}" for f in findings(self))])

    def fields(self) -> dict[str, Any]:
        return super().fields() | {"findings": [plain(f) for f in findings(self)]}

    def _repr_html_(self) -> str:
        parts = []
        for e in self.entries:
            asked = e.prediction.name in self.asked
            parts += [e.prediction.convergence._repr_html_()] * asked
            parts.append(e.prediction._repr_html_())
        parts += [self.place._repr_html_()] if self.place else []
        items = "".join(
            f"<li>{escape(f.sentence)} [{escape(f.label)}]</li>" for f in findings(self)
        )
        return "".join([*parts, f"<ul>{items}</ul>" * bool(items)])

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `study.json` into a folder, which is made if need be.

        Raises:
            InputError: the folder cannot be written to.
        """
        place = writable_folder(folder) / "study.json"
        write(place, json.dumps(self.to_dict(), indent=1, ensure_ascii=False).encode())
        return place


def writable_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, made if need be.

    Raises:
        InputError: it cannot be made or written to.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"output folder {str(folder)!r}: {error.strerror}; accepted: a folder that may be "
            "made and written to"
        ) from None
    if not os.access(place, os.W_OK):
        raise InputError(f"output folder {str(folder)!r} cannot be written to")
    return place


def predict(
    subject: Encoding, name: str | None = None, *, eps: Sequence[str] = EPS, trained: int = 64,
    evaluated: Sequence[int] = (256, 1024), layers: int = 4,
) -> Prediction:  # fmt: skip
    """Verdict, receptive fields and leak of one encoding.

    Args:
        subject: the encoding.
        name: how to call it; its own name if not given.
        eps: shares of mass left outside.
        trained: training length in tokens.
        evaluated: test lengths in tokens.
        layers: of the model whose gradient ERF is predicted.

    >>> predict(encoding("type1")).receptive_fields[1].tokens
    61
    """
    convergence = check_convergence(subject)
    row_length = max(evaluated)
    base = Prediction(
        name or subject.name, subject, convergence, trained=trained, row_length=row_length,
        layers=layers,
    )  # fmt: skip
    if not subject.biases or subject.bca is not None:
        return dataclasses.replace(base, missing="no additive bias, so no TRF and no leak")
    if subject.free:
        wanted = ", ".join(p.name for p in subject.free[:4])
        return dataclasses.replace(base, missing=f"TRF and leak need values for {wanted}")
    fields: tuple[ReceptiveField, ...] = ()
    if convergence.verdict is Verdict.CONVERGES:
        fields = tuple(theoretical_receptive_field(subject, list(eps)))
    return dataclasses.replace(
        base,
        receptive_fields=fields,
        row_fields=tuple(theoretical_receptive_field(subject, list(eps), length=row_length)),
        leaks=tuple(leak(subject, trained, length) for length in evaluated),
        horizons=tuple(dtype_horizon(subject, kind) for kind in DTYPES),
        resolution=attention_resolution(subject, trained),
        layered=layered_receptive_field(subject, layers, length=row_length),
        windows=() if base.windowless else tuple(
            certified_window(subject, error, LOGIT_BOUND, VALUE_BOUND) for error in WINDOW_ERRORS
        ),
    )  # fmt: skip


# -- the place among the catalogue ----------------------------------------------------------------


@dataclass(frozen=True)
class Rank:
    """One line of a `Place`: an encoding, its verdict, its TRF at each of `PLACE_EPS`."""

    name: str
    bias: str
    verdict: Verdict
    receptive_fields: tuple[ReceptiveField, ...]
    asked: bool = False


@dataclass(frozen=True)
class Relation:
    """The tail of an encoding that was asked about, against a reference head.

    Fields:
        asked, reference: their names.
        lighter: the name of the one with the lighter tail, None where that is not known.
        crossover: its receptive field is the smaller one for every eps up to this one.
        reason: why something is not known.
    """

    asked: str
    reference: str
    lighter: str | None
    crossover: float | None
    reason: str = ""

    def words(self) -> str:
        """The relation seen from the encoding that was asked about."""
        if self.lighter is None:
            return "equal or unknown"
        kind = "lighter" if self.lighter == self.asked else "heavier"
        if self.crossover is None:
            return f"{kind} for every small eps"
        if self.crossover == 1:
            return f"{kind} at every eps"
        return f"{kind} for eps up to {self.crossover:.3g}"


@dataclass(frozen=True)
class Place(Result):
    """Encodings among reference heads of the catalogue, those that need the fewest keys first.

    The order is that of TRF(eps) at the last of `PLACE_EPS`, certified; encodings whose series
    diverges stand at the end, in the order of the catalogue. `relations` compares the tails of
    those asked about with each reference that converges, for all eps at once.
    """

    ranks: tuple[Rank, ...]
    relations: tuple[Relation, ...] = ()

    def text(self) -> str:
        lines = [f"place among the catalogue, by TRF({PLACE_EPS[-1]}) [certified]"]
        for r in self.ranks:
            shown = ", ".join(tokens_text(f) for f in r.receptive_fields) or str(r.verdict)
            lines.append(f"  {'>' if r.asked else ' '} {r.name:<24}  {shown}")
        for name in dict.fromkeys(r.asked for r in self.relations):
            lines.append(f"tail of {name} [certified]")
            own = [r for r in self.relations if r.asked == name]
            lines += [f"    {r.words():<32} {r.reference}" for r in own]
        return "\n".join(lines)


def tokens_text(field: ReceptiveField) -> str:
    """A number of tokens in a few characters.

    >>> tokens_text(theoretical_receptive_field("-1.2*log(1+n)", "1e-6"))
    '5.71e+29'
    """
    if isinstance(field.answer, Exact):
        tokens = field.answer.tokens
        if tokens < 10**7:
            return str(tokens)
        exponent = len(str(tokens)) - 1 if tokens.bit_length() < 10_000 else None
        if exponent is None:
            return f"> 2^{tokens.bit_length() - 1}"
        return f"{tokens // 10 ** (exponent - 2) / 100:.2f}e+{exponent}"
    if isinstance(field.answer, Enclosure):
        depth = field.answer.depth
        return "exp(" * depth + f"{field.answer.low:.4g}" + ")" * depth
    if isinstance(field.answer, Bracket):
        return f"at least {field.answer.low}"
    return "infinite" if field.verdict == "diverges" else "unknown"


def references() -> tuple[tuple[str, str, Encoding], ...]:
    """One reference head of each additive encoding of the catalogue: label, name, encoding."""
    alibi = encoding("alibi")
    sandwich, smoothed = encoding("sandwich"), encoding("sandwich_smoothed")
    return (
        ("window of 64", "window", encoding("window", w=64)),
        ("ALiBi, slope 1/2", "alibi", encoding(alibi.head(1))),
        ("ALiBi, slope 1/256", "alibi", encoding(alibi.head(8))),
        ("Type 2", "type2", encoding("type2")),
        ("KERPLE-power 1, 1/2", "kerple_power", encoding("kerple_power", r1=1, r2="1/2")),
        ("Type 1", "type1", encoding("type1")),
        ("KERPLE-log 6/5, 1", "kerple_log", encoding("kerple_log", r1="6/5", r2=1)),
        ("Sandwich smoothed, c = 1", "sandwich_smoothed", encoding(smoothed.head(1))),
        ("Example 2", "example2", encoding("example2")),
        ("Example 1", "example1", encoding("example1")),
        ("Sandwich, c = 8", "sandwich", encoding(sandwich.head(8))),
        ("NoPE", "nope", encoding("nope")),
    )


def place(predictions: Sequence[Prediction]) -> Place | None:
    """Where encodings stand among the references; None if none of them has receptive fields.

    >>> [r.name for r in place([predict(encoding("-n/3"))]).ranks][:3]
    ['ALiBi, slope 1/2', 'window of 64', '-n/3']
    """
    own = [
        Rank(p.name, _bias_text(p.encoding), p.convergence.verdict, (), True)
        for p in predictions
        if p.row_fields
    ]
    if not own:
        return None
    subjects = {p.name: p.encoding for p in predictions}
    ranks = []
    for rank in own:
        fields = theoretical_receptive_field(subjects[rank.name], PLACE_EPS)
        ranks.append(dataclasses.replace(rank, receptive_fields=fields))
    for label, _, subject in references():
        fields = theoretical_receptive_field(subject, PLACE_EPS)
        verdict = Verdict(fields[0].verdict)
        ranks.append(Rank(label, _bias_text(subject), verdict, fields))
    ranks.sort(key=_weight)
    return Place(tuple(ranks), tuple(_relations(subjects, ranks)))


def _relations(subjects: Mapping[str, Encoding], ranks: Sequence[Rank]) -> Iterator[Relation]:
    """The tail of the widest head of each encoding that was asked about, against the references."""
    convergent = [r for r in ranks if r.verdict is Verdict.CONVERGES]
    heads = {label: subject.head(1) for label, _, subject in references()}
    for own in (r for r in convergent if r.asked):
        last = own.receptive_fields[-1]
        tokens = [f.tokens or 0 for f in last.heads]
        bias = subjects[own.name].head(tokens.index(max(tokens)) + 1 if tokens else 1)
        for other in (r for r in convergent if not r.asked):
            try:
                found = compare_tails(bias, heads[other.name])
            except InputError as error:
                yield Relation(own.name, other.name, None, None, str(error))
                continue
            lighter = {"a": own.name, "b": other.name}.get(found.lighter or "")
            yield Relation(own.name, other.name, lighter, found.crossover, found.reason)


def _bias_text(subject: Encoding) -> str:
    return str(subject.head(1)) if subject.num_heads == 1 else subject.formula_text()


def _weight(rank: Rank) -> tuple[int, float]:
    """Sorts by the last receptive field; ties and divergent series keep their order."""
    answer = rank.receptive_fields[-1].answer
    if isinstance(answer, Exact):
        return 0, answer.tokens
    if isinstance(answer, Enclosure):
        return answer.depth, answer.low
    return 100, 0.0


def demo_encodings() -> tuple[tuple[str, Encoding], ...]:
    """The eight encodings of the demonstration, by name."""
    return (
        ("alibi", encoding("alibi")),
        ("type1", encoding("type1")),
        ("type2", encoding("type2")),
        ("example1", encoding("example1")),
        ("window 16", encoding("window", w=16)),
        ("nope", encoding("nope")),
        ("rope", encoding("rope")),
        ("sinusoidal", encoding("sinusoidal")),
    )


def catalogue(length: int = 64) -> tuple[tuple[str, Encoding], ...]:
    """Every encoding of the catalogue, with the options a model of this length needs.

    The window is 16 tokens; the buckets of T5 are length/4 up to length/2, so that each is
    trained; `alibi_log` has slope 2 (it has no values of its own).
    """
    options: dict[str, dict[str, Any]] = {
        "window": {"w": 16},
        "t5": {"buckets": min(32, length // 4), "max_distance": min(128, length // 2)},
        "alibi_log": {"m": 2},
    }
    names = {"window": "window 16", "alibi_log": "alibi_log m=2"}
    return tuple((names.get(k, k), encoding(k, **options.get(k, {}))) for k in encodings())


def study(
    f: Any,
    *,
    train: bool = False,
    preset: str = "demo",
    baselines: Sequence[Any] = BASELINES,
    text: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] = "runs",
    seed: int = 0,
    notice: Notice | None = None,
) -> Study:
    """Everything that is known of an idea for a bias: theory and, if asked, a measurement.

    Verdict with proof, receptive fields and their asymptotics, leak, dtype horizons, attention
    resolution, and the place among the catalogue. With `train`, a small model is trained with it
    and with each baseline, on the same text and seed, and what was predicted is compared with what
    was measured.

    Args:
        f: a formula in `n`, a name of the catalogue, an `Encoding`, or a sequence of them.
        train: whether to train models (needs torch; minutes).
        preset: architecture and schedule; its length is the training length of the leak.
        baselines: what to train beside it, as `f`.
        text: a file or folder to train on; the standard library's sources if None.
        store: folder of the runs; a finished run is never repeated.
        seed: of the weights and the order of the text.
        notice: told how far it is.

    Raises:
        InputError: no encoding, or one that cannot be read or trained; torch missing.

    >>> s = study("-2*log(1+n)")
    >>> print(s.entries[0].prediction.receptive_fields[1].tokens, s.asked)
    61 ('-2*log(1+n)',)
    """
    asked = named_encodings(f)
    if not asked:
        raise InputError("a study needs at least one formula or encoding")
    extra = named_encodings(baselines) if train else ()
    known = {name for name, _ in asked}
    subjects = (*asked, *(pair for pair in extra if pair[0] not in known))
    result = survey(
        subjects, train=[name for name, _ in subjects] if train else (), preset_name=preset,
        text=text, store=store, seed=seed, title=f"Study of {', '.join(n for n, _ in asked)}",
        notice=notice,
    )  # fmt: skip
    names = tuple(name for name, _ in asked)
    found = place([e.prediction for e in result.entries if e.prediction.name in names])
    return dataclasses.replace(result, asked=names, place=found)


def named_encodings(f: Any) -> tuple[tuple[str, Encoding], ...]:
    """Pairs of a name and an encoding, of one or several; numbered where names repeat.

    >>> [name for name, _ in named_encodings(["alibi", "-n", "alibi"])]
    ['alibi', '-n', 'alibi (2)']
    """
    many = isinstance(f, (list, tuple))
    pairs: dict[str, Encoding] = {}
    for subject in map(encoding, f if many else (f,)):
        base = subject.name + (f" {subject.dialect}" if _unusual(subject) else "")
        name, count = base, 1
        while name in pairs:
            count += 1
            name = f"{base} ({count})"
        pairs[name] = subject
    return tuple(pairs.items())


def _unusual(subject: Encoding) -> bool:
    if subject.dialect is None:
        return False
    return subject.dialect != encoding(subject.name).dialect


def survey(
    subjects: Sequence[tuple[str, Encoding]],
    *,
    train: Sequence[str] = (),
    preset_name: str = "demo",
    text: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] = "runs",
    seed: int = 0,
    title: str = "Study",
    ledger: bool = False,
    notice: Notice | None = None,
) -> Study:
    """Predict every encoding, and train a small model for those named.

    Args:
        subjects: pairs of a name and an encoding.
        train: names of those to train; RoPE is measured with blockwise causal attention too.
        preset_name: architecture and schedule (`demo`, `tiny`, ...).
        text: a file or folder to train on; the standard library's sources if None.
        store: folder of the runs; a finished run is never repeated.
        seed: of the weights and the order of the text.
        title: of the page.
        ledger: whether to decide the claims of the three papers too (half a minute).
        notice: told how far it is.

    Raises:
        InputError: an encoding that cannot be trained, a text that is too short, a folder that
            cannot be written to, torch missing.
    """
    chosen = preset(preset_name)
    unknown = sorted(set(train) - {name for name, _ in subjects})
    if unknown:
        raise InputError(f"{unknown[0]!r} is not among the encodings of the study")
    lengths = (4 * chosen.length, 16 * chosen.length)
    corpus, configurations = None, {}
    if train:  # everything that can be wrong is found before the first step
        corpus = _text(text)
        for name, subject in subjects:
            if name in train:
                configurations[name] = Configuration(
                    subject, corpus, chosen, seed, inference=variants(subject, chosen.length)
                )
        require_torch()
        writable_folder(store)
    entries = []
    for name, subject in subjects:
        if notice:
            notice(name, "theory", 0, 1, "")
        prediction = predict(
            subject, name, trained=chosen.length, evaluated=lengths, layers=chosen.layers
        )
        run = None
        if name in configurations:
            run = _run(name, configurations[name], Store(store), notice)
        entries.append(Entry(prediction, run))
        if notice:
            notice(name, "done", 1, 1, "")
    described = corpus.describe() if corpus else None
    return Study(tuple(entries), chosen, described, title, claims=_decided(notice, ledger))


def _decided(notice: Notice | None, wanted: bool) -> tuple[Result, ...]:
    if not wanted:
        return ()
    from farfield.validation.claims import claims

    if notice:
        notice("claims", "claims of the papers", 0, 1, "")
    return tuple(claims())


def trainable(subject: Encoding) -> bool:
    """Whether a model can be trained with it (surrogates of rotations are not meant to be)."""
    values = all(p.learned or p.init[0] == p.init[1] for p in subject.free)
    return subject.mechanism in TRAINABLE and values and "surrogate" not in subject.name


def _text(text: str | os.PathLike[str] | None) -> Any:
    from farfield.validation.corpus import corpus

    return corpus(text)


def _run(
    name: str, configuration: Configuration, store: Store, notice: Notice | None
) -> dict[str, Any]:
    from farfield.validation.experiment import train_and_measure

    def progress(stage: str, done: int, total: int, note: str) -> None:
        if notice:
            notice(name, stage, done, total, note)

    return train_and_measure(configuration, store, progress)


# -- what came true -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """A sentence computed from the numbers of a study, with its label."""

    sentence: str
    label: str
    numbers: Mapping[str, Any]


def last_token_ratio(measurement: Mapping[str, Any]) -> tuple[int, float, float, float]:
    """(length, ratio, low, high) of the last-token perplexity at the longest length."""
    rows = [p for p in measurement["perplexity"] if p["protocol"] == "last token"]
    row = max(rows, key=lambda p: p["length"])
    return row["length"], row["ratio"], row["ratio_low"], row["ratio_high"]


def findings(s: Study) -> tuple[Finding, ...]:
    """What the theory predicted and whether it came true, in words."""
    measured = [(e, m) for e in s.entries if (m := e.measurement()) is not None]
    if not measured:
        return ()
    found = [_by_verdict(measured), _out_of_scope(s, measured), _leak_rank(measured)]
    found += [_field_rank(measured), _mass_rank(measured), _bounds(measured)]
    return tuple(f for f in found if f is not None)


Measured = list[tuple[Entry, Mapping[str, Any]]]


def _by_verdict(measured: Measured) -> Finding | None:
    table: dict[str, dict[str, list[str]]] = {}
    length = 0
    for e, m in measured:
        verdict = e.prediction.convergence.verdict.value
        if verdict not in ("converges", "diverges"):
            continue
        length, ratio, *_ = last_token_ratio(m)
        kept = "kept" if ratio - 1 < TOLERANCE else "lost"
        table.setdefault(verdict, {"kept": [], "lost": []})[kept].append(
            f"{e.prediction.name} {ratio:.3f}"
        )
    if not table:
        return None
    empty: dict[str, list[str]] = {"kept": [], "lost": []}
    c, d = table.get("converges", empty), table.get("diverges", empty)
    right = len(c["kept"]) + len(d["lost"])
    total = sum(len(v) for row in table.values() for v in row.values())
    text = (
        f"Read as a forecast of extrapolation, as Qin et al. do, the verdict is right for {right} "
        f"of {total} encodings: the last-token perplexity at {length} tokens rises by less than "
        f"{TOLERANCE:.0%} over that at the training length for {_list(c['kept'])} among those that "
        f"converge" + (f" (not for {_list(c['lost'])})" if c["lost"] else "")
        + f", and rises by more for {_list(d['lost'])} among those that diverge"
        + (f" (not for {_list(d['kept'])})" if d["kept"] else "")
        + ". The theorem itself speaks of one layer's outputs, not of perplexity."
    )  # fmt: skip
    return Finding(text, "measured", {"table": table, "right": right, "n": total})


def _list(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def _out_of_scope(s: Study, measured: Measured) -> Finding | None:
    parts, numbers = [], {}
    for e, m in measured:
        if e.prediction.convergence.verdict is not Verdict.OUT_OF_SCOPE:
            continue
        length, ratio, *_ = last_token_ratio(m)
        part = f"{e.prediction.name} has ratio {ratio:.2f} at {length} tokens"
        numbers[e.prediction.name] = ratio
        blocked = e.measurement(bca=True)
        if blocked is not None:
            again = last_token_ratio(blocked)[1]
            part += f", and {again:.3f} with blockwise causal attention, whose support is bounded"
            numbers[e.prediction.name + " + bca"] = again
        parts.append(part)
    if not parts:
        return None
    text = "The theorem says nothing of the encodings outside its scope: " + "; ".join(parts) + "."
    return Finding(text, "measured", numbers)


def _rank(pairs: list[tuple[float, float]]) -> tuple[float, float, int] | None:
    """Spearman's rank correlation, its p-value (exact to 8 pairs), and n."""
    if len(pairs) < 3 or len({a for a, _ in pairs}) < 2 or len({b for _, b in pairs}) < 2:
        return None
    from farfield.validation.statistics import rank_correlation

    found = rank_correlation([a for a, _ in pairs], [b for _, b in pairs], resamples=200)
    return found.rho, found.p, found.n


def _leak_rank(measured: Measured) -> Finding | None:
    pairs = [
        (share, last_token_ratio(m)[1])
        for e, m in measured
        if (share := e.prediction.longest_leak) is not None
    ]
    return _ranked(
        pairs, "the leak from the training length to the longest test length (worst head)",
        "the last-token perplexity ratio",
    )  # fmt: skip


def _field_rank(measured: Measured) -> Finding | None:
    pairs = []
    eps = 0.0
    for e, m in measured:
        if e.prediction.encoding.biases:
            field = m["attention"][0]
            eps = field["eps"]
            pairs.append((field["trf"], field["tokens"]))
    return _ranked(
        pairs, f"the finite-row TRF({eps:g}) (mean over heads and the measured rows)",
        "the attention ERF of the trained models",
    )  # fmt: skip


def _mass_rank(measured: Measured) -> Finding | None:
    pairs = [(m["gradient"]["mass"], last_token_ratio(m)[1]) for _, m in measured]
    return _ranked(
        pairs, "the share of the input gradient on the training length",
        "the last-token perplexity ratio",
    )  # fmt: skip


def _ranked(pairs: list[tuple[float, float]], one: str, other: str) -> Finding | None:
    rank = _rank(pairs)
    if rank is None:
        return None
    rho, p, n = rank
    weight = "significant at 0.05" if p < 0.05 else "not significant at 0.05"
    text = (
        f"Rank correlation of {one} with {other}: Spearman's rho = {rho:.2f} over {n} encodings, "
        f"one seed (p = {p:.2g}, {weight})."
    )
    return Finding(text, "measured", {"rho": rho, "p": p, "n": n})


def _bounds(measured: Measured) -> Finding:
    checks = sum(m["bounds"]["checks"] for _, m in measured)
    violations = sum(m["bounds"]["violations"] for _, m in measured)
    verdict = "none is violated" if violations == 0 else f"{violations} are VIOLATED"
    text = (
        "The bounds of the attention ERF by the TRF (two-sided, and Jensen's), which hold for "
        f"every model, were checked {checks:,} times on sampled rows: {verdict}."
    )
    return Finding(text, "theorem, checked on data", {"checks": checks, "violations": violations})
