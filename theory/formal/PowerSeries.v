(** The series of log(1 + x), (1 + x)^r, 1/(1 + x), e^x, sin x and cos x at 0, to any order. *)
From Coq Require Import Reals Lra Lia Psatz Arith List.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Monomials Expansions.
Open Scope R_scope.

(** The coefficients of the antiderivative of l_0 + l_1 x + ...: l_0/j, l_1/(j + 1), ... *)
Fixpoint integral (j : R) (l : list R) : list R :=
  match l with [] => [] | c :: l' => c / j :: integral (j + 1) l' end.

(** Those of (1 + x)^r, the first k, each the integral of those of r (1 + x)^{r-1}. *)
Fixpoint binomials (r : R) (k : nat) : list R :=
  match k with O => [] | S k' => 1 :: integral 1 (map (Rmult r) (binomials (r - 1) k')) end.

(** Those of log(1 + x), from that of x^0 to that of x^k. *)
Definition logarithms (k : nat) : list R := 0 :: integral 1 (binomials (-1) k).

(** Those of e^x, and of a sin x + b cos x, the first k. *)
Fixpoint exponentials (k : nat) : list R :=
  match k with O => [] | S k' => 1 :: integral 1 (exponentials k') end.
Fixpoint waves (a b : R) (k : nat) : list R :=
  match k with O => [] | S k' => b :: integral 1 (waves (- b) a k') end.

Lemma derive_integral l j x : (1 <= j)%nat ->
  is_derive (fun x => x ^ j * poly (integral (INR j) l) x) x (x ^ pred j * poly l x).
Proof.
  revert j. induction l as [|c l IH]; intros j Hj; simpl.
  - rewrite Rmult_0_r. apply (is_derive_ext (fun _ => 0)); [intros t; symmetry; apply Rmult_0_r|].
    apply (is_derive_const 0 x).
  - apply (is_derive_ext (fun x => c / INR j * x ^ j + x ^ S j * poly (integral (INR (S j)) l) x)).
    { intros t. rewrite S_INR. simpl. match goal with |- ?a = ?b => change (@eq R a b) end. ring. }
    assert (P : 0 < INR j) by (apply lt_0_INR; lia).
    replace (x ^ pred j * (c + x * poly l x))
      with (c / INR j * (INR j * 1 * x ^ pred j) + x ^ pred (S j) * poly l x).
    2: { simpl pred at 2. replace (x ^ j) with (x * x ^ pred j);
         [field; lra|destruct j; [lia|reflexivity]]. }
    apply (is_derive_plus (fun x => c / INR j * x ^ j)); [|apply IH; lia].
    apply (is_derive_scal (fun x => x ^ j)). apply (is_derive_pow (fun x => x) j x 1).
    apply (is_derive_id x).
Qed.

Lemma poly_integral l x : is_derive (fun x => x * poly (integral 1 l) x) x (poly l x).
Proof.
  pose proof (derive_integral l 1 x (le_n 1)) as D. simpl pow in D. simpl INR in D.
  rewrite Rmult_1_l in D. apply is_derive_ext with (2 := D). intros t. now rewrite Rmult_1_r.
Qed.

Lemma length_integral j l : length (integral j l) = length l.
Proof. revert j. induction l as [|c l IH]; intros j; simpl; [reflexivity|]. now rewrite IH. Qed.

(** A series may be integrated. *)
Lemma series_integral phi psi l : (forall x, Rabs x <= / 2 -> is_derive phi x (psi x)) ->
  series_at_0 psi l -> series_at_0 phi (phi 0 :: integral 1 l).
Proof.
  intros D [K H]. exists (Rabs K). intros x Hx. simpl poly. simpl length. rewrite length_integral.
  set (g := fun t => phi t - t * poly (integral 1 l) t).
  replace (phi x - (phi 0 + x * poly (integral 1 l) x)) with (g x - g 0) by (unfold g; ring).
  replace (Rabs K * Rabs x ^ S (length l)) with (Rabs K * Rabs x ^ length l * Rabs (x - 0))
    by (rewrite Rminus_0_r; simpl; ring).
  apply (bounded_variation g (fun t => psi t - poly l t)). intros t Ht. rewrite !Rminus_0_r in Ht.
  assert (Ht' : Rabs t <= / 2) by lra. split.
  - apply (is_derive_minus phi (fun t => t * poly (integral 1 l) t)); [now apply D|apply
    poly_integral].
  - eapply Rle_trans; [now apply H|].
    apply Rle_trans with (Rabs K * Rabs t ^ length l).
    + apply Rmult_le_compat_r; [apply pow_le, Rabs_pos|apply Rle_abs].
    + apply Rmult_le_compat_l; [apply Rabs_pos|]. apply pow_incr. split; [apply Rabs_pos|trivial].
Qed.

Lemma series_ext phi psi l : (forall x, Rabs x <= / 2 -> phi x = psi x :> R) -> series_at_0 phi l ->
  series_at_0 psi l.
Proof. intros E [K H]. exists K. intros x Hx. rewrite <- E; auto. Qed.

Lemma series_scal c phi l : series_at_0 phi l -> series_at_0 (fun x => c * phi x) (map (Rmult c) l).
Proof.
  intros [K H]. exists (Rabs c * K). intros x Hx. rewrite map_length.
  replace (poly (map (Rmult c) l) x) with (c * poly l x).
  - rewrite <- Rmult_minus_distr_l, Rabs_mult, Rmult_assoc.
    apply Rmult_le_compat_l; [apply Rabs_pos|now apply H].
  - clear H. induction l as [|d l IH]; simpl; [ring|]. rewrite <- IH. ring.
Qed.

Lemma near_1 x : Rabs x <= / 2 -> / 2 <= 1 + x <= 2.
Proof. intros H. apply Rabs_le_between in H. lra. Qed.

Lemma derive_Rpower r x : Rabs x <= / 2 ->
  is_derive (fun x => Rpower (1 + x) r) x (r * Rpower (1 + x) (r - 1)).
Proof.
  intros H. pose proof (near_1 x H). unfold Rpower. auto_derive; [lra|].
  replace (exp ((r - 1) * ln (1 + x))) with (exp (r * ln (1 + x)) * / (1 + x)); [field; lra|].
  rewrite <- (exp_ln (1 + x)) at 2 by lra. rewrite <- exp_Ropp, <- exp_plus. f_equal. ring.
Qed.

(** (1 + x)^r = 1 + r x + ... *)
Lemma series_Rpower r k : series_at_0 (fun x => Rpower (1 + x) r) (binomials r k).
Proof.
  revert r. induction k as [|k IH]; intros r; simpl.
  - exists (exp (Rabs r * ln 2)). intros x Hx. pose proof (near_1 x Hx). simpl.
    rewrite Rminus_0_r, Rmult_1_r, Rabs_pos_eq by (left; apply exp_pos). apply exp_le.
    apply Rle_trans with (Rabs (r * ln (1 + x))); [apply Rle_abs|]. rewrite Rabs_mult.
    apply Rmult_le_compat_l; [apply Rabs_pos|]. apply Rabs_le. split.
    + rewrite <- ln_Rinv by lra. apply ln_le; lra.
    + apply ln_le; lra.
  - replace 1 with (Rpower (1 + 0) r) at 1
      by (unfold Rpower; rewrite Rplus_0_r, ln_1, Rmult_0_r; apply exp_0).
    apply (series_integral (fun x => Rpower (1 + x) r) (fun x => r * Rpower (1 + x) (r - 1))).
    + intros x Hx. now apply derive_Rpower.
    + apply (series_scal r _ _ (IH (r - 1))).
Qed.

Lemma series_power k r m : INR k = r -> series_at_0 (fun x => (1 + x) ^ k) (binomials r m).
Proof.
  intros <-. apply series_ext with (2 := series_Rpower (INR k) m). intros x Hx.
  pose proof (near_1 x Hx). apply Rpower_pow. lra.
Qed.

(** 1/(1 + x) = 1 - x + ... *)
Lemma series_inv k : series_at_0 (fun x => / (1 + x)) (binomials (-1) k).
Proof.
  apply series_ext with (2 := series_Rpower (-1) k). intros x Hx. pose proof (near_1 x Hx).
  replace (-1) with (- (1)) by ring. rewrite Rpower_Ropp, Rpower_1; lra.
Qed.

(** log(1 + x) = x - x^2/2 + ... *)
Lemma series_ln k : series_at_0 (fun x => ln (1 + x)) (logarithms k).
Proof.
  unfold logarithms. replace 0 with (ln (1 + 0)) at 1 by (rewrite Rplus_0_r; apply ln_1).
  apply (series_integral (fun x => ln (1 + x)) (fun x => / (1 + x))); [|apply series_inv].
  intros x Hx. pose proof (near_1 x Hx). auto_derive; [lra|]. field. lra.
Qed.

(** e^x = 1 + x + x^2/2 + ... *)
Lemma series_exp k : series_at_0 exp (exponentials k).
Proof.
  induction k as [|k IH]; simpl.
  - exists (exp 1). intros x Hx. simpl. rewrite Rminus_0_r, Rmult_1_r.
    rewrite Rabs_pos_eq by (left; apply exp_pos). apply exp_le.
    pose proof (Rle_abs x). lra.
  - rewrite <- exp_0 at 1. apply (series_integral exp exp); [|exact IH].
    intros x _. auto_derive; [trivial|]. ring.
Qed.

Lemma series_waves a b k : series_at_0 (fun x => a * sin x + b * cos x) (waves a b k).
Proof.
  revert a b. induction k as [|k IH]; intros a b; simpl.
  - exists (Rabs a + Rabs b). intros x _. simpl. rewrite Rminus_0_r, Rmult_1_r.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult.
    pose proof (Rabs_pos a). pose proof (Rabs_pos b).
    assert (Rabs (sin x) <= 1) by (apply Rabs_le, SIN_bound).
    assert (Rabs (cos x) <= 1) by (apply Rabs_le, COS_bound). nra.
  - replace (b :: integral 1 (waves (- b) a k))
      with (a * sin 0 + b * cos 0 :: integral 1 (waves (- b) a k))
      by (f_equal; rewrite sin_0, cos_0; ring).
    apply (series_integral (fun x => a * sin x + b * cos x) (fun x => - b * sin x + a * cos x));
      [|apply IH].
    intros x _. auto_derive; [trivial|]. ring.
Qed.

(** sin x = x - x^3/6 + ..., cos x = 1 - x^2/2 + ... *)
Lemma series_sin k : series_at_0 sin (waves 1 0 k).
Proof. apply series_ext with (2 := series_waves 1 0 k). intros x _. ring. Qed.

Lemma series_cos k : series_at_0 cos (waves 0 1 k).
Proof. apply series_ext with (2 := series_waves 0 1 k). intros x _. ring. Qed.
