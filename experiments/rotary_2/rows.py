"""Make the rows that are read: two texts in tokens, with needles, to `rows.npz` and `needles.json`.

    python experiments/rotary_2/rows.py MODEL.gguf jargon=JARGON.txt.gz perl=POD_FOLDER

`JARGON.txt.gz` is the Jargon File of Debian's package `jargon-text`, and `POD_FOLDER` the manual of
Perl of its package `perl-doc`. Everything is drawn from fixed seeds.
"""

import gzip
import json
import random
import re
import sys
from pathlib import Path

import numpy as np
import transformers

HERE = Path(__file__).parent
LENGTH, ROWS, TARGETS, FIRST = 16384, 12, 256, 4000  # FIRST: where the first row of a text begins
BANDS = ((700, 1900, 6), (2300, 7900, 9), (8600, 16000, 9))  # of distances, and how many needles
POD = (
    "syn data op sub func re retut ref reftut lol dsc obj ootut mod style trap debug ipc fork "
    "thrtut number port unicode uniintro sec policy guts call xs xstut embed hack interp "
    "filter form"
)

PLACES = [
    "Norby",
    "Haldem",
    "Oresk",
    "Tilmar",
    "Vessen",
    "Quarl",
    "Bremol",
    "Ustka",
    "Dorvan",
    "Lyngby",
    "Sandau",
    "Korsel",
]
KNOBS = [
    "retry",
    "cache",
    "batch",
    "queue",
    "frame",
    "stack",
    "probe",
    "token",
    "spool",
    "relay",
    "mount",
    "pulse",
]
TIMES = [f"{h}:{m:02}" for h in range(10, 22) for m in range(0, 60, 5)]
SHELVES = [f"{a}{n}" for a in "ABCD" for n in (3, 7, 8)]
THINGS = [
    "lantern",
    "kettle",
    "violin",
    "compass",
    "hammer",
    "blanket",
    "ladder",
    "mirror",
    "saddle",
    "barrel",
    "candle",
    "anchor",
]
PEOPLE = [
    "Ingrid",
    "Mateo",
    "Yusuf",
    "Priya",
    "Bogdan",
    "Chloe",
    "Dmitri",
    "Fatima",
    "Gunnar",
    "Hiroshi",
    "Imani",
    "Joanna",
]
SKILLS = [
    "cello",
    "trumpet",
    "piano",
    "harp",
    "flute",
    "drums",
    "guitar",
    "organ",
    "banjo",
    "clarinet",
    "accordion",
    "oboe",
]
COLOURS = [
    "red",
    "green",
    "blue",
    "yellow",
    "black",
    "white",
    "orange",
    "purple",
    "brown",
    "grey",
    "pink",
    "silver",
]
FORMS = {
    "ferry": ("The ferry to {} leaves at {}.", PLACES, TIMES),
    "setting": ("{}_limit = {}", KNOBS, [str(n) for n in range(1000, 9999)]),
    "shelf": ("Shelf {} holds the {}.", SHELVES, THINGS),
    "function": ("def {}_cost(x): return x + {}", KNOBS, [str(n) for n in range(100, 999)]),
    "player": ("{} plays the {}.", PEOPLE, SKILLS),
    "year": ("The mill of {} burned down in {}.", PLACES, [str(n) for n in range(1500, 1950)]),
    "room": ('<room name="{}" floor="{}"/>', COLOURS, [str(n) for n in range(10, 99)]),
    "box": ("The {} box is for {}.", COLOURS, PEOPLE),
}  # fmt: skip
"""By form: sentence, what is asked about, what may be answered. The question is the sentence up to
its answer."""


def jargon(path):
    """The Jargon File as paragraphs."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    text = "\n".join(line.strip() for line in lines if not re.search("[─│┌├└]", line))
    return re.sub(r"(?<!\n)\n(?!\n)", " ", re.sub(r"\n{3,}", "\n\n", text))


def perl(folder):
    """Pages of the manual of Perl, one after another."""
    return "\n".join((Path(folder) / f"perl{name}.pod").read_text("utf-8") for name in POD.split())


def questions(seed):
    """24 needles: form, sentence, question and answer as text."""
    draw, asked = random.Random(seed), []
    for form, (sentence, keys, answers) in FORMS.items():
        for key in draw.sample(keys, 3):
            answer = draw.choice(answers)
            told = sentence.format(key, answer)
            before = told[: told.rindex(answer)]
            asked.append((form, told, before, answer, len(answers)))
    draw.shuffle(asked)
    return asked


def row(encode, tokens, seed):
    """A row with its needles, and what is said of them."""
    draw, asked = random.Random(10_000 + seed), questions(seed)
    distances = []
    for low, high, count in BANDS:
        step = (high - low) / count
        distances += [round(low + (k + 0.7 * draw.random()) * step) for k in range(count)]
    order = draw.sample(range(len(asked)), len(asked))  # of questions: not that of the needles
    start, stop = encode("\n\nNotes to remember, once more:\n"), encode("\n")
    parts = {}
    for k, (_, told, before, answer, _) in enumerate(asked):
        space = before.endswith(" ")  # which belongs to the token of the answer
        parts[k] = (
            encode(before[: len(before) - space]),
            encode(" " * space + answer),
            encode(told[len(before) + len(answer) :]),
        )
    size = len(start) + sum(len(q) + len(a) + len(r) + len(stop) for q, a, r in parts.values())
    row, needles = [*tokens[: LENGTH - size].tolist(), *start], []
    for k, distance in enumerate(sorted(distances)):
        form, told, *_ = asked[k]
        put = encode("\n" + told + "\n")
        row[LENGTH - distance : LENGTH - distance + len(put)] = put
    for k in order:
        q, a, r = parts[k]
        at = len(row) + len(q)
        row += [*q, *a, *r, *stop]
        form, told, _, answer, count = asked[k]
        needles.append(
            {
                "form": form,
                "text": told,
                "distance": sorted(distances)[k],
                "answer": [at, at + len(a)],
                "chance": count,
            }
        )
    assert len(row) == LENGTH and min(distances) > size, (len(row), size)
    return [*row, 0], {"seed": seed, "questions": LENGTH - size, "needles": needles}


def main(model, *files):
    """Write the rows of some texts."""
    model = Path(model)
    coder = transformers.AutoTokenizer.from_pretrained(model.parent, gguf_file=model.name)

    def encode(text):
        return coder(text, add_special_tokens=False)["input_ids"]

    rows, needles = {}, {}
    for place, (name, file) in enumerate(f.split("=", 1) for f in files):
        tokens = np.array(encode({"jargon": jargon, "perl": perl}[name](file)))
        begins = [FIRST + k * LENGTH for k in range(ROWS)]
        print(name, len(tokens), "tokens")
        each = [row(encode, tokens[b : b + LENGTH], 100 * place + k) for k, b in enumerate(begins)]
        rows[name] = np.array([tokens for tokens, _ in each], dtype=np.uint16)
        needles[name] = [said for _, said in each]
    np.savez_compressed(HERE / "rows.npz", **rows)
    (HERE / "needles.json").write_text(json.dumps(needles, indent=None, separators=(",", ":")))


if __name__ == "__main__":
    main(*sys.argv[1:])
