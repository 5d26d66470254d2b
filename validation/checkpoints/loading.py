"""Models from outside, opened: the same interface as `harness.model.Transformer`.

The layers stay the library's. Only the attention between projections and output goes through a
path of `harness.attention`, with the encoding's exact bias, in memory linear in the length. Nothing
is downloaded, unpickled, or run from the folder: weights are safetensors, architectures the
library's own, loaded in float32 whatever their type on disk.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from farfield.theory.answers.answer import InputError
from farfield.validation.checkpoints.configured import RUN, Folder
from farfield.validation.checkpoints.guarded import headers, opened, require_plain, short
from farfield.validation.checkpoints.run import encoding_of, preset_of
from farfield.validation.harness.attention import PLAIN, LogitTransform, fused
from farfield.validation.harness.attention import Path as AttentionPath
from farfield.validation.harness.mechanism import CAUSAL, Visibility
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.positional import FixedBias, transformer
from farfield.validation.harness.training import require_tensors
from farfield.validation.json_files import CorruptFile
from farfield.validation.optional import library

Attend = Callable[[Tensor, Tensor, Tensor, float], Tensor]
"""Called as `attend(query, key, value, scale)`, shapes (batch, heads, length, size)."""

_FLOATS = 60  # a token takes this many times the width while the gradient of a layer is made
_ROWS = 32  # query rows a head whose attention is looked at


def load(folder: Folder, *, tokens: int = 1024) -> Transformer | OutsideModel:
    """The model of a folder in float32, in evaluation mode, on the CPU.

    Args:
        folder: from `folder.describe`.
        tokens: the longest segment it will be given; enters the estimate of the memory.

    Raises:
        InputError: weights are pickled, missing, misshapen, damaged or not finite; the architecture
            is no causal language model, or not one of the library; the memory is too small for it.
    """
    if folder.kind == RUN:
        return _loaded_run(folder)
    require_plain(folder.path)
    transformers = _library()
    causal = folder.family.get("measured", True) and not (folder.checked and folder.no_claim)
    if not causal or folder.kind not in transformers.CONFIG_MAPPING:
        why = "no architecture of the library" if causal else "no causal language model"
        raise InputError(
            f"model {folder.name!r} ({folder.kind}) is {why}, it can only be audited; accepted: "
            "causal language models of the library transformers"
        )
    if folder.values.get("quantization_config") is not None:
        raise InputError(
            f"model {folder.name!r}: config.json has quantization_config; accepted: weights in "
            "floating point"
        )
    with _quiet(transformers):
        settings, built = _configured(folder, transformers)
        _require_memory(folder, tokens, built)
        network, report = _from_library(
            folder,
            lambda: transformers.AutoModelForCausalLM.from_pretrained(
                folder.path,
                config=settings,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are reported, and refused below
            ),
        )
        for names, wrong in (("missing_keys", "lacks"), ("mismatched_keys", "has misshapen")):
            found = sorted(
                name if isinstance(name, str) else f"{name[0]} of shape {list(name[1])}"
                for name in report.get(names) or ()
            )
            if found:
                more = f" and {len(found) - 1} more" if len(found) > 1 else ""
                raise InputError(
                    f"model {folder.name!r} {wrong} tensor {found[0]!r}{more}; accepted: weights "
                    "that fit config.json"
                )
        _require_finite(folder, network)
        _from_library(folder, lambda: network.eval()(torch.zeros(1, 2, dtype=torch.long)))
    return OutsideModel(folder, network)


def _require_finite(folder: Folder, network: nn.Module) -> None:
    """Raise InputError, which names the tensor, where a weight is no finite number in float32."""
    for name, weight in network.named_parameters():
        if not weight.isfinite().all():
            raise InputError(
                f"model {folder.name!r}: the tensor {name!r} has numbers that are not finite; "
                "accepted: finite weights"
            )


_OWN = {
    *("architectures", "auto_map", "transformers_version", "id2label", "label2id", "num_labels"),
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("dtype", "torch_dtype", "use_cache", "return_dict", "torchscript"),
    *("output_attentions", "output_hidden_states"),
}
"""Keys of a configuration that say how to run a model: that is decided here."""


def _configured(folder: Folder, transformers: ModuleType) -> tuple[Any, nn.Module]:
    """The library's configuration of a folder, and its model without weights.

    Raises:
        InputError: the library refuses a key; the error names it.
    """

    def stripped(values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            k: stripped(v) if isinstance(v, dict) else v for k, v in values.items() if k not in _OWN
        }

    def made(values: dict[str, Any]) -> tuple[Any, nn.Module]:
        settings = transformers.CONFIG_MAPPING[folder.kind].from_dict(dict(values))
        with torch.device("meta"):
            return settings, transformers.AutoModelForCausalLM.from_config(settings)

    def accepted(values: dict[str, Any]) -> bool:
        try:
            made(values)
        except Exception:  # whatever the library raises
            return False
        return True

    values = stripped(folder.values)
    try:
        return made(values)
    except ImportError as error:
        why = " ".join(str(error).split())[:90]
        raise InputError(
            f"model {folder.name!r} takes a package that is not installed ({why}); accepted: a "
            "model that transformers runs alone"
        ) from None
    except Exception:  # whatever the library raises: the user wants the key
        others = ((k, {j: v for j, v in values.items() if j != k}) for k in values)
        alone = (k for k, rest in others if accepted(rest) or accepted(rest | {k: None}))
    key = next(alone, None)
    what = "keys that" if key is None else f"{key} {short(values[key])}, which"
    raise InputError(
        f"model {folder.name!r}: config.json has {what} the library transformers refuses; "
        f"accepted: what it takes for {folder.kind}"
    )


def _from_library(folder: Folder, call: Callable[[], Any]) -> Any:
    """What a call of the library returns, its errors in one line."""
    try:
        with torch.no_grad():
            return call()
    except Exception as error:  # whatever the library raises
        raise InputError(
            f"model {folder.name!r}: the library transformers stops with {type(error).__name__} on "
            "its weights or numbers; accepted: a model that it runs"
        ) from None


def _require_memory(folder: Folder, tokens: int, made: nn.Module) -> None:
    """Raise InputError where weights and activations take more than is free."""
    stored = sum(math.prod(one.shape) for one in headers(folder.path).values())
    built = sum(x.numel() for x in (*made.parameters(), *made.buffers()))
    shape = folder.shape
    activations = max(
        4 * tokens * shape.width * (_FLOATS + shape.layers), 80 * tokens * shape.heads * _ROWS
    )
    wanted, free = 4 * max(stored, built) + activations, available()
    if free is not None and wanted > free:
        raise InputError(
            f"model {folder.name!r} takes about {wanted >> 20:,} MiB in float32 with segments of "
            f"{tokens} tokens, {max(0, free) >> 20:,} MiB are free; accepted: a smaller model, "
            "or shorter segments"
        )


def available() -> int | None:
    """Bytes of memory that are free; None where the system does not say."""
    found, meminfo = [], Path("/proc/meminfo")
    if meminfo.exists():
        lines = dict(line.split(":") for line in meminfo.read_text().splitlines())
        found.append(int(lines["MemAvailable"].split()[0]) << 10)
    limit, used = (Path("/sys/fs/cgroup") / f"memory.{k}" for k in ("max", "current"))
    if limit.exists() and used.exists() and (text := limit.read_text().strip()) != "max":
        found.append(int(text) - int(used.read_text()))
    return min(found, default=None)


def _library() -> ModuleType:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return library("transformers", "a model from outside", "hf")


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No progress bars, reports and warnings: what matters is raised."""
    logging = transformers.utils.logging
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


def _loaded_run(folder: Folder) -> Transformer:
    content = folder.path / "weights.safetensors"
    try:
        opened(folder.path, content.name).close()
        weights = safetensors.torch.load(content.read_bytes())
        model = transformer(
            encoding_of(folder.values), preset_of(folder.values), folder.shape.vocabulary
        )
        require_tensors(model, weights, f"run {folder.name!r}")
    except (OSError, safetensors.SafetensorError):
        raise InputError(f"run {folder.name!r} has no readable weights.safetensors") from None
    except CorruptFile as error:
        raise InputError(str(error)) from None
    model.load_state_dict(weights)
    _require_finite(folder, model)
    return model.eval()


@dataclass(frozen=True)
class Chunked(Visibility):
    """The visible keys, within chunks of a row.

    Args:
        seen: which keys a query also sees.
        chunk: tokens of a chunk.

    >>> view = Chunked(chunk=4)
    >>> view.sees(5, 4), view.sees(5, 3), view.first(6)
    (True, False, 4)
    """

    seen: Visibility = CAUSAL
    chunk: int = 1

    def sees(self, query: Any, key: Any) -> Any:
        """Whether the query at a position sees the key at another; arrays broadcast."""
        return self.seen.sees(query, key) & (query // self.chunk == key // self.chunk)

    def first(self, query: int) -> int:
        """The first position that the query at this position sees."""
        return max(self.seen.first(query), query // self.chunk * self.chunk)


class OutsideModel:
    """A causal model of the library with the interface of `harness.model.Transformer`.

    Where its family is known, its attention layers hand their queries, keys and values to a path.
    Norms, projections, MLPs, states and the order of the residuals stay the library's. Any other
    model is run as the library runs it, and its scores are all that is seen. While a gradient is
    taken, the activations within a layer are computed again instead of kept.
    """

    def __init__(self, folder: Folder, network: nn.Module) -> None:
        self.folder, self.length = folder, folder.trained
        self.network = network.eval().requires_grad_(False)
        biased = [a.encoding for a in folder.attention if a.encoding is not None and a.biased]
        self.bias = FixedBias(biased[0]) if biased else None
        self.now: tuple[Tensor | None, Visibility, AttentionPath] = (None, CAUSAL, fused)
        family = folder.family
        self.own = FORWARDS.get(family.get("forward", ""))
        self.opened = (
            folder.checked
            and "shared" not in family
            and any(a.encoding is not None for a in folder.attention)
        )
        self.body = attrgetter(family.get("body", "model"))(network) if self.opened else network
        layers = folder.shape.layers
        lists = (m for m in self.body.modules() if isinstance(m, nn.ModuleList))
        self.blocks: list[Any] = next(([*m] for m in lists if len(m) == layers), [])
        for layer, block in enumerate(self.blocks):
            block.forward = functools.partial(self._sparing, block.forward)
            if not self.opened:
                continue
            attend = functools.partial(self.attend, layer)
            for inner in block.modules():  # its attention, wherever it is, finds its own path
                inner.attend = attend
            if self.own is not None:
                inner = attrgetter(self.own.attention)(block)
                inner.forward = functools.partial(self.own.forward, inner, attend)
        if self.opened:
            _library().AttentionInterface.register(RUN, _through_path)
            self.body.config._attn_implementation = RUN  # unknown to the library's masks: none

    def _sparing(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A layer whose activations are made again in the backward pass, as they were made."""
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        state = self.now

        def again(*args: Any, **kwargs: Any) -> Any:
            self.now = state
            return forward(*args, **kwargs)

        return checkpoint(again, *args, use_reentrant=False, preserve_rng_state=False, **kwargs)

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        weighting: LogitTransform = PLAIN,
    ) -> Tensor:
        """Attention of one layer by the path in force, shapes (batch, heads, length, size)."""
        bias, visible, path = self.now
        size, groups = query.shape[-1], query.shape[1] // key.shape[1]
        if groups > 1:  # several heads share a key
            key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
        if not math.isclose(scale, 1 / math.sqrt(size), rel_tol=1e-6):
            query = query * (scale * math.sqrt(size))
        own = self.folder.attention[layer]
        visible = visible.within(own.window)
        if own.chunk is not None:
            visible = Chunked(seen=visible, chunk=own.chunk)
        more = {} if weighting.plain else {"weighting": weighting}
        return path(query, key, value, bias, visible, **more)

    def embed(self, tokens: Tensor) -> Tensor:
        """The input embedding of tokens, shape (batch, length, width)."""
        embedded: Tensor = self.network.get_input_embeddings()(tokens)
        return embedded

    def hidden(
        self,
        embedded: Tensor,
        visible: Visibility = CAUSAL,
        path: AttentionPath = fused,
        last: int = 0,
    ) -> Tensor:
        """The normalised last residual, shape (batch, length, width), from input embeddings; with
        `last`, of so many last tokens.

        Raises:
            InputError: rows longer than the model's table of positions.
        """
        length, longest = embedded.shape[1], self.folder.longest
        if longest is not None and length > longest:
            raise InputError(
                f"model {self.folder.name!r} has positions for {longest} tokens, {length} are "
                "asked for; accepted: rows up to that length"
            )
        if not self.opened:
            if visible != CAUSAL or path is not fused:
                raise InputError(
                    f"model {self.folder.name!r} ({self.folder.kind}) is run as the library runs "
                    "it; accepted: its perplexity and its gradient, with every key that it sees"
                )
            scores: Tensor = self.network(inputs_embeds=embedded, use_cache=False).logits
            return scores[:, -last:]
        table = self.bias_table(length)
        bias = None if table is None else table.to(embedded.device, torch.float32)
        self.now = (bias, visible, path)
        more = {} if self.own is None else self.own.arguments(embedded)
        out: Tensor = self.body(inputs_embeds=embedded, use_cache=False, **more).last_hidden_state
        return out[:, -last:]

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token, shape (..., vocabulary), from the last residual."""
        if not self.opened:
            return hidden
        scores: Tensor = self.network.get_output_embeddings()(hidden)
        said = self.folder.family.get("scores")
        number = None if said is None else getattr(self.body.config, said["key"])
        if said is None or number is None:
            return scores
        does = {
            "cap": lambda x: number * (x / number).tanh(),
            "times": lambda x: x * number,
            "over": lambda x: x / number,
        }
        capped: Tensor = does[said["does"]](scores)
        return capped

    def bias_table(self, length: int) -> Tensor | None:
        """The bias at distances 0 .. length - 1 in float64, shape (heads or 1, length)."""
        return None if self.bias is None else self.bias(length)

    @property
    def vocabulary(self) -> int:
        """How many different tokens it scores."""
        return self.folder.shape.vocabulary

    def parameters(self) -> Iterator[nn.Parameter]:
        """The weights; none asks for a gradient."""
        return self.network.parameters()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.network.parameters()).device


def _through_path(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Any,
    scaling: float,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The library's own hook for attention: rotated queries and keys come in, with the soft cap and
    the learned constant of the layer."""
    weighting = LogitTransform(softcap, s_aux)
    return module.attend(query, key, value, scaling, weighting).transpose(1, 2), None


# -- the library's layers with a path of ours ----------------------------------------------------


@dataclass(frozen=True)
class Forward:
    """How the attention of a layer is run where the library has no hook of its own.

    Args:
        attention: its name in a layer, joined by dots.
        forward: called as `forward(module, attend, hidden, ...)`.
        arguments: further arguments of the body, from the embedded tokens.
    """

    attention: str
    forward: Callable[..., Any]
    arguments: Callable[[Tensor], dict[str, Any]] = lambda embedded: {}


def _bloom_forward(
    module: Any, attend: Attend, hidden: Tensor, residual: Tensor, **_: Any
) -> tuple[Tensor, None]:
    query, key, value = module._reshape(module.query_key_value(hidden))
    attended = attend(query, key, value, module.inv_norm_factor)
    return module.dense(attended.transpose(1, 2).flatten(2)) + residual, None


def _mpt_forward(module: Any, attend: Attend, hidden: Tensor, **_: Any) -> tuple[Tensor, None]:
    mixed = module.Wqkv(hidden)
    if module.clip_qkv:
        mixed = mixed.clamp(-module.clip_qkv, module.clip_qkv)
    query, key, value = (
        x.unflatten(-1, (module.n_heads, -1)).transpose(1, 2) for x in mixed.chunk(3, -1)
    )
    attended = attend(query, key, value, module.softmax_scale)
    return module.out_proj(attended.transpose(1, 2).flatten(2)), None


def _mask(embedded: Tensor) -> dict[str, Any]:
    """MPT insists on a mask; one of four dimensions is taken as it is."""
    return {"attention_mask": embedded.new_zeros(1, 1, 1, 1)}


def _falcon_forward(
    module: Any,
    attend: Attend,
    hidden: Tensor,
    alibi: Any = None,
    position_embeddings: Any = None,
    **_: Any,
) -> tuple[Tensor, None]:
    from transformers.models.falcon.modeling_falcon import apply_rotary_pos_emb

    parts = module._split_heads(module.query_key_value(hidden))
    query, key, value = (x.transpose(1, 2) for x in parts)
    if alibi is None:
        query, key = apply_rotary_pos_emb(query, key, *position_embeddings)
    attended = attend(query, key, value, module.inv_norm_factor)
    return module.dense(attended.transpose(1, 2).flatten(2)), None


def _weighed_forward(module: Any, attend: Attend, *given: Any, **named: Any) -> Any:
    """GPT-Neo, and GPT-J and CodeGen up to transformers 5.23, weigh in a method of their own;
    GPT-Neo does not scale. Where the method is not called, the library's hook is."""

    def weighed(query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Any:
        return attend(query, key, value, 1 / float(getattr(module, "scale_attn", 1.0))), None

    module._attn = weighed
    return type(module).forward(module, *given, **named)


FORWARDS = {
    "bloom": Forward("self_attention", _bloom_forward),
    "mpt": Forward("attn", _mpt_forward, _mask),
    "falcon": Forward("self_attention", _falcon_forward),
    "gptj": Forward("attn", _weighed_forward),
    "gpt_neo": Forward("attn.attention", _weighed_forward),
}
"""How the attention of a layer is run, by the name in the table of its family."""
