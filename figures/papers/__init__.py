"""The exhibits of the papers, a module a paper."""
