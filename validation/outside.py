"""Models from outside: folders of the Hugging Face layout, and runs of a store, read alike.

A folder is described from its configuration alone (`describe`), then opened (`load`) as a model
with the interface of `model.Transformer`, so that everything that measures ours measures it too.
The layers stay the library's; only the attention between projections and output goes through a
path of `attention`, with the encoding's exact bias, in memory linear in the length. Nothing is
downloaded, unpickled, or run from the folder: weights are safetensors, architectures the library's
own, loaded in float32 whatever their type on disk.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import sympy
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from farfield.theory.encodings import (
    Encoding,
    Parameter,
    alibi_slope,
    encoding,
    t5_bucket_starts,
)
from farfield.theory.formula.given import as_expression
from farfield.theory.results import InputError
from farfield.validation import configuration
from farfield.validation.attention import Path as AttentionPath
from farfield.validation.attention import fused
from farfield.validation.checkpoints import require_tensors
from farfield.validation.configuration import CAUSAL, Preset, Visibility
from farfield.validation.corpus import BYTES, Corpus
from farfield.validation.memory import available
from farfield.validation.model import Transformer
from farfield.validation.positional import FixedBias
from farfield.validation.runs import CorruptRun, read_json

CAUSAL_FAMILIES = ("bloom", "falcon", "gpt_neox", "llama", "mpt")
TABLE_FAMILIES = ("mt5", "t5", "umt5")
_RUN = "farfield"
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_TEXT_BYTES = 2 << 20  # of each part of a text are tokenised
_FLOATS = 60  # a token takes this many times the width while the gradient of a layer is made
_ROWS = 32  # query rows a head whose attention is looked at


@dataclass(frozen=True)
class Folder:
    """What a folder says of its model, before its weights are loaded.

    Args:
        path: the folder.
        family: one of `CAUSAL_FAMILIES` or `TABLE_FAMILIES`, or `farfield` for a run of a store.
        layers, heads, head_size, width, vocabulary: of the model (the decoder's, if there are two).
        trained: the training length in tokens that the configuration names; None if it does not.
        encodings: the positional encoding with its values, one for all layers or one a layer.
        surrogate: for rotations, the additive surrogate of the rotated dimensions.
        note: what the configuration says beyond the formula.
        settings: the configuration object of the library, or the record of the run.
    """

    path: Path
    family: str
    layers: int
    heads: int
    head_size: int
    width: int
    vocabulary: int
    trained: int | None
    encodings: tuple[Encoding, ...]
    surrogate: Encoding | None = None
    note: str = ""
    settings: Any = dataclasses.field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The folder's own name: no path of the machine."""
        return self.path.resolve().name


# -- describing -----------------------------------------------------------------------------------

_ACCEPTED = (
    "a folder with config.json and *.safetensors, as the library transformers writes it, or a "
    "finished run of a store"
)


def describe(folder: str | os.PathLike[str]) -> Folder:
    """What a folder says of its model; no weight is read but those that are the encoding.

    Raises:
        InputError: the folder is missing, is no model, or has an architecture that is not known
            here; the library is not installed; learned biases cannot be read.
    """
    path = Path(folder).expanduser()
    given = f"model {str(folder)!r}"
    if not path.is_dir():
        wrong = "is no folder" if path.exists() else "does not exist"
        raise InputError(f"{given} {wrong}; accepted: {_ACCEPTED}")
    if (path / "training.json").is_file():
        return _described_run(path)
    try:
        text = (path / "config.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{given} has no readable config.json; accepted: {_ACCEPTED}") from None
    try:
        values = json.loads(text)
    except ValueError as error:
        raise InputError(
            f"{given}: config.json is not valid JSON: {_line(error)}; accepted: {_ACCEPTED}"
        ) from None
    try:
        kind = values["model_type"]
    except (KeyError, TypeError):
        raise InputError(
            f"{given}: config.json names no model_type; accepted: {_ACCEPTED}"
        ) from None
    if kind not in CAUSAL_FAMILIES + TABLE_FAMILIES:
        known = ", ".join(sorted(CAUSAL_FAMILIES + TABLE_FAMILIES))
        raise InputError(
            f"{given}: the architecture {str(kind)[:40]!r} is not known here; accepted: {known}"
        )
    library = _library()
    try:
        settings = library.CONFIG_MAPPING[kind].from_dict(values)
        return _described(path, kind, settings, values)
    except InputError:
        raise
    except Exception as error:  # whatever the library's checks raise
        raise InputError(f"{given}: config.json is not valid: {_line(error)}") from None


def _library() -> Any:
    try:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        import transformers
    except ImportError:
        raise InputError(
            "a model from outside needs the library transformers, which is not installed; install "
            "it with pip install 'farfield[hf]'"
        ) from None
    return transformers


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__


def _described(path: Path, kind: str, settings: Any, values: dict[str, Any]) -> Folder:
    heads, layers = settings.num_attention_heads, settings.num_hidden_layers
    own_size = kind in TABLE_FAMILIES or getattr(settings, "head_dim", None)
    if heads < 1 or (not own_size and settings.hidden_size % heads):
        raise InputError(
            f"model {path.name!r}: config.json has {heads} heads for a width of "
            f"{settings.hidden_size}; accepted: a number of heads that divides the width"
        )
    size = settings.hidden_size // heads
    trained = getattr(settings, "max_position_embeddings", None)
    note, surrogate = "", None
    found: tuple[Encoding, ...]
    match kind:
        case "bloom":
            found = (encoding("alibi", heads=heads),)
            trained = values.get("seq_length")
            note = (
                "run in 16 bits, the library rounds slope times position to that type; the formula "
                "is without rounding"
            )
        case "mpt":
            found, note = (_mpt(settings.attn_config, heads),), _mpt_note(settings.attn_config)
            trained = settings.max_seq_len
        case "falcon" if settings.alibi:
            slopes = [alibi_slope(h, heads) / sympy.sqrt(size) for h in range(1, heads + 1)]
            found = (_alibi(slopes, "Falcon: ALiBi divided by sqrt(head size), as the logits are"),)
            note = (
                "the library rounds this bias to bfloat16 at every position, so that beyond 256 "
                "tokens it is no function of the distance; the formula is without rounding"
            )
        case "t5" | "mt5" | "umt5":
            layers, size, trained = settings.num_decoder_layers, settings.d_kv, None
            found = _tables(path, settings, layers if kind == "umt5" else 1)
            note = "self-attention of the decoder; its logits are not divided by sqrt(head size)"
        case _:
            size = getattr(settings, "head_dim", None) or size
            found = (encoding("rope"),)
            rope = settings.rope_parameters
            turned = int(size * rope.get("partial_rotary_factor", 1.0))
            surrogate = encoding("rope_surrogate", d=turned, theta=rope["rope_theta"])
            note = f"{turned} of {size} dimensions of a head are rotated"
            if rope.get("rope_type", "default") != "default":
                note += f", rescaled ({rope['rope_type']}); the surrogate is not"
    return Folder(
        path, kind, layers, heads, size, settings.hidden_size, settings.vocab_size, trained,
        found, surrogate, note, settings,
    )  # fmt: skip


def _alibi(slopes: list[Any], source: str) -> Encoding:
    return dataclasses.replace(encoding("alibi", m=slopes), source=source)


def _mpt(attention: Any, heads: int) -> Encoding:
    """The slopes 2^-(max k/P), P the next power of two, of even k before odd k."""
    whole = 1 << (heads - 1).bit_length()
    order = (
        range(1, heads + 1) if whole == heads else [*range(2, whole + 1, 2), *range(1, whole, 2)]
    )
    most = attention.alibi_bias_max
    slopes = [sympy.Integer(2) ** sympy.Rational(-most * k, whole) for k in order][:heads]
    return _alibi(slopes, f"MPT: ALiBi with exponents up to {most}")


def _mpt_note(attention: Any) -> str:
    for name, usual in (("alibi", True), ("qk_ln", False), ("prefix_lm", False)):
        if getattr(attention, name) != usual:
            raise InputError(
                f"an MPT model with {name}={getattr(attention, name)} is not known here; accepted: "
                f"{name}={usual}"
            )
    if attention.alibi_bias_max == 8:
        return ""
    return (
        f"alibi_bias_max is {attention.alibi_bias_max}, and so is the formula; the library "
        "transformers computes with 8 whatever it is"
    )


def _tables(path: Path, settings: Any, count: int) -> tuple[Encoding, ...]:
    starts = t5_bucket_starts(
        settings.relative_attention_num_buckets, settings.relative_attention_max_distance
    )
    bucket = np.searchsorted(starts, np.arange(starts[-1] + 1), side="right") - 1
    stored, found = _headers(path), []
    for layer in range(count):
        name = f"decoder.block.{layer}.layer.0.SelfAttention.relative_attention_bias.weight"
        if name not in stored:
            raise InputError(
                f"model {path.name!r} lacks the tensor {name!r}; accepted: all of them"
            )
        with safetensors.safe_open(stored[name][0], framework="pt") as file:
            weight = file.get_tensor(name).double().numpy()
        if weight.shape != (len(starts), settings.num_heads) or not np.isfinite(weight).all():
            raise InputError(
                f"model {path.name!r}: the table {name!r} has shape {weight.shape} or is not "
                f"finite; accepted: {len(starts)} finite values a head"
            )
        source = f"table of {len(starts)} learned values a head, read from the weights"
        made = encoding(values=weight[bucket].T)
        found.append(dataclasses.replace(made, name="t5 table", source=source))
    return tuple(found)


def _headers(path: Path) -> dict[str, tuple[Path, tuple[int, ...]]]:
    """Each tensor of the folder's safetensors with its file and shape.

    Raises:
        InputError: there are none, or only pickled ones; a file is missing or cannot be read.
    """
    files = sorted(path.glob("*.safetensors"))
    index = path / "model.safetensors.index.json"
    if index.is_file():
        try:
            named = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"model {path.name!r}: {index.name} cannot be read") from None
        missing = sorted(named - {f.name for f in files})
        if missing:
            raise InputError(
                f"model {path.name!r} lacks the file {missing[0]!r} that {index.name} names; "
                "accepted: all of them"
            )
    if not files:
        pickled = [p.name for pattern in _PICKLED for p in path.glob(pattern)]
        wrong = (
            f"has pickled weights ({pickled[0]}), which may run code when they are read"
            if pickled
            else "has no weights"
        )
        raise InputError(f"model {path.name!r} {wrong}; accepted: *.safetensors")
    found: dict[str, tuple[Path, tuple[int, ...]]] = {}
    for place in files:
        try:
            with safetensors.safe_open(place, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118
                    found[name] = (place, tuple(file.get_slice(name).get_shape()))
        except (OSError, safetensors.SafetensorError):
            raise InputError(
                f"model {path.name!r}: {place.name} is no whole safetensors file"
            ) from None
    return found


# -- runs of a store ------------------------------------------------------------------------------

_BY_MECHANISM = {
    "rotation": "rope", "rotation_decay": "xpos", "sinusoidal": "sinusoidal",
    "learned_absolute": "learned",
}  # fmt: skip


def _described_run(path: Path) -> Folder:
    try:
        record = read_json(path / "training.json")
        shape = _preset(record)
        found = _learned(_encoding(record), record["learned"], shape.heads)
    except CorruptRun as error:
        raise InputError(f"run {path.name!r} cannot be read: {error}") from None
    except (KeyError, TypeError):
        raise InputError(f"run {path.name!r} was written by another version") from None
    size = shape.width // shape.heads
    surrogate = encoding("rope_surrogate", d=size) if found.mechanism == "rotation" else None
    if found.mechanism == "rotation_decay":
        surrogate = encoding("xpos_surrogate", d=size)
    return Folder(
        path, _RUN, shape.layers, shape.heads, size, shape.width,
        record["configuration"].get("vocabulary", BYTES), shape.length, (found,), surrogate, "",
        record,
    )  # fmt: skip


def _preset(record: dict[str, Any]) -> Preset:
    given = dict(record["configuration"]["preset"])
    if "betas" in given:
        given["betas"] = tuple(given["betas"])
    return Preset(name="run", **given)


def _encoding(record: dict[str, Any]) -> Encoding:
    """The encoding of a run as it was trained, its learned parameters free."""
    described = record["configuration"]["encoding"]
    name = record.get("labels", {}).get("encoding", "run")
    if described["mechanism"] != "bias":
        return encoding(_BY_MECHANISM[described["mechanism"]])
    parameters = tuple(
        Parameter(**{**p, "init": tuple(p["init"]), "clamp": tuple(p["clamp"])})
        for p in described["parameters"]
    )
    domains = {p.name: p.domain for p in parameters}
    if described["heads"][0].startswith("table["):
        candidates = _bucketed(described, record.get("labels", {}).get("dialect"))
    else:
        heads = tuple(
            as_expression(text, {k: d for k, d in domains.items() if re.search(rf"\b{k}\b", text)})
            for text in described["heads"]
        )
        candidates = iter((Encoding(name, heads[0], heads, parameters, source="a trained run"),))
    for made in candidates:
        if configuration.describe(made)["sha256"] == described["sha256"]:
            return made
    raise InputError(f"a run with the bias {described['heads'][0][:40]!r} cannot be read back")


def _bucketed(described: dict[str, Any], dialect: str | None) -> Iterator[Encoding]:
    """The T5 encodings that print as this one does: its text names the length of the table."""
    count = len(described["parameters"])
    length = int(re.findall(r"\d+", described["heads"][0])[0])
    for most in range(count // 2 + 1, 4 * length + 2 if count else 0):
        if count % 2 == 0 and t5_bucket_starts(count, most)[-1] == length:
            yield encoding("t5", dialect=dialect, buckets=count, max_distance=most)


def _learned(made: Encoding, values: dict[str, list[float]], heads: int) -> Encoding:
    """The encoding with the learned values of each head in place of its parameters, exactly."""
    if not made.free:
        return made
    biases = []
    for h in range(heads):
        own = {p.symbol: sympy.Rational(*values[p.name][h].as_integer_ratio()) for p in made.free}
        biases.append(made.head(h + 1 if made.num_heads > 1 else 1).xreplace(own))
    return dataclasses.replace(made, biases=tuple(biases), source="values learned in a run")


# -- texts ----------------------------------------------------------------------------------------


def tokens_of(folder: Folder, text: Corpus) -> Corpus:
    """A text in the tokens of a model; of each part at most 2 MiB are read.

    A folder with tokenizer.json is read by the library tokenizers; one without must have a
    vocabulary of 256, and takes bytes.

    Raises:
        InputError: the folder has no tokenizer, or one that does not fit the model.
    """
    if text.vocabulary == folder.vocabulary:
        return text
    place = folder.path / "tokenizer.json"
    if folder.family == _RUN or not place.is_file() or text.unit != "byte":
        raise InputError(
            f"model {folder.name!r} has {folder.vocabulary} tokens, {text.source} has "
            f"{text.vocabulary}; accepted: a text of bytes for a folder with tokenizer.json, or "
            "the tokens it was trained on"
        )
    import tokenizers

    try:
        coder = tokenizers.Tokenizer.from_file(str(place))
    except Exception as error:  # the library raises Exception itself
        raise InputError(f"model {folder.name!r}: tokenizer.json: {_line(error)}") from None
    parts = []
    for part in (text.train, text.held_out):
        words = part[:_TEXT_BYTES].tobytes().decode(errors="replace")
        parts.append(np.array(coder.encode(words, add_special_tokens=False).ids, dtype=np.uint32))
    largest = max((int(p.max()) for p in parts if len(p)), default=0)
    if largest >= folder.vocabulary:
        raise InputError(
            f"model {folder.name!r}: tokenizer.json gives token {largest}, the model has "
            f"{folder.vocabulary}; accepted: the tokenizer of the model"
        )
    read = min(len(text.held_out), _TEXT_BYTES)
    return Corpus(
        f"{text.source}, in tokens of {folder.name}", parts[0], parts[1], text.files, text.split,
        folder.vocabulary, read / max(1, len(parts[1])),
    )  # fmt: skip


# -- loading --------------------------------------------------------------------------------------


def load(folder: Folder, *, tokens: int = 1024) -> Transformer | OutsideModel:
    """The model of a folder in float32, in evaluation mode, on the CPU.

    Args:
        folder: from `describe`.
        tokens: the longest segment it will be given; enters the estimate of the memory.

    Raises:
        InputError: weights are pickled, missing, misshapen or damaged; the architecture is no
            causal language model; the memory is too small for it.
    """
    if folder.family == _RUN:
        return _loaded_run(folder)
    if folder.family not in CAUSAL_FAMILIES:
        raise InputError(
            f"model {folder.name!r} ({folder.family}) is no causal language model, it can only be "
            f"audited; accepted: {', '.join(CAUSAL_FAMILIES)}"
        )
    numbers = sum(math.prod(shape) for _, shape in _headers(folder.path).values())
    activations = max(
        4 * tokens * folder.width * (_FLOATS + folder.layers), 80 * tokens * folder.heads * _ROWS
    )
    wanted, free = 4 * numbers + activations, available(torch.device("cpu"))
    if free is not None and wanted > free:
        raise InputError(
            f"model {folder.name!r} takes about {wanted >> 20:,} MiB in float32 with segments of "
            f"{tokens} tokens, {max(0, free) >> 20:,} MiB are free; accepted: a smaller model, "
            "or shorter segments"
        )
    library = _library()
    with _quiet(library):
        try:
            network, report = library.AutoModelForCausalLM.from_pretrained(
                folder.path, config=folder.settings, local_files_only=True, use_safetensors=True,
                trust_remote_code=False, dtype=torch.float32, output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are reported, and refused below
            )  # fmt: skip
        except Exception as error:  # whatever the library raises: the user wants one line
            raise InputError(f"model {folder.name!r} cannot be loaded: {_line(error)}") from None
    for names, wrong in (("missing_keys", "lacks"), ("mismatched_keys", "has misshapen")):
        found = sorted(
            name if isinstance(name, str) else f"{name[0]} of shape {list(name[1])}"
            for name in report.get(names) or ()
        )
        if found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            raise InputError(f"model {folder.name!r} {wrong} tensor {found[0]!r}{more}")
    return OutsideModel(folder, network)


@contextlib.contextmanager
def _quiet(library: Any) -> Iterator[None]:
    """No progress bars and no reports: what matters is raised."""
    logging = library.utils.logging
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


def _loaded_run(folder: Folder) -> Transformer:
    record = folder.settings
    content = folder.path / "weights.safetensors"
    try:
        weights = safetensors.torch.load(content.read_bytes())
        model = Transformer(_encoding(record), _preset(record), folder.vocabulary)
        require_tensors(model, weights, f"run {folder.name!r}")
    except (OSError, safetensors.SafetensorError):
        raise InputError(f"run {folder.name!r} has no readable weights.safetensors") from None
    except CorruptRun as error:
        raise InputError(str(error)) from None
    model.load_state_dict(weights)
    return model.eval()


class OutsideModel:
    """A causal model of the library with the interface of `model.Transformer`.

    Its attention layers hand their queries, keys and values to a path; norms, projections, MLPs
    and the order of the residuals stay the library's. While a gradient is taken, the activations
    within a layer are computed again instead of kept.
    """

    def __init__(self, folder: Folder, network: nn.Module) -> None:
        self.folder, self.length = folder, folder.trained
        self.network = network.eval().requires_grad_(False)
        (given,) = folder.encodings
        self.bias = FixedBias(given) if given.biases else None
        self.now: tuple[Tensor | None, Visibility, AttentionPath] = (None, CAUSAL, fused)
        body, blocks, attention = _PLACES[folder.family]
        self.body = getattr(network, body)
        self.blocks = list(getattr(self.body, blocks))
        for block in self.blocks:
            inner = getattr(block, attention)
            if folder.family in _FORWARDS:
                inner.forward = functools.partial(_FORWARDS[folder.family], inner, self.attend)
            else:
                inner.attend = self.attend
            block.forward = functools.partial(self._sparing, block.forward)
        if folder.family not in _FORWARDS:
            _library().AttentionInterface.register(_RUN, _through_path)
        network.config._attn_implementation = _RUN  # unknown to the library's masks: it makes none

    def _sparing(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A layer whose activations are made again in the backward pass, as they were made."""
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        state = self.now

        def again(*args: Any, **kwargs: Any) -> Any:
            self.now = state
            return forward(*args, **kwargs)

        return checkpoint(again, *args, use_reentrant=False, preserve_rng_state=False, **kwargs)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Attention of one layer by the path in force, shapes (batch, heads, length, size)."""
        bias, visible, path = self.now
        size, groups = query.shape[-1], query.shape[1] // key.shape[1]
        if groups > 1:  # several heads share a key
            key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
        if not math.isclose(scale, 1 / math.sqrt(size), rel_tol=1e-6):
            query = query * (scale * math.sqrt(size))
        return path(query, key, value, bias, visible)

    def embed(self, tokens: Tensor) -> Tensor:
        """The input embedding of tokens, shape (batch, length, width)."""
        embedded: Tensor = self.network.get_input_embeddings()(tokens)
        return embedded

    def hidden(
        self, embedded: Tensor, visible: Visibility = CAUSAL, path: AttentionPath = fused
    ) -> Tensor:
        """The normalised last residual, shape (batch, length, width), from input embeddings."""
        table = self.bias_table(embedded.shape[1])
        bias = None if table is None else table.to(embedded.device, torch.float32)
        self.now = (bias, visible, path)
        # MPT insists on a mask; one of four dimensions is taken as it is
        mask = {"attention_mask": embedded.new_zeros(1, 1, 1, 1)} if self.is_mpt else {}
        out: Tensor = self.body(inputs_embeds=embedded, use_cache=False, **mask).last_hidden_state
        return out

    @property
    def is_mpt(self) -> bool:
        """Whether the model is an MPT."""
        return self.folder.family == "mpt"

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token, shape (..., vocabulary), from the last residual."""
        scores: Tensor = self.network.get_output_embeddings()(hidden)
        return scores

    def bias_table(self, length: int) -> Tensor | None:
        """The bias at distances 0 .. length - 1 in float64, shape (heads or 1, length)."""
        return None if self.bias is None else self.bias(length)

    def parameters(self) -> Iterator[nn.Parameter]:
        """The weights; none asks for a gradient."""
        return self.network.parameters()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.network.parameters()).device


# -- the attention layers of the library ----------------------------------------------------------

_PLACES = {  # the body of the model, its layers, and their attention
    "bloom": ("transformer", "h", "self_attention"),
    "falcon": ("transformer", "h", "self_attention"),
    "gpt_neox": ("gpt_neox", "layers", "attention"),
    "llama": ("model", "layers", "self_attn"),
    "mpt": ("transformer", "blocks", "attn"),
}


def _through_path(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, scaling: float, **_: Any
) -> tuple[Tensor, None]:
    """The library's own hook for attention: rotated queries and keys come in."""
    return module.attend(query, key, value, scaling).transpose(1, 2), None


def _bloom(
    module: Any, attend: Callable[..., Tensor], hidden: Tensor, residual: Tensor, **_: Any
) -> tuple[Tensor, None]:
    query, key, value = module._reshape(module.query_key_value(hidden))
    attended = attend(query, key, value, module.inv_norm_factor)
    return module.dense(attended.transpose(1, 2).flatten(2)) + residual, None


def _mpt_forward(
    module: Any, attend: Callable[..., Tensor], hidden: Tensor, **_: Any
) -> tuple[Tensor, None]:
    mixed = module.Wqkv(hidden)
    if module.clip_qkv:
        mixed = mixed.clamp(-module.clip_qkv, module.clip_qkv)
    query, key, value = (x.unflatten(-1, (module.n_heads, -1)).transpose(1, 2)
                         for x in mixed.chunk(3, -1))  # fmt: skip
    attended = attend(query, key, value, module.softmax_scale)
    return module.out_proj(attended.transpose(1, 2).flatten(2)), None


def _falcon(
    module: Any, attend: Callable[..., Tensor], hidden: Tensor, alibi: Any = None,
    position_embeddings: Any = None, **_: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    from transformers.models.falcon.modeling_falcon import apply_rotary_pos_emb

    parts = module._split_heads(module.query_key_value(hidden))
    query, key, value = (x.transpose(1, 2) for x in parts)
    if alibi is None:
        query, key = apply_rotary_pos_emb(query, key, *position_embeddings)
    attended = attend(query, key, value, module.inv_norm_factor)
    return module.dense(attended.transpose(1, 2).flatten(2)), None


_FORWARDS: dict[str, Callable[..., Any]] = {
    "bloom": _bloom, "falcon": _falcon, "mpt": _mpt_forward
}  # fmt: skip
