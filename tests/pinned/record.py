"""What farfield answers today, so that a change of its inside cannot change an answer unseen.

    make pinned                              asks all of it again
    python tests/pinned/record.py            writes answers.json anew

An answer that is meant to change has a line in `changes.toml`, which says which, and why;
`answers.json` stays as it was recorded. Only the public names and the command line are used.
"""

import contextlib
import hashlib
import io
import json
import math
from pathlib import Path

import numpy as np

import farfield

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data"
LENGTHS = np.arange(1024)
SLOW = {  # seconds for their receptive fields: asked for a verdict alone
    "loggamma(n+1/2)-loggamma(n+2)",
    "loggamma(n+1/3)-loggamma(n+3/2)",
    "-n/100+sqrt(n)*sin(n)+log(n+1)*cos(n)",
    "(cos(n)+cos(n/10)+cos(n/100)-3)/2-n/1000",
}


def lines(name):
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def exit_code(*args):
    from farfield.cli import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main(list(args))
        except SystemExit as end:
            return end.code or 0


def number(value):
    """Twelve digits of a float, all of an integer that is not huge, None and infinity by name."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    text = str(value) if isinstance(value, int) else f"{value:.12g}"
    return text if len(text) < 60 else f"{text[:30]}...{text[-20:]} ({len(text)} digits)"


def heads(answer, field):
    return [number(getattr(h, field)) for h in answer.heads] or number(getattr(answer, field))


def verdict(subject, assumptions):
    found = farfield.check_convergence(subject, assumptions=assumptions or None)
    condition = None if found.condition is None else str(found.condition)
    return {"verdict": str(found.verdict), "condition": condition}


def asked(call, *fields):
    """Fields of an answer, or what is wrong with the question."""
    try:
        answer = call()
    except farfield.InputError:
        return {"refused": True}
    return {f: heads(answer, f) for f in fields}


def numbers(subject):
    """The certified answers of one formula without free parameters."""
    found = {}
    for eps in ("1/10", "1/100"):
        found[f"trf {eps}"] = asked(
            lambda eps=eps: farfield.theoretical_receptive_field(subject, eps, exact=True), "tokens"
        )
    found["row trf"] = asked(
        lambda: farfield.theoretical_receptive_field(subject, "1/100", length=512), "tokens"
    )
    found["leak"] = asked(lambda: farfield.leak(subject, 64), "value")
    found["row leak"] = asked(lambda: farfield.leak(subject, 64, 1024), "value")
    found["window"] = asked(lambda: farfield.certified_window(subject, "1/10", 1, 1), "width")
    found["error"] = asked(lambda: farfield.window_error(subject, 64, 1, 1), "value")
    found["resolution"] = asked(lambda: farfield.attention_resolution(subject, 256), "value")
    found["horizon"] = asked(lambda: farfield.dtype_horizon(subject, "fp16"), "tokens")
    return found


def exits(*formula):
    return {
        "check": exit_code("check", *formula),
        "trf": exit_code("trf", *formula),
        "leak": exit_code("leak", *formula, "--trained", "64"),
        "window": exit_code("window", *formula, "--error", "1/10", "--logit-bound", "1"),
    }


def battery():
    """Every entry's verdict; the numbers of those without parameters that answer at once."""
    found = {}
    for entry in lines("battery.jsonl"):
        case = verdict(entry["expr"], entry["params"])
        if not entry["params"] and entry["expr"] not in SLOW:
            case |= numbers(entry["expr"])
        found[entry["expr"]] = case
    return found


def series():
    return {e["expr"]: verdict(e["expr"], e["params"]) for e in lines("series.jsonl")}


DIALECTS = {
    "window": [{"w": 32}, {"dialect": "inclusive", "w": 32}],
    "alibi": [
        {},
        {"heads": 12},
        {"heads": 12, "dialect": "geometric"},
        {"dialect": "shift", "delta": -3},
        {"dialect": "equal", "slope_exponent": 4},
    ],
    "kerple_log": [{}, {"r1": "6/5", "r2": 1}, {"r1": 1, "r2": 1}],
    "kerple_power": [{}, {"r1": 1, "r2": "1/2"}],
    "sandwich": [{"dialect": d, "heads": 2} for d in ("appendix", "equation", "code")],
    "sandwich_smoothed": [{"heads": 4}],
    **{
        name: [{}, {"dialect": "code", "heads": 4}]
        for name in ("type1", "type2", "example1", "example2")
    },
    "bam": [{}, {"s": 0, "mu": 3, "eps": "1/10", "beta": "1/2"}],
    "alibi_log": [{}, {"m": 2}],
    "rope_surrogate": [{"d": 8}, {"dialect": "printed", "d": 8}],
    "xpos_surrogate": [{"d": 8}, {"dialect": "printed", "d": 8}],
}


def catalogue():
    """Every encoding, in its dialects: verdict, numbers, and its bias bit by bit."""
    found = {}
    for name in farfield.encodings():
        for options in DIALECTS.get(name, [{}]):
            made = farfield.encoding(name, **options)
            case = verdict(made, {}) | {"heads": made.num_heads}
            if made.formula is not None and not made.free:
                table = np.ascontiguousarray(made.bias(LENGTHS))
                case["bias"] = hashlib.sha256(table.tobytes()).hexdigest()[:16]
                case |= numbers(made)
            given = [
                w
                for k, v in options.items()
                if k not in ("dialect", "heads")
                for w in ("--set", f"{k}={v}")
            ]
            given += [
                w for k in ("dialect", "heads") if k in options for w in (f"--{k}", str(options[k]))
            ]
            case["exit"] = exits(name, *given)
            found[" ".join([name, *(f"{k}={v}" for k, v in options.items())])] = case
    return found


def runs():
    """The keys of every registered run, on a text that is the same everywhere."""
    from farfield.validation import reference
    from farfield.validation.settings.configuration import key
    from farfield.validation.text.corpus import Corpus

    text = (np.arange(60_000) * 7919 % 251).astype(np.uint8)
    corpus = Corpus("numbers", text[:20_000], text[20_000:], 1, "two parts")
    found = {}
    for jobs, home, digest in reference.planned(corpus):
        found[f"{home.name} predictions"] = {"sha256": digest}
        for job in jobs:
            settings = [key(job.configuration.measured(v)) for v in job.configuration.variants]
            found[f"{home.name}: {job.name}"] = {"training": job.key, "measured": settings}
    return found


def claims():
    return {claim.id: {"verdict": str(claim.verdict)} for claim in farfield.claims()}


SECTIONS = {
    "battery": battery,
    "series": series,
    "catalogue": catalogue,
    "runs": runs,
    "claims": claims,
}


if __name__ == "__main__":
    answers = {name: section() for name, section in SECTIONS.items()}
    text = json.dumps(answers, indent=0, ensure_ascii=False, sort_keys=True)
    (HERE / "answers.json").write_text(text + "\n", encoding="utf-8")
