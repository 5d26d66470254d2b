"""Every sentence and every named value of an answer, beside the fields that it is about."""

import math
from dataclasses import replace as but

import numpy as np
import pytest
import sympy
from flint import arb, fmpq
from sympy import Rational, S

import farfield
from farfield import (
    AttentionCeiling,
    Comparison,
    Design,
    DistancePrice,
    Horizon,
    LayeredReceptiveField,
    Leak,
    Ranking,
    Reach,
    ReceptiveField,
    ReceptiveFields,
    Resolution,
    RowCertificates,
    SampledCertificates,
    Window,
    WindowError,
)
from farfield.numerics.search import Bracket, Enclosure, Exact
from farfield.theory.answers.answer import Code, Label, Reason, Status
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import Proof

DIVERGES = {"reason": Reason(Code.DIVERGES, "so")}
THEOREM = {"label": Label.THEOREM}
INFINITE = {"status": Status.INFINITE} | THEOREM | DIVERGES
NEVER = INFINITE | {"reason": Reason(Code.NEVER, "so")}
ENCLOSED = {"status": Status.ENCLOSED, "reason": Reason(Code.NO_ENCLOSURE, "so")}
UNKNOWN = {"status": Status.UNKNOWN, "label": None, "reason": Reason(Code.BUDGET, "so")}
OUTSIDE = UNKNOWN | {"status": Status.OUT_OF_SCOPE}
P = -n / 8


def heads(*each, **fields):
    """The first of several heads, which speaks for them."""
    return but(each[0], formula=None, heads=each, subject="x", **fields)


LEAK = Leak(P, 64, 512, 0.25, (0.2, 0.3))
ALL = but(LEAK, value=1.0, tested=None, **THEOREM)
HORIZON = Horizon(P, "bf16", False, 7)
FOREVER = but(HORIZON, tokens=math.inf, **NEVER)
FIELD = ReceptiveField(P, Rational(1, 100), None, 61, Exact(61))
ONE = but(FIELD, tokens=1, answer=Exact(1))
NO_FIELD = but(FIELD, tokens=math.inf, answer=None, **INFINITE)
SHORT = but(FIELD, eps=Rational(1, 10), tokens=6, answer=Exact(6))
ROW = {"finite": but(FIELD, length=4096, label=Label.APPROXIMATE)}
RESOLUTION = Resolution(P, None, S.One, "none", "so", 0.25, (0.2, 0.3), None, 0.25)
PRICE = DistancePrice(P, 7, None, 2.5, (2.4, 2.6))
ALONE = but(PRICE, value=-math.inf, length=1, **INFINITE | {"reason": Reason(Code.ONLY_KEY, "so")})
REACH = Reach(P, Rational(7), Rational(1, 2), None, 25, 24, Exact(25), ((0, 24),))
NONE = but(REACH, tokens=0, farthest=None, answer=Exact(0), intervals=())
SOME = but(NONE, tokens=None, answer=Bracket(1, 2), length=64, **ENCLOSED)
WINDOW = Window(P, Rational(1, 100), Rational(1), Rational(3, 2), 61)
NO_WINDOW = but(WINDOW, width=math.inf, **INFINITE)
ERROR = WindowError(P, 61, 0.25, (0.2, 0.3))
CEILING = AttentionCeiling(P, Rational(4), 64, 63, 0.421349, (0.42, 0.43), 144)
LAYERS = LayeredReceptiveField(P, 12, Rational(2, 5), Rational(99, 100), None, 201)
TOKENS = ("1 token", "2 tokens", "3 tokens")
PAIR = Comparison((P, -n), ("f", "g"), "a", S.Infinity, 0.25, (0.2, 0.3), None, 4, Proof("so"))
BARE = but(PAIR, crossover=None, enclosure=None, index=None, limit=None)
ANY = but(BARE, crossover=1.0, enclosure=(1.0, 1.0))
OF_A = [(f"f{k}", P, "converges", TOKENS) for k in range(7)]
RANKING = Ranking((*OF_A[:2], ("h", P, "diverges", TOKENS)), (PAIR,))
BOUNDS = np.array([0, 0, 0.05, 0.23456, 0.5])
ROWS = RowCertificates(10, 1, 0.1, BOUNDS, BOUNDS < 0.1, 1 / 3)
DRAWN = SampledCertificates(10, 1, 0.1, 256, 0.01, BOUNDS, 1 / 3, 1 / 4)
DESIGN = Design(
    *("alibi", "m", ("TRF(1 %) = 512",), ("TRF(1 %)",)),
    *((Rational(1, 3), Rational(1, 2)), (Rational(2), Rational(3)), (False, True), Rational(1)),
    achieved=512,
    monotone=True,
    call="encoding",
)
DIGITS = (Rational(314159265357, 10**12), Rational(314159265359, 10**12))
OF_HEADS = but(DESIGN, value=None, heads=(DESIGN, DESIGN), values=(1, 2), achieved=(512, 512))
SAID = [
    (
        LEAK,
        "−n/8: in a row of 512 keys, 25 % of a query's prior mass lies beyond 64 "
        "tokens.  [certified] | leak(64, 512 keys): 0.25",
    ),
    (
        but(LEAK, tested=None),
        "−n/8: as rows grow, 25 % of a query's prior mass lies beyond 64 tokens.  "
        "[certified] | leak(64, ever longer rows): 0.25",
    ),
    (
        but(LEAK, trained=1, tested=1),
        "−n/8: in a row of 1 key, 25 % of a query's prior mass lies beyond 1 token.  "
        "[certified] | leak(1, 1 key): 0.25",
    ),
    (
        ALL,
        "−n/8: as rows grow, all of a query's prior mass comes to lie beyond any 64 "
        "tokens.  [theorem] | leak(64, ever longer rows): 1",
    ),
    (
        but(LEAK, value=None, **ENCLOSED),
        "−n/8: in a row of 512 keys, the share of a query's prior mass that lies beyond"
        " 64 tokens is between 0.2 and 0.3.  [certified] | leak(64, 512 keys): between "
        "0.2 and 0.3 | why: so",
    ),
    (
        but(LEAK, value=None, enclosure=None, **UNKNOWN),
        "−n/8: how much of a query's prior mass lies beyond 64 tokens is not known. | why: so",
    ),
    (
        but(LEAK, value=None, **OUTSIDE),
        "−n/8: there is no prior mass by distance to speak of: so.",
    ),
    (
        but(LEAK, value=1e-6),
        "−n/8: in a row of 512 keys, a share of 1e-06 of a query's prior mass lies "
        "beyond 64 tokens.  [certified] | leak(64, 512 keys): 1e-06",
    ),
    (
        but(LEAK, value=1.1e-6),
        "−n/8: in a row of 512 keys, 0.00011 % of a query's prior mass lies beyond 64 "
        "tokens.  [certified] | leak(64, 512 keys): 1.1e-06",
    ),
    (
        but(LEAK, value=1e-300),
        "−n/8: in a row of 512 keys, a share of 1e-300 of a query's prior mass lies "
        "beyond 64 tokens.  [certified] | leak(64, 512 keys): 1e-300",
    ),
    (
        but(LEAK, value=1e-301),
        "−n/8: in a row of 512 keys, a share below 1e-300 of a query's prior mass lies "
        "beyond 64 tokens.  [certified] | leak(64, 512 keys): below 1e-300",
    ),
    (
        but(LEAK, value=0.0),
        "−n/8: in a row of 512 keys, 0 % of a query's prior mass lies beyond 64 tokens."
        "  [certified] | leak(64, 512 keys): 0",
    ),
    (
        heads(LEAK, but(LEAK, value=0.125)),
        "x: in a row of 512 keys, 25 % of a query's prior mass lies beyond 64 tokens, "
        "in the worst head.  [certified] | leak(64, 512 keys): 0.25 | by head: 0.25, "
        "0.125",
    ),
    (
        heads(ALL, LEAK),
        "x: as rows grow, all of a query's prior mass comes to lie beyond any 64 "
        "tokens, in the worst head.  [theorem] | leak(64, ever longer rows): 1 | by "
        "head: 1, 0.25",
    ),
    (
        HORIZON,
        "−n/8: from distance 7 on every weight rounds to 0 in bf16.  [certified]",
    ),
    (
        FOREVER,
        "−n/8: the weights never round to 0 for good in bf16.  [theorem] | why: so",
    ),
    (
        but(HORIZON, tokens=None, dtype="fp16", flush_to_zero=True, **UNKNOWN),
        "−n/8: it is not known from where on the weights round to 0 in fp16 with "
        "subnormals flushed. | why: so",
    ),
    (
        but(HORIZON, tokens=None, **OUTSIDE),
        "−n/8: there are no weights by distance: so.",
    ),
    (
        heads(HORIZON, but(HORIZON, tokens=1)),
        "x: from distance 7 on every weight rounds to 0 in bf16, in the farthest head."
        "  [certified] | by head: 7, 1",
    ),
    (
        heads(FOREVER, HORIZON),
        "x: the weights never round to 0 for good in bf16, in the farthest head.  "
        "[theorem] | by head: infinitely many, 7 | why: so",
    ),
    (
        FIELD,
        "−n/8: the nearest 61 tokens hold all but 1 % of the mass.  [certified] | "
        "tokens: TRF(1/100) = 61 tokens",
    ),
    (
        but(FIELD, length=700, total=fmpq(5, 2)),
        "−n/8: the nearest 61 tokens hold all but 1 % of the mass of a row of 700 keys."
        "  [certified] | tokens: TRF(1/100) = 61 tokens | sum: B = 5/2",
    ),
    (
        but(FIELD, total=arb(2.5, 0.001)),
        "−n/8: the nearest 61 tokens hold all but 1 % of the mass.  [certified] | "
        "tokens: TRF(1/100) = 61 tokens | sum: B = 2.50 ± 1.01e-3",
    ),
    (
        but(ONE, length=1),
        "−n/8: the nearest token alone holds all but 1 % of the mass of a row of 1 key."
        "  [certified] | tokens: TRF(1/100) = 1 token",
    ),
    (
        but(FIELD, tokens=None, answer=Bracket(4, 5), length=9, **ENCLOSED),
        "−n/8: the number of nearest tokens that hold all but 1 % of the mass of a row "
        "of 9 keys is between 4 and 5.  [certified] | tokens: TRF(1/100) = between 4 "
        "and 5 tokens | why: so",
    ),
    (
        but(FIELD, tokens=None, answer=Enclosure(45.25, 45.5), **ENCLOSED),
        "−n/8: the number of nearest tokens that hold all but 1 % of the mass is "
        "between exp(45.25) and exp(45.5).  [certified] | tokens: TRF(1/100) = between "
        "exp(45.25) and exp(45.5) tokens | why: so",
    ),
    (
        NO_FIELD,
        "−n/8: no number of nearest tokens holds all but 1 % of the mass, since the "
        "series diverges.  [theorem] | tokens: TRF(1/100) = infinitely many tokens | "
        "why: so",
    ),
    (
        but(FIELD, tokens=None, answer=None, length=2, **UNKNOWN),
        "−n/8: how many of the nearest tokens hold all but 1 % of the mass of a row of "
        "2 keys is not known. | tokens: TRF(1/100) = unknown | why: so",
    ),
    (
        but(FIELD, tokens=None, answer=None, **OUTSIDE),
        "−n/8: there is no mass by distance to speak of: so.",
    ),
    (
        heads(FIELD, ONE),
        "x: the nearest 61 tokens hold all but 1 % of the mass, in the widest head.  "
        "[certified] | tokens: TRF(1/100) = 61 tokens | by head: 61, 1",
    ),
    (
        heads(NO_FIELD, FIELD, NO_FIELD),
        "x: no number of nearest tokens holds all but 1 % of the mass, in 2 of 3 heads,"
        " since the series diverges.  [theorem] | tokens: TRF(1/100) = infinitely many "
        "tokens | by head: infinitely many, 61, infinitely many | why: so",
    ),
    (
        heads(but(FIELD, tokens=None, answer=None, **UNKNOWN), FIELD),
        "x: how many of the nearest tokens hold all but 1 % of the mass is not known, "
        "in 1 of 2 heads. | tokens: TRF(1/100) = unknown | by head: unknown, 61 | why: "
        "so",
    ),
    (
        heads(ONE, ONE, length=5),
        "x: the nearest token alone holds all but 1 % of the mass of a row of 5 keys, "
        "in the widest head.  [certified] | tokens: TRF(1/100) = 1 token | by head: 1, "
        "1",
    ),
    (
        but(NO_FIELD, **ROW),
        "−n/8: no number of nearest tokens holds all but 1 % of the mass, since the "
        "series diverges.  [theorem] | −n/8: the nearest 61 tokens hold all but 1 % of "
        "the mass of a row of 4096 keys.  [approximate] | tokens: TRF(1/100) = "
        "infinitely many tokens | why: so",
    ),
    (
        ReceptiveFields((SHORT, but(FIELD, total=fmpq(5, 2)))),
        "−n/8: the nearest 6 tokens hold all but 10 % of the mass.  [certified] | mass "
        "left out  tokens | 10 %                6 | 1 %                61 | sum: B = "
        "5/2",
    ),
    (
        ReceptiveFields((heads(SHORT, SHORT), heads(FIELD, ONE))),
        "x: the nearest 6 tokens hold all but 10 % of the mass, in the widest head.  "
        "[certified] | mass left out  tokens  by head | 10 %                6  6, 6 | 1"
        " %                61  61, 1",
    ),
    (
        ReceptiveFields((but(NO_FIELD, eps=SHORT.eps, finite=SHORT), but(NO_FIELD, **ROW))),
        "−n/8: no number of nearest tokens holds all but 10 %, 1 % of the mass, since "
        "the series diverges.  [theorem] | In a row of 4096 keys, 6, 61 tokens hold all"
        " but 10 %, 1 % of the mass.  [certified] | why: so",
    ),
    (
        ReceptiveFields((FIELD, but(FIELD, tokens=None, answer=None, **UNKNOWN))),
        "−n/8: the nearest 61 tokens hold all but 1 % of the mass.  [certified] | mass "
        "left out   tokens | 1 %                 61 | 1 %            unknown | why: so",
    ),
    (
        RESOLUTION,
        "−n/8: the attention resolution as rows grow is 0.25.  [certified] | scale: 1 |"
        " after the row: so",
    ),
    (
        but(RESOLUTION, length=9, limit=0.125, bounds=(0.1, 0.5)),
        "−n/8: the attention resolution in a row of 9 tokens is 0.25.  [certified] | "
        "scale: 1 | after the row: so | bounds: 0.1 ≤ R ≤ 0.5, of a non-increasing row "
        "| limit: 0.125",
    ),
    (
        but(RESOLUTION, length=9, bounds=(None, 0.5), mask="window 3", scale=sympy.sqrt(2) / 8),
        "−n/8: the attention resolution in a row of 9 tokens is 0.25.  [certified] | "
        "scale: √2/8 | mask: window 3 | after the row: so | bounds: R ≤ Σ P_i² = 0.5 | "
        "limit: 0.25",
    ),
    (
        but(RESOLUTION, value=0.0, **THEOREM | DIVERGES),
        "−n/8: as rows grow, the attention resolution tends to 0.  [theorem] | scale: 1"
        " | after the row: so | why: so",
    ),
    (
        but(RESOLUTION, value=0.0, length=9, limit=None),
        "−n/8: the attention resolution in a row of 9 tokens is 0.  [certified] | "
        "scale: 1 | after the row: so",
    ),
    (
        but(RESOLUTION, value=None, **UNKNOWN),
        "−n/8: the attention resolution as rows grow is not known. | scale: 1 | after "
        "the row: so | why: so",
    ),
    (
        but(RESOLUTION, value=None, **OUTSIDE),
        "−n/8: there is no bias by distance whose resolution to ask for: so.",
    ),
    (
        but(RESOLUTION, rows=(0.1, 0.2), length=12),
        "−n/8: the attention resolution in a row of 12 tokens is 0.25.  [certified] | "
        "scale: 1 | after the row: so | limit: 0.25 | rows of a block: from 0.1 to 0.2",
    ),
    (
        heads(RESOLUTION, but(RESOLUTION, value=0.5)),
        "x: the attention resolution as rows grow is 0.25, the mean of 2 heads.  "
        "[certified] | scale: 1 | after the row: so | by head: 0.25, 0.5",
    ),
    (
        but(RESOLUTION, formula=None, length=4, label=Label.MEASURED),
        "the scores: the attention resolution in a row of 4 tokens is 0.25.  [measured]"
        " | scale: 1 | after the row: so | limit: 0.25",
    ),
    (
        PRICE,
        "−n/8: half of the attention on the key at distance 7 costs a logit advantage "
        "of 2.5 nats.  [certified] | price: 2.5",
    ),
    (
        but(PRICE, length=9),
        "−n/8: half of the attention on the key at distance 7 in a row of 9 keys costs "
        "a logit advantage of 2.5 nats.  [certified] | price: 2.5",
    ),
    (
        but(PRICE, value=None, **ENCLOSED),
        "−n/8: the key at distance 7 costs more than float64 holds.  [certified] | "
        "price: unknown | why: so",
    ),
    (
        but(PRICE, value=None, length=9, **UNKNOWN),
        "−n/8: what the key at distance 7 in a row of 9 keys costs is not known. | "
        "price: unknown | why: so",
    ),
    (
        ALONE,
        "−n/8: the key at distance 7 in a row of 1 key has all of the attention at any "
        "logit.  [theorem] | price: minus infinity | why: so",
    ),
    (
        but(PRICE, value=math.inf, **INFINITE),
        "−n/8: as rows grow, no fixed advantage keeps half of the attention at distance"
        " 7.  [theorem] | price: infinite | why: so",
    ),
    (
        but(PRICE, value=math.inf, length=9, **NEVER),
        "−n/8: no advantage reaches the key at distance 7 in a row of 9 keys: it has no"
        " weight.  [theorem] | price: infinite | why: so",
    ),
    (
        but(PRICE, value=None, **OUTSIDE),
        "−n/8: no price belongs to a distance alone: so.",
    ),
    (
        heads(PRICE, but(PRICE, value=3.0)),
        "x: half of the attention on the key at distance 7 costs a logit advantage of "
        "2.5 nats, in the cheapest head.  [certified] | price: 2.5 | by head: 2.5, 3",
    ),
    (
        heads(ALONE, PRICE),
        "x: the key at distance 7 in a row of 1 key has all of the attention at any "
        "logit, in the cheapest head.  [theorem] | price: minus infinity | by head: "
        "minus infinity, 2.5 | why: so",
    ),
    (
        REACH,
        "−n/8: a key that leads by 7 nats has half of the attention up to 24 tokens "
        "back.  [certified] | tokens: 25 tokens, the query's own among them",
    ),
    (
        but(REACH, share=Rational(1, 3), length=64, advantage=Rational(13, 2)),
        "−n/8: a key that leads by 6.5 nats has 1/3 of the attention up to 24 tokens "
        "back in a row of 64 keys.  [certified] | tokens: 25 tokens, the query's own "
        "among them",
    ),
    (
        but(REACH, intervals=((0, 3), (5, 5), (8, 27)), farthest=27, advantage=Rational(10) ** 300),
        "−n/8: a key that leads by 1000000000…000000000 nats has half of the attention "
        "up to 27 tokens back, at 25 distances in all.  [certified] | tokens: 25 "
        "tokens, the query's own among them | distances: 0 to 3, 5, 8 to 27",
    ),
    (
        but(REACH, tokens=1, farthest=5, answer=Exact(1), intervals=((5, 5),)),
        "−n/8: a key that leads by 7 nats has half of the attention up to 5 tokens "
        "back, at 1 distance in all.  [certified] | tokens: 1 token",
    ),
    (
        NONE,
        "−n/8: an advantage of 7 nats gives no key half of the attention.  [certified] "
        "| tokens: 0 tokens",
    ),
    (
        but(NONE, length=64, share=Rational(9, 10)),
        "−n/8: an advantage of 7 nats gives no key 90 % of the attention in a row of 64"
        " keys.  [certified] | tokens: 0 tokens",
    ),
    (
        but(NONE, **THEOREM | DIVERGES),
        "−n/8: as rows grow, an advantage of 7 nats comes to reach no key: the "
        "exp-series diverges.  [theorem] | tokens: 0 tokens | why: so",
    ),
    (
        but(SOME, answer=None, **UNKNOWN),
        "−n/8: how far an advantage of 7 nats reaches in a row of 64 keys is not known. | why: so",
    ),
    (
        SOME,
        "−n/8: an advantage of 7 nats reaches between 1 and 2 tokens in a row of 64 "
        "keys, each with half of the attention.  [certified] | tokens: between 1 and 2 "
        "tokens | why: so",
    ),
    (
        but(NONE, tokens=None, answer=None, **OUTSIDE),
        "−n/8: no reach belongs to the distance alone: so.",
    ),
    (
        heads(REACH, but(REACH, tokens=1), intervals=()),
        "x: a key that leads by 7 nats has half of the attention up to 24 tokens back, "
        "in the head that reaches farthest.  [certified] | tokens: 25 tokens | by head:"
        " 25, 1",
    ),
    (
        heads(NONE, NONE),
        "x: an advantage of 7 nats gives no key half of the attention, in any head.  "
        "[certified] | tokens: 0 tokens | by head: 0, 0",
    ),
    (
        heads(but(SOME, answer=Bracket(3, None)), REACH),
        "x: an advantage of 7 nats reaches at least 3 tokens in a row of 64 keys, each "
        "with half of the attention, in any head.  [certified] | tokens: at least 3 "
        "tokens | by head: unknown, 25 | why: so",
    ),
    (
        WINDOW,
        "−n/8: the nearest 61 tokens are provably enough for an error of at most 1/100,"
        " and no fewer are.  [certified] | where: |q.k|/sqrt(d) ≤ 1, values of norm at "
        "most 3/2 | one head, one layer, exact arithmetic, before the output "
        "projection.",
    ),
    (
        but(WINDOW, row=9),
        "−n/8: the nearest 61 tokens are provably enough for an error of at most 1/100,"
        " in a row of 9 keys, and no fewer are.  [certified] | where: |q.k|/sqrt(d) ≤ "
        "1, values of norm at most 3/2 | one head, one layer, exact arithmetic, before "
        "the output projection.",
    ),
    (
        but(WINDOW, width=1, sinks=1),
        "−n/8: the nearest token alone, with the first key kept besides, is provably "
        "enough for an error of at most 1/100.  [certified] | where: |q.k|/sqrt(d) ≤ 1,"
        " values of norm at most 3/2 | one head, one layer, exact arithmetic, before "
        "the output projection.",
    ),
    (
        but(WINDOW, row=1, sinks=4),
        "−n/8: the nearest 61 tokens, with the first 4 keys kept besides, are provably "
        "enough for an error of at most 1/100, in a row of 1 key, and no fewer are.  "
        "[certified] | where: |q.k|/sqrt(d) ≤ 1, values of norm at most 3/2 | one head,"
        " one layer, exact arithmetic, before the output projection.",
    ),
    (
        NO_WINDOW,
        "−n/8: no fixed window is enough: whatever is kept, some input changes the "
        "output by nearly 3.  [theorem] | where: |q.k|/sqrt(d) ≤ 1, values of norm at "
        "most 3/2 | why: so",
    ),
    (
        but(WINDOW, width=None, **UNKNOWN),
        "−n/8: whether a window is enough is not known. | where: |q.k|/sqrt(d) ≤ 1, "
        "values of norm at most 3/2 | why: so",
    ),
    (
        but(WINDOW, width=None, **OUTSIDE),
        "−n/8: no window is certified: so.",
    ),
    (
        heads(WINDOW, but(WINDOW, width=1), row=9),
        "x: the nearest 61 tokens are provably enough for an error of at most 1/100, in"
        " the widest head, in a row of 9 keys, and no fewer are.  [certified] | where: "
        "|q.k|/sqrt(d) ≤ 1, values of norm at most 3/2 | by head: 61, 1 | one head, one"
        " layer, exact arithmetic, before the output projection.",
    ),
    (
        heads(NO_WINDOW, but(WINDOW, width=None, **UNKNOWN)),
        "x: no fixed window is enough: whatever is kept, some input changes the output "
        "by nearly 3.  [theorem] | where: |q.k|/sqrt(d) ≤ 1, values of norm at most 3/2"
        " | by head: infinite, none | why: so",
    ),
    (
        ERROR,
        "−n/8: a window of 61 tokens changes no output by more than 0.25.  [certified]",
    ),
    (
        but(ERROR, sinks=1),
        "−n/8: a window of 61 tokens with the first key changes no output by more than "
        "0.25.  [certified]",
    ),
    (
        but(ERROR, sinks=4, width=1),
        "−n/8: a window of 1 token with the first 4 keys changes no output by more than"
        " 0.25.  [certified]",
    ),
    (
        but(ERROR, value=None, **ENCLOSED),
        "−n/8: a window of 61 tokens changes no output by more than 0.3.  [certified] | why: so",
    ),
    (
        but(ERROR, value=None, enclosure=None, **UNKNOWN),
        "−n/8: by how much a window of 61 tokens may change an output is not known. | why: so",
    ),
    (
        but(ERROR, value=2.0, **THEOREM | DIVERGES),
        "−n/8: a window of 61 tokens changes no output by more than 2.  [theorem] | why: so",
    ),
    (
        heads(ERROR, but(ERROR, value=0.5)),
        "x: a window of 61 tokens changes no output by more than 0.25, in the worst "
        "head.  [certified] | by head: 0.25, 0.5",
    ),
    (
        CEILING,
        "−n/8: with content logits within 4, no input gives the key at distance 63 of a"
        " row of 64 keys more than 42.13 % of the attention.  [certified] | farthest "
        "for half: 144 back",
    ),
    (
        but(CEILING, value=None, farthest=None, **UNKNOWN),
        "−n/8: how much attention the key at distance 63 of a row of 64 keys can have "
        "is not known. | why: so",
    ),
    (
        but(CEILING, subject="x", formula=None, longest=2981, length=1),
        "x: with logits within 4, no input gives the key at distance 63 of a row of 1 "
        "key more than 42.13 % of the attention.  [certified] | farthest for half: 144 "
        "back | longest row for half: 2981 keys",
    ),
    (
        but(CEILING, value=None, **OUTSIDE),
        "−n/8: no bound of the attention follows from one of the logits: so.",
    ),
    (
        heads(CEILING, but(CEILING, value=None, **UNKNOWN)),
        "x: with content logits within 4, no input gives the key at distance 63 of a "
        "row of 64 keys more than 42.13 % of the attention, in any head.  [certified] |"
        " farthest for half: 144 back | by head: 42.13 %, unknown",
    ),
    (
        LAYERS,
        "−n/8: through 12 layers, 99 % of the influence on a token comes from the "
        "nearest 201 tokens.  [certified] | share of a layer through attention: 2/5",
    ),
    (
        but(LAYERS, layers=1, length=1, mixing=None, tokens=1),
        "−n/8: through 1 layer, 99 % of the influence on a token comes from the nearest"
        " token.  [certified] | row: 1 key",
    ),
    (
        but(LAYERS, sunk=0.12345, rule=153.7, label=Label.APPROXIMATE),
        "−n/8: through 12 layers, 99 % of the influence on a token comes from the "
        "nearest 201 tokens.  [approximate] | share of a layer through attention: 2/5 |"
        " influence in attention sinks: 0.123 | rule of thumb: 154 tokens, by one path",
    ),
    (
        but(LAYERS, tokens=None, bracket=Bracket(4, None), **ENCLOSED),
        "−n/8: through 12 layers, 99 % of the influence on a token comes from at least "
        "4 tokens nearest to it.  [certified] | share of a layer through attention: 2/5"
        " | why: so",
    ),
    (
        but(LAYERS, tokens=None, **UNKNOWN),
        "−n/8: through 12 layers, 99 % of the influence on a token comes from a number "
        "of nearest tokens that is not known. | share of a layer through attention: 2/5"
        " | why: so",
    ),
    (
        but(PAIR, receptive_fields=(TOKENS, ("9 tokens",) * 3)),
        "To hold all but 10 %, 1 % and 0.1 % of the mass, f needs 1, 2 and 3 tokens; g "
        "needs 9.  [certified] | mass left out  tokens of a  tokens of b | 10 %"
        "           1            9 | 1 %            2            9 | 0.1 %          3"
        "            9 | p_a(n) = −n/8 | p_b(n) = −n | limit of the difference: ∞ | "
        "normalised tail of the lighter is smaller: from j = 5 on | f has a lighter "
        "tail than g: its receptive field is no larger for any eps up to 0.2.  "
        "[certified]",
    ),
    (
        but(PAIR, receptive_fields=(("1 token",) * 3, ("9 tokens",) * 3)),
        "To hold all but 10 %, 1 % and 0.1 % of the mass, f needs 1 token; g "
        "needs 9.  [certified] | mass left out  tokens of a  tokens of b | 10 %"
        "           1            9 | 1 %            1            9 | 0.1 %          1"
        "            9 | p_a(n) = −n/8 | p_b(n) = −n | limit of the difference: ∞ | "
        "normalised tail of the lighter is smaller: from j = 5 on | f has a lighter "
        "tail than g: its receptive field is no larger for any eps up to 0.2.  "
        "[certified]",
    ),
    (
        but(PAIR, lighter="b", log_crossover=(-40755.5, -40755.2)),
        "p_a(n) = −n/8 | p_b(n) = −n | limit of the difference: ∞ | normalised tail of "
        "the lighter is smaller: from j = 5 on | g has a lighter tail than f: its "
        "receptive field is no larger for any eps up to exp(-40756).  [certified]",
    ),
    (
        BARE,
        "p_a(n) = −n/8 | p_b(n) = −n | f has a lighter tail than g, so a smaller "
        "receptive field for every small enough eps.  [certified]",
    ),
    (
        but(BARE, **DIVERGES),
        "p_a(n) = −n/8 | p_b(n) = −n | why: so | f has the lighter tail, since the "
        "series of g diverges.  [certified]",
    ),
    (
        but(BARE, lighter="b", crossover=1.0, **THEOREM | DIVERGES),
        "p_a(n) = −n/8 | p_b(n) = −n | why: so | g has the lighter tail, since the "
        "series of f diverges.  [theorem]",
    ),
    (
        but(BARE, reason=Reason(Code.NO_ENCLOSURE, "so")),
        "p_a(n) = −n/8 | p_b(n) = −n | why: so | f has a lighter tail than g, so a "
        "smaller receptive field for every small enough eps.  [certified]",
    ),
    (
        ANY,
        "p_a(n) = −n/8 | p_b(n) = −n | normalised tail of the lighter is smaller: at "
        "every j | f has a lighter tail than g, and a receptive field no larger at any "
        "eps.  [certified]",
    ),
    (
        but(ANY, reason=Reason(Code.NO_ENCLOSURE, "so")),
        "p_a(n) = −n/8 | p_b(n) = −n | why: so | f has a lighter tail than g, and a "
        "receptive field no larger at any eps.  [certified]",
    ),
    (
        but(BARE, lighter="neither"),
        "p_a(n) = −n/8 | p_b(n) = −n | The tails of f and g are equal, and so are their"
        " receptive fields.  [certified]",
    ),
    (
        but(BARE, lighter="neither", reason=Reason(Code.BOUNDED_SUPPORT, "so")),
        "p_a(n) = −n/8 | p_b(n) = −n | why: so | Neither of f and g has the lighter "
        "tail: so, so their receptive fields are equal for every small enough eps.  "
        "[certified]",
    ),
    (
        but(BARE, lighter=None, **UNKNOWN),
        "p_a(n) = −n/8 | p_b(n) = −n | Which of f and g has the lighter tail is not known: so.",
    ),
    (
        but(BARE, lighter=None, reason=Reason(Code.NO_LIMIT, "so")),
        "p_a(n) = −n/8 | p_b(n) = −n | Neither of f and g has the lighter tail: so.  [certified]",
    ),
    (
        but(BARE, lighter=None, **THEOREM | DIVERGES),
        "p_a(n) = −n/8 | p_b(n) = −n | Neither of f and g has a tail to compare, since "
        "both series diverge.  [theorem]",
    ),
    (
        RANKING,
        "The nearest tokens that hold all but 1 % of the mass: f0: 2; f1: 2; 1 without "
        "a certified sum.  [certified] | bias  p(n)  series     TRF(10 %)  TRF(1 %)  "
        "TRF(0.1 %) | f0    −n/8  converges  1 token    2 tokens  3 tokens | f1    −n/8"
        "  converges  1 token    2 tokens  3 tokens | h     −n/8  diverges   1 token"
        "    2 tokens  3 tokens | From the lightest tail to the heaviest: f0; f1.  "
        "[certified] | For every eps up to 0.2, f has no larger a field than g.",
    ),
    (
        but(
            RANKING,
            left_out=(("rope", "so"),),
            pairs=(but(PAIR, lighter="neither", crossover=1.0),),
        ),
        "The nearest tokens that hold all but 1 % of the mass: f0: 2; f1: 2; 1 without "
        "a certified sum.  [certified] | bias  p(n)  series     TRF(10 %)  TRF(1 %)  "
        "TRF(0.1 %) | f0    −n/8  converges  1 token    2 tokens  3 tokens | f1    −n/8"
        "  converges  1 token    2 tokens  3 tokens | h     −n/8  diverges   1 token"
        "    2 tokens  3 tokens | From the lightest tail to the heaviest: f0; f1.  "
        "[certified] | The tails of f and g are equal. | rope is left out: so.",
    ),
    (
        but(RANKING, rows=RANKING.rows[2:], pairs=()),
        "None of these series has a certified sum, so none has a tail to compare.  "
        "[certified] | bias  p(n)  series    TRF(10 %)  TRF(1 %)  TRF(0.1 %) | h     "
        "−n/8  diverges  1 token    2 tokens  3 tokens",
    ),
    (
        but(RANKING, rows=(*OF_A,), pairs=(but(PAIR, lighter="b"), BARE, ANY)),
        "The nearest tokens that hold all but 1 % of the mass: f0: 2; f1: 2; f2: 2; …; "
        "f4: 2; f5: 2; f6: 2.  [certified] | bias  p(n)  series     TRF(10 %)  TRF(1 %)"
        "  TRF(0.1 %) | f0    −n/8  converges  1 token    2 tokens  3 tokens | f1    "
        "−n/8  converges  1 token    2 tokens  3 tokens | f2    −n/8  converges  1 "
        "token    2 tokens  3 tokens | f3    −n/8  converges  1 token    2 tokens  3 "
        "tokens | f4    −n/8  converges  1 token    2 tokens  3 tokens | f5    −n/8  "
        "converges  1 token    2 tokens  3 tokens | f6    −n/8  converges  1 token    2"
        " tokens  3 tokens | From the lightest tail to the heaviest: f0; f1; f2; …; f4;"
        " f5; f6.  [certified] | For every eps up to 0.2, g has no larger a field than "
        "f. | For every eps that is small enough, f has no larger a field than g. | Of "
        "all other neighbours the first has no larger a field at any eps.",
    ),
    (
        but(RANKING, rows=(*OF_A[:6],), pairs=(), **UNKNOWN),
        "The nearest tokens that hold all but 1 % of the mass: f0: 2; f1: 2; f2: 2; f3:"
        " 2; f4: 2; f5: 2. | bias  p(n)  series     TRF(10 %)  TRF(1 %)  TRF(0.1 %) | "
        "f0    −n/8  converges  1 token    2 tokens  3 tokens | f1    −n/8  converges  "
        "1 token    2 tokens  3 tokens | f2    −n/8  converges  1 token    2 tokens  3 "
        "tokens | f3    −n/8  converges  1 token    2 tokens  3 tokens | f4    −n/8  "
        "converges  1 token    2 tokens  3 tokens | f5    −n/8  converges  1 token    2"
        " tokens  3 tokens | From the lightest tail to the heaviest: f0; f1; f2; f3; "
        "f4; f5.",
    ),
    (
        ROWS,
        "A window of 10 tokens with 1 sink is certified for 33.3% of the rows that drop"
        " keys, at an error of 0.1.  [certified] | rows: 5 | rows that drop keys: 3 | "
        "median bound: 0.235 | One head, one layer, before the output projection; "
        "rounding is accounted for.",
    ),
    (
        but(ROWS, bound=np.zeros(2), window=1, sinks=4, share=1.0),
        "A window of 1 token with 4 sinks is certified for 100.0% of the rows that drop"
        " keys, at an error of 0.1.  [certified] | rows: 2 | rows that drop keys: 0 | "
        "One head, one layer, before the output projection; rounding is accounted for.",
    ),
    (
        DRAWN,
        "With 256 dropped keys drawn a row, a window of 10 tokens with 1 sink holds for"
        " 33.3% of the rows that drop keys at an error of 0.1, by the worst case for "
        "25.0%.  [approximate] | rows: 5 | probability a row: 0.99 | One head, one "
        "layer, before the output projection, in float64.",
    ),
    (
        but(DRAWN, window=1, sinks=4, samples=1, delta=0.5),
        "With 1 dropped key drawn a row, a window of 1 token with 4 sinks holds for "
        "33.3% of the rows that drop keys at an error of 0.1, by the worst case for "
        "25.0%.  [approximate] | rows: 5 | probability a row: 0.5 | One head, one "
        "layer, before the output projection, in float64.",
    ),
    (
        DESIGN,
        "alibi: TRF(1 %) = 512 for exactly the m from 1/2 to 2; the simplest is m = 1."
        "  [certified] | m in: (1/3, 2] | reaches: TRF(1 %) = 512 | encoding: encoding",
    ),
    (
        but(
            DESIGN,
            low=None,
            closed=(True, False),
            condition="m > 0",
            **NEVER | {"status": Status.EXACT},
        ),
        "alibi: TRF(1 %) = 512 for exactly the m up to 2; the simplest is m = 1.  "
        "[theorem] | m in: […, 2) | reaches: TRF(1 %) = 512 | converges for: m > 0 | "
        "encoding: encoding | so.",
    ),
    (
        but(
            DESIGN, high=None, achieved={"trf": 512, "leak": 0.00012345}, quantities=("TRF", "leak")
        ),
        "alibi: TRF(1 %) = 512 for exactly the m from 1/2 on; the simplest is m = 1.  "
        "[certified] | m in: (1/3, …] | reaches: TRF = 512, leak = 0.000123 | encoding:"
        " encoding",
    ),
    (
        but(DESIGN, low=None, high=None, monotone=False),
        "alibi: TRF(1 %) = 512 at m = 1, among others.  [certified] | m in: (…, …] | "
        "reaches: TRF(1 %) = 512 | encoding: encoding | It is not proved that m orders "
        "the tails: only the parameters shown are known to meet the targets, others may"
        " meet them too.",
    ),
    (
        but(DESIGN, low=(Rational(1, 1000), Rational(1, 999)), high=(Rational(1, 1000),) * 2),
        "alibi: TRF(1 %) = 512 for exactly the m from 1/999 to 0.001; the simplest is m"
        " = 1.  [certified] | m in: (1/999, "
        "0.001000000000000000000000000000000000000000…] | reaches: TRF(1 %) = 512 | "
        "encoding: encoding",
    ),
    (
        but(
            DESIGN, low=DIGITS, high=(Rational(31, 1009), Rational(32, 1009)), closed=(True, False)
        ),
        "alibi: TRF(1 %) = 512 for exactly the m from 0.314159 to 0.0307235; the "
        "simplest is m = 1.  [certified] | m in: [0.31415926535…, 0.0317145689) | "
        "reaches: TRF(1 %) = 512 | encoding: encoding",
    ),
    (
        but(DESIGN, value=None, nearest=(201, 206)),
        "alibi: no m has TRF(1 %) = 512; the nearest that are reached are 201 and 206."
        "  [certified] | encoding: encoding",
    ),
    (
        but(DESIGN, value=None, nearest=(None, 206), subject="x"),
        "x: no m has TRF(1 %) = 512; the nearest that are reached are 206.  [certified]"
        " | encoding: encoding",
    ),
    (
        but(DESIGN, value=None, achieved=None, call="", **UNKNOWN),
        "alibi: which m has TRF(1 %) = 512 is not known: so.",
    ),
    (
        OF_HEADS,
        "alibi: 2 heads with TRF(1 %) = 512: m = 1, 2.  [certified] | head  m  TRF(1 %)"
        " | 1  1       512 | 2  1       512 | encoding: encoding",
    ),
    (
        but(OF_HEADS, costs=({"leak(64)": 0.5}, {"leak(64)": None})),
        "alibi: 2 heads with TRF(1 %) = 512: m = 1, 2.  [certified] | head  m  TRF(1 %)"
        "  leak(64) | 1  1       512       0.5 | 2  1       512   unknown | encoding: "
        "encoding",
    ),
]


@pytest.mark.parametrize(("answer", "said"), SAID)
def test_an_answer_says_what_its_fields_hold(answer, said):
    lines = answer.text(width=1000).splitlines()
    formula = "  p(n) = −n/8"
    one = getattr(answer, "each", [answer])[0]
    within = getattr(one, "formula", None) is not None and one.status != "out_of_scope"
    assert (formula in lines) == within
    kept = [line for line in lines if line != formula]
    assert " | ".join(map(str.strip, kept)) == said


WRITTEN = "in the sentence"
FOX = (
    "content-dependent: the bias depends on the tokens, not on the distance alone; ALiBi is the "
    "constant case"
)
NO_WINDOW = (
    "no fixed window is enough: whatever is kept, some input changes the output by nearly 2.  "
    "[theorem]"
)
HALF_OUTSIDE = (
    "half of the mass lies outside any j keys, whatever the input, in rows of 8.389 j keys and "
    "more; give row (--row) for the window of one row length"
)
ANSWERED = [  # a question, its value, its sentence after the name of the bias, the reason
    (
        'leak("-2*log(1+n)", 64)',
        0.009425037605941565,
        ("as rows grow, 0.943 % of a query's prior mass lies beyond 64 tokens.  [certified]"),
        None,
    ),
    (
        'leak("-2*log(1+n)", 64, 512)',
        0.008248623266564769,
        (
            "in a row of 512 keys, 0.825 % of a query's prior mass lies beyond 64 "
            "tokens.  [certified]"
        ),
        None,
    ),
    (
        'leak("alibi", 64, 512, heads=4)',
        0.7441792030596692,
        (
            "in a row of 512 keys, 74.4 % of a query's prior mass lies beyond 64 "
            "tokens, in the worst head.  [certified]"
        ),
        None,
    ),
    (
        'leak("-log(1+n)", 8)',
        1.0,
        ("as rows grow, all of a query's prior mass comes to lie beyond any 8 tokens.  [theorem]"),
        ("the exp-series diverges: no finite number of keys holds a share of its mass"),
    ),
    (
        'leak("where(n<100,0,-inf)", 100, 300)',
        0.0,
        ("in a row of 300 keys, 0 % of a query's prior mass lies beyond 100 tokens.  [certified]"),
        None,
    ),
    ('leak("fox", 64)', None, "there is no prior mass by distance to speak of: {fox}.", WRITTEN),
    (
        'leak("-log(n+20)*(1+1/log(log(n+20)))", 64, budget_s=5)',
        0.7119515791288641,
        ("as rows grow, 71.2 % of a query's prior mass lies beyond 64 tokens.  [certified]"),
        None,
    ),
    (
        'certified_window("-n/2", "1/100", 1, 1, sinks=4)',
        15,
        (
            "the nearest 15 tokens, with the first 4 keys kept besides, are provably "
            "enough for an error of at most 1/100, and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("-n/2", 2, 1, 1)',
        1,
        ("the nearest token alone is provably enough for an error of at most 2.  [certified]"),
        "every window has an error of at most 2 value_bound",
    ),
    (
        'certified_window("-n/2", "19/10", 0, 1)',
        1,
        ("the nearest token alone is provably enough for an error of at most 19/10.  [certified]"),
        None,
    ),
    (
        'certified_window("-n/2", "3", 1, 2)',
        3,
        (
            "the nearest 3 tokens are provably enough for an error of at most 3, and "
            "no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("rope", "1/10", 1, 1, row=1000)',
        993,
        (
            "the nearest 993 tokens are provably enough for an error of at most "
            "1/10, in a row of 1000 keys, and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("rope", "1/10", 1, 1)',
        math.inf,
        NO_WINDOW,
        HALF_OUTSIDE,
    ),
    (
        'certified_window("rope", 2, 1, 1)',
        1,
        ("the nearest token alone is provably enough for an error of at most 2.  [certified]"),
        None,
    ),
    (
        'certified_window("fox", "1/10", 1, 1, gate="4/5")',
        23,
        (
            "the nearest 23 tokens are provably enough for an error of at most 1/10, "
            "and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("fox", "1/10", 1, 1, gate=1)',
        math.inf,
        NO_WINDOW,
        HALF_OUTSIDE,
    ),
    (
        'certified_window("fox", "1/10", 1, 1, gate=1, row=64)',
        64,
        (
            "the nearest 64 tokens are provably enough for an error of at most 1/10, "
            "in a row of 64 keys, and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("fox", "1/10", 1, 1)',
        None,
        "whether a window is enough is not known.",
        "give gate (--gate), the bound gamma of the gates",
    ),
    (
        'certified_window("stick_breaking", "1/10", 1, 1)',
        8,
        (
            "the nearest 8 tokens are provably enough for an error of at most 1/10, "
            "and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("stick_breaking", "1/10", 0, 1)',
        4,
        (
            "the nearest 4 tokens are provably enough for an error of at most 1/10, "
            "and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("stick_breaking", "1", 1, 1)',
        1,
        ("the nearest token alone is provably enough for an error of at most 1.  [certified]"),
        None,
    ),
    (
        'certified_window("stick_breaking", "1/10", 2, 3)',
        27,
        (
            "the nearest 27 tokens are provably enough for an error of at most 1/10, "
            "and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("ssmax", "1/10", 1, 1, row=100)',
        100,
        (
            "the nearest 100 tokens are provably enough for an error of at most "
            "1/10, in a row of 100 keys, and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("ssmax", "1/10", 1, 1, row=100, temper="1/2")',
        100,
        (
            "the nearest 100 tokens are provably enough for an error of at most "
            "1/10, in a row of 100 keys, and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("fire", "1/10", 1, 1, row=100)',
        None,
        "whether a window is enough is not known.",
        "its function of the distance is learned",
    ),
    (
        'certified_window("fire", "2", 1, 1, row=100)',
        1,
        (
            "the nearest token alone is provably enough for an error of at most 2, "
            "in a row of 100 keys.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("fire", "1/10", 1, 1)',
        math.inf,
        NO_WINDOW,
        (
            "no fixed window is ever enough: distances are normalised by the row, so "
            "nearer and nearer to 0 as rows grow, and outside any window the mass "
            "tends to 1"
        ),
    ),
    (
        'certified_window("-log(1+n)", "1/10", 1, 1, row=256, temper="1/8")',
        237,
        (
            "the nearest 237 tokens are provably enough for an error of at most "
            "1/10, in a row of 256 keys, and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'certified_window("-log(1+n)-log(2+n)+log(2)", "1/3", 0, "2/3")',
        None,
        "whether a window is enough is not known.",
        (
            "T_3 and eps B differ by at most 1.7e-77 of them, as far as known: 3 if "
            "T_3 is less, otherwise 4"
        ),
    ),
    (
        'window_error("-2*log(1+n)", 61, 1, "3/2")',
        0.20610128726875862,
        ("a window of 61 tokens changes no output by more than 0.206101.  [certified]"),
        None,
    ),
    (
        'window_error("-2*log(1+n)", 61, 0, 1, sinks=4, sink_weight=2)',
        0.008921864747411181,
        (
            "a window of 61 tokens with the first 4 keys changes no output by more "
            "than 0.00892186.  [certified]"
        ),
        None,
    ),
    (
        'window_error("stick_breaking", 3, 1, 2)',
        0.7814236098626158,
        ("a window of 3 tokens changes no output by more than 0.781424.  [certified]"),
        None,
    ),
    (
        'window_error("stick_breaking", 3, 0, 1)',
        0.125,
        "a window of 3 tokens changes no output by more than 0.125.  [certified]",
        None,
    ),
    (
        'window_error("rope", 64, 1, 2)',
        4.0,
        "a window of 64 tokens changes no output by more than 4.  [theorem]",
        (
            "no fixed window is ever enough: its rotations keep every logit bounded, "
            "so outside any window the mass tends to 1 as rows grow, for every input"
        ),
    ),
    (
        'window_error("fox", 64, 1, 2)',
        None,
        "by how much a window of 64 tokens may change an output is not known.",
        (
            "a long enough window is enough exactly if the gates stay below one: "
            "gamma < 1, gamma their least bound over all inputs"
        ),
    ),
    (
        'window_error("-log(1+n)", 64, 1, 2)',
        4.0,
        "a window of 64 tokens changes no output by more than 4.  [theorem]",
        ("the exp-series diverges: no finite number of keys holds a share of its mass"),
    ),
    (
        'attention_ceiling("-n/32", 4, length=512)',
        1.06486147404223e-05,
        (
            "with content logits within 4, no input gives the key at distance 511 of "
            "a row of 512 keys more than 0.001065 % of the attention.  [certified]"
        ),
        None,
    ),
    (
        'attention_ceiling("rope", "3/2", length=64, distance=5)',
        0.24174528644806956,
        (
            "with logits within 3/2, no input gives the key at distance 5 of a row "
            "of 64 keys more than 24.17 % of the attention.  [certified]"
        ),
        None,
    ),
    (
        'attention_ceiling("where(n<8,0,-inf)", 4, length=64)',
        0.0,
        (
            "with content logits within 4, no input gives the key at distance 63 of "
            "a row of 64 keys more than 0 % of the attention.  [certified]"
        ),
        "the bias masks the key at distance 63",
    ),
    (
        'attention_ceiling("fox", 4, length=64)',
        None,
        (
            "no bound of the attention follows from one of the logits: its position "
            "enters neither as a bias nor through logits that are bounded."
        ),
        WRITTEN,
    ),
    (
        'dtype_horizon("-n/8", "fp16", flush_to_zero=True)',
        78,
        (
            "from distance 78 on every weight rounds to 0 in fp16 with subnormals "
            "flushed.  [certified]"
        ),
        None,
    ),
    (
        'dtype_horizon("-n/8", "float64")',
        5962,
        "from distance 5962 on every weight rounds to 0 in fp64.  [certified]",
        None,
    ),
    (
        'dtype_horizon("-n*log(2)", "fp16")',
        25,
        "from distance 25 on every weight rounds to 0 in fp16.  [certified]",
        None,
    ),
    (
        'dtype_horizon("-n*log(2)", "fp16", flush_to_zero=True)',
        15,
        (
            "from distance 15 on every weight rounds to 0 in fp16 with subnormals "
            "flushed.  [certified]"
        ),
        None,
    ),
    (
        'dtype_horizon("n/8", "bf16")',
        math.inf,
        "the weights never round to 0 for good in bf16.  [certified]",
        "the bias increases",
    ),
    (
        'dtype_horizon("0", "bf16")',
        math.inf,
        "the weights never round to 0 for good in bf16.  [certified]",
        "the bias is constant at all large distances",
    ),
    (
        'dtype_horizon("-where(n%2==0,n,1)", "bf16")',
        math.inf,
        "the weights never round to 0 for good in bf16.  [certified]",
        "the bias is constant at all large distances 1 modulo 2",
    ),
    (
        'dtype_horizon("-log(1+n)/10^6", "fp64")',
        None,
        "it is not known from where on the weights round to 0 in fp64.",
        "the horizon has more than 14000 bits",
    ),
    (
        'dtype_horizon("where(n<20,0,-inf)", "fp32")',
        20,
        "from distance 20 on every weight rounds to 0 in fp32.  [certified]",
        None,
    ),
    ('dtype_horizon("fox", "fp32")', None, "there are no weights by distance: {fox}.", WRITTEN),
    (
        'attention_resolution("-2*log(1+n)")',
        0.29287187979785495,
        "the attention resolution as rows grow is 0.2928718798.  [certified]",
        None,
    ),
    (
        'attention_resolution("-n/8", 64)',
        0.0073399742327146505,
        ("the attention resolution in a row of 64 tokens is 0.007339974233.  [certified]"),
        None,
    ),
    (
        'attention_resolution("-n/8", 64, mask="window 16")',
        0.010013597213673169,
        ("the attention resolution in a row of 64 tokens is 0.01001359721.  [certified]"),
        None,
    ),
    (
        'attention_resolution("-n/8", 64, mask="window 64")',
        0.0073399742327146505,
        ("the attention resolution in a row of 64 tokens is 0.007339974233.  [certified]"),
        None,
    ),
    (
        'attention_resolution("-n/8", mask="window 16")',
        0.010013597213673169,
        "the attention resolution as rows grow is 0.01001359721.  [certified]",
        None,
    ),
    (
        'attention_resolution("-n/8", 64, mask="bca 8")',
        0.013022322664370128,
        ("the attention resolution in a row of 64 tokens is 0.01302232266.  [certified]"),
        "mean over the rows of a block beyond the first",
    ),
    (
        'attention_resolution("-log(1+n)")',
        0.0,
        "as rows grow, the attention resolution tends to 0.  [theorem]",
        "the exp-series diverges and p is bounded above",
    ),
    (
        'attention_resolution("-log(1+n)", 30_000)',
        0.005442100490123675,
        ("the attention resolution in a row of 30000 tokens is 0.00544210049.  [certified]"),
        None,
    ),
    (
        'attention_resolution("n", 50)',
        -0.7940475139390257,
        ("the attention resolution in a row of 50 tokens is -0.7940475139.  [certified]"),
        None,
    ),
    (
        'attention_resolution("n")',
        None,
        "the attention resolution as rows grow is not known.",
        "the exp-series diverges and p is not known to be bounded above",
    ),
    (
        'attention_resolution("alibi", 128, heads=4)',
        0.007397978835666303,
        (
            "the attention resolution in a row of 128 tokens is 0.007397978836, the "
            "mean of 4 heads.  [certified]"
        ),
        None,
    ),
    (
        "attention_resolution([1.0, 0.2, 0.9, -3.0])",
        0.20716986439555055,
        ("the attention resolution in a row of 4 tokens is 0.2071698644.  [measured]"),
        None,
    ),
    (
        "attention_resolution([1.0, 0.2, 0.9, -3.0], 3)",
        0.16471741294683784,
        ("the attention resolution in a row of 3 tokens is 0.1647174129.  [measured]"),
        None,
    ),
    (
        'attention_resolution([1.0, 0.2, 0.9, -3.0], mask="window 4")',
        0.20716986439555055,
        ("the attention resolution in a row of 4 tokens is 0.2071698644.  [measured]"),
        None,
    ),
    (
        'attention_resolution([1.0, 0.2, 0.9, -3.0], mask="bca 2")',
        0.20710164150281477,
        ("the attention resolution in a row of 4 tokens is 0.2071016415.  [measured]"),
        "mean over the rows of a block beyond the first",
    ),
    (
        'attention_resolution("rope")',
        None,
        (
            "there is no bias by distance whose resolution to ask for: not additive: "
            "it rotates queries and keys instead of adding a bias; its additive "
            "surrogate is rope_surrogate."
        ),
        WRITTEN,
    ),
    (
        'price_of_distance("-2*log(1+n)", 500)',
        12.930910082626864,
        (
            "half of the attention on the key at distance 500 costs a logit "
            "advantage of 12.9309 nats.  [certified]"
        ),
        None,
    ),
    (
        'price_of_distance("-log(1+n)", 500, length=10**6)',
        8.88319040004736,
        (
            "half of the attention on the key at distance 500 in a row of 1000000 "
            "keys costs a logit advantage of 8.88319 nats.  [certified]"
        ),
        None,
    ),
    (
        'price_of_distance("-exp(n)", 10000)',
        None,
        "the key at distance 10000 costs more than float64 holds.  [certified]",
        "the price is finite and beyond float64",
    ),
    (
        'price_of_distance("-n", 0, length=1)',
        -math.inf,
        (
            "the key at distance 0 in a row of 1 key has all of the attention at any "
            "logit.  [theorem]"
        ),
        "no other key has any weight",
    ),
    (
        'price_of_distance("-n", 5, length=6)',
        5.451914395937593,
        (
            "half of the attention on the key at distance 5 in a row of 6 keys costs "
            "a logit advantage of 5.45191 nats.  [certified]"
        ),
        None,
    ),
    (
        'price_of_distance("where(n<8,0,-inf)", 9)',
        math.inf,
        "no advantage reaches the key at distance 9: it has no weight.  [theorem]",
        "the bias masks the key at distance 9",
    ),
    ('price_of_distance("fox", 9)', None, "no price belongs to a distance alone: {fox}.", WRITTEN),
    (
        'reach("-2*log(1+n)", 7, share="9/10")',
        8,
        ("a key that leads by 7 nats has 90 % of the attention up to 7 tokens back.  [certified]"),
        None,
    ),
    (
        'reach("-log(1+n)", 7)',
        0,
        (
            "as rows grow, an advantage of 7 nats comes to reach no key: the "
            "exp-series diverges.  [theorem]"
        ),
        ("the exp-series diverges: every price grows beyond all bounds with the row"),
    ),
    (
        'reach("where(n%3==0,-n/9,-n/5)", 3)',
        8,
        (
            "a key that leads by 3 nats has half of the attention up to 9 tokens "
            "back, at 8 distances in all.  [certified]"
        ),
        None,
    ),
    (
        'reach("alibi", 7, length=512, heads=2)',
        410,
        (
            "a key that leads by 7 nats has half of the attention up to 409 tokens "
            "back in a row of 512 keys, in the head that reaches farthest.  "
            "[certified]"
        ),
        None,
    ),
    (
        'reach("-n/10^40", 200)',
        1078965962802381726392803418126254316959559,
        (
            "a key that leads by 200 nats has half of the attention up to "
            "1078965962802381726392803418126254316959558 tokens back.  [certified]"
        ),
        None,
    ),
    (
        'layered_receptive_field("-n/8", 6)',
        68,
        (
            "through 6 layers, 99 % of the influence on a token comes from the "
            "nearest 68 tokens.  [approximate]"
        ),
        None,
    ),
    (
        'layered_receptive_field("-n/8", 6, mixing=1, q="1/2")',
        43,
        (
            "through 6 layers, 50 % of the influence on a token comes from the "
            "nearest 43 tokens.  [approximate]"
        ),
        None,
    ),
    (
        'layered_receptive_field("-n/8", 1, mixing="1/2", q="1/3")',
        1,
        (
            "through 1 layer, 1/3 of the influence on a token comes from the nearest "
            "token.  [approximate]"
        ),
        None,
    ),
    (
        'layered_receptive_field("-log(1+n)", 6, length=3000)',
        2896,
        (
            "through 6 layers, 99 % of the influence on a token comes from the "
            "nearest 2896 tokens.  [approximate]"
        ),
        None,
    ),
    (
        'layered_receptive_field("-1.2*log(1+n)", 6)',
        None,
        (
            "through 6 layers, 99 % of the influence on a token comes from between "
            "445808257781 and 2674849546693 tokens nearest to it.  [approximate]"
        ),
        "beyond the grid of lags: bracketed by the largest step",
    ),
    (
        'layered_receptive_field("window", 12, w=64)',
        324,
        (
            "through 12 layers, 99 % of the influence on a token comes from the "
            "nearest 324 tokens.  [approximate]"
        ),
        None,
    ),
    (
        'layered_receptive_field("where(n<=63,0,-oo)", 12, mixing="1/3")',
        292,
        (
            "through 12 layers, 99 % of the influence on a token comes from the "
            "nearest 292 tokens.  [approximate]"
        ),
        None,
    ),
    (
        'layered_receptive_field("-n/8", 6, q="0.999999999")',
        None,
        (
            "through 6 layers, 999999999/1000000000 of the influence on a token "
            "comes from between 172 and 1039 tokens nearest to it.  [approximate]"
        ),
        "beyond the grid of lags: bracketed by the largest step",
    ),
    (
        'layered_receptive_field("-n/8", 3, q="0.999999999", length=100)',
        None,
        (
            "through 3 layers, 999999999/1000000000 of the influence on a token "
            "comes from between 1 and 100 tokens nearest to it.  [approximate]"
        ),
        "a row beyond the grid of 1048576 lags, or a q too near to 1 for it",
    ),
    (
        'layered_receptive_field(layers=[{"window": 12, "sinks": 4}, "-n/30"], length=512)',
        512,
        (
            "through 2 layers, 99 % of the influence on a token comes from the "
            "nearest 512 tokens.  [approximate]"
        ),
        None,
    ),
    (
        'layered_receptive_field(layers=["-n/30","-1.2*log(1+n)"])',
        None,
        (
            "through 2 layers, 99 % of the influence on a token comes from at least "
            "170942 tokens nearest to it.  [approximate]"
        ),
        "unlike layers beyond the grid of lags",
    ),
    (
        'layered_receptive_field("fox", 6)',
        None,
        "there is no mass by distance to speak of: {fox}.",
        WRITTEN,
    ),
    (
        'theoretical_receptive_field("-2*log(1+n)", "1/100", length=5000)',
        60,
        ("the nearest 60 tokens hold all but 1 % of the mass of a row of 5000 keys.  [certified]"),
        None,
    ),
    (
        'theoretical_receptive_field("-n*sin(n)^2", "1/100", length=5000)',
        4971,
        (
            "the nearest 4971 tokens hold all but 1 % of the mass of a row of 5000 "
            "keys.  [certified]"
        ),
        None,
    ),
    (
        'theoretical_receptive_field("-log(n+20)*(1+1/log(log(n+20)))", "1/100", budget_s=5)',
        11804806009,
        ("the nearest 11804806009 tokens hold all but 1 % of the mass.  [certified]"),
        None,
    ),
    (
        'theoretical_receptive_field("alibi", "1/100", heads=2)',
        1179,
        ("the nearest 1179 tokens hold all but 1 % of the mass, in the widest head.  [certified]"),
        None,
    ),
    (
        'theoretical_receptive_field("-1.1*log(1+n)", "1/100")',
        None,
        (
            "the number of nearest tokens that hold all but 1 % of the mass is "
            "between exp(45.483694810702275) and exp(45.48369481120229).  [certified]"
        ),
        "the answer is beyond 10^18; exact=True (--exact) counts it",
    ),
    (
        'theoretical_receptive_field("-sqrt(n)-log(1+n)", "1/100")',
        13,
        "the nearest 13 tokens hold all but 1 % of the mass.  [certified]",
        None,
    ),
    (
        'certified_window("-log(1+n)", "1/2", 1, 1)',
        math.inf,
        NO_WINDOW,
        ("the exp-series diverges: no finite number of keys holds a share of its mass"),
    ),
    (
        'certified_window("-log(1+n)", 2, 1, 1)',
        1,
        ("the nearest token alone is provably enough for an error of at most 2.  [certified]"),
        "every window has an error of at most 2 value_bound",
    ),
    (
        'certified_window("alibi", "1/10", 1, 1)',
        1268,
        (
            "the nearest 1268 tokens are provably enough for an error of at most "
            "1/10, in the widest head, and no fewer are.  [certified]"
        ),
        None,
    ),
    (
        'layered_receptive_field("-n", 3, q="0.99999999999999999999")',
        None,
        (
            "through 3 layers, 99999999999999999999…0000000000000000000 of the "
            "influence on a token comes from between 46 and 142 tokens nearest to "
            "it.  [approximate]"
        ),
        "beyond the grid of lags: bracketed by the largest step",
    ),
    (
        'layered_receptive_field("-11/10*log(1+n)", 2, mixing=1)',
        None,
        (
            "through 2 layers, 99 % of the influence on a token comes from between "
            "56587345891996571875185 and 113174691783993143750373 tokens nearest to "
            "it.  [approximate]"
        ),
        "beyond the grid of lags: bracketed by the largest step",
    ),
    (
        'dtype_horizon("cos(n)", "fp16")',
        None,
        "it is not known from where on the weights round to 0 in fp16.",
        "not proved monotone for all large n: the bound from above diverges",
    ),
    (
        'price_of_distance("alibi", 100)',
        5.633614721101584,
        (
            "half of the attention on the key at distance 100 costs a logit "
            "advantage of 5.63361 nats, in the cheapest head.  [certified]"
        ),
        None,
    ),
    (
        'price_of_distance("-log(1+n)", 3)',
        math.inf,
        ("as rows grow, no fixed advantage keeps half of the attention at distance 3.  [theorem]"),
        "the exp-series diverges: the other keys come to outweigh any one of them",
    ),
    (
        'price_of_distance("where(n<3,-inf,-n)", 2)',
        math.inf,
        "no advantage reaches the key at distance 2: it has no weight.  [theorem]",
        "the bias masks the key at distance 2",
    ),
    (
        'price_of_distance("-log(n+2)*(2+sin(n**2))-log(log(n+2))", 1)',
        None,
        "what the key at distance 1 costs is not known.",
        "the exp-series is undecided",
    ),
    (
        'reach("0", 100)',
        0,
        (
            "as rows grow, an advantage of 100 nats comes to reach no key: the "
            "exp-series diverges.  [theorem]"
        ),
        ("the exp-series diverges: every price grows beyond all bounds with the row"),
    ),
    (
        'reach("0", 100, length=7)',
        7,
        (
            "a key that leads by 100 nats has half of the attention up to 6 tokens "
            "back in a row of 7 keys.  [certified]"
        ),
        None,
    ),
]


@pytest.mark.parametrize(("question", "value", "sentence", "reason"), ANSWERED)
def test_a_question_has_its_value_its_sentence_and_its_reason(question, value, sentence, reason):
    found = eval(f"farfield.{question}", {"farfield": farfield})
    told, floats = getattr(found, found.VALUE), isinstance(value, float)
    assert told == (pytest.approx(value, rel=1e-14) if floats else value)
    first, said = found.text(width=10_000).splitlines()[0], sentence.replace("{fox}", FOX)
    assert first.endswith(f": {said}")
    if reason is WRITTEN:
        assert str(found.reason) in said
    else:
        assert str(found.reason or None) == str(reason)
    if floats and math.isfinite(value) and (enclosure := getattr(found, "enclosure", None)):
        low, high = enclosure
        assert low <= value <= high and high - low <= 1e-13 * max(1e-3, abs(value))
