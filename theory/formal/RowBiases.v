(** Biases that belong to the row, or depend on the input: when windows work. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Attention WindowError.
Open Scope R_scope.

Section Rows.
Context {E : NormedModule R_AbsRing} {row : Type}.

(** A family of rows: the row [r] has [size r] keys, exp-series terms [b r n] = e^{p_r(n)} and
    content logits within [-beta r, beta r]. *)
Variables (size : row -> nat) (b : row -> nat -> R) (beta : row -> R).

(** For every budget some width, and every larger one, is enough for all rows and all inputs. *)
Definition rows_windowable (V : R) : Prop :=
  forall eps, 0 < eps -> exists J, (1 <= J)%nat /\ forall j r x (v : nat -> E),
    (J <= j < size r)%nat -> bounded (beta r) x (size r) -> vbounded V v (size r) ->
    delta (b r) x v (size r) j <= eps.

(** Such a family is windowable exactly if sup over rows longer than j of e^{2 beta} T(j)/B(j)
    tends to 0 as j grows. *)
Theorem row_biases V (u : E) : norm u = 1 -> 0 < V ->
  (forall r, weights (b r)) -> (forall r, 0 <= beta r) ->
  (rows_windowable V <->
   forall eps, 0 < eps -> exists J, (1 <= J)%nat /\ forall j r, (J <= j < size r)%nat ->
     exp (2 * beta r) * between (b r) j (size r) / partial (b r) j <= eps).
Proof.
  intros Hu HV Hb Hbeta. split; intros H eps He.
  - set (eta := 2 * V * eps / (1 + eps)).
    assert (Heta : 0 < eta < 2 * V).
    { split; [apply Rdiv_lt_0_compat; nra|]. apply Rlt_div_l; nra. }
    destruct (H eta ltac:(lra)) as [J [HJ H']]. exists J. split; trivial. intros j r Hj.
    replace eps with (eta / (2 * V - eta)) by (unfold eta; field; nra).
    apply (window_bound_le V); [apply between_ge0; [apply Hb|lia]|apply partial_pos; trivial;
      lia|lra|].
    rewrite <- (window_error_attained (b r) V (beta r) u); trivial; [|lia|lra].
    apply H'; trivial; [now apply worst_logit_bounded|apply opposite_bounded; trivial; lra].
  - set (eta := Rmin eps V).
    assert (Heta : 0 < eta < 2 * V /\ eta <= eps).
    { unfold eta. pose proof (Rmin_l eps V). pose proof (Rmin_r eps V). pose proof (Rmin_pos eps
      V). lra. }
    destruct (H (eta / (2 * V - eta))) as [J [HJ H']]; [apply Rdiv_lt_0_compat; lra|].
    exists J. split; trivial. intros j r x v Hj Hx Hv. apply Rle_trans with eta; [|lra].
    eapply Rle_trans.
    + apply (window_error (b r) x v V (2 * beta r)); trivial; [lia|now apply bounded_range].
    + apply window_bound_le; [apply between_ge0; [apply Hb|lia]|apply partial_pos; trivial;
      lia|lra|].
      now apply H'.
Qed.
End Rows.
