(** Bounded functions: waves, signs, residues and what is made of them. *)
From Coq Require Import Reals Lra Lia Psatz Arith List.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Rules Monomials Expansions.
Open Scope R_scope.

Definition is_bounded (f : nat -> R) : Prop := bigO f (Some []).

Lemma bounded_by f C : (forall n, Rabs (f n) <= C) -> is_bounded f.
Proof. intros H. apply (bigO_bounded f C). now exists 0%nat. Qed.

Lemma bounded_const c : is_bounded (fun _ => c).
Proof. apply (bounded_by _ (Rabs c)). intros _. lra. Qed.

Lemma bounded_plus f g : is_bounded f -> is_bounded g -> is_bounded (fun n => f n + g n).
Proof. apply bigO_plus. Qed.

Lemma bounded_opp f : is_bounded f -> is_bounded (fun n => - f n).
Proof. intros [C H]. exists C. apply filter_imp with (2 := H). intros n. now rewrite Rabs_Ropp. Qed.

Lemma bounded_minus f g : is_bounded f -> is_bounded g -> is_bounded (fun n => f n - g n).
Proof. intros F G. apply (bounded_plus f (fun n => - g n)); trivial. now apply bounded_opp. Qed.

Lemma bounded_mult f g : is_bounded f -> is_bounded g -> is_bounded (fun n => f n * g n).
Proof. apply (bigO_mult f g (Some []) (Some [])). Qed.

Lemma bounded_pow f k : is_bounded f -> is_bounded (fun n => f n ^ k).
Proof.
  intros H. induction k as [|k IH]; simpl; [apply bounded_const|now apply bounded_mult].
Qed.

Lemma bounded_cos f : is_bounded (fun n => cos (f n)).
Proof. apply (bounded_by _ 1). intros n. apply Rabs_le, COS_bound. Qed.

Lemma bounded_sin f : is_bounded (fun n => sin (f n)).
Proof. apply (bounded_by _ 1). intros n. apply Rabs_le, SIN_bound. Qed.

Lemma bounded_sign (k : nat -> nat) : is_bounded (fun n => (-1) ^ k n).
Proof. apply (bounded_by _ 1). intros n. rewrite pow_1_abs. lra. Qed.

Lemma bounded_mod (k : nat -> nat) d : d <> 0%nat -> is_bounded (fun n => INR (k n mod d)).
Proof.
  intros H. apply (bounded_by _ (INR d)). intros n. rewrite Rabs_pos_eq by apply pos_INR.
  apply le_INR. pose proof (Nat.mod_upper_bound (k n) d H). lia.
Qed.

(** Geometric decay z^{f(n)}, 0 < z <= 1, f(n) >= 0. *)
Lemma bounded_geometric z f : 0 < z <= 1 -> (forall n, 0 <= f n) ->
  is_bounded (fun n => Rpower z (f n)).
Proof.
  intros Hz Hf. apply (bounded_by _ 1). intros n. rewrite Rabs_pos_eq by (left; apply exp_pos).
  rewrite <- exp_0. apply exp_le. assert (ln z <= 0) by (rewrite <- ln_1; apply ln_le; lra).
  specialize (Hf n). nra.
Qed.

(** A finite sum of bounded functions. *)
Lemma bounded_sum (f : nat -> nat -> R) a b : (forall i, is_bounded (f i)) ->
  is_bounded (fun n => sum_n_m (fun i => f i n) a b).
Proof.
  intros H. destruct (le_lt_dec a b) as [Hab|Hab].
  - induction Hab as [|b Hab IH].
    + apply bigO_ext with (2 := H a). exists 0%nat. intros n _. now rewrite sum_n_n.
    + apply bigO_ext with (2 := bounded_plus _ _ IH (H (S b))). exists 0%nat. intros n _.
      rewrite sum_n_Sm by lia. reflexivity.
  - apply bigO_ext with (2 := bounded_const 0). exists 0%nat. intros n _.
    rewrite sum_n_m_zero by lia. reflexivity.
Qed.

(** e^f where f is bounded above. *)
Lemma bounded_exp f C : eventually (fun n => f n <= C) -> is_bounded (fun n => exp (f n)).
Proof.
  intros H. apply (bigO_bounded _ (exp C)). apply filter_imp with (2 := H). intros n Hn.
  rewrite Rabs_pos_eq by (left; apply exp_pos). now apply exp_le.
Qed.

Lemma expands_bounded f : is_bounded f -> expands f [] (Some []).
Proof. apply bigO_ext. exists 0%nat. intros n _. simpl. ring. Qed.

(** ** Bounds from some point on: a wave lies between -1 and 1 *)
Definition at_most (f g : nat -> R) : Prop := eventually (fun n => f n <= g n).

Lemma at_most_refl f : at_most f f.
Proof. exists 0%nat. intros; lra. Qed.

Lemma at_most_plus f f' g g' : at_most f f' -> at_most g g' ->
  at_most (fun n => f n + g n) (fun n => f' n + g' n).
Proof. intros F G. apply filter_imp with (2 := filter_and _ _ F G). intros n [? ?]. lra. Qed.

Lemma at_most_minus f f' g g' : at_most f f' -> at_most g' g ->
  at_most (fun n => f n - g n) (fun n => f' n - g' n).
Proof. intros F G. apply filter_imp with (2 := filter_and _ _ F G). intros n [? ?]. lra. Qed.

Lemma at_most_opp f f' : at_most f' f -> at_most (fun n => - f n) (fun n => - f' n).
Proof. intros H. apply filter_imp with (2 := H). intros n ?. lra. Qed.

Lemma at_most_mult a f f' : eventually (fun n => 0 < a n) -> at_most f f' ->
  at_most (fun n => a n * f n) (fun n => a n * f' n).
Proof.
  intros A F. apply filter_imp with (2 := filter_and _ _ A F). intros n [? ?].
  apply Rmult_le_compat_l; lra.
Qed.

Lemma at_most_mult_opp a f f' : eventually (fun n => a n < 0) -> at_most f' f ->
  at_most (fun n => a n * f n) (fun n => a n * f' n).
Proof.
  intros A F. apply filter_imp with (2 := filter_and _ _ A F). intros n [? ?].
  apply Rmult_le_compat_neg_l; lra.
Qed.

Lemma at_most_swap f g a b : at_most (fun n => a n * f n) (fun n => b n * g n) ->
  at_most (fun n => f n * a n) (fun n => g n * b n).
Proof. intros H. apply filter_imp with (2 := H). intros n ?. lra. Qed.

Lemma wave_at_most f : at_most (fun n => cos (f n)) (fun _ => 1) /\
  at_most (fun n => sin (f n)) (fun _ => 1) /\ at_most (fun _ => -1) (fun n => cos (f n)) /\
  at_most (fun _ => -1) (fun n => sin (f n)).
Proof. repeat split; exists 0%nat; intros n _; destruct (COS_bound (f n)), (SIN_bound (f n));
  trivial. Qed.

Lemma at_most_converges p q : at_most p q -> converges q -> converges p.
Proof. intros H. apply (upper_bound p q 0). apply filter_imp with (2 := H). intros n ?. lra. Qed.

Lemma at_most_diverges p q : at_most q p -> ~ converges q -> ~ converges p.
Proof. intros H. apply (lower_bound p q 0). apply filter_imp with (2 := H). intros n ?. lra. Qed.
