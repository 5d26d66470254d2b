from farfield.figures.law import FAMILIES, SLOPES, law_curve, mixture_curve
from farfield.validation.reference.trials import trials


def test_every_trial_is_a_point():
    (axes,) = law_curve().axes
    points = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xdata()) for line in points) == len(trials())
    usual = {t.family for t in trials() if t.steps == 1000}
    longer = {f"{t.steps} steps" for t in trials() if t.steps != 1000}
    assert {line.get_label() for line in points} == usual | longer
    assert {t.family for t in trials()} <= {*FAMILIES}, "two families would look alike"


def test_more_local_heads_are_never_drawn_worse_than_none():
    (axes,) = mixture_curve().axes
    curves = [line for line in axes.lines if str(line.get_label()).startswith("slope")]
    assert len(curves) == len(SLOPES)
    for line in curves:
        assert list(line.get_xdata()) == [0, 1, 2, 4, 8]
        assert max(line.get_ydata()[1:]) < line.get_ydata()[0]
