"""Models people run: receptive fields, windows and perplexity by length through one interface."""

import math

import numpy as np
import pytest
import torch

from farfield.theory.answers.answer import InputError
from farfield.validation.measures.perplexity import last_token, non_overlapping
from farfield.validation.outside.audit import audit
from farfield.validation.outside.certificates import model_certificate
from farfield.validation.outside.empirical import empirical_receptive_field
from farfield.validation.outside.folder import describe
from farfield.validation.outside.loading import load

NAMES = (
    "gpt2", "opt", "gptj", "phi", "llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text",
    "gpt_oss",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_one_interface(name, outside_models, numbers, text):
    folder = describe(outside_models.folder(name))
    model, theirs = load(folder), outside_models.network(name)
    found = audit(folder, trained=32)
    widest = max((k.keys or math.inf) for k in found.layers_alike)
    assert found.sliding_window == widest and len(found.reach) == folder.layers

    gradient = empirical_receptive_field(model, numbers, length=40, segments=2, q="0.999999")
    assert 1 <= gradient.tokens <= min(40, found.reach[-1])
    rows = empirical_receptive_field(
        model, numbers, kind="attention", length=40, segments=1, rows=4, eps="1/1000"
    )
    assert rows.bounds.violations == 0
    for k, layer in enumerate(rows.heads):
        assert max(layer) <= (folder.attention[k].window or 40)

    measured = non_overlapping(model, numbers, (20, 40), blocks=3)
    ours = last_token(model, numbers, (20, 40), targets=4)
    segment = torch.from_numpy(numbers[:41].astype(np.int64))[None]
    with torch.no_grad():
        scores = theirs(segment[:, :-1]).logits[0].double().log_softmax(-1)
    nats = -scores.gather(1, segment[0, 1:, None]).mean()
    (whole,) = non_overlapping(model, numbers[:41], (40,), blocks=1)
    assert whole.nats == pytest.approx(float(nats), rel=1e-4)
    assert [m.length for m in (*measured, *ours)] == [20, 40, 20, 40]

    served = model_certificate(folder, 16, "1", sinks=2, text=text, length=40, segments=1)
    assert (served.share is None) == (widest <= 16)
    assert all(k.exceeded == 0 for k in served.layers)


def test_rows_end_with_the_table_of_positions(outside_models, numbers):
    for name in ("gpt2", "opt", "gptj"):
        with pytest.raises(InputError, match="has positions for 90 tokens, 91 are asked for"):
            empirical_receptive_field(outside_models.folder(name), numbers, length=91, segments=1)
