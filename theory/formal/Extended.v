(** Biases with the value -oo, as those of windows and masks: e^{-oo} = 0. *)
From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Rules.
Open Scope R_scope.

(** The exponential on the extended reals.  No real number is e^{+oo}; 1 stands for it, so that a
    series with infinitely many of these terms diverges, as it should. *)
Definition exp (x : Rbar) : R :=
  match x with Finite y => Rtrigo_def.exp y | m_infty => 0 | p_infty => 1 end.

(** A bias that is finite from some point on has the verdict of its finite values ... *)
Theorem extended_finite (p : nat -> Rbar) (f : nat -> R) : eventually (fun n => p n = Finite (f n))
  ->
  (ex_series (fun n => exp (p n)) <-> converges f).
Proof.
  intros H. apply finitely_many_terms. apply filter_imp with (2 := H). now intros n ->.
Qed.

(** ... and one that is -oo from some point on converges: its series is a finite sum. *)
Theorem extended_masked (p : nat -> Rbar) : eventually (fun n => p n = m_infty) ->
  ex_series (fun n => exp (p n)).
Proof. intros H. apply finite_support. apply filter_imp with (2 := H). now intros n ->. Qed.

Lemma exp_ge0 x : 0 <= exp x.
Proof. destruct x as [x| |]; simpl; [left; apply exp_pos|lra|lra]. Qed.

(** Residue classes of such a bias. *)
Corollary extended_classes (p : nat -> Rbar) q : (1 <= q)%nat ->
  (ex_series (fun n => exp (p n)) <->
   forall r, (r < q)%nat -> ex_series (fun n => exp (p (q * n + r)%nat))).
Proof. intros Hq. apply (residue_classes (fun n => exp (p n)) q Hq). intros n. apply exp_ge0. Qed.
