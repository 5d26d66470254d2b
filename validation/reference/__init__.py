"""Reference results: a plan, what the theory predicted before the first run, and what came out.

    plan.toml           the runs
    predictions.json    the predictions for every encoding, with the SHA-256 of plan.toml
    <run>.json          one finished run, with the SHA-256 of predictions.json
    further/            more plans and their runs, which no prediction is about
    <name>/             further registrations: every rule's forecast of every case
                        (`registration`); `README.md` says what was added when

    python -m farfield.validation.reference register NAME     writes the predictions of one
    python -m farfield.validation.reference make FOLDER       makes the runs that are not here yet
    python -m farfield.validation.reference collect FOLDER    takes the finished ones of a folder
    python -m farfield.validation.reference score             `hold_and_use`, predicted and measured

`committed` says how files are named and numbers written. `table` is the one reader of results, with
the mean over seeds. `registration` holds plans, hashes and what every rule says; `first` has the
predictions of the first registration beside what came out. `known_cases` is what a forecast rests
on. `collection` makes runs and takes finished ones in. `hold` has the registration of tasks, whose
predictions are attention and accuracy.
`farfield.validation.evidence` asks whether the theory predicts.
"""

from farfield.validation.reference.collection import make, planned
from farfield.validation.reference.committed import HERE, place, sha256
from farfield.validation.reference.registration import FIRST, REGISTRATIONS
from farfield.validation.reference.table import results

__all__ = [
    "FIRST",
    "HERE",
    "REGISTRATIONS",
    "make",
    "place",
    "planned",
    "results",
    "sha256",
]
