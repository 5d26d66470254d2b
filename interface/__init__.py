"""farfield: know how far a positional encoding can see, before you train it; then check it.

The public names, each loaded when it is first used, so that `import farfield` stays light. No
logic lives here: a name is the function of the same name in the room that holds its field.

    >>> import farfield
    >>> farfield.check_convergence("-log(1+n)").verdict.value
    'diverges'
"""

from importlib import import_module
from importlib.util import find_spec
from inspect import isfunction
from typing import Any

import lazy_loader

from farfield.theory.answers.errors import guarded
from farfield.theory.views import provide

__version__ = "0.3.0"

# The names, and where each lives, stand in __init__.pyi alone.
_load, _, __all__ = lazy_loader.attach_stub(__name__, __file__)


VERBS = {
    "audit": "models.audit",
    "check": "theory.check check_convergence",
    "claims": "pages.claims",
    "compare": "theory.compare compare_tails",
    "design": "goals.design",
    "erf": "models.erf empirical_receptive_field",
    "forecast": "theory.forecast",
    "foresee": "far.foresee",
    "lint": "theory.lint inspect_bias",
    "mend": "far.mend",
    "plot": "goals.plot",
    "reach": "theory.reach",
    "resolution": "theory.resolution attention_resolution",
    "study": "pages.study",
    "train": "training.train",
    "trf": "theory.trf receptive_fields",
    "window": "models.window certified_window",
}
"""Verbs of the command line with a public function: the verb, and the function's longer name."""

COMMANDS = {
    "atlas": "pages.atlas",
    "cite": "start.cite",
    "demo": "start.demo",
    "diff": "models.diff",
    "doctor": "start.doctor",
    "explore": "explore.cell",
    "map": "goals.map",
    "measure": "models.measure",
    "papers": "pages.papers",
    "perplexity": "models.perplexity",
    "prove": "theory.prove",
    "runs": "training.runs",
    "sweep": "training.sweep",
}
"""Verbs without a function of their own: as a function each returns what it would print."""


def __dir__() -> list[str]:
    """The public names and the verbs."""
    return sorted({*globals(), *__all__, *VERBS, *COMMANDS})


def __getattr__(name: str) -> Any:
    """A public name; a question is guarded, and known by the name that was typed."""
    if name in COMMANDS:
        globals()[name] = import_module("farfield.verbs").function(COMMANDS[name], name)
        return globals()[name]
    path, _, longer = VERBS.get(name, "").partition(" ")
    longer = longer or name
    if not (longer in __all__ or longer.startswith("_") or find_spec(f"{__name__}.{longer}")):
        from farfield.theory.answers.names import closest

        raise AttributeError(
            f"farfield has no {name!r}; {closest(name, [*__all__, *VERBS, *COMMANDS])}"
        )
    public = _load(longer)  # which leaves it here under its longer name, not guarded
    globals()[longer] = guarded(public, longer) if isfunction(public) else public
    if isfunction(public):
        globals()[longer].__module__ = __name__
    if path:
        globals()[name] = import_module("farfield.verbs").joined(public, path, name)
    return globals()[name]


def _export(name: str) -> Any:
    """A view for torch, from the room where torch is."""
    import_module("farfield.validation.optional").require_torch("a view for torch")
    return getattr(import_module("farfield.validation.harness.bias"), name)


provide("tensor", lambda: _export("bias_tensor"))
provide("score_mod", lambda: _export("score_mod"))
provide("block_mask", lambda: _export("block_mask"))
provide("plot", lambda: import_module("farfield.figures.answer_charts").curve_of)
