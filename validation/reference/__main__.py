"""What `python -m farfield.validation.reference` does; see the package."""

from __future__ import annotations

import json
import sys

from farfield.theory.results import InputError
from farfield.validation.reference import HERE, collect, place, planned, predict, results
from farfield.validation.runs import write

USAGE = "accepted: predict, missing FOLDER, collect FOLDER [--replace], or answers"


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    match arguments:
        case ["predict"]:
            if count := len(results()):
                raise InputError(
                    f"the predictions are registered: {count} results carry their hash"
                )
            text = json.dumps(predict(), separators=(",", ":"), allow_nan=False)
            lines = text.replace('{"label"', '\n{"label"')  # one encoding a line
            write(HERE / "predictions.json", (lines + "\n").encode())
        case ["collect", folder]:
            print("\n".join(collect(folder)))
        case ["collect", folder, "--replace"]:
            print("\n".join(collect(folder, replace=True)))
        case ["missing", folder]:
            from farfield.validation.corpus import corpus
            from farfield.validation.runs import Store
            from farfield.validation.sweep import sweep

            for jobs, home, _ in planned(corpus()):
                lacking = [job for job in jobs if not place(job, home).exists()]
                print(sweep(lacking, Store(folder)))
            print("\n".join(collect(folder)))
        case ["answers"]:
            from farfield.validation.answers import answers

            for length in (64, 128):
                print("\n\n".join(str(answer) for answer in answers(length=length)))
        case _:
            raise InputError(f"arguments {arguments!r}; {USAGE}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"farfield: {error}")
