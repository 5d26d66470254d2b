(** The exp-series of p(n) = (cos(n/1000) + cos(n/100) + cos(n/10) + cos(n) + cos(10**(1/16)*n/10000) + cos(10**(1/16)*n/1000) + cos(10**(1/16)*n/100) + cos(10**(1/16)*n/10) + cos(10**(1/8)*n/10000) + cos(10**(1/8)*n/1000) + cos(10**(1/8)*n/100) + cos(10**(1/8)*n/10) + cos(10**(3/16)*n/10000) + cos(10**(3/16)*n/1000) + cos(10**(3/16)*n/100) + cos(10**(3/16)*n/10) + cos(10**(1/4)*n/10000) + cos(10**(1/4)*n/1000) + cos(10**(1/4)*n/100) + cos(10**(1/4)*n/10) + cos(10**(5/16)*n/10000) + cos(10**(5/16)*n/1000) + cos(10**(5/16)*n/100) + cos(10**(5/16)*n/10) + cos(10**(3/8)*n/10000) + cos(10**(3/8)*n/1000) + cos(10**(3/8)*n/100) + cos(10**(3/8)*n/10) + cos(10**(7/16)*n/10000) + cos(10**(7/16)*n/1000) + cos(10**(7/16)*n/100) + cos(10**(7/16)*n/10) + cos(sqrt(10)*n/10000) + cos(sqrt(10)*n/1000) + cos(sqrt(10)*n/100) + cos(sqrt(10)*n/10) + cos(10**(9/16)*n/10000) + cos(10**(9/16)*n/1000) + cos(10**(9/16)*n/100) + cos(10**(9/16)*n/10) + cos(10**(5/8)*n/10000) + cos(10**(5/8)*n/1000) + cos(10**(5/8)*n/100) + cos(10**(5/8)*n/10) + cos(10**(11/16)*n/10000) + cos(10**(11/16)*n/1000) + cos(10**(11/16)*n/100) + cos(10**(11/16)*n/10) + cos(10**(3/4)*n/10000) + cos(10**(3/4)*n/1000) + cos(10**(3/4)*n/100) + cos(10**(3/4)*n/10) + cos(10**(13/16)*n/10000) + cos(10**(13/16)*n/1000) + cos(10**(13/16)*n/100) + cos(10**(13/16)*n/10) + cos(10**(7/8)*n/10000) + cos(10**(7/8)*n/1000) + cos(10**(7/8)*n/100) + cos(10**(7/8)*n/10) + cos(10**(15/16)*n/10000) + cos(10**(15/16)*n/1000) + cos(10**(15/16)*n/100) + cos(10**(15/16)*n/10) - 64)/c
    for c positive
    diverges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables c : R.

Definition p (n : nat) : R := / c * (cos (1 / 1000 * INR n) + cos (1 / 100 * INR n) + cos (1 / 10 * INR n) + cos (INR n) + cos (1 / 10000 * Rpower 10 (1 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (1 / 16) * INR n) + cos (1 / 100 * Rpower 10 (1 / 16) * INR n) + cos (1 / 10 * Rpower 10 (1 / 16) * INR n) + cos (1 / 10000 * Rpower 10 (1 / 8) * INR n) + cos (1 / 1000 * Rpower 10 (1 / 8) * INR n) + cos (1 / 100 * Rpower 10 (1 / 8) * INR n) + cos (1 / 10 * Rpower 10 (1 / 8) * INR n) + cos (1 / 10000 * Rpower 10 (3 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (3 / 16) * INR n) + cos (1 / 100 * Rpower 10 (3 / 16) * INR n) + cos (1 / 10 * Rpower 10 (3 / 16) * INR n) + cos (1 / 10000 * Rpower 10 (1 / 4) * INR n) + cos (1 / 1000 * Rpower 10 (1 / 4) * INR n) + cos (1 / 100 * Rpower 10 (1 / 4) * INR n) + cos (1 / 10 * Rpower 10 (1 / 4) * INR n) + cos (1 / 10000 * Rpower 10 (5 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (5 / 16) * INR n) + cos (1 / 100 * Rpower 10 (5 / 16) * INR n) + cos (1 / 10 * Rpower 10 (5 / 16) * INR n) + cos (1 / 10000 * Rpower 10 (3 / 8) * INR n) + cos (1 / 1000 * Rpower 10 (3 / 8) * INR n) + cos (1 / 100 * Rpower 10 (3 / 8) * INR n) + cos (1 / 10 * Rpower 10 (3 / 8) * INR n) + cos (1 / 10000 * Rpower 10 (7 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (7 / 16) * INR n) + cos (1 / 100 * Rpower 10 (7 / 16) * INR n) + cos (1 / 10 * Rpower 10 (7 / 16) * INR n) + cos (1 / 10000 * Rpower 10 (1 / 2) * INR n) + cos (1 / 1000 * Rpower 10 (1 / 2) * INR n) + cos (1 / 100 * Rpower 10 (1 / 2) * INR n) + cos (1 / 10 * Rpower 10 (1 / 2) * INR n) + cos (1 / 10000 * Rpower 10 (9 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (9 / 16) * INR n) + cos (1 / 100 * Rpower 10 (9 / 16) * INR n) + cos (1 / 10 * Rpower 10 (9 / 16) * INR n) + cos (1 / 10000 * Rpower 10 (5 / 8) * INR n) + cos (1 / 1000 * Rpower 10 (5 / 8) * INR n) + cos (1 / 100 * Rpower 10 (5 / 8) * INR n) + cos (1 / 10 * Rpower 10 (5 / 8) * INR n) + cos (1 / 10000 * Rpower 10 (11 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (11 / 16) * INR n) + cos (1 / 100 * Rpower 10 (11 / 16) * INR n) + cos (1 / 10 * Rpower 10 (11 / 16) * INR n) + cos (1 / 10000 * Rpower 10 (3 / 4) * INR n) + cos (1 / 1000 * Rpower 10 (3 / 4) * INR n) + cos (1 / 100 * Rpower 10 (3 / 4) * INR n) + cos (1 / 10 * Rpower 10 (3 / 4) * INR n) + cos (1 / 10000 * Rpower 10 (13 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (13 / 16) * INR n) + cos (1 / 100 * Rpower 10 (13 / 16) * INR n) + cos (1 / 10 * Rpower 10 (13 / 16) * INR n) + cos (1 / 10000 * Rpower 10 (7 / 8) * INR n) + cos (1 / 1000 * Rpower 10 (7 / 8) * INR n) + cos (1 / 100 * Rpower 10 (7 / 8) * INR n) + cos (1 / 10 * Rpower 10 (7 / 8) * INR n) + cos (1 / 10000 * Rpower 10 (15 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (15 / 16) * INR n) + cos (1 / 100 * Rpower 10 (15 / 16) * INR n) + cos (1 / 10 * Rpower 10 (15 / 16) * INR n) - 64).

Theorem verdict : 0 < c -> ~ ex_series (fun n => exp (p n)).
Proof.
  intros D1.
  assert (expands (fun n : nat => / c * (cos (1 / 1000 * INR n) + cos (1 / 100 * INR n) + cos (1 /
    10 * INR n) + cos (INR n) + cos (1 / 10000 * Rpower 10 (1 / 16) * INR n) + cos (1 / 1000 *
    Rpower 10 (1 / 16) * INR n) + cos (1 / 100 * Rpower 10 (1 / 16) * INR n) + cos (1 / 10 * Rpower
    10 (1 / 16) * INR n) + cos (1 / 10000 * Rpower 10 (1 / 8) * INR n) + cos (1 / 1000 * Rpower 10
    (1 / 8) * INR n) + cos (1 / 100 * Rpower 10 (1 / 8) * INR n) + cos (1 / 10 * Rpower 10 (1 / 8) *
    INR n) + cos (1 / 10000 * Rpower 10 (3 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (3 / 16) * INR
    n) + cos (1 / 100 * Rpower 10 (3 / 16) * INR n) + cos (1 / 10 * Rpower 10 (3 / 16) * INR n) +
    cos (1 / 10000 * Rpower 10 (1 / 4) * INR n) + cos (1 / 1000 * Rpower 10 (1 / 4) * INR n) + cos
    (1 / 100 * Rpower 10 (1 / 4) * INR n) + cos (1 / 10 * Rpower 10 (1 / 4) * INR n) + cos (1 /
    10000 * Rpower 10 (5 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (5 / 16) * INR n) + cos (1 / 100
    * Rpower 10 (5 / 16) * INR n) + cos (1 / 10 * Rpower 10 (5 / 16) * INR n) + cos (1 / 10000 *
    Rpower 10 (3 / 8) * INR n) + cos (1 / 1000 * Rpower 10 (3 / 8) * INR n) + cos (1 / 100 * Rpower
    10 (3 / 8) * INR n) + cos (1 / 10 * Rpower 10 (3 / 8) * INR n) + cos (1 / 10000 * Rpower 10 (7 /
    16) * INR n) + cos (1 / 1000 * Rpower 10 (7 / 16) * INR n) + cos (1 / 100 * Rpower 10 (7 / 16) *
    INR n) + cos (1 / 10 * Rpower 10 (7 / 16) * INR n) + cos (1 / 10000 * Rpower 10 (1 / 2) * INR n)
    + cos (1 / 1000 * Rpower 10 (1 / 2) * INR n) + cos (1 / 100 * Rpower 10 (1 / 2) * INR n) + cos
    (1 / 10 * Rpower 10 (1 / 2) * INR n) + cos (1 / 10000 * Rpower 10 (9 / 16) * INR n) + cos (1 /
    1000 * Rpower 10 (9 / 16) * INR n) + cos (1 / 100 * Rpower 10 (9 / 16) * INR n) + cos (1 / 10 *
    Rpower 10 (9 / 16) * INR n) + cos (1 / 10000 * Rpower 10 (5 / 8) * INR n) + cos (1 / 1000 *
    Rpower 10 (5 / 8) * INR n) + cos (1 / 100 * Rpower 10 (5 / 8) * INR n) + cos (1 / 10 * Rpower 10
    (5 / 8) * INR n) + cos (1 / 10000 * Rpower 10 (11 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (11
    / 16) * INR n) + cos (1 / 100 * Rpower 10 (11 / 16) * INR n) + cos (1 / 10 * Rpower 10 (11 / 16)
    * INR n) + cos (1 / 10000 * Rpower 10 (3 / 4) * INR n) + cos (1 / 1000 * Rpower 10 (3 / 4) * INR
    n) + cos (1 / 100 * Rpower 10 (3 / 4) * INR n) + cos (1 / 10 * Rpower 10 (3 / 4) * INR n) + cos
    (1 / 10000 * Rpower 10 (13 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (13 / 16) * INR n) + cos
    (1 / 100 * Rpower 10 (13 / 16) * INR n) + cos (1 / 10 * Rpower 10 (13 / 16) * INR n) + cos (1 /
    10000 * Rpower 10 (7 / 8) * INR n) + cos (1 / 1000 * Rpower 10 (7 / 8) * INR n) + cos (1 / 100 *
    Rpower 10 (7 / 8) * INR n) + cos (1 / 10 * Rpower 10 (7 / 8) * INR n) + cos (1 / 10000 * Rpower
    10 (15 / 16) * INR n) + cos (1 / 1000 * Rpower 10 (15 / 16) * INR n) + cos (1 / 100 * Rpower 10
    (15 / 16) * INR n) + cos (1 / 10 * Rpower 10 (15 / 16) * INR n) - 64)) [] (Some []))
    by expand.
  assert (expands p [] (Some []))
    by (unfold p; expand).
  rung 0%nat.
Qed.

End Verdict.
