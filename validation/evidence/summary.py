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
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial, reduce
from operator import getitem
from typing import Any, NamedTuple

from farfield.theory.answers.errors import InputError
from farfield.theory.answers.names import one_of
from farfield.validation.evidence import changes as interventions
from farfield.validation.evidence import fields as receptive_fields
from farfield.validation.evidence import first_registration, rule_scores
from farfield.validation.evidence.told import Evidence, sentences, template
from farfield.validation.forecast import calibration
from farfield.validation.harness.corpus import corpus
from farfield.validation.reference import hold
from farfield.validation.reference.committed import Row
from farfield.validation.reference.first import UNSEEN, observations
from farfield.validation.reference.known_cases import trials
from farfield.validation.reference.registration import HOLD, REGISTRATIONS, USUAL, identity
from farfield.validation.reference.table import LAST, results, rows

MARKS = re.compile(r"(<!-- sentences: (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
"""Where a text has sentences of `sentences.toml`, by the name of their list."""
Found = tuple[Mapping[str, Any], tuple[str, ...]]
"""What a query returns: numbers by name, in parts, and the files of the results they stand on."""

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


def _files(runs: Iterable[Row]) -> tuple[str, ...]:
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
    """How the competing forms did on the unseen cases, all of them and those of 4,000 steps: how
    often each was on the right side of the tolerance, and how far off."""
    every = rule_scores.open_cases()
    of = rule_scores.tally(every)
    longer = rule_scores.tally([c for c in every if c.prediction["steps"] == 4000])
    told = {
        "share": {form: k / max(1, of["decided"]) for form, k in of["right"].items()},
        "first": max(rule_scores.LAWS, key=lambda form: (of["right"][form], -of["off"][form])),
        "closest": min(rule_scores.LAWS, key=of["off"].__getitem__),
        "longer": longer,
        "best": min(rule_scores.LAWS, key=longer["off"].__getitem__),
    }
    return of | told, _files(r for r in _registered() if r["preset"]["steps"] == 4000)


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
    loss = {"loss": math.expm1(one["loss"]), "seeds": one["seeds"]}
    return loss | above, _of_trials(one, alibi)


def layers() -> Found:
    """What is lost with all heads of the first, or of the last, layer local."""
    first, last = (_trials()[f"layer {k} of 1/4"] for k in (1, 4))
    losses = {"first": math.expm1(first["loss"]), "last": math.expm1(last["loss"])}
    return losses, _of_trials(first, last)


def changes() -> Found:
    """What changes at test time cost that model (`mixtures.json`)."""
    return interventions.mixtures().numbers, ("evidence/mixtures",)


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
    return _numbers(_judged()[-2]), _files(_everything())


def kernel() -> Found:
    """The regression on the kernel order loss, on which a forecast rests."""
    return calibration(), _files(_everything())


def outside() -> Found:
    """The rules on printed models (the tables of `validation/published`)."""
    return _numbers(_judged()[-1]), tuple(f"published/{name}" for name in rule_scores.TABLES)


def _numbers(answer: Evidence) -> Mapping[str, Any]:
    return {**answer.numbers, "n": answer.n}


def _first(length: int) -> Found:
    numbers = _numbers(first_registration.verdicts(observations(length=length)))
    found = _files(r for r in results() if r["preset"]["length"] == length)
    return {**numbers, "blind": len(UNSEEN)}, found


def fields() -> Found:
    """The layered receptive field against the gradient field, by how large a factor it is off."""
    found = _files(r for r in results() if r["preset"]["length"] == 64)
    return receptive_fields.fields(observations(length=64)).numbers, found


def use() -> Found:
    """How well attention and accuracy on far keys were predicted, in the runs on tasks."""
    found = hold.scored()
    if not found["learned"]:
        return {"learned": 0, "texts": 0}, ()
    first, families = found["used"]["attention from 1/4"], found["attention"]["families"]
    told = {
        "planned": sum(1 for _ in HOLD.plan.jobs(corpus())),
        "kind": max(families, key=families.__getitem__),
        "share": first["right"] / first["of"],
        "asked": hold.RIGHT,
        "texts": len(found["loss"]),
        "lost": math.expm1(max((one["log_ratio"] for one in found["loss"].values()), default=0)),
    }
    return found | told, _files(HOLD.results())


def hybrids() -> Found:
    """How often models find keys beyond their training length in the longest rows, by mechanism,
    and what language models with the same layers lose of perplexity there."""
    found = {
        one.label: {**one._asdict(), "loss": None if one.ratio is None else one.ratio - 1}
        for one in hold.both()
    }
    return found, _files(HOLD.results())


def circuits() -> Found:
    """Which heads find a far token, and which heads they need (`circuits.json`)."""
    found = interventions.circuits()
    return ({"n": 0}, ()) if found is None else (_numbers(found), ("evidence/circuits",))


QUERIES: Mapping[str, Callable[[], Found]] = {
    **{query.__name__: query for query in (runs, steps, forms, local, layers, changes, rules)},
    **{query.__name__: query for query in (law, kernel, outside, fields, use, hybrids, circuits)},
    **{f"at_{length}": partial(_first, length) for length in (64, 128)},
}
"""By the name under which the sentences know them."""


# -- sentences with their numbers -----------------------------------------------------------------


class Filled(NamedTuple):
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
        """A number `query.name`, or `query.name.name` of a part, written as a form says."""
        query, _, asked = path.partition(".")
        numbers, files = _asked(query)
        found = reduce(getitem, asked.split("."), numbers)
        shown.append(Filled(format(found, form), query, asked, files))
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
