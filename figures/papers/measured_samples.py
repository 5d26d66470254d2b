"""Samples of the table of results for the measured exhibits: which are found, what must be said.

A sample holds the measurements of the models of one label in one setting, one a seed: lines of
`farfield.validation.results`. Behind the label of an encoding stands what attention saw, if it did
not see every earlier token: `rope + BCA` for blockwise causal attention, `xpos + window 64` for a
sliding window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars
from polars import DataFrame, col, concat

from farfield.figures.exhibit import NoResults
from farfield.figures.style import spoken
from farfield.theory.answers.notation import listed
from farfield.theory.encodings import CATALOGUE, Encoding
from farfield.theory.encodings.head_lists import notation
from farfield.validation.encoding_labels import options_of
from farfield.validation.harness.mechanism import fitted
from farfield.validation.results import LAST, SETTING, WHOLE
from farfield.validation.uniform_guess import BYTES, uniform_guess

MODE = " + "
BCA = f"{MODE}BCA"
PRESET = "small"
"""Of the registered runs."""
RUN = ("experiment", "run")
OWN = 4
"""A user's own encodings that are drawn beside those of a printed figure."""
PERPLEXITIES = (LAST, WHOLE)


def subject(label: str, heads: int = 8) -> Encoding:
    """The encoding that a label names, in models with this many heads.

    >>> subject("alibi shift -3").num_heads
    8
    """
    return fitted(heads, **options_of(label.partition(MODE)[0]))


def command(label: str, *, length: int | None = None, options: str = "") -> str:
    """The command that trains and measures an encoding as the registered runs do.

    >>> command("alibi shift 2")
    'farfield train alibi --dialect shift --set delta=2 --preset small --runs runs'
    """
    given = options_of(label)
    parts = ["farfield train", given.pop("name")]
    if "dialect" in given:
        parts.append(f"--dialect {given.pop('dialect')}")
    parts += [f"--set {k}={v}" for k, v in given.items()]
    parts.append(f"--preset {PRESET}")
    parts += [f"--length {length}"] if length is not None else []
    return " ".join([*parts, *([options] if options else []), "--runs runs"])


# -- models of one encoding -----------------------------------------------------------------------


def first(found: Mapping[str, DataFrame]) -> dict[str, Any]:
    """A line of some samples, which tells what all of them share."""
    return next(iter(found.values())).row(0, named=True)


def settings(
    table: DataFrame, wanted: Sequence[str], *, shorter: bool = False
) -> list[dict[str, DataFrame]]:
    """The wanted samples of each setting by label, that with the most of them first, then the
    shorter training length.

    Args:
        table: results.
        wanted: labels.
        shorter: whether those measured below their training length count, in place of those
            measured beyond it. Of several measurements of a model the first that counts is taken.
    """
    groups = [group for _, group in table.group_by(*SETTING, maintain_order=True)]
    found = [
        {label: one for label in wanted if not (one := _sample(group, label, shorter)).is_empty()}
        for group in groups
    ]
    known = [samples for samples in found if samples]
    return sorted(known, key=lambda samples: (-len(samples), first(samples)["trained"]))


def own(table: DataFrame, found: Mapping[str, DataFrame], shorter: bool) -> dict[str, DataFrame]:
    """The samples of a user's own encodings in the setting of those that were found, by label."""
    line = first(found)
    same = table.filter(experiment="runs", **{column: line[column] for column in SETTING})
    rest = same.join(concat(found.values()).select(RUN), on=RUN, how="anti", maintain_order="left")
    names = rest["label"].unique(maintain_order=True)
    labels = [label for label in names if label.partition(" ")[0] not in CATALOGUE]
    each = {label: _measured(rest.filter(label=label), "", shorter) for label in labels}
    return {label: sample for label, sample in each.items() if not sample.is_empty()}


def not_learned(table: DataFrame) -> str:
    """A warning that names the models that predict bytes hardly better than a uniform guess."""
    home = table.filter(col("length") == col("trained"), protocol=LAST)
    texts = home.filter(~col("text").str.ends_with(".npy"))  # those of tokens have more symbols
    worst = texts.group_by("label", maintain_order=True).agg(col("nats").max())
    names = [spoken(label) for label, nats in worst.iter_rows() if uniform_guess(nats, BYTES)]
    few = f"Not learned, or hardly: {listed(names)}; their perplexities say nothing of an encoding."
    return few * bool(names)


def _sample(group: DataFrame, label: str, shorter: bool) -> DataFrame:
    base, _, mode = label.partition(MODE)
    named = col("label") == base
    if (group["experiment"] == "runs").any():
        named = named | _written(base, int(group["heads"][0]))
    return _measured(group.filter(named), mode, shorter)


def _measured(rows: DataFrame, mode: str, shorter: bool) -> DataFrame:
    """The lines of the models of one label that were measured in a mode at lengths that count."""
    beyond = col("length") < col("trained") if shorter else col("length") > col("trained")
    lines = rows.filter((col("mask") == mode) & col("protocol").is_in(PERPLEXITIES) & beyond)
    runs = lines.unique("seed", keep="first", maintain_order=True).sort("seed").select(RUN)
    return runs.join(rows.filter(col("mask") == mode), on=RUN, how="inner", maintain_order="left")


def _written(label: str, heads: int) -> polars.Expr:
    """Lines of a user's runs of the encoding that a label names, by its formulas; where these are
    learned by its name."""
    found = subject(label, heads)
    same = col("formula") == notation([str(bias) for bias in found.biases])
    if found.free:
        same = col("label") == label
    return (col("experiment") == "runs") & same


def conditions(found: Iterable[tuple[str, DataFrame]]) -> str:
    """What a caption must say of samples, by label: model, data, seeds."""
    samples = list(found)
    line = samples[0][1].row(0, named=True)
    lengths = sorted({int(sample["trained"][0]) for _, sample in samples})
    counts = sorted({sample["seed"].n_unique() for _, sample in samples})
    many = f"{' or '.join(map(str, counts))} seeds each"
    if counts == [1]:
        many = "one seed, so no spread"
    return (
        f"Measured: preset {line['preset']}, {line['layers']} layers, {line['width']} wide, "
        f"{line['heads']} heads, {line['steps']} steps of {line['batch'] * line['trained']} "
        f"tokens in rows of {' or '.join(map(str, lengths))}, on {line['text']} (SHA-256 "
        f"{line['text_sha256']}); {many}."
    )


def samples(
    table: DataFrame, wanted: Sequence[str], figure: str, *, shorter: bool = False
) -> tuple[dict[str, DataFrame], str]:
    """The wanted samples of the one setting that has the most of them, with a few of a user's own
    runs, and what must be said of them: how they were trained, and which are not among the results.

    Args:
        table: results.
        wanted: labels, as `settings` takes them.
        figure: the id.
        shorter: as `settings` takes it.

    Raises:
        NoResults: none of the wanted encodings was trained; the message names the command.
    """
    options = "--tested 8,16,32,64" * shorter
    commands = {w: f"`{command(w.partition(MODE)[0], options=options)}`" for w in wanted}
    each = list(dict.fromkeys(commands.values()))
    found = settings(table, wanted, shorter=shorter)
    if not found:
        made = "; ".join(each if len(each) <= 3 else [each[0], "and so for the others"])
        raise NoResults(
            f"no runs of {', '.join(wanted)}{' on shorter rows' * shorter}; to make them: "
            f"{made}; `farfield figures {figure} --runs runs`"
        )
    more = own(table, found[0], shorter)
    setting = found[0] | dict([*more.items()][:OWN])
    absent = [w for w in wanted if w not in setting]
    lacking = "; ".join(dict.fromkeys(commands[w] for w in absent))
    lack = f" Not among the runs: {', '.join(absent)}; to make them: {lacking}." if absent else ""
    rest = [*more][OWN:]
    lack += f" Among the runs too, not drawn: {listed(rest)}." * bool(rest)
    several = any(s["seed"].n_unique() > 1 for s in setting.values()) and not shorter
    bands = " Lines are means over seeds, bands from the least to the greatest." * several
    return setting, conditions(setting.items()) + bands + lack
