(** A learned sink: a constant S in the denominator, of value 0; softmax-off-by-one is S = 1. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Attention WindowError Sinks.
Open Scope R_scope.

(** O (2 I + S) / ((O + I + S) (I + S)): the error for V = 1, with I the mass inside the window and
    O
    outside, when all values inside are opposite to all values outside. *)
Definition gap (I O S : R) : R := O * (2 * I + S) / ((O + I + S) * (I + S)).

(** Where it is largest as a function of I. *)
Definition worst_inside (O S : R) : R := (sqrt (S ^ 2 + 2 * S * O) - S) / 2.
Definition clipped (low high x : R) : R := Rmax low (Rmin high x).

(** It grows with O, and is at most 2 O/(O + I + S). *)
Lemma gap_mono_outside I O O' S : 0 < I -> 0 <= S -> 0 <= O <= O' -> gap I O S <= gap I O' S.
Proof.
  intros HI HS [HO HO']. unfold gap.
  assert (0 < (O + I + S) * (I + S)) by (apply Rmult_lt_0_compat; lra).
  assert (0 < (O' + I + S) * (I + S)) by (apply Rmult_lt_0_compat; lra).
  apply frac_le; trivial.
  assert (E : O * (O' + I + S) <= O' * (O + I + S)) by nra.
  assert (P : 0 <= (2 * I + S) * (I + S)) by (apply Rmult_le_pos; lra).
  apply (Rmult_le_compat_r _ _ _ P) in E. lra.
Qed.

Lemma gap_le I O S : 0 < I -> 0 <= S -> 0 <= O -> gap I O S <= 2 * (O / (O + (I + S))).
Proof.
  intros HI HS HO. unfold gap. replace (2 * (O / (O + (I + S)))) with ((2 * O) / (O + (I + S)))
    by (field; lra). apply frac_le; [apply Rmult_lt_0_compat; lra|lra|].
  assert (0 <= O * (O + (I + S)) * S) by (repeat apply Rmult_le_pos; lra). nra.
Qed.

(** Where it is larger: closer to the worst I. *)
Lemma gap_mono_inside I J O S : 0 < I -> 0 < J -> 0 <= S -> 0 <= O ->
  (I <= J /\ 2 * J ^ 2 + 2 * J * S <= O * S) \/ (J <= I /\ O * S <= 2 * J ^ 2 + 2 * J * S) ->
  gap I O S <= gap J O S.
Proof.
  intros HI HJ HS HO H. unfold gap.
  apply frac_le; [apply Rmult_lt_0_compat; lra|apply Rmult_lt_0_compat; lra|].
  enough (D : 0 <= (I - J) * (2 * I * J + S * (I + J) - S * O)).
  { apply (Rmult_le_compat_l O) in D; [|trivial]. lra. }
  destruct H as [[H1 H2]|[H1 H2]].
  - assert (2 * I * J + S * (I + J) - S * O <= 0) by nra. nra.
  - assert (0 <= 2 * I * J + S * (I + J) - S * O) by nra. nra.
Qed.

Lemma worst_inside_root O S : 0 <= O -> 0 <= S ->
  let J := worst_inside O S in 0 <= J /\ 2 * J ^ 2 + 2 * J * S = O * S.
Proof.
  intros HO HS J. assert (P : 0 <= S ^ 2 + 2 * S * O) by nra.
  pose proof (sqrt_sqrt _ P) as E. pose proof (sqrt_pos (S ^ 2 + 2 * S * O)) as Q.
  assert (L : S <= sqrt (S ^ 2 + 2 * S * O)).
  { rewrite <- (sqrt_pow2 S HS) at 1. apply sqrt_le_1_alt. nra. }
  unfold J, worst_inside. split; [lra|]. nra.
Qed.

Lemma gap_clipped I O S low high : 0 < low -> low <= I <= high -> 0 <= O -> 0 <= S ->
  gap I O S <= gap (clipped low high (worst_inside O S)) O S.
Proof.
  intros Hl HI HO HS. destruct (worst_inside_root O S HO HS) as [HJ E].
  set (J := worst_inside O S) in *. unfold clipped.
  destruct (Rle_lt_dec J high) as [H1|H1].
  - rewrite (Rmin_right high J) by trivial. destruct (Rle_lt_dec low J) as [H2|H2].
    + rewrite Rmax_right by trivial. apply gap_mono_inside; trivial; lra.
    + rewrite Rmax_left by lra. apply gap_mono_inside; trivial; try lra. right. split; [lra|]. nra.
  - rewrite (Rmin_left high J), Rmax_right by lra. apply gap_mono_inside; trivial; try lra.
    left. split; [lra|]. nra.
Qed.

Section Values.
Context {E : NormedModule R_AbsRing}.

(** The output with the sink in the denominator, and the error of the window of the j nearest. *)
Definition sink_output (a : nat -> R) (v : nat -> E) (S : R) (i : nat) : E :=
  scal (/ (partial a i + S)) (vsum (fun n => scal (a n) (v n)) i).
Definition learned_error (b x : nat -> R) (v : nat -> E) (S : R) (i j : nat) : R :=
  norm (minus (sink_output (att b x) v S i) (sink_output (att b x) v S j)).

(** The difference of the two outputs: the outside enters with 1/(O + I + S), the inside changes its
    factor by -O/((O + I + S)(I + S)). *)
Lemma learned_difference a v S i j : (j <= i)%nat -> 0 < partial a j -> 0 <= S ->
  0 <= between a j i ->
  let I := partial a j in let O := between a j i in
  minus (sink_output a v S i) (sink_output a v S j)
  = plus (scal (/ (O + I + S)) (vsum (fun k => scal (a (j + k)%nat) (v (j + k)%nat)) (i - j)))
         (scal (- (O / ((O + I + S) * (I + S)))) (vsum (fun n => scal (a n) (v n)) j)).
Proof.
  intros Hji HI HS HO I O. unfold sink_output.
  assert (Split : vsum (fun n => scal (a n) (v n)) i
    = plus (vsum (fun n => scal (a n) (v n)) j)
           (vsum (fun k => scal (a (j + k)%nat) (v (j + k)%nat)) (i - j))).
  { replace i with (j + (i - j))%nat at 1 by lia. generalize (i - j)%nat. intros m.
    induction m as [|m IH]; simpl; [now rewrite Nat.add_0_r, plus_zero_r|].
    rewrite Nat.add_succ_r. simpl. now rewrite IH, plus_assoc. }
  rewrite Split. replace (partial a i) with (O + I) by (unfold O, I, between; ring). fold I.
  set (X := vsum _ j). set (Y := vsum _ (i - j)).
  replace (- (O / ((O + I + S) * (I + S)))) with (/ (O + I + S) - / (I + S))
    by (field; unfold I, O in *; lra).
  rewrite scal_plus, <- line_minus. unfold minus. rewrite (plus_comm (scal _ X)), <- plus_assoc.
  reflexivity.
Qed.

Lemma learned_error_masses b x (v : nat -> E) V S i j : weights b -> (1 <= j <= i)%nat -> 0 <= S ->
  vbounded V v i ->
  learned_error b x v S i j <= V * gap (partial (att b x) j) (between (att b x) j i) S.
Proof.
  intros Hb Hj HS Hv. unfold learned_error.
  assert (Ha : forall n, 0 <= att b x n) by (intros; now apply att_ge0, Hb).
  pose proof (partial_pos _ j (att_weights b x Hb) ltac:(lia)) as HI.
  assert (HO : 0 <= between (att b x) j i) by (apply between_ge0; trivial; lia).
  rewrite learned_difference by (trivial; lia). set (a := att b x) in *.
  set (I := partial a j) in *. set (O := between a j i) in *.
  assert (P : 0 < (O + I + S) * (I + S)) by (apply Rmult_lt_0_compat; lra).
  eapply Rle_trans; [apply (norm_triangle (V := E))|].
  rewrite !norm_scal_R, Rabs_Ropp, !Rabs_pos_eq.
  2: apply Rdiv_le_0_compat; lra. 2: left; apply Rinv_0_lt_compat; lra.
  assert (N1 : norm (vsum (fun k => scal (a (j + k)%nat) (v (j + k)%nat)) (i - j)) <= V * O).
  { unfold O. rewrite between_shift by lia.
    apply (vsum_norm V (fun k => a (j + k)%nat) (fun k => v (j + k)%nat)); [intros; apply Ha|].
    intros k Hk. apply Hv. lia. }
  assert (N2 : norm (vsum (fun n => scal (a n) (v n)) j) <= V * I).
  { apply vsum_norm; trivial. intros k Hk. apply Hv. lia. }
  apply Rle_trans with (/ (O + I + S) * (V * O) + O / ((O + I + S) * (I + S)) * (V * I)).
  - apply Rplus_le_compat; apply Rmult_le_compat_l; trivial.
    + left. apply Rinv_0_lt_compat. lra.
    + apply Rdiv_le_0_compat; lra.
  - right. unfold gap. field. lra.
Qed.

Lemma learned_error_opposite b x V (u : E) S i j : norm u = 1 -> 0 <= V -> weights b ->
  (1 <= j <= i)%nat -> 0 <= S ->
  learned_error b x (opposite (window j) V u) S i j
  = V * gap (partial (att b x) j) (between (att b x) j i) S.
Proof.
  intros Hu HV Hb Hj HS. unfold learned_error.
  assert (Ha : forall n, 0 <= att b x n) by (intros; now apply att_ge0, Hb).
  pose proof (partial_pos _ j (att_weights b x Hb) ltac:(lia)) as HI.
  assert (HO : 0 <= between (att b x) j i) by (apply between_ge0; trivial; lia).
  rewrite learned_difference by (trivial; lia). set (a := att b x) in *.
  set (I := partial a j) in *. set (O := between a j i) in *.
  assert (P : 0 < (O + I + S) * (I + S)) by (apply Rmult_lt_0_compat; lra).
  assert (E1 : vsum (fun n => scal (a n) (opposite (window j) V u n)) j = scal (V * I : R) u).
  { unfold opposite. rewrite vsum_line. f_equal. unfold I. rewrite <- partial_scal.
    apply partial_ext. intros k Hk. unfold window. rewrite (proj2 (Nat.ltb_lt k j) Hk). ring. }
  assert (E2 : vsum (fun k => scal (a (j + k)%nat) (opposite (window j) V u (j + k)%nat)) (i - j)
    = scal (- V * O : R) u).
  { unfold opposite. rewrite (vsum_line (fun k => a (j + k)%nat)). f_equal. unfold O.
    rewrite between_shift, <- partial_scal by lia. apply partial_ext. intros k _. unfold window.
    rewrite (proj2 (Nat.ltb_ge (j + k) j)) by lia. ring. }
  rewrite E1, E2, !scal_scal. set (p := / (O + I + S) * (- V * O)).
  set (q := - (O / ((O + I + S) * (I + S))) * (V * I)).
  replace (plus (scal p u) (scal q u)) with (scal (p + q : R) u) by apply (scal_distr_r p q u).
  rewrite norm_scal_R, Hu, Rmult_1_r.
  assert (G : 0 <= V * gap I O S).
  { unfold gap. apply Rmult_le_pos; trivial. apply Rdiv_le_0_compat; trivial.
    apply Rmult_le_pos; lra. }
  replace (p + q) with (- (V * gap I O S)) by (unfold p, q, gap; field; lra).
  now rewrite Rabs_Ropp, Rabs_pos_eq.
Qed.

(** The bound of kept sinks holds, but is not attained. *)
Theorem learned_sink_bound b x (v : nat -> E) V beta S i j : weights b -> (1 <= j <= i)%nat ->
  0 <= S -> bounded beta x i -> vbounded V v i ->
  learned_error b x v S i j <= sink_bound V beta (between b j i) (partial b j) S.
Proof.
  intros Hb Hj HS Hx Hv.
  assert (HV : 0 <= V) by (apply Rle_trans with (2 := Hv 0%nat ltac:(lia)); apply norm_ge_0).
  pose proof (partial_pos _ j (att_weights b x Hb) ltac:(lia)) as HI.
  assert (HO : 0 <= between (att b x) j i)
    by (apply between_ge0; [intros; now apply att_ge0, Hb|lia]).
  eapply Rle_trans; [now apply (learned_error_masses b x v V S i j)|].
  unfold sink_bound. replace (2 * V) with (V * 2) by ring. rewrite Rmult_assoc.
  apply Rmult_le_compat_l; trivial. eapply Rle_trans; [now apply gap_le|].
  apply Rmult_le_compat_l; [lra|]. apply scale_masses; trivial.
  - rewrite <- !(only_beyond _ j i) by lia. apply att_le; [apply Hb|].
    intros n Hn _. specialize (Hx n Hn). apply Rabs_le_between in Hx. lra.
  - rewrite <- !(only_window _ j i) by lia. apply att_ge; [apply Hb|].
    intros n Hn _. specialize (Hx n Hn). apply Rabs_le_between in Hx. lra.
  - apply between_ge0; [apply Hb|lia].
  - apply partial_pos; trivial. lia.
Qed.

(** The exact worst error: O = e^beta T, and I = (sqrt(S^2 + 2 S O) - S)/2 clipped to
    [e^{-beta} B_j, e^beta B_j]. *)
Definition learned_worst (V beta T B S : R) : R :=
  let O := exp beta * T in
  V * gap (clipped (exp (- beta) * B) (exp beta * B) (worst_inside O S)) O S.

(** It bounds the error for every input within the bounds ... *)
Theorem learned_sink_error b x (v : nat -> E) V beta S i j : weights b -> (1 <= j <= i)%nat ->
  0 <= S -> bounded beta x i -> vbounded V v i ->
  learned_error b x v S i j <= learned_worst V beta (between b j i) (partial b j) S.
Proof.
  intros Hb Hj HS Hx Hv.
  assert (HV : 0 <= V) by (apply Rle_trans with (2 := Hv 0%nat ltac:(lia)); apply norm_ge_0).
  pose proof (partial_pos _ j (att_weights b x Hb) ltac:(lia)) as HI.
  pose proof (partial_pos b j Hb ltac:(lia)) as HB.
  assert (HO : 0 <= between (att b x) j i)
    by (apply between_ge0; [intros; now apply att_ge0, Hb|lia]).
  assert (B : forall n, (n < i)%nat -> - beta <= x n <= beta).
  { intros n Hn. specialize (Hx n Hn). apply Rabs_le_between in Hx. lra. }
  assert (UO : between (att b x) j i <= exp beta * between b j i).
  { rewrite <- !(only_beyond _ j i) by lia. apply att_le; [apply Hb|]. intros n Hn _. now apply B. }
  assert (LI : exp (- beta) * partial b j <= partial (att b x) j).
  { rewrite <- !(only_window _ j i) by lia. apply att_ge; [apply Hb|]. intros n Hn _. now apply B. }
  assert (UI : partial (att b x) j <= exp beta * partial b j).
  { rewrite <- !(only_window _ j i) by lia. apply att_le; [apply Hb|]. intros n Hn _. now apply B. }
  eapply Rle_trans; [now apply (learned_error_masses b x v V S i j)|].
  unfold learned_worst. apply Rmult_le_compat_l; trivial.
  eapply Rle_trans; [apply gap_mono_outside with (O' := exp beta * between b j i); trivial; lra|].
  apply gap_clipped; trivial; [apply Rmult_lt_0_compat; trivial; apply exp_pos|lra|lra].
Qed.

(** ... and is attained: one logit for all keys inside, beta outside, values opposite. *)
Theorem learned_sink_attained b V beta S (u : E) i j : norm u = 1 -> 0 <= V -> 0 <= beta -> weights
  b ->
  (1 <= j <= i)%nat -> 0 <= S ->
  exists x, bounded beta x i /\
    learned_error b x (opposite (window j) V u) S i j
    = learned_worst V beta (between b j i) (partial b j) S.
Proof.
  intros Hu HV Hbeta Hb Hj HS. pose proof (partial_pos b j Hb ltac:(lia)) as HB.
  set (O := exp beta * between b j i). set (low := exp (- beta) * partial b j).
  set (high := exp beta * partial b j). set (J := clipped low high (worst_inside O S)).
  assert (Hl : 0 < low) by (apply Rmult_lt_0_compat; trivial; apply exp_pos).
  assert (Hlh : low <= high) by (apply Rmult_le_compat_r; [lra|apply exp_le; lra]).
  assert (HJ : low <= J <= high).
  { unfold J, clipped. split; [apply Rmax_l|]. apply Rmax_lub; trivial. apply Rmin_l. }
  set (y := ln (J / partial b j)).
  assert (Ey : exp y * partial b j = J).
  { unfold y. rewrite exp_ln; [field; lra|apply Rdiv_lt_0_compat; lra]. }
  assert (Hy : - beta <= y <= beta).
  { split; apply Rnot_lt_le; intros H; apply exp_increasing in H;
      apply (Rmult_lt_compat_r (partial b j)) in H; unfold low, high in HJ; lra. }
  set (x := fun n => if window j n then y else beta). exists x. split.
  - intros n _. unfold x. apply Rabs_le. destruct (window j n); lra.
  - rewrite learned_error_opposite by trivial. unfold learned_worst. fold O low high J. f_equal.
    rewrite <- (only_beyond (att b x) j i), <- (only_window (att b x) j i) by lia.
    rewrite (att_const b x i (window j) y), (att_const b x i (drop (window j)) beta).
    2, 3: intros n _ Hn; unfold x, drop in *; destruct (window j n); simpl in Hn;
      (reflexivity || discriminate).
    rewrite only_window, only_beyond, Ey by lia. reflexivity.
Qed.
End Values.
