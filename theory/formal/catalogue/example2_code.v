(** The exp-series of p(n) = -log(k*n + 3) - log(log(k*n + 3))
    for k positive
    diverges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables k : R.

Definition p (n : nat) : R := - ln (k * INR n + 3) - ln (ln (k * INR n + 3)).

Theorem verdict : 0 < k -> ~ ex_series (fun n => exp (p n)).
Proof.
  intros D1.
  assert (expands (fun n : nat => k * INR n + 3) [(k, [1]); (3, [])] exactly)
    by expand.
  assert (expands (fun n : nat => ln (k * INR n + 3)) [(1, [0; 1]); (ln k, [])] (Some [-1]))
    by expand.
  assert (expands (fun n : nat => ln (ln (k * INR n + 3))) [(1, [0; 0; 1]); (ln k, [0; -1])] (Some
    [0; -2]))
    by expand.
  assert (expands p [(-1, [0; 1]); (-1, [0; 0; 1])] (Some []))
    by (unfold p; expand).
  rung 2%nat.
Qed.

End Verdict.
