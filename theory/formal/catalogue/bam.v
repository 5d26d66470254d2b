(** The exp-series of p(n) = -(eps + Abs(mu - n))**beta*exp(s)
    for beta real; eps positive; mu real; s real
    converges if beta > 0.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables beta eps mu s : R.

Definition p (n : nat) : R := - exp s * Rpower (eps + Rabs (mu - INR n)) beta.

Theorem case_1 : 0 < eps -> 0 < beta -> ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (0 < exp s) by constant.
  assert (expands (fun n : nat => mu - INR n) [(-1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => Rabs (mu - INR n)) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => eps + Rabs (mu - INR n)) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => Rpower (eps + Rabs (mu - INR n)) beta) [(1, [beta])] (Some [beta -
    1]))
    by expand.
  assert (expands p [(- exp s, [beta])] (Some [beta - 1]))
    by (unfold p; expand).
  rung 0%nat.
Qed.

Theorem case_2 : 0 < eps -> 0 = beta -> ~ ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (expands (fun n : nat => mu - INR n) [(-1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => Rabs (mu - INR n)) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => eps + Rabs (mu - INR n)) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => Rpower (eps + Rabs (mu - INR n)) beta) [(1, [beta])] (Some [beta -
    1]))
    by expand.
  assert (expands p [(- exp s, [beta])] (Some [beta - 1]))
    by (unfold p; expand).
  rung 0%nat.
Qed.

Theorem case_3 : 0 < eps -> 0 > beta -> ~ ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (expands (fun n : nat => mu - INR n) [(-1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => Rabs (mu - INR n)) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => eps + Rabs (mu - INR n)) [(1, [1])] (Some []))
    by expand.
  assert (expands (fun n : nat => Rpower (eps + Rabs (mu - INR n)) beta) [(1, [beta])] (Some [beta -
    1]))
    by expand.
  assert (expands p [(- exp s, [beta])] (Some [beta - 1]))
    by (unfold p; expand).
  rung 0%nat.
Qed.

Theorem verdict : 0 < eps -> (ex_series (fun n => exp (p n)) <-> beta > 0).
Proof.
  intros D1.
  destruct (Rtotal_order 0 (beta)) as [X1|[X1|X1]].
  { split; intros _; [condition | apply case_1; assumption]. }
  { split; intros Y; exfalso; [revert Y; apply case_2; assumption | contrary]. }
  { split; intros Y; exfalso; [revert Y; apply case_3; assumption | contrary]. }
Qed.

End Verdict.
