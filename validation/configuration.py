"""Names of `settings.configuration`, while the ledger's imports move."""

from farfield.validation.settings.configuration import CAUSAL, Visibility

__all__ = ["CAUSAL", "Visibility"]
