"""Read the rotation of a configuration, in the names of the library's versions.

The library knows these kinds of rescaling. All of them turn queries and keys, which keeps norms, so
none changes whether a window is enough; `yarn` and `longrope` multiply the logits by a constant.

    linear         all angles divided by a factor (position interpolation)
    dynamic        a larger base beyond the training length, by the length of the row
    yarn           slow angles divided by a factor, fast ones kept
    longrope       each angle divided by a number of its own
    llama3         slow angles divided by a factor, those between by less
    proportional   a part of the angles of the whole head turns, the others do not
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farfield.theory.encodings import Encoding, encoding, of_mechanism
from farfield.validation.checkpoints.configured import THETA, Attention, ModelSize
from farfield.validation.checkpoints.guarded import Config, short


@dataclass(frozen=True)
class Scaling:
    """A kind of rescaling: its effect, and the further keys that a configuration must have."""

    words: str
    needs: tuple[str, ...] = ("factor",)


SCALINGS = {
    "linear": Scaling("all angles divided by {factor:g}"),
    "dynamic": Scaling("the base grows with rows beyond {original}, factor {factor:g}"),
    "yarn": Scaling("slow angles divided by {factor:g}"),
    "longrope": Scaling(
        "each angle divided by a number of its own, another one beyond {original} tokens",
        ("short_factor", "long_factor"),
    ),
    "llama3": Scaling(
        "slow angles divided by {factor:g}",
        ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    ),
    "proportional": Scaling("a part of the angles of the whole head turns", ()),
}
"""Every kind of rescaling by its name; `default` is none."""

_OLD = {"su": "longrope"}  # names of older versions


def rotary(
    config: Config,
    size: ModelSize,
    family: Mapping[str, Any],
    given: Config | None = None,
    *,
    theta: float | None = None,
    length: int | None = None,
) -> tuple[Attention, str]:
    """The attention of a layer with a rotation, and notes on it.

    Since version 5 the library writes `rope_parameters`; before, `rope_scaling` and the names
    beside it.

    Args:
        config: of the model.
        size: of the model.
        family: the table of its family.
        given: the part of the configuration that speaks of the rotation; None finds it.
        theta: the base of the angles where none is given; None takes the family's.
        length: the longest row that the configuration names.

    Raises:
        InputError: a share that is not above 0 and at most 1; a kind of rescaling that is not
            known, or whose numbers are missing.
    """
    if given is None:
        given = config.part("rope_scaling", "rope_parameters")
        given = given if given.values else config.with_values(family.get("scaling", {}))
    usual = family.get("theta", THETA) if theta is None else theta
    base = _either(config, given, ("rope_theta", "rotary_emb_base"), usual)
    if "turns" in family:
        name = family["turns"]["key"]
        turned = config.whole(name, usual=family["turns"]["usual"])
        if turned % 2 or turned > size.head_size:
            raise config.wrong(
                f"{name} {turned} of {size.head_size} dimensions",
                "an even number of dimensions, at most those of a head",
            )
    elif "latent" in family:
        turned = config.whole("qk_rope_head_dim", usual=family["latent"]["qk_rope_head_dim"])
    else:
        names = ("partial_rotary_factor", "rotary_pct")
        share = _either(config, given, names, family.get("share", 1.0))
        turned = int(size.head_size * share)
        if share > 1 or turned < 2 or turned % 2:
            raise config.wrong(
                f"{names[0]} {share:g} of {size.head_size} dimensions",
                "a share of at most 1 that is an even number of dimensions",
            )
    return turning(config, given, family, turned, size.head_size, base, length)


def _either(config: Config, given: Config, names: tuple[str, str], usual: float) -> float:
    """A number beside the part of the rotation or inside, as the version has it."""
    beside = config.number(*names, usual=usual)
    found = given.number(names[0], usual=beside)
    if config.value(*names) is not None and found != beside:
        raise config.wrong(f"{names[0]} {beside:g} and {found:g}", "one of them")
    return found


def turning(
    config: Config,
    given: Config,
    family: Mapping[str, Any],
    turned: int,
    head_size: int,
    theta: float,
    length: int | None,
) -> tuple[Attention, str]:
    """The attention of a layer that rotates so many dimensions, and notes on it."""
    note = f"{turned} of {head_size} dimensions of a head are rotated, base {theta:g}"
    kind = given.value("rope_type", "type", usual="default")
    kind = (_OLD | family.get("renamed", {})).get(kind, kind) if isinstance(kind, str) else kind
    if kind == "default":
        return Attention(_rotation(None), (turned, theta)), note
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise given.wrong(f"rope_type {short(kind)}", ", ".join(("default", *SCALINGS)))
    if missing := [name for name in SCALINGS[kind].needs if given.value(name) is None]:
        raise given.wrong(f"rope_type {kind!r} without {missing[0]}", "that number too")
    name = "original_max_position_embeddings"
    usual = config.whole(name, usual=family.get("original", length))
    original = usual if "original" in family else given.whole(name, usual=usual)
    factor = given.number("factor", usual=length / original if length and original else 1.0)
    if kind == "longrope":
        for name in SCALINGS[kind].needs:
            numbers = given.value(name)
            if not isinstance(numbers, list) or len(numbers) != turned // 2:
                raise given.wrong(f"{name} {short(numbers)}", f"{turned // 2} numbers")
    said = SCALINGS[kind].words.format(factor=factor, original=original)
    scale = _logit_factor(kind, given, factor, original)
    if scale != 1:
        said += f", logits times {scale:.4g}"
    note += f", rescaled ({kind}: {said}); the surrogate is not"
    return Attention(_rotation(kind), (turned, theta), factor=scale), note


def _logit_factor(kind: str, given: Config, factor: float, original: int | None) -> float:
    """What logits are multiplied by: cosines and sines of queries and of keys both are."""
    if kind not in ("yarn", "longrope"):
        return 1.0
    if given.value("attention_factor") is not None:
        return given.number("attention_factor", usual=1.0) ** 2
    if factor <= 1:
        return 1.0
    if kind == "longrope":
        return 1 + math.log(factor) / math.log(original) if original and original > 1 else 1.0
    if given.value("mscale") and given.value("mscale_all_dim"):
        one, all_dim = (given.number(k, usual=1.0) for k in ("mscale", "mscale_all_dim"))
        return ((0.1 * one * math.log(factor) + 1) / (0.1 * all_dim * math.log(factor) + 1)) ** 2
    return (0.1 * math.log(factor) + 1) ** 2


@functools.cache
def _rotation(scaled: str | None) -> Encoding:
    """The encoding of a rotation, rescaled or not; the layers of a model share it."""
    if scaled is None:
        return encoding(of_mechanism("rotation").name)
    found = encoding(of_mechanism("rotation_rescaled").name)
    plain = of_mechanism("rotation")
    return dataclasses.replace(
        found,
        name=f"{plain.name} ({scaled})",
        title=f"{plain.title}, {scaled}",
        source=f"{plain.source}, rescaled as {scaled}",
    )
