"""Trained models are changed at test time, and their loss or accuracy is measured again.

A change is made in the attention path or in the text, never in the weights, and its price is the
difference of losses on the same targets. Heads are counted from 0, the same in every layer.

*Mixtures* are models of the plans, by their names; one whose weights a store has not is trained
again there, to the same weights. Their last tokens are predicted at the training length and at 16
times it, with and without each change.

*Gradients* are those at every token of a row, which the results keep at powers of two only.

*Circuits* are the registered runs on induction (`hold_and_use`) that have learned their task. A
head that retrieves must know which token stood before each key. Heads of the first layer supply it:
they look at the previous token. Each head of that layer is silenced in turn.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import safetensors.torch
import torch
from scipy.stats import spearmanr
from torch import Tensor

from farfield.validation.evidence.changes import MULTIPLE, MULTIPLES, STEP, extend, rows
from farfield.validation.harness.attention import Path, fused
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import corpus, samples_of
from farfield.validation.harness.experiment import train_and_measure, trained_model
from farfield.validation.harness.measures.perplexity import binned, losses_at, mean_of, token_losses
from farfield.validation.harness.measures.recall import asked_at
from farfield.validation.harness.measures.receptive_fields import (
    attention_receptive_field,
    gradient_shares,
)
from farfield.validation.harness.mechanism import CAUSAL, Visibility
from farfield.validation.harness.model import Transformer, layer_bias
from farfield.validation.harness.plan import Job
from farfield.validation.harness.presets import Measurement
from farfield.validation.harness.store import Store
from farfield.validation.reference.collection import planned
from farfield.validation.reference.committed import Row
from farfield.validation.reference.lending import LEARNED, at_home
from farfield.validation.reference.registration import HOLD
from farfield.validation.reference.table import results, scale_of

RIDGE = 1e-3
"""Penalty of the probe, in units of the mean square of its inputs."""


def silenced(heads: Sequence[int], every: int = 1) -> Path:
    """The path on which some heads put nothing out.

    Args:
        heads: counted from 0.
        every: in one layer of so many, from the first; the depth of a model for the first alone.

    >>> x = torch.ones(1, 2, 3, 4)
    >>> path = silenced([0], every=2)
    >>> [path(x, x, x, None, CAUSAL)[0, :, -1, 0].tolist() for _ in range(2)]
    [[0.0, 1.0], [1.0, 1.0]]
    """
    calls = itertools.count()

    def path(*given: Any) -> Tensor:
        found = fused(*given).clone()
        if next(calls) % every == 0:
            found[:, list(heads)] = 0
        return found

    return path


def tempered(heads: Sequence[int], length: int) -> Path:
    """The path on which the logits of some heads are sharper on long rows.

    Those of a row with `i > length` keys are multiplied by `log i / log length`.
    """

    def path(
        query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, visible: Visibility
    ) -> Tensor:
        keys = torch.arange(1, query.shape[2] + 1, device=query.device)
        factor = (keys.clamp(min=length).log() / math.log(length)).to(query.dtype)
        query = query.clone()
        query[:, list(heads)] *= factor[:, None]
        return fused(query, key, value, bias, visible)

    return path


def price(changed: np.ndarray, plain: np.ndarray) -> dict[str, Any]:
    """The mean of losses with a change less those without, one a target, with its standard error.

    >>> price(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    {'nats': 1.0, 'standard_error': 1.0, 'targets': 2}
    """
    difference = np.ravel(changed) - np.ravel(plain)
    nats, error = mean_of(difference)
    return {"nats": nats, "standard_error": error, "targets": len(difference)}


def last_losses(model: Transformer, rows: np.ndarray, path: Path = fused) -> np.ndarray:
    """The loss of the last token of each row in nats, shape (rows,)."""
    return token_losses(model, rows, CAUSAL, path, last=1)[:, 0]


def foreign(rows: np.ndarray, near: int) -> np.ndarray:
    """The rows with all but the `near` last tokens before the target those of another row.

    >>> foreign(np.arange(8).reshape(2, 4), 1)
    array([[4, 5, 2, 3],
           [0, 1, 6, 7]])
    """
    far = rows.shape[1] - near - 1
    return np.concatenate([np.roll(rows, 1, axis=0)[:, :far], rows[:, far:]], axis=1)


@torch.no_grad()
def position_readout(
    model: Transformer, text: np.ndarray, length: int, tested: int, *, count: int = 32
) -> dict[str, Any]:
    """How well the position of a token can be read from what the model knows there.

    A linear probe, by ridge regression of the logarithm of the position on the last residual, is
    fitted on every other one of `count` segments, at all positions up to `tested`, and judged on
    the rest.

    Returns:
        `inside`, `beyond`: Spearman's rank correlation of position and probe, at positions up to
        the training length and after it; 0 where the probe says one thing. `tokens` it was judged
        on.

    Raises:
        InputError: the text is too short.
    """
    rows = samples_of(text, count, tested)[:, :-1]
    residuals = []
    for row in rows:  # one at a time bounds the memory
        tokens = torch.from_numpy(row)[None].to(model.device)
        residuals.append(model.hidden(model.embed(tokens))[0].double().cpu().numpy())
    place = np.arange(1, tested + 1)
    inputs = np.concatenate([np.stack(residuals), np.ones((len(rows), tested, 1))], axis=2)
    fit = inputs[::2].reshape(-1, inputs.shape[2])
    gram = fit.T @ fit
    gram += RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram, fit.T @ np.tile(np.log(place), len(inputs[::2])))
    read = inputs[1::2] @ weights

    def rank(part: slice) -> float:
        told = read[:, part].ravel()
        at = np.tile(place[part], len(read))
        return float(spearmanr(at, told).statistic) if np.ptp(told) else 0.0

    return {
        "inside": rank(slice(0, length)),
        "beyond": rank(slice(length, None)),
        "tokens": read.size,
    }


# -- mixtures -------------------------------------------------------------------------------------

MODELS = {
    "1 head 1/4": (0, 1, 2),
    "nope": (0, 1),
    "4 heads 1/4": (0,),
    "1 head 1/16": (0,),
    "alibi equal 2": (0,),
}
TARGETS = 512
POSITIONS = 16
EPS = 0.1  # of the attention fields
LEAST = Measurement(
    lengths=(64,),
    blocks=1,
    last_tokens=1,
    row_length=64,
    row_segments=1,
    rows=1,
    gradient_segments=1,
    gradient_length=64,
)


def local_heads(model: Transformer) -> tuple[int, ...]:
    """The heads whose bias falls, counted from 0; all heads share a formula that is given once."""
    table = model.bias_table(2)
    assert table is not None
    falls = (table[:, 1] < table[:, 0]).expand(model.layers[0].heads)
    return tuple(np.flatnonzero(falls.numpy()).tolist())


def mixture(model: Transformer, text: np.ndarray) -> dict[str, Any]:
    """The prices of changes, and what each kind of head sees.

    Returns:
        `local`: heads with a falling bias. `nats`: last-token loss at the training length and at
        `MULTIPLE` times it. `prices` of `silence local`, `silence free`, `silence one free` at the
        training length; at the long one the same with `, long` behind, `foreign`: everything
        beyond the training length is another text's, `far`: of all the far context, foreign or
        not, against none, `tempered`: free heads with logits times `log i / log L`. `fields`: mean
        attention field of local and of free heads there. `positions`: loss by position there.
        `readout`: how position can be read.
    """
    short, long = model.length, model.length * MULTIPLE
    local = local_heads(model)
    free = tuple(h for h in range(model.layers[0].heads) if h not in local)
    far = samples_of(text, TARGETS, long)
    rows = {"short": far[:, -short - 1 :], "long": far}
    loss = {where: last_losses(model, given) for where, given in rows.items()}
    prices = {
        "foreign": price(last_losses(model, foreign(far, short)), loss["long"]),
        "far": price(loss["long"], loss["short"]),
        **{
            f"{name}, {where}": price(last_losses(model, given, silenced(heads)), loss[where])
            for name, heads in (
                ("silence local", local),
                ("silence free", free),
                ("silence one free", free[:1]),
            )
            if heads
            for where, given in rows.items()
        },
    }
    if free:
        prices["tempered"] = price(last_losses(model, far, tempered(free, short)), loss["long"])
    fields, _ = attention_receptive_field(model, text, thresholds=(EPS,), length=long)
    by_head = np.asarray(fields[0].heads)
    places = binned(losses_at(model, text, (long,), TARGETS // POSITIONS)[0], POSITIONS)
    return {
        "local": len(local),
        "nats": {where: float(values.mean()) for where, values in loss.items()},
        "prices": prices,
        "fields": {
            kind: float(by_head[:, list(heads)].mean())
            for kind, heads in (("local", local), ("free", free))
            if heads
        },
        "positions": [[p.first, p.last, p.nats] for p in places],
        "readout": position_readout(model, text, short, long),
    }


def _planned(wanted: Callable[[Job], bool]) -> Iterator[Job]:
    return (job for jobs, *_ in planned(corpus()) for job in jobs if wanted(job))


def _trained(job: Job, store: Store) -> Transformer:
    """The model of a run; one that the store has not is trained, to the same weights."""
    least = dataclasses.replace(job.configuration, measurement=LEAST, inference=())
    if trained_model(least, store) is None:
        train_and_measure(least, store)
    model = trained_model(least, store)
    assert model is not None
    return model


def measure_mixtures(folder: str) -> Iterator[str]:
    """Measure the models of the plans that are not in the file, training them where need be."""

    def found(job: Job) -> Row:
        named = {"label": job.label, "seed": job.configuration.seed}
        return named | mixture(_trained(job, Store(folder)), job.configuration.corpus.held_out)

    chosen = _planned(lambda job: job.configuration.seed in MODELS.get(job.label, ()))
    yield from extend("mixtures", chosen, found)


# -- gradients ------------------------------------------------------------------------------------

SEEDS = {
    ("sinusoidal", 64): 2,
    ("sandwich", 64): 2,
    ("alibi", 64): 2,
    ("rope", 64): 1,
    ("sinusoidal", 128): 2,
    ("rope", 128): 1,
}
"""How many models by encoding and training length have their gradients in the file."""
SEGMENTS, LENGTH = 32, 1024


def measure_gradients(folder: str) -> Iterator[str]:
    """Measure the gradients [C, 5.1] of the reference models that are not in the file, training
    these where need be; the hash of the weights says whether they are the same."""
    known = {r["training"]["weights_sha256"] for r in results()}
    there = {(row["name"], row["trained"], row["seed"]) for row in rows("gradients")}

    def named(job: Job) -> tuple[str, int, int]:
        return job.label, job.configuration.preset.length, job.configuration.seed

    def found(job: Job) -> Row:
        model, (name, trained, seed) = _trained(job, Store(folder)), named(job)
        segments = samples_of(job.configuration.corpus.held_out, SEGMENTS, LENGTH)
        weights = hashlib.sha256(safetensors.torch.save(model.state_dict())).hexdigest()
        shares = gradient_shares(model, segments).mean(0).reshape(-1, STEP).sum(1)
        scale = scale_of(dataclasses.asdict(job.configuration.preset))
        own = {"name": name, "trained": trained, "seed": seed, "scale": scale}
        return {**own, "same": weights in known, "shares": shares.tolist()}

    def wanted(job: Job) -> bool:
        name, trained, seed = named(job)
        return seed < SEEDS.get((name, trained), 0) and (name, trained, seed) not in there

    yield from extend("gradients", _planned(wanted), found)


# -- circuits -------------------------------------------------------------------------------------

ROWS = 128


def circuit(
    model: Transformer, configuration: Configuration, layer: int, head: int
) -> dict[str, Any]:
    """What the retrieving head has, and what it needs.

    Args:
        model: trained on the task of the configuration.
        configuration: of its run.
        layer: of the head that retrieves, counted from 1.
        head: that retrieves, counted from 1.

    Returns:
        `previous`: the mean attention of each head of the first layer on the previous token, at
        the end of rows of the training length. `rows`: for each length that the run asks about,
        the accuracy at the farthest distance; the attention of the retrieving head on the key; its
        `advantage`, the key's content logit less the log-mean-exp of all others, in nats; and
        `silent`, the accuracy without each head of the first layer.
    """
    task, trained = configuration.task, configuration.preset.length
    assert task is not None
    found: dict[str, Any] = {"rows": []}
    longest = max(configuration.asked.lengths)
    for length in (trained * m for m in MULTIPLES if trained * m <= longest):
        far = task.farthest(length)

        def ask(length: int = length, far: int = far, **inner: Any) -> Any:
            random = np.random.default_rng([configuration.asked.seed, length, far])
            return asked_at(model, task, random, ROWS, length, far, **inner)

        right, attention, content, query, key = ask()
        own = content[:, layer - 1, head - 1, : query + 1]
        others = own[:, torch.arange(query + 1) != key]
        first = (silenced([h], len(model.layers)) for h in range(model.layers[0].heads))
        found["rows"].append(
            {
                "length": length,
                "accuracy": _mean(right),
                "attention": _mean(attention[:, layer - 1, head - 1]),
                "advantage": _mean(own[:, key] - others.logsumexp(-1) + np.log(query)),
                "silent": [_mean(ask(inner=path)[0]) for path in first],
            }
        )
        if length == trained:
            found["previous"] = previous(model, content[:, 0, :, : query + 1])
    return found


def previous(model: Transformer, content: Tensor) -> list[float]:
    """Attention on the previous token by each head of the first layer.

    Args:
        model: it.
        content: logits of the last query, shape (rows, heads, keys).
    """
    keys, mechanism = content.shape[-1], model.layers[0].mechanism
    table = model.bias_table(keys)
    logits = content.clone()
    if table is not None and mechanism.biased:
        logits += layer_bias(table, 0, content.shape[1]).flip(-1)
    if mechanism.window is not None:
        logits[..., : keys - mechanism.window] = -torch.inf
    return logits.softmax(-1)[..., -2].mean(0).tolist()


def _mean(values: Tensor) -> float:
    return values.double().mean().item()


def measure_circuits(folder: str) -> Iterator[str]:
    """Measure the runs that have learned their task and are not in the file, from a folder."""
    store = Store(folder)
    tasks = (result for result in HOLD.results() if "predicted" in result)
    learned = {r["name"]: r for r in tasks if at_home(r, "accuracy") >= LEARNED}

    def found(job: Job) -> Row | None:
        model = trained_model(job.configuration, store)
        if model is None:
            return None
        recall = learned[job.name]["measurements"][0]["recall"]
        at = {"layer": recall["layer"], "head": recall["head"]}
        named = {"name": job.name, "label": job.label, **at}
        return {**named, **circuit(model, job.configuration, **at)}

    jobs = (job for job in HOLD.plan.jobs(corpus()) if job.name in learned)
    yield from extend("circuits", jobs, found)
