"""What the files say: thresholds of the README, from `forecasts.jsonl` and `measured.jsonl`.

python experiments/rotary_2/judge.py > experiments/rotary_2/results.md
"""

import itertools
import json
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from farfield.validation.far_field.advice import (
    NeedleScore,
    advised,
    bands,
    lost,
    order,
    pairs,
    share,
)

HERE = Path(__file__).parent
TRAINED, TO, CUT = 8192, 16384, "text cut to 8192"
TEXTS, TRUTH, READ = ("jargon", "perl"), range(6), (6, 7, 8)
BANDS = bands(TRAINED, TO)
LEAVES, BUDGET = (
    (4, 2, 1),
    0.1,
)  # settings beside the cut text that each row of the plan is read with


def lines(name):
    """Each line of a file by its job."""
    place = HERE / name
    text = place.read_text().splitlines() if place.exists() else []
    return {tuple((line := json.loads(one))["job"]): line for one in text}


SAID, MEASURED = lines("forecasts.jsonl"), lines("measured.jsonl")
NEEDLES = json.loads((HERE / "needles.json").read_text())
SETTINGS = list(dict.fromkeys(job[2] for job in MEASURED))


def scores(line):
    """The needles of a row under a setting."""
    text, k, *_ = line["job"]
    return [
        NeedleScore(n["form"], n["distance"], p, right, -float(np.log(n["chance"])), k)
        for n, (p, right) in zip(NEEDLES[text][k]["needles"], line["needles"], strict=True)
    ]


def recall(text, name, rows):
    """The needles of some rows; rows that were not read are left out."""
    each = [MEASURED[text, k, name] for k in rows if (text, k, name) in MEASURED]
    return [score for line in each for score in scores(line)]


def difference(text, one, other):
    """Loss of one setting less that of another over rows 0 to 5: mean, half of 95 %."""
    each = [(MEASURED.get((text, k, one)), MEASURED.get((text, k, other))) for k in TRUTH]
    losses = np.array([a["loss"] - b["loss"] for a, b in each if a and b])
    half = losses.std(ddof=1) / np.sqrt(len(losses)) * student.ppf(0.975, len(losses) - 1)
    return float(losses.mean()), float(half)


def cost(name):
    """Of a row under a setting, in plain rows: in queries times keys, half of the work, and tokens,
    the other half; groups meet their near keys twice."""
    if name == CUT:
        return (1 / 4 + 1 / 2) / 2
    near = 2048 * (2 * TO - 2048) / TO**2  # share of the pairs within 2,048 tokens
    return 1 + near / 2 if name.startswith("Self") else 1.0


def chosen(text):
    """What the plan advises, what it has read last, and its cost in rows."""
    losses = {job[2]: x["loss"] for job, x in SAID.items() if job[0] == text and job[3] == "loss"}
    spent = len(losses) * (1024 / TO) / 2  # the probe's rows have no far keys
    tied = [
        n for n in losses if losses[n] <= min(losses.values()) + BUDGET and n not in (CUT, "none")
    ]
    left, read = sorted(tied, key=losses.get), []
    for row, keep in zip(READ, LEAVES, strict=True):
        left = sorted(left, key=lambda n: order(recall(text, n, read)), reverse=True)[:keep]
        read.append(row)
        spent += sum(map(cost, (CUT, *left)))
    (best,) = left
    takes = advised(recall(text, best, read), recall(text, CUT, read), TRAINED, TO)
    return best if takes else CUT, best, read, spent


def truth(text):
    """What the rule says of rows 0 to 5."""
    cut = recall(text, CUT, TRUTH)
    names = [n for n in SETTINGS if n not in (CUT, "none")]
    better = [n for n in names if advised(recall(text, n, TRUTH), cut, TRAINED, TO)]
    return max(better, key=lambda n: order(recall(text, n, TRUTH)), default=CUT)


def shares(scores):
    """Right answers by band, as text."""
    each = [share(band.of(scores)) for band in BANDS]
    return [f"{s.right}/{s.asked} ({s.low:.2f} to {s.high:.2f})" if s else "" for s in each]


def markdown():
    """The page of results."""
    yield "# What was measured"
    yield ""
    for text in TEXTS:
        read = [k for k in TRUTH if (text, k, CUT) in MEASURED]
        yield f"## {text}: rows {', '.join(map(str, read))}"
        yield ""
        yield (
            "| setting | loss less the cut text | to 2,048 | to 8,192 | beyond "
            "| only it, only the cut text (p) | loses |"
        )
        yield "|---|---|---|---|---|---|---|"
        cut = recall(text, CUT, TRUTH)
        for name in SETTINGS:
            own = recall(text, name, TRUTH)
            mean, half = difference(text, name, CUT)
            two, band = pairs(own, cut), lost(own, cut, TRAINED, TO)
            yield (
                f"| {name} | {mean:+.3f} ± {half:.3f} | {' | '.join(shares(own))} | "
                f"{two.first}, {two.second} ({two.p:.3g}) | "
                f"{f'{band.low} to {band.high}' if band else ''} |"
            )
        advice, best, rows, spent = chosen(text)
        yield ""
        yield f"The plan advises: {advice}. It read {best} last, for {spent:.2f} rows."
        yield f"The rule on rows 0 to 5 advises: {truth(text)}."
        for name in dict.fromkeys((CUT, best)):
            yield f"Recall of {name} on rows {rows}: {', '.join(shares(recall(text, name, rows)))}."
        yield ""
        yield "### The probe"
        yield ""
        yield from probe(text)
        yield ""


def probe(text):
    """Order of losses and recall by the gap probe."""
    said = {job[2]: x["loss"] for job, x in SAID.items() if job[0] == text and job[3] == "loss"}
    right = asked = 0
    for one, other in itertools.combinations(said, 2):
        mean, half = difference(text, one, other)
        if abs(mean) > half:
            asked, right = asked + 1, right + (mean > 0) == (said[one] > said[other])
    yield f"Order of losses: {right} of {asked} pairs that differ."
    for job, line in SAID.items():
        if job[0] == text and job[3] == "needles":
            real = recall(text, job[2], [job[1]])
            each = ", ".join(shares(scores(line))), ", ".join(shares(real))
            yield "Row {}, {}: said {}; measured {}.".format(*job[1:3], *each)


if __name__ == "__main__":
    print("\n".join(markdown()))
