(** The exp-series of p(n) = -2*log(n + 1)
    converges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Definition p (n : nat) : R := -2 * ln (INR n + 1).

Theorem verdict : ex_series (fun n => exp (p n)).
Proof.
  assert (expands (fun n : nat => INR n + 1) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (INR n + 1)) [(1, [0; 1])] (Some [-1]))
    by expand.
  assert (expands p [(-2, [0; 1])] (Some [-1]))
    by (unfold p; expand).
  rung 0%nat.
Qed.
