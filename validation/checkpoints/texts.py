"""Texts in the tokens of a model from outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from farfield.theory.answers.answer import InputError
from farfield.validation.checkpoints.configured import RUN, Folder
from farfield.validation.checkpoints.guarded import opened
from farfield.validation.harness.corpus import Corpus, corpus
from farfield.validation.optional import library

_TOKENIZER = 256 << 20  # bytes
_TEXT_BYTES = 2 << 20  # of each part of a text: seconds of a tokeniser, and more than is measured


def tokens_of(folder: Folder, text: Any) -> Corpus:
    """A text, a `Corpus` or what `corpus` reads, in the tokens of a model; of each part at most
    2 MiB are taken.

    A folder with tokenizer.json is read by the library tokenizers; one without must have a
    vocabulary of 256, and takes bytes.

    Raises:
        InputError: the folder has no tokenizer, or one that does not fit the model.
    """
    text = text if isinstance(text, Corpus) else corpus(text)
    if text.vocabulary == folder.shape.vocabulary:
        return text
    name = "tokenizer.json"
    if folder.kind == RUN or not (folder.path / name).exists() or text.unit != "byte":
        raise InputError(
            f"model {folder.name!r} has {folder.shape.vocabulary} tokens, {text.source} has "
            f"{text.vocabulary}; accepted: a text of bytes for a folder with tokenizer.json, or "
            "the tokens it was trained on"
        )
    tokenizers = library("tokenizers", "a text in the tokens of a model", "hf")
    try:
        with opened(folder.path, name, most=_TOKENIZER) as file:
            coder = tokenizers.Tokenizer.from_buffer(file.read())
    except InputError:
        raise
    except Exception as error:  # the library raises Exception itself
        why = " ".join(str(error).split())[:160]
        raise InputError(f"model {folder.name!r}: tokenizer.json: {why}") from None
    parts = []
    for part in (text.train, text.held_out):
        words = part[:_TEXT_BYTES].tobytes().decode(errors="replace")
        parts.append(np.array(coder.encode(words, add_special_tokens=False).ids, dtype=np.uint32))
    largest = max((int(p.max()) for p in parts if len(p)), default=0)
    if largest >= folder.shape.vocabulary:
        raise InputError(
            f"model {folder.name!r}: tokenizer.json gives token {largest}, the model has "
            f"{folder.shape.vocabulary}; accepted: the tokenizer of the model"
        )
    read = min(len(text.held_out), _TEXT_BYTES)
    return Corpus(
        f"{text.source}, in tokens of {folder.name}",
        parts[0],
        parts[1],
        text.files,
        text.split,
        folder.shape.vocabulary,
        read / max(1, len(parts[1])),
    )
