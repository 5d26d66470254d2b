"""What `python -m farfield.validation.reference` does; see the package."""

from __future__ import annotations

import json
import sys

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.names import one_of
from farfield.validation.reference import hold
from farfield.validation.reference.collection import collect, missing
from farfield.validation.reference.registration import REGISTRATIONS, predicted

USAGE = "accepted: register NAME, missing FOLDER, use FOLDER, score or collect FOLDER [--replace]"


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    match arguments:
        case ["use" | "missing" as what, folder]:
            for line in (hold.use if what == "use" else missing)(folder):
                print(line, flush=True)
        case ["score"]:
            print(json.dumps(hold.scored(), indent=1))
        case ["register", name]:
            known = {r.name: r for r in REGISTRATIONS}
            one_of(name, "registration", known)
            known[name].register(predicted(known[name]))
        case ["collect", folder] | ["collect", folder, "--replace"]:
            print("\n".join(collect(folder, replace=len(arguments) == 3)))
        case _:
            raise InputError(f"arguments {arguments!r}; {USAGE}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"farfield: {error}")
