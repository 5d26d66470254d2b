(** A window approximates full attention uniformly exactly if the exp-series converges, and the
    exact supremum of the error. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Attention WindowError RowBiases.
Open Scope R_scope.

Section Windowable.
Context {E : NormedModule R_AbsRing}.

(** The supremum of delta(i, j) over all rows and inputs tends to 0 as j grows. *)
Definition uniformly_windowable (b : nat -> R) (beta V : R) : Prop :=
  forall eps, 0 < eps -> exists J, (1 <= J)%nat /\ forall j, (J <= j)%nat ->
    forall i x (v : nat -> E), bounded beta x i -> vbounded V v i -> delta b x v i j <= eps.

(** The values of delta(i, j) over all rows i >= j and all inputs within both bounds. *)
Definition reachable (b : nat -> R) (beta V : R) (j : nat) (d : R) : Prop :=
  exists i x (v : nat -> E),
    (j <= i)%nat /\ bounded beta x i /\ vbounded V v i /\ d = delta b x v i j.

(** It is enough to look at rows longer than the window. *)
Lemma windowable_rows b beta V : uniformly_windowable b beta V <->
  rows_windowable (E := E) (fun i => i) (fun _ => b) (fun _ => beta) V.
Proof.
  split; intros H eps He; destruct (H eps He) as [J [HJ H']]; exists J; (split; [trivial|]).
  - intros j i x v Hj Hx Hv. apply H'; trivial. lia.
  - intros j Hj i x v Hx Hv. destruct (le_lt_dec i j) as [Hij|Hij].
    + rewrite delta_long by trivial. lra.
    + apply H'; trivial. lia.
Qed.

(** For every logit bound: windowable exactly if sum b_n converges ([Q, Theorem 0.4] is one half).
    *)
Theorem windowable_iff_converges b beta V (u : E) : norm u = 1 -> weights b -> 0 <= beta -> 0 < V ->
  (uniformly_windowable b beta V <-> ex_series b).
Proof.
  intros Hu Hb Hbeta HV.
  rewrite windowable_rows, (row_biases (fun i => i) (fun _ => b) (fun _ => beta) V u Hu HV) by auto.
  set (c := exp (2 * beta)). assert (Hc : 0 < c) by apply exp_pos. split.
  - intros H. destruct (H 1 Rlt_0_1) as [J [HJ H']]. pose proof (partial_pos b J Hb HJ) as HB.
    assert (HBc : 0 < partial b J / c) by now apply Rdiv_lt_0_compat.
    apply (bounded_ex_series b (partial b J + partial b J / c) (proj1 Hb)). intros i.
    destruct (le_lt_dec i J) as [Hi|Hi].
    + pose proof (partial_mono b i J (proj1 Hb) Hi). lra.
    + specialize (H' J i ltac:(lia)). apply Rle_div_l in H'; trivial.
      assert (between b J i <= partial b J / c) by (apply Rle_div_r; lra). unfold between in *. lra.
  - intros Hs eps He. assert (Hd : 0 < eps * b 0%nat / c).
    { apply Rdiv_lt_0_compat; trivial. apply Rmult_lt_0_compat; trivial. apply Hb. }
    destruct (tail_small b _ Hs Hd) as [N HN]. exists (S N). split; [lia|]. intros j i Hj.
    specialize (HN j ltac:(lia)). pose proof (between_le_tail b j i (proj1 Hb) Hs) as HT.
    assert (H0 : b 0%nat <= partial b j).
    { replace (b 0%nat) with (partial b 1) by (simpl; ring). apply partial_mono; [apply Hb|lia]. }
    pose proof (partial_pos b j Hb ltac:(lia)) as HB. apply Rle_div_l; trivial.
    apply Rle_trans with (eps * b 0%nat); [|apply Rmult_le_compat_l; lra].
    rewrite (Rmult_comm c). apply Rle_div_r; trivial. lra.
Qed.

(** [Q, Theorem 0.4]: if sum b_n converges, windows approximate full attention uniformly. *)
Corollary theorem_0_4 b beta V (u : E) : norm u = 1 -> weights b -> 0 <= beta -> 0 < V ->
  ex_series b -> uniformly_windowable b beta V.
Proof. intros Hu Hb Hbeta HV. now apply (windowable_iff_converges b beta V u). Qed.

(** If sum b_n diverges, then for every input the mass outside a fixed window tends to 1. *)
Theorem divergent_mass_escapes b beta j : weights b -> (1 <= j)%nat -> ~ ex_series b ->
  forall eps, 0 < eps -> exists N, forall i x, (N <= i)%nat -> bounded beta x i ->
    1 - eps <= outside b x i j.
Proof.
  intros Hb Hj Hd eps He. set (c := exp (2 * beta)). assert (Hc : 0 < c) by apply exp_pos.
  pose proof (partial_pos b j Hb Hj) as HB.
  assert (HcB : 0 < c * partial b j) by now apply Rmult_lt_0_compat.
  destruct (divergent_unbounded b (proj1 Hb) Hd (partial b j + c * partial b j / eps)) as [N HN].
  exists (Nat.max N j). intros i x Hi Hx. specialize (HN i ltac:(lia)).
  eapply Rle_trans; [|apply (outside_between b x (2 * beta)); trivial;
    [lia|now apply bounded_range]].
  fold c. assert (HT : c * partial b j / eps < between b j i) by (unfold between; lra).
  pose proof (between_ge0 b j i (proj1 Hb) ltac:(lia)).
  apply Rlt_div_l in HT; trivial. apply Rle_div_r; [lra|]. nra.
Qed.

(** ... and with values that differ, delta(i, j) tends to 2 V. *)
Corollary divergent_delta b beta V j (u : E) : norm u = 1 -> weights b -> (1 <= j)%nat -> 0 <= V ->
  ~ ex_series b ->
  forall eps, 0 < eps -> exists N, forall i x, (N <= i)%nat -> bounded beta x i ->
    2 * V * (1 - eps) <= delta b x (opposite (window j) V u) i j.
Proof.
  intros Hu Hb Hj HV Hd eps He. destruct (divergent_mass_escapes b beta j Hb Hj Hd eps He) as [N
    HN].
  exists (Nat.max N j). intros i x Hi Hx. specialize (HN i x ltac:(lia) Hx).
  assert (Ha : forall k, 0 <= att b x k) by (intros; apply att_ge0, Hb).
  unfold delta. rewrite error_attained; trivial.
  - rewrite only_window, only_beyond by lia. apply Rmult_le_compat_l; [lra|].
    replace (between (att b x) j i + partial (att b x) j) with (partial (att b x) i); trivial.
    unfold between. ring.
  - rewrite only_window by lia. apply partial_pos; trivial. now apply att_weights.
Qed.

Lemma reachable_worst b beta V j i (u : E) : norm u = 1 -> weights b -> (1 <= j <= i)%nat ->
  0 <= beta -> 0 <= V ->
  reachable b beta V j (window_bound V (2 * beta) (between b j i) (partial b j)).
Proof.
  intros Hu Hb Hj Hbeta HV. exists i, (worst_logit beta j), (opposite (window j) V u).
  split; [lia|]. split; [now apply worst_logit_bounded|]. split; [now apply opposite_bounded|].
  symmetry. now apply window_error_attained.
Qed.

(** The supremum of delta(i, j) over all rows and inputs, convergent series: the sharp form. *)
Theorem sharp_error_convergent b beta V j (u : E) : norm u = 1 -> weights b -> (1 <= j)%nat ->
  0 <= beta -> 0 <= V -> ex_series b ->
  is_lub (reachable b beta V j) (window_bound V (2 * beta) (tail b j) (partial b j)).
Proof.
  intros Hu Hb Hj Hbeta HV Hs. pose proof (partial_pos b j Hb Hj) as HB. split.
  - intros d (i & x & v & Hi & Hx & Hv & ->). eapply Rle_trans.
    + apply (window_error b x v V (2 * beta)); trivial; [lia|now apply bounded_range].
    + apply window_bound_mono; trivial.
      split; [now apply between_ge0, Hi; apply Hb|apply between_le_tail; trivial; apply Hb].
  - intros m Hm. assert (HT : 0 <= tail b j) by (apply tail_ge0; trivial; apply Hb).
    assert (Hc : 0 < exp (- (2 * beta)) * partial b j)
      by (apply Rmult_lt_0_compat; trivial; apply exp_pos).
    assert (L : is_lim_seq (fun i => window_bound V (2 * beta) (between b j i) (partial b j))
                  (window_bound V (2 * beta) (tail b j) (partial b j))).
    { assert (L0 : is_lim_seq (between b j) (tail b j)).
      { apply is_lim_seq_minus'; [|apply is_lim_seq_const].
        apply partial_lim. now apply Series_correct. }
      apply is_lim_seq_div'; [|apply is_lim_seq_plus'; [exact L0|apply is_lim_seq_const]|lra].
      apply (is_lim_seq_scal_l _ (2 * V) (tail b j)). exact L0. }
    apply (is_lim_seq_le_loc _ (fun _ => m) _ _) with (2 := L) (3 := is_lim_seq_const m).
    exists j. intros i Hi. apply Hm, (reachable_worst b beta V j i u); trivial. lia.
Qed.

(** ... and of a divergent series: 2 V, for every window. *)
Theorem sharp_error_divergent b beta V j (u : E) : norm u = 1 -> weights b -> (1 <= j)%nat ->
  0 <= beta -> 0 <= V -> ~ ex_series b -> is_lub (reachable b beta V j) (2 * V).
Proof.
  intros Hu Hb Hj Hbeta HV Hd. pose proof (partial_pos b j Hb Hj) as HB. split.
  - intros d (i & x & v & Hi & Hx & Hv & ->). eapply Rle_trans.
    + apply (window_error b x v V (2 * beta)); trivial; [lia|now apply bounded_range].
    + apply window_bound_range; trivial. apply between_ge0; [apply Hb|lia].
  - intros m Hm. apply Rnot_lt_le. intros Hlt.
    set (eps := (2 * V - m) / (2 * (2 * V + 1))).
    assert (He : 0 < eps) by (apply Rdiv_lt_0_compat; lra).
    destruct (divergent_delta b beta V j u Hu Hb Hj HV Hd eps He) as [N HN].
    assert (Hx : bounded beta (fun _ => 0) (Nat.max N j)) by (intros n _; rewrite Rabs_R0; lra).
    specialize (HN (Nat.max N j) (fun _ => 0) ltac:(lia) Hx).
    assert (R : reachable b beta V j (delta b (fun _ => 0) (opposite (window j) V u) (Nat.max N j)
      j)).
    { exists (Nat.max N j), (fun _ => 0), (opposite (window j) V u).
      split; [lia|]. split; [trivial|]. split; [now apply opposite_bounded|reflexivity]. }
    specialize (Hm _ R). assert (eps * (2 * (2 * V + 1)) = 2 * V - m) by (unfold eps; field; lra).
      nra.
Qed.
End Windowable.
