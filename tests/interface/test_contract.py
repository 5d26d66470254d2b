"""What every public answer keeps to, over the whole catalogue."""

import json
import math
import re

import pytest
from battery import BATTERY

import farfield
from farfield.theory.answers.notation import shortened

LEAKED = re.compile(
    r"\b(Eq|Ne|Piecewise|And|Or|Mod|Abs|Max|Min|Lookup)\(|\boo\b|\*\*|\bzoo\b|SymPy"
)


ASKED = (
    (farfield.theoretical_receptive_field, ("1/10",), {}),
    (farfield.theoretical_receptive_field, ("1/10",), {"length": 64}),
    (farfield.leak, (16,), {}),
    (farfield.leak, (16, 64), {}),
    (farfield.price_of_distance, (16,), {}),
    (farfield.price_of_distance, (16,), {"length": 64}),
    (farfield.reach, (7,), {}),
    (farfield.reach, (7,), {"length": 64}),
    (farfield.certified_window, ("1/10", 1, 1), {}),
    (farfield.window_error, (16, 1, 1), {}),
    (farfield.dtype_horizon, ("fp16",), {}),
    (farfield.attention_resolution, (32,), {}),
    (farfield.layered_receptive_field, (2,), {"length": 64}),
)


def answers(subject):
    """One answer of every public question, as far as it may be asked."""
    yield farfield.check_convergence(subject)
    for question, given, options in () if subject.free else ASKED:
        yield question(subject, *given, **options)


def made(name):
    small = {
        "sandwich": {"heads": 2, "d_bar": 8},
        "rope_surrogate": {"d": 4},
        "xpos_surrogate": {"d": 4},
        "kerple_log": {"r1": 2, "r2": 1},
        "kerple_power": {"r1": 1, "r2": "1/2"},
        "window": {"w": 8},
    }
    return farfield.encoding(name, **small.get(name, {}))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", farfield.encodings())
def test_answers_have_the_same_bones(name):
    for answer in answers(made(name)):
        assert len(repr(answer)) <= 200 and "\n" not in repr(answer)
        data = json.loads(answer.to_json())
        assert data["schema"] == 2 and data["kind"] == type(answer).__name__
        assert data["status"] in ("exact", "enclosed", "infinite", "unknown", "out_of_scope")
        known = data["status"] not in ("unknown", "out_of_scope")
        assert (data["label"] is None) != known
        assert data["reason"] is None or set(data["reason"]) == {"code", "sentence"}
        first = str(answer).split("\n  ")[0].replace("\n", " ")
        assert name in first and not LEAKED.search(answer.text(details=True))
        assert answer.text(details=True, unicode=False).isascii()
        assert answer._repr_html_().startswith('<div class="farfield">')
        assert not re.search(r"\b(Eq|Ne|Piecewise)\(", answer._repr_html_())
        with pytest.raises(AttributeError):
            answer.label = "theorem"


@pytest.mark.parametrize("row", BATTERY[::24], ids=lambda row: row["id"])
def test_a_formula_is_answered_in_the_notation_of_mathematics(row):
    subject = farfield.encoding(row["expr"], assumptions=row["params"])
    found = [farfield.check_convergence(subject, budget_s=5), farfield.encoding(subject)]
    try:
        found.append(farfield.certified_window(subject, "1/10", 1, 1))
    except farfield.InputError as error:  # no values, or undefined at n = 0
        assert not LEAKED.search(str(error).replace(subject.name[:60], "it"))
    for answer in found:
        said = answer.text(details=True).replace(shortened(subject.name, 80), "it")
        assert not LEAKED.search(said.replace(subject.name, "it")), said
        assert len(repr(answer)) <= 200 and answer.text(unicode=False).isascii()


def test_conversions_and_order():
    tails = ("-n", "-2*log(1+n)", "-log(3+n)-2*log(log(3+n))", "-log(1+n)")
    fields = [farfield.theoretical_receptive_field(tail, "1e-1") for tail in tails]
    assert [int(fields[0]), int(fields[1]), float(fields[3])] == [3, 6, math.inf]
    assert fields[0] < fields[1] < fields[2] < fields[3] and fields[1] >= 6
    assert 0 < float(farfield.leak("-n", 4)) < 0.1
    verdicts = farfield.Verdict.CONVERGES, f"{farfield.Verdict.DIVERGES}"
    assert verdicts == ("converges", "diverges")
