"""Findings: the sentences of the README and of the documentation about trained models, as records.

`records.toml` has a record a sentence: the question, the answer, how many cases or models, the
interval and of what it is, the null by name, the file, and what was decided after measuring.
`measures` counts the numbers again from the committed files. `page_rows` puts both together and
holds the rows of the pages against them:

    python -m farfield.validation.findings ROOT
"""
