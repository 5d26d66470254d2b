"""Windows: how many keys are provably enough, and where no number of them is.

One argument carries everything: keep some keys of a row, drop the others; the output moves by the
mass of the dropped keys, `O/(O + I)`, times the distance of two means of values, at most `2 V`.
What differs is how `O` and `I` are bounded:

    window        additive biases p(n): by the tail and the sum of the exp-series, with kept sinks;
                  bounded logits, logits that grow with the row, gates, stick breaking
    row_bound     at run time, of any softmax mechanism: by the log-sum-exp and one running norm
    sampled_rows  the same with a sample of the dropped keys, with probability 1 - delta

`question` has the classes of a question and its answer. Without any
bound, on average, the leak bounds the outside mass from below (theorem average-leak; `leak`).
One head, one layer, exact arithmetic, before the output projection.
"""
