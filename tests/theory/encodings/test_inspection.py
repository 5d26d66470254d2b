"""Biases as people have them in a file: rebuilt from their definitions, run, recognised."""

import math

import numpy as np
import pytest
import sympy

from farfield import (
    certified_window,
    check_convergence,
    compare_tails,
    encoding,
    inspect_bias,
    window_error,
)
from farfield import theoretical_receptive_field as trf
from farfield.theory.encodings import families, t5_bucket_starts
from farfield.theory.encodings.families import fitted, visible
from farfield.theory.encodings.layouts import layout
from farfield.theory.values import tabulate

torch = pytest.importorskip("torch")
nn = torch.nn

PAST = np.subtract.outer(np.arange(64.0), np.arange(64.0))
PRESS = torch.tensor([2.0**-h for h in range(1, 9)])


def alibi(heads):
    """The score function of attention libraries, which closes over the number of heads."""

    def add(score, b, h, q_idx, kv_idx):
        return score + (kv_idx - q_idx) * torch.exp2(-((h + 1) * 8.0 / heads))

    return add


class PositionMLP(nn.Module):
    """A dynamic position bias: an MLP of the distance, gathered into heads."""

    def __init__(self, heads=12, width=32):
        super().__init__()
        layers = (nn.Linear(1, width), nn.LayerNorm(width), nn.SiLU(), nn.Linear(width, heads))
        self.mlp = nn.Sequential(*layers)

    def forward(self, i, j):
        at = torch.arange(i)[:, None] - torch.arange(j)[None, :]
        return self.mlp(torch.arange(1 - j, i).float()[:, None])[at + j - 1].permute(2, 0, 1)


class Fire(nn.Module):
    """FIRE: an MLP of log(1 + c d), normalised by that of the query's position or a threshold."""

    def __init__(self, heads=12, width=32):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, heads))
        self.c, self.threshold = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(64.0))

    def forward(self, x):
        at = torch.arange(x.shape[2]).float()
        row = torch.maximum(at, self.threshold)[:, None]
        part = torch.log1p(self.c * (at[:, None] - at).clamp(min=0)) / torch.log1p(self.c * row)
        return self.mlp(part[..., None]).permute(2, 0, 1)[None]


class ForgetGate(nn.Module):
    """A forget gate: the sum of the logarithms of gates between key and query."""

    def __init__(self, width=48, heads=4):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(1)  # what is said of bf16 depends on the weights
            self.gate = nn.Linear(width, heads)

    def forward(self, x):
        total = nn.functional.logsigmoid(self.gate(x)).cumsum(1).permute(0, 2, 1)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return (total[..., :, None] - total[..., None, :]).masked_fill(future, -math.inf)


def flash_matrix(heads, queries, keys):
    """ALiBi as kernels test it: -slope |query + keys - queries - key|, shape (1, heads, q, k)."""
    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
    away = torch.arange(queries)[:, None] + keys - queries - torch.arange(keys)
    return -slopes[None, :, None, None] * away.abs()


def small_row(heads, keys):
    """ALiBi as slope times key position, which differs by a constant a row."""
    return PRESS[:heads, None, None] * torch.arange(keys)


EIGHT = [f"-n/{2**h}" for h in range(1, 9)]
READ = {  # what is given, the biases that it is, how they come to be known
    "score_mod": (alibi(8), EIGHT, "traced"),
    "own score_mod": (encoding("alibi").score_mod(64), EIGHT, "tabulated"),
    "mask_mod": (lambda b, h, q, k: (q >= k) & (q - k <= 16), ["where(n <= 16, 0, -oo)"], "traced"),
    "dilated mask_mod": (
        lambda b, h, q, k: (q >= k) & (q - k <= 512) & ((q - k) % 4 == 0),
        ["where((n <= 512) & Eq(Mod(n, 4), 0), 0, -oo)"],
        "traced",
    ),
    "rel_bias": (lambda score, b, h, q, k: score + (q - k), ["n"], "traced"),
    "positions": (lambda q, k: -abs(q - k) / 8, ["-n/8"], "traced"),
    "math.log": (lambda n: -math.log1p(n), ["-log(1 + n)"], "traced"),
    "in place": (lambda d: _masked(d), ["where(n >= 64, -oo, -n/8)"], "traced"),
    "slopes": (PRESS, EIGHT, "formula"),
    "slopes (1, heads)": (PRESS[None], EIGHT, "formula"),
    "slopes (heads, 1, 1)": (PRESS[:, None, None], EIGHT, "formula"),
    "slopes (1, heads, 1, 1)": (PRESS[None, :, None, None], EIGHT, "formula"),
    "list of slopes": ([2**-h for h in range(1, 9)], EIGHT, "formula"),
    "flash": (flash_matrix(8, 64, 64), EIGHT, "tabulated"),
    "flash with a cache": (flash_matrix(8, 8, 64), EIGHT, "tabulated"),
    "slope times key": (small_row(8, 64), EIGHT, "tabulated"),
    "square": (-np.tril(PAST), ["-n"], "tabulated"),
    "masked square": (np.where(PAST >= 0, -PAST / 4, -np.inf), ["-n/4"], "tabulated"),
    "nn.Linear": (nn.Linear(1, 1, bias=False), None, "tabulated"),
}


def _masked(d):
    b = -d / 8
    b[d >= 64] = -np.inf
    return b


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", READ)
def test_is_read_as_it_is(name):
    given, meant, origin = READ[name]
    found = encoding(given)
    assert found.origin == origin and (found.seen is None) == (origin != "tabulated")
    if meant is None:
        return
    at, shown = np.arange(600), found
    if origin == "tabulated":  # known where it was asked; what it resembles is said beside it
        at, shown = np.arange(found.seen.distance + 1), encoding(found.resembles)
        assert not found.biases and check_convergence(given).reason.code == "beyond_seen"
    right = np.stack([encoding(m).bias(at)[0] for m in meant])
    assert np.array_equal(shown.bias(at), right)
    np.testing.assert_allclose(found.bias(at), right, rtol=1e-6)


def test_a_module_without_a_family_answers_for_finite_rows(refusal):
    torch.manual_seed(0)
    module = PositionMLP()
    found, given = inspect_bias(module), encoding(module)
    assert (found.origin, found.seen.distance, found.heads) == ("tabulated", 511, 12)
    with torch.no_grad():
        values = module(512, 512)[:, -1].flip(-1).double().numpy()
    assert np.array_equal(given.bias(np.arange(512)), values) and found.causal is False
    verdict = check_convergence(given)
    assert verdict.verdict == "undecided" and "up to distance 511" in str(verdict)
    kept = np.cumsum(np.exp(values[0]))
    wanted = 1 + int(np.argmax(kept >= 0.9 * kept[-1]))
    assert int(trf(given.one_head(1), "1/10", length=512)) == wanted
    assert int(trf(given.one_head(1), "1/10").finite) == wanted
    refusal("no tail to compare", compare_tails, given, "-n")


CONTENT = {
    "forget gate": (ForgetGate(), "gated-decay"),
    "FIRE": (Fire(), "normalised-bias"),
    "row": (lambda q, k: -8 * (q - k) / (q + 1), "normalised-bias"),
    "its own maximum": (lambda d: -8 * d / d.max(), "normalised-bias"),
    "checkerboard": (
        lambda score, b, h, q, k: torch.where((q - k) % 2 == 0, score / 2, score * 2),
        "bounded-logits",
    ),
    "soft cap": (
        lambda score, b, h, q, k: 20 * torch.tanh(score / 20) - (q - k) * 0,
        "bounded-logits",
    ),
    "soft cap of scores": (lambda scores: 50 * torch.tanh(scores / 50), "bounded-logits"),
    "scale of scores": (lambda scores: 2 * scores, "bounded-logits"),
    "scalable softmax": (
        lambda score, b, h, q_idx, kv_idx: score * torch.log(q_idx + 1.0),
        "growing-logits",
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CONTENT)
def test_what_is_no_bias_by_distance_has_the_theorem_of_its_mechanism(name):
    given, theorem = CONTENT[name]
    found = check_convergence(given)
    assert (found.verdict, found.label) == ("out_of_scope", None)
    window = found.windowable  # named where it was seen, and proved nowhere
    assert (window.theorem, window.value, window.label) == (theorem, None, None)
    for unknown in (window, certified_window(given, 1, 1, 1), window_error(given, 9, 1, 1)):
        assert unknown.reason.code == "beyond_seen"


def test_a_factor_of_the_content_beside_a_bias_leaves_the_bias_to_decide(refusal):
    """Content logits in [-beta, beta], times a bounded factor, are bounded content logits."""
    found = inspect_bias(lambda score, b, h, q, k: score / 2 - (q - k) / 8)
    assert (found.mechanism, found.resembles) == ("bias", "-n/8")
    assert "beside the bias it gives a bounded factor of the content logit" in found.findings
    unseen = check_convergence(lambda score, b, h, q, k: 2 * score - (q - k) / 8)
    assert unseen.reason.code == "beyond_seen"
    for mixed in (  # grows with distance; bounded as a whole
        lambda score, b, h, q, k: score * torch.log(2 + (q - k)) - (q - k) / 8,
        lambda score, b, h, q, k: 20 * torch.tanh((score - (q - k) / 8) / 20),
    ):
        assert inspect_bias(mixed).mechanism == "content"
        refusal("no theorem covers it", encoding, mixed)


FINDINGS = {  # given; depends, mechanism, direction, causal, masked from, seen; the text
    "a line that rises": (
        lambda q, k: (q - k) / 8,
        ("distance", "bias", "rises", None, None, None),
        "<lambda>: rises with distance: the far past outweighs the near one.  [measured] | "
        "Its family is linear. | In bf16 distances 256 and 257 have the same value. | In "
        "fp16 distances 2048 and 2049 have the same value. | called with: positions q and k"
        " | heads: 1 | formula: [n/8] | origin: traced | distances seen: 0 to 4095, and 24 "
        "more up to 1048576",
    ),
    "a number as a mask": (
        lambda d: np.where(d < 64, 0, -1e9),
        ("distance", "bias", "constant", None, 64, None),
        "<lambda>: holds -1e+09, a number that stands for minus infinity, from distance 64 "
        "on.  [measured] | Masks keys by distance: a window of 64 keys. | called with: a "
        "distance | heads: 1 | formula: [Piecewise((0, n < 64), (-1000000000, True))] | "
        "origin: traced | distances seen: 0 to 4095, and 24 more up to 1048576",
    ),
    "a line that falls": (
        lambda n: -n / 8,
        ("distance", "bias", "falls", None, None, None),
        "<lambda>: falls with distance: linear, as ALiBi.  [measured] | In bf16 distances "
        "256 and 257 have the same value. | In fp16 distances 2048 and 2049 have the same "
        "value. | called with: a distance | heads: 1 | formula: [-n/8] | origin: traced | "
        "distances seen: 0 to 4095, and 24 more up to 1048576",
    ),
    "a window": (
        lambda n: np.where(n < 8, 0, -np.inf),
        ("distance", "bias", "constant", None, 8, None),
        "<lambda>: masks keys by distance: a window of 8 keys.  [measured] | called with: a"
        " distance | heads: 1 | formula: [Piecewise((0, n < 8), (-oo, True))] | origin: "
        "traced | distances seen: 0 to 4095, and 24 more up to 1048576",
    ),
    "a wave": (
        lambda n: np.sin(np.asarray(n) ** 2),
        ("distance", "bias", "varies", None, None, None),
        "<lambda>: rises and falls with distance: a formula that was traced.  [measured] | "
        "In bf16 distances 210 and 211 have the same value. | In fp16 distances 2318 and "
        "2319 have the same value. | called with: a distance | heads: 1 | formula: "
        "[sin(n**2)] | origin: traced | distances seen: 0 to 4095, and 24 more up to "
        "1048576",
    ),
    "a constant": (
        lambda n: 0 * n + 3,
        ("distance", "bias", "constant", None, None, None),
        "<lambda>: is the same at every distance: constant.  [measured] | called with: a "
        "distance | heads: 1 | formula: [3] | origin: traced | distances seen: 0 to 4095, "
        "and 24 more up to 1048576",
    ),
    "slopes": (
        [0.5, 0.25],
        ("distance", "bias", "falls", None, None, (1, None)),
        "the array: falls with distance: linear, as ALiBi.  [measured] | No formula was "
        "followed: it is known up to distance 1, and nothing is said beyond. | called with:"
        " an array of table | heads: 1 | origin: tabulated | largest difference: 0 | "
        'distances seen: 0 to 1 | resembles: 1/2 - n/4: farfield check "1/2 - n/4"',
    ),
    "slopes of three heads": (
        [0.5, 0.25, 0.125],
        ("distance", "bias", "falls", None, None, None),
        "the array: falls with distance: linear, as ALiBi.  [measured] | In bf16 distances "
        "256 and 257 have the same value. | called with: an array of slopes | heads: 3 | "
        "formula: [-n/2; -n/4; -n/8] | origin: formula | distances seen: 0 to 511",
    ),
    "a square": (
        -np.tril(PAST) - np.triu(np.ones((64, 64)), 1),
        ("distance", "bias", "falls", False, None, (63, 63)),
        "the array: falls with distance: linear, as ALiBi.  [measured] | Keys after the "
        "query are not masked here; the half of the past is read. | No formula was "
        "followed: it is known up to distance 63, and nothing is said beyond. | called "
        "with: an array | heads: 1 | origin: tabulated | largest difference: 0 | distances "
        'seen: 0 to 63 | resembles: -n: farfield check "-n"',
    ),
    "slope times key": (
        small_row(2, 64),
        ("distance", "bias", "falls", None, None, (63, None)),
        "the array: falls with distance: linear, as ALiBi.  [measured] | Rows differ by a "
        "constant each, which a softmax does not see. | No formula was followed: it is "
        "known up to distance 63, and nothing is said beyond. | called with: an array | "
        "heads: 2 | origin: tabulated | largest difference: 0 | distances seen: 0 to 63 | "
        'resembles: [-n/2; -n/4]: farfield check "[-n/2; -n/4]"',
    ),
    "of two heads": (
        np.stack([-np.sqrt(np.arange(9.0)), -(np.arange(9.0) ** 1.5)]),
        ("distance", "bias", "falls", None, None, (8, None)),
        "the array: falls with distance: a power, as KERPLE-power.  [measured] | No formula"
        " was followed: it is known up to distance 8, and nothing is said beyond. | called "
        "with: an array of table | heads: 2 | origin: tabulated | largest difference: 0 | "
        "distances seen: 0 to 8 | resembles: [-sqrt(n); -n^(3/2)]: farfield check "
        '"[-sqrt(n); -n^(3/2)]"',
    ),
    "a score": (
        lambda score, b, h, q, k: score / 2 - (q - k) / 8,
        ("distance", "bias", "falls", False, None, (4095, 1048576)),
        "<lambda>: falls with distance: linear, as ALiBi.  [measured] | Beside the bias it "
        "gives a bounded factor of the content logit. | Keys after the query are not masked"
        " here; the half of the past is read. | No formula was followed: it is known up to "
        "distance 4095, and nothing is said beyond. | In bf16 distances 256 and 257 have "
        "the same value. | In fp16 distances 2048 and 2049 have the same value. | called "
        "with: score_mod(score, b, h, q, k) | heads: 1 | origin: tabulated | largest "
        "difference: 0 | distances seen: 0 to 4095, and 40 more up to 1048576 | resembles: "
        '-n/8: farfield check "-n/8"',
    ),
    "row": (
        CONTENT["row"][0],
        ("row", "row_dependent", "falls", False, None, (4095, 1048576)),
        "<lambda>: row-normalised: no fixed window is ever enough, since one and the same "
        "distance weighs less and less in longer rows.  [measured] | Rows differ by a "
        "constant each, which a softmax does not see. | Keys after the query are not masked"
        " here; the half of the past is read. | No formula was followed: it is known up to "
        "distance 4095, and nothing is said beyond. | Not followed: the value depends on "
        "the positions. | In bf16 distances 256 and 257 have the same value. | In fp16 "
        "distances 2048 and 2049 have the same value. | called with: positions q and k | "
        "heads: 1 | distances seen: 0 to 4095, and 24 more up to 1048576",
    ),
    "gates": (
        CONTENT["forget gate"][0],
        ("content", "gated_decay", "falls", True, None, (63, 63)),
        "ForgetGate: adds up gates of the content: a long enough window is enough exactly "
        "if the gates stay below one: gamma < 1, gamma their least bound over all inputs.  "
        "[measured] | Rows differ by a constant each, which a softmax does not see. | No "
        "formula was followed: it is known up to distance 63, and nothing is said beyond. |"
        " called with: hidden states | heads: 4 | distances seen: 0 to 63",
    ),
    "a cap": (
        CONTENT["soft cap of scores"][0],
        ("content", "capped", "constant", False, None, (511, 511)),
        "<lambda>: gives a bounded function of the content logit and no bias: no fixed "
        "window is ever enough: a bounded function of the content logit keeps every logit "
        "bounded, so outside any window the mass tends to 1 as rows grow, for every input."
        "  [measured] | Keys after the query are not masked here; the half of the past is "
        "read. | No formula was followed: it is known up to distance 511, and nothing is "
        "said beyond. | called with: scores | heads: 1 | distances seen: 0 to 511",
    ),
    "a scale": (
        CONTENT["scale of scores"][0],
        ("content", "scaled_content", "constant", False, None, (511, 511)),
        "<lambda>: gives a bounded factor of the content logit and no bias: no fixed window"
        " is ever enough: a bounded factor of the content logit keeps every logit bounded, "
        "so outside any window the mass tends to 1 as rows grow, for every input.  "
        "[measured] | Keys after the query are not masked here; the half of the past is "
        "read. | No formula was followed: it is known up to distance 511, and nothing is "
        "said beyond. | called with: scores | heads: 1 | distances seen: 0 to 511",
    ),
    "of the row": (
        CONTENT["scalable softmax"][0],
        ("content", "row_scaled", "constant", False, None, (4095, 1048576)),
        "<lambda>: gives a factor of the content logit that grows with the row and no bias:"
        " no fixed window is ever enough: the scale of the logits grows with the row and no"
        " bias falls, so for some inputs the mass outside any window tends to 1.  "
        "[measured] | Keys after the query are not masked here; the half of the past is "
        "read. | No formula was followed: it is known up to distance 4095, and nothing is "
        "said beyond. | called with: score_mod(score, b, h, q, k) | heads: 1 | distances "
        "seen: 0 to 4095, and 24 more up to 1048576",
    ),
    "mixed": (
        lambda score, b, h, q, k: score * torch.log(2 + (q - k)) - (q - k) / 8,
        ("content", "content", "falls", False, None, (4095, 1048576)),
        "<lambda>: depends on a factor of the content logit that grows with the row: no "
        "theorem covers it.  [measured] | Keys after the query are not masked here; the "
        "half of the past is read. | No formula was followed: it is known up to distance "
        "4095, and nothing is said beyond. | In bf16 distances 256 and 257 have the same "
        "value. | In fp16 distances 2048 and 2049 have the same value. | called with: "
        "score_mod(score, b, h, q, k), heads 0 to 7 (heads=... asks for others) | heads: 8 "
        "| distances seen: 0 to 4095, and 40 more up to 1048576",
    ),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_every_finding_is_said(name):
    given, fields, text = FINDINGS[name]
    found = inspect_bias(given)
    seen = found.seen and (found.seen.distance, found.seen.query)
    known = found.depends, found.mechanism, found.direction, found.causal, found.masked_from
    assert (*known, seen) == fields
    assert " | ".join(map(str.strip, found.text(width=1000).splitlines())) == text


def test_rounding_is_what_the_types_do():
    at = np.arange(4096.0)
    for bias in (-at / 8, -np.log1p(at), -at / 3):
        merged = dict(inspect_bias(np.stack([bias, bias])).merged)
        for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
            rounded = torch.from_numpy(bias).to(dtype).double().numpy()
            assert merged[name] == int(np.argmax(rounded[1:] == rounded[:-1])), (name, bias[1])


@pytest.mark.parametrize(
    "array",
    [np.ones((32, 8)) * np.arange(32)[:, None], np.random.default_rng(0).normal(size=(16, 16))],
)
def test_axes_that_may_be_two_things_are_asked_about(refusal, array):
    refusal(r"values=array; or .* values=array.T", encoding, array)
    assert encoding(values=array).num_heads == len(array)


TWELVE = [2.0**-h for h in range(1, 9)] + [2.0 ** (0.5 - h) for h in range(1, 5)]
LAYOUTS = [
    ([0, -1, -2], "table", (3,)),
    ([[0, -1, -2], [0, -2, -4]], "table", (2, 3)),
    ([3.0, 1.0, 2.0], "table", (3,)),
    ([0.5, 0.25], "table", (2,)),
    ([0.5, 0.25, 0.125], "slopes", (3,)),
    ([0.5, 0.2503, 0.1251], "table", (3,)),
    ([0.5, 0.2501, 0.1250], "slopes", (3,)),
    ([0.5, 0.4999, 0.4999], "table", (3,)),
    ([2**-4 * 1.0009, 2**-8], "slopes", (2,)),
    ([2**-4 * 1.0012, 2**-8], "table", (2,)),
    ([0.5, -0.25, 0.125], "table", (3,)),
    ([0.5, 0.25, 0.0], "table", (3,)),
    ([1.0, 1.0, 1.0], "table", (3,)),
    ([1.0], "table", (1,)),
    ([0.0, 1.0, 2.0], "table", (3,)),
    ([math.inf, math.inf], "table", (2,)),
    ([2.0, 4.0, 8.0], "table", (3,)),
    ([math.inf, 1.0, 1e-9], "table", (3,)),
    ([0.5, 0.25], "table", (2,)),
    ([2**-4, 2**-8], "slopes", (2,)),
    ([2**-8], "table", (1,)),
    ([[1.0, 0.5], [0.25, 0.125]], "table", (2, 2)),
    (np.where(PAST[:3, :3] > 0, -np.inf, np.inf), "matrix", (1, 3, 3)),
    (-PAST[2:5, :5] * np.array([[1, 1.004, 1]]).T, "matrix", (1, 3, 5)),
    (-PAST[2:5, :5] * np.array([[0.1, 0.1016, 0.1]]).T, "table", (3, 5)),
    (-PAST[2:5, :5] - np.where(np.eye(3, 5, -1), [np.inf, *[0] * 4], 0), "table", (3, 5)),
    ([[0.5], [0.25], [0.125]], "slopes", (3,)),
    ([[0.5, 0.25, 0.125]], "slopes", (3,)),
    (TWELVE, "slopes", (12,)),
    (torch.tensor(TWELVE).bfloat16(), "slopes", (12,)),
    (0.9 ** np.arange(256.0), "slopes", (256,)),
    (0.9 ** np.arange(257.0), "table", (257,)),
    (np.zeros((2, 1, 1)), "slopes", (2,)),
    (np.zeros((2, 3, 3)), "matrix", (2, 3, 3)),
    (np.zeros((1, 2, 3, 3)), "matrix", (2, 3, 3)),
    (np.zeros((3, 3)), "matrix", (1, 3, 3)),
    (np.zeros((2, 3)), "table", (2, 3)),
    (np.zeros((2, 2)), "table", (2, 2)),
    (-PAST[2:5, :5], "matrix", (1, 3, 5)),
    (np.outer([1, 2], np.arange(5.0)), "table", (2, 5)),
    (np.array([True, False, True]), "table", (3,)),
    (np.zeros((2, 2, 3, 3)), "an array of shape (2, 2, 3, 3); accepted: ", None),
    (np.zeros(()), "an array of shape (); accepted: ", None),
    ([], "an array of shape (0,); accepted: ", None),
    (np.zeros((5, 1)), "may be a table of 5 heads at 1 distances", None),
    (-PAST[:4, :3], "may be a table of 4 heads at 3 distances", None),
    (
        np.zeros((3, 2)),
        "may be a table of 3 heads at 2 distances, written values=array; or 2",
        None,
    ),
]


@pytest.mark.parametrize(("array", "kind", "shape"), LAYOUTS)
def test_layouts(refusal, array, kind, shape):
    if shape is None:
        assert kind in refusal("", layout, array)
    else:
        with np.errstate(all="raise"):  # no warning either
            found = layout(array)
        assert (found[0], found[1].shape) == (kind, shape)


AT, GAP = np.arange(64.0), np.array([*range(8), 64.0, 65.0])
NOISE = np.random.default_rng(1).normal(size=64)
T5 = -0.25 * np.searchsorted(t5_bucket_starts(32, 128), np.arange(300.0), side="right") ** 1.5


def where(held, inside, outside=-np.inf):
    return np.where(held, inside, outside)


WINDOW = "a window of 40 keys"
FAMILIES = [  # distances, values; the formula, what it is called, None where there is none
    (AT, where(AT < 0, 0), None, None),
    (AT, where(AT < 40, 0), "Piecewise((0, n < 40), (-oo, True))", WINDOW),
    (AT, where(AT < 63, -AT, -1e9), None, None),
    (
        AT,
        where(AT < 40, -AT / 8, -1e9),
        "Piecewise((-n/8, n < 40), (-1000000000, True))",
        f"linear, as ALiBi, in {WINDOW}",
    ),
    (AT, where(AT % 4 == 0, 0), "Piecewise((0, Eq(Mod(n, 4), 0)), (-oo, True))", "every 4th key"),
    (
        AT,
        where((AT % 4 == 0) & (AT <= 20), 0),
        "Piecewise((0, (n <= 20) & Eq(Mod(n, 4), 0)), (-oo, True))",
        "every 4th of 20 keys",
    ),
    (
        AT,
        where((AT % 8 == 0) | (AT < 5), -AT),
        "Piecewise((-n, (n < 5) | Eq(Mod(n, 8), 0)), (-oo, True))",
        "linear, as ALiBi, in every 8th key and the nearest 5",
    ),
    (AT, where((AT % 8 == 3) | (AT < 5), 0), None, None),
    (AT, where(AT > 3, -AT), None, None),
    (AT, where(AT < 60, 0, -1e5 - AT), None, None),
    (GAP, where(GAP < 64, 0), None, None),
    (GAP, where(GAP < 8, 0), None, None),
    (GAP, where(GAP < 5, 0), "Piecewise((0, n < 5), (-oo, True))", "a window of 5 keys"),
    (AT, 0 * AT, "0", "no bias"),
    (AT, 0 * AT + 3, "3", "constant"),
    (AT, 2 - AT / 8, "2 - n/8", "linear, as ALiBi"),
    (AT, AT / 4, "n/4", "linear, as ALiBi"),
    (AT, -AT / 3, "-n/3", "linear, as ALiBi"),
    (AT, -AT / 255, "-n/255", "linear, as ALiBi"),
    (
        AT,
        where(AT % 2 == 0, 3 - AT),
        "Piecewise((3 - n, Eq(Mod(n, 2), 0)), (-oo, True))",
        "linear, as ALiBi, in every 2th key",
    ),
    (AT, -1.3 * np.log1p(0.5 * AT), "-13*log(n/2 + 1)/10", "logarithmic, as KERPLE-log"),
    (AT, -0.3 * AT**0.8, "-3*n**(4/5)/10", "a power, as KERPLE-power"),
    (AT, -(AT**2) / 2048, "-n**2/2048", "a power, as KERPLE-power"),
    (AT, -np.log1p(AT**2 / 64), "-log(n**2/64 + 1)", "a Cauchy or Student kernel"),
    (AT, -2 * np.log1p(AT**2 / 3), "-2*log(n**2/3 + 1)", "a Cauchy or Student kernel"),
    (AT, -(np.log1p(AT) ** 2), "-log(n + 1)**2", "a squared logarithm"),
    (AT, -AT / 10 - 2 * np.log1p(AT), "-n/10 - 2*log(n + 1)", "linear and logarithmic"),
    (AT[:4], -np.log1p(AT[:4]), None, None),
    (AT[:4], -AT[:4] / 3, "-n/3", "linear, as ALiBi"),
    (AT[:5], -np.log1p(AT[:5]), "-log(n + 1)", "logarithmic, as KERPLE-log"),
    (AT[1:], -AT[1:] / 8, None, None),
    (AT, -np.tanh(AT / 50), None, None),
    (AT, NOISE, None, None),
    (AT, -AT / 8 + 1e-13 * NOISE, None, None),
    (
        np.arange(300.0),
        0.5 * families._waves(16).values(np.arange(300.0), 1.0),
        "Sum(cos(n/10000**(i/8)), (i, 0, 7))/2 - 4",
        "a sum of cosines, as Sandwich of width 16",
    ),
    (np.arange(300.0), T5, None, "T5 with 32 buckets up to 128"),
]


@pytest.mark.parametrize(("at", "values", "formula", "family"), FAMILIES)
def test_families_recover_their_numbers(at, values, formula, family):
    found = fitted(at, values, "float64")
    assert (found and found.family) == family
    if found is not None:
        assert formula in (None, str(found.formula))
        with np.errstate(invalid="ignore"):
            off = np.nan_to_num(np.abs(tabulate(found.formula.doit(), at.astype(int)) - values))
        assert off.max() <= 1e-13 and found.difference <= 1e-13


@pytest.mark.parametrize("buckets", [8, 16, 32, 64, 128])
@pytest.mark.parametrize("far", [8, 16, 128, 1024])
def test_buckets_of_t5_are_known_by_their_edges(buckets, far):
    starts = t5_bucket_starts(buckets, far)
    if far <= buckets // 2:
        return  # no such rule
    at = np.arange(starts[-1] + 40.0)
    values = -np.sqrt(np.searchsorted(starts, at, side="right"))
    found = fitted(at, values, "float64")
    assert found.family == f"T5 with {buckets} buckets up to {far}" and found.difference == 0
    assert np.array_equal(tabulate(found.formula, at.astype(int)), values)
    assert found.formula.args[1:] == (
        sympy.Tuple(*(sympy.Rational(repr(v)) for v in values[: starts[-1]].tolist())),
        sympy.Rational(repr(float(values[-1]))),
    )


def test_rounding_of_a_type_is_no_difference():
    near = -AT / 8 + 1e-13 * NOISE
    assert fitted(AT, near, "float64", 1000.0).family == "linear, as ALiBi"
    assert fitted(AT, near, "float32").family == "linear, as ALiBi"
    tenths = (np.float32(-0.1) * AT.astype(np.float32)).astype(float)
    assert str(fitted(AT, tenths, "float32").formula) == "-n/10"
    shown = [visible(np.array([0.0, *x])).tolist()[1:] for x in ([-1e4] * 2, [-1e4], [-1e5, -2e5])]
    assert shown == [[False, False], [True], [True, True]]
    assert visible(np.array([-9999.0, -9999.0, -np.inf])).tolist() == [True, True, False]


def test_functions_of_jax_are_read_where_it_is_installed():
    """JAX functions take arrays of NumPy and give arrays that NumPy reads."""

    class Result:
        def __init__(self, values):
            self.values, self.dtype, self.shape = values, values.dtype, values.shape

        def __array__(self, *args, **options):
            return np.asarray(self.values, *args, **options)

    def log1p(n):
        if type(n) is not np.ndarray:
            raise TypeError(f"{type(n).__name__} is no array of JAX")
        return Result(np.log1p(n))

    found = encoding(lambda n: Result(-2 * log1p(n).values))
    assert (found.origin, found.resembles) == ("tabulated", "-2*log(n + 1)")


def _windows(h, q, k):
    inside = np.heaviside(5000 * (h + 1) - (q - k), 0) > 0  # which is not followed
    return np.where(inside, -(q - k) / 8, -np.inf)


def test_each_head_is_asked_at_the_far_edges_of_all():
    inspection = inspect_bias(_windows, heads=2)
    assert all(f"window of {width} keys" in inspection.family for width in (5000, 10000))
    assert inspection.seen.query == 2**20


def test_heads_whose_edges_lie_between_the_same_far_distances_stay_apart():
    """The bisections of 5000 and of 7000 see and miss the key equally often."""

    def either(h, q, k):
        inside = np.heaviside((5000, 7000)[int(h)] - (q - k), 0) > 0
        return np.where(inside, 0.0, -np.inf)

    inspection = inspect_bias(either)
    assert (inspection.mechanism, inspection.heads) == ("bias", 2)
    assert inspection.family == "a window of 5000 keys, a window of 7000 keys"


def test_scores_are_judged_once_a_head_also_where_its_edges_are_its_own():
    judged = []

    def windowed(score, b, h, q, k):
        if np.any(np.asarray(score)):
            judged.append(h)
        return score + _windows(h, q, k)

    assert "window of 10000 keys" in inspect_bias(windowed, heads=2).family
    each_way = 2 * 4  # four random scores, at near and at far queries
    assert judged == 2 * ([0] * each_way + [1] * each_way)  # a second call shows the same


def test_heads_of_one_bias_may_do_different_things_to_the_score():
    def next_adds_more(score, b, h, q, k):
        return (1 + h) * score - np.heaviside(q - k, 0) * (q - k)

    def each_doubles(score, b, h, q, k):
        return 2 * score - np.heaviside(q - k, 0) * (q - k)

    several, one = (inspect_bias(f) for f in (next_adds_more, each_doubles))
    assert several.heads == one.heads == 1
    factor = "beside the bias it gives a bounded factor of the content logit"
    assert factor in several.findings and factor in one.findings


@pytest.mark.parametrize("shape", [*families._SHAPES, families._waves(16)], ids=lambda s: s.name)
def test_the_formula_of_a_shape_has_its_values(shape):
    distances = np.arange(40)
    for start in shape.starts:
        formula = shape.formula(*map(sympy.Rational, map(repr, start)))
        values = shape.values(distances.astype(float), *start)
        assert values[0] == 0
        np.testing.assert_allclose(
            tabulate(formula.doit(), distances), values, rtol=1e-9, atol=1e-9
        )
