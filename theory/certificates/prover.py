"""Runs of `coqc`: where the prover is, its compiled library, its messages, the axioms it names."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from farfield.theory.algebra.door import budget
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.errors import InputError

LIBRARY = Path(__file__).resolve().parents[1] / "formal"
MODULES = ("Certificate", "Extended")
CLASSICAL = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
"""The axioms of the classical reals: all that a theorem may rest on."""
DAYS = 1e6
"""The most seconds to wait for: the system takes no timeout of 25 days or more."""


class Rejected(Exception):
    """The kernel does not accept a file; one line says where."""


def checked(text: str) -> str:
    """The prover's output on a file.

    The library is compiled before the first question. Where the kernel's own checker is on the
    path, it has to accept the compiled file, too.

    Raises:
        InputError: there is no prover on the path, or it lacks its library of real analysis.
        Rejected: the file does not compile.
        Unreachable: the time is spent.
    """
    coqc, coqchk = shutil.which("coqc"), shutil.which("coqchk")
    if coqc is None:
        raise InputError(
            "no prover: coqc is not on the path; accepted: Rocq (Coq) 8.16 with Coquelicot "
            "(Debian: coq, libcoq-coquelicot)"
        )
    library = compiled(coqc)
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "Received.v"
        file.write_bytes(text.encode())
        done = _run(coqc, library, file, "-Q", place, "")
        if done.returncode:
            raise Rejected(_reason(done.stderr))
        if coqchk is not None:
            paths = ["-Q", str(library), "Farfield", "-Q", place, ""]
            again = _ended([coqchk, "-silent", *paths, "-norec", "Received"])
            if again.returncode:
                raise Rejected(f"by its checker coqchk: {_reason(again.stdout + again.stderr)}")
    return done.stdout


def compiled(coqc: str) -> Path:
    """The folder with the library compiled: its own, or a copy in the user's cache."""
    needed = closure(MODULES)
    if all(_fresh(LIBRARY / f"{name}.v") for name in needed):
        return LIBRARY
    version = subprocess.run([coqc, "--version"], capture_output=True, text=True).stdout
    digest = hashlib.sha256(version.encode())
    for name in needed:
        digest.update((LIBRARY / f"{name}.v").read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "farfield" / f"formal-{digest.hexdigest()[:16]}"
    if place.is_dir():
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            made = Path(folder)
            for name in needed:
                shutil.copyfile(LIBRARY / f"{name}.v", made / f"{name}.v")
                done = _run(coqc, made, made / f"{name}.v")
                if done.returncode:
                    raise InputError(
                        f"the prover does not compile {name}.v: {_reason(done.stderr)}; "
                        "accepted: Rocq (Coq) 8.16 with Coquelicot"
                    )
            made.rename(place)
    except OSError as error:
        if not place.is_dir():  # else another process was faster
            raise InputError(
                f"{str(place.parent)!r} cannot be written: {error.strerror}; accepted: a "
                "cache folder (XDG_CACHE_HOME), or a library compiled by `make formal`"
            ) from None
    return place


def axioms_named(printed: str) -> set[str]:
    r"""The axioms that the prover names where it prints what a theorem assumes.

    >>> axioms_named("Axioms:\nClassical_Prop.classic : forall P : Prop, P or not P")
    {'Classical_Prop.classic'}
    """
    return set(re.findall(r"^([\w.']+)\s*:", printed.partition("Axioms:")[2], flags=re.MULTILINE))


def closure(modules: tuple[str, ...]) -> list[str]:
    """The modules of the library that these rest on, each after those it needs.

    >>> closure(("Leak",)), closure(("Leak", "Sums"))
    (['Sums', 'Leak'], ['Sums', 'Leak'])
    """
    order: list[str] = []
    for module in modules:
        if module in order:
            continue
        text = (LIBRARY / f"{module}.v").read_bytes().decode()
        for line in re.findall(r"From Farfield Require (?:Import|Export)([^.]*)\.", text):
            order += [name for name in closure(tuple(line.split())) if name not in order]
        order.append(module)
    return order


def _fresh(file: Path) -> bool:
    """Whether the file is compiled and unchanged since."""
    built = file.with_suffix(".vo")
    return built.exists() and built.stat().st_mtime >= file.stat().st_mtime


def _run(coqc: str, library: Path, file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    paths = ["-Q", str(library), "Farfield", *options]
    return _ended([coqc, "-q", "-w", "-ambiguous-paths", *paths, str(file)])


def _ended(command: list[str]) -> subprocess.CompletedProcess[str]:
    """A process that has ended, within the time of the question."""
    left = budget().deadline - time.monotonic()
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=min(left, DAYS))
    except subprocess.TimeoutExpired:
        raise Unreachable("the time budget was spent (budget_s, --budget)") from None


def _reason(output: str) -> str:
    """The prover's message on one line, without the file's name."""
    words = " ".join(output.split()) or "it stopped without a message"
    match = re.search(r"(line \d+), characters \d+-\d+: (Error: .*)", words)
    return (f"{match[1]}: {match[2]}" if match else words)[:200]
