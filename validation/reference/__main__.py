"""What `python -m farfield.validation.reference` does; see the package."""

from __future__ import annotations

import json
import sys

from farfield.theory.answers.answer import InputError
from farfield.validation.reference.collection import collect
from farfield.validation.reference.forecasts import add, register
from farfield.validation.reference.hold import HOLD, scored, use
from farfield.validation.reference.hold import register as register_use
from farfield.validation.reference.registration import FIRST, REGISTRATIONS

USAGE = (
    "accepted: register NAME, add NAME, missing FOLDER, use FOLDER, score or collect FOLDER "
    "[--replace]"
)


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    match arguments:
        case ["register", HOLD.folder.name]:
            register_use()
        case ["use", folder]:
            for line in use(folder):
                print(line, flush=True)
        case ["score"]:
            print(json.dumps(scored(), indent=1))
        case ["register" | "add" as what, name]:
            known = {r.folder.name: r for r in (FIRST, *REGISTRATIONS)}
            if name not in known:
                raise InputError(f"registration {name!r}; accepted: {', '.join(known)}")
            {"register": register, "add": add}[what](known[name])
        case ["collect", folder]:
            print("\n".join(collect(folder)))
        case ["collect", folder, "--replace"]:
            print("\n".join(collect(folder, replace=True)))
        case ["missing", folder]:
            from farfield.validation.reference.missing import missing

            for line in missing(folder):
                print(line, flush=True)
        case _:
            raise InputError(f"arguments {arguments!r}; {USAGE}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"farfield: {error}")
