"""The numbers of the README, each by a query on the table of results.

A query returns numbers by name and the results they stand on. `sentences.toml` says the sentences
around them; the build writes these into the README (`readme`), and `where` finds for a number in
the README its query and the files of the runs.

    python -m farfield.validation.evidence fill FILE ...       writes the sentences anew
    python -m farfield.validation.evidence where 2.6%          the query and the runs of a number
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from farfield.theory.answers.errors import InputError
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import plural
from farfield.validation.evidence import changes as interventions
from farfield.validation.evidence import fields as receptive_fields
from farfield.validation.evidence import first_registration, rule_scores
from farfield.validation.evidence.told import sentences, template
from farfield.validation.forecast import calibration
from farfield.validation.harness.corpus import corpus
from farfield.validation.reference import hold
from farfield.validation.reference.committed import Row
from farfield.validation.reference.first import UNSEEN, observations
from farfield.validation.reference.known_cases import trials
from farfield.validation.reference.registration import HOLD, REGISTRATIONS, USUAL, identity
from farfield.validation.reference.table import LAST, results, rows
from farfield.validation.rules import ORDER_LOSS

MARKS = re.compile(r"(<!-- sentences: (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
"""Where a text has sentences of `sentences.toml`, by the name of their list."""
Found = tuple[Mapping[str, Any], tuple[str, ...]]
"""What a query returns: numbers by name, and the files of the results they stand on."""

LISTS = ("readme", "summary", "hybrids")
LONGER = {
    "1 head 1/4": "1 head 1/4",
    "4 heads 1/4": "4 heads 1/4",
    "1 head 1/16": "1 head 1/16",
    "slope 1/16": "alibi equal 4",
    "slope 1/32": "slope 1/32",
    "window 24": "window 24",
    "ALiBi": "alibi",
    "no bias": "nope",
}
"""Cases of 4,000 steps, each with its name at 1,000."""


def _everything() -> Iterator[Row]:
    """The results of every registration."""
    yield from results()
    for registration in REGISTRATIONS:
        yield from registration.results()


def _files(runs: Iterator[Row]) -> tuple[str, ...]:
    return tuple(sorted({run["file"] for run in runs}))


def _of_trials(*found: Row) -> tuple[str, ...]:
    """The files of the runs of some trials."""
    wanted = set(map(identity, found))
    return _files(
        run
        for run in _everything()
        for m in run["measurements"]
        if identity({**m["inference"], **run["preset"], "label": run["encoding"]["label"]})
        in wanted
    )


def _registered() -> Iterator[Row]:
    return (run for r in REGISTRATIONS for run in r.results())


def runs() -> Found:
    """How many runs of the further registrations are planned, and how many finished; the same of
    their first seeds."""
    planned = [job.configuration.seed for r in REGISTRATIONS for job in r.plan.jobs(corpus())]
    made = [run["seed"] for run in _registered()]
    found = _files(_registered())
    numbers = {"planned": len(planned), "finished": len(found)}
    return numbers | {"first": planned.count(0), "first finished": made.count(0)}, found


def _trials() -> dict[str, Row]:
    return {t["name"]: t for t in trials()}


def steps() -> Found:
    """Ratios of perplexity after 1,000 and after 4,000 steps, where both are known."""
    named = _trials()
    pairs = {
        label: (before, after)
        for label, usual in LONGER.items()
        if (after := named.get(f"{label}, steps 4000")) and (before := named.get(usual))
    }
    ratios = {n: [math.exp(t["loss"]) for t in pair] for n, pair in pairs.items()}
    told = ". ".join(f"{n[0].upper()}{n[1:]}: {a:.2f} and {b:.2f}" for n, (a, b) in ratios.items())
    numbers = {f"{n}, {k}": ratio for n, pair in ratios.items() for k, ratio in enumerate(pair)}
    return {"pairs": told, **numbers}, _of_trials(*(t for pair in pairs.values() for t in pair))


def forms() -> Found:
    """How the competing forms did: their errors on the unseen cases of 4,000 steps. Of all unseen
    cases that are decided: how often each was on the right side of the tolerance."""
    every = rule_scores.open_cases()
    longer = rule_scores.tally([c for c in every if c.prediction["steps"] == 4000])
    of = rule_scores.tally(every)
    right, off, decided = of["right"], of["off"], of["decided"]
    numbers: dict[str, Any] = {"n": ""}
    if longer["tests"]:
        best = min(rule_scores.LAWS, key=longer["off"].__getitem__)
        numbers = {"n": plural(longer["tests"], "case"), "best": best, **longer["off"]}
        numbers["best off"] = longer["off"][best]
    if decided:
        first = max(rule_scores.LAWS, key=lambda form: (right[form], -off[form]))
        closest = min(rule_scores.LAWS, key=off.__getitem__)
        numbers |= {
            "decided": decided,
            "first": first,
            "first right": right[first],
            "first share": right[first] / decided,
            "law right": right["law"],
            "nearest right": right["nearest"],
            "nearest share": right["nearest"] / decided,
            "null right": of["null"],
            "closest": closest,
            "closest off": off[closest],
            "nearest off": off["nearest"],
        }
    return numbers, _files(r for r in _registered() if r["preset"]["steps"] == 4000)


def perplexity(label: str, length: int) -> float:
    """The geometric mean over the models of a label, trained on 64 bytes, of the usual kind."""
    usual = {"label": label, "mask": "", "protocol": LAST, "length": length, "trained": 64}
    usual |= {name: USUAL[name] for name in ("layers", "width", "steps")}
    found = [r["nats"] for r in rows(_everything()) if usual.items() <= r.items()]
    return math.exp(sum(found) / len(found))


def local() -> Found:
    """What one local head loses, and its perplexity over that of ALiBi."""
    one, alibi = (_trials()[name] for name in ("1 head 1/4", "alibi"))
    above = {
        f"above at {n}": perplexity("1 head 1/4", n) / perplexity("alibi", n) - 1
        for n in (64, 1024)
    }
    loss = {"loss": math.expm1(one["loss"]), "models": plural(one["seeds"], "model")}
    return loss | above, _of_trials(one, alibi)


def layers() -> Found:
    """What is lost with all heads of the first, or of the last, layer local."""
    first, last = (_trials()[f"layer {k} of 1/4"] for k in (1, 4))
    losses = {"first": math.expm1(first["loss"]), "last": math.expm1(last["loss"])}
    return losses, _of_trials(first, last)


def changes() -> Found:
    """What changes at test time cost that model (`mixtures.json`)."""
    why = interventions.mixtures()
    assert why is not None, "mixtures.json is committed"
    return {**why.numbers, "models": plural(why.numbers["seeds"], "model")}, ("evidence/mixtures",)


@cache
def _judged() -> tuple[Any, ...]:
    return tuple(rule_scores.answers())


def rules() -> Found:
    """The rule that was registered first and is right most often, over all registrations."""
    *found, _, _ = _judged()
    chosen = max(rule_scores.registered_rules(), key=lambda rule: found[0].numbers[rule])
    said = [answer for answer in found if chosen in answer.numbers]
    right = {
        name: sum(answer.numbers[rule] for answer in said)
        for name, rule in (("right", chosen), ("verdict", "verdict"), ("null", "null"))
    }
    counts = {"rule": chosen, "cases": sum(a.n for a in said), "registrations": len(said)}
    return counts | right, _files(_registered())


def law() -> Found:
    """The regression of the loss on the order loss."""
    size = _judged()[-2]
    return {**size.numbers, "n": size.n}, _files(_everything())


def kernel() -> Found:
    """The regression on the kernel order loss, on which a forecast rests."""
    return calibration(), _files(_everything())


def outside() -> Found:
    """The rules on printed models (the tables of `validation/published`)."""
    found = _judged()[-1]
    numbers = {"n": found.n, "order loss": found.numbers[ORDER_LOSS], **found.numbers}
    return numbers, tuple(f"published/{name}" for name in rule_scores.TABLES)


def _first(length: int) -> Found:
    found = observations(length=length)
    numbers = {"n": len(found), "blind": len(UNSEEN), **first_registration.verdicts(found).numbers}
    return numbers, _files(r for r in results() if r["preset"]["length"] == length)


def fields() -> Found:
    """The layered receptive field against the gradient field, by how large a factor it is off."""
    found = receptive_fields.fields(observations(length=64)).numbers
    return {
        **found,
        "all": found[receptive_fields.LAYERED],
        "linear": found["R (TRF - 1) + 1"],
    }, _files(r for r in results() if r["preset"]["length"] == 64)


def use() -> Found:
    """How well attention and accuracy on far keys were predicted, in the runs on tasks."""
    found = hold.scored()
    if "attention" not in found:
        return {"learned": 0, "texts": 0}, ()
    away, used = found["attention"], found["used"]
    kind, worst = max(away["families"].items(), key=lambda item: item[1])
    numbers = {
        "planned": sum(1 for _ in HOLD.plan.jobs(corpus())),
        "finished": found["cells"],
        "learned": found["learned"],
        "error": away["error"],
        "kind": kind,
        "worst": worst,
        "constant": away["constant"],
        "home": away["as at the training length"],
        "right": used["attention from 1/4"]["right"],
        "of": used["attention from 1/4"]["of"],
        "always": used["always used"]["right"],
        "share": used["attention from 1/4"]["right"] / used["attention from 1/4"]["of"],
        "asked": hold.RIGHT,
        **{f"decided {name}": value for name, value in found["decided"].items()},
        **{f"points {name}": value for name, value in found["points"].items()},
        "texts": len(found["loss"]),
        "lost": math.expm1(max((one["log_ratio"] for one in found["loss"].values()), default=0)),
    }
    return numbers, _files(iter(HOLD.results()))


def hybrids() -> Found:
    """How often models find keys beyond their training length in the longest rows, by mechanism,
    and what language models with the same layers lose of perplexity there."""
    found: dict[str, Any] = {}
    for one in hold.both():
        found[one.label], found[f"{one.label}, models"] = one.used, plural(one.seeds, "model")
        if one.ratio is not None:
            found[f"{one.label}, loss"] = one.ratio - 1
    return found, _files(iter(HOLD.results()))


def heads_that_find() -> Found:
    """Which heads find a far token, and which heads they need (`circuits.json`)."""
    found = interventions.circuits()
    if found is None:
        return {"models": 0}, ()
    return {**found.numbers, "models": found.n}, ("evidence/circuits",)


QUERIES: Mapping[str, Callable[[], Found]] = {
    "runs": runs,
    "steps": steps,
    "forms": forms,
    "local": local,
    "layers": layers,
    "changes": changes,
    "rules": rules,
    "law": law,
    "kernel": kernel,
    "outside": outside,
    "at_64": partial(_first, 64),
    "at_128": partial(_first, 128),
    "fields": fields,
    "use": use,
    "hybrids": hybrids,
    "circuits": heads_that_find,
}
"""By the name under which the sentences know them."""


# -- sentences with their numbers -----------------------------------------------------------------


@dataclass(frozen=True)
class Filled:
    """A number in a sentence: its text, the query and the name there, the results behind it."""

    text: str
    query: str
    name: str
    files: tuple[str, ...]


@cache
def _asked(query: str) -> Found:
    return QUERIES[query]()


@cache
def _written(name: str) -> tuple[tuple[str, ...], tuple[Filled, ...]]:
    """The sentences of a list, and the numbers that they ask for."""
    shown: list[Filled] = []

    def number(path: str, form: str = "") -> str:
        """A number `query.name`, written as a form says."""
        query, _, asked = path.partition(".")
        numbers, files = _asked(query)
        shown.append(Filled(format(numbers[asked], form), query, asked, files))
        return shown[-1].text

    told = [template(text).render(number=number) for text in sentences()[name]]
    return tuple(filter(None, told)), tuple(shown)


def summary() -> tuple[str, ...]:
    """What a reader should know of the trained models, in sentences."""
    return _written("summary")[0]


def filled(text: str) -> str:
    """A text with its sentences as the results have them now.

    Raises:
        InputError: the text has no place for sentences, or names a list that there is not.
    """

    def sentences_of(place: re.Match[str]) -> str:
        one_of(place[2], "list", LISTS)
        wrapped = (
            textwrap.fill(
                s,
                100,
                initial_indent="* ",
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            for s in _written(place[2])[0]
        )
        return place[1] + "".join(f"{line}\n" for line in wrapped)

    found, places = MARKS.subn(sentences_of, text)
    if not places:
        raise InputError("no line <!-- sentences: NAME --> before <!-- end --> in this file")
    return found


def where(text: str) -> tuple[Filled, ...]:
    """The numbers of the README that are written so.

    Raises:
        InputError: there is none.

    >>> [(s.query, s.name) for s in where("2.6%")]
    [('local', 'loss')]
    """
    wanted = text.replace(" ", "")
    shown = [s for name in LISTS for s in _written(name)[1]]
    found = tuple(dict.fromkeys(s for s in shown if s.text.replace(" ", "") == wanted))
    if not found:
        known = ", ".join(dict.fromkeys(s.text for s in shown if len(s.text) < 12))
        raise InputError(f"no number {text!r} in the README's sentences; there are {known}")
    return found
