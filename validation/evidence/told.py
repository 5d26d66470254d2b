"""The sentences of the evidence (`sentences.toml`), and how numbers are written in them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

FORMATS: Mapping[str, Callable[[Any], str]] = {
    "": str,
    "%": lambda x: f"{x:.0%}",
    ".1%": lambda x: f"{x:.1%}",
    ".2f": lambda x: f"{x:.2f}",
    ".0f": lambda x: f"{x:.0f}",
}


@cache
def sentences() -> Mapping[str, Any]:
    """The file, read."""
    text = files("farfield.validation.evidence").joinpath("sentences.toml").read_text("utf-8")
    return tomllib.loads(text)
