"""Every verb of a formula x every status: the exit code follows from the status alone."""

import json

import pytest

from farfield.cli import main
from farfield.exits import exit_code

HARD = "-log(n+2)*(2+sin(n**2))-log(log(n+2))"  # converges, and no enclosure is known
CODES = {"exact": 0, "enclosed": 0, "infinite": 0, "out_of_scope": 0, "unknown": 1}
CASES = [
    ("check -n", "exact"), ("check -log(1+n)", "exact"), ("check -a*log(1+n)", "exact"),
    ("check rope", "out_of_scope"), ("check -n^2*abs(sin(n))", "unknown"),
    ("trf -n --eps 1/2", "exact"), ("trf -log(1+n) --eps 1/2", "infinite"),
    ("trf -log(3+n)-2*log(log(3+n)) --eps 1e-6", "enclosed"),
    ("trf rope --eps 1/2", "out_of_scope"),
    ("trf alibi --bca 8 --eps 1/2", "out_of_scope"), (f"trf {HARD} --eps 1/2", "unknown"),
    ("trf -n --layers 2", "exact"), ("trf -101/100*log(1+n) --layers 4", "enclosed"),
    ("trf rope --layers 2", "out_of_scope"),
    ("leak -n --trained 8", "exact"), ("leak -log(1+n) --trained 8", "exact"),
    ("leak rope --trained 8", "out_of_scope"), (f"leak {HARD} --trained 8", "unknown"),
    ("leak -n --dtype fp16", "exact"), ("leak nope --dtype fp16", "infinite"),
    ("leak rope --dtype fp16", "out_of_scope"), ("leak cos(n) --dtype fp16", "unknown"),
    ("window -n --error 1/10 --logit-bound 1", "exact"),
    ("window -log(1+n) --error 1/10 --logit-bound 1", "infinite"),
    ("window rope --error 1/10 --logit-bound 1", "infinite"),
    ("window alibi --bca 8 --error 1/10 --logit-bound 1", "out_of_scope"),
    (f"window {HARD} --error 1/10 --logit-bound 1", "unknown"),
    ("resolution -n", "exact"), ("resolution rope", "out_of_scope"), ("resolution n", "unknown"),
    ("compare -n -2*n", "exact"), ("compare -n-sin(n) -n", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize("words, status", CASES, ids=[words for words, _ in CASES])
def test_the_exit_code_follows_the_status(capsys, words, status):
    with pytest.raises(SystemExit) as stop:
        main([*words.split(), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == status and stop.value.code == CODES[status]
    known = status not in ("unknown", "out_of_scope")
    assert (answer["label"] is not None) == known
    if status != "exact":
        assert set(answer["reason"]) == {"code", "sentence"}


def test_one_unknown_answer_of_several_is_enough():
    class Of:
        def __init__(self, status):
            self.status = status

    for status, code in CODES.items():
        assert exit_code([Of("exact"), Of(status)]) == code
    assert exit_code([object()]) == 0


def test_a_bug_of_ours_is_an_internal_error_and_no_answer(capsys, monkeypatch):
    from farfield.theory import convergence

    def broken(*_, **__):
        raise TypeError("a seeded bug")

    monkeypatch.setattr(convergence, "encoding", broken)
    monkeypatch.delenv("FARFIELD_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as stop:
        convergence_verdict = main(["check", "-n"])
        assert convergence_verdict is None
    err = capsys.readouterr().err
    assert stop.value.code == 3 and err.startswith("farfield: internal error, TypeError: a seeded")
    assert err.count("\n") == 1
