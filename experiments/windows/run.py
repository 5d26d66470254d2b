"""Measure the windows that the runs of `plan.toml` need, one JSON line a run and length.

    python experiments/windows/run.py RUNS symbols.txt > experiments/windows/results.jsonl

`paired` is the ratio of perplexities of one window with as many keys to the plan by layer, on the
part of the text that neither was fitted on, with its 95 % interval over rows.
"""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np

from farfield import smallest_window
from farfield.validation.harness.measure import ratio_of, token_losses
from farfield.validation.harness.runs import listed
from farfield.validation.models.folder import describe
from farfield.validation.models.opened import View, open_model
from farfield.validation.models.text import rows_of, text_of
from farfield.validation.models.window_plan import PLAN, SmallestWindow

ROWS = 32
AS_MANY = "one window, as many keys"


def paired(found: SmallestWindow, place: Path, text: str | None) -> list[float]:
    """One window with as many keys over the plan, on the second half of the held-out part."""
    opened = open_model(describe(place), tokens=found.length)
    read = text_of(opened.model, text)
    other = np.split(read.held_out, [len(read.held_out) // 2])[1]
    rows, last = rows_of(read, other, ROWS, found.length), found.length - found.length // 2
    views = View(found.costs[AS_MANY].width), View(found.plan)
    sums = [(token_losses(opened, rows, v, last).mean(1), np.ones(len(rows))) for v in views]
    return [round(x, 4) for x in ratio_of(*sums)]


def main(folder: str, symbols: str) -> None:
    """Every finished run at its training length, ALiBi at 1,024 tokens."""
    for one in listed(folder):
        if one.state == "finished":
            far = one.run.name == "alibi"
            place, text = Path(folder) / one.key, None if far else symbols
            found = smallest_window(
                place, text, loss="1/100", segments=ROWS, length=1024 if far else None
            )
            costs = {name: dataclasses.asdict(cost) for name, cost in found.costs.items()}
            line = {"label": one.run.name, "seed": one.run.seed, "length": found.length}
            line |= {"need": found.need, "plan": found.plan, "costs": costs}
            if AS_MANY in costs and PLAN in costs:
                line["paired"] = paired(found, place, text)
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
