(** The price of distance: which advantage a key must have over the others to get a share of the
    attention, and how many distances an advantage reaches. *)
From Coq Require Import Reals Lra Lia Psatz Arith.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Attention WindowError Leak.
Open Scope R_scope.

(** The price of a key of weight [w] where all keys weigh [B], a row's sum or the whole series. *)
Definition price (B w : R) : R := ln ((B - w) / w).

Definition odds (a : R) : R := a / (1 - a).
Definition logit (a : R) : R := ln (odds a).

(** The log of the mean of e^x over a set of keys, weighted by the bias. *)
Definition logmean (S : nat -> bool) (b x : nat -> R) (i : nat) : R :=
  ln (partial (only S (att b x)) i / partial (only S b) i).

(** How far the logits of a set lie above those of the other keys. *)
Definition advantage (S : nat -> bool) (b x : nat -> R) (i : nat) : R :=
  logmean S b x i - logmean (drop S) b x i.

(** The share of the attention that a set of keys has. *)
Definition mass (S : nat -> bool) (b x : nat -> R) (i : nat) : R :=
  partial (only S (att b x)) i / partial (att b x) i.

(** The set of one key. *)
Definition key (n k : nat) : bool := Nat.eqb n k.

(** A key of weight [w] gets a share [alpha] with the advantage [g]; weights may be 0. *)
Definition reached (B alpha g w : R) : Prop := B <= (1 + exp g / odds alpha) * w.

(** How many of the first [n] distances satisfy [P], and how many of them lie beyond [L]. *)
Fixpoint count (P : nat -> bool) (n : nat) : nat :=
  match n with O => O | S k => if P k then S (count P k) else count P k end.
Definition beyond (L : nat) (P : nat -> bool) (n : nat) : bool := P n && (L <=? n)%nat.

(** ** Lemmas *)
Lemma odds_pos a : 0 < a < 1 -> 0 < odds a.
Proof. intros H. apply Rdiv_lt_0_compat; lra. Qed.

Lemma odds_le a c : 0 <= a -> a <= c -> c < 1 -> odds a <= odds c.
Proof. intros. unfold odds. apply frac_le; nra. Qed.

Lemma odds_lt a c : 0 <= a -> a < c -> c < 1 -> odds a < odds c.
Proof. intros. unfold odds. apply frac_lt; nra. Qed.

Lemma exp_logit_neg g a : 0 < a < 1 -> exp (g - logit a) = exp g / odds a.
Proof.
  intros H. pose proof (odds_pos a H). unfold Rminus, logit.
  rewrite exp_plus, exp_Ropp, exp_ln by trivial. reflexivity.
Qed.

Lemma gain_pos g a : 0 < a < 1 -> 0 < exp g / odds a.
Proof. intros H. apply Rdiv_lt_0_compat; [apply exp_pos|now apply odds_pos]. Qed.

Lemma only_key a n i : (n < i)%nat -> partial (only (key n) a) i = a n.
Proof.
  intros H. induction i as [|i IH]; [lia|]. simpl. destruct (Nat.eq_dec n i) as [->|D].
  - rewrite (partial_ext _ (fun _ => 0)).
    + rewrite partial_const. unfold only, key. rewrite Nat.eqb_refl. ring.
    + intros k Hk. unfold only, key. destruct (Nat.eqb_spec i k); [lia|reflexivity].
  - rewrite IH by lia. unfold only, key. destruct (Nat.eqb_spec n i); [lia|ring].
Qed.

Lemma only_others a n i : (n < i)%nat -> partial (only (drop (key n)) a) i = partial a i - a n.
Proof.
  intros H. rewrite (only_drop (key n) a i), only_key by trivial. ring.
Qed.

(** A set of keys of positive weight has positive weight under every logits. *)
Lemma only_att_pos S b x i : (forall k, 0 <= b k) -> 0 < partial (only S b) i ->
  0 < partial (only S (att b x)) i.
Proof.
  intros Hb. induction i as [|i IH]; simpl; [lra|]. intros H.
  assert (A : 0 <= partial (only S (att b x)) i).
  { apply partial_ge0. intros. apply only_ge0. intros; now apply att_ge0. }
  assert (Z : 0 <= only S (att b x) i) by (apply only_ge0; intros; now apply att_ge0).
  assert (C : 0 <= partial (only S b) i) by (apply partial_ge0; intros; now apply only_ge0).
  destruct C as [C|C]; [specialize (IH C); lra|].
  assert (Hi : 0 < only S b i) by lra. unfold only in *. destruct (S i); [|lra].
  unfold att at 2. pose proof (exp_pos (x i)). assert (0 < exp (x i) * b i) by nra. lra.
Qed.

(** Four numbers: the weights of a set and of its complement, with and without logits. *)
Lemma four S C S' C' : 0 < S -> 0 < C -> 0 < S' -> 0 < C' ->
  logit (S' / (S' + C')) = ln (S' / S) - ln (C' / C) - ln (C / S).
Proof.
  intros. unfold logit, odds. replace (S' / (S' + C') / (1 - S' / (S' + C'))) with (S' / C')
    by (field; lra).
  rewrite !ln_div by trivial. ring.
Qed.

(** ** The identity *)

(** The log-odds of the attention on a set of keys are its advantage less its price. *)
Theorem price_identity S b x i : (forall n, 0 <= b n) ->
  0 < partial (only S b) i -> 0 < partial (only (drop S) b) i ->
  logit (mass S b x i)
  = advantage S b x i - ln (partial (only (drop S) b) i / partial (only S b) i).
Proof.
  intros Hb HS HC. unfold mass. rewrite (only_drop S (att b x) i).
  apply four; trivial; now apply only_att_pos.
Qed.

(** Of one key: the log-odds of the attention on it are its advantage less the price of its
    distance. *)
Theorem price_of_key b x i n : (forall k, 0 <= b k) -> (n < i)%nat -> 0 < b n < partial b i ->
  logit (att b x n / partial (att b x) i) = advantage (key n) b x i - price (partial b i) (b n).
Proof.
  intros Hb Hn Hw. pose proof (price_identity (key n) b x i Hb) as E.
  unfold mass in E. rewrite !only_key, only_others in E by trivial. apply E; lra.
Qed.

Lemma only_series S a : (forall k, 0 <= a k) -> ex_series a -> ex_series (only S a).
Proof.
  intros Ha Hs. apply (bounded_ex_series _ (Series a)); [intros; now apply only_ge0|]. intros n.
  apply Rle_trans with (partial a n); [|now apply partial_le_series].
  apply partial_le. intros k _. specialize (Ha k). unfold only. destruct (S k); lra.
Qed.

Lemma only_att_series_pos S b x : (forall k, 0 <= b k) -> ex_series b -> ex_series (att b x) ->
  0 < Series (only S b) -> 0 < Series (only S (att b x)).
Proof.
  intros Hb Hs Ha H. pose proof (only_series S b Hb Hs) as E.
  pose proof (partial_lim _ _ (Series_correct _ E)) as L. apply is_lim_seq_spec in L.
  destruct (L (mkposreal _ H)) as [N HN]. specialize (HN N (le_n N)). simpl in HN.
  apply Rabs_def2 in HN. apply Rlt_le_trans with (partial (only S (att b x)) N).
  - apply only_att_pos; trivial. lra.
  - assert (P : forall k, 0 <= att b x k) by (intros; now apply att_ge0).
    apply partial_le_series; [intros; now apply only_ge0|now apply only_series].
Qed.

(** The same identity for a set of keys of a whole series. *)
Theorem price_identity_series S b x : (forall n, 0 <= b n) -> ex_series b -> ex_series (att b x) ->
  0 < Series (only S b) -> 0 < Series (only (drop S) b) ->
  logit (Series (only S (att b x)) / Series (att b x))
  = ln (Series (only S (att b x)) / Series (only S b))
    - ln (Series (only (drop S) (att b x)) / Series (only (drop S) b))
    - ln (Series (only (drop S) b) / Series (only S b)).
Proof.
  intros Hb Hs Ha HS HC. assert (P : forall k, 0 <= att b x k) by (intros; now apply att_ge0).
  replace (Series (att b x)) with (Series (only S (att b x)) + Series (only (drop S) (att b x))).
  - apply four; trivial; now apply only_att_series_pos.
  - rewrite <- Series_plus by now apply only_series. apply Series_ext. intros n.
    unfold only, drop. destruct (S n); simpl; ring.
Qed.

(** Of one key of a whole series. *)
Theorem price_of_key_series b x n : (forall k, 0 <= b k) -> ex_series b -> ex_series (att b x) ->
  0 < b n < Series b -> att b x n < Series (att b x) ->
  logit (att b x n / Series (att b x))
  = x n - ln ((Series (att b x) - att b x n) / (Series b - b n)) - price (Series b) (b n).
Proof.
  intros Hb Hs Ha Hw Hlt.
  assert (P : 0 < att b x n) by (apply Rmult_lt_0_compat; [apply exp_pos|lra]).
  replace (att b x n / Series (att b x))
    with (att b x n / (att b x n + (Series (att b x) - att b x n))) by (f_equal; ring).
  rewrite (four (b n) (Series b - b n)) by lra. unfold price. do 2 f_equal.
  unfold att. replace (exp (x n) * b n / b n) with (exp (x n)) by (field; lra). apply ln_exp.
Qed.

(** The advantage is at most the range of the logits ... *)
Theorem advantage_range S b x i lam : (forall n, 0 <= b n) -> range b x i lam ->
  0 < partial (only S b) i -> 0 < partial (only (drop S) b) i -> advantage S b x i <= lam.
Proof.
  intros Hb Hr HS HC. pose proof (exchange b x lam i S (drop S) Hb Hr) as E.
  pose proof (only_att_pos S b x i Hb HS) as PS.
  pose proof (only_att_pos (drop S) b x i Hb HC) as PC.
  unfold advantage, logmean. rewrite <- ln_div by now apply Rdiv_lt_0_compat.
  rewrite <- (ln_exp lam). apply ln_le; [now repeat apply Rdiv_lt_0_compat|].
  apply Rle_div_l; [now apply Rdiv_lt_0_compat|]. apply Rle_div_l; trivial.
  replace (exp lam * (partial (only (drop S) (att b x)) i / partial (only (drop S) b) i)
    * partial (only S b) i)
    with (exp lam * (partial (only S b) i * partial (only (drop S) (att b x)) i)
      / partial (only (drop S) b) i) by (field; lra).
  apply Rle_div_r; trivial.
Qed.

(** ... and attains 2 beta for logits within [-beta, beta]: beta on the set, -beta off it. *)
Theorem advantage_attained S b beta i : (forall n, 0 <= b n) ->
  0 < partial (only S b) i -> 0 < partial (only (drop S) b) i ->
  advantage S b (fun n => if S n then beta else - beta) i = 2 * beta.
Proof.
  intros Hb HS HC. unfold advantage, logmean.
  rewrite (att_const b _ i S beta), (att_const b _ i (drop S) (- beta)).
  - replace (exp beta * partial (only S b) i / partial (only S b) i) with (exp beta)
      by (field; lra).
    replace (exp (- beta) * partial (only (drop S) b) i / partial (only (drop S) b) i)
      with (exp (- beta)) by (field; lra).
    rewrite !ln_exp. ring.
  - intros n _ E. unfold drop in E. destruct (S n); [discriminate|reflexivity].
  - intros n _ E. now rewrite E.
Qed.

(** Within reach: price plus log-odds of the share are at most the advantage. *)
Theorem reached_price B w alpha g : 0 < w < B -> 0 < alpha < 1 ->
  (price B w + logit alpha <= g <-> reached B alpha g w).
Proof.
  intros Hw Ha. pose proof (gain_pos g alpha Ha) as HG.
  assert (P : 0 < (B - w) / w) by (apply Rdiv_lt_0_compat; lra).
  assert (Q : price B w + logit alpha <= g <-> (B - w) / w <= exp g / odds alpha).
  { rewrite <- exp_logit_neg by trivial. unfold price. split; intros H.
    - rewrite <- (exp_ln _ P). apply exp_le. lra.
    - apply ln_le in H; trivial. rewrite ln_exp in H. lra. }
  rewrite Q. unfold reached. rewrite Rle_div_l by lra. split; intros; lra.
Qed.

(** ** A bias spends one unit *)

(** The prices of a row: the sum of 1/(1 + e^price) is 1 ... *)
Theorem unit_row b i : (forall n, 0 < b n) -> (2 <= i)%nat ->
  partial (fun n => / (1 + exp (price (partial b i) (b n)))) i = 1.
Proof.
  intros Hb Hi.
  assert (Hw : weights b) by (split; [intros; left|]; apply Hb).
  pose proof (partial_pos b i Hw ltac:(lia)) as HB.
  rewrite (partial_ext _ (fun n => / partial b i * b n)).
  - rewrite partial_scal. field. lra.
  - intros n Hn. assert (L : 0 < partial b i - b n).
    { rewrite <- only_others by trivial.
      destruct n as [|n].
      - apply Rlt_le_trans with (only (drop (key 0)) b 1); [apply Hb|].
        replace (only (drop (key 0)) b 1) with (partial (only (drop (key 0)) b) 2)
          by (simpl; unfold only, drop, key; simpl; ring).
        apply partial_mono; [|lia]. intros. apply only_ge0. intros; left; apply Hb.
      - apply Rlt_le_trans with (only (drop (key (S n))) b 0); [apply Hb|].
        replace (only (drop (key (S n))) b 0) with (partial (only (drop (key (S n))) b) 1)
          by (simpl; ring).
        apply partial_mono; [|lia]. intros. apply only_ge0. intros; left; apply Hb. }
    specialize (Hb n). unfold price. rewrite exp_ln by (apply Rdiv_lt_0_compat; lra).
    field. lra.
Qed.

Lemma less_than_series b n : (forall k, 0 < b k) -> ex_series b -> b n < Series b.
Proof.
  intros Hb Hs.
  assert (Hge : forall k, 0 <= b k) by (intros; left; apply Hb).
  pose proof (partial_le_series b (S (S n)) Hge Hs) as L. simpl in L.
  pose proof (partial_ge0 b n (fun k _ => Hge k)). pose proof (Hb (S n)). lra.
Qed.

(** ... and so it is for the whole series. *)
Theorem unit_series b : (forall n, 0 < b n) -> ex_series b ->
  is_series (fun n => / (1 + exp (price (Series b) (b n)))) 1.
Proof.
  intros Hb Hs. pose proof (less_than_series b 0 Hb Hs). pose proof (Hb 0%nat).
  pose proof (is_series_scal (/ Series b) b (Series b) (Series_correct b Hs)) as L.
  change (scal (/ Series b) (Series b)) with (/ Series b * Series b) in L.
  rewrite Rinv_l in L by lra.
  apply is_series_ext with (2 := L). intros n. pose proof (less_than_series b n Hb Hs).
  specialize (Hb n). unfold price, scal. simpl. unfold mult. simpl.
  rewrite exp_ln by (apply Rdiv_lt_0_compat; lra). field. lra.
Qed.

(** Conversely every list of numbers with this sum is the list of prices of a row. *)
Theorem unit_converse (pi : nat -> R) i : let b := fun n => / (1 + exp (pi n)) in
  partial b i = 1 -> forall n, price (partial b i) (b n) = pi n.
Proof.
  intros b H n. rewrite H. unfold price, b. pose proof (exp_pos (pi n)).
  replace ((1 - / (1 + exp (pi n))) / / (1 + exp (pi n))) with (exp (pi n)) by (field; lra).
  apply ln_exp.
Qed.

(** ** The count *)
Lemma count_partial P n : INR (count P n) = partial (fun k => if P k then 1 else 0) n.
Proof.
  induction n as [|n IH]; [reflexivity|]. simpl count. simpl partial. rewrite <- IH.
  destruct (P n); [rewrite S_INR|]; ring.
Qed.

Lemma count_some P n k : (k < n)%nat -> P k = true -> (1 <= count P n)%nat.
Proof.
  intros H E. induction n as [|n IH]; [lia|]. simpl.
  destruct (Nat.eq_dec k n) as [->|D]; [rewrite E; lia|].
  specialize (IH ltac:(lia)). destruct (P n); lia.
Qed.

Lemma count_beyond b B alpha g P L i : (forall n, 0 <= b n) -> 0 < alpha < 1 ->
  (forall n, (n < i)%nat -> P n = true -> reached B alpha g (b n)) -> (L <= i)%nat ->
  INR (count (beyond L P) i) * B <= (1 + exp g / odds alpha) * between b L i.
Proof.
  intros Hb Ha HP HL. pose proof (gain_pos g alpha Ha) as HG.
  rewrite count_partial, Rmult_comm, <- partial_scal, <- only_beyond by trivial.
  rewrite <- partial_scal. apply partial_le. intros k Hk.
  unfold beyond, only, drop, window. destruct (P k) eqn:E; simpl.
  - destruct (Nat.leb_spec L k); destruct (Nat.ltb_spec k L); simpl; try lia; [|lra].
    specialize (HP k Hk E). unfold reached in HP. lra.
  - specialize (Hb k). destruct (k <? L)%nat; simpl; nra.
Qed.

(** An advantage g reaches at most leak times (1 + e^{g'}) distances of a row beyond the training
    length L, where g' = g - logit alpha; L = 0 counts all of them. *)
Theorem count_row b alpha g P L i : weights b -> 0 < alpha < 1 -> (L <= i)%nat -> (1 <= i)%nat ->
  (forall n, (n < i)%nat -> P n = true -> reached (partial b i) alpha g (b n)) ->
  INR (count (beyond L P) i) <= leak b L i * (1 + exp (g - logit alpha)).
Proof.
  intros Hb Ha HL Hi HP. pose proof (partial_pos b i Hb Hi) as HB.
  pose proof (count_beyond b _ alpha g P L i (proj1 Hb) Ha HP HL) as C.
  rewrite exp_logit_neg by trivial. unfold leak, between in *.
  apply Rle_div_r in C; trivial.
  eapply Rle_trans; [exact C|]. right. field. pose proof (odds_pos alpha Ha). lra.
Qed.

(** The same for the whole series: its leak is T_L/B. *)
Theorem count_series b alpha g P L i : weights b -> ex_series b -> 0 < alpha < 1 -> (L <= i)%nat ->
  (forall n, (n < i)%nat -> P n = true -> reached (Series b) alpha g (b n)) ->
  INR (count (beyond L P) i) <= tail b L / Series b * (1 + exp (g - logit alpha)).
Proof.
  intros Hb Hs Ha HL HP. pose proof (series_pos b Hb Hs) as HB.
  pose proof (count_beyond b _ alpha g P L i (proj1 Hb) Ha HP HL) as C.
  pose proof (between_le_tail b L i (proj1 Hb) Hs) as T. pose proof (gain_pos g alpha Ha) as HG.
  rewrite exp_logit_neg by trivial. apply Rle_div_r in C; trivial.
  eapply Rle_trans; [exact C|].
  replace (tail b L / Series b * (1 + exp g / odds alpha))
    with ((1 + exp g / odds alpha) * tail b L / Series b)
    by (field; pose proof (odds_pos alpha Ha); lra).
  unfold Rdiv at 1 3. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
  apply Rmult_le_compat_l; lra.
Qed.

(** Without a bias the count is attained: the advantage log(N - 1) reaches all of N keys. *)
Theorem count_attained i : (2 <= i)%nat ->
  forall n, reached (partial (fun _ => 1) i) (1 / 2) (ln (INR i - 1)) ((fun _ : nat => 1) n).
Proof.
  intros Hi n. assert (2 <= INR i) by (apply (le_INR 2); trivial).
  unfold reached, odds. rewrite partial_const, exp_ln by lra.
  replace (1 / 2 / (1 - 1 / 2)) with 1 by field. lra.
Qed.

(** ** The odds law *)

(** The input that puts the most beyond L. *)
Definition far (L : nat) (beta : R) (n : nat) : R := if (n <? L)%nat then - beta else beta.

Lemma far_bounded L beta i : 0 <= beta -> bounded beta (far L beta) i.
Proof.
  intros H n _. unfold far. destruct (n <? L)%nat; [rewrite Rabs_Ropp|]; rewrite Rabs_pos_eq; lra.
Qed.

Lemma far_outside b L beta i : weights b -> (1 <= L <= i)%nat ->
  odds (outside b (far L beta) i L) = exp (2 * beta) * between b L i / partial b L.
Proof.
  intros Hb [HL Hi]. pose proof (partial_pos b L Hb HL) as HB.
  assert (HT : 0 <= between b L i) by (apply between_ge0; trivial; apply Hb).
  assert (EI : partial (att b (far L beta)) L = exp (- beta) * partial b L).
  { rewrite <- partial_scal. apply partial_ext. intros k Hk. unfold att, far.
    now rewrite (proj2 (Nat.ltb_lt k L) Hk). }
  assert (EO : between (att b (far L beta)) L i = exp beta * between b L i).
  { rewrite !between_shift by trivial. rewrite <- partial_scal. apply partial_ext. intros k _.
    unfold att, far. now rewrite (proj2 (Nat.ltb_ge (L + k) L)) by lia. }
  unfold odds, outside. replace (partial (att b (far L beta)) i)
    with (between (att b (far L beta)) L i + partial (att b (far L beta)) L)
    by (unfold between; ring).
  rewrite EI, EO. replace (2 * beta) with (beta + beta) by ring. rewrite exp_plus, exp_Ropp.
  pose proof (exp_pos beta) as E. assert (0 < exp beta * exp beta) by nra.
  field. repeat split; try lra. nra.
Qed.

(** If no input with logits within [-beta, beta] puts more than eta beyond L, and the advantage
    2 beta reaches c distances beyond L with a share alpha, then c odds(alpha) <= odds(eta). *)
Theorem odds_law b beta alpha eta P L i : weights b -> (1 <= L <= i)%nat -> 0 <= beta ->
  0 < alpha < 1 -> eta < 1 ->
  (forall x, bounded beta x i -> outside b x i L <= eta) ->
  (forall n, (n < i)%nat -> P n = true -> reached (partial b i) alpha (2 * beta) (b n)) ->
  INR (count (beyond L P) i) * odds alpha <= odds eta.
Proof.
  intros Hb HL Hbeta Ha He Hx HP.
  pose proof (partial_pos b L Hb (proj1 HL)) as HI.
  pose proof (between_ge0 b L i (proj1 Hb) (proj2 HL)) as HT.
  pose proof (odds_pos alpha Ha) as HO. pose proof (exp_pos (2 * beta)) as HG.
  set (c := count (beyond L P) i) in *.
  assert (M : odds (outside b (far L beta) i L) <= odds eta).
  { apply odds_le; trivial; [|now apply Hx, far_bounded].
    unfold outside. apply Rdiv_le_0_compat.
    - apply between_ge0; [|apply HL]. intros; apply att_ge0, Hb.
    - apply partial_pos; [now apply att_weights|lia]. }
  rewrite far_outside in M by trivial. eapply Rle_trans; [|exact M].
  apply Rmult_le_reg_r with (1 := HI).
  replace (exp (2 * beta) * between b L i / partial b L * partial b L)
    with (exp (2 * beta) * between b L i) by (field; lra).
  pose proof (count_beyond b _ alpha (2 * beta) P L i (proj1 Hb) Ha HP (proj2 HL)) as C.
  fold c in C. replace (partial b i) with (partial b L + between b L i) in C
    by (unfold between; ring).
  destruct c as [|k].
  - change (INR 0) with 0. rewrite !Rmult_0_l. apply Rmult_le_pos; lra.
  - assert (K : 1 <= INR (S k)) by (apply (le_INR 1); lia).
    assert (D : INR (S k) * partial b L <= exp (2 * beta) / odds alpha * between b L i) by nra.
    apply Rmult_le_compat_r with (r := odds alpha) in D; [|lra].
    replace (exp (2 * beta) / odds alpha * between b L i * odds alpha)
      with (exp (2 * beta) * between b L i) in D by (field; lra). lra.
Qed.

(** Whoever can give half of the mass to c far keys can be made to put c/(c+1) there. *)
Corollary odds_law_half b beta eta P L i : weights b -> (1 <= L <= i)%nat -> 0 <= beta -> eta < 1 ->
  (forall x, bounded beta x i -> outside b x i L <= eta) ->
  (forall n, (n < i)%nat -> P n = true -> reached (partial b i) (1 / 2) (2 * beta) (b n)) ->
  INR (count (beyond L P) i) / (INR (count (beyond L P) i) + 1) <= eta.
Proof.
  intros Hb HL Hbeta He Hx HP.
  pose proof (odds_law b beta (1 / 2) eta P L i Hb HL Hbeta ltac:(lra) He Hx HP) as H.
  set (c := INR (count (beyond L P) i)) in *. pose proof (pos_INR (count (beyond L P) i)) as Hc.
  fold c in Hc. unfold odds in H. replace (1 / 2 / (1 - 1 / 2)) with 1 in H by field.
  rewrite Rmult_1_r in H. apply Rle_div_r in H; [|lra]. apply Rle_div_l; lra.
Qed.

(** ** Biases that do not rise *)

(** Distance n costs at least log n, in a row ... *)
Theorem price_monotone b i n : weights b -> (forall k l, (k <= l)%nat -> b l <= b k) ->
  (1 <= n < i)%nat -> 0 < b n -> ln (INR n) <= price (partial b i) (b n).
Proof.
  intros Hb Hd Hn Hp. assert (1 <= INR n) by (apply (le_INR 1); lia).
  apply ln_le; [lra|]. apply Rle_div_r; trivial.
  pose proof (partial_mono b (S n) i (proj1 Hb) ltac:(lia)) as M. simpl in M.
  assert (N : b n * INR n <= partial b n).
  { rewrite <- partial_const. apply partial_le. intros. apply Hd. lia. }
  lra.
Qed.

(** ... and more beyond a length L whose leak is small. *)
Theorem price_monotone_far b i L n : weights b -> (forall k l, (k <= l)%nat -> b l <= b k) ->
  (1 <= L <= n)%nat -> (n < i)%nat -> 0 < b n ->
  ln (INR (n - L + 1) / leak b L i - 1) <= price (partial b i) (b n).
Proof.
  intros Hb Hd HL Hn Hp. pose proof (partial_pos b L Hb (proj1 HL)) as HI.
  assert (N : b n * INR (n - L + 1) <= between b L i).
  { apply Rle_trans with (between b L (S n)).
    - rewrite between_shift by lia. replace (S n - L)%nat with (n - L + 1)%nat by lia.
      rewrite <- partial_const. apply partial_le. intros. apply Hd. lia.
    - unfold between. pose proof (partial_mono b (S n) i (proj1 Hb) ltac:(lia)). lra. }
  assert (1 <= INR (n - L + 1)) by (apply (le_INR 1); lia).
  assert (HT : 0 < between b L i) by nra.
  assert (E : leak b L i = between b L i / (partial b L + between b L i)).
  { unfold leak, between in *. field. lra. }
  unfold price. replace ((partial b i - b n) / b n) with (partial b i / b n - 1) by (field; lra).
  assert (Q : INR (n - L + 1) / leak b L i <= partial b i / b n).
  { rewrite E. replace (INR (n - L + 1) / (between b L i / (partial b L + between b L i)))
      with (INR (n - L + 1) * (partial b L + between b L i) / between b L i) by (field; lra).
    replace (partial b L + between b L i) with (partial b i) by (unfold between; ring).
    assert (0 < partial b i) by (unfold between in HT; lra).
    apply frac_le; trivial. nra. }
  apply ln_le; [|lra]. rewrite E.
  replace (INR (n - L + 1) / (between b L i / (partial b L + between b L i)) - 1)
    with ((INR (n - L + 1) * (partial b L + between b L i) - between b L i) / between b L i)
    by (field; lra).
  apply Rdiv_lt_0_compat; trivial. nra.
Qed.

(** Where the series converges, a far distance costs more than log n by any amount. *)
Theorem price_above_log b : weights b -> (forall k l, (k <= l)%nat -> b l <= b k) ->
  (forall n, 0 < b n) -> ex_series b ->
  is_lim_seq (fun n => price (Series b) (b n) - ln (INR n)) p_infty.
Proof.
  intros Hb Hd Hp Hs. apply is_lim_seq_spec. intros M.
  pose proof (series_pos b Hb Hs) as HB. pose proof (exp_pos M) as HE.
  assert (H1 : 0 < Series b / (2 * (exp M + 1))) by (apply Rdiv_lt_0_compat; lra).
  destruct (tail_small b (Series b / (2 * (exp M + 1)) ) Hs H1) as [J HJ].
  exists (2 * J + 1)%nat. intros n Hn. specialize (HJ (n / 2)%nat).
  assert (Hh : (J <= n / 2)%nat) by (apply Nat.div_le_lower_bound; lia).
  specialize (HJ Hh). assert (Hhn : (2 * (n / 2) <= n)%nat) by (apply Nat.mul_div_le; lia).
  assert (N : b n * INR (n - n / 2) <= tail b (n / 2)).
  { apply Rle_trans with (between b (n / 2) n); [|apply between_le_tail; trivial; apply Hb].
    rewrite between_shift by lia. rewrite <- partial_const. apply partial_le.
    intros k Hk. apply Hd. lia. }
  assert (Hm : INR n <= 2 * INR (n - n / 2)).
  { rewrite <- (mult_INR 2). apply le_INR. lia. }
  assert (I1 : 1 <= INR n) by (apply (le_INR 1); lia).
  pose proof (Hp n) as Pn. pose proof (less_than_series b n Hp Hs) as Ln.
  assert (K : INR n * b n * (exp M + 1) < Series b).
  { apply Rle_lt_trans with (2 * tail b (n / 2) * (exp M + 1)); [|].
    - apply Rmult_le_compat_r; [lra|]. nra.
    - apply Rmult_lt_compat_r with (r := 2 * (exp M + 1)) in HJ; [|lra].
      replace (Series b / (2 * (exp M + 1)) * (2 * (exp M + 1))) with (Series b) in HJ
        by (field; lra). lra. }
  assert (Q : exp M < (Series b - b n) / b n / INR n).
  { assert (b n <= INR n * b n) by nra. apply Rmult_lt_reg_r with (INR n * b n); [nra|].
    replace ((Series b - b n) / b n / INR n * (INR n * b n)) with (Series b - b n)
      by (field; lra).
    lra. }
  apply ln_increasing in Q; trivial. rewrite ln_exp in Q. unfold price.
  rewrite <- ln_div by (try apply Rdiv_lt_0_compat; lra). exact Q.
Qed.

(** ** Prices and convergence *)

(** A price does not fall as its row grows. *)
Theorem price_grows b n i i' : (forall k, 0 < b k) -> (n + 2 <= i <= i')%nat ->
  price (partial b i) (b n) <= price (partial b i') (b n).
Proof.
  intros Hb Hi. assert (Hge : forall k, 0 <= b k) by (intros; left; apply Hb).
  pose proof (partial_mono b (S (S n)) i Hge ltac:(lia)) as L. simpl in L.
  pose proof (partial_ge0 b n (fun k _ => Hge k)). pose proof (Hb (S n)). pose proof (Hb n).
  pose proof (partial_mono b i i' Hge ltac:(lia)).
  apply ln_le; [apply Rdiv_lt_0_compat; lra|]. unfold Rdiv.
  apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|lra].
Qed.

(** It stays below a bound, whatever the row, exactly if sum b_n converges. *)
Theorem price_bounded_iff_converges b n : (forall k, 0 < b k) ->
  ((exists M, forall i, (n + 2 <= i)%nat -> price (partial b i) (b n) <= M) <-> ex_series b).
Proof.
  intros Hb. assert (Hge : forall k, 0 <= b k) by (intros; left; apply Hb). split.
  - intros [M HM]. apply (bounded_ex_series b ((exp M + 1) * b n) Hge). intros i.
    apply Rle_trans with (partial b (Nat.max i (n + 2))); [apply partial_mono; trivial; lia|].
    specialize (HM (Nat.max i (n + 2)) ltac:(lia)). set (m := Nat.max i (n + 2)) in *.
    pose proof (partial_mono b (S (S n)) m Hge ltac:(lia)) as L. simpl in L.
    pose proof (partial_ge0 b n (fun k _ => Hge k)). pose proof (Hb (S n)). pose proof (Hb n).
    apply exp_le in HM. unfold price in HM. rewrite exp_ln in HM by (apply Rdiv_lt_0_compat; lra).
    apply Rle_div_l in HM; lra.
  - intros Hs. exists (price (Series b) (b n)). intros i Hi.
    pose proof (partial_mono b (S (S n)) i Hge ltac:(lia)) as L. simpl in L.
    pose proof (partial_ge0 b n (fun k _ => Hge k)). pose proof (Hb (S n)). pose proof (Hb n).
    pose proof (partial_le_series b i Hge Hs).
    apply ln_le; [apply Rdiv_lt_0_compat; lra|]. unfold Rdiv.
    apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|lra].
Qed.

(** ** Reach and windows *)

(** What is within reach in the whole series is so in every row. *)
Theorem reached_in_rows b alpha g n i : (forall k, 0 <= b k) -> ex_series b ->
  reached (Series b) alpha g (b n) -> reached (partial b i) alpha g (b n).
Proof. intros Hb Hs H. pose proof (partial_le_series b i Hb Hs). unfold reached in *. lra. Qed.

(** Reach lies inside the window: if no input with logits within [-beta, beta] puts more than e
    beyond w keys, the advantage 2 beta reaches no key beyond them with a larger share. *)
Theorem reach_inside_window b beta alpha e w i n : weights b -> (1 <= w)%nat -> 0 <= beta ->
  e < alpha < 1 -> 0 < alpha -> (w <= n < i)%nat ->
  (forall x, bounded beta x i -> outside b x i w <= e) ->
  ~ reached (partial b i) alpha (2 * beta) (b n).
Proof.
  intros Hb Hw Hbeta Ha Ha0 Hn Hx Hr.
  assert (H : INR (count (beyond w (key n)) i) * odds alpha <= odds e).
  { apply (odds_law b beta alpha e (key n) w i); trivial; try lia; try lra.
    intros k _ E. apply Nat.eqb_eq in E. now subst. }
  assert (C : (1 <= count (beyond w (key n)) i)%nat).
  { apply (count_some _ _ n); [lia|]. unfold beyond, key. rewrite Nat.eqb_refl. simpl.
    apply Nat.leb_le. lia. }
  assert (K : 1 <= INR (count (beyond w (key n)) i)) by (now apply (le_INR 1)).
  pose proof (odds_pos alpha ltac:(lra)) as O.
  assert (E0 : 0 <= e).
  { apply Rle_trans with (outside b (far w beta) i w); [|now apply Hx, far_bounded].
    unfold outside. apply Rdiv_le_0_compat.
    - apply between_ge0; [|lia]. intros; apply att_ge0, Hb.
    - apply partial_pos; [now apply att_weights|lia]. }
  pose proof (odds_lt e alpha E0 ltac:(lra) ltac:(lra)). nra.
Qed.

(** The same for the whole series and every row. *)
Corollary reach_inside_window_series b beta alpha e w n : weights b -> ex_series b ->
  (1 <= w)%nat -> 0 <= beta -> e < alpha < 1 -> 0 < alpha -> (w <= n)%nat ->
  (forall i x, (w <= i)%nat -> bounded beta x i -> outside b x i w <= e) ->
  ~ reached (Series b) alpha (2 * beta) (b n).
Proof.
  intros Hb Hs Hw Hbeta Ha Ha0 Hn Hx Hr.
  apply (reach_inside_window b beta alpha e w (S n) n); trivial; try lia.
  - intros x. apply Hx. lia.
  - apply reached_in_rows; trivial. apply Hb.
Qed.

Section Values.
Context {E : NormedModule R_AbsRing}.

(** A window that keeps every output of the row within e, for values within V: no key beyond it is
    within reach with a share above e/(2 V). *)
Theorem certified_window_reach b beta V e alpha w i n (u : E) : norm u = 1 -> weights b ->
  (1 <= w)%nat -> 0 <= beta -> 0 < V -> e / (2 * V) < alpha < 1 -> 0 < alpha -> (w <= n < i)%nat ->
  (forall x (v : nat -> E), bounded beta x i -> vbounded V v i -> delta b x v i w <= e) ->
  ~ reached (partial b i) alpha (2 * beta) (b n).
Proof.
  intros Hu Hb Hw Hbeta HV Ha Ha0 Hn Hx.
  apply (reach_inside_window b beta alpha (e / (2 * V)) w i n); trivial.
  intros x Hb'. assert (Hp : forall k, 0 <= att b x k) by (intros; apply att_ge0, Hb).
  specialize (Hx x (opposite (window w) V u) Hb' ltac:(apply opposite_bounded; trivial; lra)).
  unfold delta in Hx. rewrite error_attained in Hx; trivial; try lra.
  - rewrite only_window, only_beyond in Hx by lia. unfold outside.
    replace (partial (att b x) i) with (between (att b x) w i + partial (att b x) w)
      by (unfold between; ring).
    apply Rmult_le_reg_r with (2 * V); [lra|].
    replace (e / (2 * V) * (2 * V)) with e by (field; lra). lra.
  - rewrite only_window by lia. apply partial_pos; trivial. now apply att_weights.
Qed.
End Values.
