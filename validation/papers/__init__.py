"""The three papers: the numbers they print, and their claims as functions that decide them.

`tables` holds the printed numbers. Each paper has a module, in which a claim is a function over
printed tables, results of runs, formulas and answers of this library; `claim` says what it returns.
`ledger` decides all of them. `words` says how the papers' words are read.
"""
