"""What is said before anything is read, and how much passes the model before the first number."""

import itertools
import re

import pytest

import farfield
from farfield.validation.far_field.cost import staged, timed
from farfield.validation.far_field.halving import reading_plan
from farfield.validation.far_field.model_on_text import Settings, subject_of
from farfield.validation.models.speed import lasting

TRAINED, SHORT, TO = 128, 16, 512
QUESTIONS = {
    "mend": farfield.mend,
    "foresee": farfield.foresee,
    "foresee --quick": farfield.gap_probe,
}


@pytest.mark.parametrize("verb", QUESTIONS)
def test_a_number_comes_within_three_trained_rows(verb, counted, words, tmp_path):
    (model, passed), said = counted, []

    def report(stage, done, total, note=""):
        said.append((passed[0], f"{stage} {note}", total))

    more = {"folder": tmp_path} if verb == "mend" else {}
    QUESTIONS[verb](model, words, to=TO, length=SHORT, progress=report, **more)
    read, text, total = said[0]
    assert total == 0 and re.match(r"about \d+ (s|min)", text) and read <= 4 * SHORT
    first = next(at for at, text, _ in said if re.search(r"[+-]\d\.\d{3}", text))
    assert first <= 3 * TRAINED
    reported = [text for _, text, total in said if total]
    assert reported and all(re.search(r"[+-]\d\.\d{3}", text) for text in reported)


def test_the_time_that_is_said_is_that_of_every_row_of_every_look(counted, words, monkeypatch):
    class Minute:
        def of(self, tokens, pairs):
            return 60.0  # a row under a look

    def report(stage, *_):
        raise StopIteration(stage)

    monkeypatch.setattr("farfield.validation.far_field.foresee.timed", lambda subject: Minute())
    with pytest.raises(StopIteration) as stop:
        farfield.foresee(counted[0], words, to=TO, length=SHORT, progress=report)
    said = re.match(
        r"about (.*): (\d+) groups of (\d+) rows of 16 tokens, three looks", str(stop.value)
    )
    assert said and said[1] == lasting(3 * int(said[2]) * int(said[3]) * 60)


def test_the_work_that_is_said_is_that_of_the_rows_that_are_read(counted, words):
    model, passed = counted
    few = Settings(groups=2, rows=6, last=4)
    subject = subject_of(model, words, SHORT, few)
    timed(subject)
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
