(** Bounded logits are never windowable: NoPE, RoPE, absolute positions
    and every mechanism whose logits, position included, lie in a bounded range. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Attention WindowError.
Open Scope R_scope.

(** The keys that a mask leaves visible, the query's own among them, weigh alike before content. *)
Definition visible (mask : nat -> bool) (n : nat) : R := if mask n then 1 else 0.
Definition all : nat -> bool := fun _ => true.

Lemma visible_weights mask : mask 0%nat = true -> weights (visible mask).
Proof.
  intros H. split; [intros n; unfold visible; destruct (mask n); lra|].
  unfold visible. rewrite H. lra.
Qed.

Lemma partial_all j : partial (visible all) j = INR j.
Proof.
  rewrite (partial_ext _ (fun _ => 1)) by reflexivity. rewrite partial_const. ring.
Qed.

Lemma between_all j i : (j <= i)%nat -> between (visible all) j i = INR (i - j).
Proof. intros H. unfold between. rewrite !partial_all, minus_INR; trivial. Qed.

(** Under a mask, with N_in visible keys in the window and N_out beyond, the mass outside is at
    least
    N_out/(N_out + N_in e^lam), lam the range of the logits of visible keys. *)
Theorem masked_mass_outside mask l lam i j : mask 0%nat = true -> (1 <= j <= i)%nat ->
  range (visible mask) l i lam ->
  let n_in := partial (visible mask) j in let n_out := between (visible mask) j i in
  n_out / (n_out + n_in * exp lam) <= outside (visible mask) l i j.
Proof.
  intros Hm Hj Hr n_in n_out.
  destruct (outside_between (visible mask) l lam i j (visible_weights mask Hm) Hj Hr) as [L _].
  unfold n_in. now rewrite (Rmult_comm (partial _ j)).
Qed.

(** Without a mask: at least (i - j)/(i - j + j e^lam), for every input ... *)
Theorem bounded_mass_outside l lam i j : (1 <= j <= i)%nat -> range (visible all) l i lam ->
  INR (i - j) / (INR (i - j) + INR j * exp lam) <= outside (visible all) l i j.
Proof.
  intros Hj Hr. pose proof (masked_mass_outside all l lam i j eq_refl Hj Hr) as H.
  simpl in H. now rewrite partial_all, between_all in H by lia.
Qed.

(** ... which is 1 - e^lam j/i or more: it tends to 1 as the row grows, for every window with
    j/i -> 0. *)
Theorem bounded_mass_escapes l lam i j : (1 <= j <= i)%nat -> 0 <= lam ->
  range (visible all) l i lam -> 1 - exp lam * (INR j / INR i) <= outside (visible all) l i j.
Proof.
  intros Hj Hl Hr. eapply Rle_trans; [|now apply (bounded_mass_outside l lam i j)].
  rewrite minus_INR by lia.
  assert (1 <= exp lam) by (rewrite <- exp_0; now apply exp_le).
  assert (0 < INR j) by (apply lt_0_INR; lia). assert (INR j <= INR i) by (apply le_INR; lia).
  assert (D : 0 < INR i - INR j + INR j * exp lam) by nra.
  apply Rle_trans with (1 - exp lam * INR j / (INR i - INR j + INR j * exp lam));
    [|right; field; lra].
  apply Rplus_le_compat_l, Ropp_le_contravar. unfold Rdiv. rewrite <- Rmult_assoc.
  apply Rmult_le_compat_l; [nra|]. apply Rinv_le_contravar; nra.
Qed.

(** Half of the mass is outside as soon as i >= j (1 + e^lam). *)
Theorem bounded_half_outside l lam i j : (1 <= j <= i)%nat -> range (visible all) l i lam ->
  INR j * (1 + exp lam) <= INR i -> / 2 <= outside (visible all) l i j.
Proof.
  intros Hj Hr Hi. eapply Rle_trans; [|now apply (bounded_mass_outside l lam i j)].
  rewrite minus_INR by lia. pose proof (exp_pos lam). assert (0 < INR j) by (apply lt_0_INR; lia).
  apply Rle_div_r; nra.
Qed.

(** An error eta < 2 V is guaranteed for all logits within [-beta, beta] exactly if
    i <= j (1 + eta' e^{-2 beta}), with eta' = eta/(2 V - eta). *)
Theorem bounded_guarantee {E : NormedModule R_AbsRing} (u : E) V beta eta i j : norm u = 1 ->
  (1 <= j <= i)%nat -> 0 <= beta -> 0 <= eta < 2 * V ->
  ((forall x (v : nat -> E), bounded beta x i -> vbounded V v i ->
      delta (visible all) x v i j <= eta) <->
   INR i <= INR j * (1 + eta / (2 * V - eta) * exp (- (2 * beta)))).
Proof.
  intros Hu Hj Hb He. pose proof (visible_weights all eq_refl) as W.
  assert (Pj : 0 < INR j) by (apply lt_0_INR; lia).
  assert (T : 0 <= INR (i - j)) by apply pos_INR.
  assert (Q : window_bound V (2 * beta) (INR (i - j)) (INR j) <= eta <->
              INR i <= INR j * (1 + eta / (2 * V - eta) * exp (- (2 * beta)))).
  { rewrite window_bound_le by (trivial; lra). rewrite minus_INR, exp_Ropp by lia.
    pose proof (exp_pos (2 * beta)) as P. set (e := exp (2 * beta)) in *.
    set (q := eta / (2 * V - eta)). rewrite Rle_div_l by trivial. split; intros H.
    - apply (Rmult_le_compat_l (/ e)) in H; [|left; now apply Rinv_0_lt_compat].
      rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l in H by lra. lra.
    - apply (Rmult_le_compat_l e) in H; [|lra].
      replace (e * (INR j * (1 + q * / e))) with (e * INR j + q * INR j) in H by (field; lra). lra.
        }
  rewrite <- Q, <- between_all, <- (partial_all j) by lia. split; intros H.
  - rewrite <- (window_error_attained (visible all) V beta u); trivial; [|lra].
    apply H; [now apply worst_logit_bounded|apply opposite_bounded; trivial; lra].
  - intros x v Hx Hv. apply Rle_trans with (2 := H).
    apply window_error; trivial. now apply bounded_range.
Qed.
