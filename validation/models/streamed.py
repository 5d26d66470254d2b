"""A model larger than the memory: the weights of one layer at a time.

The library's own model is built without weights. Weights outside its layers are read once. The
weights of a layer are read from its file, by memory map, when the layer is computed, and given up
after it. Nothing else differs from a model in memory: rows pass the same code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from farfield.theory.answers.errors import InputError, refuse
from farfield.validation.models.configuration import library_config, quiet, transformers
from farfield.validation.models.gguf_files import gguf_config, gguf_tensors
from farfield.validation.models.outline import ModelOutline
from farfield.validation.models.weights import reader, require_finite

Read = Callable[[str], "Tensor | None"]
"""A tensor by the library's name; None where the file has none."""


def skeleton(model: ModelOutline) -> Any:
    """The library's model of a folder or a GGUF file, without numbers."""
    hf = transformers()
    with quiet(hf):
        if model.path.suffix == ".gguf":
            config = gguf_config(model)
        else:
            made, _, _ = library_config(model.path, model.values)
            config = hf.CONFIG_MAPPING[model.kind].from_dict(made.to_dict())
        with torch.device("meta"):
            return hf.AutoModelForCausalLM.from_config(config)


def blocks(network: nn.Module, count: int) -> list[nn.Module]:
    """The layers of a model; none where no list has so many."""
    lists = (m for m in network.modules() if isinstance(m, nn.ModuleList))
    return next(([*m] for m in lists if len(m) == count), [])


def held(model: ModelOutline, network: nn.Module, kind: torch.dtype) -> int:
    """Bytes of the weights that are held at once: all that stands outside the layers, the largest
    layer, and a tensor as the file has it beside the same one in its type."""
    layers = blocks(network, len(model.layers))
    inside = {id(x) for layer in layers for x in layer.parameters()}
    outside = [x.numel() for x in network.parameters() if id(x) not in inside]
    layer = max((sum(x.numel() for x in layer.parameters()) for layer in layers), default=0)
    within = max((x.numel() for block in layers for x in block.parameters()), default=0)
    size = kind.itemsize
    if model.path.suffix == ".gguf":
        near, far = 13, 1 + size  # of a layer whole in float32, of tables in parts
    else:
        named = model.values.get("dtype", model.values.get("torch_dtype"))
        near = far = size if str(kind) == f"torch.{named}" else 8
    most = max(far * max(outside, default=0), size * layer + near * within)
    return size * sum(outside) + most


def streamed(
    model: ModelOutline, network: Any, kind: torch.dtype, device: torch.device | None
) -> Any:
    """A skeleton that reads its layers as they are computed.

    Args:
        model: of a folder or a GGUF file.
        network: its `skeleton`.
        kind: of its weights.
        device: of torch; None for the CPU.

    Raises:
        InputError: no list of its layers; tables that the library does not make again; as
            `weights.reader`; a tensor that is missing, misshapen or not finite.
    """
    layers, place = blocks(network, len(model.layers)), device or torch.device("cpu")
    start, accepted = f"model {model.name!r} does not fit into memory, and", "more memory"
    refuse(not layers, f"{start} its layers are in no list; accepted: {accepted}")
    for parent in [*network.modules()]:
        for name, child in parent.named_children():
            if any(x.is_meta for x in child.buffers(recurse=False)):
                refuse(
                    not hasattr(child, "rope_type"),
                    f"{start} has tables beside its weights ({name}); accepted: {accepted}",
                )
                made: Any = type(child)(child.config)
                setattr(parent, name, made.to(place))
    packed = model.path.suffix == ".gguf"
    prefix = f"{network.base_model_prefix}."
    read = _finite(model, gguf_tensors(model, network, kind) if packed else reader(model, prefix))
    load = functools.partial(_loaded, model, read, kind, place)
    names = {id(x): name for name, x in network.named_parameters()}
    inside = {id(x) for layer in layers for x in layer.parameters()}
    _fill(network, {at: name for at, name in names.items() if at not in inside}, load)
    for layer in layers:
        fill = functools.partial(_fill, layer, names, load)
        layer.forward = functools.partial(_with_weights, layer, fill, layer.forward)
    return network


def _with_weights(
    layer: nn.Module, fill: Callable[[], None], forward: Callable[..., Any], *args: Any, **more: Any
) -> Any:
    """The forward pass of a layer, with its weights."""
    before = [(module, dict(module._parameters)) for module in layer.modules()]
    try:
        fill()
        return forward(*args, **more)
    finally:
        for module, empty in before:
            module._parameters.update(empty)


def _fill(root: nn.Module, names: dict[int, str], load: Callable[..., nn.Parameter]) -> None:
    """Read the weights within a module that have a name; those that are shared once."""
    made = dict[int, nn.Parameter]()
    for module in root.modules():
        for own, empty in module._parameters.items():
            if empty is not None and (at := id(empty)) in names:
                made[at] = made[at] if at in made else load(names[at], empty.shape)
                module._parameters[own] = made[at]


def _loaded(
    model: ModelOutline,
    read: Read,
    kind: torch.dtype,
    place: torch.device,
    name: str,
    shape: torch.Size,
) -> nn.Parameter:
    """A weight on its device."""
    weight = read(name)
    if weight is None or weight.shape != shape:
        wrong = "lacks" if weight is None else "has misshapen"
        raise InputError(
            f"model {model.name!r} {wrong} tensor {name!r}; accepted: weights that fit config.json"
        )
    return nn.Parameter(weight.to(place, kind), requires_grad=False)


def _finite(model: ModelOutline, read: Read) -> Read:
    """Tensors that are checked when they are read first."""
    seen = set[str]()

    def checked(name: str) -> Tensor | None:
        weight = read(name)
        if weight is not None and name not in seen:
            require_finite(model, name, weight)
            seen.add(name)
        return weight

    return checked
