"""Make what is read: two texts in tokens, cut in two, with needles, to files beside this one.

    python experiments/rotary_5/rows.py MODEL.gguf syscalls=MAN_FOLDER networkx=PACKAGE_FOLDER

`MAN_FOLDER` has pages of section 2 of the Linux manual in their source form (Debian's package
`manpages-dev`), and `PACKAGE_FOLDER` is the package `networkx`. Rows are made as those of
`experiments/rotary_3`, three times as many, with other texts and other needles.
`out/rotary_5/NAME.txt` is what the plan reads.
"""

import gzip
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROWS = 18

ARTISTS = "Monet Rembrandt Goya Vermeer Picasso Dali Turner Degas Cezanne Matisse Klimt Munch"
STONES = "ruby opal jade pearl topaz quartz onyx garnet emerald sapphire diamond agate"
MONTHS = "January February March April May June July August October November December September"
FRUITS = "apple banana cherry mango papaya lemon orange peach plum grape kiwi fig"
LEVELS = "debug notice warning error critical verbose silent fatal trace info panic quiet"
NAMES = [
    f"{a}{b}"
    for a in ("Hal", "Mar", "Ren", "Sut", "Cal")
    for b in ("bury", "dale", "grove", "inger", "lock", "mond", "sby", "worth")
]
HOSTS = [f"{a}-{b}" for a in ("edge", "core", "mail", "disk", "node") for b in range(10, 60)]
FIELDS = [
    f"{a}{b}"
    for a in ("max", "min", "num", "cur", "old", "tmp")
    for b in ("Width", "Depth", "Count", "Index", "Total", "Score", "Ratio")
]
FOUR, THREE = [str(n) for n in range(1000, 10000)], [str(n) for n in range(100, 1000)]
TWO = [str(n) for n in range(10, 100)]
FORMS = {
    "painting": ("Hall {} shows a painting by {}.", TWO, ARTISTS.split()),
    "ring": ("Lady {} wears a ring of {}.", NAMES, STONES.split()),
    "harvest": ("Farm {} harvests in {}.", THREE, MONTHS.split()),
    "crate": ("Crate {} holds one {}.", FOUR, FRUITS.split()),
    "memory": ("{}: {} GB of memory", HOSTS, THREE),
    "log": ("log_level[{}] = {};", THREE, LEVELS.split()),
    "field": ("self.{} = {}", FIELDS, FOUR),
    "phone": ("To call {}, dial {}.", NAMES, FOUR),
}
"""By form: sentence, what is asked about, what may be answered."""


def syscalls(folder):
    """Pages of section 2 of the Linux manual without comments, one after another."""
    each = []
    for file in sorted(Path(folder).glob("*.2.gz")):
        lines = gzip.decompress(file.read_bytes()).decode("utf-8", "replace").splitlines()
        kept = [line for line in lines if not line.startswith(('.\\"', "'\\\""))]
        if len(kept) > 5:  # others name another page
            each.append("\n".join(kept))
    return "\n\n".join(each)


def networkx(folder):
    """Modules of networkx but its tests."""
    files = sorted(Path(folder).rglob("*.py"))
    return "\n\n".join(f.read_text("utf-8") for f in files if "tests" not in f.parts)


def main():
    """Write the rows and the plan's text and needles."""
    spec = importlib.util.spec_from_file_location("before", HERE.parent / "rotary_3/rows.py")
    before = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(before)
    before.HERE, before.OUT, before.ROWS = HERE, Path("out/rotary_5"), ROWS
    before.FORMS, before.READERS = FORMS, {"syscalls": syscalls, "networkx": networkx}
    before.main(*sys.argv[1:])


if __name__ == "__main__":
    main()
