(** The normalised tail T_j/B of a convergent series, and the order of two receptive fields. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Least ReceptiveField.
Open Scope R_scope.

(** u_j = T_j/B. *)
Definition share (b : nat -> R) (j : nat) : R := tail b j / Series b.

(** TRF_a(eps) <= TRF_b(eps), and its opposite. *)
Definition trf_order (a b : nat -> R) (eps : R) : Prop :=
  forall ta tb, is_least (trf a eps) ta -> is_least (trf b eps) tb -> (ta <= tb)%nat.
Definition trf_order_fails (a b : nat -> R) (eps : R) : Prop :=
  forall ta tb, is_least (trf a eps) ta -> is_least (trf b eps) tb -> (tb < ta)%nat.

Lemma trf_share b eps j : weights b -> ex_series b -> (trf b eps j <-> share b j < eps).
Proof.
  intros Hb Hs. pose proof (series_pos b Hb Hs). unfold trf, share.
  rewrite Rlt_div_l by lra. reflexivity.
Qed.

Lemma share_mono b j k : weights b -> ex_series b -> (j <= k)%nat -> share b k <= share b j.
Proof.
  intros Hb Hs Hjk. pose proof (series_pos b Hb Hs). unfold share, Rdiv.
  apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. apply tail_mono; trivial. apply Hb.
Qed.

Lemma share_le_1 b j : weights b -> ex_series b -> share b j <= 1.
Proof.
  intros Hb Hs. apply Rle_trans with (share b 0); [apply share_mono; trivial; lia|].
  unfold share, tail. simpl. pose proof (series_pos b Hb Hs). right. field. lra.
Qed.

Lemma share_pos b j : weights b -> ex_series b -> (forall N, exists n, (N <= n)%nat /\ 0 < b n) ->
  0 < share b j.
Proof.
  intros Hb Hs Hi. pose proof (series_pos b Hb Hs). destruct (Hi j) as (n & Hn & Pn).
  apply Rdiv_lt_0_compat; trivial. unfold tail.
  pose proof (partial_le_series b (S n) (proj1 Hb) Hs) as L. simpl in L.
  pose proof (partial_mono b j n (proj1 Hb) Hn). lra.
Qed.

Lemma share_0 b : ex_series b -> is_lim_seq (share b) 0.
Proof.
  intros Hs. replace (Finite 0) with (Rbar_mult 0 (/ Series b)) by (simpl; f_equal; ring).
  apply is_lim_seq_scal_r. now apply tail_lim.
Qed.

Lemma order_of_shares a b eps t : weights a -> weights b -> ex_series a -> ex_series b ->
  (forall j, (t <= j)%nat -> share a j <= share b j) -> eps <= share b t -> trf_order a b eps.
Proof.
  intros Ha Hb Sa Sb H He ta tb [_ La] [Ht _]. apply La. rewrite trf_share in Ht |- * by trivial.
  destruct (le_lt_dec t tb) as [Hle|Hlt]; [specialize (H tb Hle); lra|].
  pose proof (share_mono b tb t Hb Sb ltac:(lia)). lra.
Qed.
