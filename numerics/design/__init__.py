"""From a goal to an encoding: the parameters of a family that meet targets.

`targets` says what may be asked for, a record each: a later quantity is one more record. `family`
reads the formula with its free parameter. `order` proves in which direction the parameter moves the
tails. `line` then encloses both ends of the exact interval; else it certifies the parameters that
it shows. `solve` asks for one head, for several, for several families; `designs` is the answer.
"""
