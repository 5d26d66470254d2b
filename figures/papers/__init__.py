"""Exhibits of the papers, a module a paper; what they share: printed and measured tables."""
