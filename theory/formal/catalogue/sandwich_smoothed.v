(** The exp-series of p(n) = (-33*log(n + 1)/5 - 32/5)/c
    for c positive
    converges if c < 33/5.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables c : R.

Definition p (n : nat) : R := / c * (-33 / 5 * ln (INR n + 1) - 32 / 5).

Theorem case_1 : 0 < c -> 0 < c - 33 / 5 -> ~ ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (0 < / c) by constant.
  assert (expands (fun n : nat => INR n + 1) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (INR n + 1)) [(1, [0; 1])] (Some [-1]))
    by expand.
  assert (expands p [(-33 / 5 / c, [0; 1])] (Some []))
    by (unfold p; expand).
  rung 0%nat.
Qed.

Theorem case_2 : 0 < c -> 0 = c - 33 / 5 -> ~ ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (0 < / c) by constant.
  assert (expands (fun n : nat => INR n + 1) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (INR n + 1)) [(1, [0; 1])] (Some [-1]))
    by expand.
  assert (expands p [(-1, [0; 1])] (Some []))
    by (unfold p; expand).
  rung 1%nat.
Qed.

Theorem case_3 : 0 < c -> 0 > c - 33 / 5 -> ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (0 < / c) by constant.
  assert (expands (fun n : nat => INR n + 1) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (INR n + 1)) [(1, [0; 1])] (Some [-1]))
    by expand.
  assert (expands p [(-33 / 5 / c, [0; 1])] (Some []))
    by (unfold p; expand).
  rung 0%nat.
Qed.

Theorem verdict : 0 < c -> (ex_series (fun n => exp (p n)) <-> c < 33 / 5).
Proof.
  intros D1.
  destruct (Rtotal_order 0 (c - 33 / 5)) as [X1|[X1|X1]].
  { split; intros Y; exfalso; [revert Y; apply case_1; assumption | contrary]. }
  { split; intros Y; exfalso; [revert Y; apply case_2; assumption | contrary]. }
  { split; intros _; [condition | apply case_3; assumption]. }
Qed.

End Verdict.
