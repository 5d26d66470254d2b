(** The receptive field of a linear bias p(n) = -m n. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Least ReceptiveField.
Open Scope R_scope.

Definition linear (m : R) (n : nat) : R := exp (- m * INR n).

Lemma linear_pow m n : linear m n = exp (- m) ^ n.
Proof.
  unfold linear. rewrite <- Rpower_pow by apply exp_pos. unfold Rpower. rewrite ln_exp. f_equal.
    ring.
Qed.

Lemma linear_ratio m : 0 < m -> 0 < exp (- m) < 1.
Proof. intros H. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing. lra. Qed.

Lemma linear_series m : 0 < m -> is_series (linear m) (/ (1 - exp (- m))).
Proof.
  intros H. apply is_series_ext with (fun n => exp (- m) ^ n).
  - intros n. symmetry. apply linear_pow.
  - apply is_series_geom. pose proof (linear_ratio m H). rewrite Rabs_pos_eq; lra.
Qed.

(** B = 1/(1 - e^{-m}), and T_j = e^{-m j} B. *)
Theorem linear_tail m j : 0 < m -> tail (linear m) j = exp (- m * INR j) * Series (linear m).
Proof.
  intros H. assert (S : ex_series (linear m)) by (eexists; now apply linear_series).
  rewrite tail_series, <- Series_scal_l by trivial. apply Series_ext. intros n. unfold linear.
  rewrite <- exp_plus, plus_INR. f_equal. ring.
Qed.

(** T_j < eps B exactly if j > log(1/eps)/m: away from ties TRF(eps) = floor(log(1/eps)/m) + 1. *)
Theorem trf_linear m eps j : 0 < m -> 0 < eps ->
  (trf (linear m) eps j <-> ln (/ eps) / m < INR j).
Proof.
  intros Hm He. unfold trf. rewrite linear_tail by trivial.
  assert (HB : 0 < Series (linear m)).
  { rewrite (is_series_unique _ _ (linear_series m Hm)). apply Rinv_0_lt_compat.
    pose proof (linear_ratio m Hm). lra. }
  rewrite ln_Rinv by trivial. split; intros H.
  - apply Rmult_lt_reg_r in H; trivial. rewrite <- (exp_ln eps He) in H. apply exp_lt_inv in H.
    apply Rlt_div_l; lra.
  - apply Rlt_div_l in H; trivial. apply Rmult_lt_compat_r; trivial.
    rewrite <- (exp_ln eps He). apply exp_increasing. lra.
Qed.

(** The same with the integer named: TRF(eps) = j + 1 for j <= log(1/eps)/m < j + 1. *)
Corollary trf_linear_floor m eps j : 0 < m -> 0 < eps ->
  INR j <= ln (/ eps) / m < INR (S j) -> is_least (trf (linear m) eps) (S j).
Proof.
  intros Hm He [L U]. split; [now apply trf_linear|]. intros k Hk. apply trf_linear in Hk; trivial.
  apply (Rle_lt_trans _ _ _ L) in Hk. now apply INR_lt in Hk.
Qed.
