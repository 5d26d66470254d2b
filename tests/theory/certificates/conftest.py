"""A prover that says what a test wants."""

import pytest

from farfield.theory.certificates import prover as prover_module

AXIOMS = "Axioms:\\nClassical_Prop.classic : forall P : Prop, P \\\\/ ~ P"


@pytest.fixture
def some_prover(tmp_path, monkeypatch):
    """A program in the prover's place that writes down how it was called; what it prints on a
    certificate is given, and the exit code of its checker, if there is one; the library is compiled
    but for a stale module."""

    def install(printed=AXIOMS, code=0, seconds=0, stale="", checker=None):
        program = tmp_path / "bin" / "coqc"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            "#!/bin/sh\n"
            'if [ "$1" = --version ]; then echo 8.16; exit; fi\n'
            "for last; do :; done\n"
            f'echo "$@" >> {tmp_path}/calls\n'
            f'case "$last" in *Received.v) sleep {seconds};; *) exit 0;; esac\n'
            f'printf "{printed}\\n"\n'
            f'[ {code} = 0 ] || echo "File \\"$last\\", line 7, characters 2-9:\nError: No." >&2\n'
            f"exit {code}\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/nowhere:/usr/bin:/bin")
        which = prover_module.shutil.which
        checks = {None: None, 0: which("true"), 1: which("false")}[checker]
        monkeypatch.setattr(
            prover_module.shutil, "which", lambda name: checks if name == "coqchk" else which(name)
        )
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(prover_module, "_fresh", lambda file: file.stem != stale)

    return install
