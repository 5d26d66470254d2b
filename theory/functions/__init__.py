"""The functions that formulas are made of: one record each, with everything known of them.

To add a function is to add its record to the file of its family, or a file. Nothing else names it:
one evaluator (`record.Arithmetic`) is handed an arithmetic and walks a formula. The reader, the
decision on a series, certified sums, float64 tables, torch biases and the checker all use it. The
function's record says how it acts in that arithmetic. What a record lacks, it says why; a function
without a rule is refused where the rule is wanted, with that reason.

The rules
---------
Each is a plain function, handed what it needs, so that this room imports none of the arithmetics:

* `ball(*balls)`: the value at exact rationals (`fmpq`) or real balls (`arb`), rational where it is
  known to be; raises `Undefined` where it is not real, or not decided at the precision at work.
  Absent: the real part of `complex_ball`.
* `complex_ball(analytic, *balls)`: the value on complex balls; with `analytic` it is finite only if
  the function is analytic on the whole input, so that Cauchy's theorem may be applied.
* `series(*values)`: on a real ball or a power series of real balls (`arb_series`).
* `tail(t, *tails)`: an enclosure on a whole half-line, or on a sector, by the operations of `t`
  (`numerics.enclosures.tails`); raises `t.Unproved` where it holds further out only.
* `expansion(t, node, *arguments)`: the transseries at infinity. The arguments are expressions,
  since some are better not expanded: `t.transseries(argument)` expands one, and transseries have
  operators, `log()` and `exp()`. `t` holds limits, signs and Taylor's series
  (`transseries.expansion`).
* `array(xp, *arrays)`: on arrays of floats, of NumPy or torch, whose namespace is `xp`: the names
  of the array API standard, and `xp.special(name)` for what SciPy and torch both call so.

A function with `elementary` (an identity) or `asymptotic` (elementary terms and a remainder
function) needs no `complex_ball`, `series`, `tail` and `expansion`: it is evaluated in these terms.
The other fields are facts: where it is real or increasing, its range and period, its
branches.

A law test holds all rules of each record against each other, so a slip in one shows.
"""

from farfield.theory.functions import (
    choice,
    elementary,
    error,
    gamma,
    hyperbolic,
    lambert,
    left_out,
    rounding,
    trigonometric,
)
from farfield.theory.functions.record import register

for family in (
    elementary,
    error,
    trigonometric,
    hyperbolic,
    choice,
    rounding,
    gamma,
    lambert,
    left_out,
):
    register(*family.FUNCTIONS)
