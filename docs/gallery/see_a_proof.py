"""
See a proof
===========

An answer shows itself: its sentence, its formula, the proof folded to the step that decides, and
the ladder that the proof climbs.
"""

# sphinx_gallery_thumbnail_path = "_static/ladder.svg"
import farfield

# %%
# The first rung decides: a limit above 1 converges.

farfield.check_convergence("-2*log(1+n)")

# %%
# On the border the first limit is exactly 1, a tie, and the next rung decides.

farfield.check_convergence("-log(1+n) - 2*log(log(n+3))")

# %%
# With a parameter the answer is a condition; at a value it is a verdict.

family = farfield.check_convergence("-r*log(1+n)")
print(family.condition, family.at(r="9/8"), family.at(r=1))

# %%
# What the explorer shows of it, without a browser: the blocks of its answers at r = 3/2.

from farfield.figures.explorer import state  # noqa: E402


class Shown:
    """A part of the explorer, as a cell of a notebook shows it."""

    def __init__(self, *items):
        self.items = items

    def _repr_html_(self):
        return state.html(self.items)


question = state.read("-r*log(1+n)")
at = state.values_of({"r": 1.5})
Shown(*state.answers_to(question, family, at))
