"""What is refused, by every question of the room: one line that names what is wrong."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from farfield import (
    attention_ceiling,
    attention_resolution,
    certified_window,
    compare_tails,
    dtype_horizon,
    encoding,
    layered_receptive_field,
    leak,
    price_of_distance,
    reach,
    sampled_certificate,
    window_certificate,
    window_error,
)
from farfield import theoretical_receptive_field as field
from farfield.numerics.price import head_prices

ONES = np.ones((4, 2))
LONG = "-a*n" + "-n/9" * 20
GOOD = {  # a question, and options with which it has an answer
    leak: {"f": "-n", "trained": 10},
    attention_ceiling: {"f": "-n", "logit_bound": 4, "length": 64},
    sampled_certificate: {"query": ONES, "keys": ONES, "window": 4, "error": 1},
    window_certificate: {"query": ONES, "keys": ONES, "window": 2, "error": "1/10"},
    certified_window: {"f": "-n", "error": "1/2", "logit_bound": 1, "value_bound": 1},
    window_error: {"f": "-n", "width": 8, "logit_bound": 1, "value_bound": 1},
    layered_receptive_field: {"f": "-n", "layers": 3, "length": 64},
    field: {"f": "-n", "eps": "1/10"},
    price_of_distance: {"f": "-n", "distance": 2},
    reach: {"f": "-n", "advantage": 7},
    attention_resolution: {"f": "-n"},
    dtype_horizon: {"f": "-n", "dtype": "fp16"},
}
REFUSED = [  # a question, the option that is changed, and what is said
    *((leak, {"trained": x}, "trained|whole number") for x in (0, "x", 2.5)),
    (leak, {"tested": 5}, "tested|at least"),
    (attention_ceiling, {"logit_bound": -1}, r"in \[0, 1000\]"),
    (attention_ceiling, {"logit_bound": math.inf}, "logit_bound"),
    (attention_ceiling, {"length": 0}, "length"),
    (attention_ceiling, {"distance": 64}, "outside a row"),
    (attention_ceiling, {"f": "-a*n"}, "free parameters"),
    (sampled_certificate, {"samples": 1}, "samples"),
    (sampled_certificate, {"delta": 0}, "delta 0 is out of range"),
    (sampled_certificate, {"delta": 1}, "delta 1 is out of range"),
    (sampled_certificate, {"window": 0}, "window"),
    (sampled_certificate, {"error": -1}, "error"),
    (window_certificate, {"window": 0}, "window 0|'0'"),
    (window_certificate, {"error": 0}, "positive"),
    (window_certificate, {"value_bound": -1}, "positive"),
    (window_certificate, {"scale": 0}, "scale"),
    (window_certificate, {"sinks": -1}, "sinks"),
    (window_certificate, {"query": np.ones(4), "keys": np.ones(4)}, "accepted"),
    (window_certificate, {"keys": np.ones((3, 2))}, "accepted"),
    (window_certificate, {"query": ONES * math.nan}, "accepted"),
    (window_certificate, {"query": "ab", "keys": "cd"}, "accepted"),
    *((certified_window, {"error": x}, "positive") for x in (0, "-1")),
    (certified_window, {"error": "nan"}, "not a rational"),
    (certified_window, {"logit_bound": -1}, "logit_bound"),
    (certified_window, {"value_bound": 0}, "value_bound"),
    (certified_window, {"row": 3, "sinks": 4}, "sinks 4 are more than the row of 3 keys"),
    (certified_window, {"gate": "1/2"}, "-n has no gates: gate 1/2 belongs to a gated decay"),
    (certified_window, {"f": "rope", "gate": "1/2"}, "gate 1/2 belongs to a gated decay, not to"),
    (window_error, {"sink_weight": 2}, "sink_weight 2 without sinks"),
    *((layered_receptive_field, {"mixing": x}, "mixing") for x in (0, 2)),
    (layered_receptive_field, {"q": 1}, "q 1"),
    (layered_receptive_field, {"f": "-log(1+n)", "length": None}, "diverges"),
    *(
        (field, {"eps": x}, "eps")
        for x in (0, 1.0, "0", "-1", "2", "abc", "inf", math.nan, "0." + "1" * 10**6, None, True)
    ),
    (field, {"eps": 10**5000}, "eps"),
    (field, {"eps": Fraction(1, 2**4096)}, "more than 4096 bits"),
    (field, {"exact": "yes"}, "exact yes is neither True nor False"),
    (field, {"eps": b"0.1"}, "eps"),
    *((field, {"budget_s": x}, "seconds, at least 0") for x in ("soon", None, math.nan, -1, True)),
    (field, {"f": "kerple_log"}, "r1, r2"),
    (field, {"f": LONG}, f"^{re.escape(LONG[:60])} has free parameters: give values for a, or"),
    (field, {"f": "kerple_log", "r1": -1, "r2": 1}, "outside its domain"),
    (field, {"f": "-log(n)"}, "undefined or infinite at n = 0"),
    *((field, {"f": f}, "not real for large n") for f in ("log(20-n)", "sqrt(20-n)-n")),
    *((field, {"length": x}, "length|whole number") for x in (0, "many")),
    (price_of_distance, {"distance": 5, "length": 5}, "outside a row of 5 keys"),
    *((price_of_distance, {"distance": x}, "whole number from 0") for x in (-1, 2.5)),
    (price_of_distance, {"f": "-n*a"}, "free parameters"),
    (price_of_distance, {"f": "-log(n)"}, "undefined or infinite at n = 0"),
    *((reach, {"advantage": x}, "no finite number") for x in (math.nan, math.inf, "much")),
    *((reach, {"share": x}, "out of range") for x in (0, "1")),
    (reach, {"share": math.nan}, "share"),
    (reach, {"length": 0}, "whole number from 1"),
    *(
        (attention_resolution, {"f": f, "length": 8}, "logarithm of a number that is not positive")
        for f in ("-log(n)", "-n + log(n - 2)")
    ),
    (attention_resolution, {"f": [1.0]}, r"s_\(N\+1\) must exist"),
    (attention_resolution, {"f": [1.0, math.nan]}, "score s_1 is nan"),
    (attention_resolution, {"f": np.ones((2, 2))}, r"shape \(2, 2\)"),
    (attention_resolution, {"f": ["a", "b"]}, "neither an encoding nor a formula"),
    (attention_resolution, {"f": np.ones(3) * 1j}, "complex128"),
    (attention_resolution, {"f": np.ma.masked_array([1.0, 2.0], mask=[1, 0])}, "masked"),
    (attention_resolution, {"f": [0, 10**400]}, "no numbers of a float64"),
    (attention_resolution, {"f": [1, 2], "length": 3}, "needs scores up to s_2"),
    (attention_resolution, {"length": 1}, "a whole number from 2"),
    (attention_resolution, {"scale": 0}, "positive number"),
    (attention_resolution, {"scale": "x"}, "not a rational number"),
    (attention_resolution, {"mask": "bca"}, "accepted: None"),
    (attention_resolution, {"length": 10, "mask": "bca 8"}, "at least 16"),
    (attention_resolution, {"f": "-r*n"}, "give values for r"),
    (attention_resolution, {"f": [1.0, 2.0], "r": 3}, "scores have no parameters; r given"),
    (attention_resolution, {"f": encoding("-n", bca=4), "mask": "bca 4"}, "bca 4; mask 'bca 4'"),
    (attention_resolution, {"f": "where(n<1,-inf,-n)"}, "the bias is -oo at n = 0"),
    (
        attention_resolution,
        {"mask": "window 100000001"},
        "100000001 tokens; at most 5000000 are",
    ),
    (attention_resolution, {"mask": ("window", 3, 4)}, "is not known"),
    (attention_resolution, {"scale": "n*sqrt(2)"}, "positive number"),
    (attention_resolution, {"f": [1e308, 0.0], "scale": 10}, r"exceed 1e\+300"),
    (dtype_horizon, {"dtype": "int8"}, "fp16"),
    *(
        (question, {"f": "where(n<1,-inf,-n)"}, "minus infinite at n = 0")
        for question in (leak, field, certified_window, dtype_horizon)
    ),
    (attention_ceiling, {"distance": -1}, "whole number from 0"),
]


@pytest.mark.parametrize(("question", "change", "said"), REFUSED)
def test_one_line_says_what_is_wrong(refusal, question, change, said):
    assert len(refusal(said, question, **GOOD[question] | change)) < 400


@pytest.mark.parametrize("question", GOOD)
def test_without_the_change_it_answers(question):
    assert question(**GOOD[question])


def test_prices_need_numbers(refusal):
    refusal("undefined", head_prices, np.array([[math.nan]]))


@pytest.mark.parametrize("name", ["a", "b", "r1"])
def test_a_parameter_of_one_of_two_biases_is_refused_in_a_line(refusal, name):
    refusal(
        f"^{name}=2 .*values_a={{'{name}': 2}}, values_b",
        compare_tails,
        "-a*n",
        "-n/2",
        **{name: 2},
    )


def test_two_biases_may_be_given_by_name():
    assert compare_tails(a="-n", b="-n/2").lighter == "a"
    assert compare_tails("-n", b="-n/2").lighter == "a"
    assert compare_tails("-n", "-n/2", encoding("rope")).left_out[0][0] == "rope"
