"""
Measure a model
===============

First how to train and measure a model, then the results that come with the package, which are large
enough to conclude from.
"""

# sphinx_gallery_thumbnail_path = "_static/mixture-narrow.svg"
import math
import tempfile

import farfield
from farfield.figures.gallery import draw
from farfield.validation.results import results

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
    for row in entry.measured("last token"):
        print(
            f"    {row['length']} tokens: perplexity {math.exp(row['nats']):.1f}, ratio "
            f"{row['ratio']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        )

# %%
# The results of the registered runs are one table. Here is what each fixed bias puts beyond the
# training length, in four layers, and what its model lost at 16 times that length.

table = results().filter(experiment="first", protocol="last token", mask="", length=1024, seed=0)
for row in table.filter(trained=64).drop_nulls("order").iter_rows(named=True):
    print(
        f"{row['label']:<18} {row['verdict']:<13} mass beyond {row['beyond']:.2g}   "
        f"perplexity ratio: {row['ratio']:.3f}"
    )

# %%
# Every measured figure and table of the papers is drawn from them.

draw(["sun2023.fig1"]).drawn["sun2023.fig1"]

# %%
# A table of Chi et al. measured again: how perplexity grows with the row, printed and here.

draw(["chi2023.table3-measured"]).drawn["chi2023.table3-measured"]
