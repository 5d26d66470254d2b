"""The figures and tables of the three papers: which there are, of what kind, and what they show.

The list imports nothing, so that it is shown at once; each paper's module draws its own.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("theory", "schematic", "published", "measured")


@dataclass(frozen=True)
class Shown:
    """A figure or table of a paper.

    Fields:
        id: `paper.figN` or `paper.tableN`.
        kind: one of `KINDS`; a table whose printed numbers stand beside ours is `published`.
        title: what it shows, in a few words.
    """

    id: str
    kind: str
    title: str

    @property
    def paper(self) -> str:
        """The key of its paper."""
        return self.id.partition(".")[0]


INDEX = {
    listed.id: listed
    for listed in (
        Shown("farfield.mixtures", "measured", "Perplexity by the number of local heads"),
        Shown("farfield.hold-and-use", "measured", "Which models hold their loss and use far keys"),
        Shown("farfield.law", "measured", "Perplexity against the order loss of the formula"),
        Shown("qin2024.fig1-left", "measured", "Perplexity of sliding and nonoverlapping windows"),
        Shown("qin2024.fig1-right", "schematic", "Sliding and nonoverlapping window inference"),
        Shown("qin2024.fig2", "theory", "Reweighting by a window and by ALiBi"),
        Shown(
            "qin2024.fig3", "measured", "Perplexity of those held to converge, and of Sinusoidal"
        ),
        Shown("qin2024.fig4", "measured", "Necessity: divergent encodings"),
        Shown("qin2024.fig5", "measured", "Attention receptive fields of trained models"),
        Shown("qin2024.fig6", "theory", "Theoretical receptive fields"),
        Shown("qin2024.fig7", "theory", "Heat maps of exp(RPE), Type 1 and Type 2"),
        Shown("qin2024.table1", "published", "Relative inference time"),
        Shown("qin2024.table1-measured", "measured", "Relative inference time, measured"),
        Shown("sun2023.fig1", "measured", "Perplexity against input length"),
        Shown("sun2023.fig2", "theory", "Expected attention of RoPE and xPos"),
        Shown("sun2023.fig3", "schematic", "Blockwise causal attention"),
        Shown("sun2023.table1", "published", "Position modelling with different capabilities"),
        Shown("sun2023.table2", "published", "Perplexity on PG22 and QMSum"),
        Shown("sun2023.table2-measured", "measured", "Perplexity on PG22 and QMSum, measured"),
        Shown("sun2023.table3", "published", "Attention resolution"),
        Shown("sun2023.table3-measured", "measured", "Attention resolution, measured"),
        Shown("sun2023.table4", "published", "Ablation of rotation and zeta"),
        Shown("sun2023.table4-measured", "measured", "Ablation of rotation and zeta, measured"),
        Shown("sun2023.table5", "published", "Ablation of blockwise causal attention"),
        Shown(
            "sun2023.table5-measured",
            "measured",
            "Ablation of blockwise causal attention, measured",
        ),
        Shown("sun2023.table6", "published", "Perplexity on arXiv and NarrativeQA"),
        Shown(
            "sun2023.table6-measured", "measured", "Perplexity on arXiv and NarrativeQA, measured"
        ),
        Shown("chi2023.fig1", "schematic", "ALiBi as an additive bias"),
        Shown("chi2023.fig2", "schematic", "Windowed attention as an additive bias"),
        Shown("chi2023.fig3", "schematic", "The last-token protocol"),
        Shown("chi2023.fig4", "measured", "Cumulative gradient, windows"),
        Shown("chi2023.fig5", "measured", "Cumulative gradient, shifted ALiBi"),
        Shown("chi2023.fig6", "measured", "Cumulative gradient, Rotary"),
        Shown("chi2023.fig7", "measured", "Cumulative gradient, Sinusoidal"),
        Shown("chi2023.fig8", "theory", "The Sandwich bias as an image"),
        Shown("chi2023.fig9", "theory", "A row of the Sandwich bias and its fit"),
        Shown("chi2023.fig10", "theory", "The Sandwich bias for three d_bar"),
        Shown("chi2023.fig11", "measured", "Cumulative gradient, logarithmic decay"),
        Shown("chi2023.fig12", "measured", "Cumulative gradient, windows, second data set"),
        Shown("chi2023.fig13", "measured", "Cumulative gradient, shifted ALiBi, second data set"),
        Shown("chi2023.table1", "published", "ALiBi shifted, with equal slopes, windows: ArXiv"),
        Shown(
            "chi2023.table1-measured",
            "measured",
            "ALiBi shifted, with equal slopes, windows: ArXiv, measured",
        ),
        Shown("chi2023.table2", "published", "Failed cases fixed by longer training"),
        Shown(
            "chi2023.table2-measured", "measured", "Failed cases fixed by longer training, measured"
        ),
        Shown("chi2023.table3", "published", "Comparison on three data sets"),
        Shown("chi2023.table3-measured", "measured", "Comparison on three data sets, measured"),
        Shown(
            "chi2023.table4", "published", "ALiBi shifted, with equal slopes, windows: OpenWebText2"
        ),
        Shown(
            "chi2023.table4-measured",
            "measured",
            "ALiBi shifted, with equal slopes, windows: OpenWebText2, measured",
        ),
        Shown("chi2023.table5", "published", "Inference with a cache window of 2048"),
        Shown(
            "chi2023.table5-measured", "measured", "Inference with a cache window of 2048, measured"
        ),
    )
}
"""All of them: what the trained models say, then the papers in order, figures before tables."""
