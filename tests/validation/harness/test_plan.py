import dataclasses
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.configuration import key
from farfield.validation.harness.corpus import Corpus
from farfield.validation.harness.plan import parse_plan, read_plan
from farfield.validation.harness.presets import PRESETS, preset, resized

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def fixed():
    """A corpus that is the same everywhere and for ever."""
    text = (np.arange(40_000) * 7919 % 251).astype(np.uint8)
    return Corpus("numbers", text[:20_000], text[20_000:], 1, "two halves")


def sweep(**given):
    return {"sweep": [{"encodings": ["alibi"], **given}]}


def test_jobs_are_the_product_in_the_order_of_the_file(fixed):
    plan = parse_plan(
        {
            "title": "T",
            "sweep": [
                {
                    "encodings": ["alibi", {"name": "-2*log(1+n)", "label": "double log"}],
                    "seeds": [3, 1],
                    "lengths": [16, 32],
                    "presets": ["tiny", "demo"],
                    "multiples": [2, 1],
                    "far": 5,
                }
            ],
        }
    )
    jobs = plan.jobs(fixed)
    assert plan.title == "T" and len({job.key for job in jobs}) == len(jobs) == 16
    assert [job.name for job in jobs[:5]] == [
        "alibi, 16, 3",
        "double log, 16, 3",
        "alibi, 16, 1",
        "double log, 16, 1",
        "alibi, 32, 3",
    ]
    for job in jobs:
        chosen, settings = job.configuration.preset, job.configuration.settings
        base = PRESETS[chosen.name]
        assert settings.lengths == (chosen.length, 2 * chosen.length)
        assert settings.far == 5 * chosen.length
        assert chosen.batch * chosen.length == base.batch * base.length
        assert settings.blocks == base.measurement.blocks
        assert job.configuration.encoding.num_heads in (1, chosen.heads)


def test_a_formula_a_head_and_other_architectures(fixed):
    mixed = {"name": ["-n/4", *["0"] * 7], "label": "one local", "family": "mixtures"}
    jobs = parse_plan(
        sweep(
            encodings=[mixed, "type1"],
            presets=["tiny"],
            layers=[1, 2],
            steps=[30, 60],
            widths=[16],
            windows=[8],
            measure={"last_tokens": 4},
        )
    ).jobs(fixed)
    assert [job.name for job in jobs[:4]] == [
        "one local, 16, 0, layers 1, width 16",
        "type1, 16, 0, layers 1, width 16",
        "one local, 16, 0, layers 1, width 16, steps 60",
        "type1, 16, 0, layers 1, width 16, steps 60",
    ]
    assert [job.family for job in jobs[:2]] == ["mixtures", "type1"] and len(jobs) == 8
    first = jobs[0].configuration
    assert first.encoding.num_heads == 8 and first.encoding.biases[1] == 0
    assert first.preset.layers == 1 and first.settings.last_tokens == 4
    assert [v.window for v in first.variants] == [None, 8]


def test_a_formula_for_each_head_of_each_layer(fixed):
    tiny = preset("tiny")
    each = [f"-n/{k + 1}" for k in range(tiny.heads * tiny.layers)]
    (job,) = parse_plan(sweep(presets=["tiny"], encodings=[each])).jobs(fixed)
    assert job.configuration.encoding.num_heads == tiny.heads * tiny.layers
    with pytest.raises(InputError, match=r"heads=1 or heads=\d+ or heads=\d+$"):
        parse_plan(sweep(presets=["tiny"], encodings=[each[:-1]])).jobs(fixed)
    spread = {"name": "alibi", "heads": tiny.heads * tiny.layers}
    with pytest.raises(InputError, match=rf"heads=1 or heads={tiny.heads}$"):
        parse_plan(sweep(presets=["tiny"], encodings=[spread])).jobs(fixed)


def test_a_text_in_place_of_that_of_the_plan(fixed, tmp_path):
    (tmp_path / "words.txt").write_bytes(b"in other words " * 2000)
    own, given = parse_plan(
        {"sweep": [{"encodings": ["alibi"]}, {"encodings": ["type1"], "text": str(tmp_path)}]}
        | {"title": "two texts"}
    ).jobs(fixed)
    assert own.configuration.corpus == fixed
    assert given.configuration.corpus.source == f"folder {tmp_path.name}"


def test_a_stretched_bias_sees_as_far_in_training_lengths(fixed):
    given = sweep(encodings=["-n/4", "window"], presets=["tiny"], lengths=[16, 32], stretch=True)
    given["sweep"][0]["encodings"][1] = {"name": "window", "w": 5, "label": "window 5"}
    jobs = parse_plan(given).jobs(fixed)
    assert [job.label for job in jobs] == [
        "-n/4",
        "window 5",
        "-n/4 stretched 2",
        "window 5 stretched 2",
    ]
    near, far = (jobs[k].configuration.encoding.bias(range(12))[0] for k in (1, 3))
    assert (near > -1).sum() == 5 and (far > -1).sum() == 10
    with pytest.raises(InputError, match="a table of values, which cannot be stretched"):
        parse_plan(sweep(encodings=["t5"], presets=["tiny"], stretch=True)).jobs(fixed)


def test_test_lengths_in_tokens_and_a_window_at_inference(fixed):
    (job,) = parse_plan(sweep(presets=["tiny"], tested=[24, 8], window=4)).jobs(fixed)
    assert job.configuration.settings.lengths == (8, 24)
    assert [(v.bca, v.window) for v in job.configuration.variants] == [(None, 4)]
    plain = parse_plan(sweep(presets=["tiny"])).jobs(fixed)
    assert job.key == plain[0].key, "how it is measured is not part of a run"


def test_a_sweep_that_says_little_takes_what_the_preset_says(fixed):
    (job,) = parse_plan(sweep(presets=["tiny"])).jobs(fixed)
    assert job.configuration.preset == preset("tiny") and job.configuration.seed == 0
    assert job.configuration.settings.lengths == (16, 64, 256)
    assert [v.bca for v in job.configuration.variants] == [None]


def test_blockwise_causal_attention_is_for_rotations_and_sinusoids(fixed):
    encodings = ["alibi", "rope", "xpos", "sinusoidal"]
    jobs = parse_plan(sweep(encodings=encodings, presets=["tiny"], bca=True)).jobs(fixed)
    seen = {job.label: [v.bca for v in job.configuration.variants] for job in jobs}
    assert seen == {"alibi": [None]} | {name: [None, 8] for name in encodings[1:]}


def test_what_two_sweeps_share_is_one_job(fixed):
    plan = {"sweep": [{"encodings": ["alibi", "rope"]}, {"encodings": ["rope", "nope"]}]}
    assert [job.label for job in parse_plan(plan).jobs(fixed)] == ["alibi", "rope", "nope"]
    same = parse_plan(sweep(seeds=[0, 1, 0], lengths=[64, 64])).jobs(fixed)
    assert [job.configuration.seed for job in same] == [0, 1]


@pytest.mark.parametrize(
    ("sweeps", "message"),
    [
        (
            [{"encodings": ["alibi", {"name": "-n", "label": "alibi"}]}],
            "'alibi, 64, 0' .* is the name of two unlike runs",
        ),
        (
            [{"encodings": ["alibi"], "multiples": [1]}, {"encodings": ["alibi"]}],
            "'alibi, 64, 0' .* is asked for twice, with unlike measurements",
        ),
    ],
)
def test_a_name_means_one_thing(sweeps, message, fixed):
    with pytest.raises(InputError, match=message):
        parse_plan({"sweep": sweeps}).jobs(fixed)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "plan: sweep is missing"),
        ({"sweep": []}, r"plan: sweep \[\]; accepted is at least 1 item"),
        ({"sweep": {"encodings": ["alibi"]}}, "plan: sweep .*; accepted is a list"),
        ({"sweeps": []}, "'sweeps' is not known; did you mean sweep?"),
        (sweep(seed=[1]), "'seed' is not known; did you mean seeds?"),
        (sweep(encoding=["alibi"]), "'encoding' is not known; did you mean encodings?"),
        (sweep(colour=1), "'colour' is not known; accepted: encodings, seeds"),
        (sweep(encodings=[]), r"encodings \[\]; accepted is at least 1 item"),
        (sweep(encodings="alibi"), "encodings 'alibi'; accepted is a list"),
        (sweep(encodings=[{"label": "a"}]), "accepted: a name, a formula, heads such as"),
        (sweep(encodings=[3]), "accepted: a name, a formula, heads such as"),
        (sweep(encodings=[["-n", "rope"]]), "rope is no bias of one head"),
        (sweep(layers=[0]), "sweep.0: layers.0 0; accepted is greater than or equal to 1"),
        (sweep(text=3), "sweep.0: text 3; accepted is a valid string"),
        (sweep(stretch=1), "sweep.0: stretch 1; accepted is a valid boolean"),
        (sweep(windows=[8], bca=True), "bca and windows are both given"),
        (sweep(measure=3), "sweep.0: measure 3; accepted is"),
        (sweep(measure={"row": 1}), "measurement: 'row' is not known; did you mean rows?"),
        (sweep(measure={"rows": 0}), "measurement: rows 0; accepted is greater"),
        (sweep(measure={"rows": "8"}), "measurement: rows '8'; accepted is a valid integer"),
        (sweep(encodings=["alibbi"]), "did you mean 'ALiBi'"),
        (sweep(encodings=[{"name": "alibi", "dialct": "shift"}]), "no parameter or option"),
        (sweep(seeds=[]), r"sweep.0: seeds \[\]; accepted is at least 1 item"),
        (sweep(seeds=[-1]), "sweep.0: seeds.0 -1; accepted is greater than or equal to 0"),
        (sweep(seeds=[True]), "sweep.0: seeds.0 True; accepted is a valid integer"),
        (sweep(seeds=3), "sweep.0: seeds 3; accepted is a list"),
        (sweep(lengths=[0]), "sweep.0: lengths.0 0; .* equal to 1"),
        (sweep(multiples=[1.5]), "sweep.0: multiples.0 1.5; accepted is a valid integer"),
        (sweep(tested=[0]), "sweep.0: tested.0 0; .* equal to 1"),
        (sweep(tested=[8], multiples=[1]), "multiples and tested are both given"),
        (sweep(window=8, bca=True), "bca and window are both given"),
        (sweep(window=-1), "sweep.0: window -1; .* equal to 0"),
        (sweep(far=-1), "sweep.0: far -1; .* equal to 0"),
        (sweep(presets=[]), r"sweep.0: presets \[\]; accepted is at least 1 item"),
        (sweep(presets="tiny"), "sweep.0: presets 'tiny'; accepted is a list"),
        (sweep(presets=["tinny"]), "preset 'tinny' is not known; did you mean 'tiny'"),
        (sweep(bca=1), "sweep.0: bca 1; accepted is a valid boolean"),
    ],
)
def test_what_no_plan_holds_is_refused_in_one_line(content, message):
    with pytest.raises(InputError, match=message) as error:
        parse_plan(content)
    assert "\n" not in str(error.value)


def test_what_cannot_be_trained_is_refused_before_anything_runs(fixed):
    with pytest.raises(InputError, match="fox cannot be trained here"):
        parse_plan(sweep(encodings=["alibi", "fox"])).jobs(fixed)
    with pytest.raises(InputError, match="too short"):
        parse_plan(sweep(multiples=[1000])).jobs(fixed)


def test_files(tmp_path, fixed):
    path = tmp_path / "plan.toml"
    path.write_text('[[sweep]]\nencodings = ["alibi"]\nseeds = [0, 1]\n')
    assert len(read_plan(path).jobs(fixed)) == 2
    path.write_text("[[sweep]\n")
    with pytest.raises(InputError, match="is no TOML text"):
        read_plan(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is no TOML text"):
        read_plan(path)
    for defect in (b"a = " + b"[" * 9999, b"a = " + b"9" * 9999, b"a = 2021-02-30", b" " * 2**24):
        path.write_bytes(defect + b"\n")
        with pytest.raises(InputError, match="is no TOML text"):
            read_plan(path)
    path.write_text(f'[[sweep]]\nencodings = ["alibi"]\nseeds = [0, {2**64}]\n')
    with pytest.raises(InputError, match=r"seed 18446744073709551616: .* from 0 to 2\^63 - 1"):
        read_plan(path).jobs(fixed)
    for wrong, why in ((tmp_path, "Is a directory"), (tmp_path / "no", "No such file")):
        with pytest.raises(InputError, match=f"cannot be read: {why}"):
            read_plan(wrong)


def test_a_preset_of_another_length_has_as_many_tokens_a_step():
    assert resized(preset("demo"), 64) is preset("demo")
    assert resized(preset("demo"), 4096).batch == 1
    parts = dataclasses.replace(preset("demo"), parts=4)
    assert resized(parts, 4096).batch == 4


def test_the_keys_of_runs_that_were_made_are_as_they_were(fixed):
    """Another key would make every run of every store unfinished."""
    jobs = {
        job.name: job for job in read_plan(ROOT / "experiments" / "first" / "plan.toml").jobs(fixed)
    }
    assert len(jobs) == 104
    for name, (training, *measured) in KEYS.items():
        job = jobs[name]
        found = [key(job.configuration.measured(v)) for v in job.configuration.variants]
        assert (job.key, found) == (training, measured), name


KEYS = {
    "alibi, 64, 0": ("648a3235dd37b996", "e191332795a6ad18"),
    "kerple_log, 64, 4": ("a5c63c9bdc9f5619", "e191332795a6ad18"),
    "rope, 128, 2": ("71dff51a2fcc8657", "27170fc71e70af96", "f8ad1139338f370b"),
    "alibi shift 8, 64, 1": ("a9653b29892fe32b", "e191332795a6ad18"),
    "t5, 64, 0": ("fd5d7c2fa789cb66", "e191332795a6ad18"),
    "t5, 128, 0": ("f6f305e29e6a8689", "27170fc71e70af96"),
    "type1, 64, 2": ("92b000f275f1ee06", "e191332795a6ad18"),
    "window 16, 64, 0": ("f77b0b64c4adfdd8", "e191332795a6ad18"),
}


def test_heads_have_one_notation_in_plans_too():
    listed = ["-n/4", *["0"] * 7]
    for given in ("[-n/4; 0 x7]", {"name": "[-n/4, 0 x7]"}, ["-n/4", "0 x7"]):
        (one,) = parse_plan({"sweep": [{"encodings": [given]}]}).sweeps[0].encodings
        (other,) = parse_plan({"sweep": [{"encodings": [listed]}]}).sweeps[0].encodings
        assert one.label == other.label == "one head -n/4, seven without bias"
        assert one.encoding(8).biases == other.encoding(8).biases


def test_the_plans_of_the_documentation_are_plans(fixed):
    said = (Path(__file__).parents[3] / "docs" / "scaling.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", said, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        assert parse_plan(tomllib.loads(block)).jobs(fixed)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"encodings": [{"label": "h", "layers": ["0", {"mechanism": "-n", "base": 5.0}]}]},
            "h: layer 2: base",
        ),
        ({"encodings": [{"label": "h", "layers": ["0"] * 3}]}, "h: 3 layers are listed"),
        (
            {"encodings": [{"label": "h", "layers": ["0", {"mechanism": "0", "window": 65}]}]},
            "h, layer 2: window 65 in rows of 64 tokens",
        ),
        ({"heads": [3]}, "width 64 with 3 heads"),
        ({"task": {"kind": "copy", "span": 40}}, "rows of 64 tokens have no room"),
    ],
)
def test_what_contradicts_itself_is_refused_with_its_sweep(wrong, message, fixed):
    sweeps = [{"encodings": ["alibi"]}, {"encodings": ["alibi"], "presets": ["recall"], **wrong}]
    with pytest.raises(InputError, match=rf"^plan: sweep\.1: .*{re.escape(message)}"):
        parse_plan({"sweep": sweeps}).jobs(fixed)
