"""farfield: know how far a positional encoding can see, before you train it; then check it.

The public names, each loaded when it is first used, so that `import farfield` stays light. No
logic lives here: a name is the function of the same name in the room that holds its field.

    >>> import farfield
    >>> farfield.check_convergence("-log(1+n)").verdict.value
    'diverges'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from farfield.theory.views import provide

__version__ = "0.1.0"

if TYPE_CHECKING:
    from farfield.numerics.comparison import compare_tails
    from farfield.numerics.depth import layered_receptive_field
    from farfield.numerics.horizon import dtype_horizon
    from farfield.numerics.leak import leak
    from farfield.numerics.receptive_field import theoretical_receptive_field
    from farfield.numerics.resolution import attention_resolution
    from farfield.numerics.window import certified_window, window_error
    from farfield.theory.convergence import Convergence, Verdict, check_convergence
    from farfield.theory.encodings import Encoding, encoding, encodings
    from farfield.theory.results import InputError
    from farfield.validation.claims import claims
    from farfield.validation.outside.empirical import empirical_receptive_field
    from farfield.validation.study.study import Study, study

_HOME = {
    "Convergence": "theory.convergence",
    "Encoding": "theory.encodings",
    "InputError": "theory.results",
    "Study": "validation.study",
    "Verdict": "theory.convergence",
    "attention_resolution": "numerics.resolution",
    "certified_window": "numerics.window",
    "check_convergence": "theory.convergence",
    "compare_tails": "numerics.comparison",
    "claims": "validation.claims",
    "dtype_horizon": "numerics.horizon",
    "empirical_receptive_field": "validation.empirical",
    "encoding": "theory.encodings",
    "encodings": "theory.encodings",
    "layered_receptive_field": "numerics.depth",
    "leak": "numerics.leak",
    "study": "validation.study",
    "theoretical_receptive_field": "numerics.receptive_field",
    "window_error": "numerics.window",
}

__all__ = [
    "Convergence",
    "Encoding",
    "InputError",
    "Study",
    "Verdict",
    "attention_resolution",
    "certified_window",
    "check_convergence",
    "claims",
    "compare_tails",
    "dtype_horizon",
    "empirical_receptive_field",
    "encoding",
    "encodings",
    "layered_receptive_field",
    "leak",
    "study",
    "theoretical_receptive_field",
    "window_error",
]


def _export(name: str) -> Any:
    """A view for torch, from the room where torch is."""
    try:
        return getattr(import_module("farfield.validation.models.exports"), name)
    except ImportError:
        error = import_module("farfield.theory.answers.answer").InputError
        raise error(
            "a view for torch needs torch, which is not installed; install it with "
            "pip install 'farfield[train]'"
        ) from None


provide("tensor", lambda: _export("bias_tensor"))
provide("score_mod", lambda: _export("score_mod"))
provide("block_mask", lambda: _export("block_mask"))


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'farfield' has no attribute {name!r}")
    value = getattr(import_module(f"farfield.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
