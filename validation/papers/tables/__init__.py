"""The numbers that the papers print, as data: one CSV file a table; the encoding of a printed row.

[Q] Qin et al. 2024, [S] Sun et al. 2023, [C] Chi et al. 2023. Values keep the printed digits, so
that half a unit of the last place is their uncertainty. Names are the printed ones, except
`Windowed` and `Sandwich_Smoothed` of [C]. A marker `dagger` says that Sandwich is significantly
better than the column, `star` that it is worse. Images, curves and colours are not available.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.names import one_of
from farfield.theory.encodings import CATALOGUE, Encoding, encoding

HEADS = {"chi2023": 12, "sun2023": 16}
"""Of the models of a paper."""
NAMES = {
    "Sandwich": "sandwich",
    "Sandwich_Smoothed": "sandwich_smoothed",
    "ALiBi": "alibi",
    "Sinusoidal": "sinusoidal",
    "Rotary": "rope",
    "KERPLE": "kerple_log",
    "T5": "t5",
    "Alibi": "alibi",
    "BLOOM / Alibi": "alibi",
    "RoPE": "rope",
    "Roformer": "rope",
    "PaLM / Roformer (RoPE)": "rope",
    "LeX": "xpos",
    "XPos": "xpos",
    "LeX Transformer (Ours)": "xpos",
    "Transformer": "sinusoidal",
    "Absolute": "sinusoidal",
    "Transformer (Sinusoidal)": "sinusoidal",
    "GPT-2 (Learnable)": "learned",
}
"""The catalogue's name of a printed one."""
TRAINED = 1024
"""Training length of a table that prints none."""


@dataclass(frozen=True)
class PrintedNumber:
    """One number of a printed table.

    Fields:
        paper, table, dataset, encoding, variant, metric: where and what it is; empty if not said.
        train_length, eval_length: tokens, None where the table has no such column.
        printed: the value as printed; `value` the number, None where it is a word (yes, no).
        std, marker, note: what is beside it.
    """

    paper: str
    table: str
    dataset: str
    encoding: str
    variant: str
    train_length: int | None
    eval_length: int | None
    metric: str
    printed: str
    std: float | None
    marker: str
    note: str

    @property
    def value(self) -> float | None:
        """The printed number."""
        try:
            return float(self.printed)
        except ValueError:
            return None

    @property
    def exact(self) -> Fraction:
        """The printed number without rounding."""
        return Fraction(self.printed)

    @property
    def place(self) -> Fraction:
        """One unit of the last printed place.

        >>> table("sun2023_table1")[0].printed, table("sun2023_table3")[0].place
        ('no', Fraction(1, 100))
        """
        digits = self.printed.partition(".")[2]
        return Fraction(1, 10 ** len(digits))


def names() -> tuple[str, ...]:
    """The names of the files, in order.

    >>> names()[:3]
    ('chi2023_erf', 'chi2023_table1', 'chi2023_table2')
    """
    found = (f.name for f in files(__name__).iterdir() if f.name.endswith(".csv"))
    return tuple(sorted(f.removesuffix(".csv") for f in found))


@lru_cache(maxsize=32)
def rows(name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a file as they stand.

    Raises:
        InputError: there is no such file.
    """
    one_of(name, "printed table", names())
    text = files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@lru_cache(maxsize=32)
def table(name: str) -> tuple[PrintedNumber, ...]:
    """The cells of a table of results, of receptive fields, or of keys and values.

    >>> [c.value for c in table("qin2024_table1")]
    [44.35, 1.0, 1.0]
    >>> [c.printed for c in table("chi2023_table7") if c.encoding == "Hidden Size"]
    ['64']
    """
    if not rows(name) or not {"value", "key"} & set(rows(name)[0]):
        raise InputError(f"{name!r} is no table of numbers; read it with rows()")
    return tuple(_cell(row) for row in rows(name))


def _cell(row: Mapping[str, str]) -> PrintedNumber:
    """Read a row: its encoding may be a key, its metric a quantity, its mark a relation."""
    trained, evaluated = (
        int(row[k]) if row.get(k) else None for k in ("train_length", "eval_length")
    )
    return PrintedNumber(
        paper=row.get("paper", ""),
        table=row.get("table", ""),
        dataset=row.get("dataset", ""),
        encoding=row.get("encoding", row.get("key", "")),
        variant=row.get("variant", ""),
        train_length=trained,
        eval_length=evaluated,
        metric=row.get("metric", row.get("quantity", "")),
        printed=row["value"],
        std=float(row["std"]) if row.get("std") else None,
        marker=row.get("marker", row.get("relation", "")),
        note=row.get("note", ""),
    )


def curves(
    *names: str,
    by: str = "dataset variant",
    where: Callable[[PrintedNumber], bool] = lambda cell: True,
    **wanted: str | tuple[str, ...],
) -> dict[str, dict[int, float]]:
    """Value by evaluation length of each column of some tables.

    Args:
        names: of the tables.
        by: the fields that name a column.
        where: a condition on a cell.
        wanted: a field with the value or values it may have.

    >>> curves("sun2023_table2", by="dataset", encoding="LeX")["PG22"][8192]
    24.89
    """
    columns: dict[str, dict[int, float]] = {}
    allowed = {k: (v,) if isinstance(v, str) else v for k, v in wanted.items()}
    for c in itertools.chain(*map(table, names)):
        named = all(getattr(c, k) in v for k, v in allowed.items())
        if c.eval_length and c.value is not None and named and where(c):
            key = " ".join(filter(None, (getattr(c, k) for k in by.split())))
            columns.setdefault(key, {})[c.eval_length] = c.value
    return {key: dict(sorted(column.items())) for key, column in columns.items()}


def curve(name: str, encoding: str, variant: str = "", dataset: str = "PG22") -> dict[int, float]:
    """Value by evaluation length of one column.

    >>> curve("sun2023_table5", "RoPE", "attention=BCA")
    {2048: 26.37, 8192: 26.16}
    """
    columns = curves(name, by="dataset", encoding=encoding, variant=variant)
    return columns.get(dataset) or columns[""]


def printed_encoding(cell: PrintedNumber) -> Encoding:
    """The encoding that a printed row is about, with the heads of the paper's models.

    >>> printed_encoding(table("chi2023_table1")[0]).dialect
    'shift'
    """
    return _encoding(cell.paper, cell.encoding, cell.variant, cell.train_length)


@lru_cache(maxsize=64)
def _encoding(paper: str, printed: str, variants: str, trained: int | None) -> Encoding:
    variant = dict(p.split("=") for p in variants.split(";") if "=" in p)
    if printed == "Windowed" or variant.get("attention") == "sliding_window":
        return encoding("window", w=variant.get("w") or trained)
    name = NAMES[printed]
    blocks = variant.get("attention") == "BCA"
    if printed in ("LeX", "LeX Transformer (Ours)"):  # xPos with BCA, but for the ablation
        blocks = variant.get("bca") != "0"
    options: dict[str, Any] = {}
    if "delta" in variant:
        options = {"dialect": "shift", "delta": variant["delta"]}
    if "h" in variant:
        options = {"dialect": "equal", "slope_exponent": variant["h"]}
    if blocks:
        options["bca"] = (trained or TRAINED) // 2
    return encoding(name, heads=HEADS[paper] if CATALOGUE[name].per_head else None, **options)
