"""What a configuration says of positions: each layer's mechanism, window, scale of its logits.

The facts of a family are a table of `families.toml`: names of keys, defaults, the kind of each
layer. This module reads `config.json` by such a table, without torch and without the library that
wrote it. The few families that need more than names have a hook in `folder`. To add a family, add
its table; a test holds it against the library's own classes and its forward pass.

The library knows these kinds of rescaled rotations. All of them turn queries and keys, which keeps
norms, so none changes whether a window is enough; `yarn` and `longrope` multiply the logits by a
constant.

    linear         all angles divided by a factor (position interpolation)
    dynamic        a larger base beyond the training length, by the length of the row
    yarn           slow angles divided by a factor, fast ones kept
    longrope       each angle divided by a number of its own
    llama3         slow angles divided by a factor, those between by less
    proportional   a part of the angles of the whole head turns, the others do not
"""

from __future__ import annotations

import functools
import itertools
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sympy import Expr

from farfield.theory.encodings import Encoding, encoding, of_mechanism
from farfield.validation.checkpoints.guarded import Config, short

THETA = 10_000
"""The base of a rotation's angles, where nothing is said."""

NAMES = {
    "layers": ("num_hidden_layers",),
    "heads": ("num_attention_heads",),
    "key_heads": ("num_key_value_heads",),
    "head_size": ("head_dim",),
    "width": ("hidden_size",),
    "vocabulary": ("vocab_size",),
    "trained": ("max_position_embeddings",),
}
"""The library's usual names."""

FULL, SLIDING, CHUNKED, STATE = "full", "sliding", "chunked", "state"
KINDS = {
    "full_attention": FULL,
    "attention": FULL,
    "global": FULL,
    "sliding_attention": SLIDING,
    "local": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": STATE,
    "mamba": STATE,
    "recurrent": STATE,
    "conv": STATE,
}
"""What a kind of layer does, by its name in a configuration."""

POSITIONAL = (
    "sliding_window",
    "layer_types",
    "attention_chunk_size",
    "no_rope_layers",
    "attn_logit_softcapping",
    "attn_temperature_tuning",
    "alibi",
    "position_embedding_type",
)
"""Keys that a reader may take for a fact, also where the library does not read them."""

RUN = "farfield"
"""The kind of a folder that holds a run."""

Tables = Callable[[str], np.ndarray]
"""Reads a tensor of the folder by its name, in float64."""


@dataclass(frozen=True)
class ModelSize:
    """The size of a model (of the decoder, if there are two parts).

    Args:
        layers, heads, head_size, width, vocabulary: as they are called.
        key_heads: heads of keys and values, which groups of queries share.
        cached: numbers that one token takes in the cache of one layer.
    """

    layers: int
    heads: int
    head_size: int
    width: int
    vocabulary: int
    key_heads: int
    cached: int


@dataclass(frozen=True)
class HeadBounds:
    """Bounds of one head: `|logit| <= logit` up to a term common to the row, `||value|| <= value`
    up to a vector common to all."""

    logit: float
    value: float


@dataclass(frozen=True)
class Gains:
    """Queries and keys that a norm makes: the tensors that bound every logit of a layer.

    Args:
        query, key: names of their gains, as the folder holds them.
        scale: what q.k is multiplied with.
        offset: added to a gain.
        heads: over how many heads the norm goes, of queries and of keys.
    """

    query: str
    key: str
    scale: float
    offset: float = 0.0
    heads: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class Temper:
    """Logits that grow with the position: those of query `i`, from 0, are multiplied with
    `1 + slope log(1 + floor((i + first)/floor))`.

    >>> Temper(0.1, 8192, 1).at(8190), round(Temper(0.1, 8192, 1).at(8191), 4)
    (1.0, 1.0693)
    """

    slope: float
    floor: float
    first: int

    def at(self, position: int) -> float:
        """The factor of a query."""
        return 1 + self.slope * math.log1p((position + self.first) // self.floor)


@dataclass(frozen=True)
class Attention:
    """What one layer does with positions, and what becomes of its logits.

    Args:
        encoding: its positional encoding with its values; None for a layer with a state in place
            of attention.
        turned: of a rotation, how many dimensions are rotated, and the base of their angles.
        window: keys that a query sees at most, its own included; None for all before it.
        chunk: the rows are cut into chunks of so many, and a query sees those of its own; None
            where they are not.
        scale: what q.k is multiplied with.
        factor: what a rescaled rotation multiplies the logits with.
        cap: of a soft cap `cap tanh(logit/cap)` of the whole logit; None without.
        clip: the most that an entry of a query, key or value can be; None without.
        bound: of every logit, by the configuration alone, and why; None without.
        gains: of the norms of queries and keys; None without.
        sink: the tensor of a learned constant in each denominator; None without.
        temper: how logits grow with the position; None where they do not.
        held: whether the layer holds keys and values of its own.
    """

    encoding: Encoding | None
    turned: tuple[int, float] | None = None
    window: int | None = None
    chunk: int | None = None
    scale: float = 1.0
    factor: float = 1.0
    cap: float | None = None
    clip: float | None = None
    bound: tuple[float, str] | None = None
    gains: Gains | None = None
    sink: str | None = None
    temper: Temper | None = None
    held: bool = True

    @property
    def local(self) -> int | None:
        """Keys that a query sees at most, for whatever reason; None for all before it."""
        return self.chunk if self.window is None else self.window

    @property
    def flat(self) -> bool:
        """Whether no position enters its logits."""
        return self.encoding is not None and set(self.encoding.biases) == {0}

    @property
    def biased(self) -> bool:
        """Whether a bias by distance is added to its logits."""
        return self.encoding is not None and bool(self.encoding.biases) and not self.flat

    def bias(self, head: int) -> Expr:
        """The bias of a head, from 1, of a layer that adds one."""
        assert self.encoding is not None
        return self.encoding.head(head if self.encoding.num_heads > 1 else 1)


@dataclass(frozen=True)
class Folder:
    """What a folder says of its model, by its configuration.

    Args:
        shape: its size.
        attention: of each layer.
        trained: the training length in tokens that it names; None if it does not.
        note: what it says beyond the formulas.
        longest: the row that its table of positions ends with; None where there is none.
        no_claim: why nothing is claimed of positions; empty for a causal model.
        checked: whether its family is known here, and held against the library.
        family: the table of its family.
        path: the folder.
        kind: the model's type, or `farfield` for a run of a store.
        values: the content of its configuration, or the record of the run.
    """

    shape: ModelSize
    attention: tuple[Attention, ...]
    trained: int | None = None
    note: str = ""
    longest: int | None = None
    no_claim: str = ""
    checked: bool = True
    family: Mapping[str, Any] = field(default_factory=dict, repr=False)
    path: Path = Path()
    kind: str = ""
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The folder's own name: no path of the machine."""
        return self.path.resolve().name

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The positional encodings, each once, in the order of the layers."""
        given = (a.encoding for a in self.attention if a.encoding is not None)
        return tuple({id(e): e for e in given}.values())


@functools.cache
def families() -> dict[str, dict[str, Any]]:
    """The table of every family by its `model_type`, with what it takes from another one."""
    given = tomllib.loads((files(__package__) / "families.toml").read_text())

    def whole(kind: str) -> dict[str, Any]:
        own = given[kind]
        return (whole(own["like"]) if "like" in own else {}) | own

    return {kind: whole(kind) for kind in given}


def size_of(config: Config, family: Mapping[str, Any]) -> tuple[ModelSize, int | None]:
    """The size of a model, and its training length.

    Raises:
        InputError: a number is missing, or two do not fit each other.
    """
    usual, names = family["size"], NAMES | family.get("keys", {})
    found = {
        name: config.whole(*keys, usual=usual.get(name))
        if (keys := names[name])
        else usual.get(name)
        for name in NAMES
    }
    if "decoder" in family:
        found["layers"] = config.whole(family["decoder"], usual=found["layers"])
    for name in ("layers", "heads", "width", "vocabulary"):
        if found[name] is None:
            raise config.wrong(f"no {names[name][0]}", "a whole number for it")
    heads, width = found["heads"], found["width"]
    keys = found["key_heads"] or heads
    if (one := family.get("one_key")) and config.flag(one["flag"], usual=True):
        several = "unless" in one and config.flag(one["unless"], usual=False)
        keys = keys if several else 1
    named = [config.named(names[name]) if names[name] else name for name in ("heads", "width")]
    if heads % keys:
        raise config.wrong(
            f"{named[0]} {heads} and num_key_value_heads {keys}", "a number that divides the former"
        )
    size = found["head_size"] or width // heads
    cached = 2 * keys * size
    if "latent" in family:
        latent = {k: config.whole(k, usual=v) for k, v in family["latent"].items()}
        size = latent["qk_nope_head_dim"] + latent["qk_rope_head_dim"]
        cached = latent["kv_lora_rank"] + latent["qk_rope_head_dim"]
    elif found["head_size"] is None and width % heads:
        raise config.wrong(
            f"{named[0]} {heads}, which does not divide {named[1]} {width}",
            "a number of heads that does",
        )
    layers, vocabulary = found["layers"], found["vocabulary"]
    return ModelSize(layers, heads, size, width, vocabulary, keys, cached), found["trained"]


# -- which layer does what -----------------------------------------------------------------------


def layers_of(
    config: Config, family: Mapping[str, Any], size: ModelSize, position: str, trained: int | None
) -> tuple[list[Attention], str]:
    """The attention of each layer by its kind, and notes on the rotations.

    Raises:
        InputError: kinds that are not known or not as many as layers; a width is missing.
    """
    said, window = family.get("window", {}), None
    name, flag = said.get("key", "sliding_window"), said.get("flag")
    if "window" in family and (flag is None or config.flag(flag, usual=False)):
        window = config.whole(name, usual=said.get("usual"), null=True)
    turned = _turned(config, family, size.layers)
    kinds = _kinds(config, family, size.layers, window, turned)
    if "full" in said and window is not None:
        kinds = [SLIDING if kind == FULL else kind for kind in kinds]
    if SLIDING in kinds and window is None:
        why = f"no {name}" if config.values.get(name) is None else f"{flag or ''} not true"
        raise config.wrong(f"a layer with 'sliding_attention' and {why}", "a width for it")
    chunk = None
    if CHUNKED in kinds:
        cut = family.get("chunk", {"key": "attention_chunk_size"})
        chunk = config.whole(cut["key"], usual=cut.get("usual"), null=True)
        if chunk is None:
            raise config.wrong(f"'chunked_attention' and no {cut['key']}", "a width for it")
    if family.get("turned") in ("sliding", "sliding if any"):
        every = family["turned"] == "sliding if any" and window is None
        turned = [every or kind == SLIDING for kind in kinds]
    still, note = Attention(encoding("nope")), ""
    far = near = still
    if position == "absolute":
        far = near = Attention(encoding(of_mechanism("learned_absolute").name))
    elif position == "rotation" and "local" in family:
        far, near, note, other = _two_rotations(config, family, size, trained)
        if SLIDING in kinds:
            note = f"in layers that see all, {note}; in the others, {other}"
    elif position == "rotation":
        far, note = rotary(config, size, family, length=trained)
        near = far
    by_kind = {
        FULL: far,
        SLIDING: replace(near, window=window),
        CHUNKED: replace(far, chunk=chunk),
        STATE: Attention(None),
    }

    def of(kind: str, turns: bool) -> Attention:
        found = by_kind[kind]
        if turns or found.encoding is None:
            return found
        return replace(still, window=found.window, chunk=found.chunk)

    return [of(kind, turns) for kind, turns in zip(kinds, turned, strict=True)], note


def _known(kinds: Any) -> bool:
    return all(isinstance(kind, str) and kind in KINDS for kind in kinds)


def _turned(config: Config, family: Mapping[str, Any], layers: int) -> list[bool]:
    said = family.get("turned")
    if not isinstance(said, dict):
        return [True] * layers
    period = config.whole(said["period"], usual=said["usual"])
    given = config.value(said["key"]) or [(k + 1) % period != 0 for k in range(layers)]
    if not isinstance(given, list) or len(given) != layers or any(x not in (0, 1) for x in given):
        raise config.wrong(f"{said['key']} {short(given)}", f"{layers} of 0 and 1")
    return [bool(x) for x in given]


def _kinds(
    config: Config,
    family: Mapping[str, Any],
    layers: int,
    window: int | None,
    turned: Sequence[bool],
) -> list[str]:
    """What each layer does, as a configuration lists it, or as the library derives it."""
    rule = family.get("layers", {"rule": "full_attention"})
    names = family.get("types", ["layer_types"] if "layers" in family else [])
    kinds = config.value(*names)
    kinds = _by_rule(config, rule, layers, window, turned) if kinds is None else kinds
    if not isinstance(kinds, list) or len(kinds) != layers or not _known(kinds):
        said = short(kinds)
        if isinstance(kinds, list):
            unknown = [kind for kind in kinds if not _known([kind])]
            said = f"with {short(unknown[0])}" if unknown else f"of {len(kinds)} layers"
        named = config.named(names or [rule["key"]])
        raise config.wrong(f"{named} {said}", f"{layers} of {', '.join(map(repr, KINDS))}")
    return [KINDS[kind] for kind in kinds]


def _by_rule(
    config: Config,
    rule: Mapping[str, Any],
    layers: int,
    window: int | None,
    turned: Sequence[bool],
) -> Any:
    """The kinds of layers that a configuration does not list, as the library derives them."""
    key: Any = rule.get("key")
    usual: Any = rule.get("usual")
    count = range(layers)
    wide, near = "full_attention", "sliding_attention"
    match rule["rule"]:
        case "every":  # each so-manieth layer is unlike the others
            period = config.whole(key, usual=usual) if key else usual
            at = period - 1
            if "offset" in rule:
                at = config.whole(rule["offset"], usual=rule["first"], least=0)
            last, others = rule.get("last", wide), rule.get("others", near)
            return [last if k % period == at else others for k in count]
        case "turned":
            kinds = [rule.get("turned" if t else "still", wide) for t in turned]
            return [wide if k == near and window is None else k for k in kinds]
        case "after":
            first = config.whole(key, usual=usual, least=0) if key else 0
            return [wide if window is None or k < first else near for k in count]
        case "even before":
            first = config.whole(key, usual=usual, least=0)
            return [wide if window is None or k % 2 or k >= first else near for k in count]
        case "cycle":
            given = config.value(key, usual=usual)
            if not isinstance(given, list) or not given or not _known(given):
                raise config.wrong(f"{key} {short(given)}", "'recurrent' and 'attention'")
            each = itertools.islice(itertools.cycle(given), layers)
            return [near if k == "attention" else k for k in each]
        case "expand":  # [[["global", "local"], 12]]: so many times these
            given, found = config.value(key, usual=usual), list[str]()
            for item in given if isinstance(given, list) else [given]:
                match item:
                    case [[*kinds], int(times)] if 0 <= times * len(kinds) <= layers:
                        found += kinds * times
                    case _:
                        wanted = "lists of kinds, each with a number"
                        raise config.wrong(f"{key} {short(given)}", wanted)
            return found
        case every:
            return [every] * layers


# -- rotations -----------------------------------------------------------------------------------

ORIGINAL = "original_max_position_embeddings"
SCALINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "linear": ("all angles divided by {factor:g}", ("factor",)),
    "dynamic": ("the base grows with rows beyond {original}, factor {factor:g}", ("factor",)),
    "yarn": ("slow angles divided by {factor:g}", ("factor",)),
    "longrope": (
        "each angle divided by a number of its own, another one beyond {original} tokens",
        ("short_factor", "long_factor"),
    ),
    "llama3": (
        "slow angles divided by {factor:g}",
        ("factor", "low_freq_factor", "high_freq_factor", ORIGINAL),
    ),
    "proportional": ("a part of the angles of the whole head turns", ()),
}
"""Every kind of rescaling by its name: its effect, and the further keys that a configuration must
have; `default` is none."""

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
    note = f"{turned} of {size.head_size} dimensions of a head are rotated, base {base:g}"
    kind = given.value("rope_type", "type", usual="default")
    kind = (_OLD | family.get("renamed", {})).get(kind, kind) if isinstance(kind, str) else kind
    if kind == "default":
        return Attention(_rotation(None), (turned, base)), note
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise given.wrong(f"rope_type {short(kind)}", ", ".join(("default", *SCALINGS)))
    effect, needs = SCALINGS[kind]
    if missing := [name for name in needs if given.value(name) is None]:
        raise given.wrong(f"rope_type {kind!r} without {missing[0]}", "that number too")
    original = config.whole(ORIGINAL, usual=family.get("original", length))
    if "original" not in family:
        original = given.whole(ORIGINAL, usual=original)
    factor = given.number("factor", usual=length / original if length and original else 1.0)
    for name in needs if kind == "longrope" else ():
        numbers = given.value(name)
        if not isinstance(numbers, list) or len(numbers) != turned // 2:
            raise given.wrong(f"{name} {short(numbers)}", f"{turned // 2} numbers")
    scale = _logit_factor(kind, given, factor, original)
    said = effect.format(factor=factor, original=original)
    said += "" if scale == 1 else f", logits times {scale:.4g}"
    note += f", rescaled ({kind}: {said})"
    return Attention(_rotation(kind), (turned, base), factor=scale), note


def _two_rotations(
    config: Config, family: Mapping[str, Any], size: ModelSize, trained: int | None
) -> tuple[Attention, Attention, str, str]:
    """Layers that see all rotate with one base, those that slide with another; notes on both."""
    given, local = config.part("rope_parameters"), family["local"]
    wide = given.part("full_attention") if given.values else config.part("rope_scaling")
    theta = config.number("rope_theta", usual=family["theta"])
    other = config.number(local["key"], usual=local["usual"]) if "key" in local else local["usual"]
    plain = config.with_values({})
    far, note = rotary(plain, size, family, wide, theta=theta, length=trained)
    near, close = rotary(plain, size, family, given.part("sliding_attention"), theta=other)
    return far, near, note, close


def _either(config: Config, given: Config, names: tuple[str, str], usual: float) -> float:
    """A number beside the part of the rotation or inside, as the version has it."""
    beside = config.number(*names, usual=usual)
    found = given.number(names[0], usual=beside)
    if config.value(*names) is not None and found != beside:
        raise config.wrong(f"{names[0]} {beside:g} and {found:g}", "one of them")
    return found


def _grown(factor: float, by: float) -> float:
    """What yarn multiplies queries or keys with."""
    return 0.1 * by * math.log(factor) + 1 if factor > 1 else 1.0


def _logit_factor(kind: str, given: Config, factor: float, original: int | None) -> float:
    """What logits are multiplied by: cosines and sines of queries and of keys both are."""
    if kind not in ("yarn", "longrope"):
        return 1.0
    if given.value("attention_factor") is not None:
        return given.number("attention_factor", usual=1.0) ** 2
    if kind == "longrope":
        grows = factor > 1 and original and original > 1
        return 1 + math.log(factor) / math.log(original) if grows and original else 1.0
    one, all_dim = 1.0, 0.0
    if given.value("mscale") and given.value("mscale_all_dim"):
        one, all_dim = (given.number(k, usual=1.0) for k in ("mscale", "mscale_all_dim"))
    return (_grown(factor, one) / _grown(factor, all_dim)) ** 2


@functools.cache
def _rotation(scaled: str | None) -> Encoding:
    """The encoding of a rotation, rescaled or not; the layers of a model share it."""
    plain = encoding(of_mechanism("rotation").name)
    return (
        plain
        if scaled is None
        else replace(
            encoding(of_mechanism("rotation_rescaled").name),
            name=f"{plain.name} ({scaled})",
            title=f"{of_mechanism('rotation').title}, {scaled}",
            source=f"{of_mechanism('rotation').source}, rescaled as {scaled}",
        )
    )


# -- what becomes of the logits ------------------------------------------------------------------


def scale_of(config: Config, family: Mapping[str, Any], size: ModelSize, layer: int) -> float:
    """What q.k is multiplied with in a layer, counted from 0."""
    said, plain = family.get("scale", {}), size.head_size**-0.5
    if "key" in said:
        part = config.part(said["part"]) if "part" in said else config
        number = part.number(said["key"], usual=said.get("usual", plain))
        return float(number ** said.get("power", 1.0))
    if "flag" in said:
        plain = plain if config.flag(said["flag"], usual=True) else 1.0
        by_layer = "by_layer" in said and config.flag(said["by_layer"], usual=False)
        return plain / (layer + 1) if by_layer else plain
    if "yarn" in said:
        given = config.part("rope_scaling", "rope_parameters")
        kind, all_dim = given.value("rope_type", "type"), given.value("mscale_all_dim")
        if kind not in (None, "default") and all_dim:
            grown = given.number("mscale_all_dim", usual=1.0)
            plain *= _grown(given.number("factor", usual=1.0), grown) ** 2
    return float(said.get("usual", plain))


def with_logits(
    config: Config, family: Mapping[str, Any], size: ModelSize, layer: int, a: Attention
) -> Attention:
    """The attention of a layer, counted from 0, with its scale, cap, norms, sink and temper."""
    scale, said = scale_of(config, family, size, layer), family.get("norms", {})
    found: dict[str, Any] = {"scale": scale}
    if "key" in (cap := family.get("cap", {})):
        found["cap"] = config.number(cap["key"], usual=cap["usual"], null=True)
    if "sinks" in family:
        found["sink"] = family["sinks"].format(layer=layer)
    if "temper" in family and a.turned is None:
        t = family["temper"]
        if config.value(t["flag"]) != 0:  # true, or a whole number in older files
            slope, floor = (
                config.number(t[k]["key"], usual=t[k]["usual"]) for k in ("slope", "floor")
            )
            found["temper"] = Temper(slope, floor, t["first"])
    largest = scale * a.factor * size.head_size  # of queries and keys whose entries are within 1
    if "clip" in said and config.value(said["clip"]) is not None:
        most = config.number(said["clip"], usual=1.0)
        why = f"{said['clip']} keeps every entry of a query and a key within {most:g}"
        found |= {"clip": most, "bound": (largest * most**2, why)}
    elif "flag" in said and not config.flag(said["flag"], usual=said.get("usual", False)):
        pass
    elif said.get("unit") and a.turned is not None:
        found["bound"] = (largest, "queries and keys are normalised")
    elif "gains" in said:
        query, key = (said["gains"].format(layer=layer, which=which) for which in "qk")
        over = (size.heads, size.key_heads) if said.get("over") == "heads" else (1, 1)
        found["gains"] = Gains(query, key, scale, said.get("offset", 0.0), over)
    return replace(a, **found)
