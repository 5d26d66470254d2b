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


GROUPS = {
    "Start here": ("start.demo", "pages.study", "explore.explore"),
    "Decide and certify": (
        "theory.check",
        "theory.trf",
        "theory.reach",
        "models.window",
        "theory.compare",
        "theory.resolution",
        "theory.lint",
        "theory.forecast",
    ),
    "From a goal": ("goals.design", "goals.plot", "goals.map"),
    "Look up": (
        "pages.atlas",
        "pages.papers",
        "pages.claims",
        "pages.figures",
        "start.cite",
        "start.doctor",
    ),
    "Models": (
        "models.audit",
        "models.measure",
        "models.erf",
        "models.perplexity",
        "far.foresee",
        "far.mend",
    ),
    "Train": ("training.train", "training.sweep", "training.runs"),
    "Shell": ("cli.completion",),
}
"""The verbs, each by its module in `farfield.commands`."""

LONGER = {
    "check": "check_convergence",
    "trf": "receptive_fields",
    "compare": "compare_tails",
    "resolution": "attention_resolution",
    "window": "certified_window",
    "lint": "inspect_bias",
    "erf": "empirical_receptive_field",
}
"""Verbs whose public function has a longer name; each is a name of it too."""

_PATHS = {path.partition(".")[2]: path for part in GROUPS.values() for path in part}
VERBS = {**_PATHS, "explore": "explore.cell"}
"""The verbs that are functions. `completion` is for a shell, and `figures` is the room."""
del VERBS["completion"], VERBS["figures"]


def __dir__() -> list[str]:
    """The public names and the verbs."""
    return sorted({*__all__, *VERBS, "__version__"})


def __getattr__(name: str) -> Any:
    """A public name, or a verb; a question is guarded, and known by the name that was typed."""
    longer = LONGER.get(name, name)
    if name in VERBS and longer not in __all__:
        globals()[name] = import_module("farfield.verbs").function(VERBS[name], name)
        return globals()[name]
    if longer not in __all__:
        if not name.startswith("_") and find_spec(f"{__name__}.{name}"):
            return import_module(f"{__name__}.{name}")
        from farfield.theory.answers.names import closest

        raise AttributeError(f"farfield has no {name!r}; {closest(name, [*__all__, *VERBS])}")
    try:
        public = _load(longer)  # which leaves it here under its longer name, not guarded
    except ModuleNotFoundError as missing:
        extra = {"torch": "train", "transformers": "hf"}.get(missing.name or "")
        if extra is not None:
            import_module("farfield.validation.optional").require(missing.name, name, extra)
        raise
    globals()[longer] = guarded(public, longer) if isfunction(public) else public
    if isfunction(public):
        globals()[longer].__module__ = __name__
    if name in VERBS:
        globals()[name] = import_module("farfield.verbs").joined(public, VERBS[name], name)
    return globals()[name]


def _export(name: str) -> Any:
    """A view for torch, from the room where torch is."""
    import_module("farfield.validation.optional").require_torch("a view for torch")
    return getattr(import_module("farfield.validation.harness.bias"), name)


provide("tensor", lambda: _export("bias_tensor"))
provide("score_mod", lambda: _export("score_mod"))
provide("block_mask", lambda: _export("block_mask"))
provide("plot", lambda: import_module("farfield.figures.answer_charts").curve_of)
