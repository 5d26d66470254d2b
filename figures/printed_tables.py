"""The printed tables of the papers, each row beside what farfield computes of its encoding.

Of a printed row of perplexities it is computed whether it extrapolates in the sense of
Definition 0.1 of [Q], one-sided, at a tolerance of 5 %; of its encoding the verdict on the
exp-series and the leak from the training length to the longest tested one. Nothing here was
measured by farfield: a measured analogue stands beside these numbers only where there are results.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from farfield.figures.exhibit import Data, Drawing, Exhibit
from farfield.numerics.resolution import attention_resolution
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import Encoding, encoding
from farfield.validation.measures.extrapolation import TOLERANCE
from farfield.validation.published import Cell, table

MARKS = {"dagger": "†", "star": "*", "yes": "✓", "no": "✗", "double_yes": "✓✓", "double_no": "✗✗"}
NAMES = {
    "ALiBi": "alibi", "Alibi": "alibi", "BLOOM / Alibi": "alibi", "KERPLE": "kerple_log",
    "Sandwich": "sandwich", "Sandwich_Smoothed": "sandwich_smoothed", "T5": "t5",
    "Rotary": "rope", "RoPE": "rope", "Roformer": "rope", "PaLM / Roformer (RoPE)": "rope",
    "LeX": "xpos", "XPos": "xpos", "LeX Transformer (Ours)": "xpos",
    "Sinusoidal": "sinusoidal", "Transformer": "sinusoidal", "Absolute": "sinusoidal",
    "Transformer (Sinusoidal)": "sinusoidal", "GPT-2 (Learnable)": "learned",
}  # fmt: skip
"""The catalogue's name of a printed one."""

HEADS = {"chi2023": 12, "sun2023": 16, "qin2024": 8}


def meant(cell: Cell) -> Encoding:
    """The encoding that a printed row is about, with the heads of the paper's models."""
    variant = dict(p.split("=") for p in cell.variant.split(";") if "=" in p)
    heads = HEADS[cell.paper]
    if cell.encoding == "Windowed":
        return encoding("window", w=variant["w"])
    if variant.get("attention") == "sliding_window":
        return encoding("window", w=cell.train_length)
    name = NAMES[cell.encoding]
    if name == "alibi" and "delta" in variant:
        return encoding("alibi", dialect="shift", delta=variant["delta"], heads=heads)
    if name == "alibi" and "h" in variant:
        return encoding("alibi", dialect="equal", slope_exponent=variant["h"], heads=heads)
    lex = cell.encoding.startswith("LeX") and variant.get("bca") != "0"
    bca = (cell.train_length or 1024) // 2 if lex or variant.get("attention") == "BCA" else None
    per_head = name in ("alibi", "sandwich", "sandwich_smoothed")
    return encoding(name, heads=heads if per_head else None, bca=bca)


@cache
def _verdict(subject: Encoding) -> str:
    return str(check_convergence(subject).verdict).replace("_", " ")


@cache
def _leak(subject: Encoding, trained: int, longest: int) -> float | None:
    """The leak in float64, the mean over heads; None where there is none."""
    if not subject.biases or subject.bca is not None or subject.free:
        return None
    b = np.exp(subject.bias(np.arange(longest)))
    return float((b[:, trained:].sum(axis=1) / b.sum(axis=1)).mean())


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return ""
    spread = "" if cell.std is None else f" ± {cell.std:g}"
    return cell.printed + spread + MARKS.get(cell.marker, "")


def _by_row(cells: tuple[Cell, ...]) -> dict[tuple[Any, ...], dict[int, Cell]]:
    found: dict[tuple[Any, ...], dict[int, Cell]] = {}
    for c in cells:
        key = (c.dataset, c.encoding, c.variant, c.train_length)
        found.setdefault(key, {})[c.eval_length or 0] = c
    return found


def _extrapolates(row: Mapping[int, Cell], trained: int) -> tuple[float | None, str]:
    """The greatest printed ratio beyond the first length scored at or beyond the training length,
    and whether it stays within the tolerance."""
    values = {n: c.value for n, c in row.items() if c.value is not None and n >= trained}
    if len(values) < 2:
        return None, ""
    first = values.pop(min(values))
    ratio = max(values.values()) / first
    return ratio, "yes" if ratio - 1 < TOLERANCE else "no"


def perplexities(name: str, remark: str = "") -> Drawing:
    """A printed table of perplexities beside verdicts and leaks."""
    cells = table(name)
    lengths = sorted({c.eval_length for c in cells if c.eval_length})
    rows = []
    agree = total = 0
    for (dataset, printed, variant, trained), row in _by_row(cells).items():
        subject = meant(next(iter(row.values())))
        ratio, kept = _extrapolates(row, trained)
        verdict = _verdict(subject)
        if kept and verdict in ("converges", "diverges"):
            total += 1
            agree += (verdict == "converges") == (kept == "yes")
        rows.append((
            dataset, printed, variant, trained, *(_shown(row.get(n)) for n in lengths),
            None if ratio is None else f"{ratio:.3f}", kept, verdict,
            _rounded(_leak(subject, trained, max(lengths))),
        ))  # fmt: skip
    columns = (
        "dataset", "encoding", "variant", "trained", *map(str, lengths), "greatest ratio",
        f"within {TOLERANCE:.0%}", "verdict", f"leak to {max(lengths)}",
    )  # fmt: skip
    caption = (
        "Perplexities as printed (± standard deviation; † Sandwich significantly better, * worse). "
        f"Computed from them: the greatest ratio to the first tested length that is not shorter "
        f"than the training length, and whether it stays within {TOLERANCE:.0%} (Definition 0.1 "
        "of Qin et al., one-sided). Computed from the formulas: the verdict (theorem) and the leak "
        "from the training length (float64, mean over heads)."
    )
    if total:
        caption += (
            f" Read as a forecast, verdict and print agree in {agree} of {total} rows with a "
            "verdict; the theorem itself does not speak of perplexity."
        )
    return Drawing(Data(columns, tuple(rows)), caption + remark)


def _rounded(x: float | None) -> str | None:
    return None if x is None else f"{x:.3g}"


def qin2024_table1() -> Drawing:
    """Relative inference time, beside the tokens that each mode encodes per scored token."""
    windows = (16, 32, 64, 128, 256, 512)
    work = {"Sliding Window": sum(windows) / len(windows)}
    rows = tuple(
        (c.encoding, c.printed, f"{work.get(c.encoding, 1):g}") for c in table("qin2024_table1")
    )
    return Drawing(
        Data(("method", "relative time, printed", "encoded tokens a scored token"), rows),
        "Relative average inference time as printed, beside the number of tokens that each mode "
        f"encodes to score one, averaged over windows {', '.join(map(str, windows))} (the caption "
        "prints 258 for 256). A count "
        "of work, not a time: a pass over many tokens takes less time a token.",
    )


def sun2023_table1() -> Drawing:
    """Marks of capability, beside scope and verdict."""
    rows = []
    by_name: dict[str, dict[str, Cell]] = {}
    for c in table("sun2023_table1"):
        by_name.setdefault(c.encoding, {})[c.metric] = c
    for name, marks in by_name.items():
        subject = meant(next(iter(marks.values())))
        rows.append((
            name, MARKS[marks["translation_invariance"].printed],
            MARKS[marks["length_extrapolation"].printed],
            subject.name + (" + BCA" if subject.bca else ""),
            "no" if subject.mechanism in ("sinusoidal", "learned_absolute") else "yes",
            _verdict(subject),
        ))  # fmt: skip
    return Drawing(
        Data(("model", "translation invariance, printed", "length extrapolation, printed",
              "encoding", "function of the distance", "verdict"), tuple(rows)),
        "Capability marks as printed, beside whether the logit depends on positions through their "
        "distance alone (of the encoding by itself; BCA blocks do not) and the verdict on the "
        "exp-series (theorem). LeX is xPos with blockwise causal attention: bounded support.",
    )  # fmt: skip


def sun2023_table3() -> Drawing:
    """Attention resolution as printed, beside that of the position part alone."""
    scale = "1/8"
    subjects = {
        "Alibi": (encoding("alibi", heads=16), None, "1"),
        "Roformer": (encoding("rope_surrogate"), None, scale),
        "LeX bca=1": (encoding("xpos_surrogate"), ("bca", 512), scale),
        "LeX bca=0": (encoding("xpos_surrogate"), None, scale),
    }
    rows = []
    for (_, name, variant, _), row in _by_row(table("sun2023_table3")).items():
        label = f"{name} {variant}".strip()
        ours: list[str | None] = [None, None]
        used, same = "", ""
        if label in subjects:
            subject, mask, used = subjects[label]
            # within the training length nothing is masked
            values = [_resolution(subject, n, used, mask if n > 1024 else None) for n in row]
            ours = [f"{v:.3g}" for v in values]
            print_ = [float(c.printed) for c in row.values()]
            same = "yes" if _direction(*print_) == _direction(*values) else "no"
        rows.append((label, *(c.printed for c in row.values()), *ours, used, same))
    return Drawing(
        Data(("model", "1024, printed", "2048, printed", "1024, position part",
              "2048, position part", "scale", "same direction"), tuple(rows)),
        "Attention resolution R [Eq. 4] as printed (trained models, mean over texts and layers), "
        "beside R of the position part alone: ALiBi's bias (mean of 16 heads), the surrogate g of "
        "RoPE and xPos (d = 64, sum of Eq. 10 divided by sqrt(d)), BCA with half = 512 at 2048 "
        "tokens. The value and even the order of R depend on the scale given to g, so only the "
        "direction from 1024 to 2048 compares. R as printed in Eq. 4 cannot exceed 1, the printed "
        "1.08 does.",
    )  # fmt: skip


def _direction(first: float, last: float) -> int:
    """1 if it rises, -1 if it falls, 0 if it changes by less than 1 %."""
    return 0 if abs(last / first - 1) < 0.01 else (1 if last > first else -1)


@cache
def _resolution(subject: Encoding, length: int, scale: str, mask: Any) -> float:
    value = attention_resolution(subject, length, scale=scale, mask=mask).value
    return float("nan") if value is None else value


def _perplexity_exhibit(paper: str, number: int, title: str, remark: str = "") -> Exhibit:
    draw = partial(perplexities, f"{paper}_table{number}", remark)
    return Exhibit(f"{paper}.table{number}", title, "published", draw)


EXHIBITS = (
    Exhibit("qin2024.table1", "Relative inference time", "published", qin2024_table1),
    Exhibit("sun2023.table1", "Position modelling with different capabilities", "published",
            sun2023_table1),
    _perplexity_exhibit("sun2023", 2, "Perplexity on PG22 and QMSum"),
    Exhibit("sun2023.table3", "Attention resolution", "published", sun2023_table3),
    _perplexity_exhibit("sun2023", 4, "Ablation of rotation and zeta",
                        " The row zeta = 0 is called RoPE in the print; by Eq. 8 to 10 RoPE is "
                        "zeta = 1."),
    _perplexity_exhibit("sun2023", 5, "Ablation of blockwise causal attention",
                        " The first printed length is 2048, twice the training length."),
    _perplexity_exhibit("sun2023", 6, "Perplexity on arXiv and NarrativeQA"),
    _perplexity_exhibit("chi2023", 1, "ALiBi shifted, with equal slopes, windows: ArXiv"),
    _perplexity_exhibit("chi2023", 2, "Failed cases fixed by longer training"),
    _perplexity_exhibit("chi2023", 3, "Comparison on three data sets"),
    _perplexity_exhibit("chi2023", 4, "ALiBi shifted, with equal slopes, windows: OpenWebText2"),
    _perplexity_exhibit("chi2023", 5, "Inference with a cache window of 2048",
                        " The cache bounds what is seen to 2048 keys; verdict and leak are those "
                        "of the encoding without it."),
)  # fmt: skip
