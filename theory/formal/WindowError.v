(** The error of a window of the [j] nearest keys of one row, with both bounds and the worst case
    (the bias may belong to the row). *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Attention.
Open Scope R_scope.

(** 2 V T / (T + e^{-lam} B). *)
Definition window_bound (V lam T B : R) : R := 2 * V * T / (T + exp (- lam) * B).

(** The content logits of two keys of the row, of positive weight, differ by at most [lam]. *)
Definition range (b x : nat -> R) (i : nat) (lam : R) : Prop :=
  forall k l, (k < i)%nat -> (l < i)%nat -> 0 < b k -> 0 < b l -> x k - x l <= lam.

(** The share of the attention of a row of [i] keys that lies beyond the [j] nearest. *)
Definition outside (b x : nat -> R) (i j : nat) : R :=
  between (att b x) j i / partial (att b x) i.

(** The error delta(i, j) of the window of the j nearest of i keys. *)
Definition delta {E : NormedModule R_AbsRing} (b x : nat -> R) (v : nat -> E) (i j : nat) : R :=
  error (window j) (att b x) v i.

Lemma bounded_range b x i beta : bounded beta x i -> range b x i (2 * beta).
Proof.
  intros H k l Hk Hl _ _. pose proof (H k Hk) as A. pose proof (H l Hl) as B.
  apply Rabs_le_between in A. apply Rabs_le_between in B. lra.
Qed.

(** Two sets of keys of one row: their weights change their ratio by a factor of e^lam at most. *)
Lemma exchange b x lam i k1 k2 : (forall n, 0 <= b n) -> range b x i lam ->
  partial (only k1 (att b x)) i * partial (only k2 b) i
  <= exp lam * (partial (only k1 b) i * partial (only k2 (att b x)) i).
Proof.
  intros Hb Hr. rewrite <- Rmult_assoc, <- (partial_scal (exp lam)). apply partial_mult_le.
  intros k l Hk Hl. unfold only, att.
  destruct (k1 k); [|rewrite Rmult_0_r, !Rmult_0_l; lra]. destruct (k2 l); [|rewrite !Rmult_0_r;
    lra].
  destruct (Hb k) as [Pk|<-]; [|right; ring]. destruct (Hb l) as [Pl|<-]; [|right; ring].
  assert (F : exp (x k) <= exp lam * exp (x l)).
  { rewrite <- exp_plus. apply exp_le. specialize (Hr k l Hk Hl Pk Pl). lra. }
  replace (exp (x k) * b k * b l) with (exp (x k) * (b k * b l)) by ring.
  replace (exp lam * b k * (exp (x l) * b l)) with (exp lam * exp (x l) * (b k * b l)) by ring.
  apply Rmult_le_compat_r; trivial. left. now apply Rmult_lt_0_compat.
Qed.

(** The mass outside a window is at least T/(T + e^lam B) and at most T/(T + e^{-lam} B). *)
Theorem outside_between b x lam i j : weights b -> (1 <= j <= i)%nat -> range b x i lam ->
  between b j i / (between b j i + exp lam * partial b j) <= outside b x i j
  <= between b j i / (between b j i + exp (- lam) * partial b j).
Proof.
  intros Hb [Hj Hji] Hr.
  pose proof (exchange b x lam i (drop (window j)) (window j) (proj1 Hb) Hr) as U.
  pose proof (exchange b x lam i (window j) (drop (window j)) (proj1 Hb) Hr) as L.
  rewrite !only_window, !only_beyond in U, L by trivial.
  pose proof (partial_pos b j Hb Hj) as HB. pose proof (between_ge0 b j i (proj1 Hb) Hji) as HT.
  pose proof (partial_pos _ j (att_weights b x Hb) Hj) as HI.
  pose proof (between_ge0 (att b x) j i (fun n => att_ge0 b x n (proj1 Hb)) Hji) as HO.
  unfold outside. replace (partial (att b x) i) with (between (att b x) j i + partial (att b x) j)
    by (unfold between; ring).
  pose proof (exp_pos lam) as He. pose proof (exp_pos (- lam)) as He'.
  assert (Inv : exp (- lam) * exp lam = 1) by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  assert (HeB : 0 < exp lam * partial b j) by now apply Rmult_lt_0_compat.
  assert (HeB' : 0 < exp (- lam) * partial b j) by now apply Rmult_lt_0_compat.
  apply (Rmult_le_compat_l (exp (- lam))) in U; [|lra].
  replace (exp (- lam) * (exp lam * (between b j i * partial (att b x) j)))
    with (between b j i * partial (att b x) j) in U by (rewrite <- Rmult_assoc, Inv; ring).
  split; apply frac_le; lra.
Qed.

Lemma window_bound_frac V lam T B :
  window_bound V lam T B = 2 * V * (T / (T + exp (- lam) * B)).
Proof. unfold window_bound, Rdiv. ring. Qed.

(** Of two tails the heavier gives the larger bound; it never exceeds 2 V. *)
Lemma window_bound_mono V lam T T' B : 0 <= V -> 0 <= T <= T' -> 0 < B ->
  window_bound V lam T B <= window_bound V lam T' B.
Proof.
  intros HV [HT HTT] HB. rewrite !window_bound_frac. apply Rmult_le_compat_l; [lra|].
  assert (0 < exp (- lam) * B) by (apply Rmult_lt_0_compat; trivial; apply exp_pos).
  apply frac_le; nra.
Qed.

Lemma window_bound_range V lam T B : 0 <= V -> 0 <= T -> 0 < B ->
  0 <= window_bound V lam T B <= 2 * V.
Proof.
  intros HV HT HB. assert (0 < exp (- lam) * B) by (apply Rmult_lt_0_compat; trivial; apply
    exp_pos).
  unfold window_bound. split; [apply Rdiv_le_0_compat; [nra|lra]|]. apply Rle_div_l; [lra|]. nra.
Qed.

(** The bound is at most eta < 2 V exactly if e^lam T/B <= eta/(2 V - eta). *)
Theorem window_bound_le V lam T B eta : 0 <= T -> 0 < B -> 0 <= eta < 2 * V ->
  (window_bound V lam T B <= eta <-> exp lam * T / B <= eta / (2 * V - eta)).
Proof.
  intros HT HB He. assert (P : 0 < exp (- lam) * B) by (apply Rmult_lt_0_compat; trivial; apply
    exp_pos).
  assert (Q : window_bound V lam T B <= eta <-> T * (2 * V - eta) <= eta * (exp (- lam) * B)).
  { unfold window_bound. split; intros H.
    - apply Rle_div_l in H; lra.
    - apply Rle_div_l; lra. }
  assert (Inv : exp lam * exp (- lam) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  pose proof (exp_pos lam) as PL. rewrite Q. clear Q. split; intros H.
  - apply frac_le; [lra|lra|]. apply (Rmult_le_compat_l (exp lam)) in H; [|lra].
    replace (exp lam * (eta * (exp (- lam) * B))) with (exp lam * exp (- lam) * (eta * B)) in H by
      ring.
    rewrite Inv in H. lra.
  - apply (Rmult_le_compat_r (exp (- lam) * B * (2 * V - eta))) in H.
    2: { apply Rmult_le_pos; lra. }
    replace (exp lam * T / B * (exp (- lam) * B * (2 * V - eta)))
      with (exp lam * exp (- lam) * (T * (2 * V - eta))) in H by (field; lra).
    replace (eta / (2 * V - eta) * (exp (- lam) * B * (2 * V - eta)))
      with (eta * (exp (- lam) * B)) in H by (field; lra). rewrite Inv in H. lra.
Qed.

Section Values.
Context {E : NormedModule R_AbsRing}.

(** For every row, every window 1 <= j <= i, logits of range lam, values bounded by V:
    delta(i, j) <= 2 V T / (T + e^{-lam} B), with T = B_i - B_j. *)
Theorem window_error b x (v : nat -> E) V lam i j : weights b -> (1 <= j <= i)%nat ->
  range b x i lam -> vbounded V v i ->
  delta b x v i j <= window_bound V lam (between b j i) (partial b j).
Proof.
  intros Hb Hj Hr Hv. destruct (outside_between b x lam i j Hb Hj Hr) as [_ U].
  assert (HV : 0 <= V).
  { apply Rle_trans with (2 := Hv 0%nat ltac:(lia)). apply norm_ge_0. }
  eapply Rle_trans; [apply (error_bound (window j) _ v V i)|]; trivial.
  - intros k. apply att_ge0, Hb.
  - rewrite only_window by lia. apply partial_pos; [now apply att_weights|lia].
  - rewrite window_bound_frac. apply Rmult_le_compat_l; [lra|].
    rewrite only_window, only_beyond by lia. unfold outside in U.
    replace (between (att b x) j i + partial (att b x) j) with (partial (att b x) i); trivial.
    unfold between. ring.
Qed.

(** A window at least as long as the row changes nothing. *)
Lemma delta_long b x (v : nat -> E) i j : (i <= j)%nat -> delta b x v i j = 0.
Proof.
  intros H. unfold delta, error, output.
  assert (W : forall n, (n < i)%nat -> only (window j) (att b x) n = att b x n).
  { intros n Hn. unfold only, window. now rewrite (proj2 (Nat.ltb_lt n j)) by lia. }
  rewrite (partial_ext (only (window j) (att b x)) (att b x)) by trivial.
  rewrite (vsum_ext (fun n => scal (only _ _ n) (v n)) (fun n => scal (att b x n) (v n))).
  - now rewrite minus_eq_zero, norm_zero.
  - intros k Hk. now rewrite W.
Qed.

(** The worst input: logits -beta inside the window and +beta outside. *)
Definition worst_logit (beta : R) (j n : nat) : R := if window j n then - beta else beta.

Lemma worst_logit_bounded beta j i : 0 <= beta -> bounded beta (worst_logit beta j) i.
Proof. intros H n _. unfold worst_logit. apply Rabs_le. destruct (window j n); lra. Qed.

(** With it, and with opposite values, the bound for logits within [-beta, beta] is attained: it is
    a maximum over all inputs of this row, whatever the bias of the row. *)
Theorem window_error_attained b V beta (u : E) i j : norm u = 1 -> weights b -> (1 <= j <= i)%nat ->
  0 <= V -> delta b (worst_logit beta j) (opposite (window j) V u) i j
            = window_bound V (2 * beta) (between b j i) (partial b j).
Proof.
  intros Hu Hb Hj HV. unfold delta. rewrite error_attained; trivial.
  2: intros k; apply att_ge0, Hb.
  2: rewrite only_window by lia; apply partial_pos; [now apply att_weights|lia].
  rewrite (att_const b _ i (window j) (- beta)), (att_const b _ i (drop (window j)) beta).
  2, 3: intros n _ Hn; unfold worst_logit, drop in *; destruct (window j n); simpl in Hn;
    (reflexivity || discriminate).
  rewrite only_window, only_beyond, window_bound_frac by lia. f_equal.
  pose proof (partial_pos b j Hb ltac:(lia)) as HB.
  pose proof (between_ge0 b j i (proj1 Hb) ltac:(lia)) as HT.
  replace (- (2 * beta)) with (- beta + - beta) by ring. rewrite exp_plus, !exp_Ropp.
  pose proof (exp_pos beta) as Pe. set (e := exp beta) in *. set (B := partial b j) in *.
  assert (P1 : 0 < / e) by now apply Rinv_0_lt_compat.
  assert (P2 : 0 < / e * / e * B) by (repeat apply Rmult_lt_0_compat; trivial).
  assert (P3 : 0 <= e * e * between b j i) by (repeat apply Rmult_le_pos; lra).
  field. repeat split; lra.
Qed.
End Values.
