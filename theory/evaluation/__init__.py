"""Values of a formula: rigorous balls, and float64 tables."""
