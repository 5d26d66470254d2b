"""What farfield says of the registered rows before they are read, by its gap probe."""

from functools import partial
from pathlib import Path

import torch

from farfield.validation.far_field.gap_probe import gap_losses
from farfield.validation.far_field.recall import Needle, NeedleRow, recalled
from farfield.validation.far_field.rotary import applied, settings_of
from farfield.validation.models.folder import describe
from farfield.validation.models.network import scores_at
from farfield.validation.models.opened import network_of, open_model
from farfield.validation.models.repairs import Repair, Repaired

TRAINED, TO, BLOCK = 8192, 16384, 512
EXTEND = "Self-Extend, groups of 3 from 2046"
RECALL = ("text cut to 8192", EXTEND, "YaRN 2")
LOSS = ("none", *RECALL, "base 2", "dynamic 2", "Llama 3 2", "linear 2", "YaRN 4", "base 4")
TEXTS = ("jargon", "perl")
ASKED = [
    *((text, 0, name, "loss") for name in LOSS for text in TEXTS),
    *((text, k, name, "needles") for k in (0, 1) for text in TEXTS for name in RECALL),
]


def said(path, texts, todo):
    """A line for each job."""
    opened = open_model(describe(Path(path)))
    network = network_of(opened)
    settings = {s.name: s for s in settings_of(opened.network.config, TRAINED, TO)}
    settings |= {"none": Repair(), EXTEND: Repair(group=(3, 2046))}
    for job in todo:
        text, k, name, what = job
        (tokens, kept), setting = texts[text][k], settings[name]
        with applied(opened.network, setting), torch.no_grad():
            changed = Repaired(network, setting)
            if what == "loss":
                end = kept["questions"] - 16
                row = tokens[end - 1024 : end + 1][None]
                costs = gap_losses(changed, row, setting.cut or TO)
                yield job, {"loss": round(float(costs.mean()), 5)}
            else:
                needles = [
                    Needle(n["form"], n["distance"], range(*n["answer"])) for n in kept["needles"]
                ]
                row = NeedleRow(tokens, tuple(needles), BLOCK)
                each = recalled(row, partial(scores_at, changed), setting.cut)
                yield job, {"needles": [[round(s.log_probability, 4), s.right] for s in each]}
