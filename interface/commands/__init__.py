"""The verbs, a module a group. A verb reads its options, asks one function, and emits the answer.

Heavy imports are inside the verbs: a usage error or a list loads neither SymPy nor torch.
"""
