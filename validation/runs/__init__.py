"""Runs that were made: the store, one run, many of them, and what there is."""
