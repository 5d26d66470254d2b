(** The exp-series of p(n) = table(b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b16, b16, b17, b17, b18, b18, b18, b19, b19, b19, b20, b20, b20, b20, b21, b21, b21, b21, b22, b22, b22, b22, b22, b23, b23, b23, b23, b23, b23, b24, b24, b24, b24, b24, b24, b25, b25, b25, b25, b25, b25, b25, b26, b26, b26, b26, b26, b26, b26, b26, b27, b27, b27, b27, b27, b27, b27, b27, b27, b27, b28, b28, b28, b28, b28, b28, b28, b28, b28, b28, b29, b29, b29, b29, b29, b29, b29, b29, b29, b29, b29, b29, b30, b30, b30, b30, b30, b30, b30, b30, b30, b30, b30, b30, b30, b30; b31)
    for b0 real; b1 real; b10 real; b11 real; b12 real; b13 real; b14 real; b15 real; b16 real; b17 real; b18 real; b19 real; b2 real; b20 real; b21 real; b22 real; b23 real; b24 real; b25 real; b26 real; b27 real; b28 real; b29 real; b3 real; b30 real; b31 real; b4 real; b5 real; b6 real; b7 real; b8 real; b9 real
    diverges.

    `coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo. *)

From Farfield Require Import Certificate.
Open Scope R_scope.

Section Verdict.

Variables b0 b1 b10 b11 b12 b13 b14 b15 b16 b17 b18 b19 b2 b20 b21 b22 b23 b24 b25 b26 b27 b28 b29 b3 b30 b31 b4 b5 b6 b7 b8 b9 : R.

Definition p (n : nat) : R := nth n [b0; b1; b2; b3; b4; b5; b6; b7; b8; b9; b10; b11; b12; b13; b14; b15; b16; b16; b16; b17; b17; b18; b18; b18; b19; b19; b19; b20; b20; b20; b20; b21; b21; b21; b21; b22; b22; b22; b22; b22; b23; b23; b23; b23; b23; b23; b24; b24; b24; b24; b24; b24; b25; b25; b25; b25; b25; b25; b25; b26; b26; b26; b26; b26; b26; b26; b26; b27; b27; b27; b27; b27; b27; b27; b27; b27; b27; b28; b28; b28; b28; b28; b28; b28; b28; b28; b28; b29; b29; b29; b29; b29; b29; b29; b29; b29; b29; b29; b29; b30; b30; b30; b30; b30; b30; b30; b30; b30; b30; b30; b30; b30; b30] b31.

Theorem verdict : ~ ex_series (fun n => exp (p n)).
Proof.
  assert (eventually (fun n : nat => nth n [b0; b1; b2; b3; b4; b5; b6; b7; b8; b9; b10; b11; b12;
    b13; b14; b15; b16; b16; b16; b17; b17; b18; b18; b18; b19; b19; b19; b20; b20; b20; b20; b21;
    b21; b21; b21; b22; b22; b22; b22; b22; b23; b23; b23; b23; b23; b23; b24; b24; b24; b24; b24;
    b24; b25; b25; b25; b25; b25; b25; b25; b26; b26; b26; b26; b26; b26; b26; b26; b27; b27; b27;
    b27; b27; b27; b27; b27; b27; b27; b28; b28; b28; b28; b28; b28; b28; b28; b28; b28; b29; b29;
    b29; b29; b29; b29; b29; b29; b29; b29; b29; b29; b30; b30; b30; b30; b30; b30; b30; b30; b30;
    b30; b30; b30; b30; b30] b31 = b31))
    by table.
  assert (expands (fun n : nat => nth n [b0; b1; b2; b3; b4; b5; b6; b7; b8; b9; b10; b11; b12; b13;
    b14; b15; b16; b16; b16; b17; b17; b18; b18; b18; b19; b19; b19; b20; b20; b20; b20; b21; b21;
    b21; b21; b22; b22; b22; b22; b22; b23; b23; b23; b23; b23; b23; b24; b24; b24; b24; b24; b24;
    b25; b25; b25; b25; b25; b25; b25; b26; b26; b26; b26; b26; b26; b26; b26; b27; b27; b27; b27;
    b27; b27; b27; b27; b27; b27; b28; b28; b28; b28; b28; b28; b28; b28; b28; b28; b29; b29; b29;
    b29; b29; b29; b29; b29; b29; b29; b29; b29; b30; b30; b30; b30; b30; b30; b30; b30; b30; b30;
    b30; b30; b30; b30] b31) [(b31, [])] exactly)
    by expand.
  assert (expands p [(b31, [])] exactly)
    by (unfold p; expand).
  rung 0%nat.
Qed.

End Verdict.
