"""
Compare receptive fields
========================

The order of two receptive fields at a practical `eps` need not be the order of their tails.
"""

# sphinx_gallery_thumbnail_path = "_static/fields-narrow.svg"
import farfield
from farfield.figures.papers import qin2024

# %%
# ALiBi's slowest head decays exponentially, Type 1 like a square. In the long run the exponential
# is lighter; at one per cent it reaches much further.

for eps in ("1/100", "1/1000", "1/10000", "1/100000"):
    alibi, type1 = (
        farfield.theoretical_receptive_field(f, eps).tokens for f in ("-n/256", "type1")
    )
    print(f"eps = {eps:<9} ALiBi 1/256: {alibi:>6}   Type 1: {type1:>6}")

# %%
# What a model trained on 512 tokens never saw, as a share of the last query's prior mass at 8192:

for name in ("alibi", "type1", "type2", "example1", "nope"):
    share = farfield.leak(name, trained=512, tested=8192)
    print(f"{name:<9} {share.value:.3g}  ({'worst head' if share.heads else 'one head'})")

# %%
# The figure of Qin et al., with everything said that the paper leaves open.

qin2024.fig6()
