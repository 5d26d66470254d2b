(** The leak: the share of a row's prior mass beyond the training length. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums.
Open Scope R_scope.

Definition leak (b : nat -> R) (m n : nat) : R := 1 - partial b m / partial b n.

(** It tends to T_m/B as the row grows, if sum b_n converges ... *)
Theorem leak_convergent b m : weights b -> ex_series b ->
  is_lim_seq (leak b m) (tail b m / Series b).
Proof.
  intros Hb Hs. pose proof (series_pos b Hb Hs).
  replace (tail b m / Series b) with (1 - partial b m / Series b) by (unfold tail; field; lra).
  apply is_lim_seq_minus'; [apply is_lim_seq_const|].
  apply is_lim_seq_div'; [apply is_lim_seq_const| |lra].
  apply partial_lim. now apply Series_correct.
Qed.

(** ... and to 1 if it diverges. *)
Theorem leak_divergent b m : weights b -> ~ ex_series b -> is_lim_seq (leak b m) 1.
Proof.
  intros Hb Hd. replace (Finite 1) with (Rbar_minus 1 0) by (simpl; f_equal; ring).
  apply is_lim_seq_minus'; [apply is_lim_seq_const|].
  apply (is_lim_seq_div _ _ (partial b m) p_infty).
  - apply is_lim_seq_const.
  - apply is_lim_seq_spec. intros M.
    destruct (divergent_unbounded b (proj1 Hb) Hd M) as [N HN]. now exists N.
  - discriminate.
  - unfold is_Rbar_div, is_Rbar_mult. simpl. now rewrite Rmult_0_r.
Qed.
