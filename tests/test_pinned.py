"""The check of recorded answers can fail: `make pinned` runs it on all of them."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "pinned"


@pytest.fixture(scope="module")
def check(program):
    return program("tests/pinned/check.py")


def test_another_answer_and_a_missing_case_are_differences(check):
    recorded = {"s": {"a": {"x": 1, "y": None}, "b": {"x": 2}}}
    answered = {"s": {"a": {"x": 1, "y": "inf"}, "c": {"x": 3}}}
    found = list(check.differences(recorded, answered))
    assert found == [("s / a / y", None, "inf"), ("s / b / x", 2, "missing")]
    assert check.meant({"where": "s / * / y", "was": "None", "now": "inf"}, *found[0])
    assert not check.meant({"where": "s / * / y", "now": "0"}, *found[0])


@pytest.mark.parametrize(
    ("now", "changed"),
    [
        (["1.5", "2"], False),
        (["1.6", "1.7"], False),
        (["1.4", "1.7"], True),
        (["1.6", "2.1"], True),
        ("missing", True),
    ],
)
def test_an_enclosure_may_become_tighter_and_nothing_else(check, now, changed):
    recorded, answered = ({"s": {"a": {"enclosure": e}}} for e in (["1.5", "2"], now))
    assert bool(list(check.differences(recorded, answered))) is changed


def test_a_text_is_one_field(check):
    found = list(check.differences({"s": {"a": ["x", "y"]}}, {"s": {"a": ["x", "z"]}}))
    assert found == [("s / a", ["x", "y"], ["x", "z"])]


def test_a_changed_answer_and_a_change_that_nothing_needs_fail(check, monkeypatch, tmp_path):
    (tmp_path / "facts.json").write_text(json.dumps({"s": {"a": {"x": 1}}}))
    (tmp_path / "changes.toml").write_text("")
    answer = {"x": 2}
    monkeypatch.setattr(check, "HERE", tmp_path)
    monkeypatch.setattr(check, "FACTS", {"s": lambda: {"a": answer}})
    assert check.main([]) == 1
    (tmp_path / "changes.toml").write_text(
        '[[change]]\nwhere = "s / a / x"\nwas = "1"\nnow = "2"\n'
    )
    assert check.main([]) == 0
    answer["x"] = 1
    assert check.main([]) == 1
    assert check.main(["s"]) == 0
