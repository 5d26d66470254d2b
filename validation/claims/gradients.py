"""The gradient at every token of a row, which the reference results keep at powers of two only.

    python -m farfield.validation.claims.gradients

trains the models again (half an hour) and writes `gradients.json`, one entry a model: shares of the
gradient norm [C, 5.1] in steps of `STEP` tokens, nearest first, means over segments. The models
are jobs of the reference plan; the hash of their weights says whether they are those of the
reference results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("gradients.json")
WANTED = {
    (64, "sinusoidal"): 2,
    (64, "sandwich"): 2,
    (64, "alibi"): 2,
    (64, "rope"): 1,
    (128, "sinusoidal"): 2,
    (128, "rope"): 1,
}
"""Seeds by training length and encoding."""
LENGTH, SEGMENTS, STEP = 1024, 32, 4


@lru_cache
def gradients() -> tuple[Mapping[str, Any], ...]:
    """The models measured: `name`, `trained`, `seed`, `scale`, `same`, `shares`; none if the file
    is not there."""
    if not FILE.exists():
        return ()
    found: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return tuple(found)


def measured() -> Iterator[dict[str, Any]]:
    """Train the models, one after the other, and measure each (needs torch)."""
    import safetensors.torch

    from farfield.validation.harness.corpus import corpus, samples_of
    from farfield.validation.harness.experiment import fresh
    from farfield.validation.harness.measures.receptive_fields import gradient_shares
    from farfield.validation.harness.training import train
    from farfield.validation.reference.registration import FIRST
    from farfield.validation.reference.table import results

    text = corpus()
    known = {r["training"]["weights_sha256"] for r in results()}
    for job in FIRST.plan.jobs(text):
        chosen, seed = job.configuration.preset, job.configuration.seed
        if seed < WANTED.get((chosen.length, job.label), 0):
            model = fresh(job.configuration)
            train(model, text.train, chosen, seed)
            weights = hashlib.sha256(safetensors.torch.save(model.state_dict())).hexdigest()
            shares = gradient_shares(model, samples_of(text.held_out, SEGMENTS, LENGTH)).mean(0)
            yield {
                "name": job.label,
                "trained": chosen.length,
                "seed": seed,
                "scale": f"{chosen.name}: {chosen.layers} layers, {chosen.width} wide, "
                f"{chosen.heads} heads, trained on {chosen.length} tokens",
                "same": weights in known,
                "shares": [float(f"{s:.4g}") for s in shares.reshape(-1, STEP).sum(1)],
            }


if __name__ == "__main__":
    from farfield.validation.json_files import write

    kept: list[Mapping[str, Any]] = []
    for entry in measured():
        kept.append(entry)
        lines = ",\n".join(json.dumps(e, separators=(",", ":")) for e in kept)
        write(FILE, f"[\n{lines}\n]\n".encode())
        print(entry["name"], entry["trained"], entry["seed"], "same weights:", entry["same"])
        assert np.isclose(sum(entry["shares"]), 1, atol=1e-2)
