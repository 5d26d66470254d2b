"""From a goal to an encoding: both ends of every interval, by fields just inside and outside."""

import itertools
import math
import re
import time
import tomllib
from dataclasses import replace
from types import SimpleNamespace

import pytest
import sympy
from flint import arb
from sympy import Integer, Rational, S, Symbol

import farfield
from farfield.numerics.design.family import read_family
from farfield.numerics.design.line import ParameterLine, _count, _Scan
from farfield.numerics.design.order import MAX_OPERATIONS, rises, support_step, tail_order
from farfield.numerics.design.rationals import simplest
from farfield.numerics.design.solve import _best, _by_head, _ParameterSearch, _solutions
from farfield.numerics.design.targets import (
    COUNTS,
    TARGETS,
    Quantity,
    Target,
    quantity,
    read_targets,
)
from farfield.theory.algebra.door import budget, until
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Code, Label, Reason, Status
from farfield.theory.answers.notation import expression_latex, expression_line
from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import n

a = Symbol("a", positive=True)
BUSY = 300  # seconds: a test asserts no time


def design(*args, **options):
    return farfield.design(*args, budget_s=BUSY, **options)


def ends(found):
    """Each end as (outside, inside)."""
    return found.low, found.high[::-1]


def reached(family, quantity, options, value, **fixed):
    """The number itself, by the public function of the quantity."""
    bias = read_family(family, values=fixed).at(value)
    ask = {
        "trf": lambda: farfield.theoretical_receptive_field(bias, **options).tokens,
        "leak": lambda: farfield.leak(bias, *options.values()).value,
        "window": lambda: farfield.certified_window(bias, **options).width,
        "layered": lambda: farfield.layered_receptive_field(bias, **options).tokens,
        "horizon": lambda: farfield.dtype_horizon(bias, **options).tokens,
        "resolution": lambda: farfield.attention_resolution(bias, **options).value,
    }
    return ask[quantity]()


def test_values_of_others_are_given_as_a_mapping_or_by_name():
    asked = {"parameter": "a", "trf": 512, "eps": "1/100"}
    once, twice = "-a*log(1+n)", "-a*b*log(1+n)"
    by_mapping = farfield.design(twice, values={"b": 2}, **asked)
    by_name, alone = farfield.design(twice, b=2, **asked), farfield.design(once, **asked)
    assert (by_mapping.low, by_mapping.high) == (by_name.low, by_name.high)
    assert float(alone.low[0]) == pytest.approx(2 * float(by_mapping.low[0]))


def test_a_limit_nearer_than_floats_can_tell_is_decided():
    """The leak of -n beyond 10 tokens is exp(-10)."""
    leak, bias = quantity("leak", {"trained": 10}), -n
    value, little = Rational(str(sympy.exp(-10).evalf(40))), Rational(1, 10**25)
    above, below = value * (1 + little), value * (1 - little)
    assert leak.within(bias, above) and not leak.within(bias, below)


# -- one parameter --------------------------------------------------------------------------------

WINDOW = {"error": "1/100", "logit_bound": 1, "value_bound": 1}
EQUAL = [
    ("alibi", "trf", 512, {"eps": "1/100"}, {}),
    ("-a*log(1+n)", "trf", 512, {"eps": "1/100"}, {}),
    ("-a*n^b", "trf", 300, {"eps": "1/1000"}, {"b": "1/2"}),
    ("-n^a", "trf", 12, {"eps": "1/100"}, {}),
    ("-2*log(1+n/a)", "trf", 1000, {"eps": "1/10"}, {}),
    pytest.param(
        "-log(1+n)-a*log(2+log(1+n))", "trf", 7, {"eps": "1/2"}, {}, marks=pytest.mark.slow
    ),
    ("kerple_log", "trf", 100, {"eps": "1/100"}, {"r2": "1/2"}),
    ("sandwich_smoothed", "trf", 2000, {"eps": "1/100"}, {}),
    ("-a*n*log(1+n)", "trf", 100, {"eps": "1/100"}, {}),
    ("-floor(n/4)/a", "trf", 200, {"eps": "1/100"}, {}),
    ("alibi", "trf", 700, {"eps": "1/100", "length": 1024}, {}),
    ("-a*n", "window", 500, WINDOW, {}),
    ("-a*log(1+n)", "window", 500, WINDOW, {}),
    ("-a*n", "horizon", 4096, {"dtype": "bf16"}, {}),
    ("-a*log(1+n)", "horizon", 100, {"dtype": "fp16"}, {}),
    ("-a*n", "layered", 500, {"layers": 4}, {}),
    ("-(2^a+a)*log(1+n)", "trf", 64, {"eps": "1/100"}, {}),  # where it converges is not solved for
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("family", "quantity", "goal", "options", "fixed"), EQUAL)
def test_both_ends_of_an_equality(family, quantity, goal, options, fixed):
    found = design(family, **{quantity: goal}, **options, **fixed)
    assert found.monotone and found.achieved == goal and found.status == "exact"
    for outside, inside in ends(found):
        assert reached(family, quantity, options, inside, **fixed) == goal
        assert reached(family, quantity, options, outside, **fixed) != goal
        assert abs(outside - inside) <= abs(inside) * Rational(1, 10**9)
    assert found.low[0] < found.low[1] <= found.value <= found.high[0] < found.high[1]
    assert reached(family, quantity, options, found.value, **fixed) == goal
    assert sum(found.closed) == 1  # neighbours share no parameter and leave none out


PLACES = [  # a family; parameters at which bounds are decided, gauged, and the sum of the places of
    # the latter; both ends, each outside and inside; whether they belong; the simplest value
    (
        "alibi",
        {"trf": 512, "eps": "1/100"},
        (4, 28, -143.4426),
        [0.0089944730195, 0.0089944730196],
        [0.0090120747279, 0.009012074728],
        (False, True),
        "1/111",
    ),
    (
        "-a*log(1+n)",
        {"trf": 512, "eps": "1/100"},
        (4, 22, -10.8009),
        [1.68127576444, 1.68127576445],
        [1.68147415939, 1.6814741594],
        (False, True),
        "153/91",
    ),
    (
        "-2*log(1+n/a)",
        {"trf": 1000, "eps": "1/10"},
        (4, 26, 137.6529),
        [111.49917418, 111.49917419],
        [111.61028612, 111.61028613],
        (True, False),
        "223/2",
    ),
    (
        "-n^a",
        {"trf": 12, "eps": "1/100"},
        (4, 26, -13.0679),
        [0.67529459301, 0.67529459302],
        [0.69417528192, 0.69417528193],
        (False, True),
        "9/13",
    ),
    (
        "window",
        {"trf": 512, "eps": "1/100"},
        (6, 130, 1172.9665),
        [516.0, 516.00000001],
        [517.0, 517.00000001],
        (False, True),
        "517",
    ),
    (
        "window",
        {"layered": 202, "layers": 12},
        (6, 136, 701.0998),
        None,
        None,
        (False, False),
        "None",
    ),
    (
        "-a*n",
        {"window": 500, **WINDOW},
        (4, 31, -152.7028),
        [0.01458796934, 0.014587969341],
        [0.014617203748, 0.014617203749],
        (True, False),
        "2/137",
    ),
    (
        "-a*log(1+n)",
        {"horizon": 100, "dtype": "fp16"},
        (4, 28, 52.0067),
        [3.7547620805, 3.7547620806],
        [3.7628749457, 3.7628749458],
        (True, False),
        "79/21",
    ),
    (
        "-a*n",
        {"layered": 500, "layers": 4},
        (4, 50, -263.0452),
        [0.013836695955, 0.013836695956],
        [0.013864375493, 0.013864375494],
        (True, False),
        "4/289",
    ),
    (
        "alibi",
        {"trf": 700, "eps": "1/100", "length": 1024},
        (4, 32, -229.9119),
        [0.0063881294301, 0.0063881294302],
        [0.006399303639, 0.0063993036391],
        (False, True),
        "2/313",
    ),
    (
        "alibi",
        {"leak": "1/1000", "trained": 64, "tested": 512},
        (2, 14, -46.8839),
        [0.10793367623, 0.10793367624],
        None,
        (True, False),
        "1",
    ),
    (
        "-a*log(1+n)",
        {"trf": ">=1024", "horizon": ">=4096", "dtype": "bf16"},
        (5, 22, -12.4753),
        [1.0, 1.0000000001],
        [1.61763807967, 1.61763807968],
        (False, True),
        "3/2",
    ),
    (
        "-a*n",
        {"trf": ">=64, <=128", "eps": "1/100", "optimise": "leak"},
        (4, 32, -127.4766),
        [0.035977892078, 0.035977892079],
        [0.07309793946, 0.073097939461],
        (False, True),
        "13/178",
    ),
    (
        "-a*n",
        {"resolution": "1/100"},
        (2, 11, -22.8326),
        [0.14677263447, 0.14677263448],
        None,
        (True, False),
        "1",
    ),
    (
        "a*n",
        {"trf": 512, "assumptions": {"a": "real"}},
        (4, 28, 151.4426),
        [-0.009012074728, -0.0090120747279],
        [-0.0089944730196, -0.0089944730195],
        (True, False),
        "-1/111",
    ),
    (
        "-n*a",
        {"trf": 64, "assumptions": {"a": "(0, 1]"}},
        (4, 30, -108.7647),
        [0.071955784156, 0.071955784157],
        [0.07309793946, 0.073097939461],
        (False, True),
        "4/55",
    ),
    (
        "-m*n",
        {"reach": 300, "advantage": 7},
        (17, 31, -182.983),
        [0.0013754735268, 0.0013754735269],
        [0.0066237942029, 0.006623794203],
        (True, True),
        "1/151",
    ),
    (
        "-m*n",
        {"reach": 200, "advantage": 7, "leak": "<=1/100", "trained": 512},
        (31, 78, -436.0847),
        [0.0089944730195, 0.0089944730196],
        [0.013520747785, 0.013520747786],
        (True, True),
        "1/74",
    ),
    (
        "-n/(1+100*(a-20)^2)",
        {"trf": ">=2, <=10", "eps": "1/100"},
        (54, 170, 555.0061),
        [19.89176542, 19.891765421],
        [20.108234579, 20.10823458],
        (True, True),
        "20",
    ),
    (
        "-a*n*(1+sin(n)/2)",
        {"trf": 64, "eps": "1/100", "length": 256},
        (23, 58, -167.5928),
        [0.10815672211, 0.10815672212],
        [0.10830632176, 0.10830632177],
        (True, True),
        "17/157",
    ),
    (
        "-a*n",
        {"trf": 10000000000000, "eps": "1/100"},
        (71, 46, -1607.1392),
        ["4.605170185988091368e-13", "4.605170185988091369e-13"],
        ["4.60517018598855188e-13", "4.60517018598855189e-13"],
        (False, True),
        "4/8685889638065",
    ),
    (
        "-n/(1+100*(a-20)^2)",
        {"trf": ">=2, <=4", "eps": "1/100"},
        (44, 76, 145.8493),
        *(None, None, (False, False), "None"),
    ),
    (
        "-n*a",
        {"trf": "<=64", "assumptions": {"a": "(0, 1]"}},
        (2, 15, -54.4945),
        [0.071955784156, 0.071955784157],
        None,
        (False, True),
        "1",
    ),
    (
        "-n*a",
        {"trf": "<=64", "assumptions": {"a": "(0, 1)"}},
        (2, 15, -54.4945),
        [0.071955784156, 0.071955784157],
        None,
        (False, False),
        "1/2",
    ),
    (
        "-a*log(1+n)",
        {"trf": ">=2"},
        (2, 13, 28.3601),
        [1.0, 1.0000000001],
        [6.7371350879, 6.737135088],
        (False, True),
        "2",
    ),
    (
        "-a*n",
        {"trf": ">=64", "optimise": "leak"},
        (2, 16, -59.1984),
        None,
        [0.07309793946, 0.073097939461],
        (False, True),
        "13/178",
    ),
    (
        "-a*n",
        {"trf": "<=64", "optimise": "leak"},
        (2, 16, -59.4281),
        [0.071955784156, 0.071955784157],
        None,
        (False, False),
        "1",
    ),
    (
        "window",
        {"trf": ">=64, <=128", "optimise": "leak"},
        (5, 131, 854.9856),
        [63.0, 63.000000001],
        [129.0, 129.00000001],
        (False, True),
        "64",
    ),
    (
        "-n^a",
        {"trf": "<=12"},
        (2, 13, -6.692),
        [0.67529459301, 0.67529459302],
        None,
        (False, False),
        "1",
    ),
    (
        "-log(1+n)*(1+exp(-a))",
        {"trf": ">=64", "assumptions": {"a": "real"}},
        (2, 10, 3.0731),
        [0.0095597176372, 0.0095597176373],
        None,
        (True, False),
        "1",
    ),
]


@pytest.fixture
def gauged(monkeypatch):
    """The parameters at which a bound is decided, and the coordinates at which one is gauged."""
    places = [], []
    for name, seen in zip(("holds", "violation"), places, strict=True):
        plain = getattr(ParameterLine, name)

        def at(self, bound, x, plain=plain, seen=seen):
            seen.append(float(x))
            return plain(self, bound, x)

        monkeypatch.setattr(ParameterLine, name, at)
    return places


@pytest.mark.parametrize(("family", "options", "cost", "low", "high", "closed", "value"), PLACES)
def test_a_design_looks_at_so_many_places(family, options, cost, low, high, closed, value, gauged):
    """A search that looks elsewhere finds the same ends, or others just as well proved."""
    found, (decided, places) = design(family, **options), gauged
    assert (len(decided), len(places)) == cost[:2]
    assert sum(places) == pytest.approx(cost[2], abs=1e-3)
    for end, wanted in ((found.low, low), (found.high, high)):
        assert end == wanted is None or [*end] == [Rational(str(x)) for x in wanted]
    assert (found.closed, str(found.value)) == (closed, value)
    assert found.reason is None or value == "None"


SHARES = [
    ("-a*log(1+n)", "leak", "1/1000", {"trained": 2048}, "low"),
    ("alibi", "leak", "1/1000", {"trained": 64, "tested": 512}, "low"),
    ("-a*n", "resolution", "1/100", {}, "low"),
    ("-n/a", "leak", "1/1000", {"trained": 2048}, "high"),
]


@pytest.mark.parametrize(("family", "quantity", "limit", "options", "side"), SHARES)
def test_a_share_bounds_one_end(family, quantity, limit, options, side):
    found = design(family, **{quantity: limit}, **options)
    outside, inside = getattr(found, side)[:: 1 if side == "low" else -1]
    assert getattr(found, {"low": "high", "high": "low"}[side]) is None and found.monotone
    beyond, within = (reached(family, quantity, options, x) for x in (outside, inside))
    order = sorted([beyond, float(Rational(limit)), within])
    assert order[1] == float(Rational(limit)) and math.isclose(beyond, within, rel_tol=1e-7)
    assert found.closed[side == "high"]  # at most and at least hold at the threshold


def test_the_ends_are_exact_where_they_are_known():
    """TRF(1/100) of exp(-a n) is the least j with exp(-a j) < 1/100."""
    found = design("-a*n", trf=512, eps="1/100")
    for pair, at in ((found.low, sympy.log(100) / 512), (found.high, sympy.log(100) / 511)):
        assert min(pair) < at < max(pair)
    assert found.closed == (False, True) and found.value == Rational(1, 111)
    low, high = re.search(r"a in: +\((\S+)…, (\S+)…\]\n", found.text()).groups()
    for digits, at in ((low, sympy.log(100) / 512), (high, sympy.log(100) / 511)):
        assert str(at.evalf(40)).startswith(digits) and len(digits) > 8
    counted = design("window", trf=512, eps="1/100")  # the least j with (w - j)/w < 1/100
    assert (counted.low[0], counted.high[0], counted.closed) == (516, 517, (False, True))


@pytest.mark.parametrize("best", ["leak", "horizon"])
def test_the_best_value_of_a_narrow_interval_lies_in_it(best):
    """A thousandth beside an end is beyond the other end."""
    found = design("-a*n", trf=5000, optimise=best)
    assert found.low[1] <= found.value <= found.high[0] and found.achieved == 5000


@pytest.mark.parametrize(
    ("best", "low", "high", "value"),
    [  # both ends, outside and inside; tails grow, a field is the better and a window the worse
        ("window", (-1, 0), None, "0"),
        ("window", (1, "1.0035"), None, "224/223"),
        ("window", (-2, "-1.0035"), None, "-287/286"),
        ("window", (1, "1.0035"), ("1.0055", "1.0036"), "279/278"),
        ("window", None, (2, 1), None),
        ("trf", None, (2, "1.0035"), "287/286"),
        ("trf", None, (1, "-1.0025"), "-287/286"),
    ],
)
def test_the_best_value_is_the_simplest_within_a_thousandth_of_an_end(best, low, high, value):
    """By hand."""
    ends = [end and tuple(map(Rational, end)) for end in (low, high)]
    found = _best(ends, SimpleNamespace(order=1, step=None), TARGETS[best])
    assert found == (value and Rational(value))


def test_the_stages_of_a_design_are_told():
    told, text = [], "-a*n" + "+0*n" * 12
    design(text, trf=[2, 3], notice=lambda *stage: told.append(stage))
    searches = [("searching", h, 2) for h in range(2)]
    assert told == [(f"order of {text}"[:40], 0, 1), *searches, ("costs", 0, 1)]


def test_an_integer_that_is_not_reached_has_neighbours():
    found = design("window", layered=202, layers=12)
    assert found.value is None and found.nearest == (201, 206) and found.reason.code == "never"
    assert found.label == "approximate"  # layers are a model in float64
    jump = design("-floor(n/4)/a", horizon=5, dtype="fp16")  # 5 keys have the bias of 4
    assert (jump.nearest, jump.status, jump.label) == ((4, 8), "exact", "certified")
    twice = design("-floor(n/4)/a", horizon=5, dtype="fp16", trf="<=1000")
    assert (twice.nearest, twice.status) == ((4, 8), "exact")
    even = design("where(n%2==0,-a*n,-oo)", layered=4, layers=2)  # no formula shows that
    assert (even.nearest, even.status, even.label) == ((3, 5), "unknown", None)
    assert (even.reason.code, even.monotone) == ("tie", True)
    heads = design("window", layered=[201, 202], layers=12)
    assert heads.values == () and heads.heads[0].value is not None and heads.encoding is None
    assert heads.reason.code == "never" and "2 heads with" not in heads.text()


def test_a_bound_that_holds_wherever_it_is_tried_has_no_threshold():
    """The field is 5 at the least, that of -n."""
    found = design("-n/(1+a)", trf=">=5")
    assert (found.low, found.high, found.value) == (None, None, 1)
    assert str(found.reason) == "beyond the a that were tried, up to 2^64, nothing is proved"


def test_neighbours_of_a_jump_that_are_not_known_are_not_told():
    search = SimpleNamespace(family=SimpleNamespace(at=lambda value: value))
    with pytest.raises(Unreachable, match="the share is not known there"):
        _ParameterSearch._nearest(search, answered(None, None), (1, 2), proved=True)


def undecided_beyond(monkeypatch, limit):
    """Parameters above a limit are not decided."""
    holds = ParameterLine.holds

    def asked(line, event, value):
        if value > limit:
            raise Unreachable("too slow")
        return holds(line, event, value)

    monkeypatch.setattr(ParameterLine, "holds", asked)


@pytest.mark.parametrize(("goal", "reached"), [("512", 512), ("<=512, <=600", 5)])
def test_a_tie_at_a_decimal_is_passed_by_a_third_of_a_unit(monkeypatch, goal, reached):
    holds = ParameterLine.holds

    def asked(line, bound, value):
        if (value * 10**13).is_Integer:
            raise Unreachable("a tie")
        return holds(line, bound, value)

    monkeypatch.setattr(ParameterLine, "holds", asked)
    found = design("-a*n", trf=goal, eps="1/100")
    for end in (*found.low, *(found.high or ())):
        assert (end * 10**13 - Rational(1, 3)).is_Integer
    assert (found.achieved, found.value) == (reached, Rational(1, 111 if reached == 512 else 1))


def test_what_is_not_decided_is_not_what_is_missed(monkeypatch):
    undecided_beyond(monkeypatch, 1)
    found = design("-a*n-n/a", trf=2, eps="1/10")
    assert "not decided at a = 2, 4, 8" in str(found.reason)
    assert found.low is not None and found.high is None  # no parameter above is known to miss it
    undecided_beyond(monkeypatch, 0)
    none = design("-a*n-n/a", trf=2, eps="1/10")
    assert none.status == "unknown" and none.reason.code == "no_enclosure"
    assert "not decided at" in str(none.reason)


def test_assumed_domains_are_those_of_the_design():
    found = design("a*n", trf=512, assumptions={"a": "real"})
    assert found.value == Rational(-1, 111) and found.achieved == 512
    bounded = design("-a*log(1+n)", trf=64, assumptions={"a": "(0, 2]"})
    assert bounded.condition == "a <= 2 and 1 < a"
    undecided = design("-(2^a+a)*log(1+n)", trf=">=64")
    assert "the series converges is not decided" in str(undecided.reason)
    assert str(found.encoding.biases[0]) == "-n/111" and found.call == 'encoding(["-n/111"])'
    square = read_family("-sqrt(a^2)*n", assumptions={"a": "real"})
    assert square.at(Integer(-2)) == -2 * n
    negative = read_family("rope_surrogate").call([Integer(-1)])
    assert negative == 'encoding("rope_surrogate", a="-1")'
    inside = design("alibi", trf=512, assumptions={"m": "(0, 1]"})
    assert inside.call == 'encoding("alibi", m="1/111")'


def test_a_time_that_is_spent_is_unknown_with_its_reason(refusal):
    found = farfield.design("-a*log(1+n)", trf=1000, budget_s=1e-9)
    assert found.status == "unknown" and found.reason.code == "budget"
    assert found.value is None and found.encoding is None
    refusal("no value to train with", found.plan)


# -- the order of tails ---------------------------------------------------------------------------


ORDERS = [  # a bias in a, the order of its tails, the ends of a
    ("-a*n", -1, "0", "1"),
    ("-a*n", -1, "-oo", "0"),
    ("a*n", 1, "-oo", "oo"),
    ("-a**2*n", None, "-oo", "oo"),
    ("-a**2*n", -1, "0", "oo"),
    ("-a**2*n", 1, "-2", "-1"),
    ("-n/(1-a)", -1, "0", "1"),
    ("-n/a", 1, "-oo", "0"),
    ("-n**a", -1, "1", "2"),
    ("-a*(1-a)*n", None, "0", "1"),
    ("-a*(1-a)*n", -1, "0", "1/2"),
    ("-exp(a)*n", -1, "-oo", "oo"),
    ("-a*log(1+n)-n", -1, "0", "oo"),
    ("-n-a", 0, "0", "oo"),
    ("-floor(a*n)", None, "0", "oo"),
    ("-a*floor(n/2)-sqrt(a)*n", None, "0", "oo"),
    ("-log(1+n)**a", None, "1", "oo"),
    ("-log(1+a*n**2)", -1, "0", "oo"),
    ("-sqrt(n+a)", 1, "0", "oo"),
    ("-sqrt(n+a)+a", 1, "0", "oo"),
    ("-a*n+a*log(1+n)", -1, "0", "oo"),
    ("-a*n+log(1+a*n)", -1, "0", "oo"),
    ("-(n+a)**2", -1, "0", "oo"),
    ("-(n-a)**2", 1, "0", "oo"),
    ("-n*(2-a)", 1, "0", "2"),
    ("-n/(1+exp(-a))", -1, "-oo", "oo"),
    ("-a*cos(n)", None, "0", "oo"),
    ("-n**2+a*n", 1, "0", "oo"),
    ("-log(n+a)", 1, "0", "oo"),
    ("-2*log(1+n/a)", 1, "0", "oo"),
    ("a*0-n", 0, "0", "oo"),
    ("-n+a*sin(n)", None, "0", "oo"),
    ("-a*floor(n/8)", -1, "0", "oo"),
    ("-a*n-sqrt(a)*log(1+n)", -1, "0", "oo"),
    ("a*(n-1)**2+a**2*(n-1)**4", None, "0", "oo"),  # they move inwards at 0, then outwards
    ("-a*n-floor(n/2)", -1, "0", "oo"),
    ("-a*n-frac(n/3)+floor(a)", -1, "0", "oo"),
    ("Piecewise((-a*n,n<20),(-oo,True))", -1, "0", "oo"),
    ("Piecewise((-a*n,n<20),(-2*a*n,True))", None, "0", "oo"),
    ("Piecewise((-a*n,n<20+a),(-oo,True))", None, "0", "oo"),
    ("a*((n-7/2)**3/3-n/100)+a**2*n", 1, "0", "oo"),  # a slope that is no bound before n = 4
    ("a*((n-9/2)**3/3-n/100)+a**2*n", None, "0", "oo"),  # nor before 5: it is left open
]


@pytest.mark.parametrize(("text", "order", "low", "high"), ORDERS)
def test_a_proved_order_of_tails_is_that_of_the_ratios_of_their_terms(text, order, low, high):
    low, high, of = S(low), S(high), a if low == "0" else Symbol("a", real=True)
    bias = sympy.sympify(text, {"n": n, "a": of})
    assert tail_order(bias, of, low, high) == order
    least = low if low.is_finite else high - 4 if high.is_finite else Integer(-2)
    most = high if high.is_finite else least + 4
    inside = [bias.subs(of, least + (most - least) * k / 4) for k in (1, 3)]
    for k in range(12):
        near, far = (float((p.subs(n, k + 1) - p.subs(n, k)).evalf(30)) for p in inside)
        assert order is None or (order * (far - near) >= 0 and (order != 0 or near == far))


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("n", 1),
        ("-n", -1),
        ("5", 0),
        ("n**2", 1),
        ("-n**2", -1),
        ("floor(n/8)", 1),
        ("ceiling(n/3)-n", None),
        ("n*log(1+n)", 1),
        ("cos(n)", None),
        ("log(1+n)-n", -1),
        ("sqrt(n)-n", -1),
        ("n-log(1+n)", 1),
        ("(n-3)**2", None),
        ("Abs(n-2)", None),
        ("exp(-n)", -1),
        ("Max(n,3)", 1),
        ("Min(-n,2)", -1),
        ("1/(1+n)", -1),
        ("-1/(1+n)", 1),
        ("n/(1+n)", 1),
        ("n*exp(-n)", None),
        ("atan(n)", 1),
        ("n**3-2*n", None),
        ("log(n+1)**2-log(n+1)", None),
        ("2**n-n", None),
        ("loggamma(n+1)", 1),
        ("sqrt(n**2+4)", 1),
        ("n-Abs(n-4)", None),
        ("log(2+n)/(n+2)", None),
        ("(n+1)**(-2)", -1),
        ("exp(n)-n**3", None),
        ("n**2-9*n", None),
        ("-(n+1)**Rational(1,2)", -1),
        ("n*erf(n)", 1),  # by signs alone: erf has no bounds at infinity
        ("log(n**2+1)", 1),
        ("sqrt(floor(n/2)+1)", 1),
        ("(floor(n/2)+1)**(-2)", -1),
        ("floor(n/2)**2", 1),
        ("(floor(n/2)-1)**2", None),
        ("Abs(floor(n/2)-1)", None),
        ("log(floor(n/3)+1)", 1),
        ("atan(floor(n/2))", 1),
        ("exp(-floor(n/2))", -1),
        ("cos(floor(n/2))", None),
        ("floor(n/2)**n", None),
        ("-3*floor(n/2)", -1),
        ("floor(n/2)*floor(n/3)", None),
        ("floor(n/2)+n", 1),
        ("Max(floor(n/2),3-n)", None),
        ("2*n**3-9*n**2+12*n", None),
        ("frac(n/20)", None),
        ("Mod(n,20)-1/(n+1)", None),
        ("n-20*floor(n/20)", None),
        ("(n-31/2)**3/3-n/100", 1),  # the function of real numbers falls between 15 and 16
    ],
)
def test_a_function_of_distances_rises_or_falls_as_it_is_proved(text, way):
    f = sympy.sympify(text, {"n": n, "Rational": Rational, "frac": sympy.frac})
    steps = [float((f.subs(n, k + 1) - f.subs(n, k)).evalf(30)) for k in range(40)]
    assert rises(f) == way
    assert way is None or (all(way * step >= 0 for step in steps) and any(steps) is (way != 0))


def test_a_direction_is_sought_of_at_most_so_many_operations():
    f = n**2 - n / 2 + sympy.Add(*(sympy.sqrt(sympy.prime(k)) for k in range(1, 40)))
    assert f.count_ops() == MAX_OPERATIONS and [rises(f), rises(f + 1)] == [1, None]


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("Piecewise((-n,n<=a),(-oo,True))", "floor"),
        ("Piecewise((-n,a>=n),(-oo,True))", "floor"),
        ("Piecewise((-n,n<a),(-oo,True))", "ceiling"),
        ("Piecewise((-n,a>n),(-oo,True))", "ceiling"),
        ("Piecewise((-n,n>a),(-oo,True))", None),
        ("Piecewise((-n,n<=a+1),(-oo,True))", None),
        ("Piecewise((-n,n<=2*a),(-oo,True))", None),
        ("Piecewise((-n,n+1<=a),(-oo,True))", None),
        ("Piecewise((-n,Eq(n,a)),(-oo,True))", None),
        ("Piecewise((-n,(n<=a)&(n<9)),(-oo,True))", None),
        ("Piecewise((-n,n<=a),(-2*n,True))", None),
        ("Piecewise((-a*n,n<=a),(-oo,True))", None),
        ("Piecewise((-n,n<=a),(-2*n,n<9),(-oo,True))", None),
        ("-a*n", None),
    ],
)
def test_a_support_moves_in_steps_where_it_ends_at_the_parameter_itself(text, step):
    assert support_step(sympy.sympify(text, {"n": n, "a": a}), a) == step


# -- rationals ------------------------------------------------------------------------------------


ENDS = [S(x) for x in ("-oo", -2, "-2/3", "-1/2", 0, "1/3", "1/2", 1, "5/3", "oo")]


@pytest.mark.parametrize("closed", [*itertools.product((False, True), repeat=2)])
def test_the_simplest_rational_has_the_least_denominator_then_the_least_size(closed):
    """Of all in the interval, tried in that order."""
    tried = [Rational(p, q) for q in range(1, 8) for x in range(3 * q + 1) for p in (x, -x)]
    for low, high in itertools.product(ENDS, repeat=2):
        if all(end.is_finite or not held for end, held in zip((low, high), closed, strict=True)):
            above = [x for x in tried if low < x or (low == x and closed[0])]
            inside = (x for x in above if x < high or (x == high and closed[1]))
            assert simplest(low, high, *closed) == next(inside, None), (low, high)


# -- targets --------------------------------------------------------------------------------------


def test_targets_as_text():
    field = quantity("trf", {"eps": "1/10"})
    assert [(t.relation, t.limit) for t in read_targets(field, ">=64, <=128")] == [
        (">=", 64),
        ("<=", 128),
    ]
    assert read_targets(quantity("leak", {}), "1/8")[0].relation == "<="
    assert read_targets(quantity("resolution", {}), 0.125)[0].relation == ">="


@pytest.mark.parametrize("name", ["trf", "leak", "window", "layered"])
def test_counts_among_the_options_begin_at_one_and_sinks_at_none(refusal, name):
    counts = {k: int(k != "sinks") for k in COUNTS if k in TARGETS[name].options}
    chosen = quantity(name, counts).options
    assert {k: chosen[k] for k in counts} == counts
    for option, least in counts.items():
        refusal(option, quantity, name, counts | {option: least - 1})


def test_every_quantity_has_an_option_on_the_command_line():
    from dataclasses import fields

    from farfield.commands.goals import Goal

    known = {*TARGETS} | {name for kind in TARGETS.values() for name in kind.options}
    assert {f.name for f in fields(Goal)} == known


@pytest.mark.parametrize("heads", [1, 2, 3, 6])
@pytest.mark.parametrize(
    ("name", "ends"),
    [("leak", ("1/7", "1/3")), ("leak", ("1e-400", "1e-300")), ("trf", (3, 10**4 + 7))],
)
def test_a_pair_is_spaced_geometrically_and_its_ends_are_exact(name, ends, heads):
    spaced = _by_head(TARGETS[name], ends, heads)
    first, last = map(Rational, ends)
    assert len(spaced) == heads and Rational(spaced[0]) == first
    assert heads == 1 or Rational(spaced[-1]) == last
    for h, target in enumerate(map(Rational, spaced)):
        slack = Rational(1, 2) if name == "trf" else target / 10**5
        low, high = (((target + s) / first) ** (heads - 1) for s in (-slack, slack))
        assert low <= (last / first) ** h <= high
    written = _by_head(TARGETS[name], f"{ends[0]}:{ends[1]}", heads)
    assert [*map(Rational, written)] == [*map(Rational, spaced)]


TARGETS_MADE = [("trf", 3, sign) for sign in ("<", "<=", "=", ">=", ">")] + [
    ("leak", "1/2", sign) for sign in ("<", "<=", ">=", ">")
]


@pytest.mark.parametrize(("name", "limit", "relation"), TARGETS_MADE)
def test_a_target_is_met_where_its_bounds_are_as_they_are_wanted(name, limit, relation):
    """Of counts and shares, below, at and above the limit."""
    target = Target(quantity(name, {}), relation, Rational(limit))
    bounds = [*target.bounds()]
    for sign, step in (("<", -1), ("=", 0), (">", 1)):
        value = target.limit + step
        held = ((value < b.limit if b.strict else value <= b.limit) == b.wanted for b in bounds)
        assert all(held) is (sign in relation)
    assert {str(b) for b in bounds} == {str(target)}
    assert name == "leak" or {b.relation for b in bounds} <= {"<=", ">"}


def answered(low, high, label=Label.CERTIFIED, **fields):
    """A quantity whose answer has these bounds, whatever is asked."""
    ends = None if low is None else (low, high)
    given = {"status": Status.EXACT, "reason": None, "label": label, "span": lambda: ends}
    answer = SimpleNamespace(**given | fields)
    return Quantity("share", lambda bias: answer, {}, lambda options: "share")


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("ends", [(1, 1), (1, 2), (2, 2), (1, 3), (2, 3), (3, 3)])
def test_an_answer_is_within_a_limit_where_all_its_bounds_hold_are(ends, strict):
    """The limit is 2."""
    held = {x < 2 or (x == 2 and not strict) for x in (ends[0], sum(ends) / 2, ends[1])}
    if len(held) == 1:
        assert answered(*ends).within(n, Integer(2), strict) is held.pop()
    else:
        with pytest.raises(Unreachable, match="the share is 2 as far as known"):
            answered(*ends).within(n, Integer(2), strict)


def test_an_answer_without_bounds_is_unknown_with_its_reason():
    assert answered(1, 3, enclosure=(1, 1)).within(n, Integer(2))
    late, unsure = Reason(Code.BUDGET, "no time"), Reason(Code.UNDECIDED, "nobody knows")
    for asked, why in (
        (answered(None, None), "the share is not known there"),
        (answered(None, None, reason=unsure), "nobody knows"),
        (answered(1, 1, Label.APPROXIMATE), "the share is not known there"),
        (answered(1, 3, reason=unsure), "nobody knows"),
        (answered(1, 1, reason=late), "no time"),
        (answered(1, 1, status=Status.UNKNOWN), "None"),
    ):
        with pytest.raises(Unreachable, match=why):
            asked.within(n, Integer(2))


RECORDS = {  # what it is asked with; its words, the header of its column
    "trf": ({"eps": "1/10", "length": 64}, "TRF(10 %) in a row of 64 keys", None),
    "leak": (
        {"trained": 16, "tested": 64},
        "leak beyond 16 tokens in a row of 64 keys",
        "leak(16, 64)",
    ),
    "window": (
        {"error": "1/8", "row": 64},
        "certified window for an error of 1/8 in a row of 64 keys",
        "window(1/8)",
    ),
    "layered": (
        {"layers": 2, "length": 64},
        "receptive field of 2 layers in a row of 64 keys",
        "layered(2)",
    ),
    "reach": ({"advantage": 7, "length": 64}, "reach of 7 nats in a row of 64 keys", "reach(7)"),
    "horizon": ({"dtype": "fp16"}, "horizon in fp16", "horizon(fp16)"),
    "resolution": ({"length": 64}, "attention resolution in a row of 64 keys", None),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_quantity_is_what_its_record_says(name):
    given, said, header = RECORDS[name]
    asked = quantity(name, given)
    whole = quantity(name, {k: given[k] for k in given if k not in (asked.keys, "trained")})
    light, heavy = (asked.number(-n / k) for k in (8, 16))
    assert (asked.words(), asked.header()) == (said, header or said)
    assert (asked.integer, asked.grows > 0) == (isinstance(light, int), heavy > light)
    assert asked.approximate is (asked.answer(-n).label is Label.APPROXIMATE)
    sizes = (None, None, False, False) if name == "horizon" else (64, None, False, True)
    assert (asked.size, whole.size, asked.whole, whole.whole) == sizes
    flushed = name == "horizon" and asked.closed(asked.options | {"flush_to_zero": True})
    assert (asked.closed(asked.options), flushed) == (name != "trf", False)
    plain = {"leak": "<=", "reach": ">=", "resolution": ">="}.get(name, "=")
    assert read_targets(asked, 8 if asked.integer else "1/8")[0].relation == plain
    wave = -n + sympy.sin(n)
    row = sympy.Piecewise((wave, n < 64), (S.NegativeInfinity, True))
    assert asked.row(wave) == (wave if name == "horizon" else row)
    assert (asked.row(-n), whole.row(wave)) == (-n, wave)


def test_no_bias_reaches_more_than_the_keys_that_share_alike():
    """Of k keys alike each has a share of 1/k; e^29 others make up for 29 nats."""
    for share, most in (*((f"1/{k}", k) for k in range(2, 9)), ("10000000/79999988", 7)):
        asked = quantity("reach", {"advantage": 0, "share": share})
        assert asked.most(asked) == most
    near, far = (quantity("reach", {"advantage": x}) for x in (29, 30))
    assert near.most(near) == 1 + math.floor(math.exp(29)) and far.most(far) is None


@pytest.mark.parametrize(
    ("name", "relation", "limit", "bias", "skipped"),
    [
        ("trf", "=", 8, sympy.Piecewise((-n, n < 7), (-S.Infinity, True)), True),
        ("trf", "=", 7, sympy.Piecewise((-n, n < 7), (-S.Infinity, True)), False),
        ("trf", ">=", 8, sympy.Piecewise((-n, n < 7), (-S.Infinity, True)), False),
        ("trf", "=", 5, -sympy.floor(n / 4), False),
        ("horizon", "=", 4, -a * sympy.floor(n / 4), False),
        ("horizon", "=", 5, -a * sympy.floor(n / 4), True),  # the keys 4 and 5 are alike
        ("horizon", "=", 8, -a * sympy.floor(n / 4), False),
        ("reach", "=", 8, sympy.Piecewise((-n, n < 7), (-S.Infinity, True)), False),
    ],
)
def test_an_integer_is_skipped_where_the_formula_shows_it(name, relation, limit, bias, skipped):
    asked = quantity(name, {"advantage": 7})
    assert Target(asked, relation, Rational(limit)).skipped(bias) is skipped


def test_targets_that_meet_at_one_place_cannot_be_told_apart():
    """A field of at most 64, and 1/100 or more beyond 64."""
    found = design("-a*n", trf="<=64", leak=">=1/100", trained=64)
    assert found.status == "unknown" and "could not be told apart" in str(found.reason)


def test_a_share_that_is_met_exactly_is_within_a_bound_that_holds_it():
    leak, bias = quantity("leak", {"trained": 4}), sympy.Piecewise((0, n < 8), (-S.Infinity, True))
    assert leak.within(bias, S.Half) and not leak.within(bias, S.Half, strict=True)


def test_a_resolution_is_ordered_where_every_weight_lies_on_one_fall():
    asked = quantity("resolution", {})
    for bias, ordered in (
        (-a * sympy.log(1 + n), True),
        (-a * sympy.log(1 + n) - n + a**2, False),  # two functions of the distance
        (a / (n - S.Half), False),
        (-sympy.log(a + n), False),
        (sympy.Piecewise((0, n < a), (S.NegativeInfinity, True)), True),
        (sympy.Piecewise((-n, n < a), (S.NegativeInfinity, True)), False),
    ):
        assert asked.ordered(asked, bias, a) is ordered, bias
    row = quantity("resolution", {"length": 64})
    assert row.ordered(row, -a * sympy.log(1 + n), a) is False


@pytest.mark.parametrize("name", TARGETS)
def test_a_gauge_is_negative_exactly_where_the_quantity_is_within_the_limit(name):
    """Of a row whose series diverges, just below the value and at it; of the model without one."""
    length = None if name == "layered" else 64
    asked = quantity(name, RECORDS[name][0] | {"advantage": 4, "length": length})
    bias = -sympy.log(2 + n) * (Rational(2, 5) if length else 2)
    value = Rational(asked.number(bias))
    below, above = (value - 1, value) if asked.integer else (value * 0.999, value * 1.001)
    with precision(128):
        assert asked.measured(bias, Rational(below)) >= 0 > asked.measured(bias, Rational(above))


def test_what_is_not_told_to_be_above_0_or_0_is_left_to_the_answer():
    wide = replace(answered(3, 3), ratio=lambda *_: arb(0, 1), keys="")
    assert wide.measured(-n, Integer(2)).is_nan() and not wide.within(-n, Integer(2))
    every = quantity("window", {"error": 2})
    assert every.within(-n, S.One) and every.measured(-n, S.One) == -math.inf


def test_a_gauge_has_no_value_where_its_model_has_none(monkeypatch):
    monkeypatch.setattr("farfield.numerics.design.targets.MAX_LAGS", 8)
    layered = quantity("layered", {"layers": 2})
    assert layered.measured(-n, Integer(8)).is_finite()
    for asked, limit, why in (
        (layered, 9, "beyond the 8 distances of the model in float64"),
        (quantity("reach", {"advantage": 7}), 1000, "the price is finite and beyond float64"),
    ):
        with pytest.raises(Unreachable, match=why):
            asked.measured(-sympy.exp(n), Integer(limit))


@pytest.mark.parametrize(("limit", "bind"), [(64, 1), (100, 2)])
def test_the_bounds_of_an_edge_are_those_that_fail_just_outside(limit, bind):
    """The field of -a n has at most k keys where a > log(100)/k."""
    line = ParameterLine(read_family("-a*n"), sympy.Interval.open(0, S.Infinity), -1)
    bounds = [Target(quantity("trf", {}), "<=", Integer(k)) for k in (64, 100)]
    edge = [Rational(str(sympy.log(100).evalf(20) / limit * (1 + x))) for x in (-1e-6, 1e-6)]
    assert line.binding(bounds, edge) == bounds[:bind]


@pytest.mark.parametrize("ends", [(1, 2), (sympy.sqrt(2), sympy.pi)])
def test_an_end_of_convergence_lies_between_a_parameter_outside_and_one_inside(ends):
    line = ParameterLine(read_family("-a*n"), sympy.Interval.open(*ends))
    low, high = (line.convergent(k) for k in (0, 1))
    assert low[0] <= ends[0] < low[1] and high[1] < ends[1] <= high[0]
    for end, (outside, inside) in zip(ends, (low, high), strict=True):
        assert (outside == end) is isinstance(end, int) and abs(outside - inside) < 2e-10


# -- several targets, several heads, several families ---------------------------------------------


def test_heads_are_spaced_geometrically():
    found = design("alibi", trf=(16, 8192), heads=12)
    goals = [round(16 * 512 ** (h / 11)) for h in range(12)]
    assert list(found.achieved) == goals and len(found.values) == 12 and found.monotone
    assert {found.label, *(head.label for head in found.heads)} == {"certified"}
    for value, goal in zip(found.values, goals, strict=True):
        assert reached("alibi", "trf", {"eps": "1/100"}, value) == goal
    made = eval(found.call, {"encoding": farfield.encoding})  # what is printed is what is made
    assert (made.name, made.biases) == (found.encoding.name, found.encoding.biases)
    assert made.slopes() == pytest.approx([float(v) for v in found.values])
    assert found.costs[0].keys() == {"leak(2048)", "horizon(bf16)", "window(1/100)"}
    assert f"slopes: {float(found.values[0]):.6g}" in re.sub(r"slopes: +", "slopes: ", found.text())
    listed = design("-a*log(1+n)", trf=[16, 64, 100])
    assert listed.achieved == (16, 64, 100) and listed.encoding.num_heads == 3
    assert found.targets == ("TRF(1 %) = 16 to 8192",)
    (one,) = design("-a*log(1+n)", trf=[16]).heads
    assert one.achieved == 16 and one.value == listed.values[0]


def test_a_design_is_a_plan_that_trains(tmp_path):
    from farfield.validation.harness.mechanism import read
    from farfield.validation.harness.settings import read_plan

    place = tmp_path / "plan.toml"
    one = tomllib.loads(design("-a*n", trf=">=2", eps="1/10").plan("tiny"))
    named = {"name": "-n", "label": "-a*n, designed"}
    assert one == {"title": "TRF(10 %) >= 2", "runs": [{"preset": "tiny", "encoding": named}]}
    found = design("alibi", trf=(16, 256), heads=6)
    place.write_text(found.plan())
    (run,) = read_plan(place).expand()
    made = read(run.encoding, run.heads)
    assert run.heads == made.num_heads == 6 and made.biases == found.encoding.biases


def test_reach_and_leak_together(refusal):
    found = farfield.design("-m*n", reach=200, advantage=7, leak="<=1/100", trained=512)
    assert found.achieved["reach"] >= 200 and found.achieved["leak"] <= 0.01
    assert farfield.design("-m*n", reach=405, advantage=7).status == "unknown"
    counted = design("window", reach=200, advantage=7)  # log(w - 1) <= 7, and 200 keys
    assert (counted.low[0], counted.high[0], counted.closed) == (199, 1097, (False, True))
    whatever = "at most 1097, whatever the bias"
    refusal(whatever, farfield.design, "-m*n", reach=1098, advantage=7)


# -- bad input ------------------------------------------------------------------------------------

BAD = [
    (("alibi",), {}, "needs a target"),
    ((["-a*log(1+n)", "alibi"],), {"trf": 1024}, "one family; 2 were given"),
    (("-m*n",), {"reach": 100}, "needs advantage"),
    (("alibi",), {"trf": 0}, "trf"),
    (("alibi",), {"trf": "about 5"}, "trf"),
    (("alibi",), {"trf": 10**40}, "."),
    (("alibi",), {"trf": 512, "eps": 2}, "eps"),
    (("alibi",), {"trf": 512, "eps": 0}, "eps"),
    (("alibi",), {"leak": 2, "trained": 64}, r"\(0, 1\)"),
    (("alibi",), {"leak": "=1/2", "trained": 64}, "<="),
    (("alibi",), {"resolution": "-1"}, r"\(0, 1\)"),
    (("alibi",), {"layered": 64}, "layers"),
    (("alibi",), {"horizon": 64, "dtype": "fp12"}, "fp12"),
    (("nope",), {"trf": 5}, r"^nope has no free parameter; accepted: .* with one, as -a\*n, whose"),
    (("type1",), {"trf": 5}, r"no free parameter \(dialects: paper, code\); accepted"),
    (("rope",), {"trf": 5}, "."),
    (("-a*n^b",), {"trf": 5}, "--set"),
    (("kerple_log",), {"trf": 5}, "2 free parameters .*, fix the others: r2=1"),
    ((farfield.encoding("kerple_log", r1=2, r2=1),), {"trf": 5}, "2 parameters with values"),
    (("-a*n",), {"trf": 5, "parameter": "q"}, "no parameter 'q'; parameters: a$"),
    (("-n",), {"trf": 5, "parameter": "q"}, "no parameter 'q'; parameters: none$"),
    (("-a*n",), {"trf": 5, "colour": 3}, "colour"),
    (("-log(1+n)/(1+a)",), {"trf": 5}, "diverges for every a"),
    (("-b/(n+1)-a",), {"trf": 5, "parameter": "a", "b": 1}, "diverges for every a: no tokens"),
    (("kerple_log",), {"trf": 5, "r1": "1/2"}, "converges if"),
    (("-r*log(1+n)",), {"trf": 5, "assumptions": {"r": "[5, 5]"}}, "r can be 5 alone"),
    (("-a*log(1+n)",), {"window": 5, "error": -1}, "error"),
    (("-a*log(1+n)",), {"trf": (4, 8, 9), "heads": 2}, "3 targets"),
    (("-a*log(1+n)",), {"trf": 8, "heads": 0}, "heads"),
    (("-a*log(1+n)",), {"trf": 8, "optimise": "beauty"}, "beauty"),
    (("-a*n",), {"trf": 8, "budget_s": -1}, "budget -1"),
    (("-a",), {"trf": 8}, "."),
    (
        ("alibi",),
        {"trf": ">=1024", "leak": "<=1e-30", "trained": 64},
        r"no m of alibi meets both leak .* needs m >= 1.07934, and TRF.* needs m <= 0.00450163",
    ),
    (  # the decimals 0.071955784155, ...6 and ...7 lie around log(100)/64 and the other threshold
        ("-a*n",),
        {"trf": "<=64", "leak": f">={math.exp(-64 * 0.0719557841555):.18f}", "trained": 64},
        r"no a of -a\*n meets both TRF\(1 %\) <= 64",
    ),
    (("-a*n",), {"trf": (4, 8), "heads": 1025}, "from 1 to 1024"),
    (("-a*n",), {"trf": []}, "trf has 0 targets; accepted"),
    (("-a*n",), {"trf": (4, "1e400"), "heads": 3}, "trf '1e400' is out of range"),
    (("-n-a",), {"trf": ">=64, <=3"}, r">= 64 is met by no a .* TRF\(1 %\) is 5 throughout$"),
    (("-a*n",), {"trf": [4, 8, 9], "leak": ["1/8", "1/9"]}, r"for \[2, 3\] heads"),
    (("-a*n",), {"leak": ("-1", "1/2"), "heads": 3}, "leak from -1 to 1/2: accepted are positive"),
    (("-a*n",), {"leak": (0, "1/2"), "heads": 3}, "leak from 0 to 1/2: accepted are positive"),
    (("-a*n",), {"leak": ("1/2", 0), "heads": 3}, "leak from 1/2 to 0: accepted are positive"),
    (("-a*n",), {"leak": ("1/2", "-1"), "heads": 3}, "leak from 1/2 to -1: accepted are positive"),
    (("-a*n",), {"trf": 8, "parameter": "a", "a": 2}, "has the value 2; leave it out"),
    (("-n",), {"trf": 8}, r"accepted: a formula with one, as c\*\(-n\)"),
    ((f"-{10**58 + 1}*n",), {"trf": 8}, r"^\S{30}…\S{29} has no free parameter"),
    ((f"-{10**58 + 1}*n",), {"trf": 8, "parameter": "q"}, r"^\S{30}…\S{29} has no parameter 'q'"),
    (("-a*b*n",), {"trf": 8, "parameter": "a"}, "fix the others: b=1"),
    (("-a*b*n",), {"trf": 8, "parameter": "b"}, "fix the others: a=1"),
    (("-a*n",), {"trf": "<<8"}, "a number, or one after"),
    (("-n/(1+a)",), {"trf": "<=2"}, "from 5 to"),  # the least j with e^-j < 1/100
    (("-n/(1+a)",), {"leak": "<=1e-9", "trained": 8}, "from 0.0003355 to 1$"),  # e^-8
]


@pytest.mark.parametrize(("args", "options", "said"), BAD)
def test_bad_input_is_one_clear_line(refusal, args, options, said):
    how = {"budget_s": BUSY, **options}
    assert len(refusal(said, farfield.design, *args, **how)) < 400


@pytest.mark.parametrize(
    "ends", [(0, 1), (0, S.Infinity), (S.NegativeInfinity, -2), (-1, sympy.pi)]
)
def test_a_coordinate_keeps_the_order_and_stays_inside(ends):
    line = ParameterLine(read_family("-a*n"), sympy.Interval.open(*map(sympy.sympify, ends)))
    found = [line.at(u) for u in range(int(line.reach[0]), int(line.reach[1]) + 1, 8)]
    assert ends[0] < found[0] and found[-1] < ends[1] and found == sorted(set(found))


def test_an_irrational_end_has_a_rational_just_inside():
    line = ParameterLine(read_family("-a*n"), sympy.Interval.open(sympy.sqrt(2), sympy.pi))
    low, high = line.ends
    assert 0 < low - sympy.sqrt(2) < S(10) ** -39 > sympy.pi - high > 0


@pytest.mark.parametrize(
    ("formula", "ends", "values", "reach"),
    [  # parameters at -1, 0, 1; the least and the largest coordinate
        ("-a*n", (0, S.Infinity), ("1/2", 1, 2), (-64, 64)),
        ("-n^a", (0, S.Infinity), ("1/2", 1, 2), (-64, 12)),
        ("-exp(a)*n", (1, S.Infinity), ("3/2", 2, 3), (-64, 12)),
        ("-a^2*n", (0, S.Infinity), ("1/2", 1, 2), (-64, 64)),
        ("-a*n", (S.NegativeInfinity, -2), (-4, -3, "-5/2"), (-64, 64)),
        ("-n^a", (S.NegativeInfinity, 0), (-2, -1, "-1/2"), (-12, 64)),
        ("-n^a", (-1, 2), (0, "1/2", 1), (-64, 64)),
        ("-n^a", (S.NegativeInfinity, S.Infinity), ("-3/4", 0, "3/4"), (-12, 12)),
    ],
)
def test_a_coordinate_is_the_logarithm_of_a_distance(formula, ends, values, reach):
    line = ParameterLine(read_family(formula), sympy.Interval.open(*map(sympy.sympify, ends)))
    assert [line.at(u) for u in (-1.0, 0.0, 1.0)] == [Rational(x) for x in values]
    assert line.reach == reach


def test_an_end_is_closed_where_it_is_one_of_the_domain_and_belongs_to_it():
    whole, part = (read_family("-a*n", assumptions={"a": d}) for d in ("positive", "(0, 1]"))
    assert ParameterLine(whole, sympy.Interval(1, S.Infinity)).closed == [False, False]
    assert ParameterLine(part, sympy.Interval.Lopen(0, 1)).closed == [False, True]
    assert ParameterLine(part, sympy.Interval.open(0, 1)).closed == [False, False]


def test_no_field_is_of_no_token_and_every_one_is_of_more():
    line, field = ParameterLine(read_family("-a*n"), sympy.Interval.open(0, 1)), quantity("trf", {})
    for relation, held in (("<=", False), (">", True)):
        bound = Target(field, relation, S.Zero)
        assert bound.trivial and line.holds(bound, S.Half) is held
        assert (line.violation(bound, 0.0) < 0) is held


def test_a_dialect_is_that_of_the_family():
    for dialect, step in ((None, "ceiling"), ("inclusive", "floor")):
        family = read_family("window", dialect=dialect)
        assert support_step(family.formula, family.parameter) == step


def test_counts_are_written_to_the_digits_that_they_have():
    assert [*map(_count, (math.inf, 1.2e15, 1e15, 12.0))] == [
        "infinity",
        "1.2e+15",
        "1" + "0" * 15,
        "12",
    ]


def test_a_condition_is_solved_where_it_compares_the_parameter_with_numbers():
    x, y = Symbol("x", real=True), Symbol("y", real=True)
    for condition, wanted in (
        (x > 1, sympy.Interval.open(1, S.Infinity)),
        ((x > 1) & (x <= 3), sympy.Interval.Lopen(1, 3)),
        (
            (x < 1) | (x >= 3),
            sympy.Union(sympy.Interval.open(-S.Infinity, 1), sympy.Interval(3, S.Infinity)),
        ),
        (sympy.Eq(x, 2), None),
        ((x > 1) & sympy.Ne(x, 2), None),
        (x > y, None),
        (y > 1, None),
        (x**2 > 1, None),
    ):
        assert _solutions(condition, x) == wanted


@pytest.mark.parametrize(
    ("value", "heads", "each"),
    [
        (8, None, None),
        ("8", 3, None),
        (">=8, <=16", None, None),
        ("8,16,64", None, ["8", "16", "64"]),
        ((8, 16, 64), None, [8, 16, 64]),
        ((8, 16, 64), 3, [8, 16, 64]),
        ((8, 32), 2, [8, 32]),
        ((8, 32), 3, [8, 16, 32]),
        ((8, 32), 1, [8]),
    ],
)
def test_targets_of_heads_are_listed_or_spaced(value, heads, each):
    assert _by_head(TARGETS["trf"], value, heads) == each


def test_costs_are_those_that_are_not_asked_for():
    found = design("-a*n", leak="1/8", trained=16, heads=1)
    assert found.costs[0].keys() == {"horizon(bf16)", "window(1/100)"} and len(found.values) == 1
    assert design("-a*n", trf=8).costs == ()


# -- at random ------------------------------------------------------------------------------------


def test_random_targets(program):
    assert program("benchmarks/design.py").run(1, 3)["wrong"] == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_random_targets(program):
    assert program("benchmarks/design.py").run(200, 0)["wrong"] == 0


def test_formulas_with_integers_of_any_length_are_written():
    """Python writes no integer of more than 4,300 digits by itself."""
    whole = "1" + "0" * 5_000
    assert expression_line(Integer(10) ** 5_000 * n) == f"{whole}·n"
    assert expression_line(n / Integer(10) ** 5_000, unicode=False) == f"n/{whole}"
    assert expression_latex(n + Rational(1, 10**5_000)) == rf"n + \frac{{1}}{{{whole}}}"


def test_one_parameter_and_one_threshold_leave_time_for_others():
    """An eighth of 2,400 s, and a third."""
    ends, since = [], time.monotonic()

    def ask(*_):
        ends.append(budget().deadline - since)
        return 0

    scan = _Scan(SimpleNamespace(holds=ask, violation=ask), ("bound",), {})
    with until(since + 2400):
        scan.decided(S.One), scan.violations(0.0), scan.balanced("one", "other", 0.0, 1.0)
    assert all(300 <= end < 350 for end in ends[:2]) and 800 <= ends[2] < 850
