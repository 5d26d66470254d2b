"""The theory beside measurements.

A prediction of ``farfield.theory`` and ``farfield.numerics`` is put next to a measurement of a
model, or to a printed table. A measured number carries its sample size and spread. One that was not
measured is not shown. torch is imported only inside the modules that train or measure models, so
that importing this package needs none.

* ``harness`` trains models and measures them. ``results`` is the table of all that they gave;
  ``inventory`` lists runs.
* ``models`` audits, opens and measures models of others, and runs of ours in the same way.
* ``far_field`` foresees the losses of a trained model on long rows, finds causes and mends them.
* ``forecast`` looks up the nearest trained models; ``prior`` has the numbers that compare them.
* ``study`` puts the theory of an idea beside small models. ``atlas`` has all that is known of an
  encoding. ``papers`` decides the claims of the three papers.
* ``encoding_labels``, ``json_files``, ``optional``, ``progress``, ``table_cells`` and
  ``uniform_guess`` serve the rooms above: names, files, optional libraries, progress, cells of
  tables, and the warning about a model that has not learned.
"""
