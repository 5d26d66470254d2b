(** Rules for the exp-series of a bias: what may be changed, bounded or split. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums.
Open Scope R_scope.

(** The exp-series of the bias p converges. *)
Definition converges (p : nat -> R) : Prop := ex_series (fun n => exp (p n)).

Lemma ex_series_shift (b : nat -> R) N : ex_series b <-> ex_series (fun n => b (N + n)%nat).
Proof. destruct N; [reflexivity|]. apply ex_series_incr_n. Qed.

(** ** Finitely many terms, bounded changes, bounds *)

(** Finitely many terms do not matter. *)
Theorem finitely_many_terms (a b : nat -> R) : eventually (fun n => a n = b n) ->
  (ex_series a <-> ex_series b).
Proof.
  intros [N H]. rewrite (ex_series_shift a N), (ex_series_shift b N).
  split; apply ex_series_ext; intros n; [|symmetry]; apply H; lia.
Qed.

Lemma comparison (a b : nat -> R) : eventually (fun n => 0 <= a n <= b n) -> ex_series b ->
  ex_series a.
Proof.
  intros [N H] Hb. apply (ex_series_shift a N). apply (ex_series_shift b N) in Hb.
  apply (ex_series_le (K := R_AbsRing) (V := R_CompleteNormedModule)) with (2 := Hb).
  intros n. specialize (H (N + n)%nat ltac:(lia)).
  change (Rabs (a (N + n)%nat) <= b (N + n)%nat). rewrite Rabs_pos_eq; apply H.
Qed.

(** An upper bound that converges suffices; a constant is free. *)
Theorem upper_bound p q C : eventually (fun n => p n <= q n + C) -> converges q -> converges p.
Proof.
  intros H Hq. apply comparison with (fun n => exp C * exp (q n)).
  - apply filter_imp with (2 := H). intros n Hn. split; [left; apply exp_pos|].
    rewrite <- exp_plus. apply exp_le. lra.
  - now apply (ex_series_scal_l (K := R_AbsRing) (V := R_NormedModule) (exp C)).
Qed.

(** A lower bound that diverges suffices. *)
Theorem lower_bound p q C : eventually (fun n => q n - C <= p n) -> ~ converges q -> ~ converges p.
Proof.
  intros H Hq Hp. apply Hq, (upper_bound q p C); trivial.
  apply filter_imp with (2 := H). intros n Hn. lra.
Qed.

(** If p = p_1 + p_2 with p_2 bounded for all large n, then p and p_1 have the same verdict. *)
Theorem bounded_difference p q C : eventually (fun n => Rabs (p n - q n) <= C) ->
  (converges p <-> converges q).
Proof.
  intros H. split; apply upper_bound with C; apply filter_imp with (2 := H);
    intros n Hn; apply Rabs_le_between in Hn; lra.
Qed.

(** The term test: a bias that is bounded below diverges. *)
Theorem term_test p C : eventually (fun n => - C <= p n) -> ~ converges p.
Proof.
  intros H. apply lower_bound with (fun _ => 0) C.
  { apply filter_imp with (2 := H). intros n Hn. lra. }
  unfold converges. rewrite exp_0. intros Hs. apply (ex_series_lim_0 (fun _ => 1)) in Hs.
  apply is_lim_seq_unique in Hs. rewrite Lim_seq_const in Hs. injection Hs. lra.
Qed.

(** Terms that are 0 from some point on (p = -oo there, as in a window): a finite sum. *)
Theorem finite_support (b : nat -> R) : eventually (fun n => b n = 0) -> ex_series b.
Proof.
  intros H. apply (finitely_many_terms b (fun _ => 0) H). exists 0.
  change (is_lim_seq (sum_n (fun _ => 0)) 0).
  apply is_lim_seq_ext with (fun _ => 0); [|apply is_lim_seq_const].
  intros n. rewrite sum_n_partial, partial_const. ring.
Qed.

(** ** Residue classes *)
Lemma partial_classes (b : nat -> R) q n :
  partial b (q * n) = partial (fun r => partial (fun m => b (q * m + r)%nat) n) q.
Proof.
  induction n as [|n IH].
  - rewrite Nat.mul_0_r. simpl. now rewrite partial_const, Rmult_0_l.
  - rewrite Nat.mul_succ_r, partial_shift, IH, <- partial_plus. now apply partial_ext.
Qed.

Lemma partial_ge_term f r q : (forall k, 0 <= f k) -> (r < q)%nat -> f r <= partial f q.
Proof.
  intros Hf Hr. pose proof (partial_mono f (S r) q Hf Hr). simpl in *.
  pose proof (partial_ge0 f r (fun k _ => Hf k)). lra.
Qed.

(** The series converges exactly if each of its residue classes modulo q does; one divergent class
    makes it diverge. *)
Theorem residue_classes (b : nat -> R) q : (1 <= q)%nat -> (forall n, 0 <= b n) ->
  (ex_series b <-> forall r, (r < q)%nat -> ex_series (fun m => b (q * m + r)%nat)).
Proof.
  intros Hq Hb. split.
  - intros Hs r Hr. apply bounded_ex_series with (Series b); [intros; apply Hb|]. intros n.
    eapply Rle_trans; [|apply (partial_le_series b (q * n)); trivial]. rewrite partial_classes.
    apply (partial_ge_term (fun r => partial (fun m => b (q * m + r)%nat) n)); trivial.
    intros k. apply partial_ge0. intros; apply Hb.
  - intros H. apply bounded_ex_series
      with (partial (fun r => Series (fun m => b (q * m + r)%nat)) q); trivial.
    intros n. apply Rle_trans with (partial b (q * n)); [apply partial_mono; trivial; nia|].
    rewrite partial_classes. apply partial_le. intros r Hr.
    apply partial_le_series; [intros; apply Hb|now apply H].
Qed.

(** ** Finite trigonometric sums *)

(** a_0 cos(w_0 n + f_0) + ... + a_{k-1} cos(w_{k-1} n + f_{k-1}). *)
Definition waves (a w f : nat -> R) (k n : nat) : R :=
  partial (fun i => a i * cos (w i * INR n + f i)) k.

Lemma waves_bounded a w f k n : Rabs (waves a w f k n) <= partial (fun i => Rabs (a i)) k.
Proof.
  eapply Rle_trans; [apply partial_abs|]. apply partial_le. intros i _. rewrite Rabs_mult.
  rewrite <- (Rmult_1_r (Rabs (a i))) at 2.
  apply Rmult_le_compat_l; [apply Rabs_pos|]. apply Rabs_le, COS_bound.
Qed.

(** A finite trigonometric sum, Sandwich for one, is bounded below: its exp-series diverges. *)
Theorem trigonometric_sum a w f k c : ~ converges (fun n => waves a w f k n + c).
Proof.
  apply term_test with (partial (fun i => Rabs (a i)) k - c). exists O. intros n _.
  pose proof (waves_bounded a w f k n) as H. apply Rabs_le_between in H. lra.
Qed.
