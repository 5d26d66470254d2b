"""The theory beside measurements.

A prediction of ``farfield.theory`` and ``farfield.numerics`` is put next to what a model, or a
paper's printed table, shows.  A measured number carries its sample size and spread. One that was
not measured is not shown.  torch is imported only inside the modules that train or measure
models, so that importing this package needs none.
"""
