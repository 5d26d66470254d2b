import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from farfield.validation.evidence.changes import file, rows  # noqa: E402
from farfield.validation.evidence.interventions import previous, silenced  # noqa: E402
from farfield.validation.harness.measures.recall import asked_at  # noqa: E402
from farfield.validation.harness.mechanism import LayerMechanism  # noqa: E402
from farfield.validation.harness.model import Transformer  # noqa: E402
from farfield.validation.harness.presets import preset  # noqa: E402
from farfield.validation.harness.tasks import Task  # noqa: E402
from farfield.validation.reference.hold import cells  # noqa: E402
from farfield.validation.reference.lending import LEARNED  # noqa: E402
from farfield.validation.reference.registration import HOLD  # noqa: E402


def tiny(**mechanism):
    torch.manual_seed(0)
    shape = preset("tiny")
    layers = [LayerMechanism(**mechanism)] * shape.layers
    return Transformer(shape, layers, vocabulary=64).double()


def test_without_a_head_is_the_model_whose_output_ignores_it():
    model, task = tiny(), Task("induction", vocabulary=64)
    size = model.layers[0].attention_out.in_features // model.layers[0].heads

    def ask(**inner):
        return asked_at(model, task, np.random.default_rng(0), 8, 32, 9, **inner)[2]

    plain, silent = ask(), ask(inner=silenced([1], len(model.layers)))
    with torch.no_grad():
        model.layers[0].attention_out.weight[:, size : 2 * size] = 0
    assert torch.allclose(silent, ask(), atol=1e-12)
    assert not torch.allclose(silent, plain, atol=1e-6)


@pytest.mark.parametrize("window", [None, 1, 4])
def test_attention_on_the_previous_token(window):
    logits = torch.randn(3, tiny().layers[0].heads, 9, dtype=torch.float64)
    seen = logits[..., -(window or 9) :].exp()
    share = seen[..., -2] / seen.sum(-1) if window != 1 else torch.zeros(logits.shape[:2])
    found = previous(tiny(window=window), logits)
    assert np.allclose(found, share.mean(0).tolist())


def test_committed_rows_are_the_models_that_have_learned():
    circuits = rows("circuits")
    results = {r["name"]: r for r in HOLD.results()}
    learned = {c["name"] for c in cells([*results.values()], {}) if c["home"] >= LEARNED}
    assert circuits and {row["name"] for row in circuits} <= learned
    for row in circuits:
        recall = results[row["name"]]["measurements"][0]["recall"]
        assert (row["layer"], row["head"]) == (recall["layer"], recall["head"])
        home = [p["accuracy"] for p in recall["points"] if p["length"] == row["rows"][0]["length"]]
        assert min(home) - 0.2 <= row["rows"][0]["accuracy"] <= max(home) + 0.2
    assert json.loads(file("circuits").read_text(encoding="utf-8")) == list(circuits)
