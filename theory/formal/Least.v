(** The least natural number with a property. *)
From Coq Require Import Arith Lia.

(** [is_least P m]: m = min { j | P j }. *)
Definition is_least (P : nat -> Prop) (m : nat) : Prop := P m /\ forall k, P k -> m <= k.

Lemma least_exists (P : nat -> Prop) n : (forall k, P k \/ ~ P k) -> P n -> exists m, is_least P m.
Proof.
  intros D Hn. assert (H : forall n, (exists m, is_least P m) \/ forall k, k < n -> ~ P k).
  { clear n Hn. induction n as [|n [IH|IH]]; [right; lia|now left|].
    destruct (D n) as [Pn|Pn].
    - left. exists n. split; trivial. intros k Hk. destruct (le_lt_dec n k); trivial.
      now destruct (IH k).
    - right. intros k Hk. destruct (Nat.eq_dec k n) as [->|]; trivial. apply IH. lia. }
  destruct (H (S n)) as [|H']; trivial. exfalso. apply (H' n); trivial. lia.
Qed.

(** The least number with a weaker property is no larger. *)
Lemma least_le (P Q : nat -> Prop) m n : is_least P m -> is_least Q n -> (forall k, Q k -> P k) ->
  m <= n.
Proof. intros [_ H] [Hn _] HQ. apply H, HQ, Hn. Qed.
