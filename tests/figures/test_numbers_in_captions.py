"""Numbers in captions and axes, beside the table of results."""

import math
import re

import numpy as np
import pytest

from farfield.figures.exhibit import NoResults
from farfield.figures.gallery import recompute
from farfield.figures.index import INDEX
from farfield.figures.papers import measured_figures
from farfield.figures.papers.farfield import hold_and_use, levels, mixtures
from farfield.figures.priors import against_critical, kept_share, weights
from farfield.figures.style import spoken
from farfield.theory.answers.blocks import Weight
from farfield.theory.encodings import encoding
from farfield.validation.results import results


def test_perplexities_are_compared_from_the_training_length():
    values = {
        "alibi": {32: {0: 9.0}, 64: {0: 1.0, 1: 3.0}, 1024: {0: 1.0, 1: 3.05}},
        "rope": {32: {0: 0.5}, 64: {0: 2.0}, 1024: {0: 6.0}},
    }
    told = measured_figures.kept(values, 64)
    assert told == "From 64 to 1024 tokens perplexities hold for ALiBi; they rise for RoPE 3-fold."


def test_attention_fields_are_shares_of_their_rows():
    drawing = measured_figures.attention_fields(
        results(), "qin2024.fig5", "alibi", "kerple_log", "type2"
    )
    rows = [dict(zip(drawing.data.columns, row, strict=True)) for row in drawing.data.rows]
    least = min(row["eps"] for row in rows)
    lengths = {row["row"] for row in rows}
    assert (
        f"All but {least:g} of the attention needs a share of the {lengths.pop()} tokens"
        in (drawing.caption)
        and not lengths
    )
    for name, title in (("alibi", "ALiBi"), ("kerple_log", "KERPLE-log"), ("type2", "Type 2")):
        own = [row for row in rows if row["encoding"] == name and row["eps"] == least]
        assert own and all(row["row"] != 64 for row in own)
        share = np.mean([row["attention ERF"] / row["row"] for row in own])
        assert f"{share:.0%} for {title}" in drawing.caption, drawing.caption


def numbers(text):
    return [float(x.replace(",", "")) for x in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def test_captions_of_our_models_are_read_off_their_points():
    drawing = mixtures()
    ratio = {row[:2]: row[2] for row in drawing.data.rows}
    assert f"from {ratio['1/4', 0]:.2f} to {ratio['1/4', 1]:.2f}" in drawing.caption
    assert max(k for _, k in ratio) == 8 and {s for s, _ in ratio} == {"1/2", "1/4", "1/16"}

    drawing = levels()
    short = [row for row in drawing.data.rows if row[1] == 1000]
    best = [a for a in short if not any(b[3] < a[3] and b[4] < a[4] for b in short)]
    names = " or ".join(spoken(row[0]) for row in sorted(best, key=lambda row: row[3]))
    assert f"none of {len(short)} biases" in drawing.caption and f"than {names}," in drawing.caption
    assert f"{sum(row[2] for row in drawing.data.rows)} models" in drawing.made

    drawing = hold_and_use()
    learned = [row for row in drawing.data.rows if row[2] == "true"]
    well = [row for row in learned if row[3] >= 0.5]
    known = [row for row in well if row[4] is not None]
    assert numbers(drawing.caption)[:2] == [len(well), len(learned)]
    assert f"measured for {len(known)} of these; it holds for all" in drawing.caption
    assert all(row[4] <= 1.05 for row in known) and {row[1] for row in learned} >= {1, 2}


def test_the_share_that_the_nearest_keep_is_that_of_the_sums():
    shown = [("half", encoding("-n/64"), 0), ("log", encoding("-log(1+n)"), 1)]
    curve = kept_share(shown)
    lines = {str(line.name): dict(zip(line.x, line.y, strict=True)) for line in curve.lines}
    n = np.arange(10**6)
    for name, p in (("half", -n / 64), ("log", -np.log1p(n)), ("no bias", 0.0 * n)):
        mass = np.exp(p).cumsum()
        for length in (x for x in lines[name] if x <= len(n)):
            wanted = mass[63] / mass[int(length) - 1]
            assert lines[name][length] == pytest.approx(wanted, rel=1e-6), (name, length)
    assert "ALiBi 1/64" not in lines, "it is shown under its own name"
    assert min(lines["log"]) == 64 and max(lines["log"]) == round(64 * 10**7.2)
    within = [x for x in lines["half"] if x < 20_000]
    assert within == [round(64 * 10 ** (k / 10)) for k in range(25)]
    heads = kept_share([("alibi", encoding("alibi", heads=2), 0)])
    assert {str(line.name) for line in heads.lines} >= {"head 1", "head 2"}
    assert [str(x.name) for x in heads.lines if x.weight is Weight.STRONG] == ["head 2"]


def test_weights_against_the_critical_one_are_those_of_the_formula():
    curve = against_critical([("own", encoding("-2*log(1+n)"))])
    own, *_ = (line for line in curve.lines if str(line.name) == "own")
    assert own.x[0] == 2 and own.y == pytest.approx([max(x**-2.0, 1e-11) for x in own.x])
    others = {str(line.name): line for line in curve.lines if line.weight is Weight.CONTEXT}
    known = {"ALiBi, slope 1/2", "ALiBi, slope 1/256", "NoPE"}
    assert {*others} == known and all(x.told for x in others.values())
    assert others["NoPE"].y == (1,) * len(others["NoPE"].x)
    edge = curve.lines[-1]
    assert edge.name == "critical 1/n" and curve.frame == (1e-8, 2)
    assert edge.y == (1 / edge.x[0], 1 / edge.x[1]) == (1 / 2, 1 / 4097)
    asked = against_critical([("own", encoding("-log(1+n)"))])
    assert asked.lines[-1].name == "exactly critical" and (asked.log_x, asked.log_y) == (True, True)
    several = list(weights(encoding("[-n; -n/8]"), "two"))
    assert several[0].y[:3] == pytest.approx([math.exp(-k / 8) for k in (1, 2, 3)])


# -- every caption of a measured figure and of a printed table, beside its data -------------------


def means(rows, x, y):
    """The mean over seeds of a column by encoding and x, in the order of the rows."""
    found = {}
    for row in rows:
        found.setdefault(row["encoding"], {}).setdefault(row[x], []).append(row[y])
    return {
        name: {at: float(np.mean(each)) for at, each in by.items()} for name, by in found.items()
    }


def of_perplexity(rows, trained):
    by_name = means(rows, "length", "perplexity")
    longest = max(row["length"] for row in rows)
    yield f"From {trained} to {longest} tokens perplexities"
    for name, by in by_name.items():
        ratio = by[max(by)] / by[trained]
        yield spoken(name) + (f" {ratio:.3g}-fold" if ratio > 1.05 else "")


def of_windows(rows, trained):
    cases = {}
    for row in rows:
        case = cases.setdefault((row["encoding"], row["window"]), {})
        case.setdefault(row["mode"], []).append(row["perplexity"])
    sliding, apart = "sliding window", "nonoverlapping window"
    better = [np.mean(c[sliding]) <= np.mean(c[apart]) for c in cases.values()]
    yield f"lower perplexity in {sum(better)} of {len(better)} cases"
    yield "(stride 1)"


def of_gradient(rows, trained):
    if "nearest tokens" in rows[0]:
        for name, by in means(rows, "nearest tokens", "gradient share").items():
            if trained in by:
                yield f"{by[trained]:.0%} for {spoken(name)}"
        return
    models = {}
    for row in rows:
        share = models.setdefault((row["trained"], row["seed"]), {0: 0.0})
        share[row["position"]] = row["cumulative gradient"]
    for n in sorted({n for n, _ in models}):
        near = []
        for share in (share for (m, _), share in models.items() if m == n):
            within = [p for p in share if p and abs(p - n) <= n / 8]
            near.append(share[max(within)] - share[min(within) - 4])
        yield f"{np.mean(near):.0%} where that is {n}"


def of_fields(rows, trained):
    eps, (length,) = min(row["eps"] for row in rows), {row["row"] for row in rows}
    least = [row | {"share": row["attention ERF"] / length} for row in rows if row["eps"] == eps]
    yield f"All but {eps:g} of the attention needs a share of the {length} tokens"
    for name, by in means(least, "eps", "share").items():
        yield f"{by[eps]:.0%} for {spoken(name)}"


def of_print(rows, trained):
    known = [r for r in rows if r["within 5%"] and r["verdict"] in ("converges", "diverges")]
    agree = sum((r["verdict"] == "converges") == (r["within 5%"] == "yes") for r in known)
    if known:
        yield f"agree in {agree} of {len(known)} rows"
    alone = {r["trained"] for r in rows}
    if len(alone) == 1:
        yield f"trained on {alone.pop()} tokens"


READ = {
    "measured_figures.perplexity": of_perplexity,
    "measured_figures.windows": of_windows,
    "measured_figures.cumulative_gradient": of_gradient,
    "measured_figures.gradient_by_position": of_gradient,
    "measured_figures.attention_fields": of_fields,
    "printed_tables.perplexities": of_print,
}
WALK = [e.id for e in INDEX.values() if e.draw in READ]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", WALK)
def test_each_number_of_a_caption_is_one_of_its_data(name):
    try:
        drawing = recompute(INDEX[name])
    except NoResults:
        return
    rows = [dict(zip(drawing.data.columns, row, strict=True)) for row in drawing.data.rows]
    of_rows = re.search(r"in rows of (\d+)", drawing.made)
    read = [*READ[INDEX[name].draw](rows, int(of_rows[1]) if of_rows else None)]
    for words in read:
        assert words in drawing.caption
    rest = drawing.caption
    for words in sorted([*read, *map(spoken, {row["encoding"] for row in rows})], key=len)[::-1]:
        rest = rest.replace(words, "")
    assert not numbers(rest), rest


def test_every_drawing_of_results_is_walked():
    measured = {e.draw for e in INDEX.values() if e.kind == "measured" and e.paper != "farfield"}
    assert measured - READ.keys() == {"measured_figures.absent", "measured_tables.measured_table"}
