"""Make what is read: two texts in tokens, cut in two, with needles, to files beside this one.

    python experiments/rotary_4/rows.py MODEL.gguf cmake=HELP_FOLDER matplotlib=PACKAGE_FOLDER

`HELP_FOLDER` is the manual of CMake in its source form (Debian's package `cmake-data`), and
`PACKAGE_FOLDER` is the package `matplotlib`. Rows are made as those of `experiments/rotary_3`, with
other texts and other needles. `out/rotary_4/NAME.txt` is what the plan reads.
"""

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
CHAPTERS = ("command", "manual", "prop_tgt", "policy")

PEOPLE = "Abigail Benedict Clara Dexter Esther Felix Greta Hugo Irene Jasper Katrina Leonard"
SHIPS = "Falcon Aurora Phoenix Neptune Victory Liberty Mermaid Dolphin Pelican Tempest Orion Comet"
PLANTS = "tulips roses carrots onions pumpkins lilies tomatoes beans cherries melons daisies mint"
ERRORS = (
    "KeyError ValueError TypeError IndexError OSError RuntimeError ImportError NameError "
    "MemoryError SyntaxError EOFError AttributeError"
)
MODES = "silver cotton granite walnut leather bronze bamboo ceramic rubber crystal linen steel"
NAMES = [
    f"{a}{b}"
    for a in ("Bar", "Del", "Gor", "Pen", "Wes")
    for b in ("wick", "ridge", "amin", "elli", "ford", "oway", "stein", "croft")
]
CALLS = [
    f"{a}_{b}"
    for a in ("fetch", "merge", "clear", "shift", "score", "paint")
    for b in ("pages", "users", "nodes", "slots", "edges", "masks")
]
SAMPLES = [f"{a}{b}" for a in "BDGKT" for b in range(10, 100)]
FOUR, THREE = [str(n) for n in range(1000, 10000)], [str(n) for n in range(100, 1000)]
TWO = [str(n) for n in range(10, 100)]
FORMS = {
    "train": ("Train {} leaves from platform {}.", THREE, TWO),
    "ship": ("Captain {} sails the {}.", NAMES, SHIPS.split()),
    "sample": ("Sample {} weighs {} grams.", SAMPLES, THREE),
    "ticket": ("Ticket {} was sold to {}.", FOUR, PEOPLE.split()),
    "invoice": ('"invoice_{}": {},', THREE, FOUR),
    "error": ("{}() raises {};", CALLS, ERRORS.split()),
    "mode": ("#define {}_MODE {}", [name.upper() for name in NAMES], MODES.split()),
    "plant": ("Mr {} grows {}.", NAMES, PLANTS.split()),
}
"""By form: sentence, what is asked about, what may be answered."""


def cmake(folder):
    """Chapters of the manual of CMake, one page after another."""
    files = [f for name in CHAPTERS for f in sorted((Path(folder) / name).glob("*.rst"))]
    return "\n\n".join(file.read_text("utf-8") for file in files)


def matplotlib(folder):
    """Modules of matplotlib but its private ones, which are tables in part."""
    files = [f for f in sorted(Path(folder).glob("*.py")) if not f.name.startswith("_")]
    return "\n\n".join(file.read_text("utf-8") for file in files)


def main():
    """Write the rows and the plan's text and needles."""
    spec = importlib.util.spec_from_file_location("before", HERE.parent / "rotary_3/rows.py")
    before = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(before)
    before.HERE, before.OUT = HERE, Path("out/rotary_4")
    before.FORMS, before.READERS = FORMS, {"cmake": cmake, "matplotlib": matplotlib}
    before.main(*sys.argv[1:])


if __name__ == "__main__":
    main()
