"""[C] Chi et al., Dissecting Transformer Length Extrapolation, ACL 2023: its claims and checks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy

from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.theorems import verify
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import alibi_slope, encoding
from farfield.theory.theorems import theorem
from farfield.validation.claims.claim import Data, Finding, Ledger
from farfield.validation.claims.results import finding_of
from farfield.validation.published import Cell, curve, keys, rows, select, table

LEDGER = Ledger("chi2023")
check = LEDGER.check

TRAINED, LAYERS, SETS = 512, 12, ("ArXiv", "OpenWebText2")
Cells = tuple[Cell, ...]


def _both() -> Data:
    """Tables 1 and 4: one model a column, on two datasets."""
    return {"cells": table("chi2023_table1") + table("chi2023_table4")}


def _row(cells: Any, dataset: str, **wanted: Any) -> dict[int, float]:
    return curve(tuple(cells), dataset=dataset, **wanted)


def _growth(values: Mapping[int, float], trained: int = TRAINED) -> float:
    """Largest perplexity beyond the training length over that at the training length."""
    return max(v for n, v in values.items() if n > trained) / values[trained]


# -- ALiBi and windows ----------------------------------------------------------------------------


@check(
    "eq3.slopes", "Eq. 3", "ALiBi's slopes for 12 heads are 2^{-8n/12}, n = 1 .. 12.",
    kind="symbolic identity", label="theorem", data={"heads": 12},
)  # fmt: skip
def _slopes(data: Data) -> Finding:
    heads = data["heads"]
    pairs = [
        (alibi_slope(h, heads), alibi_slope(h, heads, "geometric")) for h in range(1, heads + 1)
    ]
    powers = [
        h
        for h in (1, 2, 4, 8, 16, 32)
        if all(alibi_slope(k, h) == alibi_slope(k, h, "geometric") for k in range(1, h + 1))
    ]
    return Finding(
        all(sympy.simplify(a - b) == 0 for a, b in pairs),
        {"original rule, Eq. 3 (first four heads)": [(float(a), float(b)) for a, b in pairs[:4]],
         "equal for heads =": powers},
        "Eq. 3 is ALiBi's rule for powers of two only; for 12 heads the original takes the 8 "
        "slopes of 8 heads and 4 of 16.",
        powers == [1, 2, 4, 8, 16, 32],
    )  # fmt: skip


@check(
    "wR.reach", "Section 1 and 5",
    "w R is the maximum number of tokens that contribute in R layers with windows of w.",
    kind="proof", label="theorem", data={"reach": lambda w, layers: w * layers},
)  # fmt: skip
def _reach(data: Data) -> Finding:
    def reached(w: int, layers: int) -> int:
        size = w * layers + 3
        place = np.arange(size)
        seen = (place[:, None] >= place) & (place[:, None] - place < w)
        return int(np.linalg.matrix_power(seen.astype(object), layers)[-1].astype(bool).sum())

    found = {(w, r): (reached(w, r), data["reach"](w, r)) for w, r in ((2, 3), (5, 4), (8, 12))}
    return Finding(
        all(a == b for a, b in found.values()),
        {"tokens reached, as printed (w, R)": {str(k): v for k, v in found.items()}},
        "R (w - 1) + 1 tokens; w R is an upper bound that is not reached for R > 1.",
        all(a == r * (w - 1) + 1 for (w, r), (a, _) in found.items())
        and verify(theorem("layered-reach")).passed,
    )  # fmt: skip


@check(
    "wR.threshold", "Section 5",
    "The TRF of a window is covered by L_tr = 512 as long as w < 42.6.",
    kind="certified number", label="theorem",
    data={"reach": lambda w, layers: layers * (w - 1) + 1},
)  # fmt: skip
def _threshold(data: Data) -> Finding:
    widest = max(w for w in range(1, 600) if data["reach"](w, LAYERS) <= TRAINED)
    return Finding(
        widest == 42,
        {"widest covered window": widest, "512/12": TRAINED / LAYERS},
        "up to w = 43: 12 (43 - 1) + 1 = 505 tokens (and 512/12 = 42.67)",
        widest == 43,
    )  # fmt: skip


@check(
    "windows.w100", "Section 4.4", "Windowed attention extrapolates up to w = 100.",
    kind="printed tables", label="measured", data=lambda: {**_both(), "tolerance": 0.05},
)  # fmt: skip
def _windows(data: Data) -> Finding:
    growth = {
        f"{d} w={w}": _growth(_row(data["cells"], d, variant=f"w={w}"))
        for d in SETS for w in (40, 80, 100, 120, 160, 320)
    }  # fmt: skip
    kept = sorted(
        {int(k.partition("=")[2]) for k, v in growth.items() if v - 1 < data["tolerance"]}
    )
    return Finding(
        kept == [40, 80, 100], {"largest perplexity over that at 512": growth, "kept": kept}
    )


@check(
    "alibi.all-increase", "Section 4.4",
    "ALiBi does not extrapolate: its perplexities all increase beyond the training length.",
    kind="printed tables", label="measured", data=_both,
)  # fmt: skip
def _all_increase(data: Data) -> Finding:
    lower: dict[str, list[float]] = {}
    pairs = 0
    for d in SETS:
        variants = sorted({c.variant for c in data["cells"] if c.encoding == "ALiBi"})
        for v in variants:
            values = _row(data["cells"], d, variant=v)
            pairs += len(values) - 1
            lower |= {f"{d} {v} {n}": [x, values[512]] for n, x in values.items()
                      if n > 512 and x <= values[512]}  # fmt: skip
    return Finding(
        not lower, {"comparisons": pairs, "lower or equal (value, at 512)": lower},
        f"{pairs - len(lower)} of {pairs} increase; exceptions: delta = 2 at 1024 tokens and h = "
        f"0 on "
        "ArXiv.",
        0 < len(lower) < pairs / 4,
    )  # fmt: skip


@check(
    "tables14.columns", "Tables 1 and 4",
    "The columns delta = 6, delta = 8 and h = 8 show three different models.",
    kind="printed tables", label="measured",
    data=lambda: {**_both(), "columns": ("delta=6", "delta=8", "h=8")},
)  # fmt: skip
def _columns(data: Data) -> Finding:
    equal = []
    for a, b in itertools.combinations(data["columns"], 2):
        same = [
            _row(data["cells"], d, variant=a) == _row(data["cells"], d, variant=b) for d in SETS
        ]
        if all(same):
            equal.append(f"{a} and {b}")
    slopes = {
        "delta=6": sorted({float(alibi_slope(h, 12, "geometric")) / 2**6 for h in range(1, 13)})[
            -1
        ],
        "delta=8": sorted({float(alibi_slope(h, 12, "geometric")) / 2**8 for h in range(1, 13)})[
            -1
        ],
        "h=8": 2.0**-8,
    }
    return Finding(
        not equal, {"identical at every length on both datasets": equal, "largest slope": slopes},
        "Their slopes differ (up to fourfold) and their numbers do not, in 10 cells each; "
        "different models would hardly agree so: at least two of the columns look copied.",
    )  # fmt: skip


@check(
    "same-h", "Section 4.2",
    "With one slope for all heads, only large slopes (small h) extrapolate.",
    kind="printed tables", label="measured", data=_both,
)  # fmt: skip
def _same_h(data: Data) -> Finding:
    growth = {
        d: [_growth(_row(data["cells"], d, variant=f"h={h}")) for h in (0, 2, 4, 6, 8)]
        for d in SETS
    }
    return Finding(
        all(v == sorted(v) and v[0] < 1.05 and v[-1] > 2 for v in growth.values()),
        {"growth at h = 0, 2, 4, 6, 8": growth},
    )


@check(
    "windows.trade-off", "Section 4.3",
    "Small windows underperform at the training length, large ones diverge beyond it.",
    kind="printed tables", label="measured", data=_both,
)  # fmt: skip
def _trade_off(data: Data) -> Finding:
    at_home = {
        d: [_row(data["cells"], d, variant=f"w={w}")[512] for w in (40, 100, 320)] for d in SETS
    }
    beyond = {
        d: [_growth(_row(data["cells"], d, variant=f"w={w}")) for w in (40, 320)] for d in SETS
    }
    return Finding(
        all(v == sorted(v, reverse=True) for v in at_home.values())
        and all(a < 1.05 and b > 10 for a, b in beyond.values()),
        {"perplexity at 512, w = 40, 100, 320": at_home, "growth, w = 40, 320": beyond},
    )


@check(
    "plateau", "Section 5.1",
    "delta = -3 is stable from 1024 tokens on; the other shifts only from 2048.",
    kind="printed tables", label="measured",
    data=lambda: {"cells": table("chi2023_table1"), "tolerance": 0.02},
)  # fmt: skip
def _plateau(data: Data) -> Finding:
    def stable_from(values: dict[int, float]) -> int:
        lengths = sorted(values)
        return next(
            n for n in lengths
            if all(abs(values[m] / values[n] - 1) <= data["tolerance"] for m in lengths if m >= n)
        )  # fmt: skip

    found = {v: stable_from(_row(data["cells"], "ArXiv", variant=f"delta={v}"))
             for v in (-3, 0, 2, 4, 6, 8)}  # fmt: skip
    return Finding(
        found[-3] == 1024 and all(n == 2048 for v, n in found.items() if v != -3),
        {"stable within 2 % from": found},
    )


# -- receptive fields -----------------------------------------------------------------------------


@check(
    "erf.definition", "Section 5.1",
    "ERF = min{m | c_m > 0.99} with c_m the sum of s_n for n = m .. L is a number of recent "
    "tokens.",
    kind="symbolic identity", label="theorem",
    data={"shares": tuple(2.0**-k for k in range(1, 12)), "pick": min},
)  # fmt: skip
def _erf_definition(data: Data) -> Finding:
    """Shares nearest first; c_m sums from position m (1 = the first token) to the last."""
    s = np.array(data["shares"])[::-1] / sum(data["shares"])
    c = s[::-1].cumsum()[::-1]
    holds = [m for m in range(1, len(s) + 1) if c[m - 1] > 0.99]
    printed = data["pick"](holds)
    suffix = len(s) + 1 - max(holds)
    return Finding(
        len(s) + 1 - printed == suffix,
        {"c_m": [round(float(x), 4) for x in c], "as printed": printed, "shortest suffix": suffix,
         "why": "c_m falls as m grows and c_1 = 1, so the minimum is always the first position"},
        "the length of the shortest suffix that holds more than 0.99: L + 1 - max{m | c_m > 0.99}",
        suffix == int(np.searchsorted(s[::-1].cumsum(), 0.99, "right")) + 1,
    )  # fmt: skip


def _fields(data: Data) -> dict[str, tuple[int, bool]]:
    """Printed ERF by model of Figures 4 and 5, and whether it is below the training length."""
    found = {}
    for row in data["erf"]:
        if row["quantity"] == "ERF":
            value = int(row["value"])
            found[row["variant"]] = (value, row["relation"] == "<" and value <= TRAINED)
    return found


@check(
    "erf.coverage", "Section 5.1",
    "The models whose ERF the training length covers are those whose perplexity stays.",
    kind="printed tables", label="measured",
    data=lambda: {"erf": rows("chi2023_erf"), "cells": table("chi2023_table1"), "tolerance": 0.05},
)  # fmt: skip
def _coverage(data: Data) -> Finding:
    found = {
        v: (covered, round(_growth(_row(data["cells"], "ArXiv", variant=v)) - 1, 4))
        for v, (_, covered) in _fields(data).items()
    }
    wrong = [v for v, (covered, growth) in found.items() if covered != (growth < data["tolerance"])]
    return Finding(
        not wrong, {"covered, growth beyond 512": found, "exceptions": wrong,
                    "tolerance": data["tolerance"]},
        f"It fails for {', '.join(wrong)} at this tolerance.",
    )  # fmt: skip


@check(
    "erf.rank", "Section 5.1",
    "The further the ERF exceeds the training length, the larger the damage.",
    kind="printed tables", label="measured",
    data=lambda: {"erf": rows("chi2023_erf"), "cells": table("chi2023_table1")},
)  # fmt: skip
def _erf_rank(data: Data) -> Finding:
    growth = {v: _growth(_row(data["cells"], "ArXiv", variant=v)) for v in _fields(data)}
    fields = {v: field for v, (field, _) in _fields(data).items()}
    against = [
        f"{a} (ERF {fields[a]}, grows {growth[a]:.2f}-fold) and {b} (ERF {fields[b]}, "
        f"{growth[b]:.2f})"
        for a, b in itertools.permutations(fields, 2)
        if fields[a] < fields[b] and growth[a] > growth[b]
    ]
    return Finding(
        not against, {"pairs in the wrong order": len(against), "counterexamples": against[:4]},
        "Among the windows it does; ALiBi with delta = -3 has the smallest ERF of the shifts and "
        "grows more than delta = 0 and 2.",
        all(fields[a] <= fields[b] for a, b in itertools.combinations(
            sorted((v for v in fields if v[0] == "w"), key=lambda v: growth[v]), 2)),
    )  # fmt: skip


@check(
    "erf.alibi-covered", "Section 1 against Section 5.1",
    "The training length covers most of ALiBi's empirical receptive field.",
    kind="printed tables", label="measured", data=lambda: {"erf": rows("chi2023_erf")},
)  # fmt: skip
def _alibi_covered(data: Data) -> Finding:
    field, _ = _fields(data)["delta=0"]
    return Finding(
        field < 2 * TRAINED,
        {"ERF of ALiBi (delta = 0), printed": field, "training length": TRAINED},
        "Section 5.1 gives 2048 tokens, four times the training length (perhaps a ceiling: the "
        "whole context).",
    )  # fmt: skip


def _table_2(name: str) -> Callable[[], Data]:
    return lambda: {"cells": table("chi2023_table2"), "encoding": name}


def _stable(data: Data) -> Finding:
    values = {d: _row(data["cells"], d, encoding=data["encoding"]) for d in SETS}
    change = {d: max(v.values()) / min(v.values()) - 1 for d, v in values.items()}
    return Finding(
        max(change.values()) < 0.05, {"perplexity by length": values, "largest over least - "
                                                                      "1": change},
        "It jumps from 2048 to 4096 tokens (4.4 to 6.2, 15.2 to 19.8) and is stable only after.",
        all(abs(v[8192] / v[4096] - 1) < 0.05 for v in values.values()),
    )  # fmt: skip


for _encoding, _words in (("ALiBi", "ALiBi with delta = 6"), ("Windowed", "the window of 160")):
    check(
        f"table2.{_encoding.lower()}", "Section 5.2, Table 2",
        f"With a longer training length {_words} maintains a stable perplexity.",
        kind="printed tables", label="measured",
        data=_table_2(_encoding),
    )(_stable)  # fmt: skip


# -- Sandwich -------------------------------------------------------------------------------------


@check(
    "eq6.identity", "Section 6.1", "p_m . p_n = sum cos((m - n)/10000^{2i/d}).",
    kind="symbolic identity", label="theorem",
    data={"product": lambda a, b: sympy.sin(a) * sympy.sin(b) + sympy.cos(a) * sympy.cos(b)},
)  # fmt: skip
def _eq_6(data: Data) -> Finding:
    a, b = sympy.symbols("a b", real=True)
    defect = sympy.simplify(data["product"](a, b) - sympy.expand_trig(sympy.cos(a - b)))
    return Finding(defect == 0, {"one plane, left minus right": defect})


@check(
    "eq6.maximum", "Section 6.1", "The largest value of p_m . p_n is d/2, at m = n.",
    kind="proof", label="theorem",
    data={"waves": lambda n: np.cos(n[:, None] / 10_000.0 ** (np.arange(1, 65) / 64))},
)  # fmt: skip
def _maximum(data: Data) -> Finding:
    values = data["waves"](np.arange(0, 20_000.0)).sum(1)
    return Finding(
        int(values.argmax()) == 0 and math.isclose(values[0], 64) and values[1:].max() < 64,
        {
            "at 0": values[0],
            "largest beyond, n < 20000": values[1:].max(),
            "why": "each cosine is at most 1, and cos(n/10000) < 1 for 0 < n < 20000 pi",
        },
    )


@check(
    "appendixE.constant", "Eq. 6 against Appendix E",
    "Leaving out the constant d/2 of Eq. 6 does not change the attention.",
    kind="proof", label="theorem", data={"shift": -8.0},
)  # fmt: skip
def _constant(data: Data) -> Finding:
    random = np.random.default_rng(0)
    logits, bias = random.normal(size=(2, 5, 30))
    weights = [np.exp(logits + bias), np.exp(logits + bias + data["shift"])]
    if np.ndim(data["shift"]):
        weights[1] = np.exp(logits + bias + np.asarray(data["shift"]))
    first, second = (w / w.sum(1, keepdims=True) for w in weights)
    gap = float(np.abs(first - second).max())
    return Finding(gap < 1e-12, {"largest change of a weight": gap, "shift": "constant in a head"})


@check(
    "appendixE.index", "Eq. 6 against Appendix E", "The code of Appendix E computes Eq. 6.",
    kind="symbolic identity", label="theorem", data={"code": "appendix", "equation": "equation"},
)  # fmt: skip
def _appendix_index(data: Data) -> Finding:
    at = np.arange(0, 2000)
    code, printed = (
        encoding("sandwich", heads=1, dialect=data[k]).bias(at)[0] for k in ("code", "equation")
    )
    gap = code - printed
    change = (np.cos(at) - np.cos(at / 10_000.0)) / 8
    return Finding(
        float(np.ptp(gap)) < 1e-9,
        {"largest minus least difference of the biases (c = 8)": float(np.ptp(gap)),
         "counterexample": f"n = 3: {code[3]:.6f} against {printed[3]:.6f}"},
        "The code sums i = 0 .. d/2 - 1, Eq. 6 i = 1 .. d/2; they differ by (cos n - "
        "cos(n/10000))/h, which no constant absorbs.",
        bool(np.allclose(gap, change, atol=1e-9)),
    )  # fmt: skip


def _fit(dialect: str, points: int) -> tuple[float, float]:
    """Least squares of Sandwich at c = 8 by slope log(1 + n) + constant on n < points."""
    n = np.arange(points)
    bias = encoding("sandwich", heads=1, dialect=dialect).bias(n)[0]
    columns = np.stack([np.log1p(n), np.ones(points)], axis=1)
    slope, constant = np.linalg.lstsq(columns, bias, rcond=None)[0]
    return float(slope), float(constant)


def _near(fit: tuple[float, float], printed: tuple[float, float]) -> bool:
    return all(abs(a - b) <= 0.01 for a, b in zip(fit, printed, strict=True))


@check(
    "log-fit.points", "footnote 7", "The printed fit uses the most recent 50 points.",
    kind="certified number", label="approximate",
    data={"points": 50, "printed": (-0.825, -0.8), "dialects": ("appendix", "equation")},
)  # fmt: skip
def _fit_points(data: Data) -> Finding:
    fits = {d: _fit(d, data["points"]) for d in data["dialects"]}
    whole = {d: _fit(d, 8192) for d in data["dialects"]}
    return Finding(
        any(_near(f, data["printed"]) for f in fits.values()),
        {"slope, constant on these points": fits, "on all 8192 points": whole,
         "printed": data["printed"]},
        "All 8192 points, with the index range of Appendix E: -0.832 log(1+n) - 0.794; 50 points "
        "give about -1.02 log(1+n) - 0.02.",
        any(_near(f, data["printed"]) for f in whole.values()),
    )  # fmt: skip


@check(
    "log-fit.values", "Section 6.2, Figure 9",
    "The least-squares logarithm for Eq. 6 at h = 8 is -0.825 log(1+n) - 0.8 (to 0.01, m = 8192).",
    kind="certified number", label="approximate",
    data={"dialect": "appendix", "printed": (-0.825, -0.8)},
)  # fmt: skip
def _fit_values(data: Data) -> Finding:
    fit = _fit(data["dialect"], 8192)
    other = _fit("equation", 8192)
    return Finding(
        _near(fit, data["printed"]),
        {"fit": fit, "with the index range of Eq. 6": other, "printed": data["printed"]},
    )


@check(
    "kerple.case", "Section 6.3", "Sandwich is KERPLE with r1 = 0.825, r2 = 1.",
    kind="proof", label="theorem",
    data={"bias": "sandwich", "options": {"heads": 1}, "slope": 0.825},
)  # fmt: skip
def _kerple_case(data: Data) -> Finding:
    slope = data["slope"]
    n = np.arange(0, 40_000)
    kerple = -slope * np.log1p(n)
    exact = encoding(data["bias"], **data["options"]).bias(n)[0]
    smoothed = encoding("sandwich_smoothed", heads=1).bias(n)[0]
    gap = float(np.ptp(exact - kerple))
    series = check_convergence("-r1*log(1+r2*n)").at(r1=str(slope), r2=1)
    return Finding(
        gap < 1e-9,
        {
            "Sandwich minus KERPLE, largest minus least over n < 40000": gap,
            "the same for the fitted curve": float(np.ptp(smoothed - kerple)),
            "series at these parameters converges": series,
        },
        "The fitted curve at h = 8 is (its constant cancels in the softmax), and its series "
        "diverges; Sandwich itself is bounded and no logarithm.",
        float(np.ptp(smoothed - kerple)) < 1e-9 and series is False,
    )


@check(
    "d-bar", "Section 6.1, Figure 10", "A larger d-bar makes a stronger window.",
    kind="certified number", label="certified",
    data={"sizes": (32, 64, 128, 256), "eps": "1/10", "length": 1024},
)  # fmt: skip
def _d_bar(data: Data) -> Finding:
    fields = [
        theoretical_receptive_field(
            "sandwich", data["eps"], length=data["length"], d_bar=size, heads=1
        ).tokens
        for size in data["sizes"]
    ]
    return Finding(
        all(b < a for a, b in itertools.pairwise(fields)),
        {"finite-row TRF(1/10), 1024 keys": dict(zip(data["sizes"], fields, strict=True))},
    )


# -- Table 3 --------------------------------------------------------------------------------------

ALL_SETS = ("OpenWebText2", "ArXiv", "GitHub")


def _table_3() -> Data:
    return {"cells": table("chi2023_table3")}


def _three(cells: Any, dataset: str, encoding_name: str) -> dict[int, float]:
    return _row(cells, dataset, encoding=encoding_name)


@check(
    "table3.marks", "Table 3",
    "A dagger stands where Sandwich's mean is better, a star where it is worse.",
    kind="printed tables", label="measured", data=_table_3,
)  # fmt: skip
def _marks(data: Data) -> Finding:
    wrong, marked = {}, 0
    for c in data["cells"]:
        if c.marker:
            marked += 1
            sandwich = _three(data["cells"], c.dataset, "Sandwich")[c.eval_length]
            if (c.marker == "dagger") != (sandwich < c.value):
                wrong[f"{c.dataset} {c.encoding} {c.eval_length}"] = (
                    f"{c.marker} at {c.value}, Sandwich {sandwich}"
                )
    return Finding(
        not wrong, {"marked cells": marked, "contradicted": wrong},
        f"{marked - len(wrong)} of {marked} agree; {', '.join(wrong) or 'none'} should be a star.",
        len(wrong) == 1,
    )  # fmt: skip


@check(
    "table3.delta0", "Tables 1 and 4 against Table 3",
    "The columns delta = 0 and ALiBi are the same model: their perplexities agree within two "
    "standard deviations.",
    kind="printed tables", label="measured",
    data=lambda: {"single": _both()["cells"], "cells": table("chi2023_table3")},
)  # fmt: skip
def _delta_0(data: Data) -> Finding:
    z = {}
    for d in SETS:
        single = _row(data["single"], d, variant="delta=0")
        for c in select(data["cells"], dataset=d, encoding="ALiBi"):
            assert c.value is not None and c.std is not None and c.eval_length is not None
            z[f"{d} {c.eval_length}"] = round((single[c.eval_length] - c.value) / c.std, 2)
    return Finding(
        max(map(abs, z.values())) < 2,
        {
            "(Table 1 or 4 minus Table 3) over its std": z,
            "sign": "above on ArXiv, below on OpenWebText2, at every length",
        },
    )


@check(
    "table3.sandwich-best", "Section 6.2",
    "Beyond the training length Sandwich is better than ALiBi, Sinusoidal and Rotary on ArXiv and "
    "GitHub.",
    kind="printed tables", label="measured", data=_table_3,
)  # fmt: skip
def _sandwich_best(data: Data) -> Finding:
    against = [
        f"{d} {b} {n}"
        for d in ("ArXiv", "GitHub") for b in ("ALiBi", "Sinusoidal", "Rotary")
        for n, v in _three(data["cells"], d, b).items()
        if n > TRAINED and v <= _three(data["cells"], d, "Sandwich")[n]
    ]  # fmt: skip
    return Finding(not against, {"comparisons": 24, "exceptions": against})


@check(
    "table3.marginal", "Section 6.2",
    "On OpenWebText2 Sandwich is worse than ALiBi only from 4096 tokens on, and marginally (6 %).",
    kind="printed tables", label="measured", data=_table_3,
)  # fmt: skip
def _marginal(data: Data) -> Finding:
    sandwich, alibi = (_three(data["cells"], "OpenWebText2", k) for k in ("Sandwich", "ALiBi"))
    ratio = {n: sandwich[n] / alibi[n] for n in sandwich if n > TRAINED}
    return Finding(
        all((r > 1) == (n >= 4096) and r < 1.06 for n, r in ratio.items()),
        {"Sandwich over ALiBi": ratio},
    )


@check(
    "table3.beyond", "Section 6.2",
    "Sandwich reaches its lowest perplexity beyond the training length.",
    kind="printed tables", label="measured", data=_table_3,
)  # fmt: skip
def _beyond(data: Data) -> Finding:
    best = {}
    for d in ALL_SETS:
        values = _three(data["cells"], d, "Sandwich")
        best[d] = min(values, key=lambda n: values[n])
    return Finding(
        all(n > TRAINED for n in best.values()), {"length of the lowest perplexity": best}
    )


@check(
    "table3.learned", "Section 6.2",
    "Models with learned parameters (KERPLE, T5) have lower perplexities on the three datasets.",
    kind="printed tables", label="measured", data=_table_3,
)  # fmt: skip
def _learned(data: Data) -> Finding:
    higher: dict[str, list[str]] = {"KERPLE": [], "T5": []}
    for name, d in itertools.product(higher, ALL_SETS):
        sandwich = _three(data["cells"], d, "Sandwich")
        higher[name] += [
            f"{d} {n}" for n, v in _three(data["cells"], d, name).items() if v > sandwich[n]
        ]
    return Finding(
        not any(higher.values()), {"higher than Sandwich": higher},
        "KERPLE does in every cell; T5 does not at 4096 and 8192 tokens.",
        not higher["KERPLE"] and all(k.split()[1] in ("4096", "8192") for k in higher["T5"]),
    )  # fmt: skip


@check(
    "softmax-shift", "Section 6.3",
    "Softmax is shift-invariant, so a constant in the bias is absorbed.",
    kind="symbolic identity", label="theorem", data={"shift": lambda x, c: x + c},
)  # fmt: skip
def _softmax_shift(data: Data) -> Finding:
    x, y, z, c = sympy.symbols("x y z c", real=True)

    def share(*scores: Any) -> Any:
        return sympy.exp(scores[0]) / sum(map(sympy.exp, scores))

    shifted = share(*(data["shift"](s, c) for s in (x, y, z)))
    return Finding(
        sympy.simplify(shifted - share(x, y, z)) == 0,
        {"softmax(s + c) - softmax(s)": sympy.simplify(shifted - share(x, y, z))},
    )


# -- appendices -----------------------------------------------------------------------------------


@check(
    "table5.sandwich-worse", "Appendix B",
    "With a cache of 2048 tokens Sandwich at 4096 is a bit worse than in Table 3.",
    kind="printed tables", label="measured",
    data=lambda: {"cached": table("chi2023_table5"), "cells": table("chi2023_table3")},
)  # fmt: skip
def _cached(data: Data) -> Finding:
    gap = {
        d: round(_row(data["cached"], d, encoding="Sandwich")[4096]
                 - _three(data["cells"], d, "Sandwich")[4096], 3)
        for d in ALL_SETS
    }  # fmt: skip
    later = {
        d: round(_row(data["cached"], d, encoding="Sandwich")[8192]
                 - _three(data["cells"], d, "Sandwich")[8192], 3)
        for d in ALL_SETS
    }  # fmt: skip
    return Finding(
        all(v > 0 for v in gap.values()), {"cached minus full at 4096": gap, "at 8192": later}
    )


@check(
    "table5.alibi", "Appendix B",
    "A cache of 2048 tokens does not change ALiBi's perplexity (1 %).",
    kind="printed tables", label="measured",
    data=lambda: {"cached": table("chi2023_table5"), "cells": table("chi2023_table3")},
)  # fmt: skip
def _cached_alibi(data: Data) -> Finding:
    ratio = {
        f"{d} {n}": _row(data["cached"], d, encoding="ALiBi")[n]
        / _three(data["cells"], d, "ALiBi")[n]
        for d in ALL_SETS for n in (4096, 8192)
    }  # fmt: skip
    return Finding(all(abs(r - 1) < 0.01 for r in ratio.values()), {"cached over full": ratio})


@check(
    "appendixB.constant", "Appendix B",
    "ALiBi's perplexities stay constant from 2048 tokens on (0.5 %).",
    kind="printed tables", label="measured", data=_both,
)  # fmt: skip
def _constant_from(data: Data) -> Finding:
    change = {}
    for d in SETS:
        values = _row(data["cells"], d, variant="delta=0")
        tail = [v for n, v in values.items() if n >= 2048]
        change[d] = max(tail) / min(tail) - 1
    return Finding(max(change.values()) < 0.005, {"largest over least - 1": change})


def _order(cost: Callable[[int, int], int], window: int) -> tuple[float, float]:
    """Exponents of the length and of the window in a cost, from doubling both."""
    length = 1 << 14
    by_length = math.log2(cost(2 * length, window) / cost(length, window))
    by_window = math.log2(cost(length, 2 * window) / cost(length, window))
    return round(by_length, 2), round(by_window, 2)


def _cached_scores(length: int, window: int) -> int:
    """Scores of generating `length` tokens with a cache of `window` keys."""
    return sum(min(i, window) for i in range(1, length + 1))


def _encoded_again(length: int, window: int) -> int:
    """The same if the window is encoded again for every token after the first window."""
    first = window * (window + 1) // 2
    return first + (length - window) * first


@check(
    "appendixB.cost", "Appendix B", "Generation with a cache of w tokens costs O(w L), not O(L^2).",
    kind="proof", label="theorem", data={"cost": _cached_scores},
)  # fmt: skip
def _cost(data: Data) -> Finding:
    found = _order(data["cost"], 64)
    return Finding(
        abs(found[0] - 1) < 0.05 and abs(found[1] - 1) < 0.05,
        {"exponents of L and w": found, "scores at L = 16384, w = 64": data["cost"](1 << 14, 64)},
    )


@check(
    "appendixB.absolute", "Appendix B",
    "An absolute encoding costs O(w^2 L), as the window is encoded again.",
    kind="proof", label="theorem", data={"cost": _encoded_again},
)  # fmt: skip
def _absolute_cost(data: Data) -> Finding:
    found = _order(data["cost"], 64)
    return Finding(
        abs(found[0] - 1) < 0.05 and abs(found[1] - 2) < 0.05, {"exponents of L and w": found}
    )


@check(
    "table7.hidden", "Table 7 against Section 3.1", "The hidden size is 64.",
    kind="printed tables", label="measured",
    data=lambda: {"table": keys("chi2023_table7"), "d": 768, "heads": 12},
)  # fmt: skip
def _hidden(data: Data) -> Finding:
    printed = int(data["table"]["Hidden Size"])
    return Finding(
        printed == data["d"], {"Table 7": printed, "Section 3.1": data["d"]},
        "768; 64 = 768/12 is the size of a head.", printed * data["heads"] == data["d"],
    )  # fmt: skip


@check(
    "table7.parameters", "Table 7", "The model has 162M trainable parameters.",
    kind="certified number", label="approximate",
    data={"width": 768, "layers": 12, "vocabulary": 50_304, "printed": 162},
)  # fmt: skip
def _parameters(data: Data) -> Finding:
    d = data["width"]
    blocks = data["layers"] * (12 * d * d + 13 * d) + 2 * d
    millions = (blocks + 2 * data["vocabulary"] * d) / 1e6
    return Finding(
        abs(millions - data["printed"]) < 1,
        {
            "millions, input and output embeddings apart": millions,
            "vocabulary": f"{data['vocabulary']}, the padded GPT-2 vocabulary (assumed)",
        },
    )


# -- experiments ----------------------------------------------------------------------------------


@check(
    "erf.experiment", "Section 5.1",
    "Models whose gradient ERF exceeds the training length lose more perplexity beyond it.",
    kind="experiment", label="measured", data=lambda: {"study": finding_of("gradient_field")},
)  # fmt: skip
def _erf_experiment(data: Data) -> Finding:
    from scipy.stats import spearmanr

    found = data["study"]
    if len({r["tokens"] for r in found}) < 3 or len({r["ratio"] for r in found}) < 3:
        return Finding(None, {}, reason="fewer than three models to rank")
    rank = float(spearmanr([r["tokens"] for r in found], [r["ratio"] for r in found]).statistic)
    mass = float(spearmanr([r["mass"] for r in found], [-r["ratio"] for r in found]).statistic)
    return Finding(
        rank > 0.5,
        {"Spearman rank of gradient ERF and loss of perplexity": rank,
         "of gradient mass in the training length": mass, "models": len(found),
         "setting": sorted({r["setting"] for r in found}), "seeds": max(r["seeds"] for r in found),
         "results": sorted({r["source"] for r in found})},
        "The ranks do not agree.",
    )  # fmt: skip


@check(
    "sandwich.mass", "Section 6.2, Figure 11",
    "Sandwich has about 60 % of its gradient on the most recent training length.",
    kind="experiment", label="measured", data=lambda: {"study": finding_of("gradient_field")},
)  # fmt: skip
def _sandwich_mass(data: Data) -> Finding:
    found = [r for r in data["study"] if r["name"].startswith("sandwich")
             and "smoothed" not in r["name"]]  # fmt: skip
    if not found:
        return Finding(None, {}, reason="the results hold no model with Sandwich")
    mass = found[0]["mass"]
    return Finding(
        0.5 <= mass <= 0.7,
        {"share": mass, "training length": found[0]["training_length"],
         "seeds": found[0]["seeds"],
         "results": sorted({r["source"] for r in found}), "note": "small models, other data"},
        f"{mass:.2f} in these models.",
    )  # fmt: skip
