"""Drawings of results that exist.

A figure is drawn from committed results or from a fresh run, in one house style. Without results
it is listed as missing, together with the command that makes them.  This is the only room that
imports matplotlib.
"""
