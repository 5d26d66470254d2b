"""What `python -m farfield.validation.reference` does; see the package."""

from __future__ import annotations

import sys

from farfield.theory.answers.answer import InputError
from farfield.validation.reference.collection import collect, planned
from farfield.validation.reference.committed import HERE, place
from farfield.validation.reference.forecasts import add, register
from farfield.validation.reference.registration import REGISTRATIONS

USAGE = (
    "accepted: register NAME, add NAME, missing FOLDER, collect FOLDER [--replace], "
    "mixtures FOLDER, summary or answers"
)


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    match arguments:
        case ["register" | "add" as what, name]:
            known = {r.folder.name: r for r in REGISTRATIONS}
            if name not in known:
                raise InputError(f"registration {name!r}; accepted: {', '.join(known)}")
            {"register": register, "add": add}[what](known[name])
        case ["collect", folder]:
            print("\n".join(collect(folder)))
        case ["collect", folder, "--replace"]:
            print("\n".join(collect(folder, replace=True)))
        case ["missing", folder]:
            from farfield.validation.runs.store import Store
            from farfield.validation.runs.sweep import sweep
            from farfield.validation.text.reading import corpus

            for jobs, home, _ in planned(corpus()):
                lacking = [job for job in jobs if not place(job, home).exists()]
                print(sweep(lacking, Store(folder)))
            print("\n".join(collect(folder)))
        case ["mixtures", folder]:
            from farfield.validation.reference import mixtures
            from farfield.validation.text.reading import corpus

            for jobs, home, _ in planned(corpus()):
                if home in (HERE, REGISTRATIONS[0].folder):
                    for line in mixtures.measure(jobs, folder):
                        print(line, flush=True)
        case ["summary"]:
            from farfield.validation.reference.evidence import summary

            print("\n".join(f"* {sentence}" for sentence in summary()))
        case ["answers"]:
            from farfield.validation.reference import judged
            from farfield.validation.reference.evidence import answers

            print("\n\n".join(str(answer) for answer in judged.answers()))
            for length in (64, 128):
                print("\n\n".join(str(answer) for answer in answers(length=length)))
        case _:
            raise InputError(f"arguments {arguments!r}; {USAGE}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"farfield: {error}")
