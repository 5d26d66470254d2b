"""What farfield answers today, so that a change of its inside cannot change an answer unseen.

    make pinned                            asks for all of it again
    python tests/pinned/record.py          writes facts.json anew

Facts are verdicts, integers, enclosures, conditions, exit codes, verdicts and numbers of the
claims. A fact that is meant to change has a line in `changes.toml`, which says which and why;
`facts.json` stays as it was recorded. The words of answers are free. Public names and the command
line are used wherever there are any.
"""

import contextlib
import io
import itertools
import json
import math
import os
import shlex
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import farfield

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data"
DISTANCES = np.array([0, 1, 2, 3, 7, 16, 31, 32, 64, 100, 333, 1023])
SLOW = {  # seconds for their receptive fields: asked for a verdict alone
    "loggamma(n+1/2)-loggamma(n+2)",
    "loggamma(n+1/3)-loggamma(n+3/2)",
    "-n/100+sqrt(n)*sin(n)+log(n+1)*cos(n)",
    "(cos(n)+cos(n/10)+cos(n/100)-3)/2-n/1000",
}


def lines(name):
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def command(*args):
    """Exit code, standard output and standard error of a command line."""
    from farfield.cli import main

    out, error, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            main(list(args))
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), error.getvalue()


def command_lines(name):
    """The command lines of a file, one a line."""
    return [
        line
        for line in (HERE / name).read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]


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
    try:
        found = farfield.check_convergence(subject, assumptions=assumptions or None)
    except farfield.InputError:
        return {"refused": True}
    condition = None if found.condition is None else str(found.condition)
    return {"verdict": str(found.verdict), "condition": condition}


def asked(call, *fields):
    """Fields of an answer, or what is wrong with the question."""
    try:
        answer = call()
    except farfield.InputError:
        return {"refused": True}
    found = {f: heads(answer, f) for f in fields}
    if getattr(answer, "enclosure", None) is not None:
        found["enclosure"] = [f"{end:.17g}" for end in answer.enclosure]
    return found


def numbers(subject):
    """The certified answers of one formula without free parameters."""
    trf = partial(farfield.theoretical_receptive_field, subject)
    questions = {  # the answer that is asked for, and its field
        "trf 1/10": (partial(trf, "1/10", exact=True), "tokens"),
        "trf 1/100": (partial(trf, "1/100", exact=True), "tokens"),
        "row trf": (partial(trf, "1/100", length=512), "tokens"),
        "leak": (partial(farfield.leak, subject, 64), "value"),
        "row leak": (partial(farfield.leak, subject, 64, 1024), "value"),
        "window": (partial(farfield.certified_window, subject, "1/10", 1, 1), "width"),
        "error": (partial(farfield.window_error, subject, 64, 1, 1), "value"),
        "resolution": (partial(farfield.attention_resolution, subject, 256), "value"),
        "horizon": (partial(farfield.dtype_horizon, subject, "fp16"), "tokens"),
    }
    return {name: asked(*question) for name, question in questions.items()}


def exits(*formula):
    return {
        verb: command(verb, *formula, *options)[0]
        for verb, *options in (
            ["check"],
            ["trf"],
            ["leak", "--trained", "64"],
            ["window", "--error", "1/10", "--logit-bound", "1"],
        )
    }


def battery():
    """The numbers of the entries without parameters that answer at once; their verdicts stand in
    the battery itself, found by hand."""
    return {
        entry["expr"]: numbers(entry["expr"])
        for entry in lines("battery.jsonl")
        if not entry["params"] and entry["expr"] not in SLOW
    }


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
    """Every encoding, in its dialects: verdict, numbers, and its bias at some distances."""
    found = {}
    for name in farfield.encodings():
        for options in DIALECTS.get(name, [{}]):
            made = farfield.encoding(name, **options)
            case = verdict(made, {}) | {"heads": made.num_heads}
            if made.formula is not None and not made.free:
                case["bias"] = [[number(float(x)) for x in row] for row in made.bias(DISTANCES)]
                case |= numbers(made)
            given = (
                (f"--{k}", str(v)) if k in ("dialect", "heads") else ("--set", f"{k}={v}")
                for k, v in options.items()
            )
            case["exit"] = exits(name, *itertools.chain(*given))
            found[titled(name, options)] = case
    return found


def prices():
    """What a distance costs and what an advantage reaches: the catalogue and the first series."""
    subjects = {
        name: made
        for name in farfield.encodings()
        if (made := farfield.encoding(name)).formula is not None and not made.free
    }
    subjects |= {e["expr"]: e["expr"] for e in lines("series.jsonl")[:60] if not e["params"]}
    questions = {
        "price": (farfield.price_of_distance, 100, ["value"]),
        "reach": (farfield.reach, 7, ["tokens", "farthest"]),
    }
    return {
        name: {
            f"{place} {row or 'series'}": asked(partial(ask, subject, at, length=row), *fields)
            for row in (None, 1024, 10**6)
            for place, (ask, at, fields) in questions.items()
        }
        for name, subject in subjects.items()
    }


def titled(name, options):
    return " ".join([name, *(f"{k}={v}" for k, v in options.items())])


def judged_claims():
    return {claim.id: {"verdict": str(claim.verdict)} for claim in farfield.claims()}


def bad_input():
    """Exit codes of command lines that are wrong."""
    with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
        return {
            line: {"exit": command(*shlex.split(line))[0]}
            for line in command_lines("bad_input.txt")
        }


FACTS = {
    "battery": battery,
    "catalogue": catalogue,
    "prices": prices,
    "claims": judged_claims,
    "bad input": bad_input,
}


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(f"arguments {sys.argv[1:]!r}; accepted: none")
    os.environ["COLUMNS"] = "100"
    answers = {name: section() for name, section in FACTS.items()}
    text = json.dumps(answers, indent=0, ensure_ascii=False, sort_keys=True)
    (HERE / "facts.json").write_text(text + "\n", encoding="utf-8")
