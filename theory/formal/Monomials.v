(** The logarithmic scale: monomials n^a0 (log n)^a1 (log log n)^a2 ... with real exponents, and
    their order of growth. *)
From Coq Require Import Reals Lra Lia Psatz Arith List.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Rules IteratedLogarithms.
Export ListNotations.
Open Scope R_scope.

(** Exponents [a0; a1; a2; ...], those that are not written being 0. *)
Definition expo := list R.

(** a0 l_{k+1} + a1 l_{k+2} + ... *)
Fixpoint dot (e : expo) (k n : nat) : R :=
  match e with [] => 0 | a :: e' => a * lg (S k) (INR n) + dot e' (S k) n end.

(** n^a0 (log n)^a1 (log log n)^a2 ..., as the exponential of its logarithm. *)
Definition mono (e : expo) (n : nat) : R := exp (dot e 0 n).

(** The same in powers. *)
Fixpoint powers (e : expo) (k n : nat) : R :=
  match e with [] => 1 | a :: e' => Rpower (lg k (INR n)) a * powers e' (S k) n end.

Lemma mono_powers e n : mono e n = powers e 0 n.
Proof.
  unfold mono. generalize 0%nat. induction e as [|a e IH]; intros k; simpl; [apply exp_0|].
  now rewrite exp_plus, IH.
Qed.

(** ** Arithmetic of exponents *)
Fixpoint eadd (e f : expo) : expo :=
  match e, f with
  | [], _ => f
  | _, [] => e
  | a :: e', b :: f' => (a + b) :: eadd e' f'
  end.
Definition escale (c : R) (e : expo) : expo := map (Rmult c) e.
Definition esub (e f : expo) : expo := eadd e (escale (-1) f).

(** The exponents of l_{k+1} = log_{k+1} n. *)
Definition unit (k : nat) : expo := repeat 0 (S k) ++ [1].

Lemma dot_add e f k n : dot (eadd e f) k n = dot e k n + dot f k n.
Proof.
  revert f k. induction e as [|a e IH]; intros f k; [simpl; ring|].
  destruct f as [|b f]; simpl; [ring|]. rewrite IH. ring.
Qed.

Lemma dot_scale c e k n : dot (escale c e) k n = c * dot e k n.
Proof. revert k. induction e as [|a e IH]; intros k; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma dot_sub e f k n : dot (esub e f) k n = dot e k n - dot f k n.
Proof. unfold esub. rewrite dot_add, dot_scale. ring. Qed.

Lemma dot_unit k n : dot (unit k) 0 n = lg (S (S k)) (INR n).
Proof.
  unfold unit. replace (S (S k)) with (S (S k + 0)) by lia. generalize 0%nat.
  induction (S k) as [|j IH]; intros m; [simpl; ring|].
  cbn [repeat app dot]. rewrite IH. replace (j + S m)%nat with (S j + m)%nat by lia. ring.
Qed.

Lemma mono_pos e n : 0 < mono e n.
Proof. apply exp_pos. Qed.

Lemma mono_nil n : mono [] n = 1.
Proof. apply exp_0. Qed.

Lemma mono_add e f n : mono (eadd e f) n = mono e n * mono f n.
Proof. unfold mono. now rewrite dot_add, exp_plus. Qed.

Lemma mono_sub e f n : mono (esub e f) n = mono e n / mono f n.
Proof. unfold mono. unfold Rdiv. now rewrite dot_sub, <- exp_Ropp, <- exp_plus. Qed.

Lemma mono_scale c e n : mono (escale c e) n = Rpower (mono e n) c.
Proof. unfold mono, Rpower. now rewrite dot_scale, ln_exp. Qed.

Lemma mono_n : eventually (fun n => mono [1] n = INR n).
Proof.
  apply filter_imp with (2 := eventually_lg 0 0). intros n Hn. simpl in Hn.
  unfold mono. simpl. rewrite Rplus_0_r, Rmult_1_l. now apply exp_ln.
Qed.

Lemma mono_unit k : eventually (fun n => mono (unit k) n = lg (S k) (INR n)).
Proof.
  apply filter_imp with (2 := eventually_lg (S k) 0). intros n Hn.
  unfold mono. rewrite dot_unit. now apply exp_ln.
Qed.

(** ** Order of growth: lexicographic in the exponents *)
Fixpoint null (e : expo) : Prop := match e with [] => True | a :: e' => a = 0 /\ null e' end.
Fixpoint negative (e : expo) : Prop :=
  match e with [] => False | a :: e' => a < 0 \/ (a = 0 /\ negative e') end.
Definition same (e f : expo) : Prop := null (esub e f).
Definition less (e f : expo) : Prop := negative (esub e f).

Lemma lim_ln_over u : is_lim_seq u p_infty -> is_lim_seq (fun n => ln (u n) / u n) 0.
Proof.
  intros H. apply (is_lim_comp_seq (fun y => ln y / y) u p_infty 0); trivial.
  - apply is_lim_div_ln_p.
  - exists O. discriminate.
Qed.

Lemma lg_smaller k m : (k < m)%nat -> is_lim_seq (fun n => lg m (INR n) / lg k (INR n)) 0.
Proof.
  intros Hkm. induction Hkm as [|m Hkm IH]; [apply lim_ln_over, lg_lim|].
  apply is_lim_seq_ext_loc with (fun n =>
    (ln (lg m (INR n)) / lg m (INR n)) * (lg m (INR n) / lg k (INR n))).
  - apply filter_imp with (2 := filter_and _ _ (eventually_lg m 0) (eventually_lg k 0)).
    intros n [H1 H2]. simpl. field. split; lra.
  - replace (Finite 0) with (Finite (0 * 0)) by (f_equal; ring).
    apply is_lim_seq_mult'; trivial. apply lim_ln_over, lg_lim.
Qed.

Lemma dot_smaller e k m : (k <= m)%nat -> is_lim_seq (fun n => dot e m n / lg k (INR n)) 0.
Proof.
  revert m. induction e as [|a e IH]; intros m Hkm.
  - apply is_lim_seq_ext with (fun _ => 0); [intros; simpl; unfold Rdiv; ring|apply
    is_lim_seq_const].
  - apply is_lim_seq_ext with (fun n => a * (lg (S m) (INR n) / lg k (INR n)) +
      dot e (S m) n / lg k (INR n)); [intros n; simpl; unfold Rdiv; ring|].
    replace (Finite 0) with (Finite (a * 0 + 0)) by (f_equal; ring).
    apply is_lim_seq_plus'; [|apply IH; lia].
    apply (is_lim_seq_scal_l _ a 0). apply lg_smaller. lia.
Qed.

Lemma dot_negative e k : negative e -> is_lim_seq (dot e k) m_infty.
Proof.
  revert k. induction e as [|a e IH]; intros k He; [contradiction|]. destruct He as [Ha|[-> He]].
  - apply is_lim_seq_ext_loc with (fun n => lg (S k) (INR n) * (a + dot e (S k) n / lg (S k) (INR
    n))).
    + apply filter_imp with (2 := eventually_lg (S k) 0). intros n Hn. simpl in *. field. lra.
    + apply (is_lim_seq_mult _ _ p_infty a); [apply lg_lim| |].
      * replace (Finite a) with (Finite (a + 0)) by (f_equal; ring).
        apply is_lim_seq_plus'; [apply is_lim_seq_const|]. now apply dot_smaller.
      * unfold is_Rbar_mult. simpl. destruct (Rle_dec 0 a); [exfalso; lra|reflexivity].
  - apply is_lim_seq_ext with (dot e (S k)); [intros; simpl; ring|now apply IH].
Qed.

(** A lexicographically smaller monomial is of smaller growth. *)
Lemma less_limit e f : less e f -> is_lim_seq (fun n => mono e n / mono f n) 0.
Proof.
  intros H. apply is_lim_seq_ext with (mono (esub e f)); [intros; apply mono_sub|].
  apply (is_lim_comp_seq exp _ m_infty 0); [apply is_lim_exp_m|exists O; discriminate|].
  now apply dot_negative.
Qed.

Lemma same_mono e f n : same e f -> mono e n = mono f n.
Proof.
  intros H. enough (Z : forall d k, null d -> dot d k n = 0).
  { unfold mono. f_equal. pose proof (Z _ 0%nat H) as E. rewrite dot_sub in E. lra. }
  induction d as [|a d IH]; intros k Hd; [reflexivity|]. destruct Hd as [-> Hd].
  simpl. rewrite (IH (S k) Hd). ring.
Qed.

(** ** Orders of magnitude: a monomial, or [None] for exactly 0 from some point on *)
Definition order := option expo.
Definition exactly : order := None.
Definition bound (o : order) (n : nat) : R := match o with Some e => mono e n | None => 0 end.

Definition below (o o' : order) : Prop :=
  match o, o' with
  | None, _ => True
  | Some e, Some f => same e f \/ less e f
  | Some _, None => False
  end.
Definition strictly_below (o : order) (e : expo) : Prop :=
  match o with None => True | Some f => less f e end.
Definition oadd (o o' : order) : order :=
  match o, o' with Some e, Some f => Some (eadd e f) | _, _ => None end.
Definition oshift (e : expo) (o : order) : order :=
  match o with Some f => Some (eadd e f) | None => None end.
Fixpoint opower (o : order) (k : nat) : order :=
  match k with O => Some [] | S k' => oadd o (opower o k') end.

Lemma bound_ge0 o n : 0 <= bound o n.
Proof. destruct o; simpl; [left; apply mono_pos|lra]. Qed.

Lemma bound_oadd o o' n : bound (oadd o o') n = bound o n * bound o' n.
Proof. destruct o, o'; simpl; try ring. apply mono_add. Qed.

Lemma bound_oshift e o n : bound (oshift e o) n = mono e n * bound o n.
Proof. destruct o; simpl; [apply mono_add|ring]. Qed.

Lemma bound_opower o k n : bound (opower o k) n = bound o n ^ k.
Proof. induction k as [|k IH]; simpl; [apply mono_nil|]. now rewrite bound_oadd, IH. Qed.

Lemma strictly_below_limit o e : strictly_below o e -> is_lim_seq (fun n => bound o n / mono e n) 0.
Proof.
  destruct o as [f|]; intros H; simpl; [now apply less_limit|].
  apply is_lim_seq_ext with (fun _ => 0); [intros; unfold Rdiv; ring|apply is_lim_seq_const].
Qed.

Lemma below_bound o o' : below o o' -> eventually (fun n => bound o n <= bound o' n).
Proof.
  destruct o as [e|], o' as [f|]; simpl; intros H; try contradiction.
  - destruct H as [H|H].
    + exists O. intros n _. rewrite (same_mono e f n H). lra.
    + pose proof (less_limit e f H) as L. apply is_lim_seq_spec in L.
      destruct (L (mkposreal 1 Rlt_0_1)) as [N HN]. exists N. intros n Hn. specialize (HN n Hn).
      simpl in HN. rewrite Rminus_0_r in HN. apply Rabs_def2 in HN. destruct HN as [HN _].
      pose proof (mono_pos f n). apply Rlt_div_l in HN; trivial. lra.
  - exists O. intros n _. left. apply mono_pos.
  - exists O. intros n _. lra.
Qed.
