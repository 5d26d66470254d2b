"""Ask again for all that is recorded, and show what is answered otherwise; see record.py.

python tests/pinned/check.py [SECTION ...]
"""

import contextlib
import fnmatch
import json
import math
import os
import re
import sys
import tomllib

from record import FACTS, HERE

FLOAT64 = re.compile(r"^catalogue / .* / bias / ")


def leaves(value, path=()):
    """Every field with its place: "section / case / field", and "/ i" for the head number i.

    A text of several lines and an enclosure are one field each.
    """
    one = isinstance(value, list) and (
        path[-1] == "enclosure" or all(isinstance(v, str) for v in value)
    )
    if isinstance(value, (dict, list)) and not one:
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, str(name)))
    else:
        yield " / ".join(path), value


def same(place, was, now):
    """Whether an answer is the one recorded; an enclosure may have become tighter.

    Numbers that float64 makes (biases) differ in their last digits from one
    processor to another, since NumPy and BLAS take its own instructions.
    """
    if place.endswith(" / enclosure") and isinstance(now, list):
        return float(was[0]) <= float(now[0]) <= float(now[1]) <= float(was[1])
    if was != now and FLOAT64.search(place):
        with contextlib.suppress(TypeError, ValueError):
            return math.isclose(float(was), float(now), rel_tol=1e-11, abs_tol=1e-13)
    return was == now


def differences(recorded, answered):
    """Places whose answers differ, with both; a new case is no difference, a missing one is."""
    now = dict(leaves(answered))
    for place, was in leaves(recorded):
        if not same(place, was, now.get(place, "missing")):
            yield place, was, now.get(place, "missing")


def listed(one):
    """What may be one text or several."""
    return [one] if isinstance(one, str) else one


def meant(change, place, was, now):
    return fnmatch.fnmatchcase(place, change["where"]) and all(
        "*" in (accepted := listed(change.get(name, "*"))) or str(value) in accepted
        for name, value in (("was", was), ("now", now))
    )


def shown(value):
    """A value for a reader: a text line by line."""
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "\n      ".join(value)
    return repr(value)


def main(names):
    """Print the differences that no change explains, and the changes that nothing needs."""
    written = tomllib.loads((HERE / "changes.toml").read_text(encoding="utf-8")).get("change", [])
    changes = [change | {"where": w} for change in written for w in listed(change["where"])]
    recorded = json.loads((HERE / "facts.json").read_text(encoding="utf-8"))
    needed, failed = set(), 0
    for name in names or FACTS:
        answered = json.loads(json.dumps({name: FACTS[name]()}))
        for place, was, now in differences({name: recorded[name]}, answered):
            lines = [k for k, change in enumerate(changes) if meant(change, place, was, now)]
            needed |= set(lines)
            if not lines:
                failed += 1
                print(f"{place}:\n  was {shown(was)}\n  now {shown(now)}")
    for k, change in enumerate(changes):
        if not names and k not in needed:
            failed += 1
            print(f"changes.toml: nothing needs {change['where']!r} any more")
    print(f"{failed} unexpected differences")
    return failed


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    sys.exit(bool(main(sys.argv[1:])))
