"""The ledger: the verdict of each claim, and the opposite one when its data are altered."""

import dataclasses
import json
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import sympy
from scipy.stats import spearmanr

from farfield.theory.results import InputError
from farfield.validation.claims import KINDS, Finding, Verdict, checks, claim, claims
from farfield.validation.claims.results import finding_of, read_results, using
from farfield.validation.configuration import Visibility
from farfield.validation.reference.predictions import predictions
from farfield.validation.reference.results import results


def changed(key, printed, **where):
    """A table of the data with another printed value in the cells that `where` describes."""

    def alter(data):
        hits = [c for c in data[key] if all(getattr(c, k) == v for k, v in where.items())]
        assert hits, where
        cells = tuple(
            dataclasses.replace(c, printed=str(printed)) if c in hits else c for c in data[key]
        )
        return {key: cells}

    return alter


def both(*changes):
    """Several changes of the data."""

    def alter(data):
        for change in changes:
            data = data | change(data)
        return data

    return alter


def marker_of(data):
    """The cell whose mark contradicts the means, marked as the means say."""
    return {"cells": tuple(
        dataclasses.replace(c, marker="star")
        if (c.dataset, c.encoding, c.eval_length) == ("GitHub", "ALiBi", 512) else c
        for c in data["cells"]
    )}  # fmt: skip


def erf_of(variant, value):
    def alter(data):
        return {"erf": tuple(
            {**r, "value": str(value)}
            if (r["quantity"], r["variant"]) == ("ERF", variant) else r for r in data["erf"]
        )}  # fmt: skip

    return alter


def windows_only(data):
    kept = ("w=40", "w=80", "w=100", "w=120", "w=160", "w=320")
    return {"erf": tuple(r for r in data["erf"] if r["variant"] in kept)}


def covers_everything(query, key):
    return key <= query


def models(*rows):
    """What the checks of experiments read: name, verdict, ratio, trf, erf, gradient ERF, mass."""
    names = ("name", "verdict", "ratio", "trf", "erf", "tokens", "mass")
    return {"study": tuple(
        dict(zip(names, r, strict=True)) | {"source": "x", "eps": 0.1, "training_length": 64,
            "setting": "tiny", "seeds": 1, "length": 256}
        for r in rows
    )}  # fmt: skip


GOOD = models(
    ("a", "converges", 1.0, 5, 4, 10, 0.9), ("b", "converges", 1.02, 9, 8, 50, 0.8),
    ("sandwich", "diverges", 3.0, 40, 50, 300, 0.6),
)  # fmt: skip
BAD = models(
    ("a", "converges", 4.0, 5, 50, 10, 0.1), ("b", "converges", 1.2, 9, 8, 50, 0.8),
    ("sandwich", "diverges", 1.0, 40, 4, 300, 0.9),
)  # fmt: skip
C, X, R, N = "confirmed", "corrected", "refuted", "not_testable"
PG22 = {"dataset": "PG22"}
WEAK = {"weights": lambda i: [Fraction(1, 2**t) for t in range(i)]}
ONES = {"terms": (1.0,), "logits": (-0.5,)}

# id: (verdict on its data, altered data, verdict on those)
LEDGER = {
    "qin2024.eq7-eq8": (X, {"bias": "Piecewise((0, n < w), (-oo, True))"}, C),
    "qin2024.lemma0.2": (X, WEAK, C),
    "qin2024.thm0.3": (X, WEAK, C),
    "qin2024.thm0.4": (C, {"bias": "-log(1+n)"}, R),
    "qin2024.eq13": (C, {"factor": 1}, R),
    "qin2024.eq17.equality": (X, {"eq17": "q*k/sqrt(d)"}, C),
    "qin2024.eq17.bound": (C, {"exponent": 1}, X),
    "qin2024.cij-bij": (X, ONES, C),
    "qin2024.eq20": (C, {"term": lambda i, t: Fraction(1, i * t)}, R),
    "qin2024.toeplitz": (C, {"mask": lambda i, j: j <= i and j // 4 >= i // 4 - 1}, R),
    "qin2024.window-extrapolates": (C, {"bias": "Piecewise((0, n < 128), (-1, True))"}, R),
    "qin2024.satisfies.alibi": (C, {"general": "-m*log(1+n)"}, R),
    "qin2024.satisfies.kerple-log": (X, {"bias": "-(1+r1)*log(1 + r2*n)"}, C),
    "qin2024.satisfies.kerple-power": (C, {"bias": "-r1*log(1+n)^r2"}, R),
    "qin2024.satisfies.sandwich": (R, {"bias": "alibi"}, C),
    "qin2024.satisfies.sandwich-smoothed": (X, {"bias": "alibi"}, C),
    "qin2024.example1.diverges": (C, {"bias": "-2*log(1+n)"}, R),
    "qin2024.example2.diverges": (C, {"bias": "-log(n+3) - 2*log(log(n+3))"}, R),
    "qin2024.example1.bound": (C, {"term": lambda n: 1 / n**2, "primitive": sympy.log}, R),
    "qin2024.example2.bound": (C, {"primitive": lambda n: sympy.log(n) ** 2}, R),
    "qin2024.thm0.5": (X, {"a": (3, 1), "b": (4, 2, 1, 1)}, C),
    "qin2024.thm0.5.smaller-series": (X, {"a": (9, 1, 1, 1)}, C),
    "qin2024.type1.total": (X, {"bias": "-n*log(2) - log(2)"}, C),
    "qin2024.type1.trf": (X, {"printed": lambda eps: round(6 / math.pi**2 / eps)}, C),
    "qin2024.type1.order": (C, {"bias": "-3*log(1+n)"}, R),
    "qin2024.type2-below-type1.small-eps": (C, {"light": "-log(1+n)*3/2"}, R),
    "qin2024.type2-below-type1.all-eps": (X, {"light": "-n"}, C),
    "qin2024.type-inequality": (C, {"left": lambda x: -x}, R),
    "qin2024.table1.slower": (C, changed("cells", "40.1", encoding="Sliding Window"), R),
    "qin2024.table1.sizes": (X, {"sizes": (16, 32, 64, 128, 256, 512)}, C),
    "qin2024.def0.1": (X, {"values": {512: 29.1, 1024: 28.9, 2048: 28.5}}, C),
    "qin2024.sufficiency.printed": (R, {"tolerance": 100}, C),
    "qin2024.necessity.printed": (R, {"name": "T5"}, C),
    "qin2024.sufficiency.experiment": (N, GOOD, C),
    "qin2024.necessity.experiment": (N, BAD, R),
    "qin2024.trf-trend": (N, GOOD, C),
    **{f"sun2023.table1.translation.{k}": (C, {"mark": m}, X) for k, m in (
        ("sinusoidal", True), ("learned", True), ("rope", False), ("t5", False), ("alibi", False),
        ("lex", False))},
    "sun2023.table1.extrapolation": (
        C, changed("table2", "99", encoding="LeX", eval_length=8192), R),
    "sun2023.eq1.bag-of-words": (X, {"causal": False}, C),
    "sun2023.eq14.linear": (C, {"code": lambda a: (sympy.cos(a), sympy.sin(2 * a))}, R),
    "sun2023.eq14.wavelengths": (X, {"d": 0}, C),
    "sun2023.eq4.monotonicity": (
        X, {"resolution": lambda x: sum(i * w for i, w in enumerate(reversed(x)))}, C),
    "sun2023.table3.range": (R, changed("table3", "0.99", encoding="LeX", eval_length=2048), C),
    "sun2023.table3.order": (
        X, changed("table3", "0.95", encoding="LeX", variant="bca=0", eval_length=2048), C),
    "sun2023.table3.bca": (
        X, changed("table3", "0.91", encoding="LeX", variant="bca=0", eval_length=1024), C),
    "sun2023.bca.identity": (C, {"half": 256}, R),
    "sun2023.bca.support": (C, {"visible": Visibility(window=20)}, R),
    "sun2023.resolution.xpos-above-rope.raw": (C, {"scale": "1/32"}, X),
    "sun2023.resolution.xpos-above-rope.sqrt": (C, {"scale": "1/64", "lengths": (300,)}, X),
    "sun2023.resolution.xpos-above-rope.mean": (X, {"scale": "2"}, C),
    "sun2023.gamma.sub-optimal": (C, {"gamma": "1/1000000", "scales": ("1",)}, R),
    "sun2023.eq6.xpos": (C, lambda d: {"key": d["query"]}, R),
    "sun2023.eq8.rope": (C, {"zeta": 0}, R),
    "sun2023.table4.zeta0": (X, {"zeta": 1.0}, C),
    "sun2023.index-range": (X, {"printed": 32}, C),
    "sun2023.eq11.range": (C, {"gamma": Fraction(-3, 2)}, R),
    "sun2023.algorithm1.base": (X, {"algorithm": "m/B"}, C),
    "sun2023.algorithm1.mask": (X, {"apply": lambda s, m: np.where(m, s, -np.inf)}, C),
    "sun2023.fp16.no-base": (X, {"length": 8}, C),
    "sun2023.fp16.base-512": (X, {"gamma": 2}, C),
    "sun2023.fp16.centred": (C, {"gamma": "1/10"}, R),
    "sun2023.figure2.oscillation": (C, {"gamma": None}, R),
    "sun2023.mask-not-decay": (C, {"masked": {}}, R),
    "sun2023.table2.only-lex": (
        C, changed("cells", "25.54", encoding="LeX", eval_length=4096, **PG22), R),
    "sun2023.table6.only-lex": (
        C, changed("cells", "9", encoding="Alibi", dataset="arXiv", eval_length=4096), R),
    "sun2023.table5.only-lex": (
        R, changed("table5", "27", encoding="RoPE", variant="attention=BCA", eval_length=8192), C),
    "sun2023.table2.lex-best": (
        C, changed("cells", "20", encoding="Alibi", eval_length=2048, **PG22), X),
    "sun2023.table6.lex-best": (
        X, changed("cells", "15.9", encoding="Alibi", dataset="arXiv", eval_length=2048), C),
    "sun2023.table2.stable-advantage": (
        C, changed("table2", "26.6", encoding="Roformer", eval_length=1024, **PG22), R),
    "sun2023.alibi-above-rope": (
        X, both(changed("table2", "26.98", encoding="Alibi", eval_length=1024, dataset="PG22"),
                changed("table2", "15.42", encoding="Alibi", eval_length=1024, dataset="QMSum")),
        C),
    "sun2023.alibi-increases": (X, changed("table2", "13", encoding="Alibi", eval_length=4096), C),
    "sun2023.xpos-without-bca": (X, both(
        changed("table5", "26", encoding="XPos", variant="attention=full", eval_length=2048),
        changed("table5", "25", encoding="XPos", variant="attention=full", eval_length=8192)), C),
    "sun2023.table5.increase-2048": (X, {"about": 1.8}, C),
    "sun2023.table5.increase-8192": (C, {"about": 30.0}, X),
    **{f"sun2023.table5.bca.{k}": (C, {"helps": h}, X) for k, h in (
        ("rope", (False, True)), ("alibi", (True, True)), ("xpos", (True, False)),
        ("absolute", (False, True)))},
    "sun2023.table5.sliding": (
        C, changed("table5", "30", variant="attention=sliding_window", eval_length=2048), R),
    "sun2023.table4.rotation": (C, changed("table4", "27", variant="rotation=0"), R),
    "sun2023.table4.vector": (C, changed("table4", "24", variant="zeta=scalar"), R),
    "sun2023.table4.attention": (X, both(
        changed("table4", "63.99", variant="", eval_length=8192),
        changed("table4", "458.83", variant="zeta=0", eval_length=8192)), C),
    "chi2023.eq3.slopes": (X, {"heads": 16}, C),
    "chi2023.wR.reach": (X, {"reach": lambda w, r: r * (w - 1) + 1}, C),
    "chi2023.wR.threshold": (X, {"reach": lambda w, r: r * w}, C),
    "chi2023.windows.w100": (C, {"tolerance": 0.4}, R),
    "chi2023.alibi.all-increase": (X, both(
        changed("cells", "9.5", variant="h=0", dataset="ArXiv", eval_length=1024),
        changed("cells", "9.5", variant="h=0", dataset="ArXiv", eval_length=2048),
        changed("cells", "9.5", variant="h=0", dataset="ArXiv", eval_length=4096),
        changed("cells", "9.5", variant="h=0", dataset="ArXiv", eval_length=8192),
        changed("cells", "5.6", variant="delta=2", dataset="ArXiv", eval_length=1024)), C),
    "chi2023.tables14.columns": (R, {"columns": ("delta=4", "delta=6", "h=6")}, C),
    "chi2023.same-h": (C, changed("cells", "100", variant="h=2", eval_length=8192), R),
    "chi2023.windows.trade-off": (C, changed("cells", "5", variant="w=40"), R),
    "chi2023.plateau": (C, {"tolerance": 0.001}, R),
    "chi2023.erf.definition": (X, {"pick": max}, C),
    "chi2023.erf.coverage": (C, erf_of("w=100", 768), R),
    "chi2023.erf.rank": (X, windows_only, C),
    "chi2023.erf.alibi-covered": (R, erf_of("delta=0", 768), C),
    "chi2023.table2.alibi": (X, both(
        changed("cells", "6.2", encoding="ALiBi", dataset="ArXiv"),
        changed("cells", "19.8", encoding="ALiBi", dataset="OpenWebText2")), C),
    "chi2023.table2.windowed": (
        C, changed("cells", "5.0", encoding="Windowed", dataset="ArXiv", eval_length=2048), X),
    "chi2023.eq6.identity": (
        C, {"product": lambda a, b: sympy.sin(a) * sympy.sin(b) + sympy.cos(a) ** 2}, R),
    "chi2023.eq6.maximum": (C, {"waves": lambda n: np.sin(n[:, None] / np.arange(1, 65))}, R),
    "chi2023.appendixE.constant": (C, {"shift": np.linspace(0, 1, 30)}, R),
    "chi2023.appendixE.index": (X, {"code": "equation"}, C),
    "chi2023.log-fit.points": (X, {"points": 8192}, C),
    "chi2023.log-fit.values": (C, {"dialect": "equation"}, R),
    "chi2023.kerple.case": (X, {"bias": "-33/40*log(1+n)", "options": {}}, C),
    "chi2023.d-bar": (C, {"sizes": (128, 64), "length": 256}, R),
    "chi2023.table3.marks": (X, marker_of, C),
    "chi2023.table3.delta0": (
        C, changed("single", "30", variant="delta=0", dataset="OpenWebText2"), R),
    "chi2023.table3.sandwich-best": (
        C, changed("cells", "5", encoding="ALiBi", dataset="ArXiv", eval_length=2048), R),
    "chi2023.table3.marginal": (
        C, changed("cells", "30", encoding="Sandwich", dataset="OpenWebText2"), R),
    "chi2023.table3.beyond": (
        C, changed("cells", "4.9", encoding="Sandwich", dataset="ArXiv", eval_length=512), R),
    "chi2023.table3.learned": (X, both(*(
        changed("cells", "2", encoding="T5", dataset=d, eval_length=n)
        for d in ("OpenWebText2", "ArXiv", "GitHub") for n in (4096, 8192))), C),
    "chi2023.softmax-shift": (C, {"shift": lambda x, c: x * c}, R),
    "chi2023.table5.sandwich-worse": (
        C, changed("cached", "5.1", encoding="Sandwich", dataset="ArXiv", eval_length=4096), R),
    "chi2023.table5.alibi": (C, changed("cached", "6", encoding="ALiBi", dataset="ArXiv"), R),
    "chi2023.appendixB.constant": (
        C, changed("cells", "6.5", variant="delta=0", dataset="ArXiv", eval_length=8192), R),
    "chi2023.appendixB.cost": (C, {"cost": lambda length, w: length * length}, R),
    "chi2023.appendixB.absolute": (C, {"cost": lambda length, w: w * length}, R),
    "chi2023.table7.hidden": (X, {"table": {"Hidden Size": "768"}}, C),
    "chi2023.table7.parameters": (C, {"width": 64}, R),
    "chi2023.erf.experiment": (N, GOOD, C),
    "chi2023.sandwich.mass": (N, BAD, R),
}  # fmt: skip


@cache
def found(identifier):
    """The claim as the ledger has it, an experiment without results."""
    with using():
        return claim(identifier)


def decided(identifier, altered):
    """The claim on its data with some of them altered."""
    (check,) = (c for c in checks() if c.id == identifier)
    known = {} if check.kind == "experiment" else dict(check.data())
    return check.run(known | (altered(known) if callable(altered) else altered))


def test_every_claim_is_tested_and_ids_are_unique():
    ids = [c.id for c in checks()]
    assert len(set(ids)) == len(ids) >= 60
    assert set(ids) == set(LEDGER)
    assert {c.kind for c in checks()} == set(KINDS)
    assert all(len(c.statement) > 20 and c.place and c.id.startswith(c.paper) for c in checks())


@pytest.mark.parametrize("identifier", LEDGER)
def test_the_verdict_follows_from_the_data(identifier):
    before, altered, after = LEDGER[identifier]
    true = found(identifier)
    assert true.verdict.value == before, true
    other = decided(identifier, altered)
    assert other.verdict.value == after != before, other


@pytest.mark.parametrize("identifier", LEDGER)
def test_what_fails_is_corrected_and_what_is_decided_has_evidence(identifier):
    c = found(identifier)
    assert bool(c.corrected) is (c.verdict in (Verdict.CORRECTED, Verdict.REFUTED))
    assert bool(c.reason) is (c.verdict is Verdict.NOT_TESTABLE)
    assert bool(c.evidence) is (c.verdict is not Verdict.NOT_TESTABLE)
    assert c.label in ("theorem", "certified", "approximate", "measured", "none")
    shown = json.loads(c.to_json())
    wanted = {"id", "paper", "place", "statement", "kind", "verdict", "label", "evidence"}
    assert wanted | {"corrected", "seconds"} <= set(shown) and shown["kind"] == c.kind
    assert c.id in str(c) and c.statement in str(c)


def test_experiments_both_ways():
    for identifier in LEDGER:
        if "experiment" in identifier or identifier in (
            "qin2024.trf-trend",
            "chi2023.sandwich.mass",
        ):
            verdicts = {decided(identifier, study).verdict for study in (GOOD, BAD)}
            assert verdicts == {Verdict.CONFIRMED, Verdict.REFUTED}, identifier


def test_a_finding_makes_the_verdict():
    assert Finding(True, {}).verdict is Verdict.CONFIRMED
    assert Finding(None, {}).verdict is Verdict.NOT_TESTABLE
    assert Finding(False, {}, "x").verdict is Verdict.REFUTED
    assert Finding(False, {}, "x", True).verdict is Verdict.CORRECTED


def test_selection():
    assert {c.paper for c in checks("sun2023")} == {"sun2023"}
    assert {c.kind for c in checks(kind="proof")} == {"proof"}
    told = []
    with using():
        three = claims("qin2024", "experiment", told.append)
    assert three == told and Counter(c.verdict for c in three) == {Verdict.NOT_TESTABLE: 3}


def run_of(name, formula, ratio, trf, erf, seed=0):
    """A run as `train_and_measure` returns it, as far as the checks read it."""
    measurement = {
        "inference": {"bca": None, "window": None},
        "perplexity": [{"protocol": "last token", "length": 256, "ratio": ratio}],
        "attention": [{"eps": 0.1, "trf": trf, "tokens": erf}],
        "gradient": {"tokens": erf, "mass": 0.6, "training_length": 64},
    }
    encoding = {"name": name, "dialect": None, "mechanism": "bias", "heads": [formula]}
    return {"encoding": encoding, "seed": seed, "measurements": [measurement],
            "preset": {"name": "tiny", "layers": 2, "length": 64}}  # fmt: skip


RUNS = [
    run_of("a", "-n", 1.0, 3, 4), run_of("b", "-2*log(n + 1)", 1.5, 9, 9),
    run_of("sandwich", "cos(n)", 2.0, 40, 30), run_of("a", "-n", 1.02, 3, 6, seed=1),
]  # fmt: skip


@pytest.mark.parametrize("form", ["study", "runs", "list"])
def test_results_given_are_read_and_named(tmp_path, form):
    entries = [{"prediction": {"name": r["encoding"]["name"]}, "run": r} for r in RUNS]
    content = {"study": {"kind": "Study", "entries": entries}, "runs": {"runs": RUNS}, "list": RUNS}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(content[form]))
    with using(read_results(path)):
        trend = claim("qin2024.trf-trend")
        assert trend.verdict is Verdict.CONFIRMED
        assert (trend.evidence["models"], trend.evidence["seeds"]) == (3, 2)
        assert claim("qin2024.sufficiency.experiment").verdict is Verdict.REFUTED
        assert claim("qin2024.necessity.experiment").verdict is Verdict.CONFIRMED
        assert claim("chi2023.sandwich.mass").evidence["results"] == ["results.json"]
    with using():
        assert claim("qin2024.trf-trend").verdict is Verdict.NOT_TESTABLE


def test_the_reference_results_are_read_where_no_others_are_given():
    runs = [r for r in results() if r["preset"]["length"] == 64]
    assert len({r["encoding"]["label"] for r in runs}) > 2
    registered = {e["label"]: e["verdict"] for e in predictions()["encodings"] if e["length"] == 64}
    ratios, fields = {}, {}
    for r in runs:
        m = r["measurements"][0]
        longest = max((p for p in m["perplexity"] if p["protocol"] == "last token"),
                      key=lambda p: p["length"])  # fmt: skip
        ratios.setdefault(r["encoding"]["label"], []).append(longest["ratio"])
        fields.setdefault(r["encoding"]["label"], []).append(m["gradient"]["tokens"])
    means = {k: np.mean(v) for k, v in ratios.items()}
    for name, verdict, word in (("sufficiency", "converges", "keep"),
                                ("necessity", "diverges", "lose")):  # fmt: skip
        named = {k for k in means if registered[k] == verdict}
        c = claim(f"qin2024.{name}.experiment")
        kept = {k for k in named if means[k] < 1 + c.evidence["tolerance"]}
        agree = kept if word == "keep" else named - kept
        assert c.evidence["ratios"] == pytest.approx({k: means[k] for k in named})
        assert set(c.evidence[f"{word} their perplexity"]) == agree
        assert c.verdict is (Verdict.CONFIRMED if agree == named else Verdict.REFUTED)
        assert c.evidence["results"] == ["validation/reference"]
        assert c.evidence["seeds"] == max(map(len, ratios.values()))
    c = claim("chi2023.erf.experiment")
    rank = spearmanr([np.mean(fields[k]) for k in means], list(means.values())).statistic
    assert c.evidence["Spearman rank of gradient ERF and loss of perplexity"] == pytest.approx(rank)
    assert c.evidence["setting"] == ["small: 4 layers, 64 tokens"]


def test_results_of_two_training_lengths_are_not_mixed():
    longer = [r | {"preset": r["preset"] | {"length": 128}} for r in RUNS[:2]]
    with using(("x", RUNS + longer)):
        assert {r["setting"] for r in finding_of("last_token")} == {"tiny: 2 layers, 64 tokens"}


def test_encodings_without_a_bias_have_no_receptive_field_to_rank():
    rotated = run_of("rope", "0", 2.0, 99, 50)
    rotated["encoding"] |= {"mechanism": "rotation", "heads": []}
    with using(("x", [*RUNS, rotated])):
        assert claim("qin2024.trf-trend").evidence["models"] == 3


def test_seeds_are_averaged():
    with using(("x", RUNS)):
        (row,) = (r for r in finding_of("last_token") if r["name"] == "a")
    assert row["ratio"] == pytest.approx(1.01) and row["seeds"] == 2
    assert row["verdict"] == "converges"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: claim("qin2024.lema0.2"), "did you mean 'qin2024.lemma0.2'?"),
        (lambda: claim("nothing at all"), "papers: qin2024, sun2023, chi2023"),
        (lambda: claims("qin"), "no paper 'qin'; accepted: qin2024"),
        (lambda: claims(kind="proofs"), "no kind 'proofs'; accepted: proof"),
        (lambda: read_results("/nowhere/study.json"), "cannot read the results"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert message in str(error.value) and "\n" not in str(error.value)


def test_results_that_are_none(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="holds no result"):
        read_results(path)


def test_the_ledger_is_fast():
    assert sum(found(identifier).seconds for identifier in LEDGER) < 60


def test_the_ledger_needs_no_torch():
    code = (
        "import sys; from farfield.validation import claims as room;"
        "print(len([c for kind in room.KINDS[3:] for c in room.claims(kind=kind)]));"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == sum(c.kind in KINDS[3:] for c in checks())
