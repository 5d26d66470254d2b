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
Ltac bounded_by t := solve [apply t; try lia; try (simpl; lra)].
Ltac in_parts tac :=
  first [ tac constr:(1%nat) constr:(1) | tac constr:(2%nat) constr:(2) | tac constr:(4%nat) constr:(4)
        | tac constr:(8%nat) constr:(8) | tac constr:(16%nat) constr:(16) | tac constr:(32%nat) constr:(32)
        | tac constr:(64%nat) constr:(64) ].
Ltac between :=
  lazymatch goal with
  | |- _ /\ _ => split; between
  | |- ?a < ln ?q => in_parts ltac:(fun k d => bounded_by constr:(ln_above a q k (a / d)))
  | |- ln ?q < ?a => in_parts ltac:(fun k d => bounded_by constr:(ln_below a q k (a / d)))
  | |- ?a < exp ?x => in_parts ltac:(fun k d => bounded_by constr:(exp_above a x k (x / d)))
  | |- exp ?x < ?a => in_parts ltac:(fun k d => bounded_by constr:(exp_below a x k (x / d)))
  | |- _ < Rpower _ (IZR ?m / IZR ?d) =>
      let m' := eval compute in (Z.to_nat m) in let d' := eval compute in (Z.to_nat d) in
      replace (IZR m / IZR d) with (INR m' / INR d') by (simpl; lra); bounded_by root_above
  | |- Rpower _ (IZR ?m / IZR ?d) < _ =>
      let m' := eval compute in (Z.to_nat m) in let d' := eval compute in (Z.to_nat d) in
      replace (IZR m / IZR d) with (INR m' / INR d') by (simpl; lra); bounded_by root_below
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
    exponentials waves integral map fst snd];
  lazymatch goal with
  | |- True => exact I
  | |- _ \/ _ => first [right; less | left; same]
  | |- less _ _ => less
  end.

(** ** Terms *)
Ltac raw :=
  cbv [opposite scaled shifted times tpoly relative lterms logarithms binomials exponentials waves
       integral esub eadd escale map app repeat fst snd].
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
  | |- gathers _ _ (_ :: _) => eapply gathers_term; [collect | constant | gather_terms]
  | |- gathers _ [] [] => apply gathers_rest; constructor
  | |- gathers _ ((_, ?e) :: _) [] =>
      first [ apply gathers_small; [orders | gather_terms]
            | eapply (gathers_cancel _ _ e); [collect | constant | gather_terms] ]
  end.
Ltac gather := raw; gather_terms.

Ltac led := split; [every ltac:(less) | orders].
Ltac tame := split; [raw; within | split; orders].

(** ** Steps of an expansion *)

(** An expansion with a larger remainder. *)
Ltac lower E := eapply expands_below; [exact E | orders].

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

(** What the context says of the expansion of a part. *)
Ltac known f tac :=
  first
  [ match goal with E : expands f _ _ |- _ => tac E end
  | lazymatch f with
    | fun n => INR n => tac expands_n
    | fun _ => ?c => tac (expands_const c)
    end ].

Ltac product E F :=
  eapply expands_gather;
  [ eapply (expands_mult _ _ _ _ _ _ _ E F);
    [unfold within_product; every ltac:(orders) | unfold within_product; every ltac:(orders) |
      orders]
  | gather ].

(** The size of d where the expanded function is c e (1 + d), and how many powers of d are above a
    remainder. *)
Ltac size_of E :=
  lazymatch type of E with
  | expands _ ((_, ?e) :: (_, ?f) :: _) _ => constr:(Some (esub f e))
  | expands _ [(_, ?e)] ?o => constr:(orelative e o)
  end.
Ltac last_power m o k tac :=
  tryif assert_succeeds (assert (below (opower m (S k)) o) by orders) then tac k
  else lazymatch k with 33%nat => fail | _ => last_power m o constr:(S k) tac end.

(** The logarithm or power of a constant, as the context has it. *)
Ltac value :=
  first [match goal with H : ?a = _ |- ?a = _ => exact H end | apply ln_1
    | apply Rpower_one | reflexivity].

Ltac logarithm E :=
  lazymatch goal with |- expands _ _ ?o =>
    let m := size_of E in
    last_power m o constr:(0%nat) ltac:(fun k =>
      eapply expands_gather;
      [ eapply (expands_ln _ _ _ _ _ _ _ m o E (series_ln k));
        [constant | value | tame | orders | orders]
      | gather ])
  end.

(** A power by the rule that has its series of k terms; o is the remainder without the leading
    term's power. *)
Ltac powered E r rule :=
  lazymatch goal with |- expands _ _ ?o =>
    lazymatch type of E with expands _ ((_, ?e) :: _) _ =>
      let m := size_of E in
      let o' := constr:(oshift (escale (- r) e) o) in
      last_power m o' constr:(0%nat) ltac:(fun k =>
        eapply expands_gather; [eapply expands_below; [rule m o' k | orders] | gather])
    end
  end.
Ltac natural := rewrite INR_IZR_INZ; reflexivity.
Ltac real_power r E :=
  powered E r ltac:(fun m o k =>
    eapply (expands_Rpower _ _ _ _ _ _ _ _ m o E (series_Rpower _ (S k)));
    [constant | value | tame | orders | orders]).
Ltac natural_power j E :=
  first
  [ let d := eval compute in (Z.of_nat j) in
    powered E (IZR d) ltac:(fun m o k =>
      eapply (expands_power _ _ j (IZR d) _ _ _ _ _ m o E
        (series_power j (IZR d) (S k) ltac:(natural)));
      [natural | constant | reflexivity | tame | orders | orders])
  | exact (expands_power_zero _ _ E) ].
Ltac inverse E :=
  powered E (-1) ltac:(fun m o k =>
    eapply (expands_inv _ _ _ _ _ _ m o E (series_inv (S k))); [constant | tame | orders | orders]).

(** A function with a power series, of a part that tends to 0. *)
Ltac analytic phi series E :=
  lazymatch goal with |- expands _ _ ?o =>
    let m := lazymatch type of E with
      | expands _ ((_, ?e) :: _) _ => constr:(Some e) | expands _ [] ?r => r end in
    assert_succeeds (assert (strictly_below m []) by orders);
    last_power m o constr:(0%nat) ltac:(fun k =>
      eapply expands_gather;
      [ eapply (expands_series phi _ _ _ _ m o (series (S k)) E); [within | orders ..] | gather ])
  end.

Ltac absolute E :=
  eapply expands_gather;
  [ first [ apply (expands_abs _ _ _ _ _ E); [led | constant]
          | apply (expands_abs_opp _ _ _ _ _ E); [led | constant] ]
  | gather ].

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
(** By all that the context knows from some point on. *)
Ltac pieces :=
  repeat match goal with H : eventually _ |- eventually _ =>
    apply (eventually_using _ _ H); clear H end;
  exists 0%nat; intros; cbv beta in *; decide_pieces.
Ltac table := first [apply eventually_table | apply eventually_rbar_table]; intros; lia.

(** A part that is another one from some point on. *)
Ltac chosen :=
  match goal with
  | |- expands _ [(?c, [])] exactly => apply (expands_ext (fun _ => c)); [pieces | apply
      expands_const]
  | |- expands _ [(1, [1])] exactly => apply (expands_ext INR); [pieces | apply expands_n]
  | E : expands ?g ?ts ?o |- expands _ ?ts ?o => apply (expands_ext g); [pieces | exact E]
  end.

(** An expansion, by the operation that the function ends with and the expansions of its parts. *)
Ltac expand :=
  first
  [ match goal with E : expands ?f _ _ |- expands ?f _ _ =>
      eapply expands_gather; [lower E | gather] end
  | lazymatch goal with
    | |- expands (fun n => ln (@?f n)) _ _ => known f logarithm
    | |- expands (fun n => exp (@?f n)) [] (Some [?k]) =>
        known f ltac:(fun E => apply (expands_exp_small _ _ _ _ _ k E); [led | constant | less])
    | |- expands (fun n => exp (@?f n)) _ _ => known f ltac:(analytic exp series_exp)
    | |- expands (fun n => IZR (Int_part (@?f n))) _ _ =>
        known f ltac:(fun E =>
          eapply expands_gather; [eapply (expands_floor _ _ _ _ E); orders | gather])
    | |- expands (fun n => sin (@?f n)) _ _ => known f ltac:(analytic sin series_sin)
    | |- expands (fun n => cos (@?f n)) _ _ => known f ltac:(analytic cos series_cos)
    | |- expands (fun n => Rpower (@?f n) ?r) _ _ => known f ltac:(real_power r)
    | |- expands (fun n => power (@?f n) ?r) _ _ =>
        known f ltac:(fun E => first
          [ apply (expands_power_0 _ _ E); constant
          | apply (expands_power_positive _ _ _ _ _ _ _ _ E); [led | constant | real_power r E] ])
    | |- expands (fun n => @?f n ^ ?k) _ _ => known f ltac:(natural_power k)
    | |- expands (fun n => / @?f n) _ _ => known f inverse
    | |- expands (fun n => @?f n * @?g n) _ _ =>
        known f ltac:(fun E => known g ltac:(fun F => product E F))
    | |- expands (fun n => @?f n / @?g n) _ _ =>
        let h := eval cbv beta in (fun n : nat => / g n) in
        known f ltac:(fun E => known h ltac:(fun F => product E F))
    | |- expands (fun n => Rabs (@?f n)) _ _ => known f absolute
    | |- expands (fun n => INR (?q * n + ?r)) _ _ => class q r
    end
  | apply expands_bounded; bounded
  | sum
  | chosen ].

(** A sign, or a comparison, from some point on. *)
Ltac ahead :=
  first [exists 0%nat; intros; constant |
  lazymatch goal with
  | |- eventually (fun n => 0 < @?f n) =>
      known f ltac:(fun E => apply (eventually_positive _ _ _ _ _ E); [led | constant])
  | |- eventually (fun n => @?f n < 0) =>
      known f ltac:(fun E => apply (eventually_negative _ _ _ _ _ E); [led | constant])
  end].
Ltac decided :=
  first [exists 0%nat; intros; lra | lazymatch goal with
  | |- eventually (fun n => @?f n < @?g n) =>
      let d := eval cbv beta in (fun n : nat => g n - f n) in
      known d ltac:(fun E => apply (eventually_less _ _ _ _ _ _ E); [led | constant])
  | |- eventually (fun n => @?f n = @?g n) =>
      let d := eval cbv beta in (fun n : nat => g n - f n) in
      known d ltac:(fun E => exact (eventually_equal _ _ E))
  end | exists 0%nat; intros; constant].

(** A function and a bound of it that has the same parts, its waves replaced by -1 or 1. *)
Ltac at_most :=
  match goal with
  | |- at_most ?f ?f => apply at_most_refl
  | |- at_most (fun n => - @?f n) (fun _ => -1) => apply (at_most_opp f (fun _ => 1)); at_most
  | |- at_most (fun _ => -1) (fun n => - @?f n) => apply (at_most_opp (fun _ => 1) f); at_most
  | |- at_most _ (fun _ => _) => exists 0%nat; intros ? _; first [apply COS_bound | apply SIN_bound]
  | |- at_most (fun _ => _) _ => exists 0%nat; intros ? _; first [apply COS_bound | apply SIN_bound]
  | |- at_most (fun n => @?f n + @?g n) (fun m => @?h m + @?k m) =>
      apply (at_most_plus f h g k); at_most
  | |- at_most (fun n => @?f n - @?g n) (fun m => @?h m - @?k m) =>
      apply (at_most_minus f h g k); at_most
  | |- at_most (fun n => - @?f n) (fun m => - @?h m) => apply (at_most_opp f h); at_most
  | |- at_most (fun n => @?a n * @?f n) (fun m => @?b m * @?h m) =>
      first [ apply (at_most_mult a f h); [ahead | at_most]
            | apply (at_most_mult_opp a f h); [ahead | at_most] ]
  | |- at_most (fun n => @?f n * @?a n) (fun m => @?h m * @?b m) =>
      apply (at_most_swap f h a a); at_most
  end.

(** The verdict at the rung above k ties, by the expansion asserted last. *)
Ltac side := first [left; split; [constant | less] | right; split; [constant | same]].
Ltac rung k :=
  match goal with E : expands ?p _ _ |- _ =>
    first [ apply (lead_converges p k _ _ _ _ E); [led | side]
          | apply (lead_diverges p k _ _ _ _ E); [led | side]
          | apply (rest_diverges p k _ _ E); led ]
  end.

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

(** What has one value everywhere, by a tactic. *)
Ltac everywhere tac :=
  let by_value v :=
    apply (expands_ext (fun _ => v));
    [exists 0%nat; intros ? _; cbv beta; symmetry; tac | apply expands_const] in
  lazymatch goal with
  | |- expands _ [(?v, [])] _ => by_value v
  | |- expands _ [] _ => eapply expands_gather; [by_value 0 | gather]
  end.

(** An exponent, or a dividend, as q m + r. *)
Ltac as_class m k :=
  match eval pattern m in k with
  | ?f _ => let r := eval compute in (f 0%nat) in
            let q := eval compute in (f 1%nat - r)%nat in
            replace k with (q * m + r)%nat by lia
  end.
Ltac periodic := everywhere ltac:(
  idtac; match goal with
  | m : nat |- (-1) ^ ?k = _ => as_class m k; rewrite sign_class by reflexivity; simpl; lra
  | m : nat |- INR (?k mod _) = _ =>
      as_class m k; rewrite mod_class by (lia || reflexivity); simpl; lra
  end).

(** cos x = cos y or sin x = sin y for x = y + 2 (k m + j) pi, y one of those that are known. *)
Ltac wave y k j := everywhere ltac:(
  idtac; match goal with
  | m : nat |- cos ?x = _ => rewrite (cos_class x y (k * m + j))
  | m : nat |- sin ?x = _ => rewrite (sin_class x y (k * m + j))
  end;
  [ rewrite ?neg_cos, ?neg_sin, ?sin_PI_x, ?cos_0, ?sin_0, ?cos_PI, ?sin_PI, ?cos_PI2, ?sin_PI2,
      ?cos_PI3, ?sin_PI6, ?cos_2PI3; lra
  | rewrite ?plus_INR, ?mult_INR; simpl INR; field ]).
