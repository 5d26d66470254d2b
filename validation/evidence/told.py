"""The sentences of the evidence (`sentences.toml`), filled in with numbers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2

from farfield.validation.evidence.sentences import Evidence


@cache
def sentences() -> Mapping[str, Any]:
    """The file, read."""
    text = files("farfield.validation.evidence").joinpath("sentences.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def environment() -> jinja2.Environment:
    """The templates know a number `as` a format says, and names `listed`."""
    made = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    made.filters["as"] = format
    made.filters["listed"] = lambda names: ", ".join(names) or "none"
    return made


def told(
    key: str,
    n: int,
    numbers: Mapping[str, Any],
    table: tuple[tuple[str, ...], ...] = (),
    runs: tuple[str, ...] = (),
    **more: Any,
) -> Evidence:
    """Evidence whose question and sentence are templates.

    Args:
        key: of the templates in the file.
        n: what the evidence stands on.
        numbers: by name; the templates know both.
        table: its header and rows.
        runs: their names.
        more: what the templates know beside them.
    """
    question, sentence = (
        environment()
        .from_string(sentences()["told"][key][part])
        .render(n=n, numbers=numbers, **more)
        for part in ("question", "sentence")
    )
    return Evidence(question, sentence, n, numbers, table, runs)
