(** The exp-series of p(n) = -n**r2*r1.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables r1 r2 : R.

Definition p (n : nat) : R := if Rltb (INR n) 1 then 0 else - r1 * Rpower (INR n) r2.

Theorem verdict : 0 < r1 -> 0 < r2 -> ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (expands (fun n : nat => 1 - INR n) [(-1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => INR n - 1) [(1, [1])] (Some []))
    by expand.
  assert (eventually (fun n : nat => 1 < INR n))
    by decided.
  assert (expands (fun n : nat => Rpower (INR n) r2) [(1, [r2])] exactly)
    by expand.
  assert (expands (fun n : nat => - r1 * Rpower (INR n) r2) [(- r1, [r2])] exactly)
    by expand.
  assert (expands (fun n : nat => if Rltb (INR n) 1 then 0 else - r1 * Rpower (INR n) r2) [(- r1,
    [r2])] exactly)
    by expand.
  assert (expands p [(- r1, [r2])] exactly)
    by (unfold p; expand).
  rung 0%nat.
Qed.

End Verdict.
