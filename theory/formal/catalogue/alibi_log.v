(** The exp-series of p(n) = -m*log(n + 1)
    for m positive
    converges if m > 1.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables m : R.

Definition p (n : nat) : R := - m * ln (INR n + 1).

Theorem case_1 : 0 < m -> 0 < m - 1 -> ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (expands (fun n : nat => INR n + 1) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (INR n + 1)) [(1, [0; 1])] (Some [-1]))
    by expand.
  assert (expands p [(- m, [0; 1])] (Some [-1]))
    by (unfold p; expand).
  rung 0%nat.
Qed.

Theorem case_2 : 0 < m -> 0 = m - 1 -> ~ ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (expands (fun n : nat => INR n + 1) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (INR n + 1)) [(1, [0; 1])] (Some [-1]))
    by expand.
  assert (expands p [(-1, [0; 1])] (Some [-1]))
    by (unfold p; expand).
  rung 1%nat.
Qed.

Theorem case_3 : 0 < m -> 0 > m - 1 -> ~ ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (expands (fun n : nat => INR n + 1) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (INR n + 1)) [(1, [0; 1])] (Some [-1]))
    by expand.
  assert (expands p [(- m, [0; 1])] (Some [-1]))
    by (unfold p; expand).
  rung 0%nat.
Qed.

Theorem verdict : 0 < m -> (ex_series (fun n => exp (p n)) <-> m > 1).
Proof.
  intros D1.
  destruct (Rtotal_order 0 (m - 1)) as [X1|[X1|X1]].
  { split; intros _; [condition | apply case_1; assumption]. }
  { split; intros Y; exfalso; [revert Y; apply case_2; assumption | contrary]. }
  { split; intros Y; exfalso; [revert Y; apply case_3; assumption | contrary]. }
Qed.

End Verdict.
