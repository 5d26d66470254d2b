"""Measurements of a model folder on a text: fields, windows, certificates, losses."""
