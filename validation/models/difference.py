"""What two folders do differently with positions, as before and after a conversion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

from farfield.theory.answers.answer import Answer, Label
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.number import plural
from farfield.validation.models.audit import which
from farfield.validation.models.cache import Serving, bytes_text, row_cache
from farfield.validation.models.configuration import read_json
from farfield.validation.models.folder import describe
from farfield.validation.models.outline import ModelOutline, alike

_TOKENIZER_BYTES = 256 << 20


@dataclass(frozen=True, repr=False)
class Difference(Answer):
    """What two folders do differently; see `difference`.

    Fields:
        model, other: their names.
        count: how many rows differ.
        rows: what differs, and what each has.
        alike: points that were compared and are the same.
        label: `theorem`: both are read from their files.
    """

    VALUE: ClassVar[str] = "count"

    model: str
    other: str
    count: int
    rows: tuple[tuple[str, str, str], ...]
    alike: tuple[str, ...]

    def blocks(self) -> Sequence[Block]:
        text = (
            "{model} and {other} differ in {count}."
            if self.rows
            else ("{model} and {other} do the same with positions, as far as their files say.")
        )
        whole: list[Block] = [
            sentence(
                text,
                self.label,
                model=self.model,
                other=self.other,
                count=plural(self.count, "point"),
            )
        ]
        if self.rows:
            whole.append(table(("point", self.model, self.other), self.rows))
        whole.append(note("The same: {alike}.", alike=", ".join(self.alike) or "nothing"))
        return whole


def difference(model: Any, other: Any) -> Difference:
    """What two folders do differently: windows and kinds of layers, rotation, cache, first token,
    truncation and padding of the tokenizer, and the versions that read them alike.

    Args:
        model: a folder that `describe` knows, or what it says of one.
        other: the same.

    Raises:
        InputError: as `describe`.
    """
    both = [describe(model), describe(other)]
    first, second = (dict(_points(one)) for one in both)
    names = dict.fromkeys((*first, *second))
    differ = tuple(
        (name, first.get(name, "-"), second.get(name, "-"))
        for name in names
        if first.get(name) != second.get(name)
    )
    return Difference(
        model=both[0].name,
        other=both[1].name,
        count=len(differ),
        rows=differ,
        alike=tuple(n for n in names if n not in {d[0] for d in differ}),
        label=Label.THEOREM,
    )


def _points(model: ModelOutline) -> Iterator[tuple[str, str]]:
    """Every point that is compared, in words."""
    yield "type", model.kind
    yield "layers", str(len(model.layers)) if model.layers else model.unknown
    for point, name in (("windows", "sees"), ("positions", "mechanism"), ("heads", "shape")):
        yield point, _by(model, name)
    if model.layers:
        row = row_cache(model.layers, 8192, Serving())
        yield "cache of 8192 tokens", bytes_text(row.least + row.indexer + (row.states or 0))
    yield "training length", str(model.trained)
    yield "vocabulary", str(model.vocabulary)
    yield "notes", "; ".join(model.notes) or "none"
    yield "rotation is read by", _readers(model)
    yield from _tokenizer(model)


def _by(model: ModelOutline, name: str) -> str:
    """What layers say of themselves, those that are alike together."""
    parts, total = alike(model.layers, attrgetter(name)), len(model.layers)
    if len(parts) == 1:
        return str(*parts)
    return "; ".join(f"{which(layers, total)}: {what}" for what, layers in parts.items())


def _readers(model: ModelOutline) -> str:
    """Versions of transformers that read the rotation as it is meant."""
    parts = (model.values, model.values.get("text_config") or {})
    new = any(part.get("rope_parameters") for part in parts)
    old = any(part.get("rope_theta") or part.get("rope_scaling") for part in parts)
    return "5 alone (rope_parameters)" if new and not old else "4 and 5"


def _tokenizer(model: ModelOutline) -> Iterator[tuple[str, str]]:
    """What the tokenizer does beside cutting a text into tokens."""
    if not (model.path / "tokenizer.json").is_file():
        yield "tokenizer", "none"
        return
    tokenizer = read_json(model.path, "tokenizer.json", _TOKENIZER_BYTES)
    for name in ("truncation", "padding"):
        yield f"{name} of the tokenizer", str(tokenizer.get(name) or "none")[:120]
    yield "post-processor", str(tokenizer.get("post_processor") or "none")[:200]
    yield "first token", str(model.values.get("bos_token_id"))
