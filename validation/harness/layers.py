"""What a model can be trained with: an encoding in all layers, or a mechanism for each.

The layers of a hybrid are listed as a plan writes them.

An entry is a bias (`"-n/4"`), a list of biases one a head, or a table:

    mechanism   a name or formula: `rope`, `xpos`, `nope`, `-n/4`, or a list of biases one a head
    window      keys that a query sees, its own included, in training too
    sinks       true: each head learns a logit in the denominator
    share, base, scaling    of a rotation: share of the head size that turns, base, factor by which
                positions are compressed
    bias        added to a rotation: a bias, or a list of biases one a head
    scale       of the logits with the row's length: `log`, or a table of `form` (`log`,
                `1 + a log`), `a`, `length`, `when` (`both`, `training`, `inference`), `heads`
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, StrictBool, StrictFloat, StrictStr

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings import CATALOGUE, LISTED, Encoding, encoding
from farfield.validation.harness.mechanism import LayerMechanism, Scale, Turn, Visibility
from farfield.validation.harness.presets import Natural, settings

TRAINABLE = ("bias", "rotation", "rotation_decay", "sinusoidal", "learned_absolute")
"""The mechanisms that the model has."""


def trainable(encoding: Encoding) -> bool:
    """Whether a model is trained with it where all are; a surrogate replaces another encoding, and
    is not."""
    entry = CATALOGUE.get(encoding.name)
    surrogate = entry is not None and bool(entry.stands_for)
    values = all(p.learned or p.init[0] == p.init[1] for p in encoding.free)
    return encoding.mechanism in TRAINABLE and values and not surrogate


def require_mechanism(encoding: Encoding) -> None:
    """Raise InputError if the model has no such mechanism."""
    if encoding.mechanism in TRAINABLE:
        return
    others = (e.name for e in CATALOGUE.values() if e.mechanism in TRAINABLE[1:])
    raise InputError(
        f"{encoding.name} cannot be trained here (mechanism {encoding.mechanism}); accepted: "
        f"additive biases, {', '.join(others)}"
    )


def require_values(encoding: Encoding) -> None:
    """Raise InputError if a parameter has neither a value nor a way to be learned.

    A parameter that is not learned may be left to its reference value, if that is one point.
    """
    for parameter in encoding.free:
        refuse(
            not parameter.learned and parameter.init[0] != parameter.init[1],
            f"{encoding.name}: {parameter.name} is not learned and has no value; accepted: "
            f"{parameter.name}=..., in the domain {parameter.domain}",
        )


def variants(encoding: Encoding, length: int) -> tuple[Visibility, ...]:
    """How a model trained on this length is measured: rotations with BCA as well [S, 3.3]."""
    if encoding.mechanism in ("rotation", "rotation_decay"):
        return (Visibility(), Visibility(bca=encoding.bca or length // 2))
    return ()


# -- layers of their own ---------------------------------------------------------------------------


def _formulas(given: Any) -> Any:
    each = given if isinstance(given, (list, tuple)) else [given]
    refuse(
        not all(isinstance(one, str) for one in each),
        f"{given!r:.60} is no formula; accepted: a formula or a name, or a list of them, one a "
        "head",
    )
    return given


Formulas = Annotated[str | list[str], BeforeValidator(_formulas)]


@settings
class _Entry:
    mechanism: Formulas
    bias: Formulas | None = None
    window: Natural | None = None
    sinks: StrictBool = False
    share: StrictFloat | None = None
    base: StrictFloat | None = None
    scaling: StrictFloat | None = None
    scale: StrictStr | dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class LayerPlan:
    """One layer of a hybrid.

    Args:
        mechanism: how it attends.
        encoding: its bias; None for none.
    """

    mechanism: LayerMechanism
    encoding: Encoding | None = None

    def require(self, place: str, heads: int, size: int, length: int) -> None:
        """Raise InputError unless a model has room for it.

        Args:
            place: of the layer, in words.
            heads: of a layer.
            size: of a head.
            length: of the rows in training, in tokens.
        """
        wrong = None
        own, scale, turn = self.encoding, self.mechanism.scale, self.mechanism.turn
        if own is not None:
            require_values(own)
            if own.num_heads not in (1, heads):
                wrong = f"{own.num_heads} biases; accepted are 1 or {heads}, one a head"
        if self.mechanism.window is not None and not 1 <= self.mechanism.window <= length:
            wrong = (
                f"window {self.mechanism.window} in rows of {length} tokens; accepted are windows "
                f"from 1 to {length}"
            )
        if scale is not None and not all(1 <= h <= heads for h in scale.heads):
            wrong = f"scale of heads {list(scale.heads)}; accepted are heads from 1 to {heads}"
        if turn is not None and round(turn.share * size / 2) < 1:
            wrong = f"share {turn.share:g} of a head of {size}; accepted is a share of 2 or more"
        refuse(wrong is not None, f"{place}: {wrong}")


def read_layers(given: Sequence[Any], heads: int) -> tuple[LayerPlan, ...]:
    """The layers that a plan lists, for a model with so many heads.

    Raises:
        InputError: an entry that no layer can have; the line names the layer.

    >>> local, free = read_layers([{"mechanism": "rope", "window": 8}, "0"], heads=2)
    >>> local.mechanism.window, free.mechanism.biased
    (8, False)
    """
    return tuple(_layer(entry, at, heads) for at, entry in enumerate(given, 1))


def written(text: str) -> Any:
    """A layer as a command line has it: a bias, or a table as a plan writes it.

    Raises:
        InputError: braces that hold no table.

    >>> written("-n/4"), written('{mechanism = "rope", window = 16}')
    ('-n/4', {'mechanism': 'rope', 'window': 16})
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        return tomllib.loads(f"layer = {text.strip()}")["layer"]
    except (ValueError, RecursionError):
        raise InputError(
            f"layer {text[:60]!r} is no table; accepted as in a plan: "
            '{mechanism = "rope", window = 16}'
        ) from None


def _layer(given: Any, at: int, heads: int) -> LayerPlan:
    try:
        if not isinstance(given, dict):
            given = {"mechanism": given}
        entry = _Entry(**given)
        scale = _scale(entry.scale)
        main = fitted(heads, name=entry.mechanism)
        turning = {k: v for k in ("share", "base", "scaling") if (v := getattr(entry, k))}
        turn = None
        if main.mechanism in ("rotation", "rotation_decay"):
            turn = Turn(**turning, decay=main.mechanism == "rotation_decay")
        elif turning or entry.bias is not None:
            wrong = [*turning, *(["bias"] if entry.bias is not None else [])][0]
            raise ValueError(f"{wrong} belongs to a rotation; accepted with mechanism = 'rope'")
        elif main.mechanism != "bias":
            raise ValueError(
                f"{main.name} acts on no single layer (mechanism {main.mechanism}); accepted are "
                "biases, rope and xpos"
            )
        bias = main if turn is None else None
        if entry.bias is not None:
            bias = fitted(heads, name=entry.bias)
            if bias.mechanism != "bias":
                raise ValueError(f"bias {bias.name}: accepted are additive biases")
    except ValueError as error:
        raise InputError(f"layer {at}: {error}") from None
    biased = bias is not None and not _zero(bias)
    mechanism = LayerMechanism(biased, turn, entry.window, entry.sinks, scale)
    return LayerPlan(mechanism, bias if biased else None)


def _scale(given: str | Mapping[str, Any] | None) -> Scale | None:
    if given is None:
        return None
    found = {"form": given} if isinstance(given, str) else given
    try:
        return Scale(**{**found, "heads": tuple(found.get("heads", ()))})
    except TypeError:
        known = ", ".join(f.name for f in dataclasses.fields(Scale))
        raise ValueError(f"scale {given!r}: accepted are {known}") from None


def fitted(heads: int, /, **options: Any) -> Encoding:
    """An encoding, with so many heads where it has one formula a head and nobody lists them.

    >>> fitted(4, name="alibi").num_heads, fitted(4, name="-n/4").num_heads
    (4, 1)
    """
    found = encoding(**options)
    if "heads" in options or found.source == LISTED or found.num_heads in (1, heads):
        return found
    return encoding(heads=heads, **options)


def _zero(found: Encoding) -> bool:
    return all(bias == 0 for bias in found.biases)
