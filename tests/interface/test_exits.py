"""Every verb of a formula x every status: the exit code follows from the status alone."""

import importlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import farfield
from farfield.cli import VERBS
from farfield.output import exit_code
from farfield.theory.answers.answer import Answer, Code, Label, Reason, Status
from farfield.theory.answers.blocks import sentence
from farfield.theory.convergence import Verdict

HARD = "-log(n+2)*(2+sin(n**2))-log(log(n+2))"  # converges, and no enclosure is known
CODES = {"exact": 0, "enclosed": 0, "infinite": 0, "out_of_scope": 0, "unknown": 1}
CASES = [
    ("check -n", "exact"),
    ("check -log(1+n)", "exact"),
    ("check -a*log(1+n)", "exact"),
    ("check rope", "out_of_scope"),
    ("check -n^2*abs(sin(n))", "unknown"),
    ("trf -n --eps 1/2", "exact"),
    ("trf -log(1+n) --eps 1/2", "infinite"),
    ("trf -log(3+n)-2*log(log(3+n)) --eps 1e-6", "enclosed"),
    ("trf rope --eps 1/2", "out_of_scope"),
    ("trf alibi --bca 8 --eps 1/2", "out_of_scope"),
    (f"trf {HARD} --eps 1/2", "unknown"),
    ("trf -n --layers 2", "exact"),
    ("trf -101/100*log(1+n) --layers 4", "enclosed"),
    ("trf rope --layers 2", "out_of_scope"),
    ("leak -n --trained 8", "exact"),
    ("leak -log(1+n) --trained 8", "exact"),
    ("leak rope --trained 8", "out_of_scope"),
    (f"leak {HARD} --trained 8", "unknown"),
    ("reach -n --advantage 7", "exact"),
    ("reach -log(1+n) --advantage 7", "exact"),
    ("reach -1000000*n --advantage -1000000", "enclosed"),
    ("reach rope --advantage 7", "out_of_scope"),
    ("reach rope --logit-bound 4 --length 4096", "exact"),
    ("reach fox --logit-bound 4 --length 4096", "out_of_scope"),
    (f"reach {HARD} --advantage 7", "unknown"),
    ("reach -n --distance 500", "exact"),
    ("reach -log(1+n) --distance 500", "infinite"),
    ("reach rope --distance 500", "out_of_scope"),
    ("reach -exp(n) --distance 1000", "enclosed"),
    (f"reach {HARD} --distance 5", "unknown"),
    ("trf -n --dtype fp16", "exact"),
    ("trf nope --dtype fp16", "infinite"),
    ("trf rope --dtype fp16", "out_of_scope"),
    ("trf cos(n) --dtype fp16", "unknown"),
    ("window -n --error 1/10 --logit-bound 1", "exact"),
    ("window -log(1+n) --error 1/10 --logit-bound 1", "infinite"),
    ("window rope --error 1/10 --logit-bound 1", "infinite"),
    ("window alibi --bca 8 --error 1/10 --logit-bound 1", "out_of_scope"),
    (f"window {HARD} --error 1/10 --logit-bound 1", "unknown"),
    ("resolution -n", "exact"),
    ("resolution rope", "out_of_scope"),
    ("resolution n", "unknown"),
    ("forecast n --trained 64 --tested 1k", "unknown"),
    ("forecast rope --bca 32 --trained 64 --tested 1k", "out_of_scope"),
    ("compare -n -2*n", "exact"),
    ("compare -n-sin(n) -n", "unknown"),
]


@pytest.mark.parametrize("words, status", CASES, ids=[words for words, _ in CASES])
def test_the_exit_code_follows_the_status(run, words, status):
    code, out, err = run(*words.split(), "--json")
    answer = json.loads(out)
    assert answer["status"] == status and code == CODES[status]
    assert (err == "") is (words[:5] != "leak "), "a former word says what it is today"
    known = status not in ("unknown", "out_of_scope")
    assert (answer["label"] is not None) == known
    if status != "exact":
        assert set(answer["reason"]) == {"code", "sentence"}


@dataclass(frozen=True, repr=False, kw_only=True)
class Said(Answer):
    """An answer of any status, as every question may have it."""

    value: int | None = None
    verdict: Verdict = Verdict.UNDECIDED
    model: str = "model"

    def blocks(self):
        return (sentence("It is {status}.", self.label, status=self.status),)


MODELS = "validation.models."
QUESTIONS = {
    "check -n": "theory.convergence.check_convergence",
    "check --certificate FILE.v --verify": "theory.certificates.verification.verify_certificate",
    "trf -n": "numerics.receptive_field.theoretical_receptive_field",
    "trf -n --layers 2": "numerics.depth.layered_receptive_field",
    "trf -n --trained 8": "numerics.leak.leak",
    "reach -n --advantage 7": "numerics.price.reach",
    "reach -n --distance 8": "numerics.price.price_of_distance",
    "reach -n --length 64 --logit-bound 4": "numerics.ceiling.attention_ceiling",
    "trf -n --dtype fp16": "numerics.horizon.dtype_horizon",
    "compare -n -2*n": "numerics.comparison.compare_tails",
    "resolution -n": "numerics.resolution.attention_resolution",
    "window -n --error 1/10 --logit-bound 1": "numerics.windows.window.certified_window",
    "window --model FOLDER": MODELS + "smallest_window.smallest_window",
    "perplexity --model FOLDER --length 8": MODELS + "perplexities.model_perplexity",
    "erf --model FOLDER": MODELS + "empirical.empirical_receptive_field",
    "audit FOLDER": MODELS + "audit.audit",
    "study -n --out OUT": "validation.study.study.study",
    "atlas -n": "validation.atlas.entry",
    "claims qin2024.eq13": "validation.papers.ledger.claim",
    "design -m*n --trf 64": "numerics.design.solve.design",
    "foresee FOLDER --to 4k": "validation.far_field.foresee.foresee",
    "mend FOLDER --to 4k --out OUT": "validation.far_field.mend.mend",
    "foresee FOLDER --to 4k --quick": "validation.far_field.gap_probe.gap_probe",
    "mend FOLDER --to 4k --quick": "validation.far_field.mend.mend",
    "forecast -n --trained 64 --tested 1024": "validation.forecast.forecast",
}
PAGES = (
    "figures.answer_pages.write_audit",
    "figures.answer_pages.write_study",
    "figures.answer_pages.write_entry",
)
NO_QUESTION = {
    *(
        "explore",
        "demo",
        "cite",
        "doctor",
        "lint",
        "figures",
        "runs",
        "train",
        "sweep",
        "plot",
        "map",
        "papers",
        "measure",
        "completion",
    ),
}
"""What lists, draws or makes something, so that its answers have no status, and what puts several
of the questions together."""


def found(function):
    """The module and the name of a function; all are loaded before one of them is replaced."""
    module, name = f"farfield.{function}".rsplit(".", 1)
    return importlib.import_module(module), name


for function in (*QUESTIONS.values(), *PAGES):
    found(function)


@pytest.mark.parametrize("status", [Status.INFINITE, Status.UNKNOWN])  # one of each exit code
@pytest.mark.parametrize("words, function", QUESTIONS.items(), ids=list(QUESTIONS))
def test_every_verb_has_the_exit_code_of_every_status(
    run, monkeypatch, tmp_path, words, function, status
):
    known = status not in (Status.UNKNOWN, Status.OUT_OF_SCOPE)
    said = Said(
        status=status,
        label=Label.THEOREM if known else None,
        reason=None if status is Status.EXACT else Reason(Code.UNDECIDED, "so it is"),
    )
    module, name = found(function)
    answer = (said,) if name == "theoretical_receptive_field" else said
    for place in (farfield, module) if name in farfield.__all__ else (module,):
        monkeypatch.setattr(place, name, lambda *_, **__: answer)
    for page, writes in map(found, PAGES):
        monkeypatch.setattr(page, writes, lambda *_: Path("page"))
    code, out, _ = run(*words.replace("OUT", str(tmp_path)).split())
    assert out.startswith(f"It is {status}.") and code == CODES[status]


def test_the_table_of_exit_codes_leaves_no_verb_out():
    assert {*VERBS} == {words.split()[0] for words in QUESTIONS} | NO_QUESTION


def test_one_unknown_answer_of_several_is_enough():
    for status, code in CODES.items():
        assert exit_code([SimpleNamespace(status=s) for s in ("exact", status)]) == code
    assert exit_code([object()]) == 0


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (FileNotFoundError("icon.html"), 3, "internal error, FileNotFoundError: icon.html"),
        (OSError(28, "full"), 2, "standard output cannot be written: full"),
        (OSError(28, "full", "a file"), 3, "internal error, OSError: "),
        (ConnectionRefusedError(111, "refused"), 3, "internal error, ConnectionRefusedError"),
        (IndexError("a bug"), 3, "internal error, IndexError: a bug"),
        (ImportError("no libcudnn", name="torch"), 2, "torch cannot be imported: no libcudnn"),
        (ImportError("a bug", name="farfield.theory"), 3, "internal error, ImportError: a bug"),
        (farfield.InputError("bad"), 2, "farfield: bad"),
    ],
)
def test_what_is_raised_is_told_apart_from_a_full_disk(run, monkeypatch, error, code, told):
    """A template that is missing, as jinja2 raises it, has no number; a refused line no file."""
    monkeypatch.setattr("farfield.theory.convergence.encoding", Mock(side_effect=error))
    monkeypatch.setattr("os.dup2", lambda *_: None)
    monkeypatch.setattr("sys.stdout.fileno", lambda: 1, raising=False)
    if code == 3:
        with pytest.raises(type(error)):
            run("check", "-n")
    monkeypatch.delenv("FARFIELD_TRACEBACK", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    found, _, err = run("check", "-n")
    assert found == code and told in err and err.count("\n") == 1
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE", "cores are shared"


class Late:
    """An interrupt that comes while this is taken away."""

    def __del__(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["in the question", "in a finalizer"])
def test_an_interrupt_is_one_line_wherever_it_comes(run, monkeypatch, request, where):
    def stopped(*args, **options):
        if where == "in a finalizer":
            Late()
            time.sleep(60)  # not waited for
        raise KeyboardInterrupt

    def asked(*args, **options):
        stopped()

    monkeypatch.setattr("farfield.leak", asked)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    code, _, err = run("trf", "-n", "--trained", "8")
    assert (code, err) == (130, "farfield: interrupted\n")
