(** The exp-series of p(n) = -n**r2*r1
    for r1 positive; r2 positive
    converges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables r1 r2 : R.

Definition p (n : nat) : R := - r1 * power (INR n) r2.

Theorem verdict : 0 < r1 -> 0 < r2 -> ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (expands (fun n : nat => power (INR n) r2) [(1, [r2])] exactly)
    by expand.
  assert (expands p [(- r1, [r2])] exactly)
    by (unfold p; expand).
  rung 0%nat.
Qed.

End Verdict.
