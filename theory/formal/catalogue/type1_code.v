(** The exp-series of p(n) = -log(k**2*n**2 + 1)
    for k positive
    converges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables k : R.

Definition p (n : nat) : R := - ln (k ^ 2 * INR n ^ 2 + 1).

Theorem verdict : 0 < k -> ex_series (fun n => exp (p n)).
Proof.
  intros D1.
  assert (expands (fun n : nat => INR n ^ 2) [(1, [2])] exactly)
    by expand.
  assert (expands (fun n : nat => k ^ 2 * INR n ^ 2 + 1) [(k ^ 2, [2])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (k ^ 2 * INR n ^ 2 + 1)) [(2, [0; 1])] (Some []))
    by expand.
  assert (expands p [(-2, [0; 1])] (Some []))
    by (unfold p; expand).
  rung 0%nat.
Qed.

End Verdict.
