"""The command that computes a number again, as it is typed in a terminal."""

from __future__ import annotations

import shlex
from functools import lru_cache
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import CATALOGUE, Encoding, encoding
from farfield.theory.encodings.head_lists import notation

LONG = 200


def command(verb: str, subject: Encoding, options: str = "") -> str:
    """The command of a verb about an encoding; empty where no short one means that encoding.

    >>> command("trf", encoding("alibi", heads=4), "--eps 1/100")
    'farfield trf alibi --heads 4 --eps 1/100'
    >>> command("check", encoding("-2*log(1+n)"))
    "farfield check '-2*log(n + 1)'"
    """
    named = spoken(subject)
    return f"farfield {verb} {named} {options}".strip() if named else ""


@lru_cache(256)
def spoken(subject: Encoding) -> str:
    """An encoding as the command line takes it; empty where that is not short, or not sure."""
    tried: list[tuple[str, dict[str, Any]]] = []
    if subject.name in CATALOGUE:
        dialect = {"dialect": subject.dialect} if subject.dialect else {}
        heads = {"heads": subject.num_heads}
        tried = [(subject.name, options) for options in ({}, heads, dialect, heads | dialect)]
    each = [str(bias) for bias in subject.biases]
    if each and len(text := each[0] if len(each) == 1 else notation(each)) <= LONG:
        tried.append((text, {}))
    blocks: dict[str, Any] = {"bca": subject.bca} if subject.bca else {}
    for name, options in tried:
        try:
            same = encoding(name, **options, **blocks).biases == subject.biases
        except InputError:
            continue
        if same:
            said = (f"--{key} {value}" for key, value in {**options, **blocks}.items())
            return " ".join([shlex.quote(name), *said])
    return ""
