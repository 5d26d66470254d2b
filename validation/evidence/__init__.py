"""Does the theory predict? Questions to the committed reference results, with their answers.

    python -m farfield.validation.evidence summary            what they say, in sentences
    python -m farfield.validation.evidence where 2.6%         the query and the runs of a number
    python -m farfield.validation.evidence fill FILE ...      fills sentences into a page
    python -m farfield.validation.evidence answers            all of it
    python -m farfield.validation.evidence mixtures FOLDER    changes at test time, measured anew
    python -m farfield.validation.evidence circuits FOLDER    heads that find a far token, measured
    python -m farfield.validation.evidence gradients FOLDER   gradients at every token, measured

`summary` has the queries behind the numbers of the README, and `sentences.toml` every sentence.
`first_registration` has the answers that a training length allows, those on receptive fields in
`fields`. `rule_scores` scores every rule of the further registrations, the forms that compete, and
the law behind a forecast. `changes` explains why a mixture holds and how models find a far token.
`interventions` measures both.
"""
