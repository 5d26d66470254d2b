(** The exp-series of p(n) = -log(n + 3) - log(log(n + 3))
    diverges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Definition p (n : nat) : R := - ln (INR n + 3) - ln (ln (INR n + 3)).

Theorem verdict : ~ ex_series (fun n => exp (p n)).
Proof.
  assert (expands (fun n : nat => INR n + 3) [(1, [1]); (3, [])] exactly)
    by expand.
  assert (expands (fun n : nat => ln (INR n + 3)) [(1, [0; 1]); (3, [-1])] (Some [-2]))
    by expand.
  assert (expands (fun n : nat => ln (ln (INR n + 3))) [(1, [0; 0; 1]); (3, [-1; -1])] (Some [-2;
    -1]))
    by expand.
  assert (expands p [(-1, [0; 1]); (-1, [0; 0; 1])] (Some [-1]))
    by (unfold p; expand).
  rung 2%nat.
Qed.
