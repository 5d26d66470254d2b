(** Windows with kept sinks. *)
From Coq Require Import Reals Lra Lia Psatz Arith Classical.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Attention WindowError.
Open Scope R_scope.

(** The first K keys of a row of m + K are sinks: distances m, ..., m + K - 1 have the weights [s],
    of any size; the others those of a bias with terms [b] and content [x]. *)
Definition with_sinks (b x s : nat -> R) (m n : nat) : R := if (n <? m)%nat then att b x n else s n.

(** The j nearest keys and the sinks are kept. *)
Definition window_and_sinks (j m n : nat) : bool := orb (n <? j)%nat (m <=? n)%nat.

Definition sink_weight (s : nat -> R) (m K : nat) : R := between s m (m + K).

Lemma sinks_kept b x s j m K : (j <= m)%nat ->
  partial (only (window_and_sinks j m) (with_sinks b x s m)) (m + K)
  = partial (att b x) j + sink_weight s m K.
Proof.
  intros H. rewrite partial_shift. unfold sink_weight. rewrite between_shift by lia.
  replace (m + K - m)%nat with K by lia. f_equal.
  - rewrite <- (only_window (att b x) j m H). apply partial_ext. intros n Hn.
    unfold only, window_and_sinks, with_sinks, window.
    rewrite (proj2 (Nat.ltb_lt n m) Hn), (proj2 (Nat.leb_gt m n) Hn), Bool.orb_false_r. reflexivity.
  - apply partial_ext. intros n _. unfold only, window_and_sinks, with_sinks.
    rewrite (proj2 (Nat.leb_le m (m + n))), Bool.orb_true_r by lia.
    now rewrite (proj2 (Nat.ltb_ge (m + n) m)) by lia.
Qed.

Lemma sinks_dropped b x s j m K : (j <= m)%nat ->
  partial (only (drop (window_and_sinks j m)) (with_sinks b x s m)) (m + K) = between (att b x) j m.
Proof.
  intros H. rewrite partial_shift, <- (only_beyond (att b x) j m H).
  rewrite (partial_ext (fun k => only _ _ (m + k)%nat) (fun _ => 0)).
  - rewrite partial_const, Rmult_0_l, Rplus_0_r. apply partial_ext. intros n Hn.
    unfold only, drop, window_and_sinks, with_sinks, window.
    rewrite (proj2 (Nat.ltb_lt n m) Hn), (proj2 (Nat.leb_gt m n) Hn), Bool.orb_false_r. reflexivity.
  - intros n _. unfold only, drop, window_and_sinks.
    rewrite (proj2 (Nat.leb_le m (m + n))), Bool.orb_true_r by lia. reflexivity.
Qed.

(** 2 V T/(T + e^{-2 beta} B + e^{-beta} S). *)
Definition sink_bound (V beta T B S : R) : R :=
  2 * V * (T / (T + exp (- (2 * beta)) * B + exp (- beta) * S)).

Section Values.
Context {E : NormedModule R_AbsRing}.

Definition sink_error (b x s : nat -> R) (v : nat -> E) (j m K : nat) : R :=
  error (window_and_sinks j m) (with_sinks b x s m) v (m + K).

Lemma with_sinks_ge0 b x s m : (forall n, 0 <= b n) -> (forall n, 0 <= s n) ->
  forall n, 0 <= with_sinks b x s m n.
Proof. intros Hb Hs n. unfold with_sinks. destruct (n <? m)%nat; [now apply att_ge0|apply Hs]. Qed.

Lemma scale_masses O I S T B beta : 0 <= O -> 0 < I -> 0 <= S ->
  O <= exp beta * T -> exp (- beta) * B <= I -> 0 <= T -> 0 < B ->
  O / (O + (I + S)) <= T / (T + exp (- (2 * beta)) * B + exp (- beta) * S).
Proof.
  intros HO HI HS HT HB HT0 HB0. pose proof (exp_pos (- beta)) as P. pose proof (exp_pos beta) as
    P'.
  assert (E1 : exp (- (2 * beta)) = exp (- beta) * exp (- beta)) by (rewrite <- exp_plus; f_equal;
    ring).
  assert (E2 : exp beta * exp (- beta) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  rewrite E1. set (c := exp (- beta)) in *. set (d := exp beta) in *.
  assert (0 < c * B) by now apply Rmult_lt_0_compat.
  assert (0 < c * c * B) by (rewrite Rmult_assoc; now apply Rmult_lt_0_compat).
  assert (0 <= c * S) by (apply Rmult_le_pos; lra).
  apply frac_le; [lra|lra|].
  (* O (c c B + c S) <= d T c (c B + S) = T (c B + S) <= T (I + S) *)
  assert (M1 : O * (c * c * B + c * S) <= d * T * (c * c * B + c * S))
    by (apply Rmult_le_compat_r; lra).
  replace (d * T * (c * c * B + c * S)) with (d * c * (T * (c * B + S))) in M1 by ring.
  rewrite E2, Rmult_1_l in M1.
  assert (M2 : T * (c * B + S) <= T * (I + S)) by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

(** With the sinks kept, T = B_m - B_j, m the number of keys that are no sinks, S the weight of the
    sinks: the error is at most 2 V T/(T + e^{-2 beta} B_j + e^{-beta} S) ... *)
Theorem sink_window_error b x s (v : nat -> E) V beta j m K : weights b -> (forall n, 0 <= s n) ->
  (1 <= j <= m)%nat -> bounded beta x m -> vbounded V v (m + K) ->
  sink_error b x s v j m K
  <= sink_bound V beta (between b j m) (partial b j) (sink_weight s m K).
Proof.
  intros Hb Hs Hj Hx Hv.
  assert (HV : 0 <= V) by (apply Rle_trans with (2 := Hv 0%nat ltac:(lia)); apply norm_ge_0).
  assert (Ha := with_sinks_ge0 b x s m (proj1 Hb) Hs).
  pose proof (partial_pos _ j (att_weights b x Hb) ltac:(lia)) as HI.
  assert (HS : 0 <= sink_weight s m K) by (apply between_ge0; trivial; lia).
  eapply Rle_trans.
  - apply (error_bound (window_and_sinks j m) _ v V (m + K)); trivial. rewrite sinks_kept by lia.
    lra.
  - unfold sink_bound. apply Rmult_le_compat_l; [lra|]. rewrite sinks_kept, sinks_dropped by lia.
    apply scale_masses; trivial.
    + apply between_ge0; [intros; now apply att_ge0, Hb|lia].
    + rewrite <- !(only_beyond _ j m) by lia. apply att_le; [apply Hb|].
      intros n Hn _. specialize (Hx n Hn). apply Rabs_le_between in Hx. lra.
    + rewrite <- !(only_window _ j m) by lia. apply att_ge; [apply Hb|].
      intros n Hn _. specialize (Hx n Hn). apply Rabs_le_between in Hx. lra.
    + apply between_ge0; [apply Hb|lia].
    + apply partial_pos; trivial. lia.
Qed.

(** ... and attained, whatever the weights of the sinks. *)
Theorem sink_window_error_attained b s V beta (u : E) j m K : norm u = 1 -> weights b ->
  (forall n, 0 <= s n) -> (1 <= j <= m)%nat -> 0 <= V ->
  sink_error b (worst_logit beta j) s (opposite (window_and_sinks j m) V u) j m K
  = sink_bound V beta (between b j m) (partial b j) (sink_weight s m K).
Proof.
  intros Hu Hb Hs Hj HV. unfold sink_error.
  assert (Ha := with_sinks_ge0 b (worst_logit beta j) s m (proj1 Hb) Hs).
  pose proof (partial_pos _ j (att_weights b (worst_logit beta j) Hb) ltac:(lia)) as HI.
  assert (HS : 0 <= sink_weight s m K) by (apply between_ge0; trivial; lia).
  rewrite error_attained; trivial; [|rewrite sinks_kept by lia; lra].
  rewrite sinks_kept, sinks_dropped by lia. unfold sink_bound. f_equal.
  rewrite <- (only_beyond (att _ _) j m), <- (only_window (att _ _) j m) by lia.
  rewrite (att_const b _ m (window j) (- beta)), (att_const b _ m (drop (window j)) beta).
  2, 3: intros n _ Hn; unfold worst_logit, drop in *; destruct (window j n); simpl in Hn;
    (reflexivity || discriminate).
  rewrite only_window, only_beyond by lia.
  pose proof (partial_pos b j Hb ltac:(lia)) as HB.
  pose proof (between_ge0 b j m (proj1 Hb) ltac:(lia)) as HT.
  replace (- (2 * beta)) with (- beta + - beta) by ring. rewrite exp_plus, exp_Ropp.
  pose proof (exp_pos beta) as P. set (e := exp beta) in *. set (B := partial b j) in *.
  set (T := between b j m) in *. set (S := sink_weight s m K) in *.
  assert (0 < / e) by now apply Rinv_0_lt_compat. assert (0 < / e * B) by now apply
    Rmult_lt_0_compat.
  assert (0 <= e * T) by (apply Rmult_le_pos; lra). assert (0 <= / e * S) by (apply Rmult_le_pos;
    lra).
  assert (0 < / e * / e * B) by (rewrite Rmult_assoc; now apply Rmult_lt_0_compat).
  assert (0 < e * e * T + B + e * S) by nra.
  field. repeat split; nra.
Qed.

(** Windowable with K sinks kept, their weights at least [least m] in a row of m other keys. *)
Definition sinks_windowable (b : nat -> R) (beta V : R) (K : nat) (least : nat -> R) : Prop :=
  forall eps, 0 < eps -> exists J, (1 <= J)%nat /\ forall j m x s (v : nat -> E), (J <= j <= m)%nat
    ->
    bounded beta x m -> (forall n, 0 <= s n) -> least m <= sink_weight s m K ->
    vbounded V v (m + K) -> sink_error b x s v j m K <= eps.

Lemma sink_bound_le V beta T B S eta : 0 < V -> 0 <= T -> 0 < B -> 0 <= S -> 0 < eta < 2 * V ->
  (sink_bound V beta T B S <= eta <->
   T <= eta / (2 * V - eta) * (exp (- (2 * beta)) * B + exp (- beta) * S)).
Proof.
  intros HV HT HB HS He. pose proof (exp_pos (- (2 * beta))). pose proof (exp_pos (- beta)).
  assert (0 < exp (- (2 * beta)) * B) by now apply Rmult_lt_0_compat.
  assert (0 <= exp (- beta) * S) by (apply Rmult_le_pos; lra).
  set (D := exp (- (2 * beta)) * B + exp (- beta) * S).
  replace (sink_bound V beta T B S) with (2 * V * T / (T + D)) by (unfold sink_bound, D; field;
    lra).
  replace (eta / (2 * V - eta) * D) with (eta * D / (2 * V - eta)) by (field; lra).
  rewrite Rle_div_l, <- Rle_div_r by (unfold D; lra). split; intros Q; lra.
Qed.

(** A sink of the least weight. *)
Lemma sink_of_weight S m K : (1 <= K)%nat ->
  sink_weight (fun n => if (n =? m)%nat then S else 0) m K = S.
Proof.
  intros HK. unfold sink_weight. rewrite between_shift by lia.
  replace (m + K - m)%nat with (1 + (K - 1))%nat by lia. rewrite partial_shift.
  rewrite (partial_ext _ (fun _ => 0) (K - 1)), partial_const.
  - simpl. rewrite Nat.add_0_r, Nat.eqb_refl. ring.
  - intros k _. now rewrite (proj2 (Nat.eqb_neq (m + (1 + k)) m)) by lia.
Qed.

(** In masses: B_m - B_j is a small part of B_j + S_m, uniformly. *)
Lemma sinks_windowable_masses b beta V K least (u : E) : norm u = 1 -> weights b -> 0 < V ->
  0 <= beta -> (1 <= K)%nat -> (forall m, 0 <= least m) ->
  (sinks_windowable b beta V K least <->
   forall eps, 0 < eps -> exists J, (1 <= J)%nat /\ forall j m, (J <= j <= m)%nat ->
     between b j m <= eps * (partial b j + least m)).
Proof.
  intros Hu Hb HV Hbeta HK Hl.
  assert (E2 : 0 < exp (- (2 * beta)) <= exp (- beta)).
  { split; [apply exp_pos|apply exp_le; lra]. }
  assert (E1 : exp (- beta) <= 1) by (rewrite <- exp_0; apply exp_le; lra).
  split; intros H eps He.
  - set (eta := 2 * V * eps / (1 + eps)).
    assert (Heta : 0 < eta < 2 * V) by (split; [apply Rdiv_lt_0_compat|apply Rlt_div_l]; nra).
    assert (Ee : eta / (2 * V - eta) = eps) by (unfold eta; field; nra).
    destruct (H eta ltac:(lra)) as [J [HJ H']]. exists J. split; trivial. intros j m Hj.
    set (s := fun n => if (n =? m)%nat then least m else 0).
    assert (Hs : forall n, 0 <= s n) by (intros n; unfold s; destruct (n =? m)%nat; [apply Hl|lra]).
    assert (Hw : sink_weight s m K = least m) by now apply sink_of_weight.
    specialize (H' j m (worst_logit beta j) s (opposite (window_and_sinks j m) V u) Hj
      (worst_logit_bounded beta j m Hbeta) Hs ltac:(lra) ltac:(apply opposite_bounded; trivial;
        lra)).
    rewrite sink_window_error_attained, Hw in H' by (trivial; lia || lra).
    assert (HB : 0 < partial b j) by (apply partial_pos; trivial; lia).
    assert (HT : 0 <= between b j m) by (apply between_ge0; [apply Hb|lia]). specialize (Hl m).
    apply sink_bound_le in H'; trivial. rewrite Ee in H'. eapply Rle_trans; [exact H'|].
    apply Rmult_le_compat_l; nra.
  - set (eta := Rmin eps V). assert (Heta : 0 < eta < 2 * V /\ eta <= eps).
    { unfold eta. pose proof (Rmin_l eps V). pose proof (Rmin_r eps V). pose proof (Rmin_pos eps
      V). lra. }
    set (c := exp (- (2 * beta))) in *. set (q := eta / (2 * V - eta)).
    assert (Hq : 0 < q) by (apply Rdiv_lt_0_compat; lra).
    destruct (H (q * c) ltac:(nra)) as [J [HJ H']]. exists J. split; trivial.
    intros j m x s v Hj Hx Hs Hw Hv. specialize (H' j m Hj). apply Rle_trans with eta; [|lra].
    assert (HS : 0 <= sink_weight s m K) by (specialize (Hl m); lra).
    assert (HB : 0 < partial b j) by (apply partial_pos; trivial; lia).
    eapply Rle_trans; [apply (sink_window_error b x s v V beta); trivial; lia|].
    apply sink_bound_le; trivial; [apply between_ge0; [apply Hb|lia]|lra|].
    fold c q. eapply Rle_trans; [exact H'|]. rewrite Rmult_assoc. apply Rmult_le_compat_l; nra.
Qed.

(** With K sinks kept, of whatever weight: windowable exactly if sum b_n converges. *)
Theorem kept_sinks_windowable b beta V K (u : E) : norm u = 1 -> weights b -> 0 < V -> 0 <= beta ->
  (1 <= K)%nat -> (sinks_windowable b beta V K (fun _ => 0) <-> ex_series b).
Proof.
  intros Hu Hb HV Hbeta HK.
  rewrite (sinks_windowable_masses b beta V K _ u) by (trivial; intros; lra). split.
  - intros H. destruct (H 1 Rlt_0_1) as [J [HJ H']].
    apply (bounded_ex_series b (partial b J + partial b J) (proj1 Hb)). intros m.
    pose proof (partial_pos b J Hb HJ). destruct (le_lt_dec J m) as [Hm|Hm].
    + specialize (H' J m ltac:(lia)). unfold between in H'. lra.
    + pose proof (partial_mono b m J (proj1 Hb) ltac:(lia)). lra.
  - intros Hs eps He. pose proof (proj2 Hb) as H0.
    destruct (tail_small b (eps * b 0%nat) Hs) as [N HN]; [now apply Rmult_lt_0_compat|].
    exists (S N). split; [lia|]. intros j m Hj. specialize (HN j ltac:(lia)).
    pose proof (between_le_tail b j m (proj1 Hb) Hs). rewrite Rplus_0_r.
    apply Rle_trans with (eps * b 0%nat); [lra|]. apply Rmult_le_compat_l; [lra|].
    replace (b 0%nat) with (partial b 1) by (simpl; ring). apply partial_mono; [apply Hb|lia].
Qed.

(** If sum b_n diverges, and the sinks weigh S_m or more in a row of m other keys: windowable
    exactly
    if S_m/B_m tends to infinity (for RoPE, b_n = 1: if S_m outgrows m). *)
Theorem growing_sinks_windowable b beta V K least (u : E) : norm u = 1 -> weights b -> 0 < V ->
  0 <= beta -> (1 <= K)%nat -> (forall m, 0 <= least m) -> ~ ex_series b ->
  (sinks_windowable b beta V K least <->
   is_lim_seq (fun m => least m / partial b m) p_infty).
Proof.
  intros Hu Hb HV Hbeta HK Hl Hd. rewrite (sinks_windowable_masses b beta V K _ u) by trivial.
  split.
  - intros H. apply is_lim_seq_spec. intros Q. set (q := Rmax Q 1).
    assert (Hq : 1 <= q /\ Q <= q) by (unfold q; split; [apply Rmax_r|apply Rmax_l]).
    destruct (H (/ (2 * q + 1))) as [J [HJ H']]; [apply Rinv_0_lt_compat; lra|].
    pose proof (partial_pos b J Hb HJ) as HB.
    destruct (divergent_unbounded b (proj1 Hb) Hd (3 * partial b J)) as [N HN].
    exists (Nat.max N J). intros m Hm. specialize (HN m ltac:(lia)). specialize (H' J m ltac:(lia)).
    assert (HBm : 0 < partial b m) by (apply partial_pos; trivial; lia).
    assert (M : (2 * q + 1) * between b J m <= partial b J + least m).
    { apply (Rmult_le_compat_l (2 * q + 1)) in H'; [|lra].
      rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l in H' by lra. lra. }
    unfold between in M. apply Rle_lt_trans with q; [lra|]. apply Rlt_div_r; trivial. nra.
  - intros L eps He. apply is_lim_seq_spec in L. destruct (L (/ eps)) as [N HN]. exists (S N).
    split; [lia|]. intros j m Hj. specialize (HN m ltac:(lia)). specialize (Hl m).
    pose proof (partial_pos b j Hb ltac:(lia)) as HB.
    assert (HBm : 0 < partial b m) by (apply partial_pos; trivial; lia).
    apply (proj2 (Rlt_div_r _ _ _ HBm)) in HN. apply (Rmult_lt_compat_l eps) in HN; trivial.
    rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l in HN by lra. unfold between. nra.
Qed.
End Values.

(** Weight 1 on the keys at the distances 0 and i - 1, none elsewhere. *)
Definition two_keys (i n : nat) : R := if orb (n =? 0)%nat (S n =? i)%nat then 1 else 0.

(** A sink that is dropped defeats every window, even a constant one: with these weights B_i = 2,
    and
    the error is half the distance of the two values for every window 1 <= j < i, against
    [Q, Lemma 0.2 and Theorem 0.3]. *)
Theorem dropped_sink {E : NormedModule R_AbsRing} (v : nat -> E) i j : (1 <= j < i)%nat ->
  partial (two_keys i) i = 2 /\
  error (window j) (two_keys i) v i = / 2 * norm (minus (v (pred i)) (v 0%nat)).
Proof.
  intros Hj. destruct i as [|i]; [lia|]. simpl pred.
  assert (Z : forall n, (0 < n < i)%nat -> two_keys (S i) n = 0).
  { intros n Hn. unfold two_keys. rewrite (proj2 (Nat.eqb_neq n 0)) by lia.
    now rewrite (proj2 (Nat.eqb_neq (S n) (S i))) by lia. }
  assert (Z0 : two_keys (S i) 0 = 1) by reflexivity.
  assert (Zi : two_keys (S i) i = 1).
  { unfold two_keys. now rewrite (proj2 (Nat.eqb_eq (S i) (S i)) eq_refl), Bool.orb_true_r. }
  assert (P : forall n, (1 <= n <= i)%nat -> partial (two_keys (S i)) n = 1).
  { intros n Hn. replace n with (1 + (n - 1))%nat by lia. rewrite partial_shift.
    rewrite (partial_ext _ (fun _ => 0) (n - 1)), partial_const.
    - simpl. rewrite Z0. ring.
    - intros k Hk. apply Z. lia. }
  assert (Full : partial (two_keys (S i)) (S i) = 2) by (simpl; rewrite (P i), Zi by lia; ring).
  assert (Hp : forall n, 0 <= two_keys (S i) n).
  { intros n. unfold two_keys. destruct (orb _ _); lra. }
  split; trivial. rewrite error_exact; trivial.
  2: rewrite only_window, (P j) by lia; lra.
  rewrite only_window, only_beyond by lia. unfold between. rewrite Full, (P j) by lia.
  replace ((2 - 1) / (2 - 1 + 1)) with (/ 2) by field. f_equal.
  assert (V : forall f : nat -> E, (forall n, (n < S i)%nat -> n <> 0%nat -> n <> i -> f n = zero)
    ->
    vsum f (S i) = plus (f 0%nat) (f i)).
  { intros f Hf. simpl. f_equal. destruct i as [|i']; [lia|].
    clear - Hf. assert (G : forall k, (k <= i')%nat -> vsum f (S k) = f 0%nat).
    { induction k as [|k IH]; intros Hk; simpl; [apply plus_zero_l|].
      simpl in IH. rewrite IH, (Hf (S k)) by lia. apply plus_zero_r. }
    now apply G. }
  assert (W : forall k, output (only k (two_keys (S i))) v (S i)
    = scal (/ partial (only k (two_keys (S i))) (S i))
        (plus (scal (only k (two_keys (S i)) 0) (v 0%nat)) (scal (only k (two_keys (S i)) i) (v
          i)))).
  { intros k. unfold output. f_equal. apply V. intros n Hn H0 Hi. unfold only.
    rewrite Z by lia. destruct (k n); apply scal_0. }
  rewrite !W, only_window, only_beyond by lia. unfold between. rewrite Full, (P j) by lia.
  unfold only, drop, window. rewrite Z0, Zi.
  rewrite (proj2 (Nat.ltb_lt 0 j)), (proj2 (Nat.ltb_ge i j)) by lia. simpl negb. cbv iota.
  replace (/ (2 - 1)) with 1 by field. rewrite Rinv_1, !scal_0, plus_zero_r, plus_zero_l.
  do 2 rewrite (scal_scal 1 1), Rmult_1_l. now rewrite !(scal_one (v _)).
Qed.
