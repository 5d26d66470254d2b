(** The exp-series of p(n) = -m*n
    for m positive
    converges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables m : R.

Definition p (n : nat) : R := - m * INR n.

Theorem verdict : 0 < m -> ex_series (fun n => exp (p n)).
Proof.
  intros D1.
  assert (expands p [(- m, [1])] exactly)
    by (unfold p; expand).
  rung 0%nat.
Qed.

End Verdict.
