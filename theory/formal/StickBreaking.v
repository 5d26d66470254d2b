(** Stick breaking: windows work whatever the bias.

    Keys are counted from the nearest one attended.  The key at place n takes the share
    sigmoid(l_n) of what the nearer ones left of a stick of length 1. *)
From Coq Require Import Reals Lra Lia Psatz Arith Classical.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Attention GatedDecay.
Open Scope R_scope.

(** What is left after n keys. *)
Fixpoint stick (l : nat -> R) (n : nat) : R :=
  match n with O => 1 | S m => stick l m * (1 - sigmoid (l m)) end.

(** The weight of the key at place n. *)
Definition share (l : nat -> R) (n : nat) : R := sigmoid (l n) * stick l n.

Lemma sigmoid_range z : 0 < sigmoid z < 1.
Proof.
  unfold sigmoid. pose proof (exp_pos (- z)). split; [apply Rinv_0_lt_compat; lra|].
  rewrite <- Rinv_1 at 2. apply Rinv_lt_contravar; lra.
Qed.

Lemma sigmoid_opp z : 1 - sigmoid z = sigmoid (- z).
Proof.
  unfold sigmoid. rewrite Ropp_involutive, exp_Ropp. pose proof (exp_pos z). field. split; lra.
Qed.

Lemma sigmoid_mono y z : y <= z -> sigmoid y <= sigmoid z.
Proof. intros H. now destruct (sigmoid_gate y z H) as [[_ L] _]. Qed.

Lemma sigmoid_le_exp z : sigmoid z <= exp z.
Proof.
  unfold sigmoid. rewrite exp_Ropp. pose proof (exp_pos z) as P.
  replace (exp z) with (/ / exp z) at 2 by (field; lra).
  pose proof (Rinv_0_lt_compat _ P). apply Rinv_le_contravar; lra.
Qed.

Lemma stick_range l n : 0 < stick l n <= 1.
Proof.
  induction n as [|n IH]; simpl; [lra|]. pose proof (sigmoid_range (l n)). nra.
Qed.

Lemma share_ge0 l n : 0 <= share l n.
Proof.
  unfold share. pose proof (sigmoid_range (l n)). pose proof (stick_range l n). nra.
Qed.

(** Weights beyond j: what is left after j less what is left after i. *)
Lemma share_between l j i : between (share l) j i = stick l j - stick l i.
Proof.
  assert (H : forall n, partial (share l) n = 1 - stick l n).
  { induction n as [|n IH]; simpl; [ring|]. rewrite IH. unfold share. ring. }
  unfold between. rewrite !H. ring.
Qed.

(** Logits of at least -beta use up the stick: after j keys sigmoid(beta)^j is left at most. *)
Lemma stick_le l beta j : (forall n, (n < j)%nat -> - beta <= l n) -> stick l j <= sigmoid beta ^ j.
Proof.
  induction j as [|j IH]; intros H; simpl; [lra|]. rewrite Rmult_comm.
  apply Rmult_le_compat.
  - pose proof (sigmoid_range (l j)). lra.
  - left. apply stick_range.
  - rewrite sigmoid_opp. apply sigmoid_mono. specialize (H j ltac:(lia)). lra.
  - apply IH. intros n Hn. apply H. lia.
Qed.

(** Logits of at most beta leave the share sigmoid(-beta)^{i-j} of it or more. *)
Lemma stick_ge l beta j i : (j <= i)%nat -> (forall n, (j <= n < i)%nat -> l n <= beta) ->
  stick l j * sigmoid (- beta) ^ (i - j) <= stick l i.
Proof.
  intros Hji H. induction Hji as [|i Hji IH]; [rewrite Nat.sub_diag; simpl; lra|].
  replace (S i - j)%nat with (S (i - j)) by lia. simpl.
  specialize (IH ltac:(intros n Hn; apply H; lia)).
  pose proof (sigmoid_range (- beta)). pose proof (stick_range l j).
  assert (P : 0 < sigmoid (- beta) ^ (i - j)) by (apply pow_lt; lra).
  rewrite sigmoid_opp. assert (L : sigmoid (- beta) <= sigmoid (- l i)).
  { apply sigmoid_mono. specialize (H i ltac:(lia)). lra. }
  apply Rle_trans with (stick l j * sigmoid (- beta) ^ (i - j) * sigmoid (- beta)); [right; ring|].
  apply Rmult_le_compat; trivial; nra.
Qed.

Section Values.
Context {E : NormedModule R_AbsRing}.

(** The output of i attended keys, and its error when only the j nearest are kept: no kept weight
    changes.  What remains of the stick goes to the value [own]; [zero] where it goes to nothing. *)
Definition stick_output (l : nat -> R) (v : nat -> E) (own : E) (i : nat) : E :=
  plus (vsum (fun n => scal (share l n) (v n)) i) (scal (stick l i) own).
Definition stick_error (l : nat -> R) (v : nat -> E) (own : E) (i j : nat) : R :=
  norm (minus (stick_output l v own i) (stick_output l v own j)).

Lemma stick_output_step l (v : nat -> E) own i :
  stick_output l v own (S i)
  = plus (stick_output l v own i) (scal (share l i) (minus (v i) own)).
Proof.
  unfold stick_output. simpl.
  replace (stick l i * (1 - sigmoid (l i))) with (stick l i - share l i) by (unfold share; ring).
  rewrite <- line_minus, scal_minus. unfold minus. rewrite <- !plus_assoc.
  f_equal. rewrite !plus_assoc. f_equal. apply plus_comm.
Qed.

Lemma stick_output_minus l (v : nat -> E) own j m :
  minus (stick_output l v own (j + m)) (stick_output l v own j)
  = vsum (fun k => scal (share l (j + k)) (minus (v (j + k)%nat) own)) m.
Proof.
  induction m as [|m IH]; simpl; [rewrite Nat.add_0_r; apply minus_eq_zero|].
  rewrite Nat.add_succ_r, stick_output_step, <- IH. unfold minus at 1 3. rewrite <- !plus_assoc.
  f_equal. apply plus_comm.
Qed.

(** Values of norm at most V, the own value at most W. *)
Lemma stick_error_shares l (v : nat -> E) own V W i j : (j <= i)%nat -> vbounded V v i ->
  norm own <= W -> stick_error l v own i j <= (V + W) * (stick l j - stick l i).
Proof.
  intros Hji Hv Hw. unfold stick_error. replace i with (j + (i - j))%nat at 1 by lia.
  rewrite stick_output_minus, <- share_between, between_shift by trivial.
  apply (vsum_norm (V + W) (fun k => share l (j + k)) (fun k => minus (v (j + k)%nat) own)).
  - intros k. apply share_ge0.
  - intros k Hk. eapply Rle_trans; [apply norm_triangle|]. rewrite norm_opp.
    specialize (Hv (j + k)%nat ltac:(lia)). lra.
Qed.

(** Values along a unit vector, the own value opposite. *)
Lemma stick_error_line l (u : E) V W i j : norm u = 1 -> (j <= i)%nat -> 0 <= V -> 0 <= W ->
  stick_error l (fun _ => scal V u) (scal (- W) u) i j = (V + W) * (stick l j - stick l i).
Proof.
  intros Hu Hji HV HW. unfold stick_error. replace i with (j + (i - j))%nat at 1 by lia.
  rewrite stick_output_minus, (vsum_ext _ (fun k => scal (share l (j + k)) (scal (V - - W : R) u)))
    by (intros k _; apply f_equal, line_minus).
  rewrite vsum_line, norm_scal_R, Hu, <- share_between, Rmult_1_r.
  rewrite between_shift, <- partial_scal by trivial.
  rewrite (partial_ext (fun k => share l (j + k) * (V - - W))
    (fun k => (V + W) * share l (j + k))) by (intros; ring).
  apply Rabs_pos_eq, partial_ge0. intros k _. apply Rmult_le_pos; [lra|apply share_ge0].
Qed.

(** For logits within [-beta, beta] and values within V the error of a window of j keys is at most
    V sigmoid(beta)^j (1 - sigmoid(-beta)^{i-j}); with an own value (W = V), twice that. *)
Theorem stick_window_error l (v : nat -> E) own beta V W i j : (j <= i)%nat -> 0 <= V ->
  bounded beta l i -> vbounded V v i -> norm own <= W ->
  stick_error l v own i j <= (V + W) * (sigmoid beta ^ j * (1 - sigmoid (- beta) ^ (i - j))).
Proof.
  intros Hji HV Hl Hv Hw. eapply Rle_trans; [now apply (stick_error_shares l v own V W)|].
  assert (HW : 0 <= W) by (apply Rle_trans with (2 := Hw); apply norm_ge_0).
  assert (B : forall n, (n < i)%nat -> - beta <= l n <= beta).
  { intros n Hn. specialize (Hl n Hn). apply Rabs_le_between in Hl. lra. }
  apply Rmult_le_compat_l; [lra|].
  pose proof (stick_le l beta j ltac:(intros n Hn; apply B; lia)) as U.
  pose proof (stick_ge l beta j i Hji ltac:(intros n Hn; apply B; lia)) as L.
  assert (P : 0 <= 1 - sigmoid (- beta) ^ (i - j)).
  { pose proof (sigmoid_range (- beta)). rewrite <- (pow1 (i - j)) at 1.
    assert (sigmoid (- beta) ^ (i - j) <= 1 ^ (i - j)) by (apply pow_incr; lra). lra. }
  apply Rle_trans with (stick l j * (1 - sigmoid (- beta) ^ (i - j))); [lra|].
  now apply Rmult_le_compat_r.
Qed.

(** The lower bound of the logits inside the window is enough for a bound of every row. *)
Theorem stick_lower_bound l (v : nat -> E) own beta V W i j : (j <= i)%nat -> 0 <= V ->
  (forall n, (n < j)%nat -> - beta <= l n) -> vbounded V v i -> norm own <= W ->
  stick_error l v own i j <= (V + W) * sigmoid beta ^ j.
Proof.
  intros Hji HV Hl Hv Hw. eapply Rle_trans; [now apply (stick_error_shares l v own V W)|].
  assert (HW : 0 <= W) by (apply Rle_trans with (2 := Hw); apply norm_ge_0).
  pose proof (stick_le l beta j Hl). pose proof (stick_range l i). apply Rmult_le_compat_l; lra.
Qed.

(** Attained: logits -beta inside the window and +beta outside. *)
Theorem stick_window_error_attained (u : E) beta V W i j : norm u = 1 -> (j <= i)%nat -> 0 <= V ->
  0 <= W ->
  stick_error (fun n => if window j n then - beta else beta) (fun _ => scal V u) (scal (- W) u) i j
  = (V + W) * (sigmoid beta ^ j * (1 - sigmoid (- beta) ^ (i - j))).
Proof.
  intros Hu Hji HV HW. rewrite stick_error_line by trivial. f_equal.
  set (l := fun n => if window j n then - beta else beta).
  assert (I : forall n, (n <= j)%nat -> stick l n = sigmoid beta ^ n).
  { induction n as [|n IH]; intros Hn; [reflexivity|]. simpl. rewrite IH by lia.
    rewrite sigmoid_opp. unfold l at 1, window. rewrite (proj2 (Nat.ltb_lt n j)) by lia.
    rewrite Ropp_involutive. ring. }
  assert (O : forall m, stick l (j + m) = sigmoid beta ^ j * sigmoid (- beta) ^ m).
  { induction m as [|m IH]; [rewrite Nat.add_0_r, I by lia; simpl; ring|].
    rewrite Nat.add_succ_r. simpl. rewrite IH, sigmoid_opp. unfold l, window.
    rewrite (proj2 (Nat.ltb_ge (j + m) j)) by lia. ring. }
  rewrite (I j (le_n j)). replace i with (j + (i - j))%nat at 1 by lia. rewrite O. ring.
Qed.

(** The error stays within eta for rows of every length exactly if
    j >= log(V/eta)/log(1 + e^{-beta}): about e^beta log(V/eta) keys. *)
Theorem stick_window beta V eta j : 0 < V -> 0 < eta ->
  ((forall i, (j <= i)%nat -> V * (sigmoid beta ^ j * (1 - sigmoid (- beta) ^ (i - j))) <= eta) <->
   ln (V / eta) / ln (1 + exp (- beta)) <= INR j).
Proof.
  intros HV He. pose proof (sigmoid_range beta) as S1. pose proof (sigmoid_range (- beta)) as S2.
  assert (P : 0 < sigmoid beta ^ j) by (apply pow_lt; lra).
  transitivity (V * sigmoid beta ^ j <= eta).
  - split; intros H.
    + apply (is_lim_seq_le (fun m => V * (sigmoid beta ^ j * (1 - sigmoid (- beta) ^ m)))
        (fun _ => eta) (V * sigmoid beta ^ j) eta).
      * intros m. specialize (H (j + m)%nat ltac:(lia)). now replace (j + m - j)%nat with m in H by
        lia.
      * replace (V * sigmoid beta ^ j) with (V * (sigmoid beta ^ j * (1 - 0))) by ring.
        apply (is_lim_seq_scal_l _ V (sigmoid beta ^ j * (1 - 0))).
        apply (is_lim_seq_scal_l _ (sigmoid beta ^ j) (1 - 0)).
        apply is_lim_seq_minus'; [apply is_lim_seq_const|]. apply is_lim_seq_geom.
        rewrite Rabs_pos_eq; lra.
      * apply is_lim_seq_const.
    + intros i Hi. apply Rle_trans with (2 := H). apply Rmult_le_compat_l; [lra|].
      rewrite <- (Rmult_1_r (sigmoid beta ^ j)) at 2. apply Rmult_le_compat_l; [lra|].
      assert (0 <= sigmoid (- beta) ^ (i - j)) by (apply pow_le; lra). lra.
  - pose proof (exp_pos (- beta)) as Pe.
    assert (L : 0 < ln (1 + exp (- beta))) by (rewrite <- ln_1; apply ln_increasing; lra).
    assert (E1 : ln (sigmoid beta ^ j) = - (INR j * ln (1 + exp (- beta)))).
    { rewrite <- Rpower_pow by apply S1. unfold Rpower. rewrite ln_exp. unfold sigmoid.
      rewrite ln_Rinv by lra. ring. }
    rewrite Rle_div_l, ln_div by trivial. split; intros H.
    + apply ln_le in H; [|now apply Rmult_lt_0_compat]. rewrite ln_mult, E1 in H by trivial. lra.
    + rewrite <- (exp_ln eta He), <- (exp_ln (V * sigmoid beta ^ j)) by now apply Rmult_lt_0_compat.
      apply exp_le. rewrite ln_mult, E1 by trivial. lra.
Qed.

(** ** Content in [-beta, beta] on top of a bias p: every bias is windowable *)

(** What is left after j keys is at most 1/(1 + e^{-beta} B_j) ... *)
Lemma stick_bias_inside x p beta j : bounded beta x j ->
  stick (fun n => x n + p n) j <= / (1 + exp (- beta) * partial (fun n => exp (p n)) j).
Proof.
  intros Hx. induction j as [|j IH]; [simpl; rewrite Rmult_0_r, Rplus_0_r, Rinv_1; lra|].
  specialize (IH ltac:(intros n Hn; apply Hx; lia)). simpl.
  set (B := partial (fun n => exp (p n)) j) in *. set (c := exp (- beta)) in *.
  assert (Hc : 0 < c) by apply exp_pos. pose proof (exp_pos (p j)) as Pp.
  assert (HB : 0 <= B) by (apply partial_ge0; intros; left; apply exp_pos).
  assert (S : 1 - sigmoid (x j + p j) <= / (1 + c * exp (p j))).
  { rewrite sigmoid_opp. unfold sigmoid. rewrite Ropp_involutive. apply Rinv_le_contravar; [nra|].
    assert (c * exp (p j) <= exp (x j + p j)); [|lra]. unfold c. rewrite <- exp_plus. apply exp_le.
    specialize (Hx j ltac:(lia)). apply Rabs_le_between in Hx. lra. }
  pose proof (stick_range (fun n => x n + p n) j). pose proof (sigmoid_range (x j + p j)).
  apply Rle_trans with (/ (1 + c * B) * / (1 + c * exp (p j))).
  - apply Rmult_le_compat; lra.
  - assert (0 <= c * B) by (apply Rmult_le_pos; lra).
    assert (0 < c * exp (p j)) by now apply Rmult_lt_0_compat.
    assert (0 <= c * B * (c * exp (p j))) by (apply Rmult_le_pos; lra).
    rewrite <- Rinv_mult. apply Rinv_le_contravar; lra.
Qed.

(** ... and the keys beyond weigh at most e^beta (B_i - B_j). *)
Lemma stick_bias_outside x p beta i j : (j <= i)%nat -> bounded beta x i ->
  between (share (fun n => x n + p n)) j i <= exp beta * between (fun n => exp (p n)) j i.
Proof.
  intros Hji Hx. rewrite !between_shift, <- partial_scal by trivial. apply partial_le. intros k Hk.
  unfold share. pose proof (stick_range (fun n => x n + p n) (j + k)) as R.
  pose proof (sigmoid_range (x (j + k)%nat + p (j + k)%nat)) as S.
  apply Rle_trans with (sigmoid (x (j + k)%nat + p (j + k)%nat)); [nra|].
  eapply Rle_trans; [apply sigmoid_le_exp|]. rewrite <- exp_plus. apply exp_le.
  specialize (Hx (j + k)%nat ltac:(lia)). apply Rabs_le_between in Hx. lra.
Qed.

(** So the error is at most V min(1/(1 + e^{-beta} B_j), e^beta (B_i - B_j)). *)
Theorem stick_bias_error x p beta (v : nat -> E) own V W i j : (j <= i)%nat -> 0 <= V ->
  bounded beta x i -> vbounded V v i -> norm own <= W ->
  let b := fun n => exp (p n) in
  stick_error (fun n => x n + p n) v own i j
  <= (V + W) * Rmin (/ (1 + exp (- beta) * partial b j)) (exp beta * between b j i).
Proof.
  intros Hji HV Hx Hv Hw b. eapply Rle_trans; [now apply (stick_error_shares _ v own V W)|].
  assert (HW : 0 <= W) by (apply Rle_trans with (2 := Hw); apply norm_ge_0).
  apply Rmult_le_compat_l; [lra|]. apply Rmin_glb.
  - pose proof (stick_bias_inside x p beta j ltac:(intros n Hn; apply Hx; lia)).
    pose proof (stick_range (fun n => x n + p n) i). unfold b. lra.
  - rewrite <- share_between. now apply stick_bias_outside.
Qed.

(** So windows work for every bias: a divergent series uses up the stick, a convergent one has a
    light tail. *)
Theorem stick_windowable p beta V W : 0 <= V -> 0 <= W ->
  forall eps, 0 < eps -> exists J, forall j i x (v : nat -> E) own, (J <= j <= i)%nat ->
    bounded beta x i -> vbounded V v i -> norm own <= W ->
    stick_error (fun n => x n + p n) v own i j <= eps.
Proof.
  intros HV HW eps He. set (b := fun n => exp (p n)).
  assert (Hb : forall n, 0 <= b n) by (intros n; left; apply exp_pos).
  set (K := V + W + 1). assert (HK : 0 < K) by (unfold K; lra).
  assert (Hd : 0 < eps / K) by now apply Rdiv_lt_0_compat.
  assert (Suffices : forall m, 0 <= m <= eps / K -> (V + W) * m <= eps).
  { intros m Hm. apply Rle_trans with (K * (eps / K)); [|right; field; lra].
    apply Rmult_le_compat; [lra|lra|unfold K; lra|lra]. }
  assert (G : forall j i x (v : nat -> E) own, (j <= i)%nat -> bounded beta x i -> vbounded V v i ->
    norm own <= W ->
    / (1 + exp (- beta) * partial b j) <= eps / K \/ exp beta * between b j i <= eps / K ->
    stick_error (fun n => x n + p n) v own i j <= eps).
  { intros j i x v own Hji Hx Hv Hw H. eapply Rle_trans; [now apply (stick_bias_error x p beta v
    own V W)|].
    apply Suffices. fold b.
    assert (0 <= partial b j) by (apply partial_ge0; auto). pose proof (exp_pos (- beta)).
    assert (0 < / (1 + exp (- beta) * partial b j)) by (apply Rinv_0_lt_compat; nra).
    assert (0 <= exp beta * between b j i).
    { apply Rmult_le_pos; [left; apply exp_pos|now apply between_ge0]. }
    split; [apply Rmin_glb; lra|].
    destruct H as [H|H]; (eapply Rle_trans; [|exact H]); [apply Rmin_l|apply Rmin_r]. }
  destruct (classic (ex_series b)) as [Hs|Hs].
  - assert (H1 : 0 < eps / K / exp beta) by (apply Rdiv_lt_0_compat; trivial; apply exp_pos).
    destruct (tail_small b _ Hs H1) as [J HJ]. exists J. intros j i x v own Hj Hx Hv Hw.
    apply G; trivial; [lia|]. right. specialize (HJ j ltac:(lia)).
    pose proof (between_le_tail b j i Hb Hs). pose proof (exp_pos beta).
    replace (eps / K) with (exp beta * (eps / K / exp beta)) by (field; lra).
    apply Rmult_le_compat_l; lra.
  - destruct (divergent_unbounded b Hb Hs (K / eps * exp beta)) as [J HJ].
    exists J. intros j i x v own Hj Hx Hv Hw. apply G; trivial; [lia|]. left.
    specialize (HJ j ltac:(lia)).
    assert (H1 : K / eps <= 1 + exp (- beta) * partial b j).
    { pose proof (exp_pos (- beta)) as P. apply (Rmult_lt_compat_l (exp (- beta))) in HJ; trivial.
      replace (exp (- beta) * (K / eps * exp beta)) with (exp (- beta) * exp beta * (K / eps)) in
        HJ by ring.
      rewrite <- exp_plus, Rplus_opp_l, exp_0 in HJ. lra. }
    assert (H2 : 0 < K / eps) by now apply Rdiv_lt_0_compat.
    apply Rinv_le_contravar in H1; trivial. eapply Rle_trans; [exact H1|]. right. field. split; lra.
Qed.
End Values.
