"""The weights and the tokenizer of a GGUF file, as the library transformers reads them.

Quantised weights become float32 by the file's own formula. Nothing is written beside the file.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import torch

from farfield.theory.answers.answer import InputError
from farfield.validation.models.layers import ModelOutline
from farfield.validation.models.transformers_config import quiet
from farfield.validation.optional import first_line, library, require


def gguf_numbers(model: ModelOutline) -> int:
    """How many numbers the tensors of a file have."""
    reader = library("gguf", "a GGUF file", "gguf").GGUFReader(model.path)
    return sum(int(tensor.n_elements) for tensor in reader.tensors)


def gguf_network(model: ModelOutline) -> Any:
    """The model of a file in float32.

    Raises:
        InputError: the library knows no such file.
    """
    require("accelerate", "a GGUF file", "gguf")
    return _read(model, "AutoModelForCausalLM", dtype=torch.float32)


def gguf_tokenizer(model: ModelOutline) -> Any:
    """The tokenizer of a file, of the library tokenizers.

    Raises:
        InputError: the library knows no such tokenizer.
    """
    return _read(model, "AutoTokenizer").backend_tokenizer


def _read(model: ModelOutline, name: str, **how: Any) -> Any:
    transformers = library("transformers", "a model from outside", "hf")
    with quiet(transformers), contextlib.redirect_stderr(io.StringIO()):  # a bar of tqdm's own
        try:
            return getattr(transformers, name).from_pretrained(
                model.path.parent,
                gguf_file=model.path.name,
                local_files_only=True,
                trust_remote_code=False,
                **how,
            )
        except Exception as error:  # whatever the library raises
            raise InputError(
                f"model {model.name!r}: the library transformers cannot read this GGUF file "
                f"({first_line(error, 120)}); accepted: an architecture and a quantisation that it "
                "knows"
            ) from None
