"""What the files say: thresholds of the README, from `measured.jsonl` and `probed.json`.

python experiments/rotary_3/judge.py > experiments/rotary_3/results.md
"""

import itertools
import json
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from farfield.validation.far_field.change_scores import advised, lost, order, pairs, share
from farfield.validation.far_field.recall import NeedleScore, bands

HERE = Path(__file__).parent
TRAINED, TO, CUT = 8192, 12288, "text cut to 8192"
TEXTS, ROWS = ("git", "sympy"), range(6)
BANDS = bands(TRAINED, TO)
WORDS = """\
The rest was unread when the time was up: four settings of seven, two or three rows of six, and the
plan but for its gap probe. So the advice of `farfield mend` is confirmed on no new text yet.

* On the source of SymPy Self-Extend would be advised by three rows. On the release notes of Git no
  difference is shown, by four. It was expected to be advised, or called a trade, on both.
* It gains beyond 8,192 tokens on both texts, on SymPy between 2,048 and 8,192 as well. No loss of
  near needles is shown.
* No two settings differ in loss by these rows, so no order can be judged.
* The probe of the plan was asked after 16 of these readings. It could not be asked before: farfield
  refused this file in bfloat16, since its check of an attention was too strict, and rounded the
  frequencies of the model with its weights. Both were mended first, which is more than a change of
  speed.
* The reading in work could not end before 23:55, and was stopped at 23:53.
"""

LINES = [json.loads(line) for line in (HERE / "measured.jsonl").read_text().splitlines()]
MEASURED = {tuple(line["job"]): line for line in LINES}
NEEDLES = json.loads((HERE / "rows.json").read_text())
PROBED = json.loads((HERE / "probed.json").read_text())
SETTINGS = [name for name in dict.fromkeys(job[2] for job in MEASURED) if name != CUT]


def rows_of(text, name):
    """Rows that both a setting and the cut text were read with."""
    return [k for k in ROWS if (text, k, name) in MEASURED and (text, k, CUT) in MEASURED]


def recall(text, name, rows):
    """The needles of some rows."""
    return [
        NeedleScore("", n["distance"], p, right, -float(np.log(n["chance"])), k)
        for k in rows
        for n, (p, right) in zip(
            NEEDLES[text][k]["needles"], MEASURED[text, k, name]["needles"], strict=True
        )
    ]


def difference(text, one, other):
    """Loss of one setting less that of another over rows: mean, half of 95 %, rows."""
    both = [k for k in ROWS if (text, k, one) in MEASURED and (text, k, other) in MEASURED]
    each = [MEASURED[text, k, one]["loss"] - MEASURED[text, k, other]["loss"] for k in both]
    if len(each) < 2:
        return (each[0] if each else 0.0), np.inf, len(each)
    half = np.std(each, ddof=1) / np.sqrt(len(each)) * student.ppf(0.975, len(each) - 1)
    return float(np.mean(each)), float(half), len(each)


def advice(text):
    """What the rule says of the rows that were read."""
    takes, trades = [], []
    for name in SETTINGS:
        some = rows_of(text, name)
        own, cut = recall(text, name, some), recall(text, CUT, some)
        if advised(own, cut, TRAINED, TO):
            takes.append((order(own), name))
        elif pairs(own, cut).better:
            trades.append((order(own), name))
    if takes:
        return f"take {max(takes)[1]}"
    return f"a trade: {max(trades)[1]}" if trades else "no difference is shown"


def ordered(text):
    """Pairs of settings whose losses differ, of which the probe has the order right, and all."""
    right = asked = 0
    for one, other in itertools.combinations((CUT, *SETTINGS), 2):
        mean, half, _ = difference(text, one, other)
        if abs(mean) > half and {one, other} <= {*PROBED[text]}:
            asked += 1
            right += (mean > 0) == (PROBED[text][one] > PROBED[text][other])
    return right, asked


def shares(scores):
    """Right answers by band, as text."""
    each = [share(band.of(scores)) for band in BANDS]
    return [f"{s.right}/{s.asked} ({s.low:.2f} to {s.high:.2f})" for s in each]


def markdown():
    """The page of results."""
    yield "# What was measured"
    yield ""
    spent = sum(line["seconds"] for line in LINES)
    yield f"{len(LINES)} of 84 rows, on one core in bfloat16, in {spent / 60:.0f} min of its time."
    yield ""
    yield WORDS.strip()
    yield ""
    yield "| to be reached | git | sympy |"
    yield "|---|---|---|"
    counts = [sorted({len(rows_of(text, name)) for name in SETTINGS}) for text in TEXTS]
    cells = [
        f"{advice(text)}, by {' and '.join(map(str, n))} of 6 rows"
        for text, n in zip(TEXTS, counts, strict=True)
    ]
    yield f"| advice of the truth | {' | '.join(cells)} |"
    cells = ["{} of {}".format(*ordered(text)) for text in TEXTS]
    yield f"| order of losses, by the gap probe of the plan | {' | '.join(cells)} |"
    yield "| advice, recall and cost of the plan | not read | not read |"
    yield ""
    for text in TEXTS:
        yield from table(text)


def table(text):
    """What was read of a text."""
    yield f"## {text}"
    yield ""
    yield (
        "| setting | rows | gap probe | loss less the cut text | to 2,048 | to 8,192 | beyond "
        "| only it, only the cut text (p) | loses |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in (CUT, *SETTINGS):
        rows = rows_of(text, name)
        own, cut = recall(text, name, rows), recall(text, CUT, rows)
        mean, half, _ = difference(text, name, CUT)
        two, band = pairs(own, cut), lost(own, cut, TRAINED, TO)
        said = PROBED[text].get(name)
        yield (
            f"| {name} | {len(rows)} | {'' if said is None else f'{said:+.3f}'} | "
            f"{mean:+.3f} ± {half:.3f} | {' | '.join(shares(own))} | "
            f"{two.first}, {two.second} ({two.p:.3g}) | "
            f"{f'{band.low} to {band.high}' if band else ''} |"
        )
    yield ""


if __name__ == "__main__":
    print("\n".join(markdown()))
