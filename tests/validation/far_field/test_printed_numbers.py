"""Numbers that are printed beside a forecast, each computed another way."""

import re

import numpy as np
import pytest

import farfield
from farfield.validation.far_field.foresee import CLOSE, ratio_of
from farfield.validation.far_field.intervals import mean_and_half
from farfield.validation.far_field.model_on_text import Settings, subject_of

FEW = Settings(groups=2, rows=6, last=4)


@pytest.mark.parametrize("groups", [[0.1, 0.3], [0.1, 0.11, 0.12], [0.5, -0.5, 0.2]])
@pytest.mark.parametrize("side", [-1, 1])
def test_looks_agree_to_half_the_interval_and_a_little(groups, side):
    main = np.array(groups)
    mean, half = mean_and_half(main)
    for apart, agree in ((half + CLOSE - 1e-9, True), (half + CLOSE + 1e-9, False)):
        check = np.full(len(main), mean + side * apart)
        assert ratio_of(64, 4, main, check, check).agree == agree


def test_keys_and_mebibytes_of_a_change_are_those_that_it_keeps(trained, tmp_path):
    """Two numbers of 16 bits for each width, layer and key that is kept."""
    folder = trained("-n/8")
    found = farfield.mend(folder, to=128, settings=FEW, folder=tmp_path, measure=False)
    layers, width = subject_of(folder, None, None, FEW).network.depth, 32
    assert {row.keys for row in found.rows} > {128}
    for row in found.rows:
        named = [re.search(form, row.repair) for form in (r"window (\d+)", r"(\d+) first keys")]
        window, first = (int(match[1]) if match else 0 for match in named)
        assert row.keys == (window + first if window else 128)
        assert row.mib == pytest.approx(2 * 2 * layers * width * row.keys / 2**20), row.repair
