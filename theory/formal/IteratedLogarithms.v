(** Iterated logarithms and the comparison series of the ladder. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Rules.
Open Scope R_scope.

(** lg 0 x = x and lg (k+1) x = ln (lg k x): l_k = log_k n is [lg k (INR n)]. *)
Fixpoint lg (k : nat) (x : R) : R := match k with O => x | S m => ln (lg m x) end.

(** l_1 + ... + l_k. *)
Fixpoint lsum (k : nat) (x : R) : R := match k with O => 0 | S m => lsum m x + lg (S m) x end.

(** x l_1 ... l_{k-1}. *)
Fixpoint lprod (k : nat) (x : R) : R := match k with O => 1 | S m => lprod m x * lg m x end.

(** ** They grow without bound *)
Lemma lg_large k M : exists X, forall x, X <= x -> M < lg k x.
Proof.
  revert M. induction k as [|k IH]; intros M; simpl.
  - exists (M + 1). intros; lra.
  - destruct (IH (exp M)) as [X HX]. exists X. intros x Hx. specialize (HX x Hx).
    rewrite <- (ln_exp M). apply ln_increasing; trivial. apply exp_pos.
Qed.

Lemma eventually_lg k M : eventually (fun n => M < lg k (INR n)).
Proof.
  destruct (lg_large k M) as [X HX]. pose proof is_lim_seq_INR as L. apply is_lim_seq_spec in L.
  destruct (L X) as [N HN]. exists N. intros n Hn. apply HX. left. now apply HN.
Qed.

Lemma lg_lim k : is_lim_seq (fun n => lg k (INR n)) p_infty.
Proof. apply is_lim_seq_spec. intros M. apply eventually_lg. Qed.

(** x and its first k iterated logarithms are positive. *)
Definition good (k : nat) (x : R) : Prop := forall m, (m <= k)%nat -> 0 < lg m x.

Lemma eventually_good k : eventually (fun n => good k (INR n)).
Proof.
  induction k as [|k IH].
  - apply filter_imp with (2 := eventually_lg 0 0). intros n Hn m Hm. now replace m with O by lia.
  - apply filter_imp with (2 := filter_and _ _ IH (eventually_lg (S k) 0)).
    intros n [H1 H2] m Hm. destruct (Nat.eq_dec m (S k)) as [->|]; trivial. apply H1. lia.
Qed.

Lemma exp_lsum k x : good k x -> 0 < lprod k x /\ exp (- lsum k x) = / lprod k x.
Proof.
  induction k as [|k IH]; intros G; simpl.
  - rewrite Ropp_0, exp_0, Rinv_1. split; [lra|reflexivity].
  - destruct IH as [P E]; [intros m Hm; apply G; lia|]. assert (H : 0 < lg k x) by (apply G; lia).
    split; [now apply Rmult_lt_0_compat|].
    rewrite Ropp_plus_distr, exp_plus, E, exp_Ropp, exp_ln by trivial. field. lra.
Qed.

(** ** One step of l_k lies between two terms of the comparison series *)
Lemma ln_diff_upper y z : 0 < y -> 0 < z -> ln z - ln y <= (z - y) / y.
Proof.
  intros Hy Hz. rewrite <- ln_div by trivial.
  replace ((z - y) / y) with (z / y - 1) by (field; lra).
  pose proof (exp_ineq1_le (ln (z / y))) as E. rewrite exp_ln in E; [lra|now apply
    Rdiv_lt_0_compat].
Qed.

Lemma step_upper k x : good k x -> good k (x + 1) -> lg k (x + 1) - lg k x <= exp (- lsum k x).
Proof.
  induction k as [|k IH]; intros G G'; [simpl; rewrite Ropp_0, exp_0; lra|].
  destruct (exp_lsum k x) as [P E]; [intros m Hm; apply G; lia|].
  destruct (exp_lsum (S k) x G) as [_ ->]. simpl.
  assert (H : 0 < lg k x) by (apply G; lia). assert (H' : 0 < lg k (x + 1)) by (apply G'; lia).
  eapply Rle_trans; [now apply ln_diff_upper|].
  replace (/ (lprod k x * lg k x)) with (/ lprod k x / lg k x) by (field; lra).
  apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. rewrite <- E.
  apply IH; intros m Hm; [apply G|apply G']; lia.
Qed.

Lemma step_lower k x : good k x -> good k (x + 1) ->
  exp (- lsum k (x + 1)) <= lg k (x + 1) - lg k x.
Proof.
  induction k as [|k IH]; intros G G'; [simpl; rewrite Ropp_0, exp_0; lra|].
  destruct (exp_lsum k (x + 1)) as [P E]; [intros m Hm; apply G'; lia|].
  destruct (exp_lsum (S k) (x + 1) G') as [_ ->]. simpl.
  assert (H : 0 < lg k x) by (apply G; lia). assert (H' : 0 < lg k (x + 1)) by (apply G'; lia).
  pose proof (ln_diff_upper (lg k (x + 1)) (lg k x) H' H) as U.
  enough (/ (lprod k (x + 1) * lg k (x + 1)) <= (lg k (x + 1) - lg k x) / lg k (x + 1)).
  { replace ((lg k x - lg k (x + 1)) / lg k (x + 1))
      with (- ((lg k (x + 1) - lg k x) / lg k (x + 1))) in U by (field; lra). lra. }
  replace (/ (lprod k (x + 1) * lg k (x + 1))) with (/ lprod k (x + 1) / lg k (x + 1)) by (field;
    lra).
  apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. rewrite <- E.
  apply IH; intros m Hm; [apply G|apply G']; lia.
Qed.

(** ** Telescoping *)
Lemma telescope_diverges (b f : nat -> R) : eventually (fun n => 0 <= b n) ->
  eventually (fun n => f (S n) - f n <= b n) -> is_lim_seq f p_infty -> ~ ex_series b.
Proof.
  intros H0 H1 Hf Hs. destruct (filter_and _ _ H0 H1) as [N HN]. apply (ex_series_shift b N) in Hs.
  set (c := fun n => b (N + n)%nat) in *. assert (P : forall n, 0 <= c n) by (intros n; apply HN;
    lia).
  assert (L : forall m, f (N + m)%nat - f N <= partial c m).
  { induction m as [|m IH]; [rewrite Nat.add_0_r; simpl; lra|].
    destruct (HN (N + m)%nat ltac:(lia)) as [_ H]. rewrite Nat.add_succ_r. simpl. unfold c at 2.
      lra. }
  apply is_lim_seq_spec in Hf. destruct (Hf (f N + Series c)) as [M HM].
  specialize (HM (N + M)%nat ltac:(lia)). specialize (L M).
  pose proof (partial_le_series c M P Hs). lra.
Qed.

Lemma telescope_converges (b f : nat -> R) : eventually (fun n => 0 <= b n) ->
  eventually (fun n => b (S n) <= f (S n) - f n) -> eventually (fun n => f n <= 0) -> ex_series b.
Proof.
  intros H0 H1 H2. destruct (filter_and _ _ H0 (filter_and _ _ H1 H2)) as [N HN].
  apply (ex_series_shift b (S N)). apply bounded_ex_series with (- f N); [intros n; apply HN; lia|].
  intros m. apply Rle_trans with (f (N + m)%nat - f N).
  - induction m as [|m IH]; [rewrite Nat.add_0_r; simpl; lra|].
    destruct (HN (N + m)%nat ltac:(lia)) as (_ & H & _). rewrite Nat.add_succ_r. simpl in *. lra.
  - destruct (HN (N + m)%nat ltac:(lia)) as (_ & _ & H). lra.
Qed.

(** ** The comparison series of rung k + 1 *)

(** sum 1/(n l_1 ... l_{k-1}) diverges; k = 0 is the constant series. *)
Lemma base_diverges k : ~ converges (fun n => - lsum k (INR n)).
Proof.
  apply (telescope_diverges _ (fun n => lg k (INR n))).
  - exists O. intros n _. left. apply exp_pos.
  - destruct (eventually_good k) as [N HN]. exists N. intros n Hn. rewrite S_INR.
    apply step_upper; [now apply HN|]. rewrite <- S_INR. apply HN. lia.
  - apply lg_lim.
Qed.

(** sum 1/(n l_1 ... l_{k-1} l_k^{1+d}) converges for d > 0. *)
Lemma base_converges k d : 0 < d ->
  converges (fun n => - lsum k (INR n) - (1 + d) * lg (S k) (INR n)).
Proof.
  intros Hd. set (f := fun n => - (exp (- d * lg (S k) (INR n)) / d)).
  apply telescope_converges with f.
  - exists O. intros n _. left. apply exp_pos.
  - destruct (eventually_good (S k)) as [N HN]. exists N. intros n Hn.
    assert (G : good (S k) (INR n)) by now apply HN.
    assert (G' : good (S k) (INR n + 1)) by (rewrite <- S_INR; apply HN; lia).
    pose proof (step_lower (S k) (INR n) G G') as St. unfold f. rewrite S_INR.
    set (u' := lg (S k) (INR n + 1)) in *. set (u := lg (S k) (INR n)) in *.
    replace (- lsum k (INR n + 1) - (1 + d) * u') with (- d * u' + - lsum (S k) (INR n + 1))
      by (simpl; unfold u'; simpl; ring).
    replace (- d * u) with (- d * u' + d * (u' - u)) by ring. rewrite !exp_plus.
    replace (- (exp (- d * u') / d) - - (exp (- d * u') * exp (d * (u' - u)) / d))
      with (exp (- d * u') * ((exp (d * (u' - u)) - 1) / d)) by (field; lra).
    apply Rmult_le_compat_l; [left; apply exp_pos|]. apply Rle_div_r; trivial.
    pose proof (exp_ineq1_le (d * (u' - u))) as E.
    apply (Rmult_le_compat_l d) in St; lra.
  - exists O. intros n _. unfold f.
    assert (0 <= exp (- d * lg (S k) (INR n)) / d); [|lra].
    apply Rdiv_le_0_compat; trivial. left. apply exp_pos.
Qed.

(** Bertrand's series at every rung: exp(-(l_1 + ... + l_k) - c l_{k+1}) converges iff c > 1. *)
Theorem bertrand k c : converges (fun n => - lsum k (INR n) - c * lg (S k) (INR n)) <-> 1 < c.
Proof.
  split.
  - intros H. apply Rnot_le_lt. intros Hc. revert H.
    apply lower_bound with (2 := base_diverges (S k)) (C := 0).
    apply filter_imp with (2 := eventually_good (S k)). intros n G.
    pose proof (G (S k) (le_n _)) as G'. simpl in *. nra.
  - intros H. replace c with (1 + (c - 1)) by ring. apply base_converges. lra.
Qed.

(** The same series as it is usually written: sum 1/(n l_1 ... l_{k-1} l_k^c) converges iff c > 1.
    *)
Theorem bertrand_fraction k c :
  ex_series (fun n => / (lprod k (INR n) * Rpower (lg k (INR n)) c)) <-> 1 < c.
Proof.
  rewrite <- (bertrand k c). apply finitely_many_terms.
  apply filter_imp with (2 := eventually_good k). intros n G.
  destruct (exp_lsum k (INR n) G) as [P E].
  unfold Rminus. rewrite exp_plus, E, exp_Ropp. unfold Rpower. simpl.
  pose proof (exp_pos (c * ln (lg k (INR n)))). field. lra.
Qed.
