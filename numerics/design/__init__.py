"""From a goal to an encoding: the parameters of a family that meet targets.

`targets` says what may be asked for, a record each: a later quantity is one more record. `order`
proves in which direction a parameter moves the tails; then `region` encloses both ends of the exact
interval, else `sampled` certifies the parameters it shows. `search` asks for one head, for several,
for several families; `answer` is what it returns.
"""
