"""What a configuration says of a rotation, in the names of the library's versions."""

from __future__ import annotations

from farfield.theory.encodings import encoding, of_mechanism, surrogate_of
from farfield.validation.outside.family import Attention, Config, Shape

THETA = 10_000  # the library's own default


def rotary(
    config: Config, size: Shape, *, usual_theta: float = THETA, usual_share: float = 1.0
) -> tuple[Attention, str]:
    """The attention of a layer with a rotation, and what is to be said of it.

    Since version 5 the library writes `rope_parameters`; before, `rope_scaling` and the names
    beside it.

    Args:
        config: of the model.
        size: of the model.
        usual_theta: the base of the angles where none is given.
        usual_share: the share of a head's dimensions that is rotated where none is given.

    Raises:
        InputError: a share that is not above 0 and at most 1.
    """
    given = config.part("rope_scaling", "rope_parameters")
    theta = given.number("rope_theta", usual=config.number(
        "rope_theta", "rotary_emb_base", usual=usual_theta))  # fmt: skip
    share = given.number("partial_rotary_factor", usual=config.number(
        "partial_rotary_factor", "rotary_pct", usual=usual_share))  # fmt: skip
    turned = int(size.head_size * share)
    if share > 1 or turned < 2 or turned % 2:
        raise config.wrong(
            f"a share of {share} of {size.head_size} dimensions to rotate",
            "a share of at most 1 that is an even number of dimensions",
        )
    note = f"{turned} of {size.head_size} dimensions of a head are rotated"
    scaling = given.value("rope_type", "type", usual="default")
    if scaling != "default":
        note += f", rescaled ({scaling}); the surrogate is not"
    rotation = of_mechanism("rotation").name
    stand_in = surrogate_of(rotation)
    surrogate = None if stand_in is None else encoding(stand_in.name, d=turned, theta=theta)
    return Attention(encoding(rotation), surrogate), note
