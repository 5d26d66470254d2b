"""What the findings say, counted again from the committed files: a function a finding.

Each function takes the root of the repository and returns the numbers of its record as text, by
name. It counts what the files hold and knows nothing of the sentences.

Intervals: `student` is over models that differ in their seed, or over groups or rows of text;
`resampled` draws whole families of encodings, or models, again.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from polars import DataFrame, col

from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import encoding
from farfield.validation import forecast
from farfield.validation.papers.claim import Verdict
from farfield.validation.papers.ledger import by_sentence, claims, counted, plain_sentences
from farfield.validation.prior import Prior, weights
from farfield.validation.results import LAST, TOLERANCE, results

LINE = math.log(1 + TOLERANCE)
"""The log ratio up to which perplexity holds."""
USUAL = {"trained": 64, "layers": 4, "width": 128, "steps": 1000, "mask": "", "protocol": LAST}
LONG = {"steps": 4000}
EPS = 1 / 100
"""The share outside a field."""
DRAWS = 10_000
WINDOW, GRAFT = "window 64", "graft -4 log(n/16), window 64"
BREAKS = 0.1
"""The log ratio above which a model is said to break."""


# -- intervals ------------------------------------------------------------------------------------


def student(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half of its 95 % interval."""
    from scipy.stats import t

    n = len(values)
    half = float(np.std(values, ddof=1)) / math.sqrt(n) * float(t.ppf(0.975, n - 1))
    return float(np.mean(values)), half


def resampled(values: Sequence[float], of: Sequence[Any] | None = None) -> tuple[float, float]:
    """The 95 % interval of a mean when whole groups, `of`, are drawn again; values if None."""
    groups: dict[Any, list[float]] = {}
    for k, value in enumerate(values):
        groups.setdefault(k if of is None else of[k], []).append(value)
    sums = np.array([sum(own) for own in groups.values()])
    sizes = np.array([len(own) for own in groups.values()])
    drawn = np.random.default_rng(0).integers(len(sums), size=(DRAWS, len(sums)))
    low, high = np.quantile(sums[drawn].sum(1) / sizes[drawn].sum(1), (0.025, 0.975))
    return float(low), float(high)


def percents(values: tuple[float, float]) -> str:
    """An interval of shares."""
    return f"{100 * values[0]:.0f} to {100 * values[1]:.0f} %"


# -- the line between holding and not -------------------------------------------------------------


def later_cases() -> DataFrame:
    """The cases of the five registrations after the first: of each its largest log ratio."""
    case = ("experiment", "label", "mask", *forecast.CASE[2:8], "family", "formula")
    lines = results().filter(
        col("order_loss").is_not_null(), col("experiment") != "first", protocol=LAST
    )
    means = lines.group_by(*case, "length").agg(col("ratio").log().mean().alias("loss"))
    return means.group_by(*case).agg(col("loss").max()).sort(case)


def converges(formula: str, mask: str) -> bool:
    """Whether every head converges; a window at inference bounds the support."""
    return bool(mask) or check_convergence(encoding(formula)).verdict == "converges"


def fields(case: Mapping[str, Any]) -> np.ndarray:
    """The finite-row TRF(1/100) of each head at the tested length, over the training length."""
    bias = encoding(case["formula"]).bias(np.arange(case["length"]))
    if case["mask"]:
        bias[:, int(case["mask"].removeprefix("window ")) :] = -np.inf
    inside = np.cumsum(weights(bias), axis=1)
    tokens: np.ndarray = 1 + (inside <= 1 - EPS + 1e-12).sum(axis=1)
    return tokens / case["trained"]


def threshold(quantity: np.ndarray, holds: np.ndarray) -> float:
    """The least of the thresholds between two quantities that are right most often."""
    own = np.unique(quantity)
    between = np.concatenate([own[:1] / 2, (own[1:] + own[:-1]) / 2, own[-1:] * 2])
    return float(between[np.argmax([((quantity <= t) == holds).sum() for t in between])])


@functools.cache
def cases() -> tuple[dict[str, Any], ...]:
    """The cases on which the nearest trained models are tested, at their longest length: with
    `holds`, the two fields, and what each rule says without the family of the case."""
    known = forecast.measured().filter(mechanism="bias")
    longest = known.sort("times").unique(forecast.CASE, keep="last", maintain_order=True)
    every = [dict(case) for case in longest.iter_rows(named=True)]
    for case in every:
        own = fields(case)
        case |= {
            "holds": case["ratio"] < 1 + TOLERANCE,
            "widest": own.max(),
            "narrowest": own.min(),
        }
        case["verdict"] = converges(case["formula"], case["mask"])
        others = known.filter(col("family") != case["family"])
        shape = {name: case[name] for name in forecast.DOUBLINGS}
        prior = Prior(*(case[name] for name in Prior._fields))
        near = forecast.with_distance(others, prior, **shape).head(forecast.NEAREST)
        shares = 1 / (near["distance"].to_numpy() + forecast.SOFT)
        case["nearest"] = np.average(near["ratio"].log().to_numpy(), weights=shares) < LINE
        case["near"] = near["distance"][0] <= forecast.NEAR
    holds = np.array([case["holds"] for case in every])
    family = np.array([case["family"] for case in every])
    for case in every:
        others_ = family != case["family"]
        case["constant"] = bool(holds[others_].mean() > 0.5)
        for rule in ("widest", "narrowest"):
            quantity = np.array([other[rule] for other in every])
            case[f"{rule} rule"] = case[rule] <= threshold(quantity[others_], holds[others_])
    return tuple(every)


def _right(rule: str, among: Callable[[Mapping[str, Any]], bool] = lambda case: True) -> list[bool]:
    return [bool(case[rule] == case["holds"]) for case in cases() if among(case)]


def convergence(root: Path) -> dict[str, str]:
    """Of the later cases: how often the verdict is right, one constant answer, the better constant
    of each registration; of all cases: the field beside the training rows."""
    later = later_cases()
    holds = (later["loss"] < LINE).to_list()
    verdict = [converges(f, m) for f, m in zip(later["formula"], later["mask"], strict=True)]
    right = [v == h for v, h in zip(verdict, holds, strict=True)]
    by: dict[str, list[bool]] = {}
    for name, held in zip(later["experiment"], holds, strict=True):
        by.setdefault(name, []).append(held)
    field = _right("widest rule")
    families = [case["family"] for case in cases()]
    return {
        "right": str(sum(right)),
        "cases": str(len(right)),
        "families": str(later["family"].n_unique()),
        "interval": percents(resampled(right, later["family"].to_list())),
        "always": str(sum(holds)),
        "better": str(sum(max(sum(own), len(own) - sum(own)) for own in by.values())),
        "registrations": str(len(by)),
        "field": str(sum(field)),
        "field cases": str(len(field)),
        "field families": str(len({*families})),
        "field interval": percents(resampled(field, families)),
        "narrowest": str(sum(_right("narrowest rule"))),
        "verdict": str(sum(_right("verdict"))),
        "nearest": str(sum(_right("nearest"))),
        "constant": str(sum(_right("constant"))),
    }


def nearest(root: Path) -> dict[str, str]:
    """The nearest trained models, each case without its own family."""
    right, near = _right("nearest"), _right("nearest", lambda case: case["near"])
    families = [case["family"] for case in cases()]
    return {
        "right": str(sum(right)),
        "cases": str(len(right)),
        "families": str(len({*families})),
        "interval": percents(resampled(right, families)),
        "near": str(sum(near)),
        "near cases": str(len(near)),
        "constant": str(sum(_right("constant"))),
    }


# -- one head, shapes, longer training ------------------------------------------------------------


def models(label: str, length: int = 1024, **other: Any) -> DataFrame:
    """The last tokens of the models of a label at a length, a line a seed."""
    return results().filter(label=label, length=length, **{**USUAL, **other}).sort("seed")


def grown(label: str, **other: Any) -> str:
    """The ratio of perplexity at 16 times the training length, the geometric mean."""
    return f"{math.exp(np.mean(models(label, **other)['ratio'].log().to_numpy())):.2f}"


def spread(label: str, **other: Any) -> str:
    """Its 95 % interval over seeds; of one model that over its targets."""
    lines = models(label, **other)
    if len(lines) == 1:
        return f"{lines['low'][0]:.2f} to {lines['high'][0]:.2f} over targets"
    mean, half = student(lines["ratio"].log().to_list())
    return f"{math.exp(mean - half):.2f} to {math.exp(mean + half):.2f}"


def nats(label: str, length: int = 1024, **other: Any) -> str:
    """The level: mean loss in nats a byte."""
    return f"{np.mean(models(label, length, **other)['nats'].to_numpy()):.2f}"


def count(label: str, **other: Any) -> str:
    """How many models."""
    return str(models(label, **other)["seed"].n_unique())


def above(label: str, length: int) -> str:
    """By how much the perplexity of a label is above that of ALiBi with the same seeds, with its
    interval."""
    own, alibi = models(label, length), models("alibi", length, experiment="first")
    both = own.join(alibi, on="seed")
    mean, half = student((both["nats"] - both["nats_right"]).to_list())
    low, high = (100 * math.expm1(mean + sign * half) for sign in (-1, 1))
    return f"{100 * math.expm1(mean):.0f} % ({low:.0f} to {high:.0f})"


def local_head(root: Path) -> dict[str, str]:
    """One local head among eight."""
    one = "1 head 1/4"
    return {
        "none": grown("nope"),
        "none spread": spread("nope"),
        "one": grown(one),
        "spread": spread(one),
        "models": count(one),
        "later": grown(one, **LONG),
        "later spread": spread(one, **LONG),
        "later models": count(one, **LONG),
        "above home": above(one, 64),
        "above far": above(one, 1024),
        "nats": nats(one),
        "alibi": nats("alibi", experiment="first"),
        "alibi ratio": grown("alibi", experiment="first"),
        "none nats": nats("nope"),
        "flat": grown("1 head 1/16"),
        "flat spread": spread("1 head 1/16"),
    }


SHORT = {"ALiBi": "alibi", "one head": "1 head 1/4", "slope": "slope 1/32", "no bias": "nope"}
LONGER = {"ALiBi": "ALiBi", "one head": "1 head 1/4", "slope": "slope 1/32", "no bias": "no bias"}


def longer_training(root: Path) -> dict[str, str]:
    """Levels on rows of 1,024 and ratios after 1,000 and 4,000 steps."""
    found: dict[str, str] = {}
    for name, label in SHORT.items():
        first: dict[str, Any] = {"experiment": "first"} if label in ("alibi", "nope") else {}
        found |= {
            f"{name} before": nats(label, **first),
            f"{name} after": nats(LONGER[name], **LONG),
            f"{name} grown before": grown(label, **first),
            f"{name} grown after": grown(LONGER[name], **LONG),
            f"{name} models before": count(label, **first),
            f"{name} models": count(LONGER[name], **LONG),
            f"{name} spread": spread(LONGER[name], **LONG),
        }
        change = float(found[f"{name} after"]) - float(found[f"{name} before"])
        found[f"{name} change"] = f"{100 * math.expm1(change):+.0f} %"
    before = _gap(models("nope", 64, experiment="first"), models("alibi", 64, experiment="first"))
    after = _gap(models("no bias", 64, **LONG), models("ALiBi", 64, **LONG))
    found |= {"gap before": before[0], "gap before spread": before[1]}
    return found | {"gap after": after[0], "gap after spread": after[1]}


def _gap(one: DataFrame, other: DataFrame) -> tuple[str, str]:
    """By how many nats one is above another, paired by seed, and the 95 % interval."""
    both = one.join(other, on="seed")
    mean, half = student((both["nats"] - both["nats_right"]).to_list())
    return f"{mean:.2f}", f"{mean - half:.2f} to {mean + half:.2f}"


SHAPES = {
    "ALiBi": "alibi",
    "KERPLE": "kerple_log",
    "window": "window 32",
    "log": "example1",
    "slope": "alibi equal 6",
    "no bias": "nope",
    "T5": "t5",
    "sinusoidal": "sinusoidal",
    "RoPE": "rope",
}


def shapes(root: Path) -> dict[str, str]:
    """Ratios and levels of biases, and of two depths of a window."""
    found: dict[str, str] = {}
    for name, label in SHAPES.items():
        own: dict[str, Any] = {"experiment": models(label)["experiment"][0]}
        found |= {
            name: grown(label, **own),
            f"{name} spread": spread(label, **own),
            f"{name} nats": nats(label, **own),
            f"{name} home": nats(label, 64, **own),
            f"{name} models": count(label, **own),
        }
    for layers in (2, 8):
        found[f"{layers} layers"] = grown("window 32", layers=layers)
        found[f"{layers} layers spread"] = spread("window 32", layers=layers)
        found[f"{layers} layers models"] = count("window 32", layers=layers)
    found["floor"] = grown("power 3 to a floor of 7")
    found["floor spread"] = spread("power 3 to a floor of 7")
    found["floor nats"] = nats("power 3 to a floor of 7")
    found["floor models"] = count("power 3 to a floor of 7")
    return found


# -- far keys -------------------------------------------------------------------------------------


def answers(label: str, layers: int = 2, *, home: bool = False) -> list[float]:
    """Right answers of each model on the induction task: about keys beyond the training length on
    rows of 1,024, or on rows of the training length."""
    far = (col("length") == 64) if home else (col("distance") > 64) & (col("length") == 1024)
    task = {"protocol": "recall", "text": "task induction", "trained": 64, "heads": 4}
    lines = results().filter(far, label=label, layers=layers, mask="", **task)
    means = lines.group_by("seed").agg(col("accuracy").mean()).sort("seed")
    return [float(a) for a in means["accuracy"]]


def share(values: Sequence[float]) -> str:
    """A mean share; below 1 % with a digit more."""
    mean = 100 * float(np.mean(values))
    return f"{mean:.1f} %" if 0 < mean < 1 else f"{mean:.0f} %"


def far_keys(root: Path) -> dict[str, str]:
    """Orders of layers, on the task and at home."""
    names = {
        "local free": "local, then free",
        "scaled": "local, then free, log",
        "free local": "free, then local",
        "local": "all local 1",
        "no bias": "no bias",
        "one head": "1 head 1",
        "T5": "T5",
    }
    found: dict[str, str] = {}
    for name, label in names.items():
        far, home = answers(label), answers(label, home=True)
        ends = f"{100 * min(far):.0f} to {100 * max(far):.0f} %"
        found |= {name: share(far), f"{name} home": share(home)}
        found |= {f"{name} models": str(len(far)), f"{name} ends": ends}
    turns = "English: {} and free in turn"
    for name, layer in (("turn", "local"), ("rotary turn", "window 16 rotary")):
        label = turns.format(layer)
        found[name] = grown(label)
        found[f"{name} spread"] = spread(label)
        found[f"{name} models"] = count(label)
    return found


# -- the far field --------------------------------------------------------------------------------


def lines(root: Path, file: str) -> list[dict[str, Any]]:
    """The lines of a file of an experiment."""
    text = (root / file).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _far_cases(root: Path) -> Iterator[dict[str, Any]]:
    """Each model at 16 and 64 times: forecasts and measurement on the same targets, the two short
    multiples that nulls read, and the half width of the measurement."""
    said = {line["run"]: line for line in lines(root, FORECASTS)}
    for line in lines(root, MEASURED):
        own, short = (
            said[line["run"]]["said"],
            [np.mean(line["measured"][n]) for n in ("128", "256")],
        )
        for times in (16, 64):
            read = line["measured"][str(64 * times)]
            mean, half = student(read)
            yield {
                "run": line["run"],
                "label": line["label"],
                "times": times,
                "measured": mean,
                "half": half,
                "doubling": float(np.mean(own[f"main {64 * times}"])),
                "one stage": float(np.mean(own[f"check {64 * times}"])),
                "stays": float(short[1]),
                "step": float(short[1] - short[0]),
                "doublings": int(math.log2(times)) - 2,
            }


FORECASTS = "experiments/far_field/forecasts.jsonl"
MEASURED = "experiments/far_field/measured.jsonl"
TUNED = ("no bias", "RoPE", "sinusoidal")
"""The kinds that the settings were chosen on."""
DECAYS = np.linspace(0, 1, 101)


def _decayed(case: Mapping[str, Any], q: float) -> float:
    """The loss at 4 times, where each further doubling adds `q` times the last."""
    added = sum(q**k for k in range(1, case["doublings"] + 1))
    return float(case["stays"] + case["step"] * added)


def far_field(root: Path) -> dict[str, str]:
    """Errors of the far field and of its nulls in log perplexity, and processor time."""
    every = list(_far_cases(root))
    found = {"models": str(len({case["run"] for case in every}))}
    for times in (16, 64):
        at = [case for case in every if case["times"] == times]
        for case in at:
            others = [c for c in at if c["run"] != case["run"]]
            off = [np.mean([abs(_decayed(c, q) - c["measured"]) for c in others]) for q in DECAYS]
            case["decay"] = _decayed(case, float(DECAYS[int(np.argmin(off))]))
            case["octave"] = _decayed(case, 1)
            case["none"] = 0.0
        for name in ("doubling", "one stage", "stays", "decay", "octave", "none"):
            errors = [abs(case[name] - case["measured"]) for case in at]
            found[f"{name} {times}"] = f"{np.mean(errors):.3f}"
        errors = [abs(case["doubling"] - case["measured"]) for case in at]
        found[f"interval {times}"] = "{:.3f} to {:.3f}".format(*resampled(errors))
        for name, tuned in (("tuned", True), ("new", False)):
            own = [e for e, c in zip(errors, at, strict=True) if (c["label"] in TUNED) is tuned]
            found |= {f"{name} {times}": f"{np.mean(own):.3f}", f"{name} models": str(len(own))}
    clear = [case for case in every if abs(case["measured"] - LINE) > case["half"]]
    for name in ("doubling", "stays"):
        right = sum((case[name] > LINE) == (case["measured"] > LINE) for case in clear)
        found[f"{name} side"] = f"{right} of {len(clear)}"
    found["side least"] = f"{100 * 0.05 ** (1 / len(clear)):.0f} %"  # if none of them is wrong
    return found | _times(root)


def _times(root: Path) -> dict[str, str]:
    """How many times less processor time a forecast takes than a real row, a target row at 64
    times."""
    measured = lines(root, MEASURED)
    runs = {line["run"] for line in measured}
    spent = [line["seconds"] for line in lines(root, FORECASTS) if line["run"] in runs]
    rows, real_rows = 12 * 15, 12 * 2
    doubling = np.median([s.get("main") or s["main 1024"] + s["main 4096"] for s in spent]) / rows
    one = [s["check 4096"] if "check 4096" in s else s["check"] / 2 for s in spent]
    real = np.median([line["seconds"]["4096"] for line in measured]) / real_rows
    return {
        "doubling faster": f"{real / doubling:.0f}",
        "one stage faster": f"{real / (np.median(one) / rows):.0f}",
    }


AGAIN = "experiments/far_field_2"
BESIDE = (FORECASTS, f"{AGAIN}/forecasts.jsonl", f"{AGAIN}/plan.toml")
"""What is read beside the files that records name."""


def far_field_again(root: Path) -> dict[str, str]:
    """The second registration: errors, those of its nulls, and intervals for text not read."""
    place = Path(__file__).parents[1] / Path(AGAIN).name / "judge.py"
    spec = importlib.util.spec_from_file_location("far_field_2_judge", place)
    assert spec is not None and spec.loader is not None
    judge: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    judge.HERE = root / AGAIN
    every = judge.with_nulls(list(judge.cases()))
    held, families = list(judge.covered(every)), [case["family"] for case in every]
    low, high = resampled([float(x) for x in held], families)
    found = {
        "models": str(len({case["label"] for case in every})),
        "planned": str(len(judge.planned())),
        "families": str(len({*families})),
        "held": f"{sum(held)} of {len(held)}",
        "held interval": f"{100 * low:.0f} to {100 * high:.0f} %",
    }
    for to, most in judge.MOST.items():
        at, times = [case for case in every if case["to"] == to], to // 64
        errors = {
            "same": [case["error"] for case in at],
            "other": [case["elsewhere"] - case["other"] for case in at],
            **{
                name: [case["nulls"][name] - case["measured"] for case in at]
                for name in judge.NULLS
            },
        }
        own = np.abs(errors["same"])
        found[f"interval {times}"] = "{:.3f} to {:.3f}".format(
            *resampled(own, [case["family"] for case in at])
        )
        found[f"most {times}"] = f"{most:.2f}"
        found |= {f"{name} {times}": f"{np.abs(x).mean():.3f}" for name, x in errors.items()}
    return found


def mend(root: Path) -> dict[str, str]:
    """Models without a bias, mended; and what the choice of a repair is worth over one recipe."""
    said = {line["run"]: line["repairs"] for line in lines(root, FORECASTS)}
    free, regrets = [], []
    for line in lines(root, MEASURED):
        read = {name: np.array(v) for name, v in line["repairs"].items() if "layers" not in name}
        mean = {name: float(v.mean()) for name, v in read.items()}
        chosen = min(mean, key=lambda name: np.mean(said[line["run"]][name]))
        if line["label"] == "no bias":
            free.append((read, mean, chosen))
        if mean["none"] > BREAKS:
            best = min(mean.values())
            regrets.append((mean[chosen] - best, mean[GRAFT] - best, mean[WINDOW] - best))
    each = {
        name: ", ".join(f"{mean[which(chosen)]:.2f}" for _, mean, chosen in free)
        for name, which in {
            "none": lambda chosen: "none",
            "chosen": lambda chosen: chosen,
            "recipe": lambda chosen: GRAFT,
            "window": lambda chosen: WINDOW,
            "narrow": lambda chosen: "window 32",
        }.items()
    }
    gains = [student(read["none"] - read[GRAFT]) for read, *_ in free]
    regret = [f"{np.mean(own):.3f}" for own in zip(*regrets, strict=True)]
    return {
        **each,
        "models": str(len(free)),
        "groups": str(len(free[0][0]["none"])),
        "gain": ", ".join(f"{mean:.2f} ± {half:.2f}" for mean, half in gains),
        "broken": str(len(regrets)),
        **dict(zip(("regret", "recipe regret", "window regret"), regret, strict=True)),
    }


# -- a pretrained model ---------------------------------------------------------------------------

ROTARY = "experiments/rotary_2/measured.jsonl"
FURTHER = "experiments/rotary_5/measured.jsonl"
CUT, GROUPS_OF_TWO = "text cut to 8192", "Self-Extend, groups of 2 from 2048"
SETTINGS = {"groups": "Self-Extend, groups of 4 from 2048", "yarn": "YaRN 2"}


def rotary(root: Path) -> dict[str, str]:
    """SmolLM2-135M on rows of 16k: settings less the cut text, on the rows that all three read."""
    read: dict[str, dict[tuple[str, int], dict[str, Any]]] = {}
    for line in lines(root, ROTARY):
        text, row, setting = line["job"]
        read.setdefault(setting, {})[text, row] = line
    rows = [key for key in read[CUT] if all(key in read[name] for name in SETTINGS.values())]
    needles = sum(len(read[CUT][key]["needles"]) for key in rows)
    cut = {key: _recalled(read[CUT][key]) for key in rows}
    found = {
        "rows": str(len(rows)),
        "texts": str(len({text for text, _ in rows})),
        "needles": str(needles),
        "cut": str(sum(cut.values())),
        "settings": str(len(read)),
    }
    for name, setting in SETTINGS.items():
        own = read[setting]
        loss = student([own[key]["loss"] - read[CUT][key]["loss"] for key in rows])
        more = {key: _recalled(own[key]) - cut[key] for key in rows}
        found |= {
            name: str(sum(_recalled(own[key]) for key in rows)),
            f"{name} loss": "{:+.3f} ± {:.3f}".format(*loss),
            f"{name} more": "{:+.1f} ± {:.1f}".format(*student(list(more.values()))),
        }
        each = [
            "{:+.1f} ± {:.1f}".format(*student([v for key, v in more.items() if key[0] == text]))
            for text in sorted({text for text, _ in rows})
        ]
        found[f"{name} each"] = " and ".join(each)
    further = list(lines(root, FURTHER))
    for name, setting in {"further cut": CUT, "further groups": GROUPS_OF_TWO}.items():
        own = [line for line in further if line["job"][2] == setting]
        found[name] = str(sum(map(_recalled, own)))
        found["further needles"] = f"{sum(len(line['needles']) for line in own):,}"
    return found


def _recalled(line: Mapping[str, Any]) -> int:
    """The needles of a row that were answered rightly."""
    return sum(right for _, right in line["needles"])


# -- the papers -----------------------------------------------------------------------------------


def papers(root: Path) -> dict[str, str]:
    """Sentences of the papers by verdict."""
    decided, plain = claims(), plain_sentences()
    counts = counted(decided, len(plain))
    return {
        "sentences": str(len(by_sentence(decided)) + len(plain)),
        "read": str(len(by_sentence(decided))),
        "plain": str(len(plain)),
        "claims": str(len(decided)),
        **{verdict.words: str(counts.get(verdict, 0)) for verdict in Verdict},
    }
