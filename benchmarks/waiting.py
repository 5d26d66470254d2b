"""How long a person waits: each verb against `python -c "import sympy"` on the same machine.

    python benchmarks/waiting.py                 # all of them, a table
    python benchmarks/waiting.py check trf       # those whose name begins so
    python benchmarks/waiting.py tests           # the test suite too, by its name alone: long
    python benchmarks/waiting.py --json --rounds 5

Processor time of the child and its children, user and system. The yardstick runs before every
verb, so that a machine that slows down slows both; a ratio is that of the medians over the rounds.
The compiled files of Python are kept in a folder of their own and warm: the first, untimed, round
writes them. A verb that exits otherwise than it should has no number.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FARFIELD = (sys.executable, "-m", "farfield")
YARDSTICK = (sys.executable, "-c", "import sympy")
BIAS = (
    "import numpy as np, sys; from farfield import encoding; "
    "encoding(sys.argv[1], **({'heads': 1} if len(sys.argv) > 2 else {})).bias(np.arange(10**6))"
)

MEASURING = """
import dataclasses, sys, numpy as np
from farfield import encoding
from farfield.validation.harness.experiment import train_and_measure
from farfield.validation.harness.store import Store
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.presets import preset
from farfield.validation.harness.reading import corpus
random = np.random.default_rng()
open(sys.argv[1] + ".txt", "wb").write(random.integers(32, 120, 400_000).astype("u1").tobytes())
small = preset("small")
eighth = dataclasses.replace(small.measurement, blocks=8, last_tokens=64, gradient_segments=4)
shape = dataclasses.replace(small, steps=1, measurement=eighth)
train_and_measure(
    Configuration(encoding("-2*log(1+n)"), corpus(sys.argv[1] + ".txt"), shape), Store(sys.argv[1])
)
"""
TESTS = ("-m", "pytest", "-q", "-n", "2", "--rootdir", str(ROOT), str(ROOT / "tests"))

# name: (what is run, the exit code it should have, the bound on the ratio that is aimed at)
VERBS = {
    "usage": ((*FARFIELD, "report", "--formt", "svg"), 2, 1.2),
    "usage-format": ((*FARFIELD, "figures", "--format", "bmp"), 2, 1.2),
    "list-figures": ((*FARFIELD, "figures", "--list"), 0, 1.2),
    "list-encodings": ((*FARFIELD, "encodings"), 0, 1.2),
    "help": ((*FARFIELD, "--help"), 0, 1.2),
    "check": ((*FARFIELD, "check", "-2*log(1+n)"), 0, 1.5),
    "check-alibi": ((*FARFIELD, "check", "alibi"), 0, 1.5),
    "check-sandwich": ((*FARFIELD, "check", "sandwich"), 0, None),
    "trf": ((*FARFIELD, "trf", "-2*log(1+n)"), 0, None),
    "trf-vast": ((*FARFIELD, "trf", "-log(1+n)-2*log(1+log(1+n))"), 0, None),
    "trf-wave": ((*FARFIELD, "trf", "-2*log(1+n)*(1+sin(log(1+n))/4)"), 0, None),
    "trf-rotation": ((*FARFIELD, "trf", "-1.2*log(1+n)-Abs(sin(n))"), 0, None),
    "leak": ((*FARFIELD, "leak", "alibi", "--trained", "512"), 0, None),
    "bias-floor": ((sys.executable, "-c", BIAS, "-floor(n/3)"), 0, None),
    "bias-mod": ((sys.executable, "-c", BIAS, "-Mod(n,7)"), 0, None),
    "bias-harmonic": ((sys.executable, "-c", BIAS, "-harmonic(n+1)"), 0, None),
    "bias-loggamma": ((sys.executable, "-c", BIAS, "-loggamma(n+2)"), 0, None),
    "bias-sandwich": ((sys.executable, "-c", BIAS, "sandwich", "one head"), 0, None),
    "measuring": ((sys.executable, "-c", MEASURING, "{out}/runs"), 0, None),
    "claims": ((*FARFIELD, "claims"), 0, None),
    "report": ((*FARFIELD, "report", "--out", "{out}/report"), 0, None),
    "figures": ((*FARFIELD, "figures", "--out", "{out}/figures"), 0, None),
    "tests": ((sys.executable, *TESTS), 0, None),
}


def spent(command, out, wanted):
    """Seconds of processor time of a child, None where it fails."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(out / "compiled")
    before = os.times()
    done = subprocess.run(
        [part.replace("{out}", str(out)) for part in command],
        cwd=out,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    after = os.times()
    if done.returncode != wanted:
        return None
    return sum(getattr(after, k) - getattr(before, k) for k in ("children_user", "children_system"))


def measured(names, rounds, out):
    """For each verb the medians of its seconds and of the yardstick beside it."""
    found = []
    for name in names:
        command, wanted, bound = VERBS[name]
        spent(YARDSTICK, out, 0)
        if spent(command, out, wanted) is None:
            found.append({"verb": name, "bound": bound, "seconds": None, "sympy": None})
            continue
        pairs = [(spent(YARDSTICK, out, 0), spent(command, out, wanted)) for _ in range(rounds)]
        sympy, seconds = (statistics.median(column) for column in zip(*pairs, strict=True))
        found.append(
            {
                "verb": name,
                "bound": bound,
                "seconds": seconds,
                "sympy": sympy,
                "ratio": seconds / sympy,
            }
        )
    return found


def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="beginnings of names of verbs; all if none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(args)
    asked_for = tuple(asked.names or (v for v in VERBS if v != "tests"))
    names = [v for v in VERBS if v.startswith(asked_for)]
    if not names:
        parser.error(f"no such verb; known: {', '.join(VERBS)}")
    with tempfile.TemporaryDirectory() as folder:
        found = measured(names, asked.rounds, Path(folder))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    if asked.json:
        print(json.dumps({"machine": machine, "rounds": asked.rounds, "verbs": found}, indent=2))
        return
    print(f"{machine}; medians of {asked.rounds} rounds, processor time")
    print(f"{'verb':<16} {'seconds':>8} {'sympy':>7} {'ratio':>7} {'bound':>6}")
    for f in found:
        bound = "" if f["bound"] is None else f"{f['bound']:.1f}"
        if f["seconds"] is None:
            print(f"{f['verb']:<16} {'failed':>8} {'':>7} {'':>7} {bound:>6}")
        else:
            print(
                f"{f['verb']:<16} {f['seconds']:>8.2f} {f['sympy']:>7.2f} {f['ratio']:>7.2f} "
                f"{bound:>6}"
            )


if __name__ == "__main__":
    main()
