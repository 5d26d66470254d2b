"""Transseries: how a function of the distance behaves as n -> oo, exactly."""
