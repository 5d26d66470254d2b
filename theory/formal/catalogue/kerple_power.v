(** The exp-series of p(n) = -n**r2*r1.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    The prover's ln, Rpower and / are total: where the formula has no value, as log n has none at
    n = 0, they have some. That concerns finitely many terms, on which no verdict depends. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables r1 r2 : R.

Definition p (n : nat) : R := - r1 * Rpower (INR n) r2.

Theorem verdict : 0 < r1 -> 0 < r2 -> ex_series (fun n => exp (p n)).
Proof.
  intros D1 D2.
  assert (E1 : expands (fun n : nat => Rpower (INR n) r2) [(1, [r2])] exactly)
    by (gathering (real_power expands_n exactly exactly 0%nat (1) by (apply Rpower_one)) gather).
  assert (E2 : expands p [(- r1, [r2])] exactly)
    by (unfold p; sum).
  apply (lead_converges p 0 _ _ _ _ E2); [led | left; split; [constant | less]].
Qed.

End Verdict.
