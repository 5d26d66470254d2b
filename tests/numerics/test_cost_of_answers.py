"""What an answer costs: the sums and balls it asks for, and their bits. A guess that goes wrong, or
a precision that is not needed, changes no answer: it is seen here alone."""

import pytest
from flint import ctx

import farfield as f
from farfield.numerics.levels import SuperlevelSet
from farfield.numerics.summation.series import Series

CLASSES = "where(n%2==0,-n/8,-2*log(1+n))"
FIELDS = {  # (bias, eps): tails T_j and the sum of their bits
    ("-2*log(1+n)", "1/100"): (9, 640),
    ("-n/256", "1e-12"): (11, 768),
    ("-1.2*log(1+n)", "1/1000"): (10, 960),
    ("-log(1+n)^2", "1e-8"): (9, 576),
    ("-sqrt(n)", "1e-12"): (9, 576),
    ("-1.1*log(1+n)", "1/100"): (11, 1216),  # a magnitude
    ("-1.0001*log(1+n)", "1e-5"): (10, 1088),  # by integrals
    ("-log(1+n)-2*log(1+log(1+n))", "1/1000"): (17, 1280),
    ("-log(1+n)-log(2+n)", "1/5"): (11, 1216),  # a tie
    (CLASSES, "1/1000"): (9, 640),
}
OTHERS = {  # tails, their bits; balls of the bias, levels, their bits
    "leak": (lambda: f.leak("-2*log(1+n)", 64), (2, 256, 0, 0, 0)),
    "row": (lambda: f.leak("-2*log(1+n)", 64, 512), (2, 256, 0, 0, 0)),
    "window": (lambda: f.certified_window("-2*log(1+n)", "1/100", 1, 1), (13, 1232, 0, 0, 0)),
    "loose": (lambda: f.certified_window("-2*log(1+n)", "1/100", 4, 1), (13, 1304, 0, 0, 0)),
    "of a row": (lambda: f.certified_window("-n/9", row=100), (10, 1272, 0, 0, 0)),
    "error": (lambda: f.window_error("-2*log(1+n)", 64, 1, 1), (2, 256, 0, 0, 0)),
    "price": (lambda: f.price_of_distance("-2*log(1+n)", 500), (2, 164, 0, 0, 0)),
    "reach": (lambda: f.reach("-2*log(1+n)", 7), (2, 128, 13, 15, 960)),
    "hill": (lambda: f.reach("-((n-50)^2)/100", 4), (2, 128, 21, 22, 1408)),
    "classes": (lambda: f.reach(CLASSES, 7), (2, 128, 18, 21, 1344)),
    "tie": (lambda: f.reach("-log(n+1)-log(n+2)", 0), (10, 2048, 7, 8, 512)),
    "horizon": (lambda: f.dtype_horizon("-n/8", "fp16"), (0, 0, 13, 15, 960)),
    "of classes": (lambda: f.dtype_horizon(CLASSES, "fp16"), (0, 0, 35, 40, 2560)),
    "wave": (lambda: f.dtype_horizon("-n/2+sin(n)", "fp32"), (0, 0, 16, 18, 1152)),
    "resolution": (lambda: f.attention_resolution("-2*log(1+n)"), (3, 384, 0, 0, 0)),
    "long row": (lambda: f.attention_resolution("-2*log(1+n)", 100_000), (6, 870, 0, 0, 0)),
    "order": (lambda: f.compare_tails("-n/256", "-2*log(1+n)"), (135, 20288, 0, 0, 0)),
}


@pytest.fixture
def asked(monkeypatch):
    """The bits of each tail, each ball of the bias and each level that are asked for."""
    bits = {"tail": [], "_decided": [], "_level": []}
    for room, name in ((Series, "tail"), (SuperlevelSet, "_decided"), (SuperlevelSet, "_level")):
        plain = getattr(room, name)

        def seen(self, *given, name=name, plain=plain):
            bits[name].append(given[0] if name == "_level" else ctx.prec)
            return plain(self, *given)

        monkeypatch.setattr(room, name, seen)
    return bits


@pytest.mark.parametrize("case", FIELDS)
def test_a_field_costs_so_many_sums(case, asked):
    f.theoretical_receptive_field(*case)
    assert (len(asked["tail"]), sum(asked["tail"])) == FIELDS[case]


@pytest.mark.parametrize("name", OTHERS)
def test_an_answer_costs_so_many_sums_and_balls(name, asked):
    ask, cost = OTHERS[name]
    ask()
    tails, balls, levels = asked.values()
    assert (len(tails), sum(tails), len(balls), len(levels), sum(levels)) == cost
