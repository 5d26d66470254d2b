"""Drawings of results that exist.

A figure is drawn from committed results or from a fresh run, in one house style. Without results
it is listed as missing, together with the command that makes them.  This is the only room that
imports matplotlib.

* Drawing: `style` is the look of every figure, `charts` draws lines with their names, `matrices`
  draws queries against keys.
* Verbs: `formula_plots` is `farfield plot`, `parameter_map` is `farfield map`, `answer_charts` is
  `.plot()` of an answer, `explorer` is `farfield explore`.
* Papers: `index` lists the exhibits, `papers` has the functions that draw them, `exhibit` is one
  that was drawn, `gallery` draws and writes many, `exhibit_pages` makes their pages.
* Pages: `document` makes HTML of blocks and pictures, `answer_pages` the page of a study, an audit
  or an encoding, `priors` the curves on it.
"""
