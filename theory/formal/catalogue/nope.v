(** The exp-series of p(n) = 0
    diverges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Definition p (n : nat) : R := 0.

Theorem verdict : ~ ex_series (fun n => exp (p n)).
Proof.
  assert (expands p [] exactly)
    by (unfold p; expand).
  rung 0%nat.
Qed.
