(** [Q, Theorem 0.5]: the lighter tail has the smaller receptive field, for all small eps. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Least ReceptiveField Shares.
Open Scope R_scope.

Lemma tail_compare a b t : ex_series a -> ex_series b -> (forall n, 0 <= a n) -> 0 < Series a ->
  (forall n, (t <= n)%nat -> a n / Series a <= b n / Series b) ->
  forall j, (t <= j)%nat -> share a j <= share b j.
Proof.
  intros Sa Sb Pa PA H j Hj. unfold share. rewrite !tail_series by trivial.
  unfold Rdiv. rewrite <- !Series_scal_r. apply Series_le.
  - intros n. split; [|apply H; lia].
    apply Rmult_le_pos; [apply Pa|left; now apply Rinv_0_lt_compat].
  - apply ex_series_scal_r. destruct j as [|j]; [trivial|]. now apply ex_series_incr_n.
Qed.

(** If a_t/A <= b_t/B for all large t, and b has infinitely many positive terms, then
    TRF_a(eps) <= TRF_b(eps) for all small eps. *)
Theorem theorem_0_5 a b t : weights a -> weights b -> ex_series a -> ex_series b ->
  (forall n, (t <= n)%nat -> a n / Series a <= b n / Series b) ->
  (forall N, exists n, (N <= n)%nat /\ 0 < b n) ->
  exists e, 0 < e /\ forall eps, eps <= e -> trf_order a b eps.
Proof.
  intros Ha Hb Sa Sb H Hinf. exists (share b t). split; [now apply share_pos|].
  intros eps He. apply (order_of_shares a b eps t); trivial.
  apply tail_compare; trivial; [apply Ha|now apply series_pos].
Qed.

(** The decision: if a_t/b_t tends to r = e^x, x = lim (p_a - p_b), and r B/A < 1, then a is the
    lighter; r = 0 is the case x = -oo. *)
Theorem lighter_by_ratio a b r : weights a -> weights b -> ex_series a -> ex_series b ->
  (forall n, 0 < b n) -> is_lim_seq (fun n => a n / b n) (Finite r) ->
  r * (Series b / Series a) < 1 ->
  exists e, 0 < e /\ forall eps, eps <= e -> trf_order a b eps.
Proof.
  intros Ha Hb Sa Sb Pb L Hr.
  pose proof (series_pos a Ha Sa) as PA. pose proof (series_pos b Hb Sb) as PB.
  assert (Hr' : r < Series a / Series b).
  { apply Rmult_lt_reg_r with (Series b / Series a); [now apply Rdiv_lt_0_compat|].
    apply Rlt_le_trans with (1 := Hr). right. field. lra. }
  apply is_lim_seq_spec in L.
  destruct (L (mkposreal (Series a / Series b - r) ltac:(lra))) as [t Ht]. simpl in Ht.
  apply (theorem_0_5 a b t); trivial; [|now intros N; exists N].
  intros n Hn. specialize (Ht n Hn). apply Rabs_def2 in Ht. destruct Ht as [U _].
  assert (V : a n / b n < Series a / Series b) by lra. apply (proj1 (Rlt_div_l _ (Series a / Series
    b) _ (Pb n))) in V.
  apply frac_le; trivial. left. apply Rmult_lt_reg_r with (/ Series b).
  - now apply Rinv_0_lt_compat.
  - replace (a n * Series b * / Series b) with (a n) by (field; lra).
    replace (b n * Series a * / Series b) with (Series a / Series b * b n) by (field; lra). trivial.
Qed.

(** The terms 1, ..., 1, 0, 0, ... of a window of k keys. *)
Definition flat (k n : nat) : R := if (n <? k)%nat then 1 else 0.

Lemma flat_weights k : (1 <= k)%nat -> weights (flat k).
Proof.
  intros Hk. split; unfold flat; [intros n; destruct (n <? k)%nat; lra|].
  rewrite (proj2 (Nat.ltb_lt 0 k)) by lia. lra.
Qed.

Lemma flat_partial k n : (k <= n)%nat -> partial (flat k) n = INR k.
Proof.
  intros H. replace n with (k + (n - k))%nat by lia. rewrite partial_shift.
  rewrite (partial_ext _ (fun _ => 1) k), (partial_ext _ (fun _ => 0) (n - k)), !partial_const.
  - ring.
  - intros m _. unfold flat. now rewrite (proj2 (Nat.ltb_ge (k + m) k)) by lia.
  - intros m Hm. unfold flat. now rewrite (proj2 (Nat.ltb_lt m k) Hm).
Qed.

Lemma flat_series k : is_series (flat k) (INR k).
Proof.
  change (is_lim_seq (sum_n (flat k)) (INR k)).
  apply (is_lim_seq_ext_loc (fun _ => INR k)); [|apply is_lim_seq_const].
  exists k. intros n Hn. rewrite sum_n_partial, flat_partial; trivial. lia.
Qed.

(** Without infinitely many positive terms of b the theorem is false: windows of two keys (a) and of
    one (b) have 0 <= 0 from t = 2 on, and yet TRF_a(eps) = 2 > 1 = TRF_b(eps). *)
Theorem theorem_0_5_needs_infinite_support : exists a b, weights a /\ weights b /\
  ex_series a /\ ex_series b /\
  (forall n, (2 <= n)%nat -> a n / Series a <= b n / Series b) /\
  forall eps, 0 < eps < / 2 -> trf_order_fails a b eps.
Proof.
  assert (X : forall k, ex_series (flat k)) by (intros k; eexists; apply flat_series).
  assert (B : forall k, Series (flat k) = INR k) by (intros; apply is_series_unique, flat_series).
  exists (flat 2), (flat 1). do 2 (split; [apply flat_weights; lia|]). do 2 (split; [apply X|]).
  split.
  - intros n Hn. unfold flat.
    rewrite (proj2 (Nat.ltb_ge n 2)), (proj2 (Nat.ltb_ge n 1)) by lia. lra.
  - intros eps He ta tb [Ha _] [_ Lb].
    assert (Hb : (tb <= 1)%nat).
    { apply Lb. unfold trf, tail. rewrite B, flat_partial by lia. simpl. lra. }
    destruct (le_lt_dec ta 1) as [Hta|]; [exfalso|lia].
    unfold trf, tail in Ha. rewrite B in Ha.
    pose proof (partial_mono (flat 2) ta 1 (proj1 (flat_weights 2 ltac:(lia))) Hta) as M.
    unfold flat in M at 2. simpl in M, Ha. lra.
Qed.
