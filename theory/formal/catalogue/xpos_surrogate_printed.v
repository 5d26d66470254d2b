(** The exp-series of p(n) = a*((107/112)**(n/512)*cos(10**(1/4)*n/10000) + (109/224)**(n/512)*cos(10**(7/8)*n/100) + (11/16)**(n/512)*cos(10**(3/4)*n/1000) + (129/224)**(n/512)*cos(10**(3/8)*n/100) + (13/28)**(n/512)*cos(n/10) + (139/224)**(n/512)*cos(10**(1/8)*n/100) + (149/224)**(n/512)*cos(10**(7/8)*n/1000) + (159/224)**(n/512)*cos(10**(5/8)*n/1000) + (169/224)**(n/512)*cos(10**(3/8)*n/1000) + (17/32)**(n/512)*cos(10**(5/8)*n/100) + (179/224)**(n/512)*cos(10**(1/8)*n/1000) + (199/224)**(n/512)*cos(10**(5/8)*n/10000) + (2/7)**(n/512)*cos(n) + (209/224)**(n/512)*cos(10**(3/8)*n/10000) + (219/224)**(n/512)*cos(10**(1/8)*n/10000) + (23/28)**(n/512)*cos(n/1000) + (27/32)**(n/512)*cos(10**(7/8)*n/10000) + (3/8)**(n/512)*cos(sqrt(10)*n/10) + (31/56)**(n/512)*cos(sqrt(10)*n/100) + (37/112)**(n/512)*cos(10**(3/4)*n/10) + (41/56)**(n/512)*cos(sqrt(10)*n/1000) + (47/112)**(n/512)*cos(10**(1/4)*n/10) + (51/56)**(n/512)*cos(sqrt(10)*n/10000) + (57/112)**(n/512)*cos(10**(3/4)*n/100) + (67/112)**(n/512)*cos(10**(1/4)*n/100) + (69/224)**(n/512)*cos(10**(7/8)*n/10) + (79/224)**(n/512)*cos(10**(5/8)*n/10) + (87/112)**(n/512)*cos(10**(1/4)*n/1000) + (89/224)**(n/512)*cos(10**(3/8)*n/10) + (9/14)**(n/512)*cos(n/100) + (97/112)**(n/512)*cos(10**(3/4)*n/10000) + (99/224)**(n/512)*cos(10**(1/8)*n/10) + cos(n/10000))
    for a real
    diverges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables a : R.

Definition p (n : nat) : R := a * (Rpower (107 / 112) (1 / 512 * INR n) * cos (1 / 10000 * Rpower 10 (1 / 4) * INR n) + Rpower (109 / 224) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (7 / 8) * INR n) + Rpower (11 / 16) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (3 / 4) * INR n) + Rpower (129 / 224) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (3 / 8) * INR n) + Rpower (13 / 28) (1 / 512 * INR n) * cos (1 / 10 * INR n) + Rpower (139 / 224) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (1 / 8) * INR n) + Rpower (149 / 224) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (7 / 8) * INR n) + Rpower (159 / 224) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (5 / 8) * INR n) + Rpower (169 / 224) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (3 / 8) * INR n) + Rpower (17 / 32) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (5 / 8) * INR n) + Rpower (179 / 224) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (1 / 8) * INR n) + Rpower (199 / 224) (1 / 512 * INR n) * cos (1 / 10000 * Rpower 10 (5 / 8) * INR n) + Rpower (2 / 7) (1 / 512 * INR n) * cos (INR n) + Rpower (209 / 224) (1 / 512 * INR n) * cos (1 / 10000 * Rpower 10 (3 / 8) * INR n) + Rpower (219 / 224) (1 / 512 * INR n) * cos (1 / 10000 * Rpower 10 (1 / 8) * INR n) + Rpower (23 / 28) (1 / 512 * INR n) * cos (1 / 1000 * INR n) + Rpower (27 / 32) (1 / 512 * INR n) * cos (1 / 10000 * Rpower 10 (7 / 8) * INR n) + Rpower (3 / 8) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (1 / 2) * INR n) + Rpower (31 / 56) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (1 / 2) * INR n) + Rpower (37 / 112) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (3 / 4) * INR n) + Rpower (41 / 56) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (1 / 2) * INR n) + Rpower (47 / 112) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (1 / 4) * INR n) + Rpower (51 / 56) (1 / 512 * INR n) * cos (1 / 10000 * Rpower 10 (1 / 2) * INR n) + Rpower (57 / 112) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (3 / 4) * INR n) + Rpower (67 / 112) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (1 / 4) * INR n) + Rpower (69 / 224) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (7 / 8) * INR n) + Rpower (79 / 224) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (5 / 8) * INR n) + Rpower (87 / 112) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (1 / 4) * INR n) + Rpower (89 / 224) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (3 / 8) * INR n) + Rpower (9 / 14) (1 / 512 * INR n) * cos (1 / 100 * INR n) + Rpower (97 / 112) (1 / 512 * INR n) * cos (1 / 10000 * Rpower 10 (3 / 4) * INR n) + Rpower (99 / 224) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (1 / 8) * INR n) + cos (1 / 10000 * INR n)).

Theorem verdict : ~ ex_series (fun n => exp (p n)).
Proof.
  assert (expands (fun n : nat => a * (Rpower (107 / 112) (1 / 512 * INR n) * cos (1 / 10000 *
    Rpower 10 (1 / 4) * INR n) + Rpower (109 / 224) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (7
    / 8) * INR n) + Rpower (11 / 16) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (3 / 4) * INR n)
    + Rpower (129 / 224) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (3 / 8) * INR n) + Rpower (13
    / 28) (1 / 512 * INR n) * cos (1 / 10 * INR n) + Rpower (139 / 224) (1 / 512 * INR n) * cos (1 /
    100 * Rpower 10 (1 / 8) * INR n) + Rpower (149 / 224) (1 / 512 * INR n) * cos (1 / 1000 * Rpower
    10 (7 / 8) * INR n) + Rpower (159 / 224) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (5 / 8) *
    INR n) + Rpower (169 / 224) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (3 / 8) * INR n) +
    Rpower (17 / 32) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (5 / 8) * INR n) + Rpower (179 /
    224) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (1 / 8) * INR n) + Rpower (199 / 224) (1 /
    512 * INR n) * cos (1 / 10000 * Rpower 10 (5 / 8) * INR n) + Rpower (2 / 7) (1 / 512 * INR n) *
    cos (INR n) + Rpower (209 / 224) (1 / 512 * INR n) * cos (1 / 10000 * Rpower 10 (3 / 8) * INR n)
    + Rpower (219 / 224) (1 / 512 * INR n) * cos (1 / 10000 * Rpower 10 (1 / 8) * INR n) + Rpower
    (23 / 28) (1 / 512 * INR n) * cos (1 / 1000 * INR n) + Rpower (27 / 32) (1 / 512 * INR n) * cos
    (1 / 10000 * Rpower 10 (7 / 8) * INR n) + Rpower (3 / 8) (1 / 512 * INR n) * cos (1 / 10 *
    Rpower 10 (1 / 2) * INR n) + Rpower (31 / 56) (1 / 512 * INR n) * cos (1 / 100 * Rpower 10 (1 /
    2) * INR n) + Rpower (37 / 112) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (3 / 4) * INR n) +
    Rpower (41 / 56) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (1 / 2) * INR n) + Rpower (47 /
    112) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (1 / 4) * INR n) + Rpower (51 / 56) (1 / 512 *
    INR n) * cos (1 / 10000 * Rpower 10 (1 / 2) * INR n) + Rpower (57 / 112) (1 / 512 * INR n) * cos
    (1 / 100 * Rpower 10 (3 / 4) * INR n) + Rpower (67 / 112) (1 / 512 * INR n) * cos (1 / 100 *
    Rpower 10 (1 / 4) * INR n) + Rpower (69 / 224) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (7 /
    8) * INR n) + Rpower (79 / 224) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (5 / 8) * INR n) +
    Rpower (87 / 112) (1 / 512 * INR n) * cos (1 / 1000 * Rpower 10 (1 / 4) * INR n) + Rpower (89 /
    224) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (3 / 8) * INR n) + Rpower (9 / 14) (1 / 512 *
    INR n) * cos (1 / 100 * INR n) + Rpower (97 / 112) (1 / 512 * INR n) * cos (1 / 10000 * Rpower
    10 (3 / 4) * INR n) + Rpower (99 / 224) (1 / 512 * INR n) * cos (1 / 10 * Rpower 10 (1 / 8) *
    INR n) + cos (1 / 10000 * INR n))) [] (Some []))
    by expand.
  assert (expands p [] (Some []))
    by (unfold p; expand).
  rung 0%nat.
Qed.

End Verdict.
