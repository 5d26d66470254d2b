"""What an answer costs: the sums and balls it asks for, and their bits. A guess that goes wrong, or
a precision that is not needed, changes no answer: it is seen here alone."""

import pytest
from flint import ctx

import farfield as f
from farfield.numerics.levels import SuperlevelSet
from farfield.numerics.summation.series import Series

CLASSES = "where(n%2==0,-n/8,-2*log(1+n))"
FIELDS = {  # (bias, eps): tails T_j, the sum of their bits and that of their j modulo 10^6
    ("-2*log(1+n)", "1/100"): (9, 640, 300),
    ("-n/256", "1e-12"): (11, 768, 99609),
    ("-n*log(2)", "1/1024"): (8, 576, 58),
    ("-n/10^19", "1/10"): (13, 1472, 569890),
    ("-n^2/10^6", "1e-9"): (9, 576, 82880),
    ("-1.2*log(1+n)", "1/1000"): (10, 960, 4546),
    ("-log(1+n)^2", "1e-8"): (9, 576, 631),
    ("-sqrt(n)", "1e-12"): (9, 576, 5559),
    ("-n^(3/10)/2", "1e-6"): (10, 640, 210639),
    ("-2*log(n+1)+sin(log(n+1))", "1/100"): (7, 448, 116),
    ("-3*floor(log(n+2)/log(3))", "1/100"): (9, 640, 132),
    ("where(n<100,-n/50,-2*log(n))", "1/500"): (14, 960, 1185),
    ("-1.1*log(1+n)", "1/100"): (11, 1216, 334137),  # a magnitude
    ("-1.0001*log(1+n)", "1e-5"): (10, 1088, 143613),  # by integrals
    ("-log(n+2)-2*log(log(n+2))", "1e-8"): (8, 704, 33105),
    ("-log(1+n)-2*log(1+log(1+n))", "1/1000"): (17, 1280, 379826),
    ("-log(1+n)-log(2+n)", "1/5"): (11, 1216, 41),  # a tie
    (CLASSES, "1/1000"): (9, 640, 754),
}
ROW = {"row": 300, "sinks": 4, "temper": "1/8"}
OF_4, OF_3 = "where(n%4==0,-n/20,-inf)", "max(-n/2,-n/20-2)+where(n%3==0,1,0)"
OTHERS = {  # tails, their bits; balls of the bias, levels, their bits; the sum of all places
    "leak": (lambda: f.leak("-2*log(1+n)", 64), (2, 256, 0, 0, 0, 64)),
    "row": (lambda: f.leak("-2*log(1+n)", 64, 512), (2, 256, 0, 0, 0, 64)),
    "window": (lambda: f.certified_window("-2*log(1+n)", "1/100", 1, 1), (13, 1232, 0, 0, 0, 5329)),
    "loose": (
        lambda: f.certified_window("-2*log(1+n)", "1/100", 4, 1),
        (13, 1304, 0, 0, 0, 868964),
    ),
    "of a row": (lambda: f.certified_window("-n/9", row=100), (10, 1272, 0, 0, 0, 333)),
    "sinks": (lambda: f.certified_window("-n/9", "1/1000", 2, 1, **ROW), (10, 1272, 0, 0, 0, 479)),
    "error": (lambda: f.window_error("-2*log(1+n)", 64, 1, 1), (2, 256, 0, 0, 0, 64)),
    "price": (lambda: f.price_of_distance("-2*log(1+n)", 500), (2, 164, 0, 0, 0, 501)),
    "reach": (lambda: f.reach("-2*log(1+n)", 7), (2, 128, 13, 15, 960, 1407)),
    "hill": (lambda: f.reach("-((n-50)^2)/100", 4), (2, 128, 21, 22, 1408, 1754)),
    "classes": (lambda: f.reach(CLASSES, 7), (2, 128, 18, 21, 1344, 1415)),
    "tie": (lambda: f.reach("-log(n+1)-log(n+2)", 0), (10, 2048, 7, 8, 512, 56)),
    "holes": (lambda: f.reach("4*cos(n/8)-n/100", 5), (2, 128, 69, 72, 4608, 144657)),
    "horizon": (lambda: f.dtype_horizon("-n/8", "fp16"), (0, 0, 13, 15, 960, 3774)),
    "of classes": (lambda: f.dtype_horizon(CLASSES, "fp16"), (0, 0, 35, 40, 2560, 314552)),
    "wave": (lambda: f.dtype_horizon("-n/2+sin(n)", "fp32"), (0, 0, 16, 18, 1152, 6497)),
    "resolution": (lambda: f.attention_resolution("-2*log(1+n)"), (3, 384, 0, 0, 0, 0)),
    "long row": (lambda: f.attention_resolution("-2*log(1+n)", 100_000), (6, 870, 0, 0, 0, 0)),
    "order": (lambda: f.compare_tails("-n/256", "-2*log(1+n)"), (135, 20288, 0, 0, 0, 418898)),
    "powers": (lambda: f.compare_tails("-3*log(1+n)", "-2*log(5+n)"), (48, 4480, 0, 0, 0, 21955)),
    "near order": (
        lambda: f.compare_tails("-2*log(1+n)", "-2*log(1+n)+1/(1+n)"),
        (45, 3840, 0, 0, 0, 4090),
    ),
    "logs": (lambda: f.compare_tails("-log(1+n)^2", "-n^(1/3)"), (44, 3072, 0, 0, 0, 12295)),
    "order of classes": (lambda: f.compare_tails(OF_4, OF_3), (120, 11136, 0, 0, 0, 4545)),
    "layers": (lambda: f.layered_receptive_field("-1.2*log(1+n)", 6), (21, 2048, 0, 0, 0, 613858)),
    "ceiling": (
        lambda: f.attention_ceiling("-2*log(1+n)", 3, length=512),
        (4, 292, 15, 15, 960, 1889),
    ),
}


@pytest.fixture
def asked(monkeypatch):
    """The bits of each tail, each ball of the bias and each level that are asked for, and where."""
    bits, places = {"tail": [], "_decided": [], "_level": []}, []
    for room, name in ((Series, "tail"), (SuperlevelSet, "_decided"), (SuperlevelSet, "_level")):
        plain = getattr(room, name)

        def seen(self, *given, name=name, plain=plain):
            bits[name].append(given[0] if name == "_level" else ctx.prec)
            places.extend(x for x in given if isinstance(x, int) and name != "_level")
            return plain(self, *given)

        monkeypatch.setattr(room, name, seen)
    return *bits.values(), places


@pytest.mark.parametrize("case", FIELDS)
def test_a_field_costs_so_many_sums(case, asked):
    f.theoretical_receptive_field(*case)
    tails, _, _, places = asked
    assert (len(tails), sum(tails), sum(places) % 10**6) == FIELDS[case]


@pytest.mark.parametrize("name", OTHERS)
def test_an_answer_costs_so_many_sums_and_balls(name, asked):
    ask, cost = OTHERS[name]
    ask()
    tails, balls, levels, places = asked
    found = len(tails), sum(tails), len(balls), len(levels), sum(levels), sum(places) % 10**6
    assert found == cost
