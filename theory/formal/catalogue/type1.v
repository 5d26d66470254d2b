(** The exp-series of p(n) = -2*log(n + 1).

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Definition p (n : nat) : R := -2 * ln (INR n + 1).

Theorem verdict : ex_series (fun n => exp (p n)).
Proof.
  assert (E1 : expands (fun n : nat => INR n + 1) [(1, [1])] (Some []))
    by sum.
  assert (E2 : expands (fun n : nat => ln (INR n + 1)) [(1, [0; 1])] (Some [-1]))
    by (gathering (logarithm E1 (Some [-1]) (Some [-1]) 0%nat (0) by (logs; constant)) (raw; cancel
      ([] : expo); gather_terms)).
  assert (E3 : expands p [(-2, [0; 1])] (Some [-1]))
    by (unfold p; sum).
  apply (lead_converges p 0 _ _ _ _ E3); [led | right; split; [constant | same]].
Qed.
