(** What the certificate of a single verdict calls.  Nothing here is trusted: a wrong certificate
    does not compile. *)
From Coq Require Export Reals Lra Lia Psatz Arith List.
From Coquelicot Require Export Coquelicot.
From Farfield Require Export Sums Rules IteratedLogarithms Ladder Monomials Expansions PowerSeries
  Verdicts.
Export ListNotations.
Open Scope R_scope.

(** ** Constants *)

(** Signs and equalities of constants, the hypotheses on parameters at hand. *)
Ltac constant :=
  lazymatch goal with
  | |- True => exact I
  | |- _ /\ _ => split; constant
  | |- 0 < ?a * ?b => first [lra | apply Rmult_lt_0_compat; constant | nra]
  | |- 0 < ?a / ?b => first [lra | apply Rdiv_lt_0_compat; constant | nra]
  | |- 0 < / ?a => apply Rinv_0_lt_compat; constant
  | |- 0 < Rpower _ _ => apply exp_pos
  | |- 0 < exp _ => apply exp_pos
  | |- ?a <> 0 => first [lra | apply Rgt_not_eq; constant | apply Rlt_not_eq; constant]
  | |- _ = _ => first [lra | field; constant | nra]
  | |- _ => first [lra | nra]
  end.

(** ** Exponents *)
Ltac reckon :=
  cbv [same less esub eadd escale null negative below strictly_below oadd oshift orelative opower
       unit repeat map app fst snd length bound] in *.
Ltac same := cbv [same esub eadd escale null map unit repeat app]; constant.
Ltac less_by := first [left; lra | right; split; [lra | less_by]].
Ltac less := cbv [less esub eadd escale negative map unit repeat app]; less_by.
Ltac orders :=
  cbv [below strictly_below oadd oshift orelative opower length logarithms binomials integral map
       fst snd];
  lazymatch goal with
  | |- True => exact I
  | |- _ \/ _ => first [right; less | left; same]
  | |- less _ _ => less
  end.

(** ** Expansions *)
Ltac raw :=
  cbv [opposite scaled shifted times tpoly relative lterms logarithms binomials integral
       esub eadd escale map app repeat fst snd].
Ltac every tac :=
  lazymatch goal with
  | |- List.Forall _ [] => constructor
  | |- List.Forall _ (_ :: _) => constructor; [cbv beta; cbn [fst snd]; tac | every tac]
  end.
Ltac within := unfold within; every ltac:(first [right; orders | left; constant]).
Ltac collect := repeat first [apply collects_same; [same|] | apply collects_other]; apply collects_nil.
Ltac gather_terms :=
  lazymatch goal with
  | |- gathers _ _ [] => apply gathers_rest; within
  | |- gathers _ _ (_ :: _) => eapply gathers_term; [collect | constant | gather_terms]
  end.
Ltac cancel e := eapply (gathers_cancel _ _ e); [collect | constant |].
Ltac gather := raw; gather_terms.

Ltac led := split; [every less | orders].
Ltac tame := split; [raw; within | split; orders].

(** An expansion with a larger remainder. *)
Ltac lower E := eapply expands_below; [exact E | orders].
Ltac within_product := unfold within_product; every orders.
