(** Kept weight against dropped keys: a certificate at run time, for every softmax mechanism. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Attention.
Open Scope R_scope.

(** How many of i keys have a property. *)
Definition count (keep : nat -> bool) (i : nat) : R := partial (only keep (fun _ => 1)) i.

Lemma count_ge0 keep i : 0 <= count keep i.
Proof. apply partial_ge0. intros k _. apply only_ge0. intros; lra. Qed.

Section Values.
Context {E : NormedModule R_AbsRing}.

(** Z the weight of the kept keys, N the number of dropped ones, their logits at most M, and
    G = log Z - M: the error is at most 2 V N/(N + e^G). *)
Theorem kept_weight_error keep a (v : nat -> E) V M i : (forall n, 0 <= a n) ->
  0 < partial (only keep a) i -> vbounded V v i -> 0 <= V ->
  (forall n, (n < i)%nat -> keep n = false -> a n <= exp M) ->
  let n := count (drop keep) i in let g := ln (partial (only keep a) i) - M in
  error keep a v i <= 2 * V * (n / (n + exp g)).
Proof.
  intros Ha HK Hv HV Hm n g. eapply Rle_trans; [now apply (error_bound keep a v V i)|].
  apply Rmult_le_compat_l; [lra|]. set (Z := partial (only keep a) i) in *.
  assert (Hn : 0 <= n) by apply count_ge0.
  assert (HO : 0 <= partial (only (drop keep) a) i)
    by (apply partial_ge0; intros; now apply only_ge0).
  assert (HN : partial (only (drop keep) a) i <= exp M * n).
  { unfold n, count. rewrite <- partial_scal. apply partial_le. intros k Hk. unfold only, drop.
    destruct (keep k) eqn:Ek; simpl; [lra|]. rewrite Rmult_1_r. now apply Hm. }
  assert (Eg : exp M * exp g = Z).
  { unfold g. rewrite <- exp_plus. replace (M + (ln Z - M)) with (ln Z) by ring. now apply exp_ln. }
  pose proof (exp_pos g) as Pg. pose proof (exp_pos M) as PM. rewrite <- Eg.
  apply frac_le; [nra|lra|]. nra.
Qed.

(** The row is certified for the budget eta < 2 V if N <= eta' e^G, eta' = eta/(2 V - eta). *)
Theorem kept_weight_certificate keep a (v : nat -> E) V M eta i : (forall n, 0 <= a n) ->
  0 < partial (only keep a) i -> vbounded V v i -> 0 <= eta < 2 * V ->
  (forall n, (n < i)%nat -> keep n = false -> a n <= exp M) ->
  count (drop keep) i <= eta / (2 * V - eta) * exp (ln (partial (only keep a) i) - M) ->
  error keep a v i <= eta.
Proof.
  intros Ha HK Hv He Hm Hn.
  eapply Rle_trans; [apply (kept_weight_error keep a v V M i); trivial; lra|]. simpl.
  set (g := ln (partial (only keep a) i) - M) in *. set (n := count (drop keep) i) in *.
  pose proof (exp_pos g) as Pg. assert (0 <= n) by apply count_ge0. unfold Rdiv at 1.
  rewrite <- Rmult_assoc. apply Rle_div_l; [lra|].
  apply (Rmult_le_compat_r (2 * V - eta)) in Hn; [|lra].
  replace (eta / (2 * V - eta) * exp g * (2 * V - eta)) with (eta * exp g) in Hn by (field; lra).
    nra.
Qed.

(** Attained: all dropped logits M, values opposite. *)
Theorem kept_weight_attained keep a (u : E) V M i : norm u = 1 -> 0 <= V -> (forall n, 0 <= a n) ->
  0 < partial (only keep a) i ->
  (forall n, (n < i)%nat -> keep n = false -> a n = exp M) ->
  let n := count (drop keep) i in let g := ln (partial (only keep a) i) - M in
  error keep a (opposite keep V u) i = 2 * V * (n / (n + exp g)).
Proof.
  intros Hu HV Ha HK Hm n g. rewrite error_attained by trivial. f_equal.
  set (Z := partial (only keep a) i) in *. assert (Hn : 0 <= n) by apply count_ge0.
  assert (HN : partial (only (drop keep) a) i = exp M * n).
  { unfold n, count. rewrite <- partial_scal. apply partial_ext. intros k Hk. unfold only, drop.
    destruct (keep k) eqn:Ek; simpl; [ring|]. rewrite Rmult_1_r. now apply Hm. }
  assert (Eg : exp M * exp g = Z).
  { unfold g. rewrite <- exp_plus. replace (M + (ln Z - M)) with (ln Z) by ring. now apply exp_ln. }
  pose proof (exp_pos g). pose proof (exp_pos M). rewrite HN, <- Eg. field. split; nra.
Qed.
End Values.
