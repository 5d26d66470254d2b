(** From which eps on the lighter tail has the smaller receptive field. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Least ReceptiveField Shares.
Open Scope R_scope.

(** eps* = min { v_j : u_j > v_j }, u = share a, v = share b. *)
Definition is_crossover (a b : nat -> R) (e : R) : Prop :=
  (exists j, share b j < share a j /\ share b j = e) /\
  (forall j, share b j < share a j -> e <= share b j).

(** The order TRF_a <= TRF_b holds for all eps <= eps* ... *)
Theorem crossover_below a b e eps : weights a -> weights b -> ex_series a -> ex_series b ->
  is_crossover a b e -> eps <= e -> trf_order a b eps.
Proof.
  intros Ha Hb Sa Sb [_ He] Heps ta tb [_ La] [Ht _]. apply La.
  rewrite trf_share in Ht |- * by trivial.
  destruct (Rlt_le_dec (share b tb) (share a tb)) as [H|H]; [|lra]. specialize (He _ H). lra.
Qed.

(** ... and fails just above it, on an interval (eps*, e'] with eps* < e' <= 1. *)
Theorem crossover_above a b e : weights a -> weights b -> ex_series a -> ex_series b ->
  is_crossover a b e ->
  exists e', e < e' <= 1 /\ forall eps, e < eps <= e' -> trf_order_fails a b eps.
Proof.
  intros Ha Hb Sa Sb [(j & Hj & Ej) _]. exists (share a j). split.
  - split; [lra|]. now apply share_le_1.
  - intros eps Heps ta tb [Ht _] [_ Lb]. rewrite trf_share in Ht by trivial.
    assert (tb <= j)%nat by (apply Lb; rewrite trf_share by trivial; lra).
    destruct (le_lt_dec ta j) as [Hta|]; [exfalso|lia].
    pose proof (share_mono a ta j Ha Sa Hta). lra.
Qed.

(** If u_j > v_j for no j (eps* = 1), the order holds for every eps. *)
Theorem crossover_none a b eps : weights a -> weights b -> ex_series a -> ex_series b ->
  (forall j, share a j <= share b j) -> trf_order a b eps.
Proof.
  intros Ha Hb Sa Sb H ta tb [_ La] [Ht _]. apply La. rewrite trf_share in Ht |- * by trivial.
  specialize (H tb). lra.
Qed.

(** If u_j <= v_j for all large j, the minimum exists, or there is nothing to take it of. *)
Theorem crossover_exists a b t : (forall j, (t <= j)%nat -> share a j <= share b j) ->
  (forall j, share a j <= share b j) \/ exists e, is_crossover a b e.
Proof.
  intros H.
  assert (G : (forall j, (j < t)%nat -> share a j <= share b j) \/
    exists e, (exists j, (j < t)%nat /\ share b j < share a j /\ share b j = e) /\
      forall j, (j < t)%nat -> share b j < share a j -> e <= share b j).
  { clear H. induction t as [|t IH]; [left; lia|].
    assert (Last : forall j, (j < S t)%nat -> j = t \/ (j < t)%nat) by lia.
    destruct (Rlt_le_dec (share b t) (share a t)) as [Ht|Ht];
      destruct IH as [IH|(e & (j & Hj & Hj1 & Hj2) & IH)].
    - right. exists (share b t). split; [exists t; auto|].
      intros k Hk Hlt. destruct (Last k Hk) as [->|Hk']; [lra|]. specialize (IH k Hk'). lra.
    - right. destruct (Rle_lt_dec e (share b t)) as [Het|Het].
      + exists e. split; [exists j; auto|].
        intros k Hk Hlt. destruct (Last k Hk) as [->|Hk']; auto.
      + exists (share b t). split; [exists t; auto|].
        intros k Hk Hlt. destruct (Last k Hk) as [->|Hk']; [lra|]. specialize (IH k Hk' Hlt). lra.
    - left. intros k Hk. destruct (Last k Hk) as [->|Hk']; auto.
    - right. exists e. split; [exists j; auto|].
      intros k Hk Hlt. destruct (Last k Hk) as [->|Hk']; [lra|auto]. }
  destruct G as [G|(e & (j & _ & Hj) & G)].
  - left. intros j. destruct (le_lt_dec t j); auto.
  - right. exists e. split; [now exists j|]. intros k Hk.
    destruct (le_lt_dec t k) as [Hk'|Hk']; [specialize (H k Hk'); lra|auto].
Qed.

(** If u_j > v_j for infinitely many j, the infimum is 0: the order fails at arbitrarily small
    eps. *)
Theorem crossover_zero a b : weights a -> weights b -> ex_series a -> ex_series b ->
  (forall N, exists j, (N <= j)%nat /\ share b j < share a j) ->
  (forall N, exists n, (N <= n)%nat /\ 0 < b n) ->
  forall e, 0 < e -> exists eps, 0 < eps <= e /\ trf_order_fails a b eps.
Proof.
  intros Ha Hb Sa Sb H Hinf e He. pose proof (share_0 a Sa) as L. apply is_lim_seq_spec in L.
  destruct (L (mkposreal e He)) as [N HN]. destruct (H N) as (j & Hj & Hlt).
  specialize (HN j Hj). simpl in HN. rewrite Rminus_0_r in HN. apply Rabs_def2 in HN.
  pose proof (share_pos b j Hb Sb Hinf). exists (share a j). split; [lra|].
  intros ta tb [Ht _] [_ Lb]. rewrite trf_share in Ht by trivial.
  assert (tb <= j)%nat by (apply Lb; rewrite trf_share by trivial; lra).
  destruct (le_lt_dec ta j) as [Hta|]; [exfalso|lia].
  pose proof (share_mono a ta j Ha Sa Hta). lra.
Qed.
