(** The exp-series of p(n) = Piecewise((0, n < w), (-oo, True))
    for w positive
    converges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate Extended.
Open Scope R_scope.

Section Verdict.

Variables w : R.

Definition p (n : nat) : Rbar := if Rltb (INR n) w then Finite 0 else m_infty.

Theorem verdict : 0 < w -> ex_series (fun n => exp (p n)).
Proof.
  intros D1.
  assert (expands (fun n : nat => w - INR n) [(-1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => INR n - w) [(1, [1])] (Some []))
    by expand.
  assert (eventually (fun n : nat => w < INR n))
    by decided.
  assert (P : eventually (fun n : nat => p n = m_infty))
    by (unfold p; pieces).
  apply (extended_masked p P).
Qed.

End Verdict.
