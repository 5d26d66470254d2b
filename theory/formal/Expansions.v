(** Finite expansions along the logarithmic scale, with a remainder: sums, products, logarithms and
    powers of functions that have one. *)
From Coq Require Import Reals Lra Lia Psatz Arith List.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Rules IteratedLogarithms Monomials.
Open Scope R_scope.

(** [bigO f o]: |f n| is at most a multiple of the order of magnitude o, for all large n. *)
Definition bigO (f : nat -> R) (o : order) : Prop :=
  exists C, eventually (fun n => Rabs (f n) <= C * bound o n).

(** A term c n^a0 (log n)^a1 ... and a sum of terms. *)
Definition term := (R * expo)%type.
Fixpoint eval (ts : list term) (n : nat) : R :=
  match ts with [] => 0 | (c, e) :: ts' => c * mono e n + eval ts' n end.

(** f = ts + O(o). *)
Definition expands (f : nat -> R) (ts : list term) (o : order) : Prop :=
  bigO (fun n => f n - eval ts n) o.

(** ** Orders of magnitude *)
Lemma bigO_positive f o : bigO f o -> exists C, 0 < C /\ eventually (fun n => Rabs (f n) <= C *
  bound o n).
Proof.
  intros [C H]. exists (Rabs C + 1). split; [pose proof (Rabs_pos C); lra|].
  apply filter_imp with (2 := H). intros n Hn. eapply Rle_trans; [exact Hn|].
  apply Rmult_le_compat_r; [apply bound_ge0|]. pose proof (Rle_abs C). lra.
Qed.

Lemma bigO_ext f g o : eventually (fun n => f n = g n) -> bigO f o -> bigO g o.
Proof.
  intros E [C H]. exists C. apply filter_imp with (2 := filter_and _ _ E H). intros n [<- Hn].
    exact Hn.
Qed.

Lemma bigO_below f o o' : bigO f o -> below o o' -> bigO f o'.
Proof.
  intros H B. destruct (bigO_positive f o H) as (C & HC & H'). exists C.
  apply filter_imp with (2 := filter_and _ _ H' (below_bound o o' B)). intros n [H1 H2].
  eapply Rle_trans; [exact H1|]. apply Rmult_le_compat_l; lra.
Qed.

Lemma bigO_plus f g o : bigO f o -> bigO g o -> bigO (fun n => f n + g n) o.
Proof.
  intros [C H] [D G]. exists (C + D). apply filter_imp with (2 := filter_and _ _ H G).
  intros n [H1 H2]. eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma bigO_mult f g o o' : bigO f o -> bigO g o' -> bigO (fun n => f n * g n) (oadd o o').
Proof.
  intros H G. destruct (bigO_positive f o H) as (C & HC & H'). destruct G as [D G].
  exists (C * D). apply filter_imp with (2 := filter_and _ _ H' G). intros n [H1 H2].
  rewrite Rabs_mult, bound_oadd.
  replace (C * D * (bound o n * bound o' n)) with ((C * bound o n) * (D * bound o' n)) by ring.
  apply Rmult_le_compat; trivial; apply Rabs_pos.
Qed.

Lemma bigO_scal c f o : bigO f o -> bigO (fun n => c * f n) o.
Proof.
  intros [C H]. exists (Rabs c * C). apply filter_imp with (2 := H). intros n Hn.
  rewrite Rabs_mult, Rmult_assoc. apply Rmult_le_compat_l; [apply Rabs_pos|trivial].
Qed.

Lemma bigO_mono e : bigO (mono e) (Some e).
Proof.
  exists 1. exists 0%nat. intros n _. simpl. rewrite Rabs_pos_eq; [lra|left; apply mono_pos].
Qed.

Lemma bigO_shift e f o : bigO f o -> bigO (fun n => mono e n * f n) (oshift e o).
Proof.
  intros [C H]. exists C. apply filter_imp with (2 := H). intros n Hn.
  rewrite Rabs_mult, bound_oshift, (Rabs_pos_eq (mono e n)) by (left; apply mono_pos).
  replace (C * (mono e n * bound o n)) with (mono e n * (C * bound o n)) by ring.
  apply Rmult_le_compat_l; trivial. left. apply mono_pos.
Qed.

Lemma bigO_zero f o : eventually (fun n => f n = 0) -> bigO f o.
Proof.
  intros H. exists 0. apply filter_imp with (2 := H). intros n ->. rewrite Rabs_R0. lra.
Qed.

Lemma bigO_bounded f C : eventually (fun n => Rabs (f n) <= C) -> bigO f (Some []).
Proof.
  intros H. exists C. apply filter_imp with (2 := H). intros n Hn. simpl. rewrite mono_nil. lra.
Qed.

(** Every term is of order o, or its coefficient is 0. *)
Definition within (o : order) (ts : list term) : Prop :=
  List.Forall (fun t => fst t = 0 \/ below (Some (snd t)) o) ts.

Lemma bigO_eval ts o : within o ts -> bigO (eval ts) o.
Proof.
  intros H. induction H as [|[c e] ts H _ IH]; [apply bigO_zero; now exists 0%nat|].
  apply (bigO_plus (fun n => c * mono e n)); trivial. simpl in H. destruct H as [->|H].
  - apply bigO_zero. exists 0%nat. intros; ring.
  - apply bigO_scal. apply (bigO_below _ (Some e)); trivial. apply bigO_mono.
Qed.

(** ** Sums and products of terms *)
Definition opposite (ts : list term) : list term := map (fun t => (- fst t, snd t)) ts.
Definition scaled (c : R) (ts : list term) : list term := map (fun t => (c * fst t, snd t)) ts.
Definition shifted (c : R) (e : expo) (ts : list term) : list term :=
  map (fun t => (c * fst t, eadd e (snd t))) ts.
Fixpoint times (ts us : list term) : list term :=
  match ts with [] => [] | (c, e) :: ts' => shifted c e us ++ times ts' us end.

(** The polynomial q_0 + q_1 x + ... of a number, and of a sum of terms. *)
Fixpoint poly (q : list R) (x : R) : R := match q with [] => 0 | c :: q' => c + x * poly q' x end.
Fixpoint tpoly (q : list R) (ts : list term) : list term :=
  match q with [] => [] | c :: q' => (c, []) :: times ts (tpoly q' ts) end.

Lemma eval_app ts us n : eval (ts ++ us) n = eval ts n + eval us n.
Proof. induction ts as [|[c e] ts IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma eval_scaled c ts n : eval (scaled c ts) n = c * eval ts n.
Proof. induction ts as [|[d e] ts IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma eval_opposite ts n : eval (opposite ts) n = - eval ts n.
Proof. induction ts as [|[d e] ts IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma eval_shifted c e ts n : eval (shifted c e ts) n = c * mono e n * eval ts n.
Proof. induction ts as [|[d f] ts IH]; simpl; [ring|]. rewrite IH, mono_add. ring. Qed.

Lemma eval_times ts us n : eval (times ts us) n = eval ts n * eval us n.
Proof.
  induction ts as [|[c e] ts IH]; simpl; [ring|]. rewrite eval_app, eval_shifted, IH. ring.
Qed.

Lemma eval_tpoly q ts n : eval (tpoly q ts) n = poly q (eval ts n).
Proof.
  induction q as [|c q IH]; simpl; [reflexivity|]. rewrite eval_times, IH, mono_nil. ring.
Qed.

(** ** Rules of expansion *)
Lemma expands_ext f g ts o : eventually (fun n => f n = g n) -> expands f ts o -> expands g ts o.
Proof. intros H. apply bigO_ext, filter_imp with (2 := H). now intros n ->. Qed.

Lemma expands_below f ts o o' : expands f ts o -> below o o' -> expands f ts o'.
Proof. apply bigO_below. Qed.

Lemma expands_const c : expands (fun _ => c) [(c, [])] None.
Proof. apply bigO_zero. exists 0%nat. intros n _. simpl. rewrite mono_nil. ring. Qed.

Lemma expands_n : expands INR [(1, [1])] None.
Proof. apply bigO_zero, filter_imp with (2 := mono_n). intros n H. simpl. rewrite H. ring. Qed.

(** A residue class: q n + r. *)
Lemma expands_class q r : expands (fun n => INR (q * n + r)) [(INR q, [1]); (INR r, [])] None.
Proof.
  apply bigO_zero, filter_imp with (2 := mono_n). intros n H. simpl eval.
  rewrite H, mono_nil, plus_INR, mult_INR. ring.
Qed.

Lemma expands_opp f ts o : expands f ts o -> expands (fun n => - f n) (opposite ts) o.
Proof.
  intros H. apply bigO_ext with (fun n => -1 * (f n - eval ts n)); [|now apply bigO_scal].
  exists 0%nat. intros n _. rewrite eval_opposite. ring.
Qed.

Lemma expands_scal c f ts o : expands f ts o -> expands (fun n => c * f n) (scaled c ts) o.
Proof.
  intros H. apply bigO_ext with (fun n => c * (f n - eval ts n)); [|now apply bigO_scal].
  exists 0%nat. intros n _. rewrite eval_scaled. ring.
Qed.

Lemma expands_plus f g ts us o : expands f ts o -> expands g us o ->
  expands (fun n => f n + g n) (ts ++ us) o.
Proof.
  intros H G. apply bigO_ext with (fun n => (f n - eval ts n) + (g n - eval us n)); [|now apply
    bigO_plus].
  exists 0%nat. intros n _. rewrite eval_app. ring.
Qed.

Lemma expands_minus f g ts us o : expands f ts o -> expands g us o ->
  expands (fun n => f n - g n) (ts ++ opposite us) o.
Proof. intros H G. now apply (expands_plus f (fun n => - g n)), expands_opp. Qed.

(** Terms of f times the remainder of g. *)
Definition within_product (o o' : order) (ts : list term) : Prop :=
  List.Forall (fun t => below (oshift (snd t) o) o') ts.

Lemma bigO_eval_mult ts g o o' : bigO g o -> within_product o o' ts -> bigO (fun n => eval ts n * g
  n) o'.
Proof.
  intros G H. induction H as [|[c e] ts H _ IH].
  - apply bigO_zero. exists 0%nat. intros; simpl; ring.
  - apply bigO_ext with (fun n => c * (mono e n * g n) + eval ts n * g n);
      [exists 0%nat; intros; simpl; ring|].
    apply bigO_plus; trivial. apply bigO_scal. apply (bigO_below _ (oshift e o)); trivial. now
      apply bigO_shift.
Qed.

Lemma expands_mult f g ts us o1 o2 o : expands f ts o1 -> expands g us o2 ->
  within_product o2 o ts -> within_product o1 o us -> below (oadd o1 o2) o ->
  expands (fun n => f n * g n) (times ts us) o.
Proof.
  intros F G H2 H1 H12.
  apply bigO_ext with (fun n => (eval ts n * (g n - eval us n) + eval us n * (f n - eval ts n))
                     + (f n - eval ts n) * (g n - eval us n)).
  { exists 0%nat. intros n _. rewrite eval_times. ring. }
  repeat apply bigO_plus.
  - now apply (bigO_eval_mult ts _ o2).
  - now apply (bigO_eval_mult us _ o1).
  - apply (bigO_below _ (oadd o1 o2)); trivial. now apply bigO_mult.
Qed.

(** ** Collecting terms *)

(** The terms of [raw] with exponents e sum to total; the others are left in rest. *)
Inductive collects (e : expo) : list term -> R -> list term -> Prop :=
| collects_nil : collects e [] 0 []
| collects_same c f raw total rest :
    same f e -> collects e raw total rest -> collects e ((c, f) :: raw) (c + total) rest
| collects_other t raw total rest :
    collects e raw total rest -> collects e (t :: raw) total (t :: rest).

(** [raw] is [target] up to terms that cancel or are of order o. *)
Inductive gathers (o : order) : list term -> list term -> Prop :=
| gathers_rest raw : within o raw -> gathers o raw []
| gathers_small raw c e target :
    below (Some e) o -> gathers o raw target -> gathers o ((c, e) :: raw) target
| gathers_term raw c e total rest target :
    collects e raw total rest -> total = c -> gathers o rest target ->
    gathers o raw ((c, e) :: target)
| gathers_cancel raw e total rest target :
    collects e raw total rest -> total = 0 -> gathers o rest target -> gathers o raw target.

Lemma collects_eval e raw total rest n : collects e raw total rest ->
  eval raw n = total * mono e n + eval rest n.
Proof.
  induction 1 as [|c f raw total rest Hs _ IH|[c f] raw total rest _ IH]; simpl.
  - ring.
  - rewrite IH, (same_mono f e n Hs). ring.
  - rewrite IH. ring.
Qed.

Lemma gathers_eval o raw target : gathers o raw target -> bigO (fun n => eval raw n - eval target
  n) o.
Proof.
  induction 1 as [raw H|raw c e target H _ IH|raw c e total rest target H <- _ IH
    |raw e total rest target H -> _ IH].
  - apply bigO_ext with (eval raw); [exists 0%nat; intros; simpl; ring|]. now apply bigO_eval.
  - apply bigO_ext with (fun n => c * mono e n + (eval raw n - eval target n));
      [exists 0%nat; intros; simpl; ring|].
    apply bigO_plus; trivial. apply bigO_scal. apply (bigO_below _ (Some e)); trivial.
    apply bigO_mono.
  - apply bigO_ext with (2 := IH). exists 0%nat. intros n _. simpl.
    rewrite (collects_eval e raw total rest n H). ring.
  - apply bigO_ext with (2 := IH). exists 0%nat. intros n _.
    rewrite (collects_eval e raw 0 rest n H). ring.
Qed.

Lemma expands_gather f raw target o : expands f raw o -> gathers o raw target ->
  expands f target o.
Proof.
  intros H G. apply bigO_ext with (fun n => (f n - eval raw n) + (eval raw n - eval target n)).
  - exists 0%nat. intros; ring.
  - apply bigO_plus; trivial. now apply gathers_eval.
Qed.

(** ** Signs *)

(** All terms of ts, and the remainder o, are of smaller growth than e. *)
Definition led (e : expo) (ts : list term) (o : order) : Prop :=
  List.Forall (fun t => less (snd t) e) ts /\ strictly_below o e.

Lemma led_limit f c e ts o : expands f ((c, e) :: ts) o -> led e ts o ->
  is_lim_seq (fun n => f n / mono e n) c.
Proof.
  intros F [Ht Ho].
  assert (R : is_lim_seq (fun n => (f n - eval ((c, e) :: ts) n) / mono e n) 0).
  { destruct F as [C F]. apply is_lim_seq_abs_0.
    apply (is_lim_seq_le_le_loc (fun _ => 0) _ (fun n => C * (bound o n / mono e n))).
    - apply filter_imp with (2 := F). intros n Hn. pose proof (mono_pos e n). split; [apply
      Rabs_pos|].
      unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ _)) by (left; now apply Rinv_0_lt_compat).
      rewrite <- Rmult_assoc. apply Rmult_le_compat_r; trivial. left. now apply Rinv_0_lt_compat.
    - apply is_lim_seq_const.
    - replace (Finite 0) with (Finite (C * 0)) by (f_equal; ring).
      apply (is_lim_seq_scal_l _ C 0). now apply strictly_below_limit. }
  assert (T : is_lim_seq (fun n => eval ts n / mono e n) 0).
  { clear F R. induction Ht as [|[d g] ts H _ IH].
    - apply is_lim_seq_ext with (fun _ => 0); [intros; simpl; unfold Rdiv; ring|apply
      is_lim_seq_const].
    - apply is_lim_seq_ext with (fun n => d * (mono g n / mono e n) + eval ts n / mono e n);
        [intros; simpl; unfold Rdiv; ring|].
      replace (Finite 0) with (Finite (d * 0 + 0)) by (f_equal; ring).
      apply is_lim_seq_plus'; trivial. apply (is_lim_seq_scal_l _ d 0). now apply less_limit. }
  replace (Finite c) with (Finite (0 + (c + 0))) by (f_equal; ring).
  apply is_lim_seq_ext with (fun n => (f n - eval ((c, e) :: ts) n) / mono e n +
    (c + eval ts n / mono e n)).
  - intros n. simpl. pose proof (mono_pos e n). field. lra.
  - apply is_lim_seq_plus'; trivial. apply is_lim_seq_plus'; [apply is_lim_seq_const|trivial].
Qed.

(** A function has the sign of its leading coefficient. *)
Lemma eventually_positive f c e ts o : expands f ((c, e) :: ts) o -> led e ts o -> 0 < c ->
  eventually (fun n => 0 < f n).
Proof.
  intros F H Hc. pose proof (led_limit f c e ts o F H) as L. apply is_lim_seq_spec in L.
  destruct (L (mkposreal c Hc)) as [N HN]. exists N. intros n Hn. specialize (HN n Hn).
  simpl in HN. apply Rabs_def2 in HN. destruct HN as [_ HN]. pose proof (mono_pos e n) as P.
  apply Rmult_lt_reg_r with (/ mono e n); [now apply Rinv_0_lt_compat|].
  unfold Rdiv in HN. lra.
Qed.

Lemma led_opposite e ts o : led e ts o -> led e (opposite ts) o.
Proof.
  intros [H Ho]. split; trivial. induction H as [|[c f] ts H _ IH]; constructor; trivial.
Qed.

Lemma eventually_negative f c e ts o : expands f ((c, e) :: ts) o -> led e ts o -> c < 0 ->
  eventually (fun n => f n < 0).
Proof.
  intros F H Hc. apply filter_imp with (2 := eventually_positive _ _ _ _ _ (expands_opp _ _ _ F)
    (led_opposite _ _ _ H) ltac:(simpl; lra)). intros n Hn. lra.
Qed.

(** ** Power series of what tends to 0 *)

(** phi(x) = q_0 + q_1 x + ... + q_{k-1} x^{k-1} + O(x^k) at 0. *)
Definition series_at_0 (phi : R -> R) (q : list R) : Prop :=
  exists K, forall x, Rabs x <= / 2 -> Rabs (phi x - poly q x) <= K * Rabs x ^ length q.

Lemma poly_lipschitz q : exists L, 0 <= L /\ forall x y, Rabs x <= 1 -> Rabs y <= 1 ->
  Rabs (poly q x - poly q y) <= L * Rabs (x - y) /\ Rabs (poly q y) <= L.
Proof.
  induction q as [|c q (L & HL & H)].
  - exists 0. split; [lra|]. intros x y _ _. simpl. rewrite Rminus_0_r, Rabs_R0.
    pose proof (Rabs_pos (x - y)). lra.
  - exists (Rabs c + 2 * L). pose proof (Rabs_pos c). split; [lra|]. intros x y Hx Hy.
    destruct (H x y Hx Hy) as [H1 H2]. simpl. split.
    + replace (c + x * poly q x - (c + y * poly q y))
        with (x * (poly q x - poly q y) + (x - y) * poly q y) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult.
      pose proof (Rabs_pos (poly q x - poly q y)). pose proof (Rabs_pos (x - y)).
      pose proof (Rabs_pos x). pose proof (Rabs_pos (poly q y)). nra.
    + eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult.
      pose proof (Rabs_pos y). pose proof (Rabs_pos (poly q y)). nra.
Qed.

Lemma bigO_small f m : bigO f m -> strictly_below m [] -> is_lim_seq f 0.
Proof.
  intros [C H] Hm. apply is_lim_seq_abs_0.
  apply (is_lim_seq_le_le_loc (fun _ => 0) _ (fun n => C * (bound m n / mono [] n))).
  - apply filter_imp with (2 := H). intros n Hn. split; [apply Rabs_pos|].
    rewrite mono_nil, Rdiv_1. trivial.
  - apply is_lim_seq_const.
  - replace (Finite 0) with (Finite (C * 0)) by (f_equal; ring).
    apply (is_lim_seq_scal_l _ C 0). now apply strictly_below_limit.
Qed.

Lemma bigO_pow f m k : bigO f m -> bigO (fun n => f n ^ k) (opower m k).
Proof.
  intros H. induction k as [|k IH]; simpl.
  - apply (bigO_bounded _ 1). exists 0%nat. intros n _. rewrite Rabs_R1. lra.
  - now apply bigO_mult.
Qed.

Lemma expands_series phi q f ts o m o' : series_at_0 phi q -> expands f ts o ->
  within m ts -> below o m -> strictly_below m [] ->
  below o o' -> below (opower m (length q)) o' ->
  expands (fun n => phi (f n)) (tpoly q ts) o'.
Proof.
  intros [K HK] F Ht Hom Hm Ho Hr.
  assert (Fm : bigO f m).
  { apply bigO_ext with (fun n => (f n - eval ts n) + eval ts n); [exists 0%nat; intros; ring|].
    apply bigO_plus; [now apply (bigO_below _ o)|now apply bigO_eval]. }
  assert (Small : forall g, bigO g m -> eventually (fun n => Rabs (g n) <= / 2)).
  { intros g G. pose proof (bigO_small g m G Hm) as L. apply is_lim_seq_spec in L.
    assert (H2 : 0 < / 2) by lra. destruct (L (mkposreal _ H2)) as [N HN]. exists N. intros n Hn.
    specialize (HN n Hn). simpl in HN. rewrite Rminus_0_r in HN. lra. }
  apply bigO_ext with (fun n => (phi (f n) - poly q (f n)) + (poly q (f n) - poly q (eval ts n))).
  { exists 0%nat. intros n _. rewrite eval_tpoly. ring. }
  apply bigO_plus.
  - apply (bigO_below _ _ _ (bigO_scal (Rabs K) _ _ (bigO_pow f m (length q) Fm))) in Hr.
    destruct Hr as [C HC]. exists C.
    apply filter_imp with (2 := filter_and _ _ HC (Small f Fm)). intros n [H1 H2].
    eapply Rle_trans; [apply HK; trivial|]. eapply Rle_trans; [|exact H1].
    rewrite Rabs_mult, <- RPow_abs, Rabs_Rabsolu. apply Rmult_le_compat_r; [|apply Rle_abs].
    apply pow_le, Rabs_pos.
  - destruct (poly_lipschitz q) as (L & HL & Lip).
    apply (bigO_below _ _ _ (bigO_scal L _ _ F)) in Ho. destruct Ho as [C HC]. exists C.
    apply filter_imp with (2 := filter_and _ _ HC
      (filter_and _ _ (Small f Fm) (Small (eval ts) (bigO_eval ts m Ht)))).
    intros n (H1 & H2 & H3). eapply Rle_trans; [|exact H1].
    rewrite Rabs_mult, (Rabs_pos_eq L) by trivial. apply Lip; lra.
Qed.

(** The integral part is within 1. *)
Lemma expands_floor f ts o o' : expands f ts o -> below o o' -> below (Some []) o' ->
  expands (fun n => IZR (Int_part (f n))) ts o'.
Proof.
  intros F Ho H0.
  apply bigO_ext with (fun n => (IZR (Int_part (f n)) - f n) + (f n - eval ts n));
    [exists 0%nat; intros; ring|].
  apply bigO_plus; [|now apply (bigO_below _ o)].
  apply (bigO_below _ (Some [])); [|exact H0]. apply (bigO_bounded _ 1). exists 0%nat. intros n _.
  destruct (base_Int_part (f n)). apply Rabs_le. lra.
Qed.

(** ** Logarithm and powers: f = c e (1 + d) with d tending to 0 *)

(** The terms of d. *)
Definition relative (c : R) (e : expo) (ts : list term) : list term :=
  map (fun t => (fst t / c, esub (snd t) e)) ts.
Definition orelative (e : expo) (o : order) : order := oshift (escale (-1) e) o.

Lemma eval_relative c e ts n : eval (relative c e ts) n = eval ts n / (c * mono e n).
Proof.
  induction ts as [|[d g] ts IH]; simpl; [unfold Rdiv; ring|]. rewrite IH, mono_sub.
  unfold Rdiv. rewrite Rinv_mult. ring.
Qed.

Lemma expands_relative f c e ts o : c <> 0 -> expands f ((c, e) :: ts) o ->
  expands (fun n => f n / (c * mono e n) - 1) (relative c e ts) (orelative e o).
Proof.
  intros Hc F.
  apply bigO_ext with (fun n => / c * (mono (escale (-1) e) n * (f n - eval ((c, e) :: ts) n))).
  - exists 0%nat. intros n _. rewrite eval_relative, mono_scale. simpl. pose proof (mono_pos e n).
    replace (Rpower (mono e n) (-1)) with (/ mono e n); [field; lra|].
    replace (-1) with (- (1)) by ring. rewrite Rpower_Ropp, Rpower_1; trivial.
  - now apply bigO_scal, bigO_shift.
Qed.

(** The conditions under which d tends to 0, and its series may be cut: m is an order of d. *)
Definition tame (m : order) (c : R) (e : expo) (ts : list term) (o : order) : Prop :=
  within m (relative c e ts) /\ below (orelative e o) m /\ strictly_below m [].

Lemma expands_function phi q f c e ts o m o' : series_at_0 phi q -> c <> 0 ->
  expands f ((c, e) :: ts) o -> tame m c e ts o ->
  below (orelative e o) o' -> below (opower m (length q)) o' ->
  expands (fun n => phi (f n / (c * mono e n) - 1)) (tpoly q (relative c e ts)) o'.
Proof.
  intros Q Hc F (H1 & H2 & H3) H4 H5.
  apply (expands_series phi q _ _ (orelative e o) m o' Q); trivial. now apply expands_relative.
Qed.

Lemma eventually_normal f c e ts o m : 0 < c -> expands f ((c, e) :: ts) o -> tame m c e ts o ->
  eventually (fun n => f n = c * mono e n * (1 + (f n / (c * mono e n) - 1)) /\
    0 < 1 + (f n / (c * mono e n) - 1)).
Proof.
  intros Hc F (H1 & H2 & H3). assert (Hc' : c <> 0) by lra.
  pose proof (expands_relative f c e ts o Hc' F) as D.
  assert (Dm : bigO (fun n => f n / (c * mono e n) - 1) m).
  { apply bigO_ext with (fun n => (f n / (c * mono e n) - 1 - eval (relative c e ts) n)
      + eval (relative c e ts) n); [exists 0%nat; intros; ring|].
    apply bigO_plus; [now apply (bigO_below _ (orelative e o))|now apply bigO_eval]. }
  pose proof (bigO_small _ m Dm H3) as L. apply is_lim_seq_spec in L.
  destruct (L (mkposreal 1 Rlt_0_1)) as [N HN]. exists N. intros n Hn. specialize (HN n Hn).
  simpl in HN. rewrite Rminus_0_r in HN. apply Rabs_def2 in HN. pose proof (mono_pos e n).
  split; [field; lra|lra].
Qed.

(** The logarithm of c n^a0 (log n)^a1 ...: log c + a0 l_1 + a1 l_2 + ... *)
Fixpoint lterms (e : expo) (k : nat) : list term :=
  match e with [] => [] | a :: e' => (a, repeat 0 k ++ [0; 1]) :: lterms e' (S k) end.

Lemma eventually_lterms e k : eventually (fun n => dot e k n = eval (lterms e k) n).
Proof.
  revert k. induction e as [|a e IH]; intros k; [now exists 0%nat|].
  apply filter_imp with (2 := filter_and _ _ (IH (S k)) (mono_unit k)). intros n [H1 H2].
  simpl dot. cbn [lterms eval]. rewrite H1.
  replace (repeat 0 k ++ [0; 1]) with (unit k).
  - rewrite H2. reflexivity.
  - unfold unit. cbn [repeat]. rewrite repeat_cons, <- app_assoc. reflexivity.
Qed.

Lemma expands_ln q f c lc e ts o m o' : expands f ((c, e) :: ts) o ->
  series_at_0 (fun x => ln (1 + x)) q -> 0 < c -> ln c = lc -> tame m c e ts o ->
  below (orelative e o) o' -> below (opower m (length q)) o' ->
  expands (fun n => ln (f n)) ((lc, []) :: lterms e 0 ++ tpoly q (relative c e ts)) o'.
Proof.
  intros F Q Hc <- T H4 H5. assert (Hc' : c <> 0) by lra.
  pose proof (expands_function _ q f c e ts o m o' Q Hc' F T H4 H5) as D.
  apply bigO_ext with (2 := D).
  apply filter_imp with (2 := filter_and _ _ (eventually_normal f c e ts o m Hc F T)
    (eventually_lterms e 0)). intros n [[H1 H2] H3].
  set (d := f n / (c * mono e n) - 1) in *. simpl eval. rewrite eval_app, <- H3, mono_nil, H1.
  rewrite ln_mult, ln_mult; trivial; [|apply mono_pos|apply Rmult_lt_0_compat; trivial; apply
    mono_pos].
  unfold mono. rewrite ln_exp. ring.
Qed.

Lemma expands_Rpower q f r c pc e ts o m o' : expands f ((c, e) :: ts) o ->
  series_at_0 (fun x => Rpower (1 + x) r) q -> 0 < c -> Rpower c r = pc -> tame m c e ts o ->
  below (orelative e o) o' -> below (opower m (length q)) o' ->
  expands (fun n => Rpower (f n) r) (shifted pc (escale r e) (tpoly q (relative c e ts)))
    (oshift (escale r e) o').
Proof.
  intros F Q Hc <- T H4 H5. assert (Hc' : c <> 0) by lra.
  pose proof (expands_function _ q f c e ts o m o' Q Hc' F T H4 H5) as D.
  apply bigO_ext with (2 := bigO_scal (Rpower c r) _ _ (bigO_shift (escale r e) _ _ D)).
  apply filter_imp with (2 := eventually_normal f c e ts o m Hc F T). intros n [H1 H2].
  set (d := f n / (c * mono e n) - 1) in *. rewrite H1, eval_shifted, mono_scale.
  pose proof (mono_pos e n). assert (0 < c * mono e n) by now apply Rmult_lt_0_compat.
  rewrite <- (Rpower_mult_distr (c * mono e n) (1 + d)), <- (Rpower_mult_distr c (mono e n));
    trivial.
  ring.
Qed.

Lemma expands_power q f k r c pc e ts o m o' : expands f ((c, e) :: ts) o ->
  series_at_0 (fun x => (1 + x) ^ k) q -> INR k = r -> c <> 0 -> c ^ k = pc -> tame m c e ts o ->
  below (orelative e o) o' -> below (opower m (length q)) o' ->
  expands (fun n => f n ^ k) (shifted pc (escale r e) (tpoly q (relative c e ts)))
    (oshift (escale r e) o').
Proof.
  intros F Q <- Hc <- T H4 H5. pose proof (expands_function _ q f c e ts o m o' Q Hc F T H4 H5) as
    D.
  apply bigO_ext with (2 := bigO_scal (c ^ k) _ _ (bigO_shift (escale (INR k) e) _ _ D)).
  exists 0%nat. intros n _. pose proof (mono_pos e n).
  rewrite eval_shifted, mono_scale, Rpower_pow by trivial.
  replace (f n ^ k) with ((c * mono e n * (1 + (f n / (c * mono e n) - 1))) ^ k)
    by (f_equal; field; lra).
  rewrite !Rpow_mult_distr. ring.
Qed.

Lemma expands_power_zero f k : expands f [] None -> expands (fun n => f n ^ S k) [] None.
Proof.
  intros [C H]. apply bigO_zero, filter_imp with (2 := H). intros n Hn. simpl in *.
  rewrite Rmult_0_r in Hn. pose proof (Rabs_pos (f n - 0)).
  assert (Z : Rabs (f n - 0) = 0) by lra. apply Rabs_eq_0 in Z. replace (f n) with 0 by lra. ring.
Qed.

Lemma expands_inv q f c e ts o m o' : expands f ((c, e) :: ts) o ->
  series_at_0 (fun x => / (1 + x)) q -> c <> 0 -> tame m c e ts o ->
  below (orelative e o) o' -> below (opower m (length q)) o' ->
  expands (fun n => / f n) (shifted (/ c) (escale (-1) e) (tpoly q (relative c e ts)))
    (oshift (escale (-1) e) o').
Proof.
  intros F Q Hc T H4 H5. pose proof (expands_function _ q f c e ts o m o' Q Hc F T H4 H5) as D.
  apply bigO_ext with (2 := bigO_scal (/ c) _ _ (bigO_shift (escale (-1) e) _ _ D)).
  exists 0%nat. intros n _. rewrite eval_shifted, mono_scale. pose proof (mono_pos e n).
  replace (Rpower (mono e n) (-1)) with (/ mono e n).
  2: { replace (-1) with (- (1)) by ring. rewrite Rpower_Ropp, Rpower_1; trivial. }
  replace (1 + (f n / (c * mono e n) - 1)) with (f n * / (c * mono e n)) by (unfold Rdiv; ring).
  rewrite !Rinv_mult, !Rinv_inv. generalize (/ f n). intros i. field. split; lra.
Qed.
