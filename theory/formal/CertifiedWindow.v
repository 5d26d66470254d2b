(** The certified window: the least width that is provably enough for a budget. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Least Attention WindowError Windowable.
Open Scope R_scope.

(** The supremum of the error of a window of w keys. *)
Definition worst_error (b : nat -> R) (beta V : R) (w : nat) : R :=
  window_bound V (2 * beta) (tail b w) (partial b w).

(** It does not increase with the width, so every wider window is enough as well. *)
Theorem worst_error_decreasing b beta V w w' : weights b -> ex_series b -> 0 <= V ->
  (1 <= w <= w')%nat -> worst_error b beta V w' <= worst_error b beta V w.
Proof.
  intros Hb Hs HV [Hw Hww]. unfold worst_error. rewrite !window_bound_frac.
  apply Rmult_le_compat_l; [lra|].
  pose proof (partial_pos b w Hb Hw). pose proof (partial_mono b w w' (proj1 Hb) Hww).
  pose proof (tail_ge0 b w' (proj1 Hb) Hs). pose proof (tail_mono b w w' (proj1 Hb) Hww).
  pose proof (exp_pos (- (2 * beta))) as Hc. set (c := exp (- (2 * beta))) in *.
  assert (0 < c * partial b w) by now apply Rmult_lt_0_compat.
  assert (c * partial b w <= c * partial b w') by (apply Rmult_le_compat_l; lra).
  apply frac_le; [lra|lra|]. nra.
Qed.

(** It tends to 0, so every budget has a width. *)
Theorem certified_window_exists b beta V eta : weights b -> ex_series b -> 0 <= V -> 0 < eta ->
  exists w, is_least (fun w => (1 <= w)%nat /\ worst_error b beta V w <= eta) w.
Proof.
  intros Hb Hs HV He. set (c := exp (- (2 * beta))). assert (Hc : 0 < c) by apply exp_pos.
  pose proof (proj2 Hb) as H0.
  assert (Hcb : 0 < c * b 0%nat) by now apply Rmult_lt_0_compat.
  destruct (tail_small b (eta * (c * b 0%nat) / (2 * V + 1)) Hs) as [N HN].
  { apply Rdiv_lt_0_compat; [now apply Rmult_lt_0_compat|lra]. }
  apply least_exists with (S N).
  - intros k. destruct (le_dec 1 k); [|right; intros [? _]; lia].
    destruct (Rle_dec (worst_error b beta V k) eta); [now left; split|right; now intros [_ ?]].
  - split; [lia|]. specialize (HN (S N) ltac:(lia)). apply Rlt_div_r in HN; [|lra].
    pose proof (tail_ge0 b (S N) (proj1 Hb) Hs) as HT.
    assert (HB : c * b 0%nat <= c * partial b (S N)).
    { apply Rmult_le_compat_l; [lra|]. replace (b 0%nat) with (partial b 1) by (simpl; ring).
      apply partial_mono; [apply Hb|lia]. }
    unfold worst_error, window_bound. fold c. apply Rle_div_l; [lra|]. nra.
Qed.

Section Values.
Context {E : NormedModule R_AbsRing}.

(** A width is enough for the budget on every row and every input. *)
Definition enough (b : nat -> R) (beta V eta : R) (w : nat) : Prop :=
  forall i x (v : nat -> E), bounded beta x i -> vbounded V v i -> delta b x v i w <= eta.

(** A width is enough exactly if its worst error is within the budget: the least such width is
    enough, so is every larger one, and no smaller one can be guaranteed. *)
Theorem certified_window b beta V eta w (u : E) : norm u = 1 -> weights b -> ex_series b ->
  (1 <= w)%nat -> 0 <= beta -> 0 <= V ->
  (enough b beta V eta w <-> worst_error b beta V w <= eta).
Proof.
  intros Hu Hb Hs Hw Hbeta HV.
  destruct (sharp_error_convergent b beta V w u Hu Hb Hw Hbeta HV Hs) as [U L]. split.
  - intros H. apply L. intros d (i & x & v & _ & Hx & Hv & ->). now apply H.
  - intros H i x v Hx Hv. apply Rle_trans with (2 := H). destruct (le_lt_dec w i) as [Hi|Hi].
    + apply U. now exists i, x, v.
    + rewrite delta_long by lia. apply window_bound_range; trivial; [|now apply partial_pos].
      apply tail_ge0; trivial. apply Hb.
Qed.

(** If sum b_n diverges, no width is enough for a budget below 2 V. *)
Theorem no_certified_window b beta V eta w (u : E) : norm u = 1 -> weights b -> ~ ex_series b ->
  (1 <= w)%nat -> 0 <= beta -> 0 <= V -> eta < 2 * V -> ~ enough b beta V eta w.
Proof.
  intros Hu Hb Hd Hw Hbeta HV Heta H.
  destruct (sharp_error_divergent b beta V w u Hu Hb Hw Hbeta HV Hd) as [_ L].
  apply (Rlt_not_le _ _ Heta), L. intros d (i & x & v & _ & Hx & Hv & ->). now apply H.
Qed.
End Values.
