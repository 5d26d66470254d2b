(** Partial sums, totals and tails of a series of non-negative terms. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

(** [partial b j] is B_j = b_0 + ... + b_{j-1}. *)
Fixpoint partial (b : nat -> R) (j : nat) : R :=
  match j with O => 0 | S t => partial b t + b t end.

(** [between b j i] is B_i - B_j = b_j + ... + b_{i-1}. *)
Definition between (b : nat -> R) (j i : nat) : R := partial b i - partial b j.

(** [tail b j] is T_j = B - B_j, the rest of a convergent series. *)
Definition tail (b : nat -> R) (j : nat) : R := Series b - partial b j.

(** Terms of an exp-series: none is negative, and that of distance 0 is positive. *)
Definition weights (b : nat -> R) : Prop := (forall n, 0 <= b n) /\ 0 < b 0%nat.

(** ** Partial sums *)
Lemma partial_ext f g n : (forall k, (k < n)%nat -> f k = g k) -> partial f n = partial g n.
Proof.
  induction n as [|n IH]; intros H; simpl; [reflexivity|].
  rewrite IH by (intros; apply H; lia). now rewrite (H n) by lia.
Qed.

Lemma partial_le f g n : (forall k, (k < n)%nat -> f k <= g k) -> partial f n <= partial g n.
Proof.
  induction n as [|n IH]; intros H; simpl; [lra|].
  apply Rplus_le_compat; [apply IH; intros|]; apply H; lia.
Qed.

Lemma partial_scal c f n : partial (fun k => c * f k) n = c * partial f n.
Proof. induction n as [|n IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma partial_plus f g n : partial (fun k => f k + g k) n = partial f n + partial g n.
Proof. induction n as [|n IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma partial_const c n : partial (fun _ => c) n = c * INR n.
Proof. induction n as [|n IH]; [simpl; ring|]. rewrite S_INR. simpl. rewrite IH. ring. Qed.

Lemma partial_ge0 f n : (forall k, (k < n)%nat -> 0 <= f k) -> 0 <= partial f n.
Proof.
  intros H. replace 0 with (partial (fun _ => 0) n) by (rewrite partial_const; ring).
  now apply partial_le.
Qed.

Lemma partial_abs f n : Rabs (partial f n) <= partial (fun k => Rabs (f k)) n.
Proof.
  induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma partial_mono f j i : (forall k, 0 <= f k) -> (j <= i)%nat -> partial f j <= partial f i.
Proof.
  intros H Hji. induction Hji as [|i Hji IH]; simpl; [lra|]. specialize (H i). lra.
Qed.

Lemma partial_pos b j : weights b -> (1 <= j)%nat -> 0 < partial b j.
Proof.
  intros [H H0] Hj. apply Rlt_le_trans with (partial b 1); [simpl; lra|]. now apply partial_mono.
Qed.

Lemma partial_shift f j m : partial f (j + m) = partial f j + partial (fun k => f (j + k)%nat) m.
Proof.
  induction m as [|m IH]; [rewrite Nat.add_0_r; simpl; ring|].
  rewrite Nat.add_succ_r. simpl. rewrite IH. ring.
Qed.

Lemma between_shift f j i : (j <= i)%nat ->
  between f j i = partial (fun k => f (j + k)%nat) (i - j).
Proof.
  intros H. unfold between. replace i with (j + (i - j))%nat at 1 by lia.
  rewrite partial_shift. ring.
Qed.

Lemma between_ge0 f j i : (forall k, 0 <= f k) -> (j <= i)%nat -> 0 <= between f j i.
Proof. intros H Hji. pose proof (partial_mono f j i H Hji). unfold between. lra. Qed.

Lemma sum_n_partial f n : sum_n f n = partial f (S n).
Proof.
  induction n as [|n IH]; [rewrite sum_O; simpl; lra|]. rewrite sum_Sn, IH. reflexivity.
Qed.

(** Products of sums compare when all products of terms do. *)
Lemma partial_mult_le F G F' G' n m :
  (forall k l, (k < n)%nat -> (l < m)%nat -> F k * G l <= F' k * G' l) ->
  partial F n * partial G m <= partial F' n * partial G' m.
Proof.
  intros H. induction n as [|n IH]; simpl; [lra|].
  rewrite !Rmult_plus_distr_r. apply Rplus_le_compat.
  - apply IH. intros; apply H; lia.
  - rewrite <- !partial_scal. apply partial_le. intros; apply H; lia.
Qed.

(** ** Infinite sums of non-negative terms *)
Lemma partial_lim b l : is_series b l -> is_lim_seq (partial b) l.
Proof.
  intros H. apply is_lim_seq_incr_1. apply is_lim_seq_ext with (sum_n b); [|exact H].
  intros n. apply sum_n_partial.
Qed.

Lemma partial_le_series b n : (forall k, 0 <= b k) -> ex_series b -> partial b n <= Series b.
Proof.
  intros Hb Hs. apply (is_lim_seq_incr_compare (partial b) (Series b)).
  - apply partial_lim. now apply Series_correct.
  - intros k. apply partial_mono; trivial. lia.
Qed.

Lemma series_pos b : weights b -> ex_series b -> 0 < Series b.
Proof.
  intros Hb Hs. apply Rlt_le_trans with (partial b 1); [apply partial_pos; trivial; lia|].
  apply partial_le_series; trivial. apply Hb.
Qed.

(** Bounded partial sums: the series converges. *)
Lemma bounded_ex_series b M : (forall k, 0 <= b k) -> (forall n, partial b n <= M) -> ex_series b.
Proof.
  intros Hb HM. destruct (ex_finite_lim_seq_incr (sum_n b) M) as [l Hl].
  - intros n. rewrite !sum_n_partial. apply partial_mono; trivial. lia.
  - intros n. rewrite sum_n_partial. apply HM.
  - now exists l.
Qed.

(** A divergent series exceeds every bound, and stays above it. *)
Lemma divergent_unbounded b : (forall k, 0 <= b k) -> ~ ex_series b ->
  forall M, exists N, forall n, (N <= n)%nat -> M < partial b n.
Proof.
  intros Hb Hd M. destruct (LPO (fun n => M < partial b n)) as [[N HN]|H].
  - intros n. destruct (Rlt_dec M (partial b n)); auto.
  - exists N. intros n Hn. apply Rlt_le_trans with (partial b N); trivial. now apply partial_mono.
  - exfalso. apply Hd, (bounded_ex_series b M Hb). intros n. now apply Rnot_lt_le.
Qed.

(** ** Tails *)
Lemma tail_series b j : ex_series b -> tail b j = Series (fun k => b (j + k)%nat).
Proof.
  intros H. unfold tail. destruct j as [|j].
  - simpl. rewrite Rminus_0_r. now apply Series_ext.
  - rewrite (Series_incr_n b (S j)) by (trivial; lia). simpl pred.
    rewrite <- sum_n_Reals, sum_n_partial. ring.
Qed.

Lemma between_le_tail b j i : (forall k, 0 <= b k) -> ex_series b -> between b j i <= tail b j.
Proof.
  intros Hb Hs. pose proof (partial_le_series b i Hb Hs). unfold between, tail. lra.
Qed.

Lemma tail_ge0 b j : (forall k, 0 <= b k) -> ex_series b -> 0 <= tail b j.
Proof. intros Hb Hs. pose proof (partial_le_series b j Hb Hs). unfold tail. lra. Qed.

Lemma tail_mono b j k : (forall n, 0 <= b n) -> (j <= k)%nat -> tail b k <= tail b j.
Proof. intros Hb H. pose proof (partial_mono b j k Hb H). unfold tail. lra. Qed.

Lemma tail_lim b : ex_series b -> is_lim_seq (tail b) 0.
Proof.
  intros Hs. replace (Finite 0) with (Finite (Series b - Series b)) by (f_equal; ring).
  apply is_lim_seq_minus'; [apply is_lim_seq_const|]. apply partial_lim. now apply Series_correct.
Qed.

Lemma tail_small b eps : ex_series b -> 0 < eps ->
  exists N, forall j, (N <= j)%nat -> tail b j < eps.
Proof.
  intros Hs He. pose proof (tail_lim b Hs) as L. apply is_lim_seq_spec in L.
  destruct (L (mkposreal eps He)) as [N HN]. exists N. intros j Hj.
  specialize (HN j Hj). simpl in HN. rewrite Rminus_0_r in HN. apply Rabs_def2 in HN. lra.
Qed.

(** ** Fractions of positive numbers *)
Lemma frac_le a b c d : 0 < b -> 0 < d -> a * d <= c * b -> a / b <= c / d.
Proof.
  intros Hb Hd H. apply Rmult_le_reg_r with (b * d); [now apply Rmult_lt_0_compat|].
  replace (a / b * (b * d)) with (a * d) by (field; lra).
  replace (c / d * (b * d)) with (c * b) by (field; lra). trivial.
Qed.

Lemma frac_lt a b c d : 0 < b -> 0 < d -> a * d < c * b -> a / b < c / d.
Proof.
  intros Hb Hd H. apply Rmult_lt_reg_r with (b * d); [now apply Rmult_lt_0_compat|].
  replace (a / b * (b * d)) with (a * d) by (field; lra).
  replace (c / d * (b * d)) with (c * b) by (field; lra). trivial.
Qed.

Lemma exp_le a b : a <= b -> exp a <= exp b.
Proof. intros [H| ->]; [left; now apply exp_increasing|lra]. Qed.
