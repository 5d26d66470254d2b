"""The numbers of the README and of the findings, each with the rows of the table behind it."""

from pathlib import Path

import numpy as np
import pytest
from polars import col

from farfield.validation import forecast
from farfield.validation.prior import Prior
from farfield.validation.results import LAST, results

ROOT = Path(__file__).parents[1]
USUAL = {"trained": 64, "layers": 4, "width": 128, "steps": 1000, "mask": ""}
LONG = {"steps": 4000}


def lines(label, **other):
    """Of models with these labels, on rows of 16 times their training length."""
    return results().filter(label=label, protocol=LAST, length=1024, **{**USUAL, **other})


def times(label, **other):
    """The ratio to the perplexity at the training length, the geometric mean of the models."""
    return f"{np.exp(lines(label, **other)['ratio'].log().mean()):.2f}"


def loses(label, digits=1, **other):
    """The same as a loss."""
    return f"{100 * np.expm1(lines(label, **other)['ratio'].log().mean()):.{digits}f} %"


def models(label):
    return lines(label).filter(experiment=lines(label)["experiment"][0])["seed"].n_unique()


def above(length):
    """By how much the perplexity of a mixture is above ALiBi's, seeds 0 to 2."""
    rows = results().filter(col("seed") < 3, protocol=LAST, length=length, **USUAL)
    one, other = (
        rows.filter(label=label, experiment=experiment)["nats"].mean()
        for label, experiment in (("1 head 1/4", "heads_and_shapes"), ("alibi", "first"))
    )
    return f"{100 * np.expm1(one - other):.0f} %"


def answers(label, layers=2):
    """Right answers about keys beyond the training length of 64, on rows of 1,024."""
    task = {"protocol": "recall", "text": "task induction", "trained": 64, "heads": 4}
    rows = results().filter(col("distance") > 64, label=label, length=1024, layers=layers, **task)
    return f"{100 * rows['accuracy'].mean():.0f} %"


def nearest():
    """Of each case the distance to the nearest one of another family, and whether the nearest are
    on the right side of 5 %."""
    known = forecast.measured().filter(mechanism="bias")
    longest = known.sort("times").unique(forecast.CASE, keep="last", maintain_order=True)
    for case in longest.iter_rows(named=True):
        shape = {name: case[name] for name in forecast.DOUBLINGS}
        own = Prior(*(case[name] for name in Prior._fields))
        others = known.filter(col("family") != case["family"])
        near = forecast.with_distance(others, own, **shape).head(forecast.NEAREST)
        ratios = near["ratio"].log().to_numpy()
        said = np.average(ratios, weights=1 / (near["distance"].to_numpy() + forecast.SOFT))
        yield near["distance"][0], (np.exp(said) < 1.05) == (case["ratio"] < 1.05)


def readme():
    side = [right for _, right in nearest()]
    return [
        ("from {} to {} at 16 times", times("nope"), times("1 head 1/4")),
        ("loses {} of perplexity ({} models)", loses("1 head 1/4"), models("1 head 1/4")),
        ("1/32 multiplies the perplexity by {} after", times("slope 1/32")),
        ("after 1,000 steps, by {} after 4,000", times("slope 1/32", **LONG)),
        ("multiplies it by {} and {}", times("1 head 1/4"), times("1 head 1/4", **LONG)),
        ("local and then free, find {} of", answers("local, then free")),
        ("free and then local find {}", answers("free, then local")),
        ("for {} of {} cases", sum(side), len(side)),
    ]


BIASES = {
    "ALiBi": "alibi",
    "KERPLE, logarithmic": "kerple_log",
    "window of 32 keys": "window 32",
    "`-log(1+n)`": "example1",
    "slope 1/64 in all heads": "alibi equal 6",
    "no bias": "nope",
    "T5": "t5",
    "sinusoidal": "sinusoidal",
    "RoPE": "rope",
}
LEARNED_LONGER = {
    "ALiBi": ("alibi", "ALiBi"),
    "1 head of slope 1/4": ("1 head 1/4", "1 head 1/4"),
    "slope 1/32": ("slope 1/32", "slope 1/32"),
    "no bias": ("nope", "no bias"),
}


def findings():
    turns = "English: {} and free in turn"
    side = [right for _, right in nearest()]
    return [
        ("multiplies its perplexity by {} at 16 times", times("nope")),
        ("the eight brings that to {}", times("1 head 1/4")),
        ("Four such heads bring it to {}.", times("4 heads 1/4")),
        ("too flat for one head: {}.", times("1 head 1/16")),
        ("others free the ratio is {}, with", times("layer 1 of 1/4")),
        ("those of the last layer {} (", times("layer 4 of 1/4")),
        ("is {} above ALiBi's on rows of 64, and {} on", above(64), above(1024)),
        *(
            (f"| {bias} | {{}} | {{}} |", times(name), models(name))
            for bias, name in BIASES.items()
        ),
        *(
            (f"| {bias} | {{}} | {{}} |", times(short), times(long, **LONG))
            for bias, (short, long) in LEARNED_LONGER.items()
        ),
        ("diverges and loses {}.", loses("example1", 0)),
        ("and loses {}, since it leaks", loses("alibi equal 6", 0)),
        ("same window has a ratio of {}, with", times("window 32", layers=2)),
        ("with eight {}.", times("window 32", layers=8)),
        ("perplexity by {}. The model relies", times("power 3 to a floor of 7")),
        ("for {} of {} cases.", sum(side), len(side)),
        ("local and then free, answer {} rightly", answers("local, then free")),
        ("raise that to {}.", answers("local, then free, log")),
        ("Free and then local: {}.", answers("free, then local")),
        ("Local heads alone: {}.", answers("all local 1")),
        ("No bias at all: {}.", answers("no bias")),
        ("three free ones answers {}.", answers("1 head 1")),
        ("T5 answers {}:", answers("T5")),
        ("they lose {}, and", loses(turns.format("local"))),
        ("and {} with windows of 16", loses(turns.format("window 16 rotary"))),
    ]


def train():
    turns = "English: {} and free in turn{}"
    window = "window 16 rotary"
    return [
        ('"local, then free" finds {} of', answers("local, then free")),
        ('"free, then local" finds {}', answers("free, then local")),
        ("local heads alone ({}) and", answers("all local 1")),
        ("free heads alone ({}) do", answers("no bias")),
        ("window of 4 finds {} (", answers("window 4 rotary, then free")),
        ("window of 16 {} (", answers(f"{window}, then free")),
        ("below a free layer finds {},", answers("ALiBi, then free")),
        ("Two layers then find {} in", answers("local, then free, log")),
        ("in place of {}. Four", answers("local, then free")),
        ("windows of 16 find {} in", answers(f"{window} and free in turn, log", 4)),
        ("in place of {}.", answers(f"{window} and free in turn", 4)),
        ("in turn lose {} of", loses(turns.format("local", ""))),
        ("windows of 16 they lose {},", loses(turns.format(window, ""))),
        ("scaled logits too {} (", loses(turns.format(window, ", log"))),
    ]


@pytest.mark.parametrize(
    ("page", "facts"),
    [("README.md", readme), ("docs/findings.md", findings), ("docs/train.md", train)],
)
def test_every_number_of_a_page_is_the_one_of_the_table(page, facts):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    told = [line.format(*values) for line, *values in facts()]
    assert [line for line in told if line not in text] == []


def test_near_cases_of_other_families_are_right():
    found = [right for distance, right in nearest() if distance <= forecast.NEAR]
    assert len(found) == sum(found) == 38
