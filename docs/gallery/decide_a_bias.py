"""
Decide a bias
=============

Is a new bias windowable? Read the formula, decide its series, look at the proof, and find where it
stands among the known ones.
"""

# sphinx_gallery_thumbnail_path = "_static/idea.svg"
import farfield

# %%
# A logarithm to the power 3/2 falls faster than every power law. The proof is part of the answer.

farfield.check_convergence("-log(1+n)**(3/2)")

# %%
# One power less and the series sits on the border, where the next logarithm decides.

farfield.check_convergence("-log(1+n) - r*log(log(n+3))")

# %%
# How many of the nearest keys hold all but a share `eps`? Exact integers, whatever their size.

for eps in ("1/10", "1/100", "1/1000"):
    print(farfield.theoretical_receptive_field("-2*log(1+n)", eps))

# %%
# Among one reference head of each additive encoding, those that need the fewest keys first:

print(farfield.study("-log(1+n)**(3/2)").place)
