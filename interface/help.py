"""The help: examples first, a verb's own options next, those of every verb folded away.

`--help` shows every verb, or the options of one; `--help-all` those that many verbs share too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts.help import DefaultFormatter

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

FOLDED = ("The formula", "The answer")
"""Titles of the options that many verbs share."""

EXAMPLES = {
    "": (
        "demo                   three small models beside theory",
        'study "-2*log(1+n)"    everything about one bias',
        "audit MODEL_FOLDER     a model of your own, layer by layer",
        "help study             examples and options of a verb",
    ),
    "demo": ("demo", 'demo "-log(1+n)^(3/2)" --no-open', "demo kerple_log --set r1=2 --set r2=1"),
    "study": (
        'study "-2*log(1+n)"',
        'study "-2*log(1+n)" --trained 4k --tested 32k,128k --page',
        'study "-log(1+n)^2" --train --preset tiny',
    ),
    "explore": ("explore", 'explore "-r*log(1+n)"'),
    "check": ('check "-log(1+n)"', 'check "-r*log(1+n)" --assume r=real', "check alibi --head 3"),
    "trf": (
        'trf "-2*log(1+n)"',
        'trf "-2*log(1+n)" --eps 1% --length 4k',
        'trf "-m*n" --set m=1/8 --trained 2k --tested 32k',
    ),
    "reach": (
        'reach "-2*log(1+n)" --advantage 7',
        'reach "-log(1+n)" --distance 50k --length 100k',
    ),
    "window": (
        'window "-n/2" --error 1% --logit-bound 1',
        "window --model MODEL_FOLDER --text FILE --loss 1%",
    ),
    "compare": ('compare "-log(1+n)^2" "-2*log(1+n)"', "compare alibi sandwich --head 1"),
    "resolution": ('resolution "-2*log(1+n)"', 'resolution "-n/8" --length 1k'),
    "lint": ("lint model.py:bias", "lint model.py:score_mod --out bias.svg"),
    "forecast": (
        'forecast "-2*log(1+n)" --trained 64 --tested 1k',
        'forecast "[-n/4; 0 x7]" --trained 64 --tested 1k',
    ),
    "design": (
        'design "-a*log(1+n)" --trf 512 --eps 1%',
        'design "-a*n" --leak 1% --trained 2k --tested 8k',
    ),
    "plot": ('plot alibi "-2*log(1+n)"', 'plot "-n/8" "-n/64" --what trf --out fields.pdf'),
    "map": ('map "-a*n" --a 0.01:1', 'map "-a*n^b" --a 0.1:3 --b 0.1:1'),
    "atlas": ("atlas", "atlas alibi", "atlas kerple_log --page"),
    "papers": (
        "papers                 what holds, by paper and section",
        "papers qin2024.eq13    one sentence, with its evidence",
        "papers qin2024.fig6    a figure, drawn again",
        "papers window-error    a theorem; papers theorems lists them",
    ),
    "claims": ("claims", "claims qin2024", "claims qin2024.eq13", "claims --verdict wrong"),
    "figures": (
        "figures",
        "figures --list",
        "figures qin2024.fig6 --set eps=1/500 length=4096 --format pdf",
    ),
    "cite": ("cite", "cite alibi kerple-log"),
    "doctor": ("doctor", "doctor --json"),
    "audit": ("audit MODEL_FOLDER", "audit config.json --trained 2k --length 8k"),
    "measure": (
        "measure MODEL_FOLDER --text FILE",
        "measure MODEL_FOLDER --text FILE --context 256 --context 1k",
    ),
    "erf": ("erf MODEL_FOLDER --text FILE", "erf MODEL_FOLDER --kind attention"),
    "perplexity": ("perplexity MODEL_FOLDER --text FILE --length 256 --length 1k",),
    "foresee": ("foresee MODEL_FOLDER --to 64k", "foresee MODEL_FOLDER --to 64k --blame"),
    "mend": ("mend MODEL_FOLDER --to 64k", "mend MODEL_FOLDER --to 64k --measure"),
    "train": (
        'train "-2*log(1+n)" --preset tiny',
        "train alibi FILE.py:Class --preset tiny",
        "train alibi nope --text FILE --length 128 --tested 128,1k",
    ),
    "sweep": ("sweep plan.toml --runs runs", "sweep plan.toml --engine ray --address auto"),
    "runs": ("runs", "runs --csv"),
    "completion": ("completion zsh",),
}
"""What to type, by verb."""


class Help(DefaultFormatter):
    """Writes the help of one verb, or of the command line for the verb `""`."""

    def __init__(self, verb: str, whole: bool) -> None:
        super().__init__()
        self.verb, self.whole = verb, whole

    def render_description(
        self, console: Console, options: ConsoleOptions, description: Any
    ) -> None:
        """What the verb answers, and its examples."""
        super().render_description(console, options, description)
        for line in EXAMPLES[self.verb]:
            console.print(f"    farfield {line}", highlight=False, markup=False)
        console.print()

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """A box of arguments, options or verbs; folded ones in a line."""
        title = str(panel.title)
        if title not in FOLDED or self.whole:
            super().__call__(console, options, panel)
        elif panel.entries:
            names = ", ".join(entry.names[0] for entry in panel.entries)
            console.print(f"{title}, with --help-all: {names}", highlight=False)
