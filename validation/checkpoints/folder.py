"""What a folder says of its model, before its weights are loaded.

Folders of the Hugging Face layout and runs of a store are described alike, from their configuration
alone: no torch, no library that wrote them, no code of the folder.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import Encoding
from farfield.validation.checkpoints.families import FAMILIES
from farfield.validation.checkpoints.family import Attention, Description, ModelFamily
from farfield.validation.checkpoints.guarded import document
from farfield.validation.checkpoints.run import RUN, describe_run
from farfield.validation.checkpoints.weights import tensor


@dataclass(frozen=True)
class Folder:
    """What a folder says of its model.

    Args:
        path: the folder.
        kind: the model's type, or `farfield` for a run of a store.
        description: its size, what its attention does with positions, its training length.
        values: the content of its configuration, or the record of the run.
    """

    path: Path
    kind: str
    description: Description
    values: Mapping[str, Any] = dataclasses.field(repr=False, default_factory=dict)

    @property
    def name(self) -> str:
        """The folder's own name: no path of the machine."""
        return self.path.resolve().name

    @property
    def family(self) -> ModelFamily | None:
        """Its family; None for a run."""
        return FAMILIES.get(self.kind)

    @property
    def layers(self) -> int:
        """How many layers the model has (the decoder, if there are two parts)."""
        return self.description.shape.layers

    @property
    def heads(self) -> int:
        """How many heads a layer has."""
        return self.description.shape.heads

    @property
    def head_size(self) -> int:
        """The dimensions of a head."""
        return self.description.shape.head_size

    @property
    def width(self) -> int:
        """The dimensions of a residual."""
        return self.description.shape.width

    @property
    def vocabulary(self) -> int:
        """How many different tokens the model knows."""
        return self.description.shape.vocabulary

    @property
    def trained(self) -> int | None:
        """The training length in tokens that the configuration names; None if it does not."""
        return self.description.trained

    @property
    def note(self) -> str:
        """What the configuration says beyond the formulas."""
        own = f"read as {self.kind} of the library: code of the folder (auto_map) is not run"
        said = (self.description.note, own if "auto_map" in self.values else "")
        return "; ".join(filter(None, said))

    @property
    def attention(self) -> tuple[Attention, ...]:
        """What the attention of each layer does with positions."""
        return self.description.attention

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The positional encodings, each once, in the order of the layers."""
        return tuple({id(a.encoding): a.encoding for a in self.attention}.values())


_ACCEPTED = (
    "a folder with config.json and *.safetensors, as the library transformers writes it, or a "
    "finished run of a store"
)


def describe(folder: str | os.PathLike[str]) -> Folder:
    """What a folder says of its model; no weight is read but those that are the encoding.

    Raises:
        InputError: the folder is missing, is no model, or has an architecture that is not known
            here; its configuration is contradictory; learned biases cannot be read.
    """
    path = Path(folder).expanduser()
    given = f"model {str(folder)!r}"
    if not path.is_dir():
        wrong = "is no folder" if path.exists() else "does not exist"
        raise InputError(f"{given} {wrong}; accepted: {_ACCEPTED}")
    if (path / "training.json").is_file():
        return Folder(path, RUN, *describe_run(path))
    if not os.path.lexists(path / "config.json"):
        raise InputError(f"{given} has no config.json; accepted: {_ACCEPTED}")
    config = document(path, "config.json")
    kind = config.value("model_type")
    if not isinstance(kind, str):
        raise InputError(f"{given}: config.json names no model_type; accepted: {_ACCEPTED}")
    if kind not in FAMILIES:
        raise InputError(
            f"{given}: the architecture {kind[:40]!r} is not known here; accepted: "
            f"{', '.join(sorted(FAMILIES))}"
        )
    described = FAMILIES[kind].describe(config, partial(tensor, path))
    return Folder(path, kind, described, config.values)
