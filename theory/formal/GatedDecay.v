(** Gated decays: the bias of distance n is the sum of the logarithms of n forget gates. *)
From Coq Require Import Reals Lra Lia Psatz Arith Classical.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Attention WindowError RowBiases TrfLinear.
Open Scope R_scope.

(** The product of the gates of the n latest tokens, the query's first. *)
Fixpoint decay (g : nat -> R) (n : nat) : R :=
  match n with O => 1 | S m => decay g m * g m end.

Lemma decay_pos g n : (forall m, 0 < g m) -> 0 < decay g n.
Proof. intros H. induction n as [|n IH]; simpl; [lra|now apply Rmult_lt_0_compat]. Qed.

Lemma decay_weights g : (forall m, 0 < g m) -> weights (decay g).
Proof. intros H. split; [intros n; left; now apply decay_pos|simpl; lra]. Qed.

Lemma decay_const c n : decay (fun _ => c) n = c ^ n.
Proof. induction n as [|n IH]; simpl; [reflexivity|]. rewrite IH. ring. Qed.

(** j steps further back the product has shrunk by gamma^j at least. *)
Lemma decay_step g gamma j m : (forall n, 0 < g n <= gamma) ->
  decay g (j + m) <= gamma ^ j * decay g m.
Proof.
  intros H. induction j as [|j IH]; simpl; [lra|]. destruct (H (j + m)%nat) as [P Q].
  apply Rle_trans with (gamma ^ j * decay g m * gamma); [|right; ring].
  apply Rmult_le_compat; trivial; [left; apply decay_pos; apply H|lra].
Qed.

(** If no gate exceeds gamma < 1, then T(j)/B(j) <= gamma^j/(1 - gamma^j) in every row ... *)
Theorem gated_ratio g gamma i j : (forall n, 0 < g n <= gamma) -> gamma < 1 -> (1 <= j <= i)%nat ->
  between (decay g) j i / partial (decay g) j <= gamma ^ j / (1 - gamma ^ j).
Proof.
  intros H Hg Hj. assert (P : forall n, 0 < g n) by apply H. destruct (H 0%nat) as [G0 G1].
  assert (Q : 0 < gamma ^ j < 1) by (split; [apply pow_lt; lra|apply pow_lt_1_compat; [lra|lia]]).
  pose proof (partial_pos _ j (decay_weights g P) ltac:(lia)) as HB.
  apply frac_le; [trivial|lra|].
  assert (T : between (decay g) j i <= gamma ^ j * partial (decay g) i).
  { rewrite between_shift, <- partial_scal by lia.
    apply Rle_trans with (partial (fun k => gamma ^ j * decay g k) (i - j)).
    - apply partial_le. intros k _. now apply decay_step.
    - apply partial_mono; [|lia]. intros k. apply Rmult_le_pos; [lra|]. left. now apply decay_pos. }
  unfold between in *. lra.
Qed.

(** ... and constant gates approach it: the window is that of a linear bias of slope
    log(1/gamma). *)
Theorem gated_ratio_approached gamma j : 0 < gamma < 1 -> (1 <= j)%nat ->
  is_lim_seq (fun i => between (decay (fun _ => gamma)) j i / partial (decay (fun _ => gamma)) j)
    (gamma ^ j / (1 - gamma ^ j)).
Proof.
  intros Hg Hj. assert (Q : 0 < gamma ^ j < 1).
  { split; [apply pow_lt; lra|apply pow_lt_1_compat; [lra|lia]]. }
  assert (S : forall n, partial (decay (fun _ => gamma)) n = (1 - gamma ^ n) / (1 - gamma)).
  { induction n as [|n IH]; simpl; [field; lra|]. rewrite IH, decay_const. field. lra. }
  apply is_lim_seq_ext with (fun i => (gamma ^ j - gamma ^ i) / (1 - gamma ^ j)).
  { intros i. unfold between. rewrite !S. field. lra. }
  unfold Rdiv. apply (is_lim_seq_scal_r _ (/ (1 - gamma ^ j)) (gamma ^ j)).
  replace (Finite (gamma ^ j)) with (Finite (gamma ^ j - 0)) by (f_equal; ring).
  apply is_lim_seq_minus'; [apply is_lim_seq_const|]. apply is_lim_seq_geom.
  rewrite Rabs_pos_eq; lra.
Qed.

(** Constant gates are such a linear bias. *)
Theorem gated_linear gamma n : 0 < gamma -> decay (fun _ => gamma) n = linear (ln (/ gamma)) n.
Proof.
  intros H. rewrite decay_const, linear_pow, ln_Rinv, Ropp_involutive, exp_ln; trivial.
Qed.

Section Family.
Context {E : NormedModule R_AbsRing}.

(** All rows of all lengths whose gates have values in a set. *)
Definition gated_row (gates : R -> Prop) : Type := {r : nat * (nat -> R) | forall n, gates (snd r
  n)}.

(** Windowable, for every logit bound, exactly if the gates stay below some gamma < 1. *)
Theorem gated_windowable (gates : R -> Prop) beta V (u : E) : norm u = 1 -> 0 < V -> 0 <= beta ->
  (forall x, gates x -> 0 < x <= 1) ->
  (rows_windowable (E := E) (row := gated_row gates) (fun r => fst (proj1_sig r))
     (fun r => decay (snd (proj1_sig r))) (fun _ => beta) V <->
   exists gamma, gamma < 1 /\ forall x, gates x -> x <= gamma).
Proof.
  intros Hu HV Hb HG. rewrite (row_biases _ _ _ V u Hu HV).
  2: { intros [[i g] Hr]. simpl in *. apply decay_weights. intros m. now apply HG. }
  2: trivial.
  split; intros H.
  - apply NNPP. intros Hn.
    destruct (H (/ 4)) as [J [HJ H']]; [lra|].
    set (gamma := Rpower (/ 2) (/ INR (2 * J))).
    assert (HJ2 : 0 < INR (2 * J)) by (apply lt_0_INR; lia).
    assert (Hgamma : gamma < 1).
    { apply Rlt_le_trans with (exp 0); [|rewrite exp_0; lra]. apply exp_increasing.
      rewrite ln_Rinv by lra. assert (ln 1 < ln 2) by (apply ln_increasing; lra). rewrite ln_1 in *.
      pose proof (Rinv_0_lt_compat _ HJ2). nra. }
    apply Hn. exists gamma. split; trivial. intros x Hx. apply Rnot_lt_le. intros Hlt.
    destruct (HG x Hx) as [Px Lx].
    set (r := exist (fun r : nat * (nat -> R) => forall n, gates (snd r n)) ((2 * J)%nat, fun _ =>
      x)
      (fun _ => Hx) : gated_row gates).
    specialize (H' J r). simpl fst in H'. simpl snd in H'. specialize (H' ltac:(simpl; lia)).
    set (b := decay (fun _ => x)) in *.
    assert (HB : 0 < partial b J) by (apply partial_pos; trivial; now apply decay_weights).
    assert (UB : partial b J <= INR J).
    { rewrite <- (Rmult_1_l (INR J)), <- partial_const. apply partial_le. intros k _. unfold b.
      rewrite decay_const. rewrite <- (pow1 k). apply pow_incr. lra. }
    assert (Low : / 2 < x ^ (2 * J)).
    { apply Rle_lt_trans with (gamma ^ (2 * J)).
      - unfold gamma. rewrite <- Rpower_pow by apply exp_pos. rewrite Rpower_mult, Rinv_l,
        Rpower_1; lra.
      - rewrite <- !Rpower_pow by (trivial; apply exp_pos).
        unfold Rpower. apply exp_increasing. apply Rmult_lt_compat_l; trivial.
        apply ln_increasing; trivial. apply exp_pos. }
    assert (LT : INR J * / 2 <= between b J (2 * J)).
    { rewrite between_shift by lia. replace (2 * J - J)%nat with J by lia.
      rewrite Rmult_comm, <- partial_const. apply partial_le. intros k Hk. unfold b.
      rewrite decay_const. left. apply Rlt_le_trans with (1 := Low).
      replace (2 * J)%nat with ((J + k) + (J - k))%nat by lia. rewrite pow_add.
      rewrite <- (Rmult_1_r (x ^ (J + k))) at 2.
      apply Rmult_le_compat_l; [apply pow_le; lra|]. rewrite <- (pow1 (J - k)). apply pow_incr.
        lra. }
    assert (C : 1 <= exp (2 * beta)) by (rewrite <- exp_0; apply exp_le; lra).
    assert (IJ : 0 < INR J) by (apply lt_0_INR; lia).
    change (exp (2 * beta) * between b J (2 * J) / partial b J <= / 4) in H'.
    apply Rle_div_l in H'; trivial. nra.
  - destruct H as (gamma & Hg & H). intros eps He.
    destruct (Rle_lt_dec gamma 0) as [Hneg|Hpos].
    { exists 1%nat. split; [lia|]. intros j [[i g] Hr] Hj. simpl in *. exfalso.
      specialize (Hr 0%nat). pose proof (HG _ Hr). pose proof (H _ Hr). lra. }
    set (c := exp (2 * beta)). assert (Hc : 0 < c) by apply exp_pos.
    assert (L : is_lim_seq (fun j => gamma ^ j) 0).
    { apply is_lim_seq_geom. rewrite Rabs_pos_eq; lra. }
    apply is_lim_seq_spec in L. set (q := eps / (c + eps)).
    assert (Hq : 0 < q) by (apply Rdiv_lt_0_compat; lra).
    destruct (L (mkposreal q Hq)) as [N HN]. exists (S N). split; [lia|].
    intros j [[i g] Hr] Hj. simpl in *. specialize (HN j ltac:(lia)). simpl in HN.
    rewrite Rminus_0_r in HN. apply Rabs_def2 in HN.
    assert (Q : 0 < gamma ^ j < 1) by (split; [apply pow_lt; lra|apply pow_lt_1_compat; [lra|lia]]).
    apply Rle_trans with (c * (gamma ^ j / (1 - gamma ^ j))).
    + unfold Rdiv. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
      apply (gated_ratio g gamma i j); [|trivial|lia]. intros n. split; [apply HG|apply H]; apply
        Hr.
    + unfold Rdiv. rewrite <- Rmult_assoc. apply Rle_div_l; [lra|].
      destruct HN as [HN _]. unfold q in HN. apply Rlt_div_r in HN; lra.
Qed.
End Family.

(** ** Gates of known shape *)
Definition sigmoid (z : R) : R := / (1 + exp (- z)).

(** A sigmoid gate whose pre-activation is at most z_max stays below sigmoid(z_max) < 1. *)
Theorem sigmoid_gate z z_max : z <= z_max -> 0 < sigmoid z <= sigmoid z_max /\ sigmoid z_max < 1.
Proof.
  intros H. unfold sigmoid. pose proof (exp_pos (- z)). pose proof (exp_pos (- z_max)).
  assert (exp (- z_max) <= exp (- z)) by (apply exp_le; lra). repeat split.
  - apply Rinv_0_lt_compat. lra.
  - apply Rinv_le_contravar; lra.
  - rewrite <- Rinv_1 at 2. apply Rinv_lt_contravar; lra.
Qed.

(** An increment -softplus(z) of CABLE is the logarithm of the gate sigmoid(-z). *)
Theorem softplus_gate z : exp (- ln (1 + exp z)) = sigmoid (- z).
Proof. unfold sigmoid. rewrite exp_Ropp, Ropp_involutive, exp_ln; [reflexivity|]. pose proof
  (exp_pos z). lra. Qed.
