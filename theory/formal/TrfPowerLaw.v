(** The receptive field of a power law, as eps tends to 0. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Least ReceptiveField.
Open Scope R_scope.

(** [b_n ~ A n^{-r}]: the quotient tends to 1. *)
Definition power_law (b : nat -> R) (A r : R) : Prop :=
  is_lim_seq (fun n => b n / (A * Rpower (INR n) (- r))) 1.

(** ((r - 1) B eps / A)^{-1/(r-1)}. *)
Definition power_field (A r B eps : R) : R := Rpower ((r - 1) * B * eps / A) (- (1 / (r - 1))).

Lemma ln_le_minus_1 u : 0 < u -> ln u <= u - 1.
Proof. intros H. pose proof (exp_ineq1_le (ln u)) as E. rewrite exp_ln in E; lra. Qed.

Lemma Rpower_pos x a : 0 < Rpower x a.
Proof. apply exp_pos. Qed.

(** An antiderivative: (n+1)^{-r} <= g(n) - g(n+1) <= n^{-r} with g(n) = n^{1-r}/(r-1). *)
Definition antiderivative (r x : R) : R := Rpower x (1 - r) / (r - 1).

Lemma antiderivative_step r x : 1 < r -> 0 < x ->
  Rpower (x + 1) (- r) <= antiderivative r x - antiderivative r (x + 1) <= Rpower x (- r).
Proof.
  intros Hr Hx. unfold antiderivative.
  assert (P : forall y, 0 < y -> Rpower y (1 - r) = y * Rpower y (- r)).
  { intros y Hy. unfold Rminus. now rewrite Rpower_plus, Rpower_1. }
  assert (Q : forall y z, 0 < y -> 0 < z ->
    Rpower y (1 - r) * (1 + (1 - r) * (ln z - ln y)) <= Rpower z (1 - r)).
  { intros y z Hy Hz. unfold Rpower.
    replace ((1 - r) * ln z) with ((1 - r) * ln y + (1 - r) * (ln z - ln y)) by ring.
    rewrite exp_plus. apply Rmult_le_compat_l; [left; apply exp_pos|apply exp_ineq1_le]. }
  assert (U : ln (x + 1) - ln x <= 1 / x).
  { rewrite <- ln_div by lra. replace (1 / x) with ((x + 1) / x - 1) by (field; lra).
    apply ln_le_minus_1. apply Rdiv_lt_0_compat; lra. }
  assert (L : 1 / (x + 1) <= ln (x + 1) - ln x).
  { enough (ln x - ln (x + 1) <= - (1 / (x + 1))) by lra.
    rewrite <- ln_div by lra. replace (- (1 / (x + 1))) with (x / (x + 1) - 1) by (field; lra).
    apply ln_le_minus_1. apply Rdiv_lt_0_compat; lra. }
  pose proof (Rpower_pos x (- r)). pose proof (Rpower_pos (x + 1) (- r)).
  replace (Rpower x (1 - r) / (r - 1) - Rpower (x + 1) (1 - r) / (r - 1))
    with ((Rpower x (1 - r) - Rpower (x + 1) (1 - r)) / (r - 1)) by (field; lra).
  pose proof (Q x (x + 1) Hx ltac:(lra)) as Q1. pose proof (Q (x + 1) x ltac:(lra) Hx) as Q2.
  rewrite !P in * by lra. split.
  - apply Rle_div_r; [lra|]. apply Rle_trans with
      ((x + 1) * Rpower (x + 1) (- r) * ((r - 1) * (1 / (x + 1)))); [right; field; lra|].
    apply Rle_trans with ((x + 1) * Rpower (x + 1) (- r) * ((r - 1) * (ln (x + 1) - ln x))); [|lra].
    apply Rmult_le_compat_l; [nra|]. apply Rmult_le_compat_l; lra.
  - apply Rle_div_l; [lra|]. apply Rle_trans with (x * Rpower x (- r) * ((r - 1) * (1 / x)));
      [|right; field; lra].
    apply Rle_trans with (x * Rpower x (- r) * ((r - 1) * (ln (x + 1) - ln x))); [lra|].
    apply Rmult_le_compat_l; [nra|]. apply Rmult_le_compat_l; lra.
Qed.

Lemma antiderivative_lim r : 1 < r -> is_lim_seq (fun n => antiderivative r (INR n)) 0.
Proof.
  intros Hr. unfold antiderivative, Rdiv. replace (Finite 0) with (Rbar_mult 0 (/ (r - 1)))
    by (simpl; f_equal; ring). apply is_lim_seq_scal_r.
  apply (is_lim_comp_seq exp _ m_infty 0); [apply is_lim_exp_m|exists O; discriminate|].
  apply (is_lim_seq_ext (fun n => (1 - r) * ln (INR n))); [reflexivity|].
  replace m_infty with (Rbar_mult (1 - r) p_infty).
  2: { simpl. destruct (Rle_dec 0 (1 - r)); [exfalso; lra|reflexivity]. }
  apply is_lim_seq_scal_l. apply (is_lim_comp_seq ln INR p_infty p_infty).
  - apply is_lim_ln_p.
  - exists O. discriminate.
  - apply is_lim_seq_INR.
Qed.

Section Between.
(** Terms between multiples of n^{-r} from N on: so are their sums, between antiderivatives. *)
Variables (b : nat -> R) (r c C : R) (N : nat).
Hypotheses (Hr : 1 < r) (Hc : 0 <= c) (HC : 0 <= C) (HN : (1 <= N)%nat).
Hypothesis H : forall n, (N <= n)%nat ->
  c * Rpower (INR n) (- r) <= b n <= C * Rpower (INR n) (- r).

Lemma power_between j m : (N < j)%nat ->
  c * (antiderivative r (INR j) - antiderivative r (INR (j + m))) <= between b j (j + m)
  <= C * (antiderivative r (INR (pred j)) - antiderivative r (INR (pred j + m))).
Proof.
  intros Hj. induction m as [|m IH].
  - unfold between. rewrite !Nat.add_0_r, !Rminus_eq_0, !Rmult_0_r. lra.
  - rewrite !Nat.add_succ_r. unfold between in *. simpl partial. specialize (H (j + m)%nat
    ltac:(lia)).
    pose proof (antiderivative_step r (INR (j + m)) Hr (lt_0_INR (j + m) ltac:(lia))) as [_ A1].
    pose proof (antiderivative_step r (INR (pred j + m)) Hr (lt_0_INR (pred j + m) ltac:(lia))) as
      [A2 _].
    rewrite <- S_INR in A1, A2. replace (S (pred j + m)) with (j + m)%nat in A2 |- * by lia.
    apply (Rmult_le_compat_l c) in A1; trivial. apply (Rmult_le_compat_l C) in A2; trivial.
    split; lra.
Qed.

Lemma power_converges : (forall n, 0 <= b n) -> ex_series b.
Proof.
  intros Hb. set (G := C * antiderivative r (INR N)).
  apply (bounded_ex_series b (partial b (S N) + G) Hb). intros n.
  apply Rle_trans with (partial b (S N + n)); [apply partial_mono; trivial; lia|].
  destruct (power_between (S N) n ltac:(lia)) as [_ U]. unfold between in U. simpl pred in U.
  assert (0 <= C * antiderivative r (INR (N + n))); [|unfold G; lra].
  apply Rmult_le_pos; trivial. left. apply Rdiv_lt_0_compat; [apply Rpower_pos|lra].
Qed.

Lemma power_tail j : ex_series b -> (N < j)%nat ->
  c * antiderivative r (INR j) <= tail b j <= C * antiderivative r (INR (pred j)).
Proof.
  intros Hs Hj.
  assert (L : is_lim_seq (fun m => between b j (j + m)%nat) (tail b j)).
  { apply (is_lim_seq_ext (fun m => between b j (m + j)%nat)); [intros; f_equal; lia|].
    apply (is_lim_seq_incr_n (between b j) j).
    apply is_lim_seq_minus'; [|apply is_lim_seq_const]. apply partial_lim. now apply
      Series_correct. }
  assert (LI : forall a k, is_lim_seq
    (fun m => a * (antiderivative r (INR k) - antiderivative r (INR (k + m))))
    (a * antiderivative r (INR k))).
  { intros a k. replace (a * antiderivative r (INR k)) with (a * (antiderivative r (INR k) - 0)) by
    ring.
    apply (is_lim_seq_scal_l _ a (antiderivative r (INR k) - 0)).
    apply is_lim_seq_minus'; [apply is_lim_seq_const|].
    apply (is_lim_seq_ext (fun m => antiderivative r (INR (m + k)))); [intros; do 2 f_equal; lia|].
    apply (is_lim_seq_incr_n (fun n => antiderivative r (INR n)) k). now apply antiderivative_lim. }
  split; eapply (is_lim_seq_le _ _ (Finite _) (Finite _)); try exact L; try apply LI;
    intros m; now apply power_between.
Qed.
End Between.

(** Solving c x^{1-r}/(r-1) < eps B for x, and the same with >=. *)
Lemma power_solve A r B eps c x : 1 < r -> 0 < A -> 0 < B -> 0 < eps -> 0 < c -> 0 < x ->
  (A * Rpower c (r - 1) * antiderivative r x < eps * B <-> c * power_field A r B eps < x).
Proof.
  intros Hr HA HB He Hc Hx. unfold antiderivative, power_field. set (q := (r - 1) * B * eps / A).
  assert (Hq : 0 < q) by (apply Rdiv_lt_0_compat; [repeat apply Rmult_lt_0_compat|]; lra).
  assert (E : A * Rpower c (r - 1) * (Rpower x (1 - r) / (r - 1)) < eps * B <->
              Rpower (c / x) (r - 1) < q).
  { replace (Rpower (c / x) (r - 1)) with (Rpower c (r - 1) * Rpower x (1 - r)).
    2: { unfold Rpower. rewrite ln_div, <- exp_plus by trivial. f_equal. ring. }
    set (p := Rpower c (r - 1) * Rpower x (1 - r)).
    replace (A * Rpower c (r - 1) * (Rpower x (1 - r) / (r - 1))) with (A / (r - 1) * p)
      by (unfold p; field; lra).
    replace (eps * B) with (A / (r - 1) * q) by (unfold q; field; lra).
    assert (0 < A / (r - 1)) by (apply Rdiv_lt_0_compat; lra).
    split; [apply Rmult_lt_reg_l|apply Rmult_lt_compat_l]; trivial. }
  rewrite E. assert (Hcx : 0 < c / x) by now apply Rdiv_lt_0_compat.
  assert (F : Rpower (c / x) (r - 1) < q <-> ln c - ln x < ln q / (r - 1)).
  { rewrite <- ln_div by trivial. unfold Rpower. rewrite <- (exp_ln q Hq) at 1. split; intros H.
    - apply exp_lt_inv in H. apply Rlt_div_r; lra.
    - apply exp_increasing. apply Rlt_div_r in H; lra. }
  assert (G : c * Rpower q (- (1 / (r - 1))) < x <-> ln c - ln q / (r - 1) < ln x).
  { rewrite <- (exp_ln c Hc), <- (exp_ln x Hx) at 1. unfold Rpower. rewrite <- exp_plus.
    replace (ln c + - (1 / (r - 1)) * ln q) with (ln c - ln q / (r - 1)) by (field; lra).
    split; [apply exp_lt_inv|apply exp_increasing]. }
  rewrite F, G. lra.
Qed.

Lemma power_field_large A r B M : 1 < r -> 0 < A -> 0 < B ->
  exists e, 0 < e /\ forall eps, 0 < eps <= e -> M < power_field A r B eps.
Proof.
  intros Hr HA HB. set (x := Rmax M 1 + 1). assert (Hx : 0 < x /\ M < x).
  { unfold x. pose proof (Rmax_l M 1). pose proof (Rmax_r M 1). lra. }
  set (e := A * antiderivative r x / B). exists e. assert (He : 0 < e).
  { apply Rdiv_lt_0_compat; trivial. apply Rmult_lt_0_compat; trivial.
    apply Rdiv_lt_0_compat; [apply Rpower_pos|lra]. }
  split; trivial. intros eps [H0 H1]. apply Rlt_le_trans with x; [lra|]. apply Rnot_lt_le. intros H.
  rewrite <- (Rmult_1_l (power_field _ _ _ _)) in H.
  apply (power_solve A r B eps 1 x) in H; try lra.
  replace (Rpower 1 (r - 1)) with 1 in H by (unfold Rpower; rewrite ln_1, Rmult_0_r, exp_0;
    reflexivity). apply (Rmult_le_compat_r B) in H1; [|lra].
  unfold e in H1. replace (A * antiderivative r x / B * B) with (A * antiderivative r x) in H1
    by (field; lra). lra.
Qed.

(** TRF(eps) ~ ((r - 1) B eps/A)^{-1/(r-1)} as eps tends to 0, for b_n ~ A n^{-r} with r > 1. *)
Theorem trf_power_law b A r : weights b -> 0 < A -> 1 < r -> power_law b A r ->
  forall d, 0 < d < 1 -> exists e, 0 < e /\ forall eps t, 0 < eps <= e ->
    is_least (trf b eps) t -> 1 - d <= INR t / power_field A r (Series b) eps <= 1 + d.
Proof.
  intros Hb HA Hr L d Hd.
  (* the terms are between (1 - h) A n^{-r} and (1 + h) A n^{-r}, 1 - h and 1 + h as powers *)
  set (low := Rpower (1 - d) (r - 1)). set (high := Rpower (1 + d / 2) (r - 1)).
  assert (Hlow : 0 < low < 1).
  { split; [apply Rpower_pos|]. apply Rlt_le_trans with (exp 0); [|rewrite exp_0; lra].
    assert (ln (1 - d) < ln 1) by (apply ln_increasing; lra). rewrite ln_1 in H.
    apply exp_increasing. nra. }
  assert (Hhigh : 1 < high).
  { apply Rle_lt_trans with (exp 0); [rewrite exp_0; lra|].
    assert (ln 1 < ln (1 + d / 2)) by (apply ln_increasing; lra). rewrite ln_1 in H.
    apply exp_increasing. nra. }
  assert (Bounds : exists N, (1 <= N)%nat /\ forall n, (N <= n)%nat ->
    A * low * Rpower (INR n) (- r) <= b n <= A * high * Rpower (INR n) (- r)).
  { apply is_lim_seq_spec in L. set (h := Rmin (1 - low) (high - 1)).
    assert (Hh : 0 < h) by (apply Rmin_pos; lra).
    destruct (L (mkposreal h Hh)) as [N HN]. exists (S N). split; [lia|]. intros n Hn.
    specialize (HN n ltac:(lia)). simpl in HN. apply Rabs_def2 in HN.
    pose proof (Rmin_l (1 - low) (high - 1)). pose proof (Rmin_r (1 - low) (high - 1)).
    assert (P : 0 < A * Rpower (INR n) (- r)) by (apply Rmult_lt_0_compat; trivial; apply
      Rpower_pos).
    set (m := A * Rpower (INR n) (- r)) in *. replace (b n) with (b n / m * m) by (field; lra).
    replace (A * low * Rpower (INR n) (- r)) with (low * m) by (unfold m; ring).
    replace (A * high * Rpower (INR n) (- r)) with (high * m) by (unfold m; ring).
    fold h in H, H0. split; apply Rmult_le_compat_r; lra. }
  destruct Bounds as (N & HN & Bounds).
  assert (Hl : 0 <= A * low) by nra. assert (Hu : 0 <= A * high) by nra.
  assert (Hs : ex_series b) by (apply (power_converges b r _ _ N Hr Hl Hu HN Bounds); apply Hb).
  pose proof (series_pos b Hb Hs) as HB.
  pose proof (fun j => power_tail b r _ _ N Hr Hl Hu HN Bounds j Hs) as Tail.
  (* eps so small that t is beyond N + 2 and that 2 tokens are less than d/2 of the field *)
  destruct (power_field_large A r (Series b) (4 / d) Hr HA HB) as (e1 & He1 & Large).
  assert (HT : 0 < tail b (S (S N))).
  { apply Rlt_le_trans with (2 := proj1 (Tail (S (S N)) ltac:(lia))).
    repeat apply Rmult_lt_0_compat; try lra; [apply Rpower_pos|apply Rinv_0_lt_compat; lra]. }
  exists (Rmin e1 (tail b (S (S N)) / Series b)).
  split; [apply Rmin_pos; trivial; now apply Rdiv_lt_0_compat|].
  intros eps t [He He'] [Ht Hleast].
  specialize (Large eps ltac:(pose proof (Rmin_l e1 (tail b (S (S N)) / Series b)); lra)).
  set (F := power_field A r (Series b) eps) in *.
  assert (HF : 0 < F) by apply Rpower_pos.
  assert (H4 : 2 <= d / 2 * F).
  { apply Rlt_div_l in Large; lra. }
  assert (Heps : eps * Series b <= tail b (S (S N))).
  { apply Rle_div_r; trivial. pose proof (Rmin_r e1 (tail b (S (S N)) / Series b)). lra. }
  assert (Hbig : (S (S N) < t)%nat).
  { destruct (le_lt_dec t (S (S N))) as [Hle|]; trivial. exfalso.
    pose proof (tail_mono b t (S (S N)) (proj1 Hb) Hle). unfold trf in Ht. lra. }
  assert (It : 0 < INR t) by (apply lt_0_INR; lia). split.
  - apply Rle_div_r; trivial. left. apply (power_solve A r (Series b) eps); trivial; [lra|].
    fold low. apply Rle_lt_trans with (2 := Ht). apply Tail. lia.
  - apply Rle_div_l; trivial.
    assert (It2 : INR (pred (pred t)) <= (1 + d / 2) * F).
    { apply Rnot_lt_le. intros H. apply (power_solve A r (Series b) eps) in H; trivial;
        [|lra|apply lt_0_INR; lia].
      fold high in H. destruct (Tail (pred t) ltac:(lia)) as [_ U].
      assert (trf b eps (pred t)) by (unfold trf; lra). specialize (Hleast _ H0). lia. }
    replace t with (S (S (pred (pred t)))) by lia. rewrite !S_INR. lra.
Qed.
