"""What the files say: thresholds of the README, from `measured.jsonl` and `mended_NAME.json`.

python experiments/rotary_5/judge.py > experiments/rotary_5/results.md

`mended_NAME.json` is what `farfield mend --json` said of a text, less what is not judged.
"""

import importlib.util
import json
from pathlib import Path

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("before", HERE.parent / "rotary_3/judge.py")
before = importlib.util.module_from_spec(spec)
spec.loader.exec_module(before)

TEXTS, CUT, ROWS = ("syscalls", "networkx"), before.CUT, range(18)
LINES = [json.loads(line) for line in (HERE / "measured.jsonl").read_text().splitlines()]
MENDED = {text: json.loads((HERE / f"mended_{text}.json").read_text()) for text in TEXTS}
READ = {text: {row["repair"]: row for row in MENDED[text]["rows"]} for text in TEXTS}
before.TEXTS, before.LINES, before.ROWS = TEXTS, LINES, ROWS
before.MEASURED = {tuple(line["job"]): line for line in LINES}
before.NEEDLES = json.loads((HERE / "rows.json").read_text())
before.PROBED = {
    text: {name: row["log_ratio"] for name, row in READ[text].items() if row["log_ratio"]}
    for text in TEXTS
}
before.SETTINGS = [n for n in dict.fromkeys(job[2] for job in before.MEASURED) if n != CUT]
SAID = {
    "nothing is to be mended": "nothing is to be mended",
    "a change is advised": "take {best}",
    "a change trades near needles for far ones": "a trade: {alternative}",
    "no difference is shown": "no difference is shown",
}
WORDS = """\
The plan was read on one H200 with torch 2.11, before the truth, and all rows of the truth after it.

* **The advice held on both texts**, by the first six rows and by all: take Self-Extend, as was
  expected. It recalls 360 and 392 of 864 needles, the cut text 259 and 298. No band within the
  trained length is lost, and no loss of the last targets is shown.
* YaRN 1.5, the null of model cards, recalls 333 and 366, and loses near needles on networkx. Of the
  nulls "no difference is shown" is wrong on both texts.
* **Order of losses**: 23 of 24 pairs. In 12 of them one setting is none, whose loss is 1.2 and 1.5
  nats higher; of the others 11 of 12 are right.
* **Recall by band** lies within .1 in 10 of 12 cases. It is missed for the cut text on networkx,
  within the trained length: the plan read another part of the package.
* **The answer took 7.8 real rows** on a CPU: the plan on syscalls 712 s of processor time on one
  thread, a real row of the plain model 90 before it and 92 after it, beside 20 other processes. It
  gave the same advice as on the GPU. On the GPU the answers took 59 and 29 s where a row takes one:
  opening the file takes 9, and joined attentions are not fused there.
"""


def scores(text, name):
    """The needles that the plan read with a setting."""
    return [before.NeedleScore(*each) for each in READ[text][name]["real"]]


def last(text):
    """The setting that the plan read on most rows, beside the cut text."""
    return max((n for n in READ[text] if n != CUT), key=lambda n: READ[text][n]["rows"])


def shares(needles):
    """The share of right answers by band."""
    each = [band.of(needles) for band in before.BANDS]
    return [sum(n.right for n in some) / len(some) for some in each]


def recalls(text):
    """Recall by band of the plan, less that of the truth: of the cut text and the last setting."""
    for name in (CUT, last(text)):
        truth = before.recall(text, name, before.rows_of(text, name))
        pairs = zip(shares(scores(text, name)), shares(truth), strict=True)
        yield name, [said - found for said, found in pairs]


def by_first_rows(text, count):
    """The advice of the truth by its first rows."""
    before.ROWS = range(count)
    try:
        return before.advice(text)
    finally:
        before.ROWS = ROWS


def markdown():
    """The page of results."""
    yield "# What was measured"
    yield ""
    spent = sum(line["seconds"] for line in LINES)
    yield f"{len(LINES)} of 252 rows in bfloat16 on a GPU, in {spent:.0f} s."
    yield ""
    yield WORDS.strip()
    yield ""
    yield "| to be reached | syscalls | networkx |"
    yield "|---|---|---|"
    for count in (6, 18):
        cells = [by_first_rows(text, count) for text in TEXTS]
        yield f"| advice of the truth, {count} rows | {' | '.join(cells)} |"
    cells = [SAID[MENDED[text]["advice"]].format(**MENDED[text]) for text in TEXTS]
    yield f"| advice of the plan | {' | '.join(cells)} |"
    cells = ["{} of {}".format(*before.ordered(text)) for text in TEXTS]
    yield f"| order of losses, by the gap probe of the plan | {' | '.join(cells)} |"
    yield ""
    for text in TEXTS:
        for name, apart in recalls(text):
            said = ", ".join(f"{x:+.2f}" for x in apart)
            asked = len(scores(text, name))
            yield (
                f"* Recall of the plan, by {asked} needles, less that of the truth, {text}, "
                f"{name}: {said}, by band."
            )
    yield ""
    for text in TEXTS:
        yield from before.table(text)


if __name__ == "__main__":
    print("\n".join(markdown()))
