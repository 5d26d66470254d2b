(** The decision ladder: the first rung whose limit is not 1 decides. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Rules IteratedLogarithms.
Open Scope R_scope.

(** rho_0 = -p, and rho_k = rho_{k-1} - l_k. *)
Definition rho (p : nat -> R) (k n : nat) : R := - p n - lsum k (INR n).

(** Rung k + 1: the limit c of rho_k/l_{k+1} exceeds 1 (c = +oo included): converges. *)
Theorem rung_converges p k c :
  is_lim_seq (fun n => rho p k n / lg (S k) (INR n)) c -> Rbar_lt 1 c -> converges p.
Proof.
  intros L Hc.
  assert (H : exists d, 0 < d /\ eventually (fun n => 1 + d < rho p k n / lg (S k) (INR n))).
  { apply is_lim_seq_spec in L. destruct c as [c| |]; simpl in Hc, L; [| |contradiction].
    - exists ((c - 1) / 2). split; [lra|]. assert (He : 0 < (c - 1) / 2) by lra.
      apply filter_imp with (2 := L (mkposreal _ He)). intros n Hn. simpl in *.
      apply Rabs_def2 in Hn. lra.
    - exists 1. split; [lra|]. apply L. }
  destruct H as (d & Hd & H). apply upper_bound with (2 := base_converges k d Hd) (C := 0).
  apply filter_imp with (2 := filter_and _ _ H (eventually_lg (S k) 0)).
  intros n [Hn P]. apply (proj2 (Rlt_div_r _ _ _ P)) in Hn. unfold rho in Hn. lra.
Qed.

(** Rung k + 1: that limit is below 1 (0, negative, -oo included): diverges. *)
Theorem rung_diverges p k c :
  is_lim_seq (fun n => rho p k n / lg (S k) (INR n)) c -> Rbar_lt c 1 -> ~ converges p.
Proof.
  intros L Hc. assert (H : eventually (fun n => rho p k n / lg (S k) (INR n) < 1)).
  { apply is_lim_seq_spec in L. destruct c as [c| |]; simpl in Hc, L; [|contradiction|apply L].
    assert (He : 0 < 1 - c) by lra. apply filter_imp with (2 := L (mkposreal _ He)).
    intros n Hn. simpl in *. apply Rabs_def2 in Hn. lra. }
  apply lower_bound with (2 := base_diverges (S k)) (C := 0).
  apply filter_imp with (2 := filter_and _ _ H (eventually_lg (S k) 0)).
  intros n [Hn P]. apply (proj1 (Rlt_div_l _ _ _ P)) in Hn. unfold rho in Hn. simpl in *. lra.
Qed.
