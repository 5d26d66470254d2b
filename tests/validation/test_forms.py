import math

import numpy as np
import pytest

from farfield.theory.encodings import encoding
from farfield.validation.forms import FORMS
from farfield.validation.rules import Case, case

MENDED = FORMS["mended"].given([])
n = np.arange(1024.0)


def made(*heads, **options):
    return Case(np.stack(heads), 64, 1024, 4, True, **options)


def free(count):
    return count * [0 * n]


def test_the_mended_form_is_one_of_the_kernel_and_not_of_its_spelling():
    hidden, steep = np.where(n < 32, 0, -np.inf), np.where(n < 32, 0, -1000.0)
    assert MENDED(made(hidden)) == pytest.approx(MENDED(made(steep)), rel=1e-9)
    alone = np.where(n < 1, 0, -np.inf)
    for itself in (-50 * n, -1000 * n):
        assert MENDED(made(itself, *free(7))) == pytest.approx(MENDED(made(alone, *free(7))))


@pytest.mark.parametrize("bias", [np.where(n < 32, 0, -np.inf), -50 * n, -n / 4])
def test_a_small_change_of_the_bias_is_a_small_change_of_the_mended_form(bias):
    before = MENDED(made(bias, *free(7)))
    for size in (1e-3, 1e-6):
        after = MENDED(made(bias - size * n / 1024, *free(7)))
        assert abs(after - before) < 60 * size


def test_the_mended_form_on_what_was_seen_when_it_was_chosen():
    for heads, measured, off in (
        ((-50 * n, *free(7)), 0.477, 0.11),
        ((-n / 4, *free(7)), 0.021, 0.01),
        ((-3 * n / 2, *free(7)), 0.043, 0.01),
        ((np.where(n < 32, -n / 1000, -np.inf),), 0.133, 0.08),
    ):
        assert abs(MENDED(made(*heads)) - measured) < off


def test_forms_with_a_term_agree_where_it_is_at_home():
    usual = made(-n / 32)
    said = {name: form.given([]) for name, form in FORMS.items() if name[0] not in "cn"}
    assert said["law"](usual) == pytest.approx(said["absolute"](usual)) == said["depth"](usual)
    for name in ("absolute", "times steps", "steps by leak", "steps by reach"):
        assert said[f"mended, {name}"](usual) == pytest.approx(MENDED(usual))
    longer = made(-n / 32, steps=4000)
    assert said["mended, times steps"](longer) == pytest.approx(4 * MENDED(usual))
    for name in ("leak", "reach"):
        assert said[f"mended, steps by {name}"](longer) == pytest.approx(0.85, abs=0.03)


def test_the_nearest_and_the_constant_look_at_what_was_seen():
    local, none = made(-n / 4), made(0 * n)
    known = [(local, 0.0), (none, 0.5)]
    assert FORMS["constant"].given(known)(local) == 0.25
    nearest = FORMS["nearest"].given(known)
    assert nearest(made(-n / 3)) == 0.0 and nearest(made(-n / 1000)) == 0.5


def test_no_form_answers_with_anything_but_a_number():
    known = [(made(-n / 4), 0.0)]
    subjects = [encoding("alibi"), encoding("window", w=32), encoding(["-n/4", "0"])]
    for found in subjects:
        for form in FORMS.values():
            assert math.isfinite(form.given(known)(case(found, 64, 1024, 4, steps=4000)))
