"""The explorer: formulas answered as they are typed, their parameters moved by sliders.

`state` holds questions and answers and knows no browser; `app` is a marimo notebook around it.
"""
