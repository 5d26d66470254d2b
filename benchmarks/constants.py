"""What the constants of the sums cost: processor time with each at a half and at twice its value.

    python benchmarks/constants.py [NAME ...]

Each setting runs in a process of its own on the formulas below, beside the setting as it stands; a
constant that changes nothing bounds work that these formulas do not need. Fields are compared, so
that a setting that loses an answer shows (`-` behind the time).
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

FORMULAS = (
    "-2*log(n+1)-1/(n+1)",
    "-sqrt(n)/2+log(n+2)*sin(n)/3",
    "-3*log(n+1)-Abs(sin(n))",
    "-2*log(n+1)+cos(n)",
    "-log(n+2)*(3/2+1/log(n+3))",
    "-sqrt(n)*(1+1/log(n+3))",
    "-log(n+3)**2/3-atan(n)",
    "-5*log(n+2)+log(n+2)*cos(n**2)/2",
)
EPS = ("1/100", "1/100000")
ROOM = "farfield.numerics."
CONSTANTS = (
    ("enclosures.tails", "ORDER"),
    ("enclosures.tails", "KEPT"),
    ("enclosures.logarithm", "MAX_TERMS"),
    ("enclosures.quadrature", "STEEPEST"),
    ("summation.analytic_bias", "COLUMN"),
    ("summation.bounded", "DIRECT"),
    ("summation.integral", "DROP"),
    ("summation.integral", "STEP"),
    ("summation.oscillatory.rotations", "DIRECT"),
    ("summation.oscillatory.rotations", "PARTS"),
    ("summation.oscillatory.waves", "FIRST_DIRECT"),
    ("summation.series", "LONG"),
)


def once(module: str, name: str, factor: float) -> None:
    """In this process: one constant changed, the fields, and last the processor time."""
    from farfield import theoretical_receptive_field

    if module:
        room = importlib.import_module(ROOM + module)
        value = getattr(room, name)
        setattr(room, name, type(value)(value * factor))
    theoretical_receptive_field("-n", "1/10")
    begin = os.times()
    fields = [theoretical_receptive_field(f, eps).tokens for f in FORMULAS for eps in EPS]
    end = os.times()
    print(fields)
    print(end.user + end.system - begin.user - begin.system)


def run(module: str, name: str, factor: float) -> tuple[str, float]:
    """The fields and the seconds of a process of its own."""
    command = [sys.executable, __file__, "--once", module, name, str(factor)]
    *fields, spent = subprocess.check_output(command, text=True).splitlines()
    return "".join(fields), float(spent)


def main() -> None:
    if sys.argv[1:2] == ["--once"]:
        module, name, factor = sys.argv[2:]
        once(module, name, float(factor))
        return
    asked = sys.argv[1:]
    known, spent = run("", "", 1)
    print(f"as it stands {min(spent, run('', '', 1)[1]):8.2f} s")
    for module, name in CONSTANTS:
        if asked and name not in asked:
            continue
        told = []
        for factor in (0.5, 2):
            fields, spent = run(module, name, factor)
            told.append(f"{spent:8.2f} s{'' if fields == known else ' -'}")
        print(f"{module + '.' + name:48s}" + "".join(told), flush=True)


if __name__ == "__main__":
    main()
