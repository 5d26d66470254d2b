"""What `python -m farfield.validation.reference` does; see the package."""

from __future__ import annotations

import json
import sys

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.names import one_of
from farfield.validation.reference import hold
from farfield.validation.reference.collection import make
from farfield.validation.reference.registration import REGISTRATIONS, predicted

USAGE = "accepted: register NAME, make FOLDER, collect FOLDER or score"


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    match arguments:
        case ["make" | "collect" as what, folder]:
            for line in make(folder, train=what == "make"):
                print(line, flush=True)
        case ["score"]:
            print(json.dumps(hold.scored(), indent=1))
        case ["register", name]:
            known = {r.name: r for r in REGISTRATIONS}
            one_of(name, "registration", known)
            known[name].register(predicted(known[name]))
        case _:
            raise InputError(f"arguments {arguments!r}; {USAGE}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"farfield: {error}")
