"""The outline of a model: its layers, what each keeps, and how it knows positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from farfield.theory.answers.number import count

if TYPE_CHECKING:
    from farfield.theory.encodings import Encoding

T = TypeVar("T")

RUN = "farfield"
"""The type of a folder that holds a run."""

BIASED = {"bloom": "bloom", "falcon": "falcon", "mpt": "mpt", "mt5": "t5", "t5": "t5", "umt5": "t5"}
"""The types with an additive bias by distance, by the function that makes it."""


@dataclass(frozen=True)
class Rotary:
    """How a layer turns its queries and keys.

    Args:
        size: how many dimensions of a head turn.
        base: of the angles.
        kind: of the rescaling of the angles, by its name in the library; `default` is none.
        scale: what the rescaling multiplies the logits with.
        note: what else it does, in words.
    """

    size: int
    base: float
    kind: str = "default"
    scale: float = 1.0
    note: str = ""


@dataclass(frozen=True)
class LayerOutline:
    """What one layer does with positions, and what it keeps.

    Args:
        attends: whether it has softmax attention.
        width: keys that a query sees at most, its own included; None for all before it.
        both_sides: whether it sees tokens after its own too; `width` counts both sides.
        chunked: whether a query sees its chunk of `width` keys, not the nearest ones.
        picks: how many of these keys an indexer chooses for each query; None where it has none.
        heads, key_heads, head_size: of its attention.
        cached: numbers that a token takes in its cache; 0 where it has none of its own.
        indexed: numbers that a token takes for an indexer in addition.
        state: numbers of fixed size that it keeps; None where they are not known.
        keeps: keys that its cache keeps at most, infinite for all; None for those that it sees.
        shares: whether it uses the cache of a layer below.
        positions: `rotation`, `none`, `absolute` or `bias`; empty where they are not known.
        rotation: how it turns queries and keys; None where it does not.
        encoding: the additive bias by distance; None where there is none.
        sink: whether each denominator has a learned constant too.
        cap: a content logit x enters as `cap tanh(x / cap)`; None where it enters as it is.
        scale: what logits are multiplied by beside 1/sqrt(head size).
        observed: whether all this was seen in a run; otherwise it is as the configuration says.
        temper: the factor of the logits of the query in place i of a row, from 1, as a formula;
            empty where there is none.
    """

    attends: bool = True
    width: int | None = None
    both_sides: bool = False
    chunked: bool = False
    picks: int | None = None
    heads: int = 0
    key_heads: int = 0
    head_size: int = 0
    cached: int = 0
    indexed: int = 0
    state: int | None = 0
    keeps: float | None = None
    shares: bool = False
    positions: str = ""
    rotation: Rotary | None = None
    encoding: Encoding | None = None
    sink: bool = False
    cap: float | None = None
    scale: float = 1.0
    observed: bool = True
    temper: str = ""

    @property
    def sees(self) -> str:
        """Which keys a query sees, in words."""
        if not self.attends:
            return "a state" if self.state != 0 else "no keys"
        width = keys_text(self.width)
        text = "all" if self.width is None else f"nearest {width}"
        text += ", after it too" * self.both_sides
        text = f"its chunk of {width}" if self.chunked else text
        text += f", of which {self.picks} are picked" if self.picks else ""
        return text + " and a state" * (self.state != 0)

    @property
    def mechanism(self) -> str:
        """How it knows positions, in words."""
        if not self.attends:
            return "-"
        text = self.positions or "not known"
        if self.encoding is not None:
            text = self.encoding.name
        elif (turned := self.rotation) is not None:
            kind = "" if turned.kind == "default" else f", {turned.kind}"
            text = f"rotation of {turned.size} of {self.head_size}, base {turned.base:g}{kind}"
        text += " + sink" * self.sink
        text += "" if self.cap is None else f", logits capped at {self.cap:g}"
        return text + ", logits grow" * bool(self.temper)

    @property
    def shape(self) -> str:
        """Its heads, in words."""
        if not self.attends:
            return "-"
        keys = "" if self.key_heads == self.heads else f", {self.key_heads} for keys"
        return f"{self.heads} of size {self.head_size}{keys}"


def alike(layers: Sequence[LayerOutline], kind: Callable[[LayerOutline], T]) -> dict[T, list[int]]:
    """The numbers, from 1, of layers that are of one kind.

    >>> alike([LayerOutline(width=8), LayerOutline(), LayerOutline(width=8)], lambda x: x.width)
    {8: [1, 3], None: [2]}
    """
    numbers: dict[T, list[int]] = {}
    for at, layer in enumerate(layers, 1):
        numbers.setdefault(kind(layer), []).append(at)
    return numbers


def keys_text(value: float | None) -> str:
    """A number of keys, every digit of one that a row may have.

    >>> keys_text(8192), keys_text(10485760), keys_text(float("inf"))
    ('8192', '10,485,760', 'infinite')
    """
    return f"{int(value):,}" if value is not None and 10**7 <= value < 10**12 else count(value)


@dataclass(frozen=True)
class ModelOutline:
    """What a folder says of its model.

    Args:
        path: the folder.
        kind: its `model_type`, or `farfield` for a run.
        layers: each one; empty where no number follows.
        width, vocabulary: of the model; 0 where they are not known.
        trained: the training length in tokens; None where none is named.
        trained_from: where that is from.
        cached: whether there is a cache; none where every token sees those after it.
        longest: the row that its table of positions ends with; None where there is none.
        causal: whether it is a causal language model of the library.
        unknown: why there is no number; empty where there is.
        notes: further remarks.
        values: the content of its configuration, or the record of the run.
        network: the model itself, where it was opened already.
    """

    path: Path
    kind: str
    layers: tuple[LayerOutline, ...] = ()
    width: int = 0
    vocabulary: int = 0
    trained: int | None = None
    trained_from: str = ""
    longest: int | None = None
    cached: bool = True
    causal: bool = False
    unknown: str = ""
    notes: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    network: Any = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The folder's own name, or its name in the hub: no path of the machine."""
        path = self.path.absolute()
        if path.parent.name == "snapshots":
            return path.parent.parent.name.removeprefix("models--").replace("--", "/")
        return path.resolve().name

    @property
    def keeper(self) -> str:
        """The program whose cache is described."""
        if self.kind == RUN:
            return "the harness"
        return "llama.cpp" if self.path.suffix == ".gguf" else "the library"

    @property
    def biased(self) -> bool:
        """Whether some layer adds a bias by distance."""
        return any(layer.encoding is not None for layer in self.layers)
