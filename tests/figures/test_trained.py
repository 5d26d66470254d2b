"""What the trained models say: every committed trial is drawn, and captions are computed."""

from farfield.figures.trained import SLOPES, hold_and_use, law, mixtures
from farfield.validation.reference.hold import both
from farfield.validation.reference.known_cases import trials


def test_every_trial_is_a_point():
    drawing = law()
    whole, _ = drawing.figure.axes
    points = [line for line in whole.lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xdata()) for line in points) == len(trials()) == len(drawing.data.rows)


def test_more_local_heads_are_never_drawn_worse_than_none():
    drawing = mixtures()
    (axes,) = drawing.figure.axes
    curves = [line for line in axes.lines if str(line.get_label()).startswith("slope")]
    assert len(curves) == len(SLOPES)
    for line in curves:
        assert list(line.get_xdata()) == [0, 1, 2, 4, 8]
        assert max(line.get_ydata()[1:]) < line.get_ydata()[0]
    ratio = {row[:2]: row[2] for row in drawing.data.rows}
    assert f"from {ratio['1/4', 0]:.2f} to {ratio['1/4', 1]:.2f}" in drawing.caption


def test_a_mechanism_that_did_not_learn_is_hollow_and_counts_nothing():
    found, drawing = both(), hold_and_use()
    points = [
        line for axes in drawing.figure.axes for line in axes.lines if line.get_marker() == "o"
    ]
    hollow = [line for line in points if line.get_fillstyle() == "none"]
    drawn = [b for b in found if b.ratio is not None]
    assert len(points) == len(drawn)
    assert len(hollow) == sum(not b.learned for b in drawn) > 0
    assert all(b.label in drawing.made for b in found if b.learned == (b.ratio is None))
    well = [b for b in found if b.learned and b.used >= 0.5]
    assert drawing.caption.startswith(f"{len(well)} of the {sum(b.learned for b in found)} ")


def test_language_models_join_the_tasks_by_their_biases():
    known = {b.label: b for b in both()}
    ratios = {t["name"]: t["loss"] for t in trials()}
    for label, name in (("no bias", "nope"), ("1 head 1/4", "1 head 1/4"), ("ALiBi", "alibi")):
        assert known[label].ratio is not None
        assert abs(known[label].ratio - 2.718281828 ** ratios[name]) < 0.05
    assert known["local, then free"].ratio is None, "no language model has these layers"
