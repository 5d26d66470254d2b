"""Ask again for all that is recorded, and show what is answered otherwise; see record.py."""

import fnmatch
import json
import sys
import tomllib

from record import HERE, SECTIONS


def leaves(value, path=()):
    """Every field with its place: "section / case / field", and "/ i" for the head number i."""
    if isinstance(value, (dict, list)):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, str(name)))
    else:
        yield " / ".join(path), value


def differences(recorded, answered):
    """Places whose answers differ, with both; a new case is no difference, a missing one is."""
    now = dict(leaves(answered))
    for place, was in leaves(recorded):
        if now.get(place, "missing") != was:
            yield place, was, now.get(place, "missing")


def meant(change, place, was, now):
    return fnmatch.fnmatchcase(place, change["where"]) and all(
        change.get(name, "*") in ("*", str(value)) for name, value in (("was", was), ("now", now))
    )


def main(names):
    recorded = json.loads((HERE / "answers.json").read_text(encoding="utf-8"))
    changes = tomllib.loads((HERE / "changes.toml").read_text(encoding="utf-8")).get("change", [])
    needed, failed = set(), 0
    for name in names or SECTIONS:
        answered = json.loads(json.dumps({name: SECTIONS[name]()}))
        for place, was, now in differences({name: recorded[name]}, answered):
            lines = [k for k, change in enumerate(changes) if meant(change, place, was, now)]
            needed |= set(lines)
            if not lines:
                failed += 1
                print(f"{place}: {was!r} is now {now!r}")
    if not names:
        for k, change in enumerate(changes):
            if k not in needed:
                failed += 1
                print(f"changes.toml: nothing needs {change['where']!r} any more")
    print(f"{failed} unexpected differences")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
