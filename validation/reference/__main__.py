"""What `python -m farfield.validation.reference` does; see the package."""

from __future__ import annotations

import sys

from farfield.theory.answers.answer import InputError
from farfield.validation.reference.collection import collect, planned
from farfield.validation.reference.committed import place
from farfield.validation.reference.forecasts import add, register
from farfield.validation.reference.registration import REGISTRATIONS

USAGE = "accepted: register NAME, add NAME, missing FOLDER or collect FOLDER [--replace]"


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
        case _:
            raise InputError(f"arguments {arguments!r}; {USAGE}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"farfield: {error}")
