"""Measurements of a model, and statistics of repeated ones."""
