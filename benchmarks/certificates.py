"""Certificates of random formulas, and altered ones: what the prover says of them.

    python benchmarks/certificates.py [--count 500] [--mutants 100] [--seed 1] [--jobs 2]

Formulas of each family of the class are decided, certified and compiled. Then certificates are
altered in the verdict, the condition, a rung or a term: the kernel must reject them. Last,
certificates are received: those of `RECEIVED` are generated files whose words, proofs or statements
were exchanged. Neither farfield nor the kernel may accept them. Needs the prover, and the library
that `make formal` compiles.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cyclopts

from farfield.theory.answers.errors import InputError
from farfield.theory.certificates import Certificate, NoCertificate
from farfield.theory.certificates.prover import Rejected, checked
from farfield.theory.certificates.verification import verify_certificate
from farfield.theory.convergence import Convergence, check_convergence

BATCH = 10


# -- random formulas ------------------------------------------------------------------------------

GRAMMAR: dict[str, tuple[str, ...]] = {
    "k": ("1", "2", "3", "5", "7"),
    "q": ("{k}", "{k}", "{k}/2", "{k}/3", "{k}/4", "{k}/5"),
    "r": ("1", "1", "1/2", "1/3", "2/3", "3/4", "2/5", "4/5"),
    "sign": ("-", "-", "+"),
    "s": ("1", "2", "5", "1/2"),
    "times": ("2", "3", "1/2"),
    "x": ("(n)", "(n)", "(n+{s})", "(n+{s})", "({times}*n)", "({times}*n+{s})"),
    "power": ("", "", "", "*X", "*X^(1/2)", "*X^(3/2)", "*X^(-1)", "*X^(2/3)"),
    "log": ("", *(f"*logX^({e})" for e in ("1", "1", "2", "1/2", "-1", "3/2"))),
    "loglog": ("", "", "", *(f"*log(logX)^({e})" for e in ("1", "-1", "2", "1/3"))),
    "shape": ("{power}{log}{loglog}",),
    "term": ("{q}{shape}",),
    "more": ("", "{sign}{term}", "{sign}{term}{sign}{term}"),
    "sums": (
        "{sign}{term}{more}",
        "{sign}{term}{more}{more}",
        "-logX",
        "-logX-{term}",
        "-logX-log(logX)-{term}",
    ),
    "rest": ("", "-{q}*log(n)", "-{q}*log(n)"),
    "parameters": (
        "-A*log(1+B*n)",
        "-A*n^B",
        "-A*n+B*log(n)",
        "-A*log(n)-B*log(log(n+1))",
        "-(A+B)*log(n+2)",
        "-A*B*logX",
        "-{q}*log(n)/A",
        "-log(n)^A",
        "-A*logX*log(log(n))^({q})",
        "-A*1{shape}",
        "-A*sqrt(n)+B*n^({r})",
    ),
    "w": ("1", "16", "512", "w"),
    "inner": ("0", "-n", "-log(n+1)"),
    "bound": ("b", "2", "1/2", "Min(b,2)", "b,c"),
    "pieces": (
        "Piecewise(({inner},n<{w}),(-oo,True))",
        "Piecewise(({inner},n<={w}),({sums},True))",
        "Piecewise((-n/2,n<{w}),({sums},n>=0),(0,True))",
        "Max(-n/{w},-{q}*log(n+1))",
        "{sums}+Piecewise((0,n<{w}),(-oo,True))",
        "Min(-log(n+1),{sums})",
        "-Max(a,{bound})*logX",
        "-Min(a,{bound})*logX",
    ),
    "speed": ("1", "2", "pi/7", "sqrt(2)", "1/10", "10000^(-1/64)"),
    "wave": ("{q}*cos({speed}*n)", "{q}*sin({speed}*n+1)", "{q}*cos({speed}*n+2)"),
    "trig": ("{wave}", "{wave}+{wave}", "{wave}+{wave}+{wave}", "{wave}+{wave}+{wave}+{wave}"),
    "constant": ("pi", "sqrt(2)", "log(3)", "E/2", "pi/3", "3/2"),
    "waves": (
        "{trig}",
        "{trig}-{constant}",
        "{trig}-{constant}*log(n+1)",
        "({trig})/{constant}-n/5",
        "{trig}-{constant}*sqrt(n)+log(n)",
        "-{constant}*({sums})",
    ),
}
"""What a formula is made of. X is one argument throughout a part, A and B are parameters."""

FAMILIES = {"sums": 40, "shifts": 15, "parameters": 15, "pieces": 10, "waves": 10}
"""How many of a hundred formulas are of each kind."""


SHARED = ("shape", "power", "log", "loglog")
"""Parts whose argument is that of the part around them."""


def made(rng: random.Random, part: str, x: str | None = None) -> str:
    """A part of a formula at random; its argument X is drawn unless it is that of another part."""
    text = rng.choice(GRAMMAR[part])
    text = re.sub(r"\{(\w+)\}", lambda m: made(rng, m[1], "X" if m[1] in SHARED else None), text)
    return text if x or "X" not in text else text.replace("X", made(rng, "x"))


def shifted(rng: random.Random) -> str:
    """Leading terms that are tied, and may cancel."""
    shape = "1" + made(rng, "shape", "X")
    first, second = rng.sample(("(n)", "(n+1)", "(n+2)", "(n+3)", "(n+1/2)"), 2)
    factor = "" if rng.random() < 0.7 else made(rng, "q") + "*"
    tied = f"-{shape.replace('X', first)}+{factor}{shape.replace('X', second)}"
    return tied + made(rng, "rest")


def formulas(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """(family, formula), the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        (family,) = rng.choices([*FAMILIES], [*FAMILIES.values()])
        text = shifted(rng) if family == "shifts" else made(rng, family)
        names = rng.sample(("a", "b", "r1", "r2", "c", "r", "m", "d", "k"), 2)
        yield family, text.removeprefix("+").replace("A", names[0]).replace("B", names[1])


# -- certificates ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    family: str
    formula: str
    verdict: str
    result: Convergence | None = None
    certificate: Certificate | None = None
    why: str = ""


def certified(family: str, formula: str) -> Case:
    """Decide and certify a formula."""
    try:
        result = check_convergence(formula)
    except ValueError as error:
        return Case(family, formula, "no formula", why=str(error))
    if result.verdict.value == "undecided":
        return Case(family, formula, "undecided", why=result.reason)
    try:
        return Case(family, formula, result.verdict.value, result, result.certificate())
    except NoCertificate as error:
        return Case(family, formula, result.verdict.value, result, why=str(error))


def refused(source: str) -> str:
    """What the prover says against a source; empty where it accepts."""
    try:
        checked(source)
    except Rejected as error:
        return str(error)
    return ""


def compiled(cases: list[Case], pool: ThreadPoolExecutor) -> list[str]:
    """What the prover says against each; several in one file, one by one only where that fails."""

    def batch(part: list[Case]) -> list[str]:
        bodies = [f"Module M{k}.\n{c.certificate.source}\nEnd M{k}." for k, c in enumerate(part)]
        if not refused("\n".join(bodies)):
            return [""] * len(part)
        return [refused(c.certificate.source) for c in part]

    parts = [cases[k : k + BATCH] for k in range(0, len(cases), BATCH)]
    return [answer for answers in pool.map(batch, parts) for answer in answers]


# -- mutations ------------------------------------------------------------------------------------


def _definition(change: Callable[[str, random.Random], str | None]) -> Callable[..., str | None]:
    """A change of the definition of p."""

    def mutate(source: str, rng: random.Random) -> str | None:
        found = re.search(r"Definition p \(n : nat\) : \w+ := ([^:]*?)\.\n", source)
        changed = change(found.group(1), rng) if found else None
        if changed is None or changed == found.group(1):
            return None
        return source[: found.start(1)] + changed + source[found.end(1) :]

    return mutate


def _one_of(
    pattern: str, text: str, rng: random.Random, new: Callable[[re.Match[str]], str]
) -> str | None:
    places = list(re.finditer(pattern, text))
    if not places:
        return None
    at = rng.choice(places)
    return text[: at.start()] + new(at) + text[at.end() :]


def _verdict(source: str, rng: random.Random) -> str | None:
    """Converges for diverges, or the other way round."""
    begin = source.index("Theorem verdict")
    head, tail = source[:begin], source[begin:]
    if "<->" in tail[: tail.index("Proof.")]:
        return None
    if "~ ex_series" in tail:
        return head + tail.replace("~ ex_series", "ex_series", 1)
    return head + tail.replace("ex_series", "~ ex_series", 1)


def _condition(source: str, rng: random.Random) -> str | None:
    """Another condition on the parameters."""
    begin = source.index("Theorem verdict")
    end = source.index("Proof.", begin)
    said = source[begin:end]
    if "<->" not in said:
        return None
    left, right = said.split("<->")
    swap = {" > ": " < ", " < ": " > ", " >= ": " < ", " <= ": " > ", " = ": " <> ", " <> ": " = "}
    changed = _one_of(r" (<=|>=|<>|[<>=]) ", right, rng, lambda m: swap[m.group()])
    return None if changed is None else source[:begin] + left + "<->" + changed + source[end:]


def _rung(source: str, rng: random.Random) -> str | None:
    """The verdict claimed at another rung."""
    return _one_of(r"rung (\d)", source, rng, lambda m: f"rung {int(m[1]) + 1}")


def _term(source: str, rng: random.Random) -> str | None:
    """A leading term of the final expansion left out."""
    bias = r"(?:p|\(fun n : nat => p \([^)]*\)%nat\))"
    pattern = rf"(\(expands\s{bias}\s+\[)\([^][]*\[[^]]*\]\)(; )?"
    return _one_of(pattern, source, rng, lambda m: m[1])


def _other_number(m: re.Match[str]) -> str:
    return str(int(m.group()) + 1)


MUTATIONS: dict[str, Callable[[str, random.Random], str | None]] = {
    "verdict": _verdict,
    "coefficient": _definition(lambda t, rng: _one_of(r"(?<![\w^.])\d+", t, rng, _other_number)),
    "rung": _rung,
    "term": _term,
    "argument": _definition(lambda t, rng: _one_of(r"INR n", t, rng, lambda m: "(INR n + 7)")),
    "condition": _condition,
}
KINDS = ("rung", "term", "verdict", "condition")  # no proof, or a false statement


def altered_ones(cases: list[Case], count: int, seed: int) -> Iterator[tuple[str, Case, str]]:
    """(kind, the case, the altered source), the kinds in turn."""
    rng = random.Random(seed)
    for k in range(count):
        kind = KINDS[k % len(KINDS)]
        while True:
            case = rng.choice(cases)
            changed = MUTATIONS[kind](case.certificate.source, rng)
            if changed is not None and changed != case.certificate.source:
                yield kind, case, changed
                break


# -- received files -------------------------------------------------------------------------------

CONVERGES, DIVERGES = "-2*log(n+1)", "-log(n+1)"
PARAMETERS = "-r1*log(1+r2*n)"

RECEIVED: dict[str, tuple[str, ...]] = {  # the formula, what is replaced once, by what, ...
    "false verdict": (CONVERGES, "verdict : ex", "verdict : ~ ex", "converges.", "diverges."),
    "other false verdict": (DIVERGES, "verdict : ~ ex", "verdict : ex", "diverges.", "converges."),
    "condition too weak": (PARAMETERS, "<-> r1 > 1)", "<-> r1 >= 1)", "if r1 > 1", "if r1 >= 1"),
    "condition too strong": (PARAMETERS, "<-> r1 > 1)", "<-> r1 > 2)", "if r1 > 1", "if r1 > 2"),
    "condition on the other": (PARAMETERS, "<-> r1 > 1)", "<-> r2 > 1)", "if r1 > 1", "if r2 > 1"),
    "wider domain": (
        PARAMETERS,
        "verdict : 0 < r1 ->",
        "verdict : 0 <= r1 ->",
        "r1 positive",
        "r1 nonnegative",
    ),
    "no domain": ("-a*n^2-n", "verdict : 0 < a -> ex", "verdict : ex", "a positive", "a real"),
    "other coefficient": (
        CONVERGES,
        "R := -2 *",
        "R := -1 / 2 *",
        "-2*log(n + 1)",
        "-log(n + 1)/2",
    ),
    "other argument": (CONVERGES, "ln (INR n + 1)", "ln (2 * INR n + 1)", "log(n", "log(2*n"),
    "rule that decides otherwise": (CONVERGES, "rung 0%nat", "contrary"),
    "other rung": (CONVERGES, "rung 0", "rung 1"),
    "claim in a case": (PARAMETERS, "0 = r1 - 1 -> ~ ex", "0 = r1 - 1 -> ex"),
    "hypothesis in a case": (PARAMETERS, "0 < r1 - 1 -> ex", "0 < r1 + 1 -> ex"),
    "case left out": (PARAMETERS, "apply case_1; assumption", "apply case_2; assumption"),
    "expansion of something else": (CONVERGES, "[(-2, [0; 1])]", "[(-3, [0; 1])]"),
    "remainder too small": (CONVERGES, "(Some [-1]))", "(Some [-9]))"),
    "cut proof": (CONVERGES, "rung 0", "split. rung 0"),
    "unfinished proof": (CONVERGES, "rung 0%nat.\n", "\n"),
    "circular proof": (CONVERGES, "rung 0", "apply p. rung 0"),
    "assumed": (
        CONVERGES,
        "Proof.\n",
        "Proof.\n  assert (expands p [] exactly) by assumption.\n",
    ),
    "value -oo too late": (
        "where(n<4,0,-oo)",
        "Rltb (INR n) 4",
        "Rleb 4 (INR n)",
        "(0, n < 4), (-oo",
        "(-oo, n < 4), (0",
    ),
}


def tampered() -> Iterator[tuple[str, str, str]]:
    """(what was done, the certificate, the altered one)."""
    for what, (formula, *changes) in RECEIVED.items():
        changed = made = check_convergence(formula).certificate().source
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            if old not in changed:
                raise ValueError(f"{what}: {old!r} is not in the certificate of {formula}")
            changed = changed.replace(old, new, 1)
        yield what, made, changed


def accepted(source: str) -> bool:
    """Whether a received file is a certificate that proves its theorem."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "Received.v"
        path.write_text(source, encoding="utf-8")
        try:
            return bool(verify_certificate(path).proved)
        except InputError:
            return False


def check_received(pool: ThreadPoolExecutor) -> list[str]:
    """What is wrong with the answers on received files, the prover's own on altered ones too."""
    cases = list(tampered())
    whole = list(dict.fromkeys(source for _, source, _ in cases))
    altered = [changed for _, _, changed in cases]
    wrong = [f"refused: {s.splitlines()[0]}" for s in whole if not accepted(s)]
    for (what, _, _), taken, why in zip(
        cases, pool.map(accepted, altered), pool.map(refused, altered), strict=True
    ):
        wrong += [f"{what}: accepted"] * taken + [f"{what}: the prover accepts it"] * (not why)
    print(f"{len(cases)} altered and {len(whole)} whole files received: {len(wrong)} wrong answers")
    return wrong


def main(*, count: int = 500, mutants: int = 100, seed: int = 1, jobs: int = 2) -> None:
    """Certificates of so many random formulas, and so many altered ones."""
    start = time.monotonic()
    cases = [certified(*given) for given in formulas(count, seed)]
    decided = [c for c in cases if c.result is not None]
    written = [c for c in decided if c.certificate is not None]
    middle = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        against = compiled(written, pool)
        failing = [(c, why) for c, why in zip(written, against, strict=True) if why]
        print(f"{'family':<12}{'formulas':>9}{'decided':>9}{'certified':>10}{'compiled':>9}")
        for family in (*FAMILIES, "all"):
            row = [
                sum(family in (c.family, "all") for c in part)
                for part in (cases, decided, written, [c for c, _ in failing])
            ]
            print(f"{family:<12}{row[0]:>9}{row[1]:>9}{row[2]:>10}{row[2] - row[3]:>9}")
        print(f"written in {middle - start:.0f} s, compiled in {time.monotonic() - middle:.0f} s")
        for c in decided:
            if c.certificate is None:
                print(f"no certificate: {c.formula} ({c.verdict}): {c.why}")
        for c, why in failing:
            print(f"does not compile: {c.formula} ({c.verdict}): {why}")
        altered = list(altered_ones(written, mutants, seed))
        answers = list(pool.map(lambda m: refused(m[2]), altered))
        wrong = check_received(pool)
    by_kernel, missed = Counter(), []
    for (kind, case, _), answer in zip(altered, answers, strict=True):
        by_kernel[kind] += bool(answer)
        if not answer:
            missed.append(f"{kind} of {case.formula}")
    for kind in KINDS:
        total = sum(k == kind for k, _, _ in altered)
        print(f"altered {kind:<12}{total:>4}: the kernel rejects {by_kernel[kind]:>3}")
    for line in (*missed, *wrong):
        print(f"not found: {line}")
    share = len(written) / max(len(decided), 1)
    print(
        f"{share:.1%} of the decided are certified; {len(missed)} of {len(altered)} altered missed"
    )
    sys.exit(int(bool(failing or missed or wrong) or share < 0.95))


if __name__ == "__main__":
    cyclopts.run(main)
