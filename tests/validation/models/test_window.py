"""The smallest window of a model on a text, beside a search through all of them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.answers.answer import Label, Status
from farfield.validation.harness.data import Text
from farfield.validation.harness.measure import ratio_of, token_losses
from farfield.validation.harness.runs import run
from farfield.validation.harness.settings import settle
from farfield.validation.models.audit import audit
from farfield.validation.models.folder import describe
from farfield.validation.models.opened import open_model
from farfield.validation.models.smallest_window import AS_IS, SINKS, Search, smallest_window
from farfield.validation.models.text import rows_of, text_of


@pytest.fixture(scope="module")
def tokens():
    """Tokens of which each depends on one some places before."""
    drawn = np.random.default_rng(0).integers(0, 256, 6000)
    return Text("drawn", *np.split(drawn.astype(np.uint8), 2))


ASKED = {"loss": "1/5", "length": 24, "segments": 6}
SUNK = f"one window, {SINKS} first keys"


@pytest.mark.parametrize("name", ["llama", "bloom", "gemma3_text"])
def test_the_smallest_window_is_that_of_a_loop_over_all(name, outside_models, tokens, tmp_path):
    place = outside_models.folder(name)
    found = smallest_window(place, tokens, folder=tmp_path, **ASKED)
    opened = open_model(describe(place))
    read = text_of(opened.model, tokens)
    rows = rows_of(read, read.held_out[:1500], 6, 24)

    def ratios(rows, view):
        return ratio_of(
            *((token_losses(opened, rows, v, 12).mean(1), np.ones(6)) for v in (view, CAUSAL))
        )

    def high(view):
        return ratios(rows, view)[2]

    enough = [high(Mask(w)) <= 1.2 for w in range(1, 24)]
    if found.status is Status.EXACT:
        width = int(found)
        assert enough[width - 1] and (width == 1 or not enough[width - 2])
        assert found.costs["one window"].high <= 1.2 and found.label is Label.MEASURED
        other = rows_of(read, read.held_out[1500:], 6, 24)
        layers = opened.model.layers
        for cost, first in ((found.costs["one window"], 0), (found.costs[SUNK], SINKS)):
            ratio = ratios(other, Mask(cost.width, sinks=first))
            assert (cost.held_out, cost.held_low) == pytest.approx(ratio[:2])
            kept = [min(cost.width + first, layer.width or 24, 24) for layer in layers]
            assert cost.keys == sum(kept) <= found.costs[AS_IS].keys
            numbers = (layer.cached * k for layer, k in zip(layers, kept, strict=True))
            assert cost.bytes == 2 * sum(numbers)
    else:
        assert not enough[-1]


def test_a_search_that_was_stopped_goes_on(interrupted, outside_models, tokens, tmp_path):
    place, stages = outside_models.folder("llama"), []

    def search(folder):
        stages.clear()
        how = {"folder": tmp_path / folder, "progress": lambda *told: stages.append(told[0])}
        return smallest_window(place, tokens, **how, **ASKED)

    interrupted(4, smallest_window, place, tokens, folder=tmp_path / "a", **ASKED)
    (kept,) = (tmp_path / "a").iterdir()
    assert len(json.loads(kept.read_text())) == 4
    again = search("a")
    rest = len(stages)
    assert "at most 12 windows" in stages[0], "16 at most, and 4 are kept"
    whole = search("b")
    assert again == whole and rest == len(stages) - 4
    assert "at most 16 windows on 6 rows of 24 tokens" in stages[0]
    assert search("b") == whole and stages == [], "a finished search times no row"


def test_what_cannot_be_searched_is_refused_and_nothing_is_written(
    refusal, outside_models, tokens, tmp_path
):
    import transformers

    transformers.MambaForCausalLM(
        transformers.MambaConfig(vocab_size=256, hidden_size=32, num_hidden_layers=2, state_size=4)
    ).save_pretrained(tmp_path / "mamba")
    out = tmp_path / "out"
    few = Text("few", tokens.train[:30], tokens.held_out[:30])
    for place, text, more, message in (
        (tmp_path / "mamba", tokens, {}, "cannot be narrowed"),
        (outside_models.folder("llama"), few, {}, "the text has 15 tokens, 50 are needed"),
        (outside_models.folder("llama"), tokens, {"loss": 2}, "loss"),
        (outside_models.folder("llama"), tokens, {"length": 2}, "rows of 4 or more"),
        (outside_models.folder("gpt2"), tokens, {"length": 100, "segments": 2}, "90 tokens, 100"),
    ):
        refusal(message, smallest_window, place, text, folder=out, **ASKED | more)
        assert not list(out.glob("*"))


def trained(encoding, folder, **settings):
    """The folder of a run, which is measured as little as can be."""
    measure = {"lengths": [16], "row_length": 16, "last_tokens": 2, "blocks": 2}
    asked = settle("tiny", {"encoding": encoding, "measure": measure, **settings})
    return folder / str(run(asked, folder)[0]["run"])


def test_a_run_is_searched_as_a_model_of_the_library_is(tokens, tmp_path):
    layers = [{"mechanism": "rope", "window": 5}, "0"]
    place = trained({"label": "a", "layers": layers}, tmp_path)
    asked = {"length": 24, "folder": tmp_path / "w"}
    found = smallest_window(place, segments=8, loss="1/100", **asked)
    assert found.costs[AS_IS].keys == 5 + 24
    assert "farfield window --model" in str(audit(place))


def test_what_a_run_says_of_its_layers_is_what_its_model_does(refusal, tmp_path, monkeypatch):
    layers = [
        {"mechanism": "rope", "share": 0.5, "window": 5, "sinks": True, "scale": "log"},
        "kerple_log",
    ]
    opened = open_model(describe(trained({"label": "a", "layers": layers}, tmp_path)))
    turned, biased = opened.model.layers
    assert (turned.width, turned.sink, turned.positions) == (5, True, "rotation")
    assert turned.temper == "log(i)/log(16)" and not biased.temper
    assert biased.positions == "bias" and not biased.encoding.free
    assert biased.encoding.num_heads == len(set(biased.encoding.biases)) == biased.heads
    row = torch.arange(20)
    (_, first), (_, second) = opened.weights(row)
    at = torch.arange(20)
    assert (first.sum(-1) < 1).all() and not first[:, at[:, None] - at >= 5].any()
    torch.testing.assert_close(second.sum(-1), torch.ones(second.shape[:2]))
    table = torch.from_numpy(biased.encoding.bias(np.arange(20)))
    torch.testing.assert_close(opened.network.prepare(20)[1].bias.double(), table)
    with torch.no_grad():
        x = opened.embed(row[None])
        scores = lambda *view, **last: opened.logits(opened.hidden(x, *view, **last))  # noqa: E731
        torch.testing.assert_close(scores(), opened.network(row[None]))
        torch.testing.assert_close(scores(Mask(20)), opened.network(row[None]))
        narrow = opened.network(row[None], Mask(window=3, sinks=4))
        torch.testing.assert_close(scores(Mask(3, sinks=4), last=2), narrow[:, -2:])
        monkeypatch.setattr(
            "farfield.validation.harness.model.compiles", lambda *_: True
        )  # as on a GPU
        monkeypatch.setattr(
            "farfield.validation.harness.model.block_mask", None
        )  # each would be compiled anew
        torch.testing.assert_close(scores(Mask(3, sinks=4), last=2), narrow[:, -2:])
    own = tmp_path / "mine.py"
    own.write_text(
        "import torch\n\nclass Own(torch.nn.Module):\n"
        "    def __init__(self, heads, size):\n        super().__init__()\n"
        "    def forward(self, q, k, i, j):\n        return 0.0 * (i[:, None] - j)\n"
    )
    unknown = describe(trained(f"{own}:Own", tmp_path)).layers[0]
    assert (unknown.positions, unknown.encoding) == ("", None)
    known = open_model(describe(trained("learned", tmp_path)))
    refusal(
        "has positions for 16 tokens, 17 are asked",
        known.embed,
        torch.zeros(1, 17, dtype=torch.long),
    )


@pytest.mark.parametrize("least", range(12))
def test_the_smallest_window_is_the_first_that_costs_so_little(least):
    """At the border too; and none where each costs more."""
    search = SimpleNamespace(ratio=lambda width: (0, 0, 1.5 if width >= least else 2))
    widths = [1, 3, 4, 8, 10]
    found = Search.smallest(search, widths, lambda width: width, 0.5)
    assert found == next((width for width in widths if width >= least), None)
