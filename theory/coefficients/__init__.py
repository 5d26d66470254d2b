"""The coefficients of transseries: exact numbers, parameters, oscillations; their signs."""
