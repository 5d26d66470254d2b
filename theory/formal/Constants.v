(** Rational bounds of pi, of logarithms and exponentials of rationals, and of roots; equalities of
    logarithms and powers. *)
From Coq Require Import Reals Lra Lia Psatz Arith Machin.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums.
Open Scope R_scope.

Lemma PI_between : 3141592653589 / 1000000000000 < PI < 3141592653590 / 1000000000000.
Proof.
  destruct (PI_2_3_7_ineq 7) as [L U].
  unfold PI_2_3_7_tg, tg_alt, Ratan_seq in L, U. simpl in L, U. split; lra.
Qed.

(** ** Exponentials: bounds of e^y for small y >= 0, squared k times *)
Lemma increasing_from_0 f df : (forall x, is_derive f x (df x)) -> (forall x, 0 <= x -> 0 <= df x)
  ->
  forall x, 0 <= x -> f 0 <= f x.
Proof.
  intros D P x Hx. destruct (MVT_gen f 0 x df) as (c & Hc & E).
  - intros t _. apply D.
  - intros t _. apply continuity_pt_filterlim. apply (ex_derive_continuous f). eexists. apply D.
  - rewrite Rmin_left, Rmax_right in Hc by trivial. rewrite Rminus_0_r in E.
    pose proof (P c ltac:(lra)). nra.
Qed.

Lemma exp_cubic y : 0 <= y ->
  1 + y + y ^ 2 / 2 + y ^ 3 / 6 <= exp y /\ 1 - y + y ^ 2 / 2 - y ^ 3 / 6 <= exp (- y).
Proof.
  assert (A1 : forall y, 0 <= y -> 0 <= exp y - (1 + y)) by (intros; pose proof (exp_ineq1_le y0);
    lra).
  assert (A2 : forall y, 0 <= y -> 0 <= exp y - (1 + y + y ^ 2 / 2)).
  { intros z Hz. pose proof (increasing_from_0 (fun y => exp y - (1 + y + y ^ 2 / 2))
      (fun y => exp y - (1 + y))) as H. simpl in H. rewrite exp_0 in H.
    enough (1 - (1 + 0 + 0 * (0 * 1) / 2) <= exp z - (1 + z + z * (z * 1) / 2)) by (simpl; lra).
    apply H; trivial. intros x. auto_derive; trivial. field. }
  assert (B1 : forall y, 0 <= y -> 0 <= exp (- y) - (1 - y)) by (intros z _; pose proof
    (exp_ineq1_le (- z)); lra).
  assert (B2 : forall y, 0 <= y -> 0 <= (1 - y + y ^ 2 / 2) - exp (- y)).
  { intros z Hz. pose proof (increasing_from_0 (fun y => (1 - y + y ^ 2 / 2) - exp (- y))
      (fun y => exp (- y) - (1 - y))) as H. simpl in H. rewrite Ropp_0, exp_0 in H.
    enough (1 - 0 + 0 * (0 * 1) / 2 - 1 <= 1 - z + z * (z * 1) / 2 - exp (- z)) by (simpl; lra).
    apply H; trivial. intros x. auto_derive; trivial. field. }
  intros Hy. split.
  - pose proof (increasing_from_0 (fun y => exp y - (1 + y + y ^ 2 / 2 + y ^ 3 / 6))
      (fun y => exp y - (1 + y + y ^ 2 / 2))) as H. cbv beta in H. rewrite exp_0 in H.
    specialize (H ltac:(intros x; auto_derive; trivial; simpl; field) A2 y Hy). simpl in *. lra.
  - pose proof (increasing_from_0 (fun y => exp (- y) - (1 - y + y ^ 2 / 2 - y ^ 3 / 6))
      (fun y => (1 - y + y ^ 2 / 2) - exp (- y))) as H. cbv beta in H. rewrite Ropp_0, exp_0 in H.
    specialize (H ltac:(intros x; auto_derive; trivial; simpl; field) B2 y Hy). simpl in *. lra.
Qed.

(** e^x = (e^{x/k})^k. *)
Lemma exp_power x k : (1 <= k)%nat -> exp x = exp (x / INR k) ^ k.
Proof.
  intros Hk. rewrite <- Rpower_pow by apply exp_pos. unfold Rpower. rewrite ln_exp. f_equal.
  field. apply not_0_INR. lia.
Qed.

(** a < log q if q (1 - y + y^2/2 - y^3/6)^k > 1 for y = a/k, where this polynomial is positive. *)
Lemma ln_above a q k y : 0 <= y -> y <= 1 -> (1 <= k)%nat -> a = y * INR k -> 0 < q ->
  1 < q * (1 - y + y ^ 2 / 2 - y ^ 3 / 6) ^ k -> a < ln q.
Proof.
  intros Hy Hy1 Hk -> Hq H. apply exp_lt_inv. rewrite exp_ln by trivial.
  destruct (exp_cubic y Hy) as [_ E].
  assert (P : 0 <= 1 - y + y ^ 2 / 2 - y ^ 3 / 6) by nra.
  assert (F : (1 - y + y ^ 2 / 2 - y ^ 3 / 6) ^ k <= exp (- (y * INR k))).
  { rewrite (exp_power _ k Hk). apply pow_incr. split; trivial.
    replace (- (y * INR k) / INR k) with (- y); trivial. field. apply not_0_INR. lia. }
  apply (Rmult_le_compat_l q) in F; [|lra].
  assert (G : 1 < q * exp (- (y * INR k))) by lra. rewrite exp_Ropp in G.
  pose proof (exp_pos (y * INR k)) as Pe. apply (Rmult_lt_compat_r (exp (y * INR k))) in G; trivial.
  rewrite Rmult_assoc, Rinv_l in G by lra. lra.
Qed.

(** log q < a if q < (1 + y + y^2/2 + y^3/6)^k for y = a/k. *)
Lemma ln_below a q k y : 0 <= y -> (1 <= k)%nat -> a = y * INR k -> 0 < q ->
  q < (1 + y + y ^ 2 / 2 + y ^ 3 / 6) ^ k -> ln q < a.
Proof.
  intros Hy Hk -> Hq H. apply exp_lt_inv. rewrite exp_ln by trivial.
  destruct (exp_cubic y Hy) as [E _]. apply Rlt_le_trans with (1 := H).
  rewrite (exp_power (y * INR k) k Hk). replace (y * INR k / INR k) with y.
  - apply pow_incr. split; [|trivial]. pose proof (pow_le y 2 Hy). pose proof (pow_le y 3 Hy). lra.
  - field. apply not_0_INR. lia.
Qed.

(** a < e^x and e^x < a, for x >= 0, likewise. *)
Lemma exp_above a x k y : 0 <= y -> (1 <= k)%nat -> x = y * INR k ->
  a < (1 + y + y ^ 2 / 2 + y ^ 3 / 6) ^ k -> a < exp x.
Proof.
  intros Hy Hk -> H. destruct (Rle_lt_dec a 0) as [Ha|Ha]; [pose proof (exp_pos (y * INR k)); lra|].
  rewrite <- (exp_ln a Ha). apply exp_increasing. now apply (ln_below _ a k y).
Qed.

Lemma exp_below a x k y : 0 <= y -> y <= 1 -> (1 <= k)%nat -> x = y * INR k -> 0 < a ->
  1 < a * (1 - y + y ^ 2 / 2 - y ^ 3 / 6) ^ k -> exp x < a.
Proof.
  intros Hy Hy1 Hk E Ha H. rewrite <- (exp_ln a Ha). apply exp_increasing. now apply (ln_above _ a
    k y).
Qed.

(** Roots: a < q^{m/d} if a^d < q^m, and the other way round. *)
Lemma Rpower_root q m d : 0 < q -> (1 <= d)%nat -> Rpower q (INR m / INR d) ^ d = q ^ m.
Proof.
  intros Hq Hd. rewrite <- Rpower_pow by apply exp_pos. rewrite Rpower_mult, <- Rpower_pow by
    trivial.
  f_equal. field. apply not_0_INR. lia.
Qed.

Lemma root_above a q m d : 0 < q -> (1 <= d)%nat -> a ^ d < q ^ m -> a < Rpower q (INR m / INR d).
Proof.
  intros Hq Hd H. rewrite <- (Rpower_root q m d Hq Hd) in H. apply Rnot_le_lt. intros L.
  apply (Rlt_not_le _ _ H). apply pow_incr. split; [left; apply exp_pos|trivial].
Qed.

Lemma root_below a q m d : 0 < a -> 0 < q -> (1 <= d)%nat -> q ^ m < a ^ d ->
  Rpower q (INR m / INR d) < a.
Proof.
  intros Ha Hq Hd H. rewrite <- (Rpower_root q m d Hq Hd) in H. apply Rnot_le_lt. intros L.
  apply (Rlt_not_le _ _ H). apply pow_incr. split; [lra|trivial].
Qed.

(** ** Equalities *)
Lemma ln_pow x k : 0 < x -> ln (x ^ k) = INR k * ln x.
Proof. intros H. rewrite <- Rpower_pow by trivial. unfold Rpower. apply ln_exp. Qed.

Lemma ln_Rpower x r : ln (Rpower x r) = r * ln x.
Proof. unfold Rpower. apply ln_exp. Qed.

Lemma Rpower_value c r x : 0 < x -> ln x = r * ln c -> Rpower c r = x.
Proof. intros Hx H. unfold Rpower. rewrite <- H. now apply exp_ln. Qed.
