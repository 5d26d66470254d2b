"""The exhibits of the papers, a module a paper, and what they share: printed tables, the same
measured on our models, and the comparison of both.
"""
