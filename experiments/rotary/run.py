"""Forecast a pretrained rotary model on long rows from short ones, then measure it.

    python experiments/rotary/run.py forecast FOLDER handbook=FILE kjv=FILE   # to forecasts.jsonl
    python experiments/rotary/run.py measure FOLDER handbook=FILE kjv=FILE    # to measured.jsonl
    python experiments/rotary/run.py explain FOLDER handbook=FILE kjv=FILE    # to explained.jsonl
    python experiments/rotary/run.py groups FOLDER handbook=FILE kjv=FILE     # to measured.jsonl

A line is a job with what it gave. The commands go on where they were stopped; `measure` takes the
long rows in the order of `ROWS`, so that a part of them is a result.
"""

import json
import math
import sys
import time
from functools import partial
from pathlib import Path

import torch
import transformers

from farfield.validation.far_field.gap_probe import gap_losses
from farfield.validation.far_field.long_rows import Sampling, Stages
from farfield.validation.far_field.recall import needle_row, recalled
from farfield.validation.far_field.rotary import applied, settings_of
from farfield.validation.models.folder import describe
from farfield.validation.models.network import losses, scores_at
from farfield.validation.models.opened import network_of, open_model
from farfield.validation.models.repairs import Repair, Repaired

HERE = Path(__file__).parent
TRAINED, TO, LAST = 8192, 16384, 256
FIRST, STEP = {"handbook": 100_000, "kjv": 400_000}, 20_000  # where targets end in a text
DISTANCES = (1024, 3072, 6144, 9216, 12288, 15360)
LENGTHS = (16384, 12288, 8192, 10240, 11264, 9216, 32768)
CUT, AS_IS, YARN = f"text cut to {TRAINED}", "as it is", "YaRN 2"
SETTINGS = (YARN, "Llama 3 2", "base 2", "YaRN 4", "linear 2", "dynamic 2", "base 4")
ROW = 1024  # of the far field
FAR = ("kjv", 0)  # the row that the far field is asked about
INSIDE = (4096, 8192, 9216, 10240, 11264, 12288, 14336)  # where blocks of a long row end
ROWS = (
    ("handbook", 0, AS_IS),
    ("handbook", 0, YARN),
    ("handbook", 0, CUT),
    ("kjv", 0, AS_IS),
    ("kjv", 0, YARN),
    ("kjv", 0, CUT),
    ("handbook", 0, "Llama 3 2"),
)
MORE = tuple((text, k) for k in (4, 5, 2, 6, 7, 8, 9, 3) for text in FIRST)
"""Rows with two needles near each distance, in the order they are read."""
BOTH = tuple(d + side for d in DISTANCES for side in (-192, 192))  # where their needles stand
UNTOUCHED = (("kjv", 4), ("handbook", 5), ("kjv", 2))  # of these, also the model as it is
WITH_FAR = (("handbook", 2), ("kjv", 2))  # the far field is asked too
LONGEST = 32768
GROUPED = "positions grouped by 3 from 2048 on"
IN_GROUPS = (("kjv", 2), ("handbook", 2))  # rows that are read so


class Model:
    """The model, its texts in tokens, and its settings."""

    def __init__(self, folder, files):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        opened = open_model(describe(folder))
        self.live, self.network = opened.network, network_of(opened)
        self.encode = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]
        self.texts = {
            name: torch.tensor(self.encode(Path(file).read_text())) for name, file in files.items()
        }
        self.settings = {s.name: s for s in settings_of(self.live.config, TRAINED, TO)}
        self.settings[AS_IS] = Repair()

    def row(self, text, k, length):
        """`length` tokens that end with the targets of row `k`, and the last target."""
        end = FIRST[text] + STEP * k
        return self.texts[text][end - length : end + 1]

    def needles(self, text, k, foreign=False):
        """Row `k` with needles, whose end asks for them; its first half may be that of row 9."""
        distances = BOTH if (text, k) in MORE else DISTANCES
        row = self.row(text, k, TO)
        if foreign:
            row = torch.cat([self.row(text, 9, TO)[: TO // 2], row[TO // 2 :]])
        return needle_row(self.encode, row, TO, distances, seed=k)

    def alone(self, text, rows):
        """Loss of the targets of rows after 256 to 512 tokens."""
        short = torch.stack([self.row(text, k, 512) for k in range(rows)])
        return {"loss": losses(self.network, short, LAST).mean(1).tolist()}

    def gap(self, text, rows, length):
        """Loss of the same targets, 512 tokens before them at the far end of a row."""
        each = torch.stack([self.row(text, k, 1024) for k in range(rows)])
        return {"loss": gap_losses(self.network, each, length).mean(1).tolist()}

    def recall(self, text, k, setting):
        """Needles of a row, from its blocks."""
        read = partial(scores_at, Repaired(self.network, setting))
        each = recalled(self.needles(text, k), read, setting.cut)
        return {"recall": [one._asdict() for one in each]}

    def far(self, text, k, setting, ends, clean=False):
        """The far field in one stage: loss of blocks of a row that end at places and before its
        questions, and its needles; `clean` reads the text of its far keys without needles.

        A group is the 5 rows of 1,024 tokens up to the end of the block, 4 of them at 4,096.
        """
        row, results = self.needles(text, k), {"loss": {}}
        tokens = self.row(text, k, TO) if clean else row.tokens
        begin = TO - (setting.cut or TO)
        for end in (*ends, last_of(row)):
            rows = min(5, end // ROW)
            group = tokens[end - rows * ROW : end + 1].unfold(0, ROW + 1, ROW)
            stages = Stages(self.network, group, LAST, Sampling(1024, math.inf))
            stages.plain()
            results["loss"][end] = float(stages.stage(1, [ROW, end - begin])[-1].mean())
        read = partial(stages.blocks, ends=[ROW, TO - begin])
        results["recall"] = [one._asdict() for one in recalled(row, read, setting.cut)]
        return results

    def far_longest(self, text, k):
        """The far field in one stage, of a row of 32,768 tokens without needles."""
        group = self.row(text, k, 5 * ROW).unfold(0, ROW + 1, ROW)
        stages = Stages(self.network, group, LAST, Sampling(1024, math.inf))
        stages.plain()
        return {"loss": {LONGEST: float(stages.stage(1, [ROW, LONGEST])[-1].mean())}}

    def longest(self, text, k):
        """A real row of 32,768 tokens, without needles: the loss of blocks inside it."""
        row, ends = self.row(text, k, LONGEST), (TO, 24576, LONGEST)
        nats, _ = scored(self.live, row)
        alone = [losses(self.network, row[end - 512 : end + 1][None], LAST) for end in ends]
        return {
            "loss": {end: float(nats[end - LAST : end].mean()) for end in ends},
            "alone": {end: float(x.mean()) for end, x in zip(ends, alone, strict=True)},
        }

    def real(self, text, k, setting, foreign=False):
        """A real row, in one pass: its needles, and the loss of blocks inside it.

        Beside each block stands its loss after 256 to 512 tokens, by the model as it is set.
        """
        row = self.needles(text, k, foreign)
        begin = TO - (setting.cut or TO)
        ends = [end for end in (*INSIDE, last_of(row)) if end - LAST > begin]
        nats, right = scored(self.live, row.tokens[begin:])
        return self.results(row, nats, right, ends, begin)

    def in_groups(self, text, k, setting):
        """A real row under a change that the library does not have: its needles, and the loss of
        the block before its questions."""
        row = self.needles(text, k)
        end, places = last_of(row), [p - 1 for needle in row.needles for p in needle.answer]
        kept = torch.tensor([*range(end - LAST, end), *places])
        network, at = Repaired(self.network, setting), torch.arange(TO)
        scores = scores_at(network, row.tokens[None, :-1], at, kept)[0].double().log_softmax(-1)
        targets, nats, right = row.tokens[kept + 1], torch.zeros(TO), torch.zeros(TO, dtype=bool)
        nats[kept] = -scores.gather(-1, targets[:, None])[:, 0].float()
        right[kept] = scores.argmax(-1) == targets
        return self.results(row, nats, right, [end])

    def results(self, row, nats, right, ends, begin=0):
        """The loss of blocks of a row from the nats of its targets from a place on, beside it that
        of the same block alone, and the needles."""
        results = {"loss": {}, "alone": {}, "recall": []}
        for end in ends:
            short = row.tokens[end - 512 : end + 1][None]
            alone = losses(self.network, short, LAST)
            results["loss"][end] = float(nats[end - begin - LAST : end - begin].mean())
            results["alone"][end] = float(alone.mean())
        for needle in row.needles:
            at = slice(needle.answer.start - begin - 1, needle.answer.stop - begin - 1)
            said = {"log_probability": -float(nats[at].sum()), "right": bool(right[at].all())}
            results["recall"].append({"kind": needle.kind, "distance": needle.distance, **said})
        return results


def last_of(row):
    """Where the last block of a row ends, before its questions."""
    return min(needle.answer.start for needle in row.needles) - 64


@torch.no_grad()
def scored(network, tokens):
    """Nats of each target of one row, and whether it is the likeliest token."""
    hidden = network.model(tokens[None, :-1], use_cache=False).last_hidden_state[0]
    nats, right = [], []
    for part, targets in zip(hidden.split(512), tokens[1:].split(512), strict=True):
        scores = network.lm_head(part).log_softmax(-1)
        nats.append(-scores.gather(-1, targets[:, None])[:, 0])
        right.append(scores.argmax(-1) == targets)
    return torch.cat(nats), torch.cat(right)


def forecasts(model):
    """Jobs of the forecast: a key, the setting, and what it does."""
    settings = model.settings
    for text, k, name in ROWS:
        yield ("needles", text, k, name), name, partial(model.recall, text, k, settings[name])
    for text in FIRST:
        yield ("alone", text), AS_IS, partial(model.alone, text, 2)
        for length in LENGTHS:
            yield ("gap", text, AS_IS, length), AS_IS, partial(model.gap, text, 2, length)
        for name in SETTINGS:
            yield ("gap", text, name, TO), name, partial(model.gap, text, 2, TO)
        yield ("gap", text, YARN, TRAINED), YARN, partial(model.gap, text, 2, TRAINED)
        yield ("alone", text, YARN), YARN, partial(model.alone, text, 2)
    for name, ends in ((YARN, ()), (CUT, ()), (AS_IS, (8192,))):
        yield ("far", *FAR, name), name, partial(model.far, *FAR, settings[name], ends)
    for text, k in MORE:
        for name in settings_read(text, k):
            yield ("needles", text, k, name), name, partial(model.recall, text, k, settings[name])
    for text in FIRST:
        yield ("far", text, 0, AS_IS, LONGEST), AS_IS, partial(model.far_longest, text, 0)
    for text, k in IN_GROUPS:
        yield (
            ("needles", text, k, GROUPED),
            GROUPED,
            partial(model.recall, text, k, settings[GROUPED]),
        )
    for text, k in WITH_FAR:
        yield ("far", text, k, YARN), YARN, partial(model.far, text, k, settings[YARN], ())
    text, k, ends = *UNTOUCHED[-1], (4096, 8192)
    yield ("far", text, k, AS_IS), AS_IS, partial(model.far, text, k, settings[AS_IS], ends)


def settings_read(text, k):
    """The settings in which a row with twelve needles is read."""
    return (YARN, CUT, AS_IS) if (text, k) in UNTOUCHED else (YARN, CUT)


def measurements(model):
    """Jobs of the measurement."""
    for text, k, name in ROWS:
        yield ("real", text, k, name), name, partial(model.real, text, k, model.settings[name])
    for position, (text, k) in enumerate(MORE):
        for name in settings_read(text, k):
            yield ("real", text, k, name), name, partial(model.real, text, k, model.settings[name])
        if position in (3, 9):
            text = tuple(FIRST)[position == 9]
            yield ("real", text, 0, AS_IS, LONGEST), AS_IS, partial(model.longest, text, 0)


def groups(model):
    """Jobs that read real rows with positions in groups."""
    for text, k in IN_GROUPS:
        yield (
            ("real", text, k, GROUPED),
            GROUPED,
            partial(model.in_groups, text, k, model.settings[GROUPED]),
        )


def explanations(model):
    """Jobs that ask why a forecast erred."""
    yarn = model.settings[YARN]
    for text in FIRST:
        yield ("foreign", text, 0, YARN), YARN, partial(model.real, text, 0, yarn, True)
    yield ("far", "handbook", 0, YARN), YARN, partial(model.far, "handbook", 0, yarn, ())
    for text, k in (*WITH_FAR, FAR):
        yield ("clean", text, k, YARN), YARN, partial(model.far, text, k, yarn, (), True)


def main(task, folder, *files):
    """Run the jobs of a task that have no line yet."""
    name, made = {
        "forecast": ("forecasts.jsonl", forecasts),
        "measure": ("measured.jsonl", measurements),
        "explain": ("explained.jsonl", explanations),
        "groups": ("measured.jsonl", groups),
    }[task]
    place = HERE / name
    lines = place.read_text().splitlines() if place.exists() else []
    done = {tuple(json.loads(line)["job"]) for line in lines}
    model = Model(folder, dict(file.split("=", 1) for file in files))
    for key, name, work in made(model):
        if key in done:
            continue
        begun = time.process_time()
        with applied(model.live, model.settings[name]):
            result = work()
        line = {"job": key, "cpu": round(time.process_time() - begun, 1), **result}
        with place.open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
