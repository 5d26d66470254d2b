(** The exp-series of p(n) = -log(n + 1).

    Written by farfield; `coqc -Q theory/formal Farfield FILE.v` checks it after `make formal`.
    The prover's ln, Rpower and / are total: where the formula has no value, as log n has none at
    n = 0, they have some. That concerns finitely many terms, on which no verdict depends. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Definition p (n : nat) : R := - ln (INR n + 1).

Theorem verdict : ~ ex_series (fun n => exp (p n)).
Proof.
  assert (E1 : expands (fun n : nat => INR n + 1) [(1, [1]); (1, [])] (None : order)).
    { eapply expands_gather; [apply expands_plus; [lower expands_n | lower (expands_const (1))] |
      gather]. }
  assert (E2 : expands (fun n : nat => ln (INR n + 1)) [(1, [0; 1])] (Some [-1])).
    { eapply expands_gather; [logarithm E1 (Some [-1]) (Some [-1]) 0%nat (0) by (logs; constant) |
      gather]. }
  assert (E3 : expands (fun n : nat => - ln (INR n + 1)) [(-1, [0; 1])] (Some [-1])).
    { eapply expands_gather; [apply expands_opp; lower E2 | gather]. }
  assert (E : expands p [(-1, [0; 1])] (Some [-1])).
    { gathered E3. }
  apply (rest_diverges p 1 _ _ E); [led].
Qed.
