(** What the certificate of a single verdict calls.  Nothing here is trusted: a wrong certificate
    does not compile. *)
From Coq Require Export Reals Lra Lia Psatz Arith List.
From Coquelicot Require Export Coquelicot.
From Farfield Require Export Sums Rules IteratedLogarithms Ladder Monomials Expansions PowerSeries
  Verdicts Constants Pieces Oscillations.
Export ListNotations.
Open Scope R_scope.

(** ** Constants *)

(** Signs and equalities of constants, with the hypotheses on parameters and the bounds of
    irrational constants that are at hand; a denominator is replaced by its inverse. *)
Ltac denominators :=
  unfold Rdiv in *;
  repeat match goal with
  | |- context [/ ?a] =>
      lazymatch a with
      | IZR _ => fail
      | _ => let i := fresh "i" in let P := fresh in let E := fresh in
             assert (P : 0 < a) by lra; assert (E : a * / a = 1) by (apply Rinv_r; lra);
             apply Rinv_0_lt_compat in P; set (i := / a) in *; clearbody i
      end
  end.
Ltac constant :=
  lazymatch goal with
  | |- True => exact I
  | |- _ /\ _ => split; constant
  | |- 0 < ?a * ?b => first [lra | apply Rmult_lt_0_compat; constant | nra]
  | |- 0 < ?a / ?b => first [lra | apply Rdiv_lt_0_compat; constant | nra]
  | |- ?a * ?b < 0 =>
      first [lra | apply Ropp_lt_cancel; rewrite Ropp_0, ?Ropp_mult_distr_l; constant | nra]
  | |- ?a / ?b < 0 =>
      first [lra | apply Ropp_lt_cancel; rewrite Ropp_0, <- ?Ropp_div, ?Ropp_mult_distr_l; constant]
  | |- - ?a < 0 =>
      first [lra | apply Ropp_lt_cancel; rewrite Ropp_0, Ropp_involutive; constant | nra]
  | |- 0 < _ ^ _ => apply pow_lt; constant
  | |- 0 < / ?a => apply Rinv_0_lt_compat; constant
  | |- 0 < Rpower _ _ => apply exp_pos
  | |- 0 < exp _ => apply exp_pos
  | |- ?a <> 0 => first [lra | apply Rgt_not_eq; constant | apply Rlt_not_eq; constant]
  | |- _ = _ => first [lra | field; constant | denominators; nra]
  | |- _ => first [lra | unfold Rdiv in *; lra | nra | denominators; nra]
  end.

(** Bounds of logarithms, exponentials, roots and inverses of what is bounded already. *)
Tactic Notation "constant_by" uconstr(t) := apply t; try lia; try (simpl; lra).
Ltac root_between m d :=
  match goal with
  | |- _ < Rpower _ ?r => replace r with (INR m / INR d) by (simpl; lra); apply root_above
  | |- Rpower _ ?r < _ => replace r with (INR m / INR d) by (simpl; lra); apply root_below
  end; try lia; simpl; lra.
Ltac inverse_between :=
  match goal with
  | |- _ < / ?a => apply Rmult_lt_reg_r with a; [lra | rewrite Rinv_l; lra]
  | |- / ?a < _ => apply Rmult_lt_reg_r with a; [lra | rewrite Rinv_l; lra]
  end.

(** Logarithms of products, quotients and powers. *)
Ltac logs :=
  repeat first
    [ rewrite ln_1 | rewrite ln_Rpower | rewrite ln_exp
    | rewrite ln_mult by constant | rewrite ln_div by constant | rewrite ln_Rinv by constant
    | rewrite ln_pow by constant; rewrite INR_IZR_INZ; simpl Z.of_nat ].
Ltac split_log n m := try replace (ln n) with (ln m) by (f_equal; lra); logs.

Lemma Rpower_one r : Rpower 1 r = 1.
Proof. unfold Rpower. now rewrite ln_1, Rmult_0_r, exp_0. Qed.

(** ** Exponents and orders *)
Ltac same := cbv [same esub eadd escale null map unit repeat app]; constant.
Ltac less_by := first [left; lra | right; split; [lra | less_by]].
Ltac less := cbv [less esub eadd escale negative map unit repeat app]; less_by.
Ltac orders :=
  cbv [exactly below strictly_below oadd oshift orelative opower length logarithms binomials
    integral map
       fst snd];
  lazymatch goal with
  | |- True => exact I
  | |- _ \/ _ => first [right; less | left; same]
  | |- less _ _ => less
  end.

(** ** Terms *)
Ltac raw :=
  cbv [opposite scaled shifted times tpoly relative lterms logarithms binomials integral
       esub eadd escale map app repeat fst snd].
Ltac every tac :=
  lazymatch goal with
  | |- List.Forall _ [] => constructor
  | |- List.Forall _ (_ :: _) => constructor; [cbv beta; cbn [fst snd]; tac | every tac]
  end.
Ltac within := unfold within; every ltac:(first [right; orders | left; constant]).
Ltac collect := repeat first [apply collects_same; [same|] | apply collects_other]; apply
  collects_nil.
Ltac gather_terms :=
  lazymatch goal with
  | |- gathers _ _ [] => apply gathers_rest; within
  | |- gathers _ _ (_ :: _) => eapply gathers_term; [collect | constant | gather_terms]
  end.
Ltac cancel e := eapply (gathers_cancel _ _ e); [collect | constant |].
Ltac gather := raw; gather_terms.

Ltac led := split; [every ltac:(less) | orders].
Ltac tame := split; [raw; within | split; orders].

(** ** Steps of an expansion *)

(** An expansion with a larger remainder. *)
Ltac lower E := eapply expands_below; [exact E | orders].

(** A rule, and then its terms put together. *)
Ltac gathering rule tac := eapply expands_gather; [rule | tac].
Tactic Notation "gathering" "(" tactic3(rule) ")" tactic3(tac) := gathering rule tac.

(** Sums of multiples of parts that are expanded in the context; a constant with cases is taken
    apart as they are. *)
Ltac without_cases c :=
  lazymatch c with
  | context [Rmax _ _] => fail
  | context [Rmin _ _] => fail
  | context [Rabs _] => fail
  | _ => idtac
  end.
Ltac parts :=
  match goal with
  | |- expands (fun _ => ?c) _ _ => without_cases c; lower (expands_const c)
  | |- expands (fun n => INR n) _ _ => lower expands_n
  | E : expands ?f _ _ |- expands ?f _ _ => lower E
  | |- expands (fun n => @?f n + @?g n) _ _ => apply (expands_plus f g); parts
  | |- expands (fun n => @?f n - @?g n) _ _ => apply (expands_minus f g); parts
  | |- expands (fun n => - @?f n) _ _ => apply (expands_opp f); parts
  | |- expands (fun n => ?c * @?f n) _ _ => apply (expands_scal c f); parts
  end.
Ltac sum := eapply expands_gather; [parts | gather].
Tactic Notation "sum_by" tactic3(tac) := eapply expands_gather; [parts | tac].

Ltac product E F :=
  eapply (expands_mult _ _ _ _ _ _ _ E F);
  [unfold within_product; every ltac:(orders) | unfold within_product; every ltac:(orders) |
    orders].

Tactic Notation "logarithm" constr(E) constr(m) constr(o) constr(k) constr(lc) "by" tactic3(t) :=
  eapply (expands_ln _ _ _ lc _ _ _ m o E (series_ln k));
  [constant | t | tame | orders | orders].

Tactic Notation "real_power" constr(E) constr(m) constr(o) constr(k) constr(pc) "by" tactic3(t) :=
  eapply expands_below;
  [ eapply (expands_Rpower _ _ _ _ pc _ _ _ m o E (series_Rpower _ (S k)));
    [constant | t | tame | orders | orders]
  | orders ].

Ltac natural := rewrite INR_IZR_INZ; reflexivity.

Ltac natural_power E m o k d r pc :=
  eapply expands_below;
  [ eapply (expands_power _ _ d r _ pc _ _ _ m o E (series_power d r (S k) ltac:(natural)));
    [natural | constant | constant | tame | orders | orders]
  | orders ].

Ltac inverse E m o k :=
  eapply expands_below;
  [eapply (expands_inv _ _ _ _ _ _ m o E (series_inv (S k))); [constant | tame | orders | orders]
  | orders].

(** ** Leaves *)
Ltac class q r :=
  eapply expands_gather; [apply (expands_class q r) | rewrite !INR_IZR_INZ; simpl Z.of_nat; gather].

Ltac slope := let n := fresh in intros n; pose proof (pos_INR n); lra.
Ltac bounded :=
  lazymatch goal with
  | |- is_bounded (fun _ => ?c) => exact (bounded_const c)
  | |- is_bounded (fun n => @?f n + @?g n) => apply (bounded_plus f g); bounded
  | |- is_bounded (fun n => @?f n - @?g n) => apply (bounded_minus f g); bounded
  | |- is_bounded (fun n => - @?f n) => apply (bounded_opp f); bounded
  | |- is_bounded (fun n => cos (@?f n)) => exact (bounded_cos f)
  | |- is_bounded (fun n => sin (@?f n)) => exact (bounded_sin f)
  | |- is_bounded (fun n => INR (@?k n mod ?d)) => apply (bounded_mod k d); lia
  | |- is_bounded (fun n => (-1) ^ @?k n) => exact (bounded_sign k)
  | |- is_bounded (fun n => Rpower ?z (@?f n)) => apply (bounded_geometric z f); [lra | slope]
  | |- is_bounded (fun n => @?f n * @?g n) => apply (bounded_mult f g); bounded
  | |- is_bounded (fun n => @?f n / ?c) => apply (bounded_mult f (fun _ => / c)); bounded
  | |- is_bounded (fun n => @?f n ^ ?k) => apply (bounded_pow f k); bounded
  | |- is_bounded (fun n => sum_n_m (@?f n) ?a ?b) =>
      apply (bounded_sum (fun i n => f n i) a b); intros; cbv beta; bounded
  end.

Tactic Notation "periodic" constr(v) "by" tactic3(t) :=
  apply (expands_ext (fun _ => v)); [exists 0%nat; intros n _; cbv beta; symmetry; t | apply
    expands_const].

(** ** Pieces: what a comparison, a table or an extreme is from some point on *)
Ltac decide_pieces :=
  repeat match goal with H : _ /\ _ |- _ => destruct H end;
  repeat match goal with H : nth _ _ _ = _ |- _ => rewrite H; clear H end;
  unfold Rltb, Rleb, Reqb, Rmax, Rmin;
  repeat match goal with
  | |- context [Rlt_dec ?a ?b] => destruct (Rlt_dec a b); try (exfalso; lra)
  | |- context [Rle_dec ?a ?b] => destruct (Rle_dec a b); try (exfalso; lra)
  | |- context [Req_EM_T ?a ?b] => destruct (Req_EM_T a b); try (exfalso; lra)
  end; cbn [andb orb negb Rbar_plus Rbar_plus'];
  first [reflexivity | simpl; lra | f_equal; lra].
Ltac pieces H := apply filter_imp with (2 := H); intros; decide_pieces.

(** ** Cases of the parameters *)
Ltac inverses :=
  unfold Rdiv in *;
  repeat match goal with
  | _ : context [/ ?a] |- _ =>
      lazymatch a with
      | IZR _ => fail
      | _ => let i := fresh "i" in let P := fresh in let E := fresh in
             assert (P : 0 < a) by lra; assert (E : a * / a = 1) by (apply Rinv_r; lra);
             apply Rinv_0_lt_compat in P; set (i := / a) in *; clearbody i
      end
  end.

(** A condition that holds in a case, and the contradiction where it does not. *)
Ltac condition :=
  match goal with
  | |- _ /\ _ => split; condition
  | |- _ \/ _ => first [left; condition | right; condition]
  | |- _ <> _ => first [apply Rgt_not_eq; condition | apply Rlt_not_eq; condition]
  | |- _ => first [lra | nra | denominators; inverses; nra]
  end.
Ltac contrary :=
  intros;
  repeat match goal with H : _ /\ _ |- _ => destruct H | H : _ \/ _ |- _ => destruct H end;
  first [lra | nra | match goal with H : _ <> _ |- _ => exfalso; apply H; condition end
        | exfalso; inverses; nra].

Lemma converges_classes (p : nat -> R) q : (1 <= q)%nat ->
  (ex_series (fun n => exp (p n)) <->
   forall r, (r < q)%nat -> ex_series (fun n => exp (p (q * n + r)%nat))).
Proof.
  intros Hq. apply (residue_classes (fun n => exp (p n)) q Hq). intros n. left. apply exp_pos.
Qed.

(** ** Values on a residue class *)
Ltac sign_value q r :=
  idtac; match goal with m : nat |- (-1) ^ ?k = _ =>
    replace k with (q * m + r)%nat by lia; rewrite sign_class by reflexivity; simpl; lra end.
Ltac mod_value q r :=
  idtac; match goal with m : nat |- INR (?k mod _) = _ =>
    replace k with (q * m + r)%nat by lia; rewrite mod_class by (lia || reflexivity); simpl; lra
      end.

(** A natural power of a value. *)
Tactic Notation "power_value" constr(v) "by" tactic3(t) :=
  match goal with |- _ ^ ?k = _ => transitivity (v ^ k); [f_equal; t | simpl; lra] end.

(** cos x = cos y or sin x = sin y for x = y + 2 (k m + j) pi, y one of those that are known. *)
Ltac wave_value y k j :=
  match goal with
  | m : nat |- cos ?x = _ => rewrite (cos_class x y (k * m + j))
  | m : nat |- sin ?x = _ => rewrite (sin_class x y (k * m + j))
  end;
  [ rewrite ?neg_cos, ?neg_sin, ?sin_PI_x, ?cos_0, ?sin_0, ?cos_PI, ?sin_PI, ?cos_PI2, ?sin_PI2,
      ?cos_PI3, ?sin_PI6, ?cos_2PI3; lra
  | rewrite ?plus_INR, ?mult_INR; simpl INR; field ].
