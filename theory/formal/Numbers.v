(** Certified integers of closed forms, by interval arithmetic.

    The tactic [interval] computes with machine integers, so this file, and no other, also rests on
    the specification of the prover's primitive integers. *)
From Coq Require Import Reals Lra Lia Arith.
From Interval Require Import Tactic.
From Farfield Require Import Sums Least ReceptiveField TrfLinear.
Open Scope R_scope.

Lemma trf_integer m eps z : 0 < m -> 0 < eps -> (0 < z)%Z ->
  IZR (z - 1) <= ln (/ eps) / m < IZR z -> is_least (trf (linear m) eps) (Z.to_nat z).
Proof.
  intros Hm He Hz H. replace (Z.to_nat z) with (S (Z.to_nat (z - 1))) by lia.
  apply trf_linear_floor; trivial. replace (S (Z.to_nat (z - 1))) with (Z.to_nat z) by lia.
  rewrite !INR_IZR_INZ, !Z2Nat.id by lia. trivial.
Qed.

Ltac certify lemma z :=
  apply (lemma _ _ z); [lra | first [lra | lia] | lia | split; interval with (i_prec 60)].

(** TRF(eps) of ALiBi: 5, 10, 14 tokens for the slope 1/2 ... *)
Theorem trf_slope_half :
  is_least (trf (linear (1 / 2)) (1 / 10)) 5 /\ is_least (trf (linear (1 / 2)) (1 / 100)) 10 /\
  is_least (trf (linear (1 / 2)) (1 / 1000)) 14.
Proof.
  split; [certify trf_integer 5%Z|]. split; [certify trf_integer 10%Z|certify trf_integer 14%Z].
Qed.

(** ... and 590, 1179, 1769 for the slope 1/256, at eps = 0.1, 0.01, 0.001. *)
Theorem trf_slope_256th :
  is_least (trf (linear (1 / 256)) (1 / 10)) 590 /\
  is_least (trf (linear (1 / 256)) (1 / 100)) 1179 /\
  is_least (trf (linear (1 / 256)) (1 / 1000)) 1769.
Proof.
  split; [certify trf_integer 590%Z|].
  split; [certify trf_integer 1179%Z|certify trf_integer 1769%Z].
Qed.

(** The dtype horizon of a linear bias: the least n from which e^{-m n} is at most 2^{-k}, half of
    the least positive number of the format, and so rounds to 0. *)
Definition vanishes (m : R) (k n : nat) : Prop := linear m n <= / 2 ^ k.

Lemma vanishes_iff m k n : 0 < m -> (vanishes m k n <-> INR k * ln 2 / m <= INR n).
Proof.
  intros Hm. unfold vanishes, linear. rewrite <- (exp_ln (/ 2 ^ k)) by
    (apply Rinv_0_lt_compat, pow_lt; lra).
  rewrite ln_Rinv by (apply pow_lt; lra). rewrite <- Rpower_pow by lra. unfold Rpower.
  rewrite ln_exp. split; intros H.
  - apply Rmult_le_reg_l with m; trivial. replace (m * (INR k * ln 2 / m)) with (INR k * ln 2)
      by (field; lra). apply Rnot_lt_le. intros L. apply (Rlt_not_le _ _ (exp_increasing
      (- (INR k * ln 2)) (- m * INR n) ltac:(lra))). exact H.
  - apply exp_le. apply (Rmult_le_compat_l m) in H; [|lra].
    replace (m * (INR k * ln 2 / m)) with (INR k * ln 2) in H by (field; lra). lra.
Qed.

Lemma horizon m k z : 0 < m -> (0 < k)%nat -> (0 < z)%Z ->
  IZR (z - 1) < IZR (Z.of_nat k) * ln 2 / m <= IZR z -> is_least (vanishes m k) (Z.to_nat z).
Proof.
  intros Hm Hk Hz [L U]. rewrite <- INR_IZR_INZ in L, U.
  assert (E : forall y, (0 <= y)%Z -> INR (Z.to_nat y) = IZR y)
    by (intros; rewrite INR_IZR_INZ, Z2Nat.id; trivial).
  split; [apply vanishes_iff; trivial; now rewrite E by lia|].
  intros j Hj. apply vanishes_iff in Hj; trivial. rewrite <- E in L by lia.
  apply (Rlt_le_trans _ _ _ L) in Hj. apply INR_lt in Hj. lia.
Qed.

(** Half precision has 2^{-25}, bfloat16 2^{-134}, single precision 2^{-150}: for the slope 1/2 the
    horizons are 35, 186 and 208 ... *)
Theorem horizon_slope_half :
  is_least (vanishes (1 / 2) 25) 35 /\ is_least (vanishes (1 / 2) 134) 186 /\
  is_least (vanishes (1 / 2) 150) 208.
Proof. split; [certify horizon 35%Z|]. split; [certify horizon 186%Z|certify horizon 208%Z]. Qed.

(** ... and for the slope 1/256 they are 4437, 23778 and 26617. *)
Theorem horizon_slope_256th :
  is_least (vanishes (1 / 256) 25) (Z.to_nat 4437) /\
  is_least (vanishes (1 / 256) 134) (Z.to_nat 23778) /\
  is_least (vanishes (1 / 256) 150) (Z.to_nat 26617).
Proof.
  split; [certify horizon 4437%Z|]. split; [certify horizon 23778%Z|certify horizon 26617%Z].
Qed.
