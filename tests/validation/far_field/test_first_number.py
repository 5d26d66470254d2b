"""What is said before anything is read, and how much passes the model before the first number."""

import itertools
import re

import numpy as np
import pytest

import farfield
from farfield.validation.far_field.cost import staged, timed
from farfield.validation.far_field.halving import reading_plan
from farfield.validation.far_field.model_on_text import Settings, subject_of
from farfield.validation.models import speed
from farfield.validation.models.perplexities import model_perplexity
from farfield.validation.models.speed import lasting

TRAINED, SHORT, TO, ROWS = 128, 16, 512, 6
FAR, LONG = {"to": TO, "length": SHORT}, {"length": TRAINED, "segments": ROWS}
AT_ONCE = r"about \d+ (s|min)", 4 * SHORT, r" [+-]\d\.\d{3}"
OF_ALL = "about 1 s: ", 64 + speed.SHORT, ""
"""What is said first, what is read before at most, and the form of a number."""
QUESTIONS = {
    "mend": (farfield.mend, FAR, AT_ONCE),
    "foresee": (farfield.foresee, FAR, AT_ONCE),
    "foresee --quick": (farfield.gap_probe, FAR, AT_ONCE),
    "perplexity": (
        lambda model, words, **more: model_perplexity(model, [32, TRAINED], text=words, **more),
        {"samples": ROWS},
        OF_ALL,
    ),
    "window": (farfield.smallest_window, {"length": 32, "segments": ROWS}, OF_ALL),
    "gradient": (farfield.empirical_receptive_field, LONG | {"kind": "gradient"}, OF_ALL),
    "attention": (farfield.empirical_receptive_field, LONG | {"kind": "attention"}, OF_ALL),
}


@pytest.mark.parametrize("verb", QUESTIONS)
def test_the_time_is_said_before_rows_are_read_and_a_number_within_three_of_them(
    verb, counted, words, tmp_path
):
    (model, passed), said, (question, how, told) = counted, [], QUESTIONS[verb]

    def report(stage, done, total, note=""):
        said.append((passed[0], f"{stage} {note}", total))

    more = {"folder": tmp_path} if verb in ("mend", "window") else {}
    question(model, words, progress=report, **how, **more)
    (begin, before, number), (read, text, total) = told, said[0]
    assert total == 0 and re.match(begin, text) and read <= before
    assert sum(text.startswith("about") for _, text, _ in said) == 1
    assert next(at for at, text, _ in said if re.search(number, text)) <= 3 * TRAINED
    reported = [text for _, text, total in said if total]
    assert reported and all(re.search(number, text) for text in reported)
    if verb == "window":
        most = re.search(rf"at most (\d+) windows on {ROWS} rows of ", text)
        assert len(said) - 1 <= int(most[1]) < 2 * len(said)


class Sum:
    """Seconds: as many as tokens and pairs of queries and keys."""

    def of(self, tokens, pairs):
        return tokens + pairs


@pytest.mark.parametrize("verb", ["foresee", "foresee --quick"])
def test_the_time_that_is_said_is_that_of_every_row_of_every_look(counted, verb, monkeypatch):
    def report(stage, *_):
        raise StopIteration(stage)

    where = "foresee" if verb == "foresee" else "gap_probe"
    monkeypatch.setattr(f"farfield.validation.far_field.{where}.timed", lambda subject: Sum())
    words = np.arange(9000) % 97
    with pytest.raises(StopIteration) as stop:
        QUESTIONS[verb][0](counted[0], words, to=TO, length=SHORT, progress=report)
    subject = subject_of(counted[0], words, SHORT)
    looks = (subject.settings.main, subject.settings.check, subject.settings.third)
    each = sum(sum(staged(subject, (32, 64, 128, 256, TO), look)) for look in looks)
    time, read = 12 * 16 * each, "12 groups of 16 rows of 16 tokens, three looks"
    if verb != "foresee":  # by themselves, and at each length
        time = 4 * 6 * (SHORT + SHORT**2 / 2)
        read = "4 rows of 16 tokens at each of 5 lengths, more where costs begin"
    assert str(stop.value) == f"about {lasting(time)}: {read}"


def test_the_work_that_is_said_is_that_of_the_rows_that_are_read(counted, words):
    model, passed = counted
    few = Settings(groups=2, rows=6, last=4)
    subject = subject_of(model, words, SHORT, few)
    opened = passed[0]
    timed(subject)
    assert passed[0] == opened + 2 * SHORT  # one row, twice
    before, tokens, lengths = passed[0], 0, (32, 64, TO)
    for sampling in (few.main, few.check, few.third):
        subject.ratios(lengths, sampling)
        tokens += len(subject.groups) * few.rows * staged(subject, lengths, sampling)[0]
    begun = 2 * len(subject.groups) * few.rows * SHORT  # the rows alone are read once for all looks
    assert tokens - begun == passed[0] - before


def test_the_unchanged_model_is_probed_once(counted, words, tmp_path, monkeypatch):
    model, passed = counted
    said, planned = [], []

    def plan(*asked):
        planned.append(asked[-1])
        return reading_plan(*asked)

    monkeypatch.setattr("farfield.validation.far_field.mend.reading_plan", plan)

    def report(stage, done, total, note=""):
        if stage == "settings":
            said.append(passed[0])
            assert total == planned[0]  # the plan counts what is probed
        if stage == "rows":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        farfield.mend(model, words, to=TO, length=SHORT, folder=tmp_path, progress=report)
    assert len(said) > 9 and {b - a for a, b in itertools.pairwise(said)} == {SHORT}
