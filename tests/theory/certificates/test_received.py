"""Certificates from elsewhere: what is no certificate is refused before any prover is asked."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import sympy
from formal.certified import FOLDER

import farfield
from farfield import check_convergence, verify_certificate
from farfield.theory.answers.answer import Status
from farfield.theory.certificates import Certifiable
from farfield.theory.certificates.certificate import regenerated
from farfield.theory.certificates.prover import _reason, compiled
from farfield.theory.certificates.verification import MAX_BYTES, _answer
from farfield.theory.functions.nodes import n

FORMULA = "-r1*log(1+r2*n)"
DEFINED = "Definition p (n : nat) : R := - r1 * ln (r2 * INR n + 1)."
STATED = "Theorem verdict : 0 < r1 -> 0 < r2 -> (ex_series (fun n => exp (p n)) <-> r1 > 1)."
CASE = "Theorem case_1 : 0 < r1 -> 0 < r2 -> 0 < r1 - 1 -> ex_series (fun n => exp (p n))."
OPENED = "Open Scope R_scope."
LAST = "  destruct (Rtotal_order 0 (r1 - 1)) as [X1|[X1|X1]]."

SAID = """(** The exp-series of p(n) = -r1*log(n*r2 + 1)
    for r1 positive; r2 positive
    converges if r1 > 1.
"""

ALTERED = {  # what is replaced, once, and by what
    "words on another formula": ("p(n) = -r1*log(n*r2 + 1)", "p(n) = -r1*log(n*r2 + 2)"),
    "words on an equal formula": ("p(n) = -r1*log(n*r2 + 1)", "p(n) = -r1*log(1 + n*r2)"),
    "words on another condition": ("converges if r1 > 1.", "converges if r1 > 2."),
    "words on no condition": ("converges if r1 > 1.", "converges if r1."),
    "words on another verdict": ("converges if r1 > 1.", "diverges."),
    "words on another domain": ("r1 positive;", "r1 nonnegative;"),
    "words on an empty domain": ("r1 positive;", "r1 (1, 1);"),
    "words on one parameter": ("r1 positive; ", ""),
    "words on a third parameter": ("r2 positive", "r2 positive; r3 positive"),
    "words on two biases": (SAID, SAID + "\n    The exp-series of p(n) = -n\n    converges.\n"),
    "words on a head": ("(** The exp", "(** Head_1: the exp"),
    "no words": (SAID, "(** A certificate.\n"),
    "more words": (SAID, SAID + "    Trust it.\n"),
    "words in a look-alike": ("-r1*log", "-r1*l\N{CYRILLIC SMALL LETTER O}g"),
    "words that run": ("p(n) = -r1", "p(n) = __import__('os').getpid()*r1"),
    "words that are too deep": ("-r1*log(n*r2 + 1)", f"-r1*{'(' * 3000}n*r2{')' * 3000}"),
    "words without a verdict": ("-r1*log(n*r2 + 1)", "-r1*n**2*Abs(sin(n*r2))"),
    "words on a form without certificate": ("-r1*log(n*r2 + 1)", "-r1*log(n*r2 + 1)*cos(n)"),
    "p defined again": (DEFINED, DEFINED + "\n\nDefinition p (n : nat) : R := - INR n ^ 2."),
    "another definition": (DEFINED, DEFINED.replace("+ 1", "+ 2")),
    "another theorem": (STATED, STATED.replace("r1 > 1", "r1 > 0")),
    "another case": (CASE, CASE.replace("0 < r1 ->", "forall A, A ->", 1)),
    "another proof": (LAST, LAST + " "),
    "admitted": ("Qed.", "Admitted."),
    "axiom": (OPENED, OPENED + "\nAxiom cheat : False."),
    "comment": (OPENED, OPENED + " (* hidden *)"),
    "leading comment that ends early": ("(** The", "(** The *) Axiom cheat : False. (* "),
    "more at the end": ("End Verdict.\n", "End Verdict.\n\nAxiom cheat : False.\n"),
    "cut short": ("End Verdict.\n", ""),
    "nothing": (None, ""),
    "comment alone": (None, "(** The exp-series. *)\n"),
    "another language": (None, "import farfield\n"),
}


@pytest.fixture(scope="module")
def source():
    return check_convergence(FORMULA).certificate().source


@pytest.fixture
def no_prover(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))


@pytest.mark.parametrize("how", ALTERED)
def test_an_altered_file_is_no_certificate(refusal, source, no_prover, tmp_path, how):
    old, new = ALTERED[how]
    text = new if old is None else source.replace(old, new, 1)
    assert text != source, "nothing was altered"
    place = tmp_path / "received.v"
    place.write_text(text, encoding="utf-8")
    assert len(refusal("is no certificate: ", verify_certificate, place)) < 600


def test_every_generated_file_is_one(refusal, no_prover, source, tmp_path):
    assert source.count("-> ex_series (fun n => exp (p n)).") == 1
    assert source.count("-> ~ ex_series (fun n => exp (p n)).") == 2
    for text in (source, *(f.read_text(encoding="utf-8") for f in FOLDER.glob("*.v"))):
        assert regenerated(text)[1] == text
    place = tmp_path / "received.v"
    place.write_text(source.replace("\n", "\r\n"), encoding="utf-8", newline="")
    refusal("no prover: coqc is not on the path", verify_certificate, place)


def places(folder):
    """Paths that hold no text of bounded size."""
    (folder / "huge.v").write_bytes(b"(" * (MAX_BYTES + 1))
    (folder / "latin.v").write_bytes(b"(** \xe9 *)")
    os.mkfifo(folder / "pipe.v")
    (folder / "loop.v").symlink_to(folder / "loop.v")
    (folder / "device.v").symlink_to("/dev/zero")
    return {
        "huge.v": "more than 1000000 bytes",
        "latin.v": "not text in UTF-8",
        "pipe.v": "no regular file",
        "device.v": "no regular file",
        "loop.v": "cannot read",
        "missing.v": "cannot read '.*missing.v': No such file or directory;",
        ".": "cannot read|no regular file",
        "nul\0.v": "cannot read '.*': embedded null",
    }


@pytest.mark.timeout(60)
def test_what_is_no_file_of_text_is_one_line_at_once(refusal, no_prover, tmp_path):
    for name, said in places(tmp_path).items():
        assert refusal(said, verify_certificate, f"{tmp_path}/{name}").count("accepted: ") == 1


# -- the answer, with a program in the prover's place ---------------------------------------------


@pytest.fixture
def received(tmp_path, source):
    place = tmp_path / "received.v"
    place.write_text(source, encoding="utf-8")
    return place


def test_a_certificate_that_the_prover_accepts(some_prover, received):
    some_prover(checker=0)
    found = verify_certificate(received)
    assert (found.proved, found.status, found.label) == (True, Status.EXACT, "theorem")
    assert found.statement == STATED and found.axioms == ("classic",)
    assert found.subject == str(received)
    calls = (received.parent / "calls").read_text().splitlines()
    assert [call.endswith("Received.v") for call in calls] == [True]
    assert [str(f) for f in found.formulas] == ["-r1*log(n*r2 + 1)"]
    said = found.text(unicode=False)
    assert "the series converges exactly if r1 > 1, for r1 positive" in " ".join(said.split())
    assert found.to_dict()["proved"] is True and "stated" not in found.to_dict()
    some_prover("Closed under the global context")
    free = verify_certificate(received, budget_s=1e9)
    assert free.proved and free.axioms == ()


@pytest.mark.parametrize(
    "answer, why",
    [
        ({"code": 1}, "line 7: Error: No."),
        (
            {"printed": "Axioms:\\ncheat : False"},
            "axioms beyond those of the classical reals: cheat",
        ),
        ({"printed": ""}, "does not say which axioms"),
        ({"checker": 1}, "the prover rejects it: by its checker coqchk: it stopped without a mess"),
        ({"seconds": 20}, "time budget"),
    ],
)
def test_what_the_prover_does_not_accept_is_unknown(some_prover, received, answer, why):
    some_prover(**answer)
    found = verify_certificate(received, budget_s=2 if "seconds" in answer else 100)
    assert (found.proved, found.status, found.label) == (None, Status.UNKNOWN, None)
    assert why in str(found.reason) and found.axioms == ()
    first, stated = found.text(width=1000).splitlines()
    assert first.endswith(f"received.v proves no theorem: {found.reason}.")
    assert stated.strip() == STATED
    assert found.reason.code == ("budget" if "seconds" in answer else "not_proved")


SEVEN = {f"a{k}": "real" for k in range(7)}
LONG = -(10**57) * n  # 61 signs


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (
            [(-n, {}, True)],
            " proves: the series converges.  [theorem] | p(n) = -n | Theorem verdict : ex_series "
            "(fun n => exp (p n)). | axioms: none",
        ),
        (
            [(-n, SEVEN, False)],
            " proves: the series diverges, for a0 real, a1 real, a2 real, ..., a4 real, a5 real, "
            "a6 real.  [theorem] | p(n) = -n | Theorem verdict : ~ ex_series (fun n => exp (p n)). "
            "| axioms: none",
        ),
        (
            [(LONG, {"a": "positive"}, False), (-n, {}, True)],
            " proves 2 verdicts.  [theorem] | theorem  the series  for         p(n) | Head_0   "
            f"diverges    a positive  -1{'0' * 28}...{'0' * 27}*n | Head_1   converges"
            "               -n | axioms: none",
        ),
    ],
)
def test_what_is_said_of_a_certificate_that_is_accepted(stated, said):
    claims = [Certifiable(p, given, sympy.S(value)) for p, given, value in stated]
    names = [None] if len(claims) == 1 else [f"Head_{k}" for k in range(len(claims))]
    found = _answer("x" * 81, dict(zip(names, claims, strict=True)), proved=True)
    lines = found.text(unicode=False, width=1000).splitlines()
    assert " | ".join(map(str.strip, lines)) == f"{'x' * 40}...{'x' * 39}{said}"


def test_the_verb(some_prover, received, run):
    words = ("check", "--verify", "--certificate", received)
    some_prover()
    code, out, err = run(*words)
    assert code == 0 and "[theorem]" in out and not err
    some_prover(code=1)
    code, out, err = run(*words, "--json")
    assert code == 1 and '"status": "unknown"' in out
    received.write_text("Admitted.")
    code, out, err = run(*words)
    assert (code, out) == (2, "") and err.count("\n") == 1
    code, out, err = run(*words, "--budget", "-1")
    assert code == 2 and "budget -1" in err
    assert farfield.ReceivedCertificate.VALUE == "proved"


def test_heads_that_differ_are_verified_together(refusal, some_prover, tmp_path):
    some_prover()
    place = tmp_path / "heads.v"
    place.write_text(check_convergence(farfield.encoding("alibi", heads=2)).certificate().source)
    found = verify_certificate(place)
    assert found.proved and len(found.formulas) == 2 and "2 verdicts" in found.text()
    place.write_text(place.read_text().replace("Module Head_2", "Module Head_1", 1))
    refusal("is no certificate", verify_certificate, place)


def test_the_library_is_compiled_under_one_name(some_prover, received, tmp_path, monkeypatch):
    some_prover(stale="Sums")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    cache = tmp_path / ".cache" / "farfield"
    assert verify_certificate(received).proved
    calls = (tmp_path / "calls").read_text().splitlines()
    folders = [re.findall(r"-Q (\S+)", call) for call in calls]
    assert all(len(set(named)) == len(named) > 0 for named in folders)
    assert {Path(first).parent for first, *_ in folders} == {cache}
    [place] = cache.iterdir()
    place.rename(tmp_path / "away")

    def another_is_faster(*call):
        place.mkdir(exist_ok=True)
        (place / "Sums.vo").touch()
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr("farfield.theory.certificates.prover._run", another_is_faster)
    assert compiled("coqc") == place and [*cache.iterdir()] == [place]


def test_a_library_that_does_not_compile_leaves_nothing(
    refusal, some_prover, received, tmp_path, monkeypatch
):
    some_prover(stale="Extended")
    (tmp_path / "cache" / "farfield").mkdir(parents=True)
    failed = subprocess.CompletedProcess([], 1, "", "Error: No.")
    monkeypatch.setattr("farfield.theory.certificates.prover._run", lambda *call: failed)
    refusal("does not compile", verify_certificate, received)
    assert not list((tmp_path / "cache" / "farfield").iterdir())


def test_a_cache_that_cannot_be_written_is_refused(
    refusal, some_prover, received, tmp_path, monkeypatch
):
    some_prover(stale="Sums")
    monkeypatch.setenv("XDG_CACHE_HOME", str(received))
    refusal("cannot be written: Not a directory", verify_certificate, received)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (" \n", "it stopped without a message"),
        ("Error:\n  no", "Error: no"),
        ('File "x.v", line 7, characters 2-9:\nError: No.\n', "line 7: Error: No."),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200),
    ],
)
def test_what_the_prover_says_is_one_line(output, told):
    assert _reason(output) == told


@pytest.mark.parametrize("path", [3, None, ["a.v"]])
def test_what_is_no_path_is_refused(refusal, path):
    refusal("a path is text", verify_certificate, path)
