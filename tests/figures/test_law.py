from farfield.figures.law import law_curve
from farfield.validation.reference.trials import trials


def test_every_trial_is_a_point():
    (axes,) = law_curve().axes
    points = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xdata()) for line in points) == len(trials())
    assert {line.get_label() for line in points} == {t.family for t in trials()}
