(** The verdict that an expansion of the bias gives.

    After k rungs with limit 1 the bias is p = -l_1 - ... - l_k + c e + ts + O(o), where the
      monomial
    e leads ts and o. *)
From Coq Require Import Reals Lra Lia Psatz Arith List.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Rules IteratedLogarithms Ladder Monomials Expansions.
Open Scope R_scope.

(** -l_1 - ... - l_k. *)
Definition critical (k : nat) : list term := map (fun j => (-1, unit j)) (List.seq 0 k).

Lemma eventually_critical k : eventually (fun n => eval (critical k) n = - lsum k (INR n)).
Proof.
  induction k as [|k IH].
  - exists 0%nat. intros n _. simpl. ring.
  - apply filter_imp with (2 := filter_and _ _ IH (mono_unit k)). intros n [H1 H2].
    unfold critical in *. rewrite seq_S, map_app, eval_app, H1. simpl map.
    cbn [eval lsum]. rewrite H2. simpl. ring.
Qed.

Lemma expands_rho p k ts o : expands p (critical k ++ ts) o ->
  expands (rho p k) (opposite ts) o.
Proof.
  intros H. apply bigO_ext with (fun n => -1 * (p n - eval (critical k ++ ts) n)); [|now apply
    bigO_scal].
  apply filter_imp with (2 := eventually_critical k). intros n E.
  rewrite eval_app, eval_opposite, E. unfold rho. ring.
Qed.

Lemma over_unit_infinite e k : less (unit k) e ->
  is_lim_seq (fun n => mono e n / lg (S k) (INR n)) p_infty.
Proof.
  intros H. apply is_lim_seq_ext_loc with (fun n => exp (- dot (esub (unit k) e) 0 n)).
  - apply filter_imp with (2 := mono_unit k). intros n <-.
    rewrite exp_Ropp. change (exp (dot (esub (unit k) e) 0 n)) with (mono (esub (unit k) e) n).
    rewrite mono_sub. pose proof (mono_pos e n). pose proof (mono_pos (unit k) n). field. split;
      lra.
  - apply (is_lim_comp_seq exp _ p_infty p_infty); [apply is_lim_exp_p|exists 0%nat; discriminate|].
    change p_infty with (Rbar_opp m_infty). apply (is_lim_seq_opp _ m_infty). now apply
      dot_negative.
Qed.

Lemma over_unit_one e k : same e (unit k) ->
  is_lim_seq (fun n => mono e n / lg (S k) (INR n)) 1.
Proof.
  intros H. apply is_lim_seq_ext_loc with (fun _ => 1); [|apply is_lim_seq_const].
  apply filter_imp with (2 := filter_and _ _ (mono_unit k) (eventually_lg (S k) 0)).
  intros n [E P]. rewrite (same_mono e (unit k) n H), E. field. lra.
Qed.

(** The limit at rung k + 1 is -c times that of e/l_{k+1}. *)
Lemma rung_limit p k c e ts o l m : expands p (critical k ++ (c, e) :: ts) o -> led e ts o ->
  is_lim_seq (fun n => mono e n / lg (S k) (INR n)) l -> is_Rbar_mult l (- c) m ->
  is_lim_seq (fun n => rho p k n / lg (S k) (INR n)) m.
Proof.
  intros H Hl L M. apply expands_rho in H. simpl in H.
  pose proof (led_limit _ _ _ _ _ H (led_opposite e ts o Hl)) as R.
  apply is_lim_seq_ext_loc
    with (fun n => (mono e n / lg (S k) (INR n)) * (rho p k n / mono e n)).
  - apply filter_imp with (2 := eventually_lg (S k) 0). intros n Hn. pose proof (mono_pos e n).
    field. split; lra.
  - now apply (is_lim_seq_mult _ _ l (- c)).
Qed.

(** c < 0 and e above l_{k+1}, or c < -1 and e = l_{k+1}: converges. *)
Theorem lead_converges p k c e ts o : expands p (critical k ++ (c, e) :: ts) o -> led e ts o ->
  (c < 0 /\ less (unit k) e) \/ (c < -1 /\ same e (unit k)) -> converges p.
Proof.
  intros H Hl [[Hc He]|[Hc He]].
  - apply (rung_converges p k p_infty); [|exact I].
    apply (rung_limit p k c e ts o p_infty); trivial; [now apply over_unit_infinite|].
    unfold is_Rbar_mult. simpl. destruct (Rle_dec 0 (- c)) as [H0|H0]; [|exfalso; lra].
    destruct (Rle_lt_or_eq_dec 0 (- c) H0); [reflexivity|exfalso; lra].
  - apply (rung_converges p k (- c)); [|simpl; lra].
    apply (rung_limit p k c e ts o 1); trivial; [now apply over_unit_one|].
    unfold is_Rbar_mult. simpl. do 2 f_equal. ring.
Qed.

(** c > 0 and e above l_{k+1}, or c > -1 and e = l_{k+1}: diverges. *)
Theorem lead_diverges p k c e ts o : expands p (critical k ++ (c, e) :: ts) o -> led e ts o ->
  (0 < c /\ less (unit k) e) \/ (-1 < c /\ same e (unit k)) -> ~ converges p.
Proof.
  intros H Hl [[Hc He]|[Hc He]].
  - apply (rung_diverges p k m_infty); [|exact I].
    apply (rung_limit p k c e ts o p_infty); trivial; [now apply over_unit_infinite|].
    unfold is_Rbar_mult. simpl. destruct (Rle_dec 0 (- c)) as [H0|H0]; [exfalso; lra|reflexivity].
  - apply (rung_diverges p k (- c)); [|simpl; lra].
    apply (rung_limit p k c e ts o 1); trivial; [now apply over_unit_one|].
    unfold is_Rbar_mult. simpl. do 2 f_equal. ring.
Qed.

(** Nothing left that reaches l_{k+1}: diverges. *)
Theorem rest_diverges p k ts o : expands p (critical k ++ ts) o -> led (unit k) ts o ->
  ~ converges p.
Proof.
  intros H Hl. apply (lead_diverges p k 0 (unit k) ts o); trivial.
  - apply bigO_ext with (2 := H). exists 0%nat. intros n _. rewrite !eval_app. simpl. ring.
  - right. split; [lra|]. unfold same. enough (Z : forall e, null (esub e e)) by apply Z.
    induction e as [|a e IH]; simpl; [trivial|]. split; [ring|exact IH].
Qed.

(** The exponential of what falls faster than every multiple of log n is below every power of n. *)
Theorem expands_exp_small f c e ts o k : expands f ((c, e) :: ts) o -> led e ts o -> c < 0 ->
  less (unit 0) e -> expands (fun n => exp (f n)) [] (Some [k]).
Proof.
  intros F H Hc He.
  assert (L : is_lim_seq (fun n => rho f 0 n / lg 1 (INR n)) p_infty).
  { apply (rung_limit f 0 c e ts o p_infty); trivial; [now apply over_unit_infinite|].
    unfold is_Rbar_mult. simpl. destruct (Rle_dec 0 (- c)) as [H0|H0]; [|exfalso; lra].
    destruct (Rle_lt_or_eq_dec 0 (- c) H0); [reflexivity|exfalso; lra]. }
  apply is_lim_seq_spec in L. specialize (L (- k)). exists 1.
  apply filter_imp with (2 := filter_and _ _ L (eventually_lg 1 0)). intros n [Hn P].
  apply (proj2 (Rlt_div_r _ _ _ P)) in Hn. unfold rho in Hn. simpl lsum in Hn.
  simpl eval. simpl bound. rewrite Rminus_0_r, Rabs_pos_eq, Rmult_1_l by (left; apply exp_pos).
  unfold mono. apply exp_le. simpl dot. simpl lg in *. lra.
Qed.
