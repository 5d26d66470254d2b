"""Make what is read: two texts in tokens, cut in two, with needles, to files beside this one.

    python experiments/rotary_3/rows.py MODEL.gguf git=RELNOTES_FOLDER sympy=PACKAGE_FOLDER

`RELNOTES_FOLDER` has the release notes of Git (Debian's package `git`, `doc/git/RelNotes`), and
`PACKAGE_FOLDER` is the package `sympy`. The first part of each text becomes the rows that are the
truth. `out/rotary_3/NAME.txt` is the rest, which the plan reads, with `needles_NAME.jsonl`.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np
import transformers

HERE, OUT = Path(__file__).parent, Path("out/rotary_3")
LENGTH, ROWS, FIRST = 12288, 6, 3000
BANDS = ((1100, 2000, 12), (2150, 8100, 18), (8300, 12200, 18))  # distances, how many needles
PLANNED = 240  # needles in the file of the plan
MODULES = ["polys", "solvers", "integrals", "core"]

PEOPLE = [
    "Ansel",
    "Brigid",
    "Cosmo",
    "Delia",
    "Edgar",
    "Flora",
    "Gideon",
    "Hattie",
    "Ivor",
    "Jolene",
    "Kermit",
    "Lorna",
]
TOWNS = [
    "Prague",
    "Tokyo",
    "Lagos",
    "Quito",
    "Boston",
    "Geneva",
    "Sydney",
    "Havana",
    "Kyoto",
    "Denver",
    "Nairobi",
    "Seoul",
]
PAINTS = [
    "crimson",
    "ivory",
    "teal",
    "amber",
    "violet",
    "olive",
    "maroon",
    "navy",
    "beige",
    "copper",
    "scarlet",
    "lilac",
]
WORDS = [
    "copper",
    "meadow",
    "falcon",
    "harbor",
    "pepper",
    "velvet",
    "marble",
    "thunder",
    "willow",
    "cactus",
    "magnet",
    "saffron",
]
HOSTS = [f"{a}{b}" for a in ("apollo", "hermes", "juno", "vesta") for b in range(10, 40)]
FOUR, THREE = [str(n) for n in range(1000, 10000)], [str(n) for n in range(100, 1000)]
TWO = [str(n) for n in range(10, 100)]
NAMES = [
    f"{a}{b}"
    for a in ("Mor", "Tal", "Kes", "Vin", "Hol")
    for b in ("ane", "ick", "ovar", "ulin", "esby", "ard", "ton", "mere")
]
FORMS = {
    "locker": ("Locker {} belongs to {}.", TWO, PEOPLE),
    "port": ("server {} listens on port {};", HOSTS, FOUR),
    "flight": ("Flight QX{} lands in {}.", THREE, TOWNS),
    "bytes": ("const {}_BYTES = {};", [name.upper() for name in NAMES], FOUR),
    "room": ("Doctor {} works in room {}.", NAMES, THREE),
    "extension": ("The extension of Mrs {} is {}.", NAMES, FOUR),
    "door": ("The door of house {} is {}.", TWO, PAINTS),
    "entry": ("{}: {}", [f"{a}_{b}" for a in ("alias", "label", "theme") for b in TWO], WORDS),
}
"""By form: sentence, what is asked about, what may be answered. The question is the sentence up to
its answer."""


def git(folder):
    """The release notes of Git, the newest first."""
    files = sorted(Path(folder).glob("*.txt"), key=lambda f: [*map(number, f.stem.split("."))])
    return "\n\n".join(file.read_text("utf-8", "replace") for file in reversed(files))


def number(part):
    """A part of a version as a number."""
    return int(part) if part.isdecimal() else 0


def sympy(folder):
    """Modules of SymPy, one after another."""
    files = [f for name in MODULES for f in sorted((Path(folder) / name).glob("*.py"))]
    return "\n\n".join(file.read_text("utf-8") for file in files)


READERS = {"git": git, "sympy": sympy}
"""By text: what reads it from its folder."""


def asked(seed, each):
    """Needles of every form: sentence, question, answer and how many answers there are."""
    draw, found = random.Random(seed), []
    for sentence, keys, answers in FORMS.values():
        for key in draw.sample(keys, each):
            answer = draw.choice(answers)
            told = sentence.format(key, answer)
            found.append((told, told[: told.rindex(answer)], answer, len(answers)))
    draw.shuffle(found)
    return found


def row(encode, tokens, seed):
    """A row with its needles, and what is said of them."""
    draw, needles = random.Random(10_000 + seed), asked(seed, sum(n for *_, n in BANDS) // 8)
    distances = []
    for low, high, count in BANDS:
        step = (high - low) / count
        distances += [round(low + (k + 0.5 * draw.random()) * step) for k in range(count)]
    start, stop, parts = encode("\n\nOnce more, what was noted:\n"), encode("\n"), []
    for told, before, answer, _ in needles:
        space = before.endswith(" ")  # which belongs to the token of the answer
        parts.append(
            (
                encode(before[: len(before) - space]),
                encode(" " * space + answer),
                encode(told[len(before) + len(answer) :]),
            )
        )
    size = len(start) + sum(len(q) + len(a) + len(r) + len(stop) for q, a, r in parts)
    out, said = [*tokens[: LENGTH - size].tolist(), *start], []
    for distance, (told, *_) in zip(distances, needles, strict=True):
        put = encode("\n" + told + "\n")
        out[LENGTH - distance : LENGTH - distance + len(put)] = put
    for k in draw.sample(range(len(needles)), len(needles)):
        q, a, r = parts[k]
        at = len(out) + len(q)
        out += [*q, *a, *r, *stop]
        answer = [at, at + len(a)]
        said.append({"distance": distances[k], "answer": answer, "chance": needles[k][3]})
    assert len(out) == LENGTH and distances[0] > size, (len(out), size)
    return [*out, 0], {"questions": LENGTH - size, "needles": said}


def main(model, *files):
    """Write the rows and the plan's text and needles."""
    model = Path(model)
    coder = transformers.AutoTokenizer.from_pretrained(model.parent, gguf_file=model.name)

    def encode(text):
        return coder(text, add_special_tokens=False)["input_ids"]

    rows, said = {}, {}
    for place, (name, file) in enumerate(f.split("=", 1) for f in files):
        text = READERS[name](file)[:1_000_000]
        tokens, end = np.array(encode(text)), FIRST + ROWS * LENGTH
        print(name, len(tokens), "tokens")
        each = [
            row(encode, tokens[b : b + LENGTH], 100 * place + k)
            for k, b in enumerate(range(FIRST, end, LENGTH))
        ]
        rows[name] = np.array([x for x, _ in each], dtype=np.uint16)
        said[name] = [y for _, y in each]
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / f"{name}.txt").write_text(coder.decode(tokens[end:]), "utf-8")
        lines = asked(7000 + place, PLANNED // 8)
        texts = ({"context": t, "question": q.rstrip(), "answer": a} for t, q, a, _ in lines)
        (HERE / f"needles_{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in texts))
    np.savez_compressed(HERE / "rows.npz", **rows)
    (HERE / "rows.json").write_text(json.dumps(said, separators=(",", ":")))


if __name__ == "__main__":
    main(*sys.argv[1:])
