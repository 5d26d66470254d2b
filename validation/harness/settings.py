"""Settings as users write them, checked: layers, sizes, one `Run`, one `Plan` that expands to runs.

A run is named by the hash of what decides its weights, in canonical JSON. Labels are in no key, nor
are the measurements: one training serves many.

A plan is a TOML file. Each `[[runs]]` table holds settings of `Run`, and a list represents one run
an element, in every combination:

    title = "slopes and learning rates"
    [[runs]]
    encoding = ["-n/4", "kerple_log", "mine.py:Own"]
    seed = [0, 1, 2]
    lr = [1e-3, 2e-3]
    preset = "demo"                      # or a TOML file of settings
    measure = { lengths = [64, 256, 1024] }

An encoding is a name or formula, heads as `"[-n/4; 0 x7]"`, a module of your own, `FILE.py:Class`,
or a table `{ name = "kerple_log", r1 = 2 }`. A hybrid lists its layers, one entry each, a bias or a
table of `LayerSettings`:

    encoding = { label = "local and free", layers = [{ mechanism = "rope", window = 16 }, "0"] }
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    JsonValue,
    StrictBool,
    ValidationError,
    model_validator,
)

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.names import nearest
from farfield.theory.encodings import Encoding, encoding
from farfield.validation.harness.own import Own

Count = Annotated[int, Field(ge=1, le=10**12, strict=True)]
Natural = Annotated[int, Field(ge=0, strict=True)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]
Code = Annotated[str, Field(pattern=r"\.py:\w+$")]
"""What a file of the user's own defines, `FILE.py:NAME`."""

Spec = str | dict[str, JsonValue]
"""An encoding as a user writes it."""

MAX_RUNS = 100_000


class Record(BaseModel):
    """Settings that are checked as they are made; what is wrong is said in one line.

    Raises:
        InputError: an unknown setting or a bad value, with its place and the accepted forms.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    also: ClassVar[tuple[str, ...]] = ()
    """Names that are accepted beside the fields."""

    def __init__(self, **settings: object) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise InputError(_line(type(self), error)) from None

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Self:
        """The record of a table."""
        make: Callable[..., Self] = cls
        return make(**settings)

    def but(self, **changes: object) -> Self:
        """The same with other settings, checked."""
        return self.of({**{k: getattr(self, k) for k in self.model_fields_set}, **changes})


def _line(kind: type[Record], error: ValidationError) -> str:
    """The first thing that is wrong: its place, its value, and the accepted forms."""
    first = next((e for e in error.errors() if e["type"] == "extra_forbidden"), error.errors()[0])
    place, cause = ".".join(map(str, first["loc"])), first.get("ctx", {}).get("error")
    if first["type"] == "extra_forbidden":
        names = [*kind.model_fields, *kind.also]
        near = nearest(place, names, 0.6)
        hint = f"did you mean {near}? " if near else ""
        return f"{place!r} is no setting; {hint}accepted: {', '.join(names)}"
    if isinstance(cause, InputError):
        return f"{place}: {cause}" if place else str(cause)
    why = first["msg"].replace("Input should be", "accepted is").replace("valid tuple", "list")
    why = why.replace("an instance of", "a").replace("a valid dictionary", "a table")
    return f"{place} {first['input']!r:.60}; {why.partition(' after')[0]}"


# -- layers and models ----------------------------------------------------------------------------


class RopeSettings(Record):
    """A rotation of queries and keys.

    Args:
        share: of the head size that turns, the first dimensions, above 0 to 1.
        base: pair `i` of `r/2` turns by `base^(-2i/r)` a token, `r` the dimensions that turn.
        scaling: positions are divided by it, from 1.
        decay: xPos's scaling of queries and keys as well [S, Algorithm 1].
    """

    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    base: Annotated[float, Field(gt=1, allow_inf_nan=False)] = 10_000.0
    scaling: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    decay: StrictBool = False


class ScaleSettings(Record):
    """A factor of the content logits that grows with the keys `N` of a row up to the query.

    Args:
        form: `log` for `log N / log L`, `1 + a log` for `1 + a log(1 + floor(N / L))`.
        a: of the second form.
        length: `L` in tokens, from 2; None for the training length.
        when: `both`, `training` or `inference`; the factor is 1 otherwise. At inference alone,
            rows to `L` keep the logits they were trained with: the factor is at least 1.
        heads: those that are scaled, from 1; none given takes all.
    """

    form: Literal["log", "1 + a log"] = "log"
    a: Positive = 0.1
    length: Annotated[int, Field(ge=2)] | None = None
    when: Literal["both", "training", "inference"] = "both"
    heads: tuple[Count, ...] = ()


ROTATIONS = ("rotation", "rotation_decay")
"""Mechanisms of the catalogue that turn queries and keys; the second is xPos."""


@functools.lru_cache(1024)
def _mechanism(written: str) -> str:
    """How a layer applies what is written there, as `Encoding.mechanism` says it."""
    spec = json.loads(written)
    if isinstance(spec, str):
        return "module" if ".py:" in spec else encoding(spec).mechanism
    return encoding(**spec).mechanism


class LayerSettings(Record):
    """How a layer treats positions: the same of a plan, of a run and of a model.

    A plan may write a bias alone, or a table whose `mechanism` is a bias, `rope` or `xpos`; then
    `share`, `base` and `scaling` are those of the rotation.

    Args:
        bias: that is added to the logits, as a plan writes it or as it was read; None for none.
        rope: the rotation of queries and keys, None for none.
        window: keys that a query sees in training and at inference, its own included; None: all.
        sinks: whether each head learns a logit in the denominator, a key of value 0.
        scale: of the content logits with the row's length, or the name of its form; None for none.
    """

    bias: Spec | InstanceOf[Encoding] | InstanceOf[Own] | None = None
    rope: RopeSettings | None = None
    window: Count | None = None
    sinks: StrictBool = False
    scale: ScaleSettings | None = None
    also = ("mechanism", "share", "base", "scaling")

    @model_validator(mode="before")
    @classmethod
    def _written(cls, table: dict[str, Any]) -> dict[str, Any]:
        table = {name: value for name, value in table.items() if value is not None}
        if isinstance(table.get("scale"), str):
            table["scale"] = {"form": table["scale"]}
        main, kind = table.pop("mechanism", None), ""
        if main is not None:
            kind = _mechanism(json.dumps(_spec("mechanism", main), default=str))
            refuse("rope" in table, "rope beside a mechanism; accepted: one of them")
        turn = {k: table.pop(k) for k in cls.also if k in table}
        if kind in ROTATIONS:
            return {**table, "rope": {**turn, "decay": kind == "rotation_decay"}}
        for name in [*turn, *(["bias"] if kind and "bias" in table else [])]:
            raise InputError(f"{name} belongs to a rotation; accepted with mechanism = 'rope'")
        return {**table, "bias": main} if kind else table


class Sizes(Record):
    """Sizes of a model and its initial weights.

    Args:
        width, heads: of the model; the width is an even multiple of the heads.
        length: of training rows, in tokens; all that learned absolute positions know.
        dropout: share of the embedding and of each residual branch set to 0 in training.
        spread: standard deviation of the initial weights.
        embedding_spread: of the initial embedding; the output then has a matrix of its own.
    """

    width: Count = 128
    heads: Count = 8
    length: Count = 64
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    spread: Positive = 0.02
    embedding_spread: Positive | None = None


class ModelSettings(Sizes):
    """A model: its sizes, and its layers.

    Args:
        layers: one entry a layer.
        vocabulary: different tokens.
        absolute: vectors that are added to the embedding.
    """

    layers: Annotated[tuple[LayerSettings, ...], Field(min_length=1)]
    vocabulary: Count = 256
    absolute: Literal["none", "sinusoidal", "learned"] = "none"


def _layer(value: object) -> object:
    table = value if isinstance(value, dict) else {"mechanism": value}
    refuse(
        table.get("mechanism") is None and not {"bias", "rope"} & {*table},
        f"layer {value!r:.60} has no mechanism; accepted: a bias, or a table with a mechanism, '0' "
        "for none",
    )
    return LayerSettings.of(table)


class Hybrid(Record):
    """Layers of their own, one entry a layer."""

    label: str
    layers: Annotated[
        tuple[Annotated[InstanceOf[LayerSettings], BeforeValidator(_layer)], ...],
        Field(min_length=1),
    ]


def _spec(what: str, value: object) -> object:
    refuse(
        not isinstance(value, str) and not (isinstance(value, dict) and "name" in value),
        f"{what} {value!r:.60}; accepted: a name, a formula, heads such as "
        '"[-n/4; 0 x7]", FILE.py:Class, a table with a name'
        + ", or one with a label and layers"
        * (what == "encoding"),
    )
    return value


def _encoding(value: object) -> object:
    """A hybrid where layers are listed; else a name, a formula, or a table with a name."""
    if isinstance(value, dict) and "layers" in value:
        return Hybrid.of(value)
    return value if isinstance(value, Hybrid) else _spec("encoding", value)


# -- a run ----------------------------------------------------------------------------------------


class Measure(Record):
    """The measurements of a trained model, and on how much text.

    Args:
        lengths: context lengths in tokens; none given takes the training length and 4 and 16 times
            it, or what learned absolute positions know.
        blocks: rows of the longest length, scored without overlap.
        last_tokens: targets of the last-token protocol; 0 for none.
        strides: of the sliding-window protocol, in tokens.
        windows, bca: sliding windows, and half-widths of blockwise causal attention, that the model
            is measured with, in addition.
        row_length, row_segments, rows: tokens a segment, segments, and query rows a head and
            segment of the attention receptive field.
        thresholds: its `eps`.
        gradient_length, gradient_segments, share: tokens (None: the longest length), segments, and
            the `q` of the gradient receptive field.
        scores: read in earlier plans and runs; nothing is measured by it.
        distances, probes: of a task: from the query to the answer's key, in tokens (none given
            takes 8), and rows at each.
        protocols: functions of the user's own, as `farfield.validation.harness.runs.PROTOCOLS` has
            them.
        precision: of the products where perplexity is measured; the scores of the vocabulary and
            all else are in float32.
    """

    lengths: tuple[Count, ...] = ()
    blocks: Count = 64
    last_tokens: Natural = 512
    strides: tuple[Count, ...] = ()
    windows: tuple[Count, ...] = ()
    bca: tuple[Count, ...] = ()
    row_length: Count = 512
    row_segments: Count = 2
    rows: Count = 32
    thresholds: tuple[Share, ...] = (0.1, 0.05, 0.01)
    gradient_length: Count | None = None
    gradient_segments: Count = 32
    share: Share = 0.99
    scores: Natural = 0
    distances: tuple[Count, ...] = ()
    probes: Count = 96
    protocols: tuple[Code, ...] = ()
    precision: Literal["float32", "bfloat16"] = "float32"


class Induction(Record):
    """A task in place of a text: rows of distinct tokens, some of which repeat their successor.

    Args:
        vocabulary: different tokens; a row has fewer.
        chance: that a place of a row repeats a token.
    """

    vocabulary: Annotated[int, Field(ge=8, strict=True)] = 1152
    chance: Share = 0.35


class Run(Sizes):
    """A training: what is trained on what, how, and its measurements.

    Args:
        encoding: of all layers; or a hybrid, whose layers are listed.
        label, family, preset: names in the results, in no key.
        text: a file, folder, `NAME.npy` of tokens, `builtin:documentation`; None for the source
            code of the running Python's standard library.
        task: in place of a text; or a class of the user's own (`data.OwnRows`).
        seed: of the initial weights and of the order of the text.
        layers: of the model, whose other sizes are those of `Sizes`.
        batch, steps: rows a step, and steps.
        lr, warmup, schedule: peak of the learning rate, the steps that lead up to it, and what
            follows: `cosine` to 5 % of the peak, `linear` to 0, or `inverse sqrt`.
        weight_decay, clip, betas, epsilon: of AdamW; the clip bounds the gradient's norm.
        optimizer: in place of AdamW, a function of the user's own (`train.OPTIMIZERS`).
        precision: `bfloat16` for products under autocast; all else stays in float32.
        accumulate: a step's rows go through the model in this many parts, to save memory.
        measure: the measurements.

    >>> Run(encoding="-n/4", lr=1e-3).key() == Run(encoding="-n/4", lr=1e-3, label="slow").key()
    True
    """

    encoding: Annotated[InstanceOf[Hybrid] | Spec, BeforeValidator(_encoding)]
    label: str = ""
    family: str = ""
    preset: str = ""
    text: str | None = None
    task: Induction | Code | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = 0
    layers: Annotated[int, Field(ge=1, le=2000, strict=True)] = 4
    batch: Count = 32
    steps: Count = 400
    lr: Positive = 2e-3
    warmup: Natural = 50
    schedule: Literal["cosine", "linear", "inverse sqrt"] = "cosine"
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.1
    clip: Positive = 1.0
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = (
        0.9,
        0.95,
    )
    epsilon: Positive = 1e-8
    optimizer: Literal["adamw"] | Code = "adamw"
    precision: Literal["float32", "bfloat16"] = "float32"
    accumulate: Count = 1
    measure: Measure = Measure()

    @model_validator(mode="after")
    def _fits(self) -> Run:
        refuse(
            self.width % (2 * self.heads),
            f"width {self.width} with {self.heads} heads; accepted is a width that is an even "
            "multiple of the heads",
        )
        refuse(
            self.batch % self.accumulate,
            f"batch {self.batch} in {self.accumulate} parts; accepted are parts of equal size",
        )
        if isinstance(self.encoding, Hybrid):
            refuse(
                len(self.encoding.layers) != self.layers,
                f"{self.encoding.label}: {len(self.encoding.layers)} layers are listed, the model "
                f"has {self.layers}; accepted is one entry a layer",
            )
            for at, layer in enumerate(self.encoding.layers, 1):
                refuse(
                    (layer.window or 0) > self.length,
                    f"layer {at}: window {layer.window} in rows of {self.length} tokens; accepted "
                    f"are windows from 1 to {self.length}",
                )
        return self

    @property
    def name(self) -> str:
        """Its label, or its encoding as it is written."""
        if self.label:
            return self.label
        if isinstance(self.encoding, Hybrid):
            return self.encoding.label
        return self.encoding if isinstance(self.encoding, str) else str(self.encoding["name"])

    def key(self, **facts: JsonValue) -> str:
        """16 hexadecimal digits that name the weights.

        Args:
            **facts: what the settings name from outside, in place of the names: the formulas of an
                encoding, the SHA-256 of a text.
        """
        apart = {"label", "family", "preset", "text", "measure"}
        apart |= {"optimizer"} if self.optimizer == "adamw" else set()  # as keys were before
        described = self.model_dump(mode="json", exclude=apart)
        return digest({**described, **facts})


def digest(described: Mapping[str, JsonValue]) -> str:
    """16 hexadecimal digits of the SHA-256 of canonical JSON.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    text = json.dumps(described, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# -- presets and plans ----------------------------------------------------------------------------

PRESETS = tomllib.loads(Path(__file__).with_name("presets.toml").read_text(encoding="utf-8"))


def preset(name: str | os.PathLike[str]) -> dict[str, JsonValue]:
    """The settings of a preset by its name, or of a TOML file.

    Raises:
        InputError: there is neither; the line names the presets.

    >>> preset("tiny")["layers"]
    2
    """
    if str(name) in PRESETS:
        return dict(PRESETS[str(name)])
    if not str(name).endswith(".toml"):
        near = nearest(str(name), list(PRESETS), 0.6)
        hint = f"did you mean {near}? " if near else ""
        raise InputError(
            f"preset {str(name)!r} is not known; {hint}accepted: a TOML file, or "
            f"{', '.join(PRESETS)}"
        )
    return read_toml(name, "preset")


def read_toml(path: str | os.PathLike[str], what: str) -> dict[str, JsonValue]:
    """The content of a TOML file.

    Raises:
        InputError: it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(Path(path).read_bytes().decode())
    except OSError as error:
        raise InputError(f"{what} {str(path)!r} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{what} {str(path)!r} is no TOML text: {error}") from None


def settle(name: JsonValue, settings: Mapping[str, JsonValue]) -> Run:
    """A run of a preset, with other settings; of `measure` and `encoding` tables too.

    An encoding's table may have a label and a family, which are the run's.
    """
    base, encoding = preset(str(name)), settings.get("encoding")
    usual, measure = base.get("measure"), settings.get("measure")
    if isinstance(usual, dict) and isinstance(measure, dict):
        settings = {**settings, "measure": {**usual, **measure}}
    if isinstance(encoding, dict):
        names = ("family",) if "layers" in encoding else ("label", "family")
        told = {name: encoding[name] for name in names if name in encoding}
        rest = {name: value for name, value in encoding.items() if name not in told}
        settings = {**settings, **told, "encoding": rest}
    return Run.of({**base, "preset": str(name), **settings})


class Plan(Record):
    """Many runs; see the module's text.

    >>> plan = Plan(runs=[{"encoding": ["alibi", "-2*log(1+n)"], "seed": [0, 1]}])
    >>> [(run.name, run.seed) for run in plan.expand()]
    [('alibi', 0), ('alibi', 1), ('-2*log(1+n)', 0), ('-2*log(1+n)', 1)]
    """

    runs: Annotated[tuple[dict[str, JsonValue], ...], Field(min_length=1)]
    title: str = "plan"

    def expand(
        self, check: Callable[[Run], object] = lambda run: None, **changes: JsonValue
    ) -> list[Run]:
        """Every run, each once.

        Args:
            check: called with each run, to refuse it.
            **changes: override what all of them say.

        Raises:
            InputError: a setting that no run has, or a bad value; with its place in the plan.
        """
        expanded: dict[str, Run] = {}
        for at, table in enumerate(self.runs):
            try:
                for settings in _product({**table, **changes}):
                    run = settle(settings.pop("preset", "demo"), settings)
                    key = run.key(read=[run.measure.model_dump(mode="json"), run.text])
                    if key not in expanded:
                        check(run)
                    expanded.setdefault(key, run)
                    refuse(len(expanded) > MAX_RUNS, f"more than {MAX_RUNS:,} runs")
            except InputError as error:
                raise InputError(f"runs[{at}]: {error}") from None
        return list(expanded.values())


def _product(table: Mapping[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    """Each choice of one element a list; `betas`, a list itself, is one where it holds lists."""
    choices = []
    for name, value in table.items():
        refuse(value == [], f"{name} is an empty list; accepted is one setting or several")
        if isinstance(value, list) and (name != "betas" or isinstance(value[0], list)):
            choices.append([(name, each) for each in value])
        else:
            choices.append([(name, value)])
    count = math.prod(map(len, choices))
    refuse(count > MAX_RUNS, f"{count:,} runs; accepted are at most {MAX_RUNS:,}")
    for chosen in itertools.product(*choices):
        yield dict(chosen)


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """The plan in a TOML file.

    Raises:
        InputError: the file cannot be read, or holds what no plan holds.
    """
    content = read_toml(path, "plan")
    try:
        return Plan.of(content)
    except InputError as error:
        raise InputError(f"plan {str(path)!r}: {error}") from None
