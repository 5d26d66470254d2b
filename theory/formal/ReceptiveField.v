(** Theoretical and attention receptive fields of one query row. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Least Attention WindowError.
Open Scope R_scope.

(** [is_least (trf b eps) j]: j = TRF(eps), the least j with T_j < eps B. *)
Definition trf (b : nat -> R) (eps : R) (j : nat) : Prop := tail b j < eps * Series b.

(** [is_least (trf_row b i eps) j]: j = TRF_i(eps), the least j with B_i - B_j < eps B_i. *)
Definition trf_row (b : nat -> R) (i : nat) (eps : R) (j : nat) : Prop :=
  (j <= i)%nat /\ between b j i < eps * partial b i.

(** [is_least (erf_row b x i eps) j]: the attention ERF of the row, the least j with
    C_ij > (1 - eps) C_ii. *)
Definition erf_row (b x : nat -> R) (i : nat) (eps : R) (j : nat) : Prop :=
  (j <= i)%nat /\ (1 - eps) * partial (att b x) i < partial (att b x) j.

(** ** They exist *)
Lemma trf_exists b eps : weights b -> ex_series b -> 0 < eps -> exists m, is_least (trf b eps) m.
Proof.
  intros Hb Hs He. pose proof (series_pos b Hb Hs) as HB.
  destruct (tail_small b (eps * Series b) Hs) as [N HN]; [now apply Rmult_lt_0_compat|].
  apply least_exists with N.
  - intros k. unfold trf. destruct (Rlt_dec (tail b k) (eps * Series b)); auto.
  - apply HN. lia.
Qed.

Lemma trf_row_exists b i eps : weights b -> (1 <= i)%nat -> 0 < eps ->
  exists m, is_least (trf_row b i eps) m.
Proof.
  intros Hb Hi He. apply least_exists with i.
  - intros k. destruct (le_dec k i); [|right; intros [? _]; lia].
    destruct (Rlt_dec (between b k i) (eps * partial b i)); [now left|right; now intros [_ ?]].
  - split; trivial. unfold between. rewrite Rminus_eq_0. apply Rmult_lt_0_compat; trivial.
    now apply partial_pos.
Qed.

Lemma erf_row_exists b x i eps : weights b -> (1 <= i)%nat -> 0 < eps ->
  exists m, is_least (erf_row b x i eps) m.
Proof.
  intros Hb Hi He. apply least_exists with i.
  - intros k. destruct (le_dec k i); [|right; intros [? _]; lia].
    destruct (Rlt_dec ((1 - eps) * partial (att b x) i) (partial (att b x) k));
      [now left|right; now intros [_ ?]].
  - split; trivial. pose proof (partial_pos _ i (att_weights b x Hb) Hi). nra.
Qed.

(** Attention mass beyond j, compared with the mass of the bias beyond j, in cross products. *)
Lemma outside_cross b x lam i j : weights b -> (j <= i)%nat -> range b x i lam ->
  between (att b x) j i * partial b i <= exp lam * (between b j i * partial (att b x) i) /\
  between b j i * partial (att b x) i <= exp lam * (between (att b x) j i * partial b i).
Proof.
  intros Hb Hji Hr.
  assert (All : forall a, partial (only (window i) a) i = partial a i)
    by (intros; now apply only_window).
  pose proof (exchange b x lam i (drop (window j)) (window i) (proj1 Hb) Hr) as U.
  pose proof (exchange b x lam i (window i) (drop (window j)) (proj1 Hb) Hr) as L.
  rewrite !All, !only_beyond in U, L by trivial. split; lra.
Qed.

(** ** Bounds *)

(** TRF_i(eps e^lam) <= attention ERF_i(eps) <= TRF_i(eps e^{-lam}) for every row whose content
    logits have range lam. *)
Theorem two_sided b x lam i eps t1 e t2 : weights b -> (1 <= i)%nat -> range b x i lam ->
  is_least (trf_row b i (eps * exp lam)) t1 ->
  is_least (erf_row b x i eps) e ->
  is_least (trf_row b i (eps * exp (- lam))) t2 ->
  (t1 <= e <= t2)%nat.
Proof.
  intros Hb Hi Hr H1 He H2.
  pose proof (partial_pos b i Hb Hi) as HB.
  pose proof (partial_pos _ i (att_weights b x Hb) Hi) as HM.
  pose proof (exp_pos lam) as Pe. split.
  - apply (least_le _ _ _ _ H1 He). intros k [Hk H]. split; trivial.
    destruct (outside_cross b x lam i k Hb Hk Hr) as [_ C].
    apply Rmult_lt_reg_r with (1 := HM). apply Rle_lt_trans with (1 := C).
    replace (eps * exp lam * partial b i * partial (att b x) i)
      with (exp lam * (eps * partial (att b x) i * partial b i)) by ring.
    apply Rmult_lt_compat_l; trivial. apply Rmult_lt_compat_r; trivial. unfold between. lra.
  - apply (least_le _ _ _ _ He H2). intros k [Hk H]. split; trivial.
    destruct (outside_cross b x lam i k Hb Hk Hr) as [C _].
    assert (D : exp lam * between b k i < eps * partial b i).
    { apply Rmult_lt_compat_l with (r := exp lam) in H; trivial.
      replace (exp lam * (eps * exp (- lam) * partial b i))
        with (exp lam * exp (- lam) * (eps * partial b i)) in H by ring.
      rewrite <- exp_plus, Rplus_opp_r, exp_0 in H. lra. }
    apply (Rmult_lt_compat_r (partial (att b x) i)) in D; trivial.
    assert (D' : between (att b x) k i < eps * partial (att b x) i).
    { apply Rmult_lt_reg_r with (1 := HB). lra. }
    unfold between in D'. lra.
Qed.

(** TRF_i(eps) <= TRF(eps): a finite row sees less of the tail. *)
Theorem trf_row_le_trf b i eps t t' : weights b -> (1 <= i)%nat -> ex_series b -> 0 < eps ->
  is_least (trf_row b i eps) t -> is_least (trf b eps) t' -> (t <= t')%nat.
Proof.
  intros Hb Hi Hs He H [H' _]. destruct (le_lt_dec t' i) as [Ht|Ht].
  - apply H. split; trivial. unfold trf, tail, between in *.
    pose proof (partial_le_series b i (proj1 Hb) Hs). pose proof (partial_pos b i Hb Hi).
    pose proof (partial_ge0 b t' (fun k _ => proj1 Hb k)). destruct (Rlt_le_dec 1 eps); nra.
  - destruct H as [[Hti _] _]. lia.
Qed.

(** A divergent series has no TRF: the TRF of a row exceeds every bound as the row grows. *)
Theorem trf_row_divergent b eps : weights b -> ~ ex_series b -> eps < 1 ->
  forall J, exists N, forall i j, (N <= i)%nat -> trf_row b i eps j -> (J < j)%nat.
Proof.
  intros Hb Hd He J.
  destruct (divergent_unbounded b (proj1 Hb) Hd (partial b J / (1 - eps))) as [N HN].
  exists N. intros i j Hi [Hji Hj]. specialize (HN i Hi). apply Rlt_div_l in HN; [|lra].
  unfold between in Hj. destruct (le_lt_dec j J) as [H|]; trivial. exfalso.
  pose proof (partial_mono b j J (proj1 Hb) H). lra.
Qed.

(** A smaller eps has a larger field. *)
Theorem trf_decreasing b eps eps' t t' : weights b -> ex_series b -> eps <= eps' ->
  is_least (trf b eps) t -> is_least (trf b eps') t' -> (t' <= t)%nat.
Proof.
  intros Hb Hs He H H'. apply (least_le _ _ _ _ H' H). intros k Hk. unfold trf in *.
  pose proof (series_pos b Hb Hs). nra.
Qed.

(** ** Jensen *)

(** The b-weighted mean of the content logits of a row. *)
Definition mean_logit (b x : nat -> R) (i : nat) : R :=
  partial (fun n => b n * x n) i / partial b i.

Lemma mass_above_mean b x i : weights b -> (1 <= i)%nat ->
  exp (mean_logit b x i) * partial b i <= partial (att b x) i.
Proof.
  intros Hb Hi. pose proof (partial_pos b i Hb Hi) as HB. set (m := mean_logit b x i).
  apply Rle_trans with (partial (fun n => exp m * (b n + (b n * x n + - m * b n))) i).
  - rewrite partial_scal, partial_plus, partial_plus, partial_scal.
    replace (partial (fun k => b k * x k) i) with (m * partial b i)
      by (unfold m, mean_logit; field; lra). lra.
  - apply partial_le. intros k _. unfold att.
    replace (exp (x k)) with (exp m * exp (x k - m)) by (rewrite <- exp_plus; f_equal; ring).
    rewrite Rmult_assoc. apply Rmult_le_compat_l; [left; apply exp_pos|].
    pose proof (exp_ineq1_le (x k - m)). pose proof (proj1 Hb k). nra.
Qed.

(** attention ERF_i(eps) <= TRF_i(eps e^{-(max - mean)}), max a bound of the content logits of the
    keys of positive weight and mean their b-weighted mean. *)
Theorem jensen b x max i eps e t : weights b -> (1 <= i)%nat -> 0 < eps ->
  (forall n, (n < i)%nat -> 0 < b n -> x n <= max) ->
  is_least (erf_row b x i eps) e ->
  is_least (trf_row b i (eps * exp (- (max - mean_logit b x i)))) t ->
  (e <= t)%nat.
Proof.
  intros Hb Hi Heps Hmax He Ht. apply (least_le _ _ _ _ He Ht). intros k [Hk H]. split; trivial.
  pose proof (mass_above_mean b x i Hb Hi) as J. set (m := mean_logit b x i) in *.
  assert (D : between (att b x) k i <= exp max * between b k i).
  { rewrite !between_shift, <- partial_scal by trivial. apply partial_le. intros l Hl. unfold att.
    destruct (proj1 Hb (k + l)%nat) as [P|<-]; [|right; ring].
    apply Rmult_le_compat_r; [lra|]. apply exp_le, Hmax; trivial. lia. }
  assert (S : exp max * between b k i < eps * (exp m * partial b i)).
  { apply (Rmult_lt_compat_l (exp max)) in H; [|apply exp_pos].
    replace (exp max * (eps * exp (- (max - m)) * partial b i))
      with (eps * (exp max * exp (- (max - m)) * partial b i)) in H by ring.
    rewrite <- exp_plus in H. now replace (max + - (max - m)) with m in H by ring. }
  apply (Rmult_le_compat_l eps) in J; [|lra]. unfold between in D, S. lra.
Qed.
