"""Every number of a study beside the question that it answers, or the line that it is from."""

import csv
import dataclasses

import numpy as np
import pytest

import farfield
from farfield.numerics.search import Enclosure, Exact
from farfield.theory.answers.answer import Label
from farfield.theory.answers.blocks import Curve, Note, Sentence, Table, written
from farfield.theory.answers.notation import terminal
from farfield.theory.answers.writers.svg import COLOURS
from farfield.theory.convergence import Verdict
from farfield.theory.encodings import encoding
from farfield.validation.results import LAST
from farfield.validation.study.demo import row as demo_row
from farfield.validation.study.place import (
    PLACE_EPS,
    REFERENCES,
    Place,
    Rank,
    _weight,
    _written,
    place,
    ranked_references,
)
from farfield.validation.study.prediction import predict
from farfield.validation.study.study import Studied, Study

SLOW = "-n/64"
ROW, TRAINED = 100, 32


def test_each_row_of_a_prediction_is_the_answer_to_its_question():
    p = predict(encoding(SLOW), trained=TRAINED, tested=(64, ROW), layers=3)
    rows = {row[:2]: str(row[2]) for row in p._rows()}
    direct = {}
    for eps in ("1/10", "1/100", "1/1000"):
        for name, row in (("whole series", None), (f"row of {ROW} keys", ROW)):
            direct[f"TRF({eps})", name] = farfield.theoretical_receptive_field(
                SLOW, eps, length=row
            ).tokens
    for name, row in (("whole series", None), (f"row of {ROW} keys", ROW)):
        direct["reach of 7 nats", name] = f"{farfield.reach(SLOW, 7, length=row).farthest} back"
    for tested in (64, ROW):
        direct["leak", f"32 to {tested}"] = f"{farfield.leak(SLOW, TRAINED, tested).value:.3g}"
    for dtype in ("fp16", "bf16", "fp32"):
        direct["dtype horizon", dtype] = farfield.dtype_horizon(SLOW, dtype).tokens
    resolution = farfield.attention_resolution(SLOW, TRAINED)
    name = "attention resolution"
    direct[name, "row of 32 tokens, scale 1"] = f"{resolution.value:.6g}"
    direct[name, "limit of long rows"] = f"{resolution.limit:.6g}"
    deep = farfield.layered_receptive_field(SLOW, 3, length=ROW)
    direct["layered receptive field", f"3 layers, row of {ROW} tokens"] = deep.tokens
    near = farfield.forecast(SLOW, trained=TRAINED, tested=ROW, layers=3)
    direct["perplexity ratio, others", f"32 to {ROW}"] = f"{near.ratio:.4g}"
    for error in ("1/10", "1/100"):
        width = farfield.certified_window(SLOW, error, 1, 1).width
        direct["certified window", f"error ≤ {error}"] = width
    assert rows == {key: str(value) for key, value in direct.items()}
    whole, row = (direct["TRF(1/10)", name] for name in ("whole series", f"row of {ROW} keys"))
    assert whole > row, "the two differ, so that one in place of the other would fail"
    far = direct["leak", f"32 to {ROW}"], str(direct["certified window", "error ≤ 1/10"])
    assert p.numbers() == (SLOW, Verdict.CONVERGES, str(direct["TRF(1/100)", "whole series"]), *far)
    _, *beside, lead = (terminal(b.text) for b in p.sentences())
    assert beside == [terminal(b.text) for b in p.beside.blocks()] and "7 nats" in lead
    assert f" up to {ROW - 1} tokens back in a row of {ROW} keys" in lead
    assert p.beside.forecast is p.forecast and p.beside.field is p.receptive_fields[1]
    assert (p.name, p.beside.name, p.beside.trained) == (SLOW, SLOW, TRAINED)


def test_of_many_heads_the_first_two_and_the_last_two_are_shown():
    formula = "[-n; -n/2; -n/4; -n/8; -n/16]"
    cells = {row[:2]: row[3] for row in predict(encoding(formula), trained=16)._rows()}
    field = farfield.theoretical_receptive_field(formula, "1/10")
    resolution = farfield.attention_resolution(formula, 16)
    window = farfield.certified_window(formula, "1/10", 1, 1)
    for key, each in {
        ("TRF(1/10)", "whole series"): [f"{head.tokens}" for head in field.heads],
        ("attention resolution", "row of 16 tokens, scale 1"): [
            f"{x.value:.3g}" for x in resolution.heads
        ],
        ("certified window", "error ≤ 1/10"): [f"{head.width}" for head in window.heads],
    }.items():
        assert cells[key] == ", ".join([*each[:2], "…", *each[-2:]])


def test_a_bias_that_is_known_in_some_rows_has_the_numbers_of_these():
    p = predict(encoding(-np.arange(101.0) / 64), "mine", trained=32, tested=(32, 64, 101, 200))
    fields = [
        farfield.theoretical_receptive_field(SLOW, x, length=101).tokens
        for x in ("1/10", "1/100", "1/1000")
    ]
    assert (p.row_length, [field.tokens for field in p.row_fields]) == (101, fields)
    assert [r.farthest for r in p.reaches] == [farfield.reach(SLOW, 7, length=101).farthest]
    assert [terminal(b.text).count("tokens hold") for b in p.sentences()].count(1) == 1
    assert [(x.tested, x.value) for x in p.leaks] == [
        (n, pytest.approx(farfield.leak(SLOW, 32, n).value)) for n in (64, 101)
    ]
    verdict = p.convergence.verdict
    assert p.numbers() == ("mine", verdict, f"{fields[1]} in rows of 101", "", "")
    assert not p.drawable and not p.windows


def lines(scale, mask=""):
    """What a model was measured to lose: made-up numbers, each another one."""
    losses = [
        {"protocol": LAST, "length": n, "ratio": scale * k, "low": scale * k - 0.1}
        | {"high": scale * k + 0.2, "nats": 2 * k}
        for k, n in ((3, 64), (1, 16), (2, 32))
    ]
    fields = [
        {"protocol": kind, "length": 64, "eps": eps, "erf": 1000 * eps + k, "trf": 3000 * eps + k}
        for k, kind in enumerate(("attention", "gradient"))
        for eps in (0.1, 0.01)
    ]
    told = {"text": "a text", "text_sha256": "abc", "preset": "tiny", "seed": 5, "mask": mask}
    return [{**told, **line} for line in (*losses, *fields)]


def test_what_was_measured_is_told_as_its_lines_have_it():
    p = predict(encoding(SLOW), trained=16, tested=(64,))
    plain = Studied(p).with_lines([*lines(1.5), *lines(1.25, "BCA")])
    assert plain.lost() == (64, 4.5, 4.4, 4.7, 6) and plain.lost(bca=True)[1] == 3.75
    beside = plain.prediction.beside.blocks()
    trained_here = (
        "Trained here on rows of 16 tokens: perplexity at 64 tokens is 4.500 times that at 16 "
        "(4.400 to 4.700), a loss of 6.00 nats a token."
    )
    told = [(terminal(x.text), x.label) for x in beside if isinstance(x, Sentence)]
    assert (trained_here, Label.MEASURED) in told
    assert plain.row(False) == (SLOW, "4.500", "4.400 to 4.700", "6.000", "10.0", "30.0", "11")
    assert plain.row(True)[:2] == (f"{SLOW} + BCA", "3.750")
    sizes = {"layers": 2, "width": 32, "heads": 8, "steps": 30, "batch": 4, "length": 16}
    whole = Study((plain,), {**sizes, "measure": {"lengths": (16, 64)}}, asked=(SLOW,))
    curve, table, *_, last = whole.measured()
    assert isinstance(curve, Curve) and isinstance(table, Table)
    assert curve.x_name == "context length (tokens), trained on 16" and curve.at == (16, 32, 64)
    assert curve.y_name == "perplexity / perplexity at 16" and curve.log_x and curve.log_y
    first, other = curve.lines
    told = [(line.name, line.colour, line.dash, line.verdict) for line in curve.lines]
    assert told == [(SLOW, 0, 0, "converges"), (f"{SLOW} + BCA", 1, 0, "converges")]
    assert [plain.curve(False, k).dash for k in (len(COLOURS) - 1, len(COLOURS))] == [0, 1]
    flat = Studied(predict(encoding("nope"), trained=16)).with_lines(plain.lines)
    assert [flat.curve(bca, 0).verdict for bca in (False, True)] == ["diverges", "converges"]
    assert table.numeric == (1, 2, 3, 4, 5, 6) and table.title == ("Measured",)
    assert (first.x, first.y) == ((16, 32, 64), (1.5, 3.0, 4.5)) and other.y[-1] == 3.75
    assert first.bars == tuple(pytest.approx((y - 0.1, y + 0.2)) for y in first.y)
    assert [terminal(cell) for cell in table.rows[0]] == [*plain.row(False)]
    assert "nats at 64" in [terminal(cell) for cell in table.header]
    assert terminal(last.text) == (
        "Preset tiny: 2 layers, width 32, 8 heads, 30 steps of 4 rows of 16 tokens, seed 5, on a "
        "text (SHA-256 abc)."
    )
    aside = dataclasses.replace(whole, asked=())
    assert terminal(aside.measured()[0].text) == (
        f"{SLOW}, trained: perplexity at 64 tokens is 4.500 times that at the training length "
        "(4.400 to 4.700), a loss of 6.00 nats a token."
    )
    lead = terminal(aside.lead().text)
    assert "A model of 2 layers, 32 wide, was trained with each of 1 of them" in lead
    assert "rows of 16 tokens and measured on up to 64." in lead
    assert whole.lengths == (16, 64)


def test_a_study_tells_what_it_is_about_and_the_others_in_a_line_each():
    names = (SLOW, "nope", "alibi", "rope")
    entries = tuple(Studied(predict(encoding(name), trained=16, tested=(64,))) for name in names)
    found = Study(entries, {"length": 16, "measure": {"lengths": (16, 64)}}, asked=names[:1])
    assert terminal(found.lead().text) == (
        f"4 encodings; converges: {SLOW}, ALiBi; diverges: NoPE; out of scope: RoPE."
    )
    mine = Studied(predict(encoding("alibi"), "mine", trained=16, tested=(64,)))
    own = dataclasses.replace(found, entries=(mine, *entries[1:3])).lead()
    assert terminal(own.text) == "3 encodings; converges: mine, ALiBi; diverges: NoPE."
    placed = place([predict(encoding(SLOW))])
    nobody = [*dataclasses.replace(found, asked=(), place=placed).blocks()]
    assert nobody[0] == found.lead() and nobody[-3:] == [*placed.blocks()]
    for details, blocks in ((True, found.blocks()), (False, found.brief())):
        assert found.text(details=details) == written(blocks, details=details)
    whole, plain = (found.text(details=True, unicode=sign) for sign in (True, False))
    assert plain.isascii() and "−n/64" in whole
    others = found.blocks()[len(entries[0].prediction.blocks()) :]
    assert [terminal(block.text) for block in others] == [
        "nope: diverges.",
        "alibi: converges.",
        "rope: out of scope.",
    ]
    assert [block.label for block in others] == [
        e.prediction.convergence.label for e in entries[1:]
    ]
    (numbers,) = found.numbers()
    header = ["encoding", "series", "TRF, 99 %", "leak to 64", "window, 1/10"]
    assert [terminal(cell) for cell in numbers.header] == header and numbers.numeric == (2, 3, 4)
    for row, entry in zip(numbers.rows, entries, strict=False):  # a rotation has none
        assert [terminal(cell) for cell in row[::2]] == [*map(str, entry.prediction.numbers()[::2])]
    assert len(numbers.rows) == 3


def test_a_row_of_the_demonstration_leaves_out_what_has_no_number():
    p = predict(encoding(SLOW), trained=16, tested=(64,))
    blind = [{**line, "trf": None} for line in lines(1.5)]
    near = f"{p.forecast.ratio:.2f}" + "*" * (not p.forecast.near)
    cells = SLOW, "converges", "30", "10", near, "4.500 (4.400-4.700)"
    assert demo_row(Studied(p).with_lines(lines(1.5))) == cells
    assert demo_row(Studied(p).with_lines(blind)) == (*cells[:2], "", *cells[3:])
    for none in (None, dataclasses.replace(p.forecast, ratio=None)):
        alone = Studied(dataclasses.replace(p, forecast=none)).with_lines(lines(1.5))
        assert demo_row(alone) == (*cells[:4], "", cells[5])


def test_five_parameters_without_a_value_are_four_and_no_more():
    found = predict(encoding("-(a+b+c+d+f)*n"))
    assert found.missing == "TRF and leak need values for a, b, c, d"
    assert predict(encoding("rope")).longest_leak is None
    assert terminal(predict(encoding("-n"), "mine").sentences()[0].text).startswith("mine: ")
    for name, told in (("0", "infinite"), ("rope", "unknown")):
        assert predict(encoding(name)).numbers()[2] == told
    p = predict(encoding("nope"))
    for reason in ("why", None):
        (leak,) = (dataclasses.replace(x, reason=reason) for x in p.leaks[:1])
        cells = {row[0]: row[3] for row in dataclasses.replace(p, leaks=(leak,))._rows()}
        assert cells["leak"] == (reason or "")
    for name, first in (("rope", Note), ("0", Table)):
        kinds = [type(block) for block in predict(encoding(name))._numbers()]
        assert kinds[0] is first and kinds.count(Table) == (first is Table)


def test_a_place_counts_from_the_narrowest():
    found = place([predict(encoding("-n/3"), "mine"), predict(encoding("-log(1+n)"), "wide")])
    names = [rank.name for rank in found.ranks]
    said = terminal(found.said().text)
    assert said.startswith(
        f"mine is number {names.index('mine') + 1}, wide is number {names.index('wide') + 1} of "
        f"{len(names)} biases"
    )
    mine = found.ranks[names.index("mine")]
    whole = [farfield.theoretical_receptive_field("-n/3", eps).tokens for eps in PLACE_EPS]
    assert [answer.tokens for answer in mine.receptive_fields] == whole
    _, shown, last = found.blocks()
    assert ". farfield compare compares two tails for every eps. The" in terminal(last.text)
    row = [terminal(cell) for cell in shown.rows[names.index("mine")]]
    assert row == ["mine", mine.bias, "converges", *map(str, whole)]
    assert [terminal(shown.header[k]) for k in shown.numeric] == [f"TRF({x})" for x in PLACE_EPS]


def test_one_head_with_a_window_is_enough_for_windows():
    mixed, none = (predict(encoding(f), trained=16, tested=(64,)) for f in ("[-n; 0]", "[0; 0]"))
    assert (mixed.windowless, none.windowless) == (False, True)
    assert len(mixed.windows) == 2 and not none.windows
    assert ("certified window", "", "none") in {row[:3] for row in none._rows()}
    blank = dataclasses.replace(mixed.forecast, ratio=None)
    rows = [*dataclasses.replace(mixed, forecast=blank)._rows()]
    assert [row[2] for row in rows if row[0].startswith("perplexity")] == [None]


def test_what_is_read_of_the_references_is_written_as_it_was(monkeypatch):
    with REFERENCES.open(encoding="utf-8", newline="") as file:
        assert [*csv.reader(file)][1:] == [*map(_written, ranked_references())]
    monkeypatch.setattr("io.text_encoding", lambda given, level=2: given or "ascii")
    assert ranked_references.__wrapped__() == ranked_references()


def test_exact_fields_are_ranked_before_enclosures_and_these_before_none():
    each = Exact(5), Exact(10**6), Enclosure(40.0, 41.0), Enclosure(50.0, 51.0), None
    weights = [_weight(Rank("x", "", Verdict.CONVERGES, (answer,))) for answer in each]
    assert weights == sorted({*weights}) and len(weights) == 5


def test_a_long_formula_is_not_shown_beside_its_name():
    ranks = tuple(Rank(f"{k}", "n" * k, Verdict.DIVERGES, (None,) * 4) for k in (199, 200))
    _, shown, _ = Place(ranks).blocks()
    assert [terminal(row[1]) for row in shown.rows] == ["n" * 199, ""]


def test_the_model_that_learned_least_is_named_where_it_learned_little():
    p = predict(encoding(SLOW), trained=16, tested=(64,))
    for losses, told in (((1.0, 5.4), True), ((5.4, 1.0), True), ((1.0, 1.1), False)):
        each = [[{**x, "nats": nats} for x in lines(1.5)] for nats in losses]
        whole = Study(tuple(Studied(p).with_lines(x) for x in each), {})
        said = [terminal(block.text) for block in whole._untrained()]
        assert [line.startswith("Of the one that learned least: ") for line in said] == [
            True
        ] * told
