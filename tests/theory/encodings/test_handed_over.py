"""What people hand over: every input that was once answered falsely, with its right answer."""

import math
import time

import numpy as np
import pytest

from farfield import InputError, certified_window, check_convergence, encoding, inspect_bias
from farfield import theoretical_receptive_field as trf
from farfield.theory.encodings import python_files, samples, sampling
from farfield.theory.encodings.python_files import load

torch = pytest.importorskip("torch")
TABLE = torch.linspace(0, -8, 600)
EMBEDDED = torch.randn(600, 8, generator=torch.Generator().manual_seed(0))


def window_of(width):
    return lambda n: 0.0 if n < width else -math.inf


FOLLOWED = {  # a program, whether its series converges, its TRF(1 %)
    **{
        f"window {w}": (window_of(w), True, field)
        for w, field in (
            (512, 507), (513, 508), (600, 595), (1024, 1014), (2048, 2028), (4096, 4056),
            (256, 254), (500, 496), (511, 506), (8192, 8111), (20_000, 19_801),
        )
    },
    **{
        f"plateau {w}": (lambda n, w=w: -n / 64 if n < w else -16, False, math.inf)
        for w in (512, 1024, 4096)
    },
    "min": (lambda n: -min(n, 1024) / 64, False, math.inf),
    "log": (lambda n: -2 * math.log(1 + n) if n < 1000 else -2 * math.log(1001), False, math.inf),
    "end": (lambda n: -n / 8 if n < 600 else 0.0, False, math.inf),
    "late": (lambda n: -2 * math.log1p(n) if n < 60_000 else 0.0, False, math.inf),
    "far": (lambda n: 0.0 if n < 480_144 else -math.inf, True, 475_343),
    "stride": (lambda n: -2 * math.log1p(n) if n % 503 else 0.0, False, math.inf),
    "where": (lambda n: np.where(n < 3000, 0, -np.inf), True, 2971),
    "of torch": (lambda n: torch.where(n < 8192, 0.0, -torch.inf), True, 8111),
    "mask_mod": (lambda b, h, q, k: (q >= k) & (q - k < 8192), True, 8111),
    "score_mod": (
        lambda score, b, h, q, k: torch.where(q - k < 20_000, score, -torch.inf), True, 19_801
    ),
    "finfo": (
        lambda score, b, h, q, k: torch.where(q - k < 600, score, torch.finfo(torch.float32).min),
        True,
        595,
    ),
    "chained": (lambda n: -n / 8 if 0 <= n < 10**6 else -math.inf, True, 37),
    "a rounded edge": (lambda n: 0.0 if n * 0.1 <= 346.9 else -math.inf, True, None),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FOLLOWED)
def test_a_program_is_followed_through_its_branches(name):
    program, converges, field = FOLLOWED[name]
    found = encoding(program)
    assert found.origin == "traced" and check_convergence(found).converges is converges
    if field is not None:
        assert trf(found, "1/100").tokens == field


def loops(d, keep):
    return np.array([0.0 if keep(x) else -math.inf for x in np.ravel(d)]).reshape(np.shape(d))


SEEN = {  # what cannot be followed, and the width of the window that it resembles
    "loop 8192": (lambda d: loops(d, lambda x: x < 8192), 8192),
    "loop 20000": (lambda d: loops(d, lambda x: x < 20_000), 20_000),
    "loop 10000": (lambda d: loops(d, lambda x: x < 10_000), 10_000),
    "pairs": (lambda q, k: loops(np.asarray(q) - np.asarray(k), lambda x: x < 9001), 9001),
    "buckets": (
        lambda d: torch.bucketize(torch.as_tensor(d).float(), torch.tensor([8191.5])) * -1e9,
        8192,
    ),
    "swinging": (
        lambda d: np.array(
            [0.0 if x % 5003 == 0 else -2 * math.log1p(x) for x in np.ravel(d)]
        ).reshape(np.shape(d)),
        None,
    ),
    "half": (lambda n: -torch.as_tensor(n).half() * 8, None),
    "captured": (lambda n: float(TABLE[n]), None),
    "endless for long": (lambda n: -sum(0.25 for _ in range(n)), None),
    "more and more heads": (lambda n: [-float(n)] * (1 + (int(n) > 99)), None),
    "truth in place of a score": (lambda score, b, h, q, k: q - k < 5, None),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SEEN)
def test_what_was_only_seen_has_no_theorem(name):
    program, width = SEEN[name]
    found = encoding(program)
    assert found.origin == "tabulated" and found.seen is not None
    for answer in (check_convergence(found), trf(found, "1/100"), certified_window(found, 1, 1, 1)):
        assert (answer.status, answer.label) == ("unknown", None)
        assert answer.reason.code == "beyond_seen" and str(found.seen.distance) in str(answer)
    if width is not None:
        at = encoding(found.resembles).bias([width - 1, width])[0]
        assert at[0] == 0 and at[1] <= -1e9


def test_the_reason_says_what_ends_what_is_known():
    for name, said, last in (
        ("captured", "out of bounds", 599),
        ("endless for long", "a loop over the distance (line", 4095),
        ("more and more heads", "", 99),
    ):
        found = encoding(SEEN[name][0])
        assert said in str(check_convergence(found).reason) and found.seen.distance == last


@pytest.mark.parametrize("pieces", [64, 65])
def test_a_program_of_as_many_pieces_as_are_followed_is_a_formula(pieces, tmp_path):
    steps = "".join(f"    if n < {3 * k}:\n        return -{k}\n" for k in range(1, pieces))
    (tmp_path / "steps.py").write_text(f"def bias(n):\n{steps}    return -n\n")
    found = encoding(load(tmp_path / "steps.py").bias)
    if pieces <= 64:
        assert found.origin == "traced"
        assert found.bias(range(3 * pieces))[0].tolist() == [
            -(n // 3) - 1 if n < 3 * pieces - 3 else -n for n in range(3 * pieces)
        ]
    else:
        assert "over 64 paths (line" in str(check_convergence(found).reason)


OF_ROWS = {
    "q < 5000": lambda q, k: -(q - k) / 8 * (q < 5000),
    "q > 5000": lambda score, b, h, q, k: score - (q - k) / 8 * (q > 5000),
    "q // 6000": lambda score, b, h, q, k: score - (q - k) / 8 * (q // 6000),
    "k > 9000": lambda q, k: -(q - k) / 8 + 1.0 * (k > 9000),
    "slowly less": lambda q, k: -8 * (q - k) * (q + 1) ** -0.06,
    "chunks": lambda b, h, q, k: (q >= k) & (q // 8192 == k // 8192),
    "documents": lambda score, b, h, q, k: score + (EMBEDDED[q] * EMBEDDED[k]).sum(),
    "dot": lambda score, b, h, q, k: score + torch.dot(EMBEDDED[q], EMBEDDED[k]),
    "product": lambda score, b, h, q, k: score + EMBEDDED[q] @ EMBEDDED[k],
    "far queries, and not followed": lambda q, k: (
        -np.heaviside(q - k, 0) * (q - k) / np.where(np.heaviside(q - 30000, 0) > 0, 4, 8)
    ),
    "plain numbers": lambda q, k: -(q - k) / 8 if q % 7 else 0.0,
    "plain numbers and sinks": lambda q, k: 0.0 if q - k < 128 or k < 4 else -math.inf,
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_what_depends_on_the_row_is_no_bias_by_distance(refusal, name):
    assert inspect_bias(OF_ROWS[name]).mechanism == "positions"
    refusal("depends on the positions themselves", encoding, OF_ROWS[name])


LATER = {  # programs whose first head is a function of the distance, and a later one is none
    "query": lambda h, q, k: -(q - k) * (1 if h == 0 else math.log(q + 1)),
    "sink": lambda b, h, q, k: (q >= k) & ((k < 4) | (q - k < 64) if h else q - k < 64),
    "score": lambda score, b, h, q, k: score - (q - k) if h == 0 else 2 * score,
    "branch": lambda h, q, k: -(q - k) if h == 0 or k > 3 else 0.0,
    "table": lambda h, q, k: -(q - k) if h == 0 else [0.0, -1.0, -2.0][q - k],
}


@pytest.mark.parametrize("name", LATER)
def test_no_head_is_left_out_because_it_is_no_function_of_the_distance(name):
    try:
        assert check_convergence(LATER[name]).label is None
    except InputError as error:
        assert "positions themselves" in str(error) or "for head 1" in str(error)


@pytest.mark.parametrize(
    ("first", "later", "label"),
    [
        (lambda s, q: s, lambda s, q: 2 * s, "theorem"),
        (lambda s, q: s, lambda s, q: s * (1 + np.log(q + 1) / 2), None),
        (lambda s, q: s / 2, lambda s, q: s * (1 + np.log(q + 1) / 2), None),
        (lambda s, q: 2 * s, lambda s, q: 30 * np.tanh(s / 30), None),
        (lambda s, q: 30 * np.tanh(s / 30), lambda s, q: s, None),
    ],
)
def test_what_any_head_does_with_the_score_counts(first, later, label):
    def program(score, b, h, q, k):
        return (first if h == 0 else later)(score, q) - (q - k)

    try:
        assert check_convergence(encoding(program, heads=2, tail="linear")).label == label
    except InputError as error:
        assert label is None and "content logit" in str(error)


def test_a_head_that_takes_no_arrays_is_a_head(refusal):
    program = lambda h, q, k: (k - q) * (1 if h == 0 else math.log(q + 1))  # noqa: E731
    refusal("positions themselves", encoding, program, tail="linear")


BY_HEAD = torch.tensor([0.5, 0.25, 0.125])


def few(h, q, k):
    assert h < 3
    return -(q - k) / 2**h


@pytest.mark.parametrize(
    "program",
    [
        few,
        lambda h, q, k: -[1.0, 0.5, 0.25][h] * (q - k),
        lambda h, q, k: {0: 1.0, 1: 0.5, 2: 0.25}.get(h) * (k - q),
        lambda h, q, k: -math.inf if k > q else -[1.0, 0.5, 0.25][h] * (q - k),
        lambda b, h, q, k: (q >= k) & (q - k < [4, 8, 16][h]),
        lambda score, b, h, q, k: score - BY_HEAD[h] * (q - k),
    ],
)
def test_heads_end_where_the_program_raises_at_every_pair(program):
    assert encoding(program).num_heads == 3 and check_convergence(program).label == "theorem"


def test_a_function_of_heads_and_a_length_is_called_so():
    def build_alibi_bias(n_heads, seq_len):
        slopes = torch.tensor([2.0 ** -(h + 1) for h in range(n_heads)])
        return -slopes[:, None, None] * (seq_len - 1 - torch.arange(seq_len))

    found = inspect_bias(build_alibi_bias)
    assert (found.how, found.heads) == ("heads and a length", 8)
    assert found.resembles == "[-n/2; -n/4; -n/8; -n/16; -n/32; -n/64; -n/128; -n/256]"


def test_both_signs_of_a_relative_position_are_tried():
    def buckets(relative_position):
        n = torch.max(-relative_position, torch.zeros_like(relative_position))
        return -torch.clamp(n, max=128) / 8

    for program, formula in (
        (buckets, "-Min(n, 128)/8"),
        (lambda relative_position: 0.1 * relative_position, "-n/10"),
        (lambda rel: -0.1 * rel, "-n/10"),
    ):
        found = inspect_bias(program)
        assert ("key less query" in found.how) == (program.__code__.co_varnames[0] != "rel")
        at = range(300)
        assert np.allclose(encoding(found).bias(at), encoding(formula).bias(at), rtol=1e-12)


def test_a_function_that_does_not_end_is_not_waited_for_long(monkeypatch, refusal):
    naps = list[int]()

    def turning(n):
        while n >= 0:
            n = n + 0 * n

    def waiting(n):
        while True:
            naps.append(time.sleep(0.01))

    monkeypatch.setattr("farfield.theory.encodings.samples.CALL_S", 0.1)
    monkeypatch.setattr("farfield.theory.encodings.tracing.TRACE_S", 0.2)
    for endless in (turning, waiting):
        refusal("did not end within", encoding, endless)
    assert 0 < len(naps) < 100  # twice 0.2 s and 0.1 s, not ten times


TRUTH = "gives truth, which may be a mask or 1 and 0"
NUMBERS = np.zeros(10**5)
NO_NUMBER = r"no (array of )?real numbers|is text"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda k: -np.arange(k + 1), "2 numbers at 1 and 1 at 0"),
        (lambda n: NUMBERS, "it gives 100000 numbers; at most 128 are heads"),
        (lambda n: NUMBERS.tolist(), "it gives 100000 items in a list"),
        (lambda n: n < 257, TRUTH),
        (lambda n: n < 5 and -n, TRUTH),
        (lambda n: True, TRUTH),
        (lambda n: 1j * n, NO_NUMBER),  # the real part of a complex bias is another bias
        (lambda n: 1j * torch.as_tensor(n), NO_NUMBER),
        (1j * np.arange(9), NO_NUMBER),
        (1j * torch.arange(9), NO_NUMBER),
        ("-n/8", NO_NUMBER),
        ({}, NO_NUMBER),
        (object(), NO_NUMBER),
        (10**400, NO_NUMBER),
        (type, r"accepted: Class\(\), Class\(heads\)"),
    ],
)
def test_what_gives_no_bias_is_refused(refusal, given, said):
    refusal(said, inspect_bias, given)


def test_a_slow_function_that_is_not_called_often_enough_says_nothing(monkeypatch, refusal):
    monkeypatch.setattr("farfield.theory.encodings.sampling.ALL_S", -1.0)
    refusal("up to distance 0 it", inspect_bias, lambda n: float(str(n)) if int(n) else 0.0)


def test_matrices_of_queries_and_keys_and_masks_of_truth():
    away = np.arange(192, 256)[:, None] - np.arange(256)[None, :]
    least = torch.finfo(torch.float32).min
    seen = (away >= 0) & (away < 40)
    for given in (
        seen,
        torch.from_numpy(seen),
        np.where(seen, 0.0, least),
        np.where(seen, 0, -1e9),
    ):
        found = inspect_bias(given)
        assert (found.heads, found.resembles[:15]) == (1, "{0 for n < 40; ")
        assert encoding(found).seen.distance == 255
    found = inspect_bias(np.where(away >= 0, -away / 8, -np.inf))
    assert (found.heads, found.resembles, found.causal) == (1, "-n/8", True)
    assert encoding(-np.outer([1, 0.5], np.arange(100.0))).num_heads == 2
    assert encoding(np.array([True, True, False])).bias([0, 2])[0].tolist() == [0, -math.inf]


def test_what_is_printed_as_a_formula_is_read_back():
    for program in (
        lambda n: -n / 8 if n < 64 else -math.inf,
        lambda n: -n / 8 if 9 <= n < 64 else -n,
        lambda n: -n if n % 5 else 0.0,
        lambda n: -(n % 7) * (n // 64),
        lambda n: -0.1 * n if (n // 100) % 2 == 0 else -n,
    ):
        found = encoding(program)
        back = encoding(found.name)
        assert np.array_equal(back.bias(range(500)), found.bias(range(500))), found.name
        assert check_convergence(back).verdict == check_convergence(found).verdict


@pytest.mark.parametrize("program", [lambda n: -len(str(int(n))), lambda n: -len(str(n))])
def test_one_number_of_a_whole_array_is_not_the_bias_of_each_distance(program):
    assert inspect_bias(program).findings[0].startswith("falls with distance")


class Sloped:
    def __init__(self, heads):
        self.heads = heads

    def __call__(self, n):
        return -n / self.heads


def test_a_class_is_made_as_on_the_command_line():
    assert trf(Sloped, "0.01").tokens == trf("-n/8", "0.01").tokens


def test_values_beyond_single_precision_raise_no_warning(recwarn):
    """Nor does the one token of a window of them read as several."""
    steep = lambda n: -1e300 * n  # noqa: E731
    assert inspect_bias(steep).findings[0].startswith("falls with distance")
    assert not recwarn.list
    assert "the nearest token alone is provably enough" in " ".join(
        str(certified_window("-99*n", logit_bound=1, value_bound=1, error="1/100")).split()
    )


def test_a_formula_of_all_heads_is_one_that_does_not_depend_on_the_head():
    """A head that is asked as a number says nothing of those after it."""
    assert encoding(lambda h, q, k: -(q - k) / 8).num_heads == 1
    found = inspect_bias(lambda h, q, k: -(q - k) / 8 if h != 9 else 0.0)
    assert found.heads == 8 and "heads 0 to 7" in found.how


PARAMETERS = type("Module", (), {"parameters": list})()
WHOLE = ["scores", "logits", "attention", "dots", "qk", "sim", "hidden_states", "seq_len", "L"]


@pytest.mark.parametrize(
    ("names", "rows", "rows_of_a_module"),
    [
        *(([name], True, True) for name in WHOLE),
        *(([name], False, False) for name in ("n", "d", "t", "delta", "dist", "rel", "position")),
        *(([name], False, True) for name in ("x", "nd", "Lx", "lengths_", "w")),
        *((pair, True, True) for pair in (["q_len", "k_len"], ["i", "j"], ["num_heads", "size"])),
        *((pair, False, False) for pair in (["q", "k"], ["q_len", "k"], ["i", "b"])),
        (["h", "q", "k"], False, False),
        (["q", "k", "i", "j"], False, True),
    ],
)
def test_arguments_are_rows_or_positions_by_their_names(names, rows, rows_of_a_module):
    rows |= names == ["lengths_"]
    assert sampling._takes_a_row(len, names) is rows
    assert sampling._takes_a_row(PARAMETERS, names) is rows_of_a_module


def test_arguments_that_have_to_be_given_are_those_without_a_value():
    assert sampling._required(lambda a, b, /, c=1, *, d: 0) == ["a", "b"]
    assert sampling._required(lambda *x: 0) == ["n"] == sampling._required(min)
    assert sampling._required(lambda a=1, **b: 0) == []


@pytest.mark.parametrize("edges", [(13,), (3, 12), (10, 11), (11, 20), (12, 13), (2, 3), (15, 40)])
def test_the_two_sides_of_an_edge_are_asked(edges):
    def at(d):
        return np.where(np.searchsorted(edges, d, side="right") % 2, -1e4, [-d, -2 * d])

    near = np.array([0.0, 1, 2, 3, 10, 20, 41])
    seen, values = sampling._between(near, np.stack([at(d) for d in near], axis=1), at)
    assert {*near} <= {*seen} and (np.diff(seen) > 0).all()
    np.testing.assert_array_equal(values, np.stack([at(d) for d in seen], axis=1))
    hidden = (values <= -1e4).any(axis=0)
    assert (np.diff(seen)[hidden[1:] != hidden[:-1]] == 1).all()


def test_formulas_are_looked_at_around_the_numbers_of_their_conditions():
    ends = [sampling.LONG - 1, sampling.LONG, 5000, 2**53]
    read = [encoding(f"where(n < {end}, -n, -oo)").formula for end in ends]
    found = sampling._of_formulas(read, "")
    around = {end + s for end in ends[1:] for s in (-1, 0, 1)}
    assert around <= {*found.distances} and sampling.LONG in found.distances
    assert len(found.distances) == len({*found.distances} | around)
    for end, row in zip(ends, found.values, strict=True):
        assert ((row == -np.inf) == (found.distances >= end)).all()


@pytest.mark.parametrize(
    ("program", "formula", "how"),
    [
        (lambda rel: -abs(rel) / 8, "-n/8", "a distance"),
        (lambda rel: 600 + rel / 8, "600 - n/8", "a relative position, key less query"),
        (
            lambda rel: 2.0 if rel == 1 else -abs(rel),
            "Piecewise((0, n < 1), (2, n < 2), (-n, True))",
            "a distance",
        ),
        (
            lambda rel: -5.0 if rel == 1 else -1.0 if rel > 0 else rel,
            "Piecewise((0, n < 1), (-5, n < 2), (-1, True))",
            "a distance",
        ),
        (
            lambda rel: -1.0 if rel == 5 else min(rel, 0),
            "Piecewise((0, n < 5), (-1, n < 6), (0, True))",
            "a distance",
        ),
        (lambda memory_position: -memory_position / 8, "-n/8", "a distance"),
        (lambda rel: 0 * rel, "0", "a distance"),
        (lambda rel: rel * rel / 8, "n**2/8", "a distance"),
        (lambda rel_q, k: -(rel_q - k) / 8, "-n/8", "positions q and k"),
    ],
)
def test_a_relative_position_has_the_sign_that_falls(program, formula, how):
    found = sampling.sampled(program)
    assert (str(found.formulas[0]), found.how) == (formula, how)


def test_a_relative_position_that_is_not_followed_says_why():
    found = sampling.sampled(lambda rel: -np.heaviside(rel, 0) * rel)
    assert found.why.startswith("not followed: heaviside of the distance has no formula here")
    assert found.values[0, :3].tolist() == [0, -1, -2]


@pytest.mark.parametrize("heads", [None, 1, 3])
def test_how_many_heads_were_found_is_said_where_nobody_gave_their_number(heads):
    for program in (
        lambda h, q, k: -(q - k) / (h + 1),
        lambda h, q, k: np.array(-(q - k) / (h + 1)),
    ):
        found = sampling.sampled(program, heads)
        assert len(found.values) == (heads or 8)
        assert ("heads 0 to 7 (heads=... asks for others)" in found.how) is (heads is None)


def test_a_number_of_all_distances_is_a_constant_where_each_alone_has_it(refusal):
    found = encoding(lambda d: -float(len(d) > 0))
    assert found.bias([0, 5, 900]).tolist() == [[-1, -1, -1]]
    for program in (lambda d: -float(len(d)), lambda d: -float(d[-1] > 4)):
        refusal("gives one number of them all", encoding, program)


def _rising(by):
    return lambda q, k, s: (1 + by * (q > sampling.LONG)) * s


def _near_alone(factor):
    def ask(q, k, s):
        if (q >= 64).any():
            raise samples.Unfit("no farther")
        return factor * s

    return ask


ASKED = [  # what a function makes of scores, and what is said of that
    (lambda q, k, s: s - (q - k) / 8, ""),
    (lambda q, k, s: np.where(q - k < 5, s, -np.inf), ""),
    (lambda q, k, s: np.where(q - k < 5, s, sampling.MASKED), ""),
    (lambda q, k, s: s + 0.9e-4 * np.sign(s), ""),
    (lambda q, k, s: s + 2e-3 * np.sign(s), "the content logit"),
    (lambda q, k, s: 2 * s - k, samples.FACTOR),
    (lambda q, k, s: -s / 3, samples.FACTOR),
    (lambda q, k, s: s * np.log(q + 2), samples.GROWING),
    (_rising(0.005), samples.FACTOR),
    (_rising(0.02), samples.GROWING),
    (lambda q, k, s: 5 * np.tanh(s / 5), samples.CAPPED),
    (lambda q, k, s: np.clip(s, -8, 8), samples.CAPPED),
    (lambda q, k, s: s * np.abs(s), "the content logit"),
    (lambda q, k, s: np.where(q < 64, np.tanh(s), s * np.abs(s)), "the content logit"),
    (_near_alone(1), ""),
    (_near_alone(2), "the content logit"),
]


@pytest.mark.parametrize(("make", "said"), ASKED)
def test_what_a_function_does_with_scores_is_named_where_its_identity_holds(make, said):
    def ask(q, k, s):
        shape = np.broadcast_shapes(q.shape, k.shape)
        return np.broadcast_to(make(q, k, np.broadcast_to(s, shape)), shape), "float64"

    queries = np.array([0, 1, 7, 31, 63])
    assert sampling._of_scores(ask, queries, np.arange(64)) == said


@pytest.mark.parametrize(
    ("result", "table"),
    [
        (5.0, [[5.0] * 6]),
        (np.arange(6.0), [np.arange(6.0)]),
        (np.arange(6.0)[None, :, None], [np.arange(6.0)]),
        (np.arange(12.0).reshape(2, 6), np.arange(12.0).reshape(2, 6)),
        (np.arange(12.0).reshape(6, 2), np.arange(12.0).reshape(6, 2).T),
        (np.arange(36.0).reshape(6, 6), np.arange(36.0).reshape(6, 6)),
        (np.zeros((6, 128)), np.zeros((128, 6))),
        (np.zeros((6, 129)), "it gives shape .6, 129."),
        (np.arange(5.0), r"of shape .6,.: it gives shape .5,."),
        (np.arange(6.0) < 3, "gives truth, which may be a mask"),
        (np.zeros((2, 2, 6)), "it gives shape .2, 2, 6."),
    ],
)
def test_a_result_is_a_row_for_each_head(result, table):
    if isinstance(table, str):
        with pytest.raises((samples.Unfit, InputError), match=table):
            sampling._table(result, np.arange(6.0), "x")
    else:
        found = sampling._table(result, np.arange(6.0), "x")
        np.testing.assert_array_equal(found.values, table)


def test_what_an_object_says_of_its_heads_and_why_nothing_fits():
    for given, count in [(1024, 1024), (1025, None), (1, 1), (0, None), (True, None), (4.0, None)]:
        assert samples.head_count(type("Held", (), {"n_head": given})()) is count
    num_heads = 12
    assert samples.head_count(lambda n: n / num_heads) == 12
    assert samples.head_count(lambda n: n) is None

    def fails(kind, why):
        def attempt():
            raise kind(why)

        return attempt

    other, unfit = samples.OtherKind, samples.Unfit
    for kinds, told in [
        ([(unfit, "a"), (unfit, "b"), (unfit, "c")], "a; c"),
        ([(unfit, "a"), (unfit, "a")], "a"),
        ([(unfit, "a"), (other, "b"), (other, "c"), (unfit, "d")], "c"),
        ([], "nothing fits"),
    ]:
        with pytest.raises(unfit, match=f"^{told}$"):
            samples.first_fitting(fails(*each) for each in kinds)
    assert samples.first_fitting([fails(unfit, "a"), lambda: 3, fails(unfit, "b")]) == 3


def test_a_matrix_is_the_rows_of_its_last_queries():
    rows = samples.last_rows(np.arange(12.0).reshape(2, 2, 3))
    assert [(row.query, row.distances.tolist()) for row in rows] == [
        (1, [1, 0, -1]),
        (2, [2, 1, 0]),
    ]
    assert [row.values.tolist() for row in rows] == [
        [[0, 1, 2], [6, 7, 8]],
        [[3, 4, 5], [9, 10, 11]],
    ]
    assert [row.is_dense for row in rows] == [True, True] and rows[1].at(2).tolist() == [3, 9]
    found = samples.sample_of_rows(rows, "", "")
    assert found.distances.tolist() == [0, 1, 2] and found.values.tolist() == [
        [5, 4, 3],
        [11, 10, 9],
    ]
    assert len(found.rows) == 2 and not samples.sample_of_rows(rows[:1], "", "").rows


def _taking(*names, **options):
    """A class that wants these arguments and keeps what it is given."""
    wanted = ", ".join([*names, *(f"{k}={v}" for k, v in options.items())])
    kept = ", ".join([*names, *options])
    space = {}
    exec(f"class Kept:\n def __init__(self, {wanted}): self.kept = [{kept}]", space)
    return space["Kept"]


@pytest.mark.parametrize(
    ("names", "usual", "given"),
    [
        ((), [], []),
        (("heads",), [8], [3]),
        (("x",), [8], [3]),
        *(((name,), [64], [5]) for name in ("size", "dim", "width", "d_model", "channels")),
        (("dim", "heads"), [8, 64], [3, 5]),
        (("heads", "size"), [8, 64], [3, 5]),
    ],
)
def test_a_class_is_made_with_as_many_numbers_as_it_wants(names, usual, given):
    assert python_files.built(_taking(*names)).kept == usual
    assert python_files.built(_taking(*names), 3, 5).kept == given
    assert python_files.built(_taking(*names, more=7), 3, 5).kept == [*given, 7]


def test_a_class_that_wants_more_is_refused(refusal):
    refusal("Kept takes a, b, c; accepted: Class", python_files.built, _taking("a", "b", "c"))


def test_what_a_file_holds_is_named_or_is_its_only_object(refusal, tmp_path):
    file = tmp_path / "mine.py"
    text = "from math import log\n_HIDDEN = [0, 1]\nNAME = 'x'\ndef bias(n): return -n\n"
    file.write_text(text)
    assert python_files.named(str(file))(3) == -3 == python_files.named(f"{file}:bias")(3)
    refusal("has no 'slope'; it holds bias; accepted: a func", python_files.named, f"{file}:slope")
    (tmp_path / "two.py").write_text(
        f"{text}class Made:\n def call(n): return n\nTABLE = [0, -1]\n"
    )
    two = f"{tmp_path / 'two.py'}"
    refusal("holds bias, Made, TABLE; accepted: .*two.py:bias", python_files.named, two)
    assert python_files.named(f"{two}:Made.call")(2) == 2
    assert python_files.named(f"{two}:TABLE") == [0, -1]
    assert type(python_files.handed(f"{two}:Made")).__name__ == "Made"
    (tmp_path / "none.py").write_text("X = 'x'\n")
    none = f"{tmp_path / 'none.py'}"
    refusal("holds no function, class or array; accepted: .*:NAME", python_files.named, none)
