"""How long some rows take counts what is read."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from farfield.validation.models import speed
from farfield.validation.models.perplexities import PROTOCOLS, _passes, model_perplexity

SHORT, LONG, ROWS = 32, 128, 6


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_rows_that_are_counted_are_read(protocol, counted, words):
    model, passed = counted
    how = {"text": words, "protocol": protocol, "samples": ROWS, "bos": "no"}
    if protocol == "lm-eval":
        how["bos"] = "yes"
        model.config.bos_token_id = 1
    model_perplexity(model, [SHORT, LONG], **how)
    read = sum(n * _passes(protocol, ROWS, LONG, n) for n in (SHORT, LONG))
    assert passed[0] == pytest.approx(read, rel=0.12)


def test_seconds_are_those_of_all_rows(monkeypatch):
    work = speed.Work(10, 4, 2, 8, 0.25)
    monkeypatch.setattr(speed, "timed", lambda outline, live, read, tokens: work)
    said, opened = [], SimpleNamespace(model=None, network=None)

    def report(stage, done, total, note=""):
        said.append((stage, done, total))

    speed.foretell(opened, np.zeros(100), [(3, 64), (0.5, 32)], "rows", report)
    seconds = 3 * (20 * 64 + 16 * 64**2 / 2) / 4 + 0.5 * (20 * 32 + 16 * 32**2 / 2) / 4
    assert said == [(f"about {speed.lasting(seconds)}: rows", 0, 0)]
    speed.foretell(opened, np.zeros(20), [(3, 64)], "rows", report)
    assert len(said) == 1  # the text is refused by who reads it


def test_the_time_of_an_operation_is_that_of_a_row_over_its_operations(monkeypatch):
    clock, read = iter((5.0, 7.0)), []
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    layer = SimpleNamespace(attends=True, heads=2, rotation=None)
    outline = SimpleNamespace(layers=[layer], width=8)
    live = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 3, bias=False))
    work = speed.timed(outline, live, read.append, 32)
    assert (work.seconds, read) == (2.0 / replace(work, seconds=1).of(32, 32**2 / 2), [16, 32])
