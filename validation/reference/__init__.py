"""Reference results: a plan, what the theory predicted before the first run, and what came out.

    plan.toml           the runs
    predictions.json    the predictions for every encoding, with the SHA-256 of plan.toml
    <run>.json          one finished run, with the SHA-256 of predictions.json
    further/            more plans and their runs, which no prediction is about
    <name>/             further registrations: every rule's forecast of every case
                        (`registration`); `README.md` dates each addition

    python -m farfield.validation.reference register NAME     writes the predictions of one
    python -m farfield.validation.reference make FOLDER       makes the runs that are not here yet
    python -m farfield.validation.reference collect FOLDER    takes the finished ones of a folder
    python -m farfield.validation.reference score             `hold_and_use`, predicted and measured

`committed` names the files and writes the numbers. `table` is the one reader of results, with the
mean over seeds. `registration` holds plans, hashes and the forecasts of every rule. `first`
compares the predictions of the first registration with the results. `known_cases` has the trials
behind a forecast. `collection` makes runs and collects finished ones. `hold` has the registration
of tasks: it predicts attention and accuracy. `farfield.validation.evidence` asks whether the theory
predicts.
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
