"""Does the theory predict? Questions put to the committed reference results, and their answers.

    python -m farfield.validation.evidence summary            what they say, in sentences
    python -m farfield.validation.evidence where 2.6%         the query and the runs of a number
    python -m farfield.validation.evidence fill FILE ...      fills sentences into a page
    python -m farfield.validation.evidence answers            all of it
    python -m farfield.validation.evidence mixtures FOLDER    changes at test time, measured anew
    python -m farfield.validation.evidence circuits FOLDER    heads that find a far token, measured

`summary` has the queries behind the numbers of the README, and `sentences.toml` every sentence.
`questions` has the answers that a training length allows, with a module for each group: `losses`,
`referee`, `fields`, `depth`, `statements`. `judged` scores every rule of the further registrations
and the law behind a forecast. `mixtures` asks trained models why a mixture holds, `circuits` how
they find a far token.
"""
