"""
Measure a model
===============

A tiny model for each of two biases, on the same text and seed: what was predicted, and what came
true. The preset is made for tests; `demo` and the larger ones are for conclusions.
"""

import tempfile

import farfield

store = tempfile.mkdtemp()
s = farfield.study("-2*log(1+n)", train=True, preset="tiny", baselines=["nope"], store=store)

# %%
# Predictions come before any training; the leak is certified.

for entry in s.entries:
    print(entry.prediction.name, entry.prediction.longest_leak)

# %%
# Measurements of the trained models, with what kind of perplexity each is.

for entry in s.entries:
    for p in entry.measurement()["perplexity"]:
        print(f"{entry.prediction.name:<12} {p['protocol']:<16} {p['length']:>4} tokens: "
              f"{p['perplexity']:.1f}")  # fmt: skip

# %%
# What came true, in words computed from the numbers.

from farfield.validation.study import findings  # noqa: E402

for finding in findings(s):
    print(f"* {finding.sentence} [{finding.label}]")
