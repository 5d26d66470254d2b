"""What the configurations of most decoders say alike: their size, and which layers slide."""

from __future__ import annotations

from collections.abc import Callable

from farfield.validation.checkpoints.family import ModelSize, shape
from farfield.validation.checkpoints.guarded import Config, short

SLIDING, FULL = "sliding_attention", "full_attention"


def decoder(
    config: Config,
    *,
    layers: int,
    heads: int,
    width: int,
    vocabulary: int,
    key_heads: int | None = None,
    head_size: int | None = None,
) -> ModelSize:
    """The size of a decoder, by the library's usual names; the numbers are its defaults.

    Args:
        config: of the model.
        layers: how many, where the configuration says nothing; so the others.
        heads: of queries.
        width: of a residual.
        vocabulary: tokens.
        key_heads: heads of keys and values; None for as many as of queries.
        head_size: dimensions of a head; None for what the width leaves.

    Raises:
        InputError: numbers that do not fit each other.
    """
    count = config.whole("num_attention_heads", usual=heads)
    given = config.value("head_dim", usual=head_size)
    return shape(
        config,
        layers=config.whole("num_hidden_layers", usual=layers),
        heads=count,
        width=config.whole("hidden_size", usual=width),
        vocabulary=config.whole("vocab_size", usual=vocabulary),
        head_size=None if given is None else config.whole("head_dim", usual=given),
        key_heads=config.whole("num_key_value_heads", usual=key_heads or count),
    )


def windows(
    config: Config, layers: int, width: int | None, slides: Callable[[int], bool]
) -> tuple[int | None, ...]:
    """How many keys a query of each layer sees; None for all before it.

    Args:
        config: of the model.
        layers: how many.
        width: of a layer that slides.
        slides: whether a layer, counted from 0, does where `layer_types` says nothing.

    Raises:
        InputError: kinds of layers that are not known or not as many; a layer that slides without
            a width.
    """
    kinds = config.value(
        "layer_types", usual=[SLIDING if slides(k) else FULL for k in range(layers)]
    )
    known = isinstance(kinds, list) and all(k in (SLIDING, FULL) for k in kinds)
    if not known or len(kinds) != layers:
        raise config.wrong(f"layer_types {short(kinds)}", f"{layers} of {SLIDING!r} and {FULL!r}")
    if width is None and SLIDING in kinds:
        raise config.wrong(
            f"a layer with {SLIDING!r} and no sliding_window", "a whole number from 1 for it"
        )
    return tuple(width if kind == SLIDING else None for kind in kinds)


def sliding_window(config: Config, usual: int | None) -> int | None:
    """The width of layers that slide, own key included; None where null is written."""
    if "sliding_window" in config.values and config.values["sliding_window"] is None:
        return None
    return None if usual is None else config.whole("sliding_window", usual=usual)
