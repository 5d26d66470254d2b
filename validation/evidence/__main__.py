"""What `python -m farfield.validation.evidence` does; see the package."""

from __future__ import annotations

import sys
from pathlib import Path

from farfield.theory.answers.answer import InputError
from farfield.validation.evidence import changes, rule_scores
from farfield.validation.evidence.first_registration import answers
from farfield.validation.evidence.summary import QUERIES, filled, summary, where
from farfield.validation.json_files import write


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    match arguments:
        case ["summary"]:
            print("\n".join(f"* {sentence}" for sentence in summary()))
        case ["fill", *paths] if paths:
            for path in map(Path, paths):
                write(path, filled(path.read_text(encoding="utf-8")).encode())
        case ["where", *words]:
            for shown in where(" ".join(words)):
                query = getattr(QUERIES[shown.query], "func", QUERIES[shown.query])
                print(f"{shown.text} is {shown.name!r} of the query {shown.query!r}, the function")
                print(f"{query.__module__}.{query.__name__}, from {len(shown.files)} results:")
                print("\n".join(f"  validation/{name}" for name in shown.files))
        case ["answers"]:
            found = (
                *rule_scores.answers(),
                *rule_scores.competing(),
                *filter(None, [changes.mixtures(), changes.circuits()]),
                *(answer for length in (64, 128) for answer in answers(length=length)),
            )
            print("\n\n".join(map(str, found)))
        case ["mixtures" | "circuits" | "gradients" as what, folder]:
            from farfield.validation.evidence import interventions  # needs torch

            for line in getattr(interventions, f"measure_{what}")(folder):
                print(line, flush=True)
        case _:
            raise InputError(
                f"arguments {arguments!r}; accepted: summary, answers, where NUMBER, fill FILE "
                "..., mixtures FOLDER, circuits FOLDER or gradients FOLDER"
            )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"farfield: {error}")
