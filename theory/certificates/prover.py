"""The prover: where it is, the library certificates rest on, and the check of a certificate."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from farfield.theory.answers.errors import InputError

LIBRARY = Path(__file__).resolve().parents[1] / "formal"
MODULES = ("Certificate", "Extended")


class Rejected(Exception):
    """The kernel does not accept a certificate; one line says where."""


def verify(path: Path) -> None:
    """Have the prover check a certificate; the library is compiled before the first one.

    Raises:
        InputError: there is no prover on the path, or it lacks its library of real analysis.
        Rejected: the certificate does not compile.
    """
    coqc = shutil.which("coqc")
    if coqc is None:
        raise InputError(
            "--verify: no prover: coqc is not on the path; accepted: Rocq (Coq) 8.16 with "
            "Coquelicot (Debian: coq, libcoq-coquelicot)"
        )
    library = compiled(coqc)
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "Certified.v"
        copy.write_bytes(path.read_bytes())
        done = _run(coqc, library, copy)
    if done.returncode:
        raise Rejected(f"the prover rejects {str(path)!r}: {_reason(done.stderr)}")


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
        made = Path(tempfile.mkdtemp(dir=place.parent))
    except OSError as error:
        raise InputError(
            f"--verify: {str(place.parent)!r} cannot be written: {error.strerror}; accepted: a "
            "cache folder (XDG_CACHE_HOME), or a library compiled by `make formal`"
        ) from None
    for name in needed:
        shutil.copyfile(LIBRARY / f"{name}.v", made / f"{name}.v")
        done = _run(coqc, made, made / f"{name}.v")
        if done.returncode:
            shutil.rmtree(made)
            raise InputError(
                f"--verify: the prover does not compile {name}.v: {_reason(done.stderr)}; "
                "accepted: Rocq (Coq) 8.16 with Coquelicot"
            )
    with contextlib.suppress(OSError):  # another process was faster
        made.rename(place)
    return place if place.is_dir() else made


def closure(modules: tuple[str, ...]) -> list[str]:
    """The modules of the library that these rest on, each after those it needs.

    >>> closure(("Leak",))
    ['Sums', 'Leak']
    """
    order: list[str] = []
    for module in modules:
        if module in order:
            continue
        text = (LIBRARY / f"{module}.v").read_text(encoding="utf-8")
        for line in re.findall(r"From Farfield Require (?:Import|Export)([^.]*)\.", text):
            order += [name for name in closure(tuple(line.split())) if name not in order]
        order.append(module)
    return order


def _fresh(file: Path) -> bool:
    """Whether the file is compiled and unchanged since."""
    built = file.with_suffix(".vo")
    return built.exists() and built.stat().st_mtime >= file.stat().st_mtime


def _run(coqc: str, library: Path, file: Path) -> subprocess.CompletedProcess[str]:
    command = [coqc, "-q", "-w", "-ambiguous-paths", "-Q", str(library), "Farfield", str(file)]
    return subprocess.run(command, capture_output=True, text=True)


def _reason(output: str) -> str:
    """The prover's message on one line, without the file's name."""
    words = " ".join(output.split()) or "it stopped without a message"
    found = re.search(r"(line \d+), characters \d+-\d+: (.*)", words)
    return (f"{found[1]}: {found[2]}" if found else words)[:200]
