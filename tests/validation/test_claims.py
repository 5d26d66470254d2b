"""The claims of the papers: each verdict at both ends of the tolerance, and on altered data.

`PYTHONPATH=tests python tests/validation/test_claims.py > evidence.json` prints the numbers beside
each verdict at the lower end, as `tests/data` has them.
"""

import collections
import dataclasses
import fnmatch
import functools
import inspect
import json
import math
import numbers
import random
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from polars import col, when

from farfield.figures.index import INDEX
from farfield.theory.encodings import CATALOGUE
from farfield.validation.papers import (
    qin2024,
    sun2023,
    tables,
    trained_models,
)
from farfield.validation.papers.claim import (
    CHECKS,
    KINDS,
    RANGE,
    Claim,
    Finding,
    Verdict,
    of_sentence,
)
from farfield.validation.papers.ledger import (
    PAPERS,
    checks,
    claim,
    claims,
    counted,
    plain_sentences,
    sections,
)
from farfield.validation.papers.trained_models import Missing, named
from farfield.validation.papers.words import about, by_chance, rank_correlation
from farfield.validation.results import results

FACTS = json.loads((Path(__file__).parents[1] / "pinned/facts.json").read_text("utf-8"))["claims"]
EVIDENCE = json.loads((Path(__file__).parents[1] / "data/evidence.json").read_text("utf-8"))
CHANGES = tomllib.loads((Path(__file__).parents[1] / "pinned/changes.toml").read_text("utf-8"))
EXHIBITS = {name.removesuffix("-measured") for name in INDEX}


def listed(where):
    """The places of a change, one or several."""
    return where if isinstance(where, list) else [where]


def recorded(identifier):
    """The verdict on record: as facts.json has it, with what was meant to change since."""
    verdict = FACTS.get(identifier, {"verdict": None})["verdict"]
    place = f"claims / {identifier} / verdict"
    meant = [
        c["now"]
        for c in CHANGES["change"]
        if any(fnmatch.fnmatchcase(place, where) for where in listed(c["where"]))
        and c.get("was", verdict) == verdict
    ]
    return meant[0] if meant else verdict or asked(identifier, 0.05).pop()


def findings(identifier, *tolerances):
    """What is found at some tolerances; at once where it depends on none; nothing without data."""
    check = CHECKS[identifier]
    tolerant = "tolerance" in inspect.signature(check.decide).parameters
    try:
        return [check.decide(tolerance=t) for t in tolerances] if tolerant else [check.decide()]
    except Missing:
        return []


def asked(identifier, *tolerances):
    """The verdicts of a claim at some tolerances."""
    return {CHECKS[identifier].verdict(f) for f in findings(identifier, *tolerances)} or {
        Verdict.UNTESTED
    }


def leaves(value, at=""):
    """The numbers and words of an evidence, each with its place."""
    if isinstance(value, dict | list | tuple):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for name, part in pairs for k, v in leaves(part, f"{at}/{name}").items()}
    return {at: float(f"{float(value):.6g}") if isinstance(value, numbers.Real) else str(value)}


def evidence(found):
    """What is printed beside a verdict, and how many cases it rests on."""
    return leaves({**found[0].evidence, "n": found[0].n}) if found else {}


@pytest.mark.parametrize("identifier", CHECKS)
def test_a_claim_has_its_verdict_at_both_ends_of_the_tolerance(identifier):
    verdict, found = recorded(identifier), findings(identifier, RANGE[0], RANGE[-1])
    verdicts = {CHECKS[identifier].verdict(f) for f in found} or {Verdict.UNTESTED}
    assert verdicts == {verdict} if verdict != Verdict.DEPENDS else len(verdicts) == 2
    close = functools.partial(pytest.approx, rel=1e-4, abs=1e-9, nan_ok=True)
    kept = EVIDENCE[identifier].items()
    assert evidence(found) == {at: x if isinstance(x, str) else close(x) for at, x in kept}


def test_every_claim_is_recorded_and_stands_in_a_section():
    known = {name for name in FACTS if recorded(name) != "missing"}
    assert set(CHECKS) == {c.id for c in checks()} and known <= set(CHECKS)
    assert sum(len(found) for paper in PAPERS for found in sections(paper).values()) == len(CHECKS)
    for c in CHECKS.values():
        assert c.kind in KINDS and all((c.quote, c.statement, c.against, c.data, c.label))
        assert c.corrected or recorded(c.id) != Verdict.CORRECTION
        assert set(c.about) <= set(CATALOGUE), c.id
        assert {f"{c.paper}.{name}" for name in c.exhibits} <= EXHIBITS, c.id


# -- altered data ---------------------------------------------------------------------------------


def altered(value, **where):
    """Printed tables with other values in the cells that `where` describes; `value` of a cell."""
    read = tables.table

    def table(name):
        cells = read(name)
        hit = [all(getattr(c, k) == v for k, v in where.items()) for c in cells]
        return tuple(
            dataclasses.replace(c, printed=str(value(c))) if h and c.value is not None else c
            for c, h in zip(cells, hit, strict=True)
        )

    return table


ANYHOW = {"chi2023.table7.hidden", "qin2024.table1.sizes"}
"""Claims that read one number of a table without perplexities."""


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_no_reading_of_printed_tables_outlives_numbers_of_chance(share, monkeypatch):
    """All of them are others, or a fifth: neither what is claimed nor its correction holds."""
    left = {c.id for c in checks(kind="printed tables")} - ANYHOW
    readings = (Verdict.HOLDS, Verdict.CORRECTION)
    left = {name for name in left if recorded(name) in readings}
    assert len(left) > 30
    for seed in range(30):

        def another(c, seed=seed):
            draws = random.Random(f"{seed} {c}")  # of the cell, in whatever order it is read
            return draws.randint(1, 99) if draws.random() < share else c.value

        monkeypatch.setattr(tables, "table", functools.cache(altered(another)))
        left = {name for name in left if Verdict.WRONG not in asked(name, 0.05)}
    assert not left


REFUTED = {
    "chi2023.trend": (24, 1),
    "chi2023.alibi.all-increase": (55, 0),
    "chi2023.same-or-explodes": (102, 0),
    "chi2023.erf.rank": (34, 0),
    "chi2023.table2.alibi": (4, 1),
    "chi2023.table3.learned": (13, 0),
    "chi2023.table3.marks": (10, 0),
    "qin2024.def0.1": (4, 0),
    "qin2024.window.printed": (17, 0),
    "sun2023.indicator.printed": (14, 0),
    "sun2023.figure1.rapidly": (5, 4),
    "sun2023.opposite": (21, 1),
    "sun2023.alibi-above-rope": (4, 0),
    "sun2023.interpolation.close": (18, 0),
    "sun2023.table6.lex-best": (20, 2),
    "sun2023.mask-better.printed": (2, 2),
    "sun2023.table3.order": (9, 0),
    "sun2023.table5.increase-2048": (4, 0),
}


def cells_of(paper):
    """Encoding, variant and length of each printed perplexity of a paper."""
    names = (name for name in tables.names() if name.startswith(paper) and "_table" in name)
    cells = [c for name in names for c in tables.table(name) if c.metric == "perplexity"]
    return {(c.encoding, c.variant, c.eval_length) for c in cells}


@pytest.mark.parametrize("identifier", REFUTED)
def test_a_correction_fails_where_a_cell_that_it_reads_is_another(identifier, monkeypatch):
    """Of each printed perplexity 99 or 1: how many make it wrong, and how many as printed."""
    found, paper = collections.Counter(), identifier.partition(".")[0]
    for encoding, variant, length in cells_of("" if paper == "qin2024" else paper):
        for value in (99, 1):
            where = {"encoding": encoding, "variant": variant, "eval_length": length}
            with monkeypatch.context() as patch:
                patch.setattr(tables, "table", altered(lambda c, value=value: value, **where))
                found.update(asked(identifier, 0.05))
    assert (found[Verdict.WRONG], found[Verdict.HOLDS]) == REFUTED[identifier]


MEASURED = {
    "qin2024.figure3": ("type1", 0.5),
    "qin2024.figure3.sinusoidal": ("sinusoidal", -9.0),
    "qin2024.figure1.alibi": ("alibi", 0.5),
    "sun2023.rope.experiment": ("rope", -9.0),
    "sun2023.bca.experiment.rope": ("rope", -9.0),
    "sun2023.decrease.experiment": ("xpos", 0.5),
    "chi2023.same-h.experiment": ("alibi equal 6", -9.0),
    "chi2023.beyond.experiment": ("sandwich", 0.5),
    "chi2023.cache.experiment": ("alibi", 0.5),
}


@pytest.fixture
def other_results(monkeypatch):
    """A way to change the results for one test."""

    def change(table):
        monkeypatch.setattr(trained_models, "results", lambda: table)
        trained_models.models.cache_clear()

    yield change
    trained_models.models.cache_clear()


@pytest.mark.parametrize("identifier", MEASURED)
def test_other_losses_beyond_the_training_length_refute_what_holds(identifier, other_results):
    label, nats = MEASURED[identifier]
    beyond = (col("label") == label) & (col("length") > col("trained"))
    other_results(
        results().with_columns(nats=when(beyond).then(col("nats") + nats).otherwise("nats"))
    )
    assert Verdict.HOLDS not in asked(identifier, 0.05)


def test_results_that_do_not_hold_what_is_asked_leave_a_claim_untested(other_results):
    other_results(results().filter(label="alibi", protocol="training"))
    for c in checks(kind="experiment"):
        assert c.run().verdict is Verdict.UNTESTED, c.id
    assert "no such models of experiment 'first'" in claim("qin2024.figure5.types").reason


ALTERED = [
    lambda: qin2024.error_bound(factor=1.5),
    lambda: qin2024.verdict_on_series("-log(1+n)", "converges"),
    lambda: qin2024.verdict_on_series("-2*log(1+n)", "diverges"),
    lambda: sun2023.fits_fp16(base=512, centred=False),
]


@pytest.mark.parametrize("finding", ALTERED)
def test_other_formulas_fail(finding):
    assert not finding().holds


def test_a_finding_follows_from_what_holds():
    assert Finding(True, {}, instead=True).verdict is Verdict.HOLDS
    assert Finding(False, {}, instead=True).verdict is Verdict.CORRECTION
    assert Finding(False, {}).verdict is Verdict.WRONG


def test_our_own_models_refute_no_sentence_about_larger_ones():
    unseen = claim("qin2024.sufficiency.experiment")
    assert unseen.verdict is Verdict.UNSEEN and not unseen.because
    assert "our models are small (small: 4 layers" in unseen.reason
    assert claim("qin2024.sufficiency.printed").verdict is Verdict.WRONG
    against = (Verdict.WRONG, Verdict.CORRECTION)
    assert not [c.id for c in checks(kind="experiment") if recorded(c.id) in against]


def reading(verdict, kind="proof", quote="q"):
    texts = dict.fromkeys(("id", "section", "place", "statement", "against", "data", "label"), "")
    return Claim(quote=quote, kind=kind, verdict=verdict, **texts)


@pytest.mark.parametrize(
    ("readings", "verdict"),
    [
        ([("holds_as_printed", "proof"), ("needs_a_correction", "proof")], "needs_a_correction"),
        ([("holds_as_printed", "proof"), ("not_seen_at_this_scale", "experiment")], None),
        ([("cannot_be_tested", "proof"), ("holds_as_printed", "experiment")], "holds_as_printed"),
        ([("depends_on_the_tolerance", "proof"), ("holds_as_printed", "experiment")], None),
        ([("cannot_be_tested", "proof")], "cannot_be_tested"),
        ([("not_seen_at_this_scale", "experiment"), ("cannot_be_tested", "experiment")], None),
    ],
)
def test_a_sentence_counts_once_by_its_strictest_reading(readings, verdict):
    own = [reading(Verdict(v), kind) for v, kind in readings]
    expected = Verdict(verdict or readings[0][0])
    assert of_sentence(own).verdict is of_sentence(own[::-1]).verdict is expected
    other = reading(Verdict.WRONG, quote="another")
    assert counted([*own, other], plain=2) == {
        v: (v is Verdict.WRONG) + (v is expected) + 2 * (v is Verdict.HOLDS)
        for v in Verdict
        if v in (Verdict.WRONG, expected, Verdict.HOLDS)
    }


def test_sentences_that_plainly_hold_have_no_check():
    plain = plain_sentences()
    assert len(plain) == len({*plain}) and not {*plain} & {(c.paper, c.quote) for c in checks()}
    assert {paper for paper, _ in plain} == {*PAPERS}


# -- what claims read -----------------------------------------------------------------------------


def test_words_are_read_as_they_say():
    assert about(39.1, "40") and not about(0.66, "0.3")
    assert by_chance([1, 2, 3, 4], [1, 2, 3, 4]) == pytest.approx(1 / 24)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) == 0


def test_the_names_and_lengths_of_models():
    assert {m.trained for m in trained_models.models()} == {64}
    assert {m.trained for m in trained_models.models(128)} == {128}
    with pytest.raises(Missing, match="no such models"):
        trained_models.models(3)
    assert {m.name for m in trained_models.models(folder="further/cache")} == {
        "alibi + window 256",
        "sandwich + window 256",
    }
    with pytest.raises(Missing, match="no model 'nothing'"):
        named("alibi", "nothing")
    (alibi,) = named("alibi")
    nats = results().filter(
        experiment="first", label="alibi", mask="", protocol="last token", trained=64, length=256
    )["nats"]
    assert alibi.perplexity()[256] == pytest.approx(math.exp(nats.mean()))


def test_what_our_models_show_instead_is_told_where_it_was_checked():
    unseen = [c for c in checks(kind="experiment") if recorded(c.id) == Verdict.UNSEEN]
    told = [c.id for c in unseen if c.corrected]
    assert len(told) > 3
    assert [name for name in told if findings(name, 0.05)[0].instead] == told


def test_every_experiment_names_its_models_or_counts_its_cases():
    for c in checks(kind="experiment"):
        assert all(found.models or found.n for found in findings(c.id, 0.05)), c.id


def test_a_claim_shows_its_tolerance_and_its_models():
    c = claim("chi2023.erf.coverage")
    assert c.verdict is Verdict.DEPENDS and "5%; " in c.tolerance
    assert "depends on the tolerance" in str(c)
    c = claim("qin2024.figure5.types")
    assert c.scale.startswith("small: 4 layers") and c.n == 2
    assert c.evidence["results"] == ["experiment first"]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [("sun2023", "proof"), *((paper,) for paper in PAPERS)])
def test_the_ledger_needs_no_torch(asked):
    code = (
        "import sys; from farfield.validation.papers.ledger import claims;"
        f"print(len(claims(*{asked}))); assert not {{'torch', 'scipy'}} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(checks(*asked))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: claim("qin2024.lema0.2"), "the nearest of 160: qin2024.lemma0.2"),
        (lambda: claim("nothing at all"), "the nearest of 160: "),
        (lambda: claims("qin"), "paper 'qin' is not known; accepted: qin2024"),
        (lambda: sections("qin"), "paper 'qin' is not known; accepted: qin2024"),
        (lambda: claims(kind="proofs"), "kind 'proofs' is not known; did you mean 'proof'"),
    ],
)
def test_bad_input_is_one_clear_line(refusal, call, message):
    refusal(message, call)


if __name__ == "__main__":
    told = {name: evidence(findings(name, *RANGE[:1])) for name in sorted(CHECKS)}
    print(json.dumps(told, indent=1))
