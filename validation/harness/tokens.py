"""Texts as tokens: a byte-pair encoding trained on the training part, kept in mapped files.

    <folder>/tokenizer.json       the encoding, in the format of the library `tokenizers`
    <folder>/train.bin            tokens as uint16, or uint32 for more than 65,536 entries
    <folder>/held_out.bin
    <folder>/tokens.json          written last, sealed: source, vocabulary, sizes

The files are mapped into memory, so that a text may be larger than it. Bytes that are no UTF-8
are replaced by U+FFFD before encoding.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from farfield.theory.answers.answer import InputError
from farfield.validation.files import CorruptFile, read_json, write, write_json
from farfield.validation.harness.corpus import BYTES, Corpus
from farfield.validation.optional import library

_PIECE = 1 << 16  # bytes encoded at a time; cut after a line end where there is one


def tokenized(corpus: Corpus, vocabulary: int, folder: str | os.PathLike[str]) -> Corpus:
    """The text in tokens of a byte-pair encoding that is trained on its training part.

    Args:
        corpus: a text of bytes.
        vocabulary: entries, more than 256; fewer are made when the text has no more pairs.
        folder: where the token files are kept; those of the same text and size are not made again.

    Raises:
        InputError: the library `tokenizers` is missing, the text is tokens already, the folder
            holds another text's tokens or cannot be written to.
    """
    place = Path(folder).expanduser()
    if corpus.unit == "token" or vocabulary <= BYTES:
        raise InputError(
            f"{corpus.source} into {vocabulary} tokens: accepted is a text of bytes, and more than "
            f"{BYTES} tokens"
        )
    wanted = {"text_sha256": corpus.sha256, "asked": vocabulary}
    if (place / "tokens.json").exists():
        if {k: _record(place).get(k) for k in wanted} != wanted:
            raise InputError(
                f"folder {place.name!r} holds the tokens of another text or size; accepted: an "
                "empty folder"
            )
        return opened(place)
    tokenizers = library("tokenizers", "a byte-pair encoding", "train")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"folder {str(place)!r} cannot be made: {error.strerror}") from None
    coder = tokenizers.Tokenizer(tokenizers.models.BPE())
    coder.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    coder.decoder = tokenizers.decoders.ByteLevel()
    coder.train_from_iterator(
        _pieces(corpus.train),
        tokenizers.trainers.BpeTrainer(
            vocab_size=vocabulary,
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    entries = coder.get_vocab_size()
    sizes = {}
    for name, part in (("train", corpus.train), ("held_out", corpus.held_out)):
        encoded = [coder.encode(piece).ids for piece in _pieces(part)]
        array = np.concatenate([np.array(ids, dtype=_dtype(entries)) for ids in encoded])
        write(place / f"{name}.bin", array.tobytes())
        sizes[name] = len(array)
    write(place / "tokenizer.json", coder.to_str().encode())
    record: dict[str, Any] = {
        **wanted,
        "source": corpus.source,
        "files": corpus.files,
        "split": corpus.split,
        "vocabulary": entries,
        "tokens": sizes,
        "bytes_a_token": len(corpus.held_out) / max(1, sizes["held_out"]),
    }
    write_json(place / "tokens.json", record)
    return opened(place)


def opened(folder: str | os.PathLike[str]) -> Corpus:
    """The text in token files, mapped into memory.

    Raises:
        InputError: the files were changed later.
    """
    place = Path(folder).expanduser()
    record = _record(place)
    parts: dict[str, np.ndarray] = {}
    for name in ("train", "held_out"):
        path, size = place / f"{name}.bin", record["tokens"][name]
        dtype = _dtype(record["vocabulary"])
        if not path.is_file() or path.stat().st_size != size * dtype.itemsize:
            raise InputError(
                f"token file {place.name}/{name}.bin is not what was written; remove the folder, "
                "and it is made again"
            )
        parts[name] = np.memmap(path, dtype=dtype, mode="r")
    source = f"{record['source']}, {record['vocabulary']} tokens"
    return Corpus(
        source,
        parts["train"],
        parts["held_out"],
        record["files"],
        record["split"],
        record["vocabulary"],
        record["bytes_a_token"],
    )


def _record(place: Path) -> dict[str, Any]:
    try:
        return read_json(place / "tokens.json")
    except CorruptFile as error:
        raise InputError(f"token files: {error}; remove the folder, and it is made again") from None


def _dtype(vocabulary: int) -> np.dtype[Any]:
    return np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)


def _pieces(text: np.ndarray) -> Iterator[str]:
    start = 0
    while start < len(text):
        stop = min(start + _PIECE, len(text))
        piece = text[start:stop].tobytes()
        if stop < len(text) and (line := piece.rfind(b"\n")) >= 0:
            piece = piece[: line + 1]
        yield piece.decode(errors="replace")
        start += len(piece)
