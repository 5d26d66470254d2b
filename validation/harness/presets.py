"""Settings of a run as users write them: architecture and schedule, measurements, probes.

Each is a frozen record that refuses a wrong value in one line. The presets are in `presets.toml`.
"""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field, StrictFloat, StrictStr, ValidationError
from pydantic.dataclasses import dataclass

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.names import nearest, one_of

Kind = TypeVar("Kind", bound=type)
Natural = Annotated[int, Field(ge=0, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]
Counts = tuple[Count, ...]
Share = Annotated[StrictFloat, Field(gt=0, lt=1)]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def settings(kind: Kind) -> Kind:
    """A frozen dataclass that checks its fields as it is made, by their annotations.

    It raises InputError with the field, the value, and the accepted values. Lists become tuples.
    """
    made: Any = dataclass(frozen=True, config=ConfigDict(extra="forbid"))(kind)
    make = made.__init__

    @functools.wraps(make)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        try:
            make(self, *args, **given)
        except ValidationError as error:
            raise InputError(_line(made, error)) from None

    made.__init__ = checked
    return made


def _line(kind: Any, error: ValidationError) -> str:
    """The first thing that is wrong: whose it is, its place, its value, and what is accepted."""
    each = error.errors()
    first = next((e for e in each if e["type"] == "unexpected_keyword_argument"), each[0])
    known = [f.alias or name for name, f in kind.__pydantic_fields__.items()]
    of = kind.__name__.strip("_").lower()
    names = [known[p] if at == 0 and isinstance(p, int) else p for at, p in enumerate(first["loc"])]
    place = ".".join(map(str, names))
    own = first.get("ctx", {}).get("error")
    if first["type"] == "unexpected_keyword_argument":
        near = nearest(place, known, 0.6)
        hint = f"did you mean {near}? " if near else ""
        return f"{of}: {place!r} is not known; {hint}accepted: {', '.join(known)}"
    if first["type"].startswith("missing"):
        return f"{of}: {place} is missing"
    if isinstance(own, InputError):
        said = str(own).removeprefix(f"{names[0]}: ") if names else str(own)
        return f"{of}: {place}: {said}" if place else said
    why = first["msg"].replace("Input should be", "accepted is").replace("valid tuple", "list")
    why = why.replace("an instance of", "a").replace("a valid dictionary", "a table")
    why = why.replace("Tuple should have", "accepted is").partition(" after")[0]
    return f"{of}: {place} {first['input']!r:.60}; {why}"


@settings
class Measurement:
    """Measurements of a trained model, and their amount of text.

    Args:
        lengths: context lengths of both perplexity protocols, in tokens; none given takes the
            training length and 4 and 16 times it, or what the encoding knows.
        blocks: number of blocks, each of the longest length, scored without overlap.
        last_tokens: number of targets of the last-token protocol.
        row_length, row_segments, rows: tokens a segment, segments, and query rows a head and
            segment of the attention receptive field.
        thresholds: the `eps` of the attention receptive field.
        gradient_segments: segments of the gradient receptive field.
        share: the `q` of the gradient receptive field.
        gradient_length: tokens of those segments; None takes the longest length.
        strides: of the sliding-window protocol at each length, in tokens; none by default.
        positions: bins of the perplexity by position in segments of the longest length.
        scores: tokens of the segments on which the expected score s[n] [S, Eq. 13] is measured.
        far: one further length in tokens, scored without overlap only, on about as much text; 0
            for none.
    """

    lengths: Counts = ()
    blocks: Count = 64
    last_tokens: Count = 512
    row_length: Count = 512
    row_segments: Count = 2
    rows: Count = 32
    thresholds: tuple[Share, ...] = (0.1, 0.05, 0.01)
    gradient_segments: Count = 32
    share: Share = 0.99
    gradient_length: Count | None = None
    strides: Counts = ()
    positions: Natural = 0
    scores: Natural = 0
    far: Natural = 0


@settings
class Probes:
    """Questions to a model that was trained on a task.

    Args:
        lengths: of the rows, in tokens; none given takes the training length and 4 and 16 times it.
        distances: from the query to the key of the answer, in tokens, where a row has room; none
            given takes up to 8 in each length, evenly spaced in their logarithm.
        rows: asked at each length and distance.
        near: keys nearest to the query, its own included, whose content logits are kept in place
            beside those of the target and the others.
        seed: of the rows.
    """

    lengths: Counts = ()
    distances: Counts = ()
    rows: Count = 96
    near: Count = 3
    seed: Natural = 0


@settings
class Preset:
    """An architecture, a training schedule, and the measurement that goes with them by default.

    All have this model's pre-norm layers and GELU; `presets.toml` says where each comes from.

    Args:
        name: a label, in no key.
        layers, width, heads: depth, model width, heads; `width` is a multiple of `heads`.
        length, batch, steps: training length in tokens, sequences a step, steps.
        learning_rate, warmup: peak of the cosine schedule, and the steps that lead up to it.
        weight_decay, clip: AdamW's decay of the matrices; bound of the gradient norm.
        betas, epsilon: of AdamW.
        schedule: after the warm-up, `cosine` to 5 % of the peak, `linear` to 0, or `inverse sqrt`.
        dropout: share of the embedding and of each residual branch set to 0 in training.
        precision: `float32`, or `bfloat16` for products under autocast; weights, optimiser, loss
            and the bias of the attention stay in float32.
        parts: a step's sequences go through the model in so many parts, to save memory.
        spread: standard deviation of the initial weights.
        embedding_spread: spread of the initial embedding; the output then has a matrix of its
            own; None ties the two.
        measurement: what `train_and_measure` measures when nothing else is asked.
    """

    name: StrictStr
    layers: Count
    width: Count
    heads: Count
    length: Count
    batch: Count
    steps: Count
    learning_rate: StrictFloat = 2e-3
    warmup: Natural = 50
    weight_decay: StrictFloat = 0.1
    clip: StrictFloat = 1.0
    measurement: Measurement = Measurement()
    betas: tuple[StrictFloat, StrictFloat] = (0.9, 0.95)
    epsilon: StrictFloat = 1e-8
    schedule: Literal["cosine", "linear", "inverse sqrt"] = "cosine"
    dropout: Annotated[StrictFloat, Field(ge=0, lt=1)] = 0.0
    precision: Literal["float32", "bfloat16"] = "float32"
    parts: Count = 1
    spread: StrictFloat = 0.02
    embedding_spread: StrictFloat | None = None

    def __post_init__(self) -> None:
        refuse(
            self.batch % self.parts,
            f"preset: batch {self.batch} in {self.parts} parts; accepted are parts of equal size",
        )
        refuse(
            self.width % (2 * self.heads),
            f"preset: width {self.width} with {self.heads} heads; accepted is a width that "
            "is an even multiple of the heads",
        )

    @property
    def tokens(self) -> int:
        """Tokens of a whole training.

        >>> preset("paper:chi2023").tokens
        819200000
        """
        return self.steps * self.batch * self.length

    def operations(self, vocabulary: int = 256) -> int:
        """Floating-point operations of the products for one token of training.

        Counted are the products of the model [Chowdhery et al., PaLM, App. B], and of the attention
        only the half that causality leaves. Let `d` be the width, `L` the layers, `n` the training
        length and `V` the vocabulary. In the forward pass a token takes:

            24 L d^2          four projections of the attention, and an MLP four times as wide
            2 L d (n + 1)     scores and values of (n + 1)/2 keys on average
            2 d V             scores of the next token

        Training takes three times that, once forward and twice backward. Softmax, norms, biases and
        the optimiser are left out, as usual; so is what is computed twice to save memory.

        >>> preset("paper:chi2023").operations(50_257) / 1e6
        769.55904
        """
        d, layers, n = self.width, self.layers, self.length
        return 3 * (24 * layers * d**2 + 2 * layers * d * (n + 1) + 2 * d * vocabulary)


def _read(place: Path) -> dict[str, Preset]:
    found = tomllib.loads(place.read_text(encoding="utf-8"))
    measured = {name: Measurement(**said.pop("measurement", {})) for name, said in found.items()}
    return {name: Preset(name, measurement=measured[name], **found[name]) for name in found}


PRESETS = _read(Path(__file__).with_name("presets.toml"))


def preset(name: str) -> Preset:
    """The preset of this name.

    Raises:
        InputError: no preset has this name.

    >>> preset("demo").layers
    4
    """
    return PRESETS[one_of(name, "preset", PRESETS)]


def resized(chosen: Preset, length: int) -> Preset:
    """A preset with another training length and as many tokens a step.

    >>> resized(preset("small"), 128).batch
    16
    """
    if length == chosen.length:
        return chosen
    batch = max(chosen.parts, chosen.batch * chosen.length // length)
    return dataclasses.replace(chosen, length=length, batch=batch)
