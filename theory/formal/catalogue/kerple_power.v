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
  assert (E1 : expands (fun n : nat => 1 - INR n) [(-1, [1])] (Some []))
    by sum.
  assert (E2 : expands (fun n : nat => INR n - 1) [(1, [1])] (Some []))
    by sum.
  assert (H3 : eventually (fun n : nat => 1 < INR n))
    by (apply (eventually_less _ _ _ _ _ _ E2); [led | constant]).
  assert (E4 : expands (fun n : nat => Rpower (INR n) r2) [(1, [r2])] exactly)
    by (gathering (real_power expands_n exactly exactly 1%nat (1) by (apply Rpower_one)) gather).
  assert (E5 : expands (fun n : nat => - r1 * Rpower (INR n) r2) [(- r1, [r2])] exactly)
    by sum.
  assert (E6 : expands (fun n : nat => if Rltb (INR n) 1 then 0 else - r1 * Rpower (INR n) r2) [(-
    r1, [r2])] exactly)
    by (apply (expands_ext (fun n : nat => - r1 * Rpower (INR n) r2)); [pieces H3 | exact E5]).
  assert (E7 : expands p [(- r1, [r2])] exactly)
    by (unfold p; sum).
  apply (lead_converges p 0 _ _ _ _ E7); [led | left; split; [constant | less]].
Qed.

End Verdict.
