"""What a configuration says of positions: each layer's mechanism, window, scale of its logits.

The facts of a family are a table of `families.toml`: names of keys, defaults, the kind of each
layer. This module reads `config.json` by such a table, without torch and without the library that
wrote it. The few families that need more than names have a hook in `biases`. To add a family, add
its table; a test holds it against the library's own classes and its forward pass.
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

from farfield.theory.encodings import Encoding, encoding, of_mechanism, surrogate_of
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

    def surrogate(self) -> Encoding | None:
        """Of a rotation, the additive surrogate of the dimensions that are rotated, at its base
        and not rescaled."""
        if self.turned is None or self.encoding is None:
            return None
        plain = surrogate_of(self.encoding.name) or surrogate_of(of_mechanism("rotation").name)
        assert plain is not None
        return encoding(plain.name, d=self.turned[0], theta=self.turned[1])


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
    latent = {k: config.whole(k, usual=v) for k, v in family.get("latent", {}).items()}
    size = found["head_size"] or (width // heads)
    if latent:
        size = latent["qk_nope_head_dim"] + latent["qk_rope_head_dim"]
    elif found["head_size"] is None and width % heads:
        raise config.wrong(
            f"{named[0]} {heads}, which does not divide {named[1]} {width}",
            "a number of heads that does",
        )
    cached = latent["kv_lora_rank"] + latent["qk_rope_head_dim"] if latent else 2 * keys * size
    layers, vocabulary = found["layers"], found["vocabulary"]
    return ModelSize(layers, heads, size, width, vocabulary, keys, cached), found["trained"]


# -- which layer does what -----------------------------------------------------------------------


def layers_of(
    config: Config, family: Mapping[str, Any], layers: int
) -> list[tuple[str, bool, int | None, int | None]]:
    """What a configuration says of each layer: its kind, whether it rotates, its window, its chunk.

    Raises:
        InputError: kinds that are not known or not as many as layers; a width is missing.
    """
    said = family.get("window")
    window = None
    if said is not None:
        name = said.get("key", "sliding_window")
        unused = "flag" in said and not config.flag(said["flag"], usual=False)
        null = name in config.values and config.values[name] is None
        window = None if unused or null else config.whole(name, usual=said.get("usual"))
    turned = _turned(config, family, layers)
    names = family.get("types", "layer_types" if "layers" in family else False)
    given = config.value(*([names] if isinstance(names, str) else names or ()))
    rule = family.get("layers", {"rule": "full_attention"})
    kinds = _by_rule(config, rule, layers, window, turned) if given is None else given
    if not isinstance(kinds, list) or len(kinds) != layers or not _known(kinds):
        named = config.named((names,) if isinstance(names, str) else names or (rule["key"],))
        said = short(kinds)
        if isinstance(kinds, list):
            unknown = [kind for kind in kinds if not _known([kind])]
            said = f"with {short(unknown[0])}" if unknown else f"of {len(kinds)} layers"
        raise config.wrong(f"{named} {said}", f"{layers} of {', '.join(map(repr, KINDS))}")
    found = [KINDS[kind] for kind in kinds]
    if said is not None and said.get("full") and window is not None:
        found = [SLIDING if kind == FULL else kind for kind in found]
    if SLIDING in found and window is None:
        name = "sliding_window" if said is None else said.get("key", "sliding_window")
        flag = "" if said is None else said.get("flag", "")
        why = f"{flag} not true" if config.values.get(name) is not None else f"no {name}"
        raise config.wrong(f"a layer with 'sliding_attention' and {why}", "a width for it")
    chunk = None
    if CHUNKED in found:
        usual = family.get("chunk", {"key": "attention_chunk_size"})
        null = usual["key"] in config.values and config.values[usual["key"]] is None
        chunk = None if null else config.whole(usual["key"], usual=usual.get("usual"))
        if chunk is None:
            raise config.wrong(f"'chunked_attention' and no {usual['key']}", "a width for it")
    if family.get("turned") in ("sliding", "sliding if any"):
        every = family["turned"] == "sliding if any" and window is None
        turned = [every or kind == SLIDING for kind in found]
    return [
        (kind, turns, window if kind == SLIDING else None, chunk if kind == CHUNKED else None)
        for kind, turns in zip(found, turned, strict=True)
    ]


def _known(kinds: list[Any]) -> bool:
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


def _by_rule(
    config: Config,
    rule: Mapping[str, Any],
    layers: int,
    window: int | None,
    turned: Sequence[bool],
) -> Any:
    """The kinds of layers that a configuration does not list, as the library derives them."""
    name, count = rule["rule"], range(layers)
    usual: Any = rule.get("usual")
    if name == "every":  # each so-manieth layer is unlike the others
        period = config.whole(rule["key"], usual=usual) if "key" in rule else usual
        others, last = rule.get("others", "sliding_attention"), rule.get("last", "full_attention")
        return [others if (k + 1) % period else last for k in count]
    if name == "turned":
        kinds = {t: rule.get("turned" if t else "still", "full_attention") for t in (True, False)}
        if window is None:
            kinds = {t: k.replace("sliding", "full") for t, k in kinds.items()}
        return [kinds[t] for t in turned]
    if name == "after":
        first = config.whole(rule["key"], usual=usual, least=0)
        slides = [window is not None and k >= first for k in count]
        return ["sliding_attention" if s else "full_attention" for s in slides]
    if name == "sliding":
        return ["full_attention" if window is None else "sliding_attention"] * layers
    if name == "offset":
        period, first = (
            config.whole(key, usual=default, least=least)
            for key, default, least in ((rule["key"], usual, 1), (rule["offset"], rule["first"], 0))
        )
        return ["attention" if k % period == first else "mamba" for k in count]
    if name == "cycle":
        given = config.value(rule["key"], usual=usual)
        if not isinstance(given, list) or not given or not _known(given):
            raise config.wrong(f"{rule['key']} {short(given)}", "'recurrent' and 'attention'")
        each = itertools.islice(itertools.cycle(given), layers)
        return ["sliding_attention" if k == "attention" else k for k in each]
    if name == "expand":
        return _expanded(config, rule["key"], usual, layers)
    return [name] * layers


def _expanded(config: Config, key: str, usual: Any, layers: int) -> list[str]:
    """`[[["global", "local"], 12]]`: so many times these."""
    given, found = config.value(key, usual=usual), list[str]()
    for item in given if isinstance(given, list) else [given]:
        match item:
            case [[*kinds], int(times)] if 0 <= times * len(kinds) <= layers:
                found += kinds * times
            case _:
                raise config.wrong(f"{key} {short(given)}", "lists of kinds, each with a number")
    return found


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
    if said.get("yarn"):
        given = config.part("rope_scaling", "rope_parameters")
        kind, all_dim = given.value("rope_type", "type"), given.value("mscale_all_dim")
        if kind not in (None, "default") and all_dim:
            grown = given.number("mscale_all_dim", usual=1.0)
            factor = given.number("factor", usual=1.0)
            return plain * (0.1 * grown * math.log(factor) + 1) ** 2 if factor > 1 else plain
    return float(said.get("usual", plain))


def with_logits(
    config: Config, family: Mapping[str, Any], size: ModelSize, layer: int, a: Attention
) -> Attention:
    """The attention of a layer, counted from 0, with its scale, cap, norms, sink and temper."""
    scale, said = scale_of(config, family, size, layer), family.get("norms", {})
    cap = None
    if "key" in (capped := family.get("cap", {})):
        null = capped["key"] in config.values and config.values[capped["key"]] is None
        cap = None if null else config.number(capped["key"], usual=capped["usual"])
    a = replace(a, scale=scale, cap=cap)
    if "sinks" in family:
        a = replace(a, sink=family["sinks"].format(layer=layer))
    plain = a.turned is None
    if "temper" in family and plain:
        t = family["temper"]
        if config.value(t["flag"]) != 0:  # true, or a whole number in older files
            slope, floor = (
                config.number(t[k]["key"], usual=t[k]["usual"]) for k in ("slope", "floor")
            )
            a = replace(a, temper=Temper(slope, floor, t["first"]))
    if "clip" in said and config.value(said["clip"]) is not None:
        most = config.number(said["clip"], usual=1.0)
        why = f"{said['clip']} keeps every entry of a query and a key within {most:g}"
        return replace(a, clip=most, bound=(scale * a.factor * size.head_size * most**2, why))
    if "flag" in said and not config.flag(said["flag"], usual=said.get("usual", False)):
        return a
    if said.get("unit") and not plain:
        return replace(
            a, bound=(scale * a.factor * size.head_size, "queries and keys are normalised")
        )
    if "gains" in said:
        query, key = (said["gains"].format(layer=layer, which=which) for which in "qk")
        over = (size.heads, size.key_heads) if said.get("over") == "heads" else (1, 1)
        return replace(a, gains=Gains(query, key, scale, said.get("offset", 0.0), over))
    return a
