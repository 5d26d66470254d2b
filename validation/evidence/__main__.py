"""What `python -m farfield.validation.evidence` does; see the package."""

from __future__ import annotations

import sys

from farfield.theory.answers.answer import InputError
from farfield.validation.evidence import competing, judged, mixtures
from farfield.validation.evidence.questions import answers, summary
from farfield.validation.harness.reading import corpus
from farfield.validation.reference.collection import planned


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    match arguments:
        case ["summary"]:
            print("\n".join(f"* {sentence}" for sentence in summary()))
        case ["answers"]:
            found = [
                *judged.answers(),
                *competing.answers(),
                *filter(None, [mixtures.answer()]),
            ]
            for length in (64, 128):
                found += answers(length=length)
            print("\n\n".join(map(str, found)))
        case ["mixtures", folder]:
            for jobs, *_ in planned(corpus()):
                for line in mixtures.measure(jobs, folder):
                    print(line, flush=True)
        case _:
            raise InputError(
                f"arguments {arguments!r}; accepted: summary, answers or mixtures FOLDER"
            )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"farfield: {error}")
