"""The far field: what a trained model does on long rows, from short ones.

A row of `N` tokens is replaced by its last `T` tokens, the row before, the first row of the text,
and a sample of the network's own keys and values, each standing for many positions (`long_rows`).
No row longer than `T` passes the network. `models.network` says what is asked of a model: layers
one by one, with queries and keys at positions of one's own choice. `models.repairs` are changes at
inference.

    foresee     what longer rows cost: `long_rows`, `gap_probe`, `blame`, `worth`, `intervals`
    mend        which change helps: `cost`, `halving`, `readings`, `recall`, `change_scores`,
                `rotary`
    apply       that change on a live model
"""
