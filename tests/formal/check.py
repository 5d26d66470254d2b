"""What `make formal` runs: build the theorems, have the kernel check them, look for gaps.

    python tests/formal/check.py [--jobs N] [--write]

A run fails on `Admitted`, and on a theorem that `index.toml` does not list, or lists in vain. It
fails on an axiom beyond the four of the classical reals; `Numbers` may also use the prover's
machine integers. It fails on what the kernel's own checker rejects, and on a statement that differs
from `statements.json`; `--write` records them anew. Last, each of these checks is given a fault of
its kind and must find it. Needs the prover.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from farfield.theory.certificates.prover import CLASSICAL, LIBRARY, axioms_named

HERE = LIBRARY
MACHINE = ("PrimInt63.", "Uint63.", "Sint63.", "PrimFloat.", "FloatAxioms.")
APART = ("Numbers",)  # may rest on machine integers
NEEDED = (
    "Rocq (Coq) 8.16 with Coquelicot and Interval: apt-get install coq libcoq-coquelicot "
    "libcoq-interval, or elsewhere: opam install coq.8.16.1 coq-coquelicot coq-interval"
)


class Failure(Exception):
    """A check that does not pass; the message says what it found."""


# -- what the files say ---------------------------------------------------------------------------


def sources(folder: Path = HERE) -> list[Path]:
    """The files of the library, and the certificates of the catalogue."""
    return sorted(folder.glob("*.v")) + sorted(folder.glob("catalogue/*.v"))


def unfinished(text: str) -> list[str]:
    """What leaves a proof open, or adds an axiom, outside of comments.

    >>> unfinished("Lemma a : True. Proof. Admitted. (* admit *) Axiom b : False.")
    ['Admitted', 'Axiom']
    """
    bare = re.sub(r"\(\*.*?\*\)", " ", text, flags=re.DOTALL)
    words = "Admitted|admit|give_up|Abort|Axioms?|Conjecture|Parameters?|Unset Guard Checking"
    return re.findall(rf"\b(?:{words})\b", bare)


def theorems(text: str) -> Iterator[tuple[str, str]]:
    r"""(name, the comment above) of the theorems and corollaries of a file.

    >>> list(theorems("(** It is true. *)\nTheorem a : True.\nLemma b : True."))
    [('a', 'It is true.')]
    """
    pattern = r"(?:\(\*\*((?:(?!\*\)).)*)\*\)\s*)?^(?:Theorem|Corollary)\s+(\w+)"
    for match in re.finditer(pattern, text, flags=re.DOTALL | re.MULTILINE):
        yield match[2], " ".join((match[1] or "").split())


def library(folder: Path = HERE) -> dict[str, list[tuple[str, str]]]:
    """Names and statements: the theorems of each file, and the verdicts of the catalogue."""
    by_file = {
        file.stem: list(theorems(file.read_text(encoding="utf-8")))
        for file in sorted(folder.glob("*.v"))
    }
    verdicts = []
    for file in sorted(folder.glob("catalogue/*.v")):
        comment = file.read_text(encoding="utf-8").partition("(** ")[2].partition("\n\n")[0]
        verdicts.append((file.stem, textwrap.shorten(comment, 200, placeholder=" ...")))
    return {name: names for name, names in (by_file | {"catalogue": verdicts}).items() if names}


def check_text(folder: Path = HERE) -> None:
    """No proof is open."""
    for file in sources(folder):
        if words := unfinished(file.read_text(encoding="utf-8")):
            raise Failure(f"{file.name}: {', '.join(words)}")


def check_index(
    theorems: dict[str, list[tuple[str, str]]], index: dict[str, dict[str, object]]
) -> None:
    """The index lists every theorem, nothing else, and each is said in words."""
    listed = {(file, name) for file, names in index.items() for name in names}
    there = {(file, name) for file, names in theorems.items() for name, _ in names}
    if missing := sorted(there - listed):
        raise Failure(f"not listed in index.toml: {', '.join('.'.join(m) for m in missing)}")
    if gone := sorted(listed - there):
        raise Failure(f"listed in index.toml and not there: {', '.join('.'.join(g) for g in gone)}")
    if mute := [name for names in theorems.values() for name, says in names if not says]:
        raise Failure(f"without a comment above: {', '.join(mute)}")


# -- what the prover says -------------------------------------------------------------------------


def run(*command: str, folder: Path = HERE) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Failure((done.stderr + done.stdout).strip()[-2000:])
    return done.stdout


def compile_text(text: str, folder: Path = HERE) -> str:
    """What the prover prints on sentences that may use the library."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "Asked.v"
        file.write_text(text, encoding="utf-8")
        options = ("-q", "-w", "-ambiguous-paths", "-Q", str(folder), "Farfield")
        return run("coqc", *options, str(file))


def build(jobs: int, folder: Path = HERE) -> None:
    """Compile what has changed."""
    files = [str(f.relative_to(folder)) for f in sources(folder)]
    run("coq_makefile", "-f", "_CoqProject", *files, "-o", "Makefile.coq", folder=folder)
    run("make", "-s", "-f", "Makefile.coq", f"-j{jobs}", folder=folder)


def module(file: Path, folder: Path = HERE) -> str:
    """The module of a file."""
    return "Farfield." + ".".join(file.relative_to(folder).with_suffix("").parts)


def full_name(file: str, name: str) -> str:
    """How the prover knows a theorem, or a verdict of the catalogue."""
    return f"Farfield.{file}.{name}" + (".verdict" if file == "catalogue" else "")


def check_kernel(folder: Path = HERE, apart: tuple[str, ...] = APART) -> None:
    """The kernel's own checker accepts the compiled files with all that they rest on. Of the files
    apart, themselves alone, since the libraries of interval arithmetic take it ten minutes."""
    modules = [module(f, folder) for f in sources(folder) if f.stem not in apart]
    run("coqchk", "-silent", "-Q", str(folder), "Farfield", *modules)
    for name in apart:
        run("coqchk", "-silent", "-Q", str(folder), "Farfield", "-norec", f"Farfield.{name}")


def axioms(names: list[str], folder: Path = HERE) -> set[str]:
    """The axioms that theorems, by their full names, rest on."""
    modules = sorted({name.rpartition(".")[0] for name in names})
    everything = ", ".join(f"@{name}" for name in names)
    printed = compile_text(
        f"Require {' '.join(modules)}.\nDefinition everything := ({everything}).\n"
        "Print Assumptions everything.\n",
        folder,
    )
    return axioms_named(printed)


def check_axioms(used: set[str], machine: bool = False) -> None:
    """Only the four of the classical reals, and those of machine integers where said."""
    foreign = {a for a in used - CLASSICAL if not (machine and a.startswith(MACHINE))}
    if foreign:
        raise Failure(f"axioms beyond those of the classical reals: {', '.join(sorted(foreign))}")


def printed(theorems: dict[str, list[tuple[str, str]]], folder: Path = HERE) -> list[str]:
    """The statements of all theorems, in order, as the prover prints them."""
    lines = ["From Coq Require Import Reals List.", "From Coquelicot Require Import Coquelicot."]
    lines += ["Import ListNotations.", "Open Scope R_scope.", "Set Printing Width 90."]
    for k, (file, names) in enumerate(theorems.items()):
        needed = [full_name(file, name).rpartition(".")[0] for name, _ in names]
        lines += [f"Require {m}." for m in dict.fromkeys(needed)] + [f"Module M{k}."]
        if file != "catalogue":
            text = (folder / f"{file}.v").read_text(encoding="utf-8")
            imports = " ".join(re.findall(r"From Farfield Require Import([^.]*)\.", text)).split()
            lines += [f"Import Farfield.{m}." for m in (*imports, file)]
        lines += [f"Check @{full_name(file, name)}." for name, _ in names] + [f"End M{k}."]
    blocks = re.split(r"^@?[\w.]+\s+: ", compile_text("\n".join(lines), folder), flags=re.MULTILINE)
    return [re.sub(r"\n {7}", "\n", body.rstrip()) for body in blocks[1:]]


def recorded(folder: Path = HERE) -> dict[str, list[dict[str, str]]]:
    """The statements of each file as they are to be recorded."""
    theorems = library(folder)
    shown = iter(printed(theorems, folder))
    return {
        file: [{"name": name, "says": says, "statement": next(shown)} for name, says in names]
        for file, names in theorems.items()
    }


def check_statements(now: object, before: object) -> None:
    """The recorded statements are those that the prover prints."""
    if now != before:
        raise Failure("statements.json is not what the prover prints; record with --write")


# -- the checks themselves ------------------------------------------------------------------------


def check_checks() -> None:
    """Each check finds a fault of its kind."""

    def finds(what: str, check: object, *given: object) -> None:
        try:
            check(*given)  # type: ignore[operator]
        except Failure:
            return
        raise Failure(f"the check does not find {what}")

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fault = folder / "Fault.v"
        fault.write_text("Axiom free : 1 = 2.\nTheorem odd : 1 = 2.\nProof. exact free. Qed.\n")
        run("coqc", "-q", "-Q", place, "Farfield", str(fault))
        finds("an axiom", lambda: check_axioms(axioms(["Farfield.Fault.odd"], folder)))
        finds("a theorem that is not listed", check_index, library(folder), {})
        finds("another statement", check_statements, {"odd": "1 = 2"}, {"odd": "1 = 1"})
        fault.write_text("Theorem odd : 1 = 2.\nProof. Admitted.\n")
        run("coqc", "-q", "-Q", place, "Farfield", str(fault))
        finds("an open proof", check_text, folder)
        finds(
            "what an open proof assumes",
            lambda: check_axioms(axioms(["Farfield.Fault.odd"], folder)),
        )
        compiled = folder / "Fault.vo"
        content = bytearray(compiled.read_bytes())
        content[len(content) // 2] ^= 255
        compiled.write_bytes(content)
        finds("a damaged file", check_kernel, folder, ())


def main(arguments: list[str] | None = None) -> int:
    """Run all checks; 1 if one fails, 2 without the prover."""
    parser = argparse.ArgumentParser(description="Build and check the theorems.")
    parser.add_argument("--jobs", type=int, default=2, help="processes that compile")
    parser.add_argument("--write", action="store_true", help="record the statements anew")
    chosen = parser.parse_args(arguments)
    if any(shutil.which(tool) is None for tool in ("coqc", "coqchk", "coq_makefile", "make")):
        print(f"formal: no prover on the path; needed: {NEEDED}", file=sys.stderr)
        return 2
    theorems = library()
    every = [full_name(file, name) for file, names in theorems.items() for name, _ in names]
    apart = [name for name in every if name.split(".")[1] in APART]

    def statements() -> None:
        place = HERE / "statements.json"
        now = recorded()
        if chosen.write:
            place.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        check_statements(now, json.loads(place.read_text(encoding="utf-8")))

    steps = {
        "no proof is open": check_text,
        "the index lists every theorem": lambda: check_index(
            theorems, tomllib.loads((HERE / "index.toml").read_text(encoding="utf-8"))
        ),
        "the files compile": lambda: build(chosen.jobs),
        "no further axiom": lambda: check_axioms(
            axioms([name for name in every if name not in apart])
        ),
        "machine integers in Numbers alone": lambda: check_axioms(axioms(apart), machine=True),
        "the statements are those recorded": statements,
        "the kernel's checker accepts them": check_kernel,
        "each check finds its fault": check_checks,
    }
    for what, step in steps.items():
        start = time.monotonic()
        try:
            step()
        except Failure as failure:
            print(f"formal: not so: {what}\n{failure}", file=sys.stderr)
            if "Cannot find a physical path" in str(failure):
                print(f"formal: a library is missing; needed: {NEEDED}", file=sys.stderr)
            return 1
        print(f"{what:<36}{time.monotonic() - start:>6.0f} s", flush=True)
    verdicts = len(theorems["catalogue"])
    print(
        f"{len(every) - verdicts} theorems and {verdicts} certificates of the catalogue are checked"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
