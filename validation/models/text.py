"""A text in the tokens of a model.

Texts are encoded with truncation and padding switched off, whatever `tokenizer.json` says. Where a
first token is wanted (BOS), it takes the place of the first token of each row: then the targets
are the same with and without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import plural
from farfield.validation.harness.data import BYTES, Text, read_text, samples
from farfield.validation.harness.measure import led
from farfield.validation.models.gguf_files import gguf_tokenizer
from farfield.validation.models.outline import RUN, ModelOutline
from farfield.validation.optional import first_line, library

FIRST = ("auto", "yes", "no")
"""Whether rows begin with the first token that the tokenizer puts before a text."""

_TEXT_BYTES = 2 << 20  # of each part of a text: seconds of a tokeniser, and more than is measured


@dataclass(frozen=True)
class TokenText:
    """A text in the tokens of a model.

    Args:
        train, held_out: its parts, one-dimensional.
        bos: the token that each row begins with; None for none.
        source: the text, in words.
    """

    train: np.ndarray
    held_out: np.ndarray
    bos: int | None
    source: str

    @property
    def first(self) -> str:
        """What rows begin with, in words."""
        return "no first token" if self.bos is None else f"the first token {self.bos} in each row"


def text_of(model: ModelOutline, text: Any, bos: str = "auto") -> TokenText:
    """A text in the tokens of a model; of each part at most 2 MiB of bytes are encoded.

    A folder with tokenizer.json is read by the library tokenizers; one without must have a
    vocabulary of 256, and takes bytes.

    Args:
        model: what its folder says.
        text: a file, a folder, a `Text`, an array of tokens; None takes the source code of the
            standard library.
        bos: one of `FIRST`.

    Raises:
        InputError: the folder has no tokenizer, or one that does not fit the model; a first token
            is wanted and none is named.
    """
    one_of(bos, "bos", FIRST)
    if isinstance(text, np.ndarray):
        refuse(
            text.ndim != 1 or text.dtype.kind not in "iu" or not len(text) or int(text.min()) < 0,
            "the text is no one-dimensional array of tokens; accepted: whole numbers from 0",
        )
        text = Text(f"{len(text)} tokens", text[:0], text, max(BYTES + 1, int(text.max()) + 1))
    whole = text if isinstance(text, Text) else read_text(text)
    named = model.values.get("bos_token_id", model.values.get("tokenizer.ggml.bos_token_id"))
    place, packed = model.path / "tokenizer.json", model.path.suffix == ".gguf"
    in_bytes = whole.vocabulary == BYTES and not str(text).endswith(".npy")
    if in_bytes and model.kind != RUN and (packed or place.is_file()):
        (train, held_out), put = _encoded(model, (whole.train, whole.held_out))
        source = f"{whole.source}, in tokens of {model.name}"
        return TokenText(train, held_out, _wanted(model, bos, put, named), source)
    largest = int(whole.held_out.max(initial=0))
    refuse(
        model.vocabulary != BYTES if in_bytes else largest >= model.vocabulary,
        f"model {model.name!r} has {plural(model.vocabulary, 'token')}, {whole.source} has "
        f"{whole.vocabulary}; accepted: a text of bytes for a folder with tokenizer.json, or the "
        "tokens it was trained on",
    )
    put = _wanted(model, bos, None, named)
    return TokenText(whole.train, whole.held_out, put, whole.source)


def _encoded(
    model: ModelOutline, texts: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], int | None]:
    """Texts of bytes in the tokens of a tokenizer, and the token that this puts before a text."""
    coder, parts = tokenizer_of(model), []
    coder.no_truncation()
    coder.no_padding()
    for text in texts:
        words = text[:_TEXT_BYTES].tobytes().decode(errors="replace")
        (coded,) = coder.encode_batch([words], add_special_tokens=False)  # other threads go on
        tokens = np.array(coded.ids, dtype=np.uint32)
        largest = int(tokens.max(initial=0))
        refuse(
            largest >= model.vocabulary,
            f"model {model.name!r}: tokenizer.json gives token {largest}, the model has "
            f"{model.vocabulary}; accepted: the tokenizer of the model",
        )
        parts.append(tokens)
    with_first, plain = (
        coder.encode("a", add_special_tokens=special).ids for special in (True, False)
    )
    return parts, with_first[0] if with_first[:1] != plain[:1] else None


def tokenizer_of(model: ModelOutline) -> Any:
    """The tokenizer of a model's folder, or of its GGUF file, of the library tokenizers.

    Raises:
        InputError: it cannot be read.
    """
    if model.path.suffix == ".gguf":
        return gguf_tokenizer(model)
    tokenizers = library("tokenizers", "a text in the tokens of a model", "hf")
    try:
        return tokenizers.Tokenizer.from_file(str(model.path / "tokenizer.json"))
    except Exception as error:  # the library raises Exception itself
        raise InputError(
            f"model {model.name!r}: tokenizer.json cannot be read ({first_line(error, 120)}); "
            "accepted: a tokenizer of the library tokenizers"
        ) from None


def encoder_of(model: ModelOutline) -> Callable[[str], list[int]] | None:
    """A text in the tokens of a model, without a first token; None without a tokenizer."""
    if model.path.suffix != ".gguf" and not (model.path / "tokenizer.json").is_file():
        return None
    coder = tokenizer_of(model)

    def encode(words: str) -> list[int]:
        tokens: list[int] = coder.encode(words, add_special_tokens=False).ids
        return tokens

    return encode


def _wanted(model: ModelOutline, bos: str, put: int | None, named: Any) -> int | None:
    """The first token of each row."""
    if bos == "no":
        return None
    if bos == "yes":
        put = put if put is not None else named
        refuse(
            not isinstance(put, int) or not 0 <= put < model.vocabulary,
            f"model {model.name!r} names no first token (bos_token_id {named!r}); accepted: "
            "bos 'auto' or 'no'",
        )
    return put


def rows_of(text: TokenText, tokens: np.ndarray, count: int, length: int) -> np.ndarray:
    """Evenly spaced rows with their targets, int64, shape (rows, length + 1).

    Raises:
        InputError: the text is shorter than two rows.
    """
    require_rows(tokens, length)
    return led(samples(tokens, count, length), text.bos)


def require_rows(tokens: np.ndarray, length: int) -> None:
    """Raise InputError unless a text holds two rows with their targets."""
    refuse(
        len(tokens) < 2 * (length + 1),
        f"the text has {len(tokens)} tokens, {2 * (length + 1)} are needed for two rows of "
        f"{length}; accepted: a longer text, or shorter rows",
    )
