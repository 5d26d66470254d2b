"""What the plan wrote down, as `judge.py` reads it.

    python experiments/rotary_4/planned.py cmake=BOOK.json matplotlib=BOOK.json > planned.json

A `BOOK` is the file in the folder `--out` of `farfield mend`. It has the loss and needles of each
reading in one list, and the needles stand at the same distances in each row.
"""

import json
import sys
from pathlib import Path

import numpy as np

from farfield.validation.far_field.recall import distances

BLOCK, TRAINED, TO = 1024, 8192, 12288


def planned(book):
    """The gap probe by setting, and by setting and row the loss and the needles."""
    probed, rows = {}, {}
    for asked, numbers in json.loads(Path(book).read_text()).items():
        what, _, name = asked.partition(": ")
        if what == "gap probe, 1 rows":
            probed[name] = round(float(np.mean(numbers)), 5)
        if what.startswith("real rows, row "):
            logs, right = np.reshape(numbers[1:], (2, -1)).tolist()
            needles = zip(places(len(logs)), logs, right, strict=True)
            told = [[n, round(p, 4), bool(r)] for n, p, r in needles]
            row = {"loss": round(numbers[0], 5), "needles": told}
            rows.setdefault(name, {})[what.split()[-1]] = row
    return {"probed": probed, "rows": rows}


def places(count):
    """The distances of so many needles."""
    each = (distances(BLOCK, TO, TRAINED, most) for most in range(count, 2 * count))
    return next(found for found in each if len(found) == count)


if __name__ == "__main__":
    asked = (text.split("=", 1) for text in sys.argv[1:])
    print(json.dumps({name: planned(book) for name, book in asked}, separators=(",", ":")))
