"""A name of `settings.visibility`, while the imports of the ledger move."""

from farfield.validation.settings.visibility import Visibility

__all__ = ["Visibility"]
