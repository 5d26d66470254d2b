(** Functions put together from pieces: comparisons, tables, residue classes. *)
From Coq Require Import Reals Lra Lia Psatz Arith List.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Rules IteratedLogarithms Monomials Expansions.
Open Scope R_scope.

(** Comparisons of reals as booleans. *)
Definition Rltb (x y : R) : bool := if Rlt_dec x y then true else false.
Definition Rleb (x y : R) : bool := if Rle_dec x y then true else false.
Definition Reqb (x y : R) : bool := if Req_EM_T x y then true else false.

(** A real power of a number that is not negative: Rpower 0 y is 1 for every y. *)
Definition power (x y : R) : R := if Reqb x 0 then if Reqb y 0 then 1 else 0 else Rpower x y.

(** ** What holds from some point on *)
Lemma eventually_true : eventually (fun _ => True).
Proof. now exists 0%nat. Qed.

Lemma eventually_using (P Q : nat -> Prop) : eventually Q -> eventually (fun n => Q n -> P n) ->
  eventually P.
Proof. intros HQ HP. apply filter_imp with (2 := filter_and _ _ HQ HP). tauto. Qed.

Lemma eventually_less f g c e ts o : expands (fun n => g n - f n) ((c, e) :: ts) o -> led e ts o ->
  0 < c -> eventually (fun n => f n < g n).
Proof.
  intros H L Hc. apply filter_imp with (2 := eventually_positive _ c e ts o H L Hc). intros n Hn.
    lra.
Qed.

Lemma eventually_equal f g : expands (fun n => g n - f n) [] None -> eventually (fun n => f n = g
  n).
Proof.
  intros [C H]. apply filter_imp with (2 := H). intros n Hn. simpl in Hn.
  rewrite Rmult_0_r in Hn. pose proof (Rabs_pos (g n - f n - 0)).
  assert (Z : Rabs (g n - f n - 0) = 0) by lra. apply Rabs_eq_0 in Z. lra.
Qed.

Lemma eventually_table (l : list R) (k : nat -> nat) d : (forall n, (n <= k n)%nat) ->
  eventually (fun n => nth (k n) l d = d).
Proof. intros H. exists (length l). intros n Hn. apply nth_overflow. specialize (H n). lia. Qed.

Lemma eventually_rbar_table (l : list Rbar) (k : nat -> nat) d : (forall n, (n <= k n)%nat) ->
  eventually (fun n => nth (k n) l d = d).
Proof. intros H. exists (length l). intros n Hn. apply nth_overflow. specialize (H n). lia. Qed.

(** ** Absolute values, larger and smaller ones *)
Lemma expands_abs f c e ts o : expands f ((c, e) :: ts) o -> led e ts o -> 0 < c ->
  expands (fun n => Rabs (f n)) ((c, e) :: ts) o.
Proof.
  intros F L Hc. apply expands_ext with (2 := F).
  apply filter_imp with (2 := eventually_positive f c e ts o F L Hc).
  intros n Hn. symmetry. apply Rabs_pos_eq. lra.
Qed.

Lemma expands_abs_opp f c e ts o : expands f ((c, e) :: ts) o -> led e ts o -> c < 0 ->
  expands (fun n => Rabs (f n)) (opposite ((c, e) :: ts)) o.
Proof.
  intros F L Hc. apply expands_ext with (2 := expands_opp f _ o F).
  apply filter_imp with (2 := eventually_negative f c e ts o F L Hc).
  intros n Hn. symmetry. now apply Rabs_left.
Qed.

(** ** Powers of what may be 0 for a while, or from some point on *)
Lemma expands_power_positive f c e ts o r us o' : expands f ((c, e) :: ts) o -> led e ts o ->
  0 < c -> expands (fun n => Rpower (f n) r) us o' -> expands (fun n => power (f n) r) us o'.
Proof.
  intros F L Hc H. apply expands_ext with (2 := H).
  apply filter_imp with (2 := eventually_positive f c e ts o F L Hc).
  intros n Hn. unfold power, Reqb. destruct (Req_EM_T (f n) 0); [lra|trivial].
Qed.

Lemma expands_power_0 f r : expands f [] None -> r <> 0 ->
  expands (fun n => power (f n) r) [] None.
Proof.
  intros [C F] Hr. apply bigO_zero, filter_imp with (2 := F). intros n Hn. simpl in *.
  rewrite Rmult_0_r, Rminus_0_r in Hn. pose proof (Rabs_pos (f n)).
  assert (Z : f n = 0) by (apply Rabs_eq_0; lra). unfold power, Reqb. rewrite Z.
  destruct (Req_EM_T 0 0); [|lra]. destruct (Req_EM_T r 0); [lra|ring].
Qed.

(** ** Residue classes: what a period does to their terms *)
Lemma sign_class q r n : Nat.even q = true -> (-1) ^ (q * n + r) = (-1) ^ r.
Proof.
  intros H. apply Nat.even_spec in H. destruct H as [k ->].
  rewrite pow_add, <- Nat.mul_assoc, pow_mult. replace ((-1) ^ 2) with 1 by ring.
  now rewrite pow1, Rmult_1_l.
Qed.

Lemma mod_class q r d n : d <> 0%nat -> (q mod d = 0)%nat -> ((q * n + r) mod d = r mod d)%nat.
Proof.
  intros Hd H. rewrite Nat.add_mod, Nat.mul_mod, H, Nat.mul_0_l, Nat.mod_0_l, Nat.add_0_l by
    trivial.
  now rewrite Nat.mod_mod.
Qed.

Lemma cos_class x y k : x = y + 2 * INR k * PI -> cos x = cos y.
Proof. intros ->. apply cos_period. Qed.

Lemma sin_class x y k : x = y + 2 * INR k * PI -> sin x = sin y.
Proof. intros ->. apply sin_period. Qed.
