"""
Measure a model
===============

What was predicted, and what came true: first how to train and measure a model, then the reference
results, which are large enough to conclude from.
"""

# sphinx_gallery_thumbnail_path = "_static/mixture-narrow.svg"
import tempfile

import farfield
from farfield.figures.gallery import draw
from farfield.validation.reference.registration import FIRST
from farfield.validation.reference.table import results

# %%
# A tiny model for each of two biases, on the same text and seed. The preset is made for tests and
# takes seconds; `demo` and the larger ones are for conclusions.

store = tempfile.mkdtemp()
s = farfield.study("-2*log(1+n)", train=True, preset="tiny", baselines=["nope"], store=store)
for entry in s.entries:
    leak = entry.prediction.longest_leak
    print(
        f"{entry.prediction.name}, predicted: {leak:.1%} of a row of {s.lengths[-1]} tokens is "
        f"beyond the {s.lengths[0]} of the training"
    )
    for p in entry.measurement()["perplexity"]:
        interval = f"[{p['ratio_low']:.3f}, {p['ratio_high']:.3f}]"
        print(
            f"    {p['protocol']}, {p['length']} tokens: perplexity {p['perplexity']:.1f}, ratio "
            f"{p['ratio']:.3f} {interval}"
        )

# %%
# The reference results come with the package. Their predictions were written down before the first
# run. Here is the leak to 16 training lengths, the worst head, beside the measured loss.

registered = {(e["label"], e["length"]): e for e in FIRST.predictions["encodings"] if not e["bca"]}
for run in results():
    label, length = run["encoding"]["label"], run["preset"]["length"]
    if length != 64 or run["seed"] != 0:
        continue
    predicted = registered[label, length]
    last = [p for p in run["measurements"][0]["perplexity"] if p["protocol"] == "last token"]
    ratio = max(last, key=lambda p: p["length"])
    print(
        f"{label:<18} {predicted['verdict']:<13} leak {max(predicted['leak']['1024']):.2g}   "
        f"perplexity ratio at {ratio['length']}: {ratio['ratio']:.3f}"
    )

# %%
# Every measured figure and table of the papers is drawn from them.

draw(["sun2023.fig1"]).drawn["sun2023.fig1"]

# %%
# A table of Chi et al. measured again: the print stands below our row, and each printed number says
# whether the measurement goes the same way.

draw(["chi2023.table3-measured"]).drawn["chi2023.table3-measured"]
