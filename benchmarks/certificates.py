"""Certificates of random formulas, and altered ones: what the prover and the reader say of them.

    python benchmarks/certificates.py [--count 500] [--mutants 100] [--seed 1] [--jobs 2]

Formulas of each family of the class are decided, certified and compiled. Then certificates are
altered: in the verdict, a coefficient, a rung, a term, an argument or the condition. An altered
statement must be found by the reader, an altered proof or a false statement by the kernel. Last,
certificates are received: those of `RECEIVED` are generated files whose proofs, statements or
lemmas were exchanged, so that only the prover can refuse them. Needs the prover, and the library
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
from farfield.theory.certificates.readback import check
from farfield.theory.certificates.verification import verify_certificate
from farfield.theory.convergence import Convergence, check_convergence

BATCH = 10


# -- random formulas ------------------------------------------------------------------------------


def rational(rng: random.Random, most: int = 3) -> str:
    q = rng.choice((1, 1, 1, 2, 3, 4, 5))
    p = rng.randint(1, most * q)
    return f"{p}/{q}" if q > 1 else str(p)


def argument(rng: random.Random) -> str:
    """r n + s."""
    r, s = rng.choice(("", "", "", "2*", "3*", "1/2*")), rng.choice((0, 0, 1, 1, 2, 5, "1/2"))
    return f"({r}n+{s})" if s else f"({r}n)"


def monomial(rng: random.Random, x: str, coefficient: str | None = None) -> str:
    """c X^a (log X)^b (log log X)^c."""
    exponents = (
        rng.choice(("", "", "", "1", "1/2", "3/2", "-1", "2/3")),
        rng.choice(("", "1", "1", "2", "1/2", "-1", "3/2")),
        rng.choice(("", "", "", "1", "-1", "2", "1/3")),
    )
    logs = (x, f"log{x}", f"log(log{x})")
    factors = [f"{y}^({a})" for y, a in zip(logs, exponents, strict=True) if a]
    return "*".join([coefficient or rational(rng), *factors])


def signed(terms: list[str], rng: random.Random) -> str:
    return "".join(("-" if rng.random() < 0.7 else "+") + t for t in terms).removeprefix("+")


def sums(rng: random.Random) -> str:
    terms = [monomial(rng, argument(rng)) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.4:  # critical rungs
        x = argument(rng)
        terms = ["log" + x, *(["log(log" + x + ")"] if rng.random() < 0.5 else []), *terms[:1]]
        return "-" + "-".join(terms)
    return signed(terms, rng)


def shifted(rng: random.Random) -> str:
    """Leading terms that are tied, and may cancel."""
    shape, c = monomial(rng, "X"), rational(rng)
    s, t = rng.sample((0, 1, 2, 3, "1/2"), 2)
    first, second = (shape.replace("X", f"(n+{k})" if k else "(n)") for k in (s, t))
    other = second if rng.random() < 0.7 else f"{c}*{second}"
    rest = f"-{rational(rng)}*log(n)" if rng.random() < 0.7 else ""
    return f"-{first}+{other}{rest}"


def parameters(rng: random.Random) -> str:
    a, b = rng.sample(("a", "b", "r1", "r2", "c", "r", "m", "i", "k"), 2)
    return rng.choice(
        (
            f"-{a}*log(1+{b}*n)",
            f"-{a}*n^{b}",
            f"-{a}*n+{b}*log(n)",
            f"-{a}*log(n)-{b}*log(log(n+1))",
            f"-({a}+{b})*log(n+2)",
            f"-{a}*{b}*log{argument(rng)}",
            f"-{rational(rng)}*log(n)/{a}",
            f"-log(n)^{a}",
            f"-{a}*log{argument(rng)}*log(log(n))^({rational(rng)})",
            f"-{a}*{monomial(rng, argument(rng), '1')}",
            f"-{a}*sqrt(n)+{b}*n^({rational(rng, 1)})",
        )
    )


def pieces(rng: random.Random) -> str:
    w = rng.choice((1, 16, 512, "w"))
    inner, outer = rng.choice(("0", "-n", "-log(n+1)")), sums(rng)
    return rng.choice(
        (
            f"Piecewise(({inner},n<{w}),(-oo,True))",
            f"Piecewise(({inner},n<={w}),({outer},True))",
            f"Piecewise((-n/2,n<{w}),({outer},n>=0),(0,True))",
            f"Max(-n/{w},-{rational(rng)}*log(n+1))",
            f"{outer}+Piecewise((0,n<{w}),(-oo,True))",
            f"Min(-log(n+1),{outer})",
            f"-{rng.choice(('Max', 'Min'))}(a,{rng.choice(('b', '2', '1/2', 'Min(b,2)', 'b,c'))})"
            f"*log{argument(rng)}",
        )
    )


def classes(rng: random.Random) -> str:
    q = rng.choice((2, 3, 4, 6))
    c, d = rational(rng), rational(rng)
    first, second = sums(rng), sums(rng)
    return rng.choice(
        (
            f"-({c}+{d}*(-1)^n)*log(n+1)",
            f"-{rng.choice('abcijkmqrxy')}*({c}+3+(-1)^n)*log(n+1)",
            f"-{c}*Mod(n,{q})*log(n+1)-{d}*log(n+1)",
            f"Piecewise(({first},Eq(Mod(n,{q}),0)),({second},True))",
            f"Piecewise((-oo,Eq(Mod(n,{q}),1)),({second},True))",
            f"-{c}*log(n+1)-{d}*cos(2*pi*n/{rng.choice((3, 4, 6))})*log(n+1)",
            f"-{c}*n+{d}*(-1)^n*n",
        )
    )


def waves(rng: random.Random) -> str:
    def wave() -> str:
        speed = rng.choice(("1", "2", "pi/7", "sqrt(2)", "1/10", "10000^(-1/64)"))
        return f"{rational(rng)}*{rng.choice(('cos', 'sin'))}({speed}*n+{rng.randint(0, 3)})"

    trig = "+".join(wave() for _ in range(rng.randint(1, 4)))
    constant = rng.choice(("pi", "sqrt(2)", "log(3)", "E/2", "pi/3", "3/2"))
    return rng.choice(
        (
            trig,
            f"{trig}-{constant}",
            f"{trig}-{constant}*log(n+1)",
            f"({trig})/{constant}-n/5",
            "-(4+cos(n))*log(n+1)",
            f"{trig}-{constant}*sqrt(n)+log(n)",
            f"-{constant}*({sums(rng)})",
            f"-n+{rational(rng, 1)}*n*sin(n)/4",
        )
    )


FAMILIES: dict[str, tuple[Callable[[random.Random], str], int]] = {
    "sums": (sums, 40),
    "shifts": (shifted, 15),
    "parameters": (parameters, 15),
    "pieces": (pieces, 10),
    "classes": (classes, 10),
    "waves": (waves, 10),
}


def formulas(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """(family, formula), the same for the same seed."""
    rng = random.Random(seed)
    names = [name for name, (_, weight) in FAMILIES.items() for _ in range(weight)]
    for _ in range(count):
        family = rng.choice(names)
        yield family, FAMILIES[family][0](rng)


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
PROOF = ("rung", "term")  # the statement stays what it was
FALSE = ("verdict", "condition")  # the statement is false


def altered_ones(cases: list[Case], count: int, seed: int) -> Iterator[tuple[str, Case, str]]:
    """(kind, the case, the altered source), the kinds in turn."""
    rng = random.Random(seed)
    for k in range(count):
        kind = list(MUTATIONS)[k % len(MUTATIONS)]
        while True:
            case = rng.choice(cases)
            changed = MUTATIONS[kind](case.certificate.source, rng)
            if changed is not None and changed != case.certificate.source:
                yield kind, case, changed
                break


def found(kind: str, case: Case, source: str) -> tuple[bool, bool]:
    """Whether the reader, and whether the kernel, rejects an altered certificate."""
    try:
        check(source, case.result.claims())
        by_reader = False
    except InputError:
        by_reader = True
    by_kernel = bool(refused(source)) if kind in PROOF + FALSE or not by_reader else False
    return by_reader, by_kernel


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


def received(source: str) -> bool | None:
    """Whether a received certificate proves its theorem; None where it is no certificate."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "Received.v"
        path.write_text(source, encoding="utf-8")
        try:
            return bool(verify_certificate(path).proved)
        except InputError:
            return None


def tampered() -> Iterator[tuple[str, str, str]]:
    """(what was done, the certificate, the altered one)."""
    for what, (formula, *changes) in RECEIVED.items():
        changed = made = check_convergence(formula).certificate().source
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            if old not in changed:
                raise ValueError(f"{what}: {old!r} is not in the certificate of {formula}")
            changed = changed.replace(old, new, 1)
        yield what, made, changed


def check_received(pool: ThreadPoolExecutor) -> list[str]:
    """What is wrong with the answers on received files."""
    cases = list(tampered())
    wrong = [
        f"{what}: accepted" if answer else f"{what}: no certificate, the prover was not asked"
        for (what, _, _), answer in zip(
            cases, pool.map(lambda case: received(case[2]), cases), strict=True
        )
        if answer is not False
    ]
    whole = dict.fromkeys(source for _, source, _ in cases)
    for source, answer in zip(whole, pool.map(received, whole), strict=True):
        if not answer:
            wrong.append(f"refused: {source.splitlines()[0]}")
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
        answers = list(pool.map(lambda m: found(*m), altered))
        wrong = check_received(pool)
    reader, kernel, missed = Counter(), Counter(), []
    for (kind, case, _), (by_reader, by_kernel) in zip(altered, answers, strict=True):
        reader[kind] += by_reader
        kernel[kind] += by_kernel
        wanted = (kind in PROOF or by_reader) and (kind not in PROOF + FALSE or by_kernel)
        if not wanted:
            missed.append(f"{kind} of {case.formula}")
    for kind in MUTATIONS:
        total = sum(k == kind for k, _, _ in altered)
        print(f"altered {kind:<12}{total:>4}: reader {reader[kind]:>3}, kernel {kernel[kind]:>3}")
    for line in (*missed, *wrong):
        print(f"not found: {line}")
    share = len(written) / max(len(decided), 1)
    print(
        f"{share:.1%} of the decided are certified; {len(missed)} of {len(altered)} altered missed"
    )
    sys.exit(int(bool(failing or missed or wrong) or share < 0.95))


if __name__ == "__main__":
    cyclopts.run(main)
