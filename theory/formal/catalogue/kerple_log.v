(** The exp-series of p(n) = -r1*log(n*r2 + 1)
    for r1 positive; r2 positive
    converges if r1 > 1.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables r1 r2 : R.

Definition p (n : nat) : R := - r1 * ln (r2 * INR n + 1).

Theorem case_1 : 0 < r1 -> 0 < r2 -> 0 < r1 - 1 -> ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2 D3.
  assert (expands (fun n : nat => r2 * INR n + 1) [(r2, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (r2 * INR n + 1)) [(1, [0; 1])] (Some []))
    by expand.
  assert (expands p [(- r1, [0; 1])] (Some []))
    by (unfold p; expand).
  rung 0%nat.
Qed.

Theorem case_2 : 0 < r1 -> 0 < r2 -> 0 = r1 - 1 -> ~ ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2 D3.
  assert (expands (fun n : nat => r2 * INR n + 1) [(r2, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (r2 * INR n + 1)) [(1, [0; 1])] (Some []))
    by expand.
  assert (expands p [(-1, [0; 1])] (Some []))
    by (unfold p; expand).
  rung 1%nat.
Qed.

Theorem case_3 : 0 < r1 -> 0 < r2 -> 0 > r1 - 1 -> ~ ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2 D3.
  assert (expands (fun n : nat => r2 * INR n + 1) [(r2, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => ln (r2 * INR n + 1)) [(1, [0; 1])] (Some []))
    by expand.
  assert (expands p [(- r1, [0; 1])] (Some []))
    by (unfold p; expand).
  rung 0%nat.
Qed.

Theorem verdict : 0 < r1 -> 0 < r2 -> (ex_series (fun n => exp (p n)) <-> r1 > 1).
Proof.
  intros D1 D2.
  destruct (Rtotal_order 0 (r1 - 1)) as [X1|[X1|X1]].
  { split; intros _; [condition | apply case_1; assumption]. }
  { split; intros Y; exfalso; [revert Y; apply case_2; assumption | contrary]. }
  { split; intros Y; exfalso; [revert Y; apply case_3; assumption | contrary]. }
Qed.

End Verdict.
