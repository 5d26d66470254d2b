(** One row of attention when only some of its keys are kept: the exact error.

    A row sees [i] keys.  The key at distance [n] has the unnormalised weight [a n >= 0], the
    exponential of its logit, and the value [v n] in a real normed space; [keep n] says whether it
    is kept.  Windows, windows with sinks, and whatever a cache keeps are choices of [keep]. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums.
Open Scope R_scope.

(** The weights of the keys that are kept; 0 for the others. *)
Definition only (keep : nat -> bool) (a : nat -> R) (n : nat) : R := if keep n then a n else 0.

Definition drop (keep : nat -> bool) (n : nat) : bool := negb (keep n).

(** The [j] nearest keys. *)
Definition window (j n : nat) : bool := (n <? j)%nat.

(** The first [i] content logits are within [-beta, beta]. *)
Definition bounded (beta : R) (x : nat -> R) (i : nat) : Prop :=
  forall n, (n < i)%nat -> Rabs (x n) <= beta.

(** Weights of a row whose logits are [x n] on top of a bias with exp-series terms [b n]. *)
Definition att (b x : nat -> R) (n : nat) : R := exp (x n) * b n.

(** ** Sums of weights *)
Lemma only_drop keep a i : partial a i = partial (only keep a) i + partial (only (drop keep) a) i.
Proof.
  rewrite <- partial_plus. apply partial_ext. intros k _. unfold only, drop.
  destruct (keep k); simpl; ring.
Qed.

Lemma only_ge0 keep a n : (forall k, 0 <= a k) -> 0 <= only keep a n.
Proof. intros H. unfold only. destruct (keep n); [apply H|lra]. Qed.

Lemma only_window a j i : (j <= i)%nat -> partial (only (window j) a) i = partial a j.
Proof.
  intros H. replace i with (j + (i - j))%nat by lia. rewrite partial_shift.
  rewrite (partial_ext _ a j), (partial_ext _ (fun _ => 0) (i - j)), partial_const.
  - ring.
  - intros k _. unfold only, window. now rewrite (proj2 (Nat.ltb_ge (j + k) j)) by lia.
  - intros k Hk. unfold only, window. now rewrite (proj2 (Nat.ltb_lt k j) Hk).
Qed.

Lemma only_beyond a j i : (j <= i)%nat -> partial (only (drop (window j)) a) i = between a j i.
Proof.
  intros H. pose proof (only_drop (window j) a i) as E. rewrite only_window in E by trivial.
  unfold between. lra.
Qed.

Lemma att_ge0 b x n : (forall k, 0 <= b k) -> 0 <= att b x n.
Proof. intros H. apply Rmult_le_pos; [left; apply exp_pos|apply H]. Qed.

Lemma att_weights b x : weights b -> weights (att b x).
Proof.
  intros [H H0]. split; [intros; now apply att_ge0|].
  apply Rmult_lt_0_compat; [apply exp_pos|trivial].
Qed.

(** Logits below (above) a bound: so is every sum of weights. *)
Lemma att_le b x i keep : (forall k, 0 <= b k) -> forall beta,
  (forall n, (n < i)%nat -> keep n = true -> x n <= beta) ->
  partial (only keep (att b x)) i <= exp beta * partial (only keep b) i.
Proof.
  intros Hb beta Hx. rewrite <- partial_scal. apply partial_le. intros k Hk. unfold only, att.
  destruct (keep k) eqn:Ek; [|lra]. apply Rmult_le_compat_r; [apply Hb|]. now apply exp_le, Hx.
Qed.

Lemma att_ge b x i keep : (forall k, 0 <= b k) -> forall beta,
  (forall n, (n < i)%nat -> keep n = true -> beta <= x n) ->
  exp beta * partial (only keep b) i <= partial (only keep (att b x)) i.
Proof.
  intros Hb beta Hx. rewrite <- partial_scal. apply partial_le. intros k Hk. unfold only, att.
  destruct (keep k) eqn:Ek; [|lra]. apply Rmult_le_compat_r; [apply Hb|]. now apply exp_le, Hx.
Qed.

Lemma att_const b x i keep beta :
  (forall n, (n < i)%nat -> keep n = true -> x n = beta) ->
  partial (only keep (att b x)) i = exp beta * partial (only keep b) i.
Proof.
  intros Hx. rewrite <- partial_scal. apply partial_ext. intros k Hk. unfold only, att.
  destruct (keep k) eqn:Ek; [|ring]. now rewrite (Hx k Hk Ek).
Qed.

Section Row.
Context {E : NormedModule R_AbsRing}.

(** ** Algebra of two vectors *)
Lemma scal_0 (x : E) : scal (0 : R) x = zero.
Proof. apply (scal_zero_l x). Qed.

Lemma scal_plus (c : R) (X Y : E) : scal c (plus X Y) = plus (scal c X) (scal c Y).
Proof. apply (scal_distr_l c X Y). Qed.

Lemma scal_scal (c d : R) (X : E) : scal c (scal d X) = scal (c * d : R) X.
Proof. apply (scal_assoc c d X). Qed.

Lemma scal_minus (c : R) (X Y : E) : scal c (minus X Y) = minus (scal c X) (scal c Y).
Proof. unfold minus. rewrite scal_plus. f_equal. apply (scal_opp_r c Y). Qed.

Lemma line_minus (c d : R) (X : E) : minus (scal c X) (scal d X) = scal (c - d : R) X.
Proof. unfold minus. rewrite <- (scal_opp_l d X). symmetry. apply (scal_distr_r c (opp d) X). Qed.

Lemma combine_minus (p q r s : R) (X Y : E) :
  minus (plus (scal p X) (scal q Y)) (plus (scal r X) (scal s Y))
  = plus (scal (p - r : R) X) (scal (q - s : R) Y).
Proof.
  rewrite <- !line_minus. unfold minus. rewrite opp_plus, <- !plus_assoc. f_equal. rewrite
    !plus_assoc.
  f_equal. apply plus_comm.
Qed.

(** p (X + Y) - q X = r (s Y - q X) where p - q = - r q and p = r s. *)
Lemma combine_average (p q r s : R) (X Y : E) : p - q = - (r * q) -> p = r * s ->
  minus (scal p (plus X Y)) (scal q X) = scal r (minus (scal s Y) (scal q X)).
Proof.
  intros H1 H2.
  assert (E1 : scal q X = plus (scal q X) (scal (0 : R) Y)) by now rewrite scal_0, plus_zero_r.
  assert (E2 : scal s Y = plus (scal (0 : R) X) (scal s Y)) by now rewrite scal_0, plus_zero_l.
  rewrite E1, E2, scal_plus, !combine_minus, scal_plus, !scal_scal.
  f_equal; apply (f_equal (fun c : R => scal c _)); lra.
Qed.

Fixpoint vsum (f : nat -> E) (n : nat) : E :=
  match n with O => zero | S m => plus (vsum f m) (f m) end.

(** The average of the values with weights [a]. *)
Definition output (a : nat -> R) (v : nat -> E) (i : nat) : E :=
  scal (/ partial a i) (vsum (fun n => scal (a n) (v n)) i).

(** How far the output moves when only the kept keys are attended to: delta(i, j) when
    these are the [j] nearest. *)
Definition error (keep : nat -> bool) (a : nat -> R) (v : nat -> E) (i : nat) : R :=
  norm (minus (output a v i) (output (only keep a) v i)).

Definition vbounded (V : R) (v : nat -> E) (i : nat) : Prop :=
  forall n, (n < i)%nat -> norm (v n) <= V.

Lemma norm_scal_R (c : R) (x : E) : norm (scal c x) = Rabs c * norm x.
Proof.
  apply Rle_antisym; [apply (norm_scal c x)|]. destruct (Req_dec c 0) as [->|Hc].
  { rewrite Rabs_R0, Rmult_0_l. apply norm_ge_0. }
  assert (A : 0 < Rabs c) by now apply Rabs_pos_lt.
  apply Rmult_le_reg_l with (/ Rabs c); [now apply Rinv_0_lt_compat|].
  rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l by lra.
  rewrite <- Rabs_inv. apply Rle_trans with (2 := norm_scal (/ c) (scal c x)).
  rewrite scal_scal, Rinv_l by trivial. right. f_equal. symmetry. apply (scal_one x).
Qed.

Lemma vsum_ext f g n : (forall k, (k < n)%nat -> f k = g k) -> vsum f n = vsum g n.
Proof.
  induction n as [|n IH]; intros H; simpl; [reflexivity|].
  rewrite IH by (intros; apply H; lia). now rewrite (H n) by lia.
Qed.

Lemma vsum_plus f g n : vsum (fun k => plus (f k) (g k)) n = plus (vsum f n) (vsum g n).
Proof.
  induction n as [|n IH]; simpl; [now rewrite plus_zero_l|].
  rewrite IH, <- !plus_assoc. f_equal. rewrite !plus_assoc. f_equal. apply plus_comm.
Qed.

Lemma vsum_line a c (u : E) n :
  vsum (fun k => scal (a k) (scal (c k) u)) n = scal (partial (fun k => a k * c k) n) u.
Proof.
  induction n as [|n IH]; simpl; [now rewrite scal_0|].
  rewrite IH, scal_scal. symmetry. apply (scal_distr_r (partial _ n) (a n * c n) u).
Qed.

Lemma vsum_norm V a (v : nat -> E) n : (forall k, 0 <= a k) -> vbounded V v n ->
  norm (vsum (fun k => scal (a k) (v k)) n) <= V * partial a n.
Proof.
  intros Ha. induction n as [|n IH]; intros Hv; simpl; [rewrite norm_zero; lra|].
  eapply Rle_trans; [apply norm_triangle|]. rewrite Rmult_plus_distr_l.
  apply Rplus_le_compat; [apply IH; intros k Hk; apply Hv; lia|].
  rewrite norm_scal_R, Rabs_pos_eq by apply Ha.
  rewrite Rmult_comm. apply Rmult_le_compat_r; [apply Ha|apply Hv; lia].
Qed.

(** An average of values is no longer than the longest. *)
Lemma output_norm V a v i : (forall k, 0 <= a k) -> 0 < partial a i -> vbounded V v i ->
  norm (output a v i) <= V.
Proof.
  intros Ha HP Hv. unfold output.
  rewrite norm_scal_R, Rabs_pos_eq by (left; now apply Rinv_0_lt_compat).
  rewrite Rmult_comm. apply Rle_div_l; trivial. now apply vsum_norm.
Qed.

(** The change of the output is the dropped share of the weight times the distance between what was
    dropped and what was kept, exactly. *)
Theorem error_exact keep a v i : (forall k, 0 <= a k) -> 0 < partial (only keep a) i ->
  error keep a v i
  = partial (only (drop keep) a) i / (partial (only (drop keep) a) i + partial (only keep a) i)
    * norm (minus (output (only (drop keep) a) v i) (output (only keep a) v i)).
Proof.
  intros Ha HK. set (K := partial (only keep a) i) in *. set (O := partial (only (drop keep) a) i).
  assert (HO : 0 <= O) by (apply partial_ge0; intros; now apply only_ge0).
  unfold error, output at 1 2. rewrite (only_drop keep a i). fold K O.
  rewrite (vsum_ext _ (fun n => plus (scal (only keep a n) (v n)) (scal (only (drop keep) a n) (v
    n)))).
  2: { intros k _. unfold only, drop. destruct (keep k); simpl;
       now rewrite scal_0, ?plus_zero_r, ?plus_zero_l. }
  rewrite vsum_plus. set (X := vsum (fun n => scal (only keep a n) (v n)) i).
  destruct HO as [HO|HO].
  - unfold output. fold O K X.
    rewrite (combine_average _ _ (O / (O + K)) (/ O)) by (field; lra).
    rewrite norm_scal_R, Rabs_pos_eq; [reflexivity|apply Rdiv_le_0_compat; lra].
  - rewrite <- HO. replace (vsum (fun n => scal (only (drop keep) a n) (v n)) i) with (zero : E).
    + rewrite plus_zero_r, Rplus_0_r, minus_eq_zero, norm_zero. unfold Rdiv. ring.
    + assert (Z : forall n, (n < i)%nat -> only (drop keep) a n = 0).
      { intros n Hn. apply Rle_antisym; [|now apply only_ge0]. rewrite HO. unfold O.
        replace (only (drop keep) a n)
          with (partial (only (drop keep) a) (S n) - partial (only (drop keep) a) n) by (simpl;
            ring).
        pose proof (partial_mono (only (drop keep) a) (S n) i
          (fun k => only_ge0 (drop keep) a k Ha) Hn).
        assert (0 <= partial (only (drop keep) a) n) by (apply partial_ge0; intros; now apply
          only_ge0).
        lra. }
      symmetry. rewrite (vsum_ext _ (fun _ => zero)).
      * clear. induction i as [|i IH]; simpl; [reflexivity|]. now rewrite IH, plus_zero_l.
      * intros k Hk. rewrite (Z k Hk). apply scal_0.
Qed.

(** So it is at most twice the bound of the values times that share. *)
Theorem error_bound keep a v V i : (forall k, 0 <= a k) -> 0 < partial (only keep a) i ->
  vbounded V v i ->
  error keep a v i <= 2 * V *
    (partial (only (drop keep) a) i / (partial (only (drop keep) a) i + partial (only keep a) i)).
Proof.
  intros Ha HK Hv. rewrite error_exact by trivial.
  set (K := partial (only keep a) i) in *. set (O := partial (only (drop keep) a) i).
  assert (HO : 0 <= O) by (apply partial_ge0; intros; now apply only_ge0).
  rewrite Rmult_comm. destruct HO as [HO|HO].
  - apply Rmult_le_compat_r; [apply Rdiv_le_0_compat; lra|].
    eapply Rle_trans; [apply norm_triangle|]. rewrite norm_opp.
    assert (Hd : forall k, 0 <= only (drop keep) a k) by (intros; now apply only_ge0).
    assert (Hk : forall k, 0 <= only keep a k) by (intros; now apply only_ge0).
    pose proof (output_norm V _ v i Hd HO Hv). pose proof (output_norm V _ v i Hk HK Hv). lra.
  - rewrite <- HO. unfold Rdiv. rewrite !Rmult_0_l, !Rmult_0_r. lra.
Qed.

(** Values that differ as much as they can: +V along a unit vector where kept, -V where dropped. *)
Definition opposite (keep : nat -> bool) (V : R) (u : E) (n : nat) : E :=
  scal (if keep n then V else - V) u.

Lemma opposite_bounded keep V (u : E) i : norm u = 1 -> 0 <= V -> vbounded V (opposite keep V u) i.
Proof.
  intros Hu HV n _. unfold opposite. rewrite norm_scal_R, Hu, Rmult_1_r.
  destruct (keep n); [|rewrite Rabs_Ropp]; rewrite Rabs_pos_eq; lra.
Qed.

(** With these values the bound is attained. *)
Theorem error_attained keep a V (u : E) i : norm u = 1 -> 0 <= V -> (forall k, 0 <= a k) ->
  0 < partial (only keep a) i ->
  error keep a (opposite keep V u) i = 2 * V *
    (partial (only (drop keep) a) i / (partial (only (drop keep) a) i + partial (only keep a) i)).
Proof.
  intros Hu HV Ha HK. rewrite error_exact by trivial.
  set (K := partial (only keep a) i) in *. set (O := partial (only (drop keep) a) i).
  assert (HO : 0 <= O) by (apply partial_ge0; intros; now apply only_ge0).
  assert (L : forall k c, (forall n, only k a n * (if keep n then V else - V) = c * only k a n) ->
    vsum (fun n => scal (only k a n) (opposite keep V u n)) i = scal (c * partial (only k a) i : R)
      u).
  { intros k c Hc. unfold opposite. rewrite vsum_line. f_equal. rewrite <- partial_scal.
    apply partial_ext. intros n _. apply Hc. }
  destruct HO as [HO|HO]; [|rewrite <- HO; unfold Rdiv; ring].
  rewrite Rmult_comm. f_equal. unfold output.
  rewrite (L keep V), (L (drop keep) (- V)).
  2, 3: intros n; unfold only, drop; destruct (keep n); simpl; ring.
  fold O K. rewrite !scal_scal.
  replace (/ O * (- V * O)) with (- V) by (field; lra).
  replace (/ K * (V * K)) with V by (field; lra).
  rewrite line_minus, norm_scal_R, Hu, Rmult_1_r, Rabs_left1; lra.
Qed.
End Row.
