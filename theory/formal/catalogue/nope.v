(** The exp-series of p(n) = 0.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    The prover's ln, Rpower and / are total: where the formula has no value, as log n has none at
    n = 0, they have some. That concerns finitely many terms, on which no verdict depends. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Definition p (n : nat) : R := 0.

Theorem verdict : ~ ex_series (fun n => exp (p n)).
Proof.
  assert (E1 : expands p [] exactly)
    by (unfold p; sum).
  apply (rest_diverges p 0 _ _ E1); [led].
Qed.
