"""Settings, presets and plans: each wrong one is a line with its place; keys forget names alone."""

import typing
from datetime import date
from pathlib import Path

import pytest

from farfield.validation.harness.mechanism import facts_of, understood
from farfield.validation.harness.settings import PRESETS, Plan, Run, preset, read_plan, settle

LAYER = {"mechanism": "rope", "window": 16}
HYBRID = {"label": "mixed", "layers": [LAYER, "0", "-n/4", "[-n/4; 0 x7]"]}
WRONG = {
    "lrr = 1": "runs[0]: 'lrr' is no setting; did you mean lr? accepted: width, ",
    "lr = -1": "runs[0]: lr -1; accepted is greater than 0",
    f"seed = {[*range(400)]}\nlr = {[0.1] * 400}": "runs[0]: 160,000 runs; accepted are at most",
    "steps = 9999999999999": "runs[0]: steps 9999999999999; accepted is less than or equal to 1000",
    "lr = inf": "runs[0]: lr inf; accepted is a finite number",
    "steps = 0": "runs[0]: steps 0; accepted is greater than or equal to 1",
    "steps = []": "runs[0]: steps is an empty list; accepted is one setting or several",
    "width = 100": "runs[0]: width 100 with 8 heads; accepted is a width that is an even multiple",
    "accumulate = 3": "runs[0]: batch 32 in 3 parts; accepted are parts of equal size",
    "measure = { lenghts = [2] }": "runs[0]: measure: 'lenghts' is no setting; did you mean length",
    "measure = { lengths = [0] }": "runs[0]: measure: lengths.0 0; accepted is greater than or",
    "encoding = 3": (
        "runs[0]: encoding: encoding 3; accepted: a name, a formula, heads such as "
        '"[-n/4; 0 x7]", FILE.py:Class, a table with a name, or one with a label and layers'
    ),
    "preset = 'dem'": "runs[0]: preset 'dem' is not known; did you mean demo? accepted: a TOML",
    "encoding = { label = 'x', layers = ['0'] }": "x: 1 layers are listed, the model has 4",
    "encoding = { label = 'x', layers = [{ mechanism = 'rope', windw = 3 }] }": (
        "0: 'windw' is no setting; did you mean window? accepted: bias, rope, window, sinks, "
        "scale, mechanism, share, base, scaling"
    ),
    "encoding = { label = 'x', layers = [{ mechanism = 3 }] }": "layers.0: mechanism 3; acce",
    "encoding = { label = 'x', layers = [{ mechanism = { a = 1 } }] }": "0: mechanism {'a': 1}",
    "encoding = { label = 'x', layers = [['0']] }": (
        "layers.0: mechanism ['0']; accepted: a name, a formula, heads such as "
        '"[-n/4; 0 x7]", FILE.py:Class, a table with a name'
    ),
    "encoding = { label = 'x', layers = ['nonsense'] }": "layers.0: ",
    "encoding = { label = 'x', layers = ['0', '0', '0', { mechanism = 'rope', window = 65 }] }": (
        "layer 4: window 65 in rows of 64 tokens; accepted are windows from 1 to 64"
    ),
}


@pytest.mark.parametrize("line, said", WRONG.items(), ids=lambda text: text[:40])
def test_a_wrong_setting_is_a_line_with_its_place(refusal, line, said, tmp_path):
    path = tmp_path / "plan.toml"
    given = "" if line.startswith("encoding") else "encoding = 'alibi'\n"
    path.write_text(f"[[runs]]\n{given}{line}\n")
    found = refusal(".", read_plan(path).expand)
    assert said in found and (not said.endswith("a name") or found.endswith(said))


BORDERS = {  # values that are accepted, and the nearest that are not
    ("", "seed"): ((0, 2**63 - 1), (-1, 2**63)),
    ("", "layers"): ((1, 2000), (0, 2001)),
    ("", "steps"): ((1, 10**12), (0, 10**12 + 1)),
    ("", "warmup"): ((0,), (-1,)),
    ("", "lr"): ((1e-300,), (0, float("inf"))),
    ("", "weight_decay"): ((0,), (-1e-300, float("inf"))),
    ("", "dropout"): ((0, 0.999), (-1e-300, 1)),
    ("", "betas"): (((0, 0.999), (0.999, 0)), ((-0.1, 0), (0, -0.1), (1, 0), (0, 1))),
    ("measure", "share"): ((1e-300, 0.999), (0, 1)),
    ("task", "vocabulary"): ((8,), (7,)),
    ("layer", "share"): ((1e-300, 1), (0, 1.001)),
    ("layer", "base"): ((1.001,), (1, float("inf"))),
    ("layer", "scaling"): ((1,), (0.999, float("inf"))),
}


@pytest.mark.parametrize("place, name", BORDERS)
def test_each_border_of_a_setting_is_where_it_is_said_to_be(refusal, place, name):
    def with_value(value):
        given = {name: value}
        hybrid = {"label": "x", "layers": [{"mechanism": "rope", **given}]}
        one = {"encoding": hybrid, "layers": 1} if place == "layer" else {place: given}
        return Run.of({"encoding": "alibi", **(one if place else given)})

    accepted, refused = BORDERS[place, name]
    for value in accepted:
        with_value(value)
    for value in refused:
        refusal(f"{name}.*accepted", with_value, value)


@pytest.mark.parametrize("content", [b"[[runs]", b"\xff", b"", b"sweep = 1", b"runs = 3"])
def test_what_is_no_plan_is_refused_by_its_name(refusal, content, tmp_path):
    (tmp_path / "plan.toml").write_bytes(content)
    for path in (tmp_path / "plan.toml", tmp_path / "none.toml"):
        refusal(r"plan '.*toml'", read_plan, path)


def test_a_plan_is_every_combination_of_its_lists_each_once():
    table = {"encoding": ["alibi", HYBRID], "seed": [0, 1], "lr": [1e-3, 2e-3], "preset": "small"}
    runs = Plan(runs=[table, {**table, "seed": 1}]).expand()
    assert len(runs) == 8 and {r.steps for r in runs} == {PRESETS["small"]["steps"]}
    assert [(r.name, r.seed, r.lr) for r in runs[:3]] == [
        ("alibi", 0, 1e-3),
        ("alibi", 0, 2e-3),
        ("alibi", 1, 1e-3),
    ]
    pairs = Plan(runs=[{"encoding": "alibi", "betas": [[0.9, 0.95], [0.8, 0.9]]}]).expand()
    assert [r.betas for r in pairs] == [(0.9, 0.95), (0.8, 0.9)]
    for name, each in (("text", ["a", "b"]), ("measure", [{"blocks": 2}, {"blocks": 3}])):
        assert len(Plan(runs=[{"encoding": "alibi", name: each}]).expand()) == 2


def test_a_preset_may_be_a_file_and_is_overridden(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("steps = 7\nmeasure = { blocks = 3, lengths = [9] }")
    run = settle(str(path), {"encoding": "alibi", "measure": {"blocks": 4}})
    assert run.steps == 7 and run.measure.blocks == 4 and run.measure.lengths == (9,)
    for name in PRESETS:
        assert Run(encoding="alibi", **preset(name)).layers >= 2


def test_an_encodings_table_may_carry_its_names():
    run = settle("demo", {"encoding": {"name": "kerple_log", "r1": 2, "r2": 1, "label": "fixed"}})
    assert run.name == "fixed" and not understood(run).layers[0].bias.free
    mixed = settle("demo", {"encoding": {**HYBRID, "family": "mixtures"}})
    assert (mixed.name, mixed.family) == ("mixed", "mixtures")


@pytest.mark.parametrize(
    "encoding, said",
    [
        ("dape", "mechanism"),
        ("[-n/4; 0]", "has 2 heads, the model has 8; accepted are 1 or 8"),
        ("none.py:Own", "'none.py' cannot be read"),
        ({"label": "x", "layers": ["0", "0", "0", "sinusoidal"]}, "layer 4: sinusoidal acts on no"),
        ({"label": "x", "layers": [{"mechanism": "-n", "base": 5.0}] * 4}, "base belongs to a rot"),
        ({"label": "x", "layers": [{"mechanism": "rope", "share": 1 / 16}] * 4}, "of a head of 16"),
        (
            {"label": "x", "layers": [{"mechanism": "rope", "rope": {"share": 0.5}}] * 4},
            "rope beside a mechanism",
        ),
        ({"label": "x", "layers": [{"window": 4}] * 4}, "layer {'window': 4} has no mechanism"),
        ({"label": "x", "layers": [{"mechanism": None}] * 4}, "has no mechanism"),
        ({"label": "x", "layers": [{"bias": "-n", "share": 0.5}] * 4}, "share belongs to a rot"),
        (
            {"label": "x", "layers": [{"mechanism": {"name": "alibi", "m": date(2024, 1, 1)}}] * 4},
            "m '2024-01-01' is not a rational number",
        ),
        (
            {"label": "x", "layers": [{"mechanism": "0", "scale": {"heads": [9]}}] * 4},
            "accepted are heads from 1 to 8",
        ),
    ],
)
def test_an_encoding_that_no_layer_can_have_is_refused(refusal, encoding, said):
    assert said in refusal(r"accepted|cannot", lambda: understood(Run(encoding=encoding)))


def test_the_facts_of_an_encoding_are_its_formulas():
    def facts(encoding, **more):
        return facts_of(understood(Run(encoding=encoding, **more)))

    assert facts("-2*log(1+n)") == facts("-log(1 + n)*2") != facts("-3*log(1+n)")
    assert facts("alibi") == facts("ALiBi") != facts("alibi", heads=4)
    assert facts("rope") != facts("xpos") != facts("nope")
    for name in ("rope", "xpos"):
        (layer, *_) = understood(settle("tiny", {"encoding": name})).layers
        assert layer.rope.decay is (name == "xpos")
    pair = {"mechanism": "rope", "share": 0.07}  # 0.56 pairs of 16 dimensions: one is turned
    assert understood(Run(encoding={"label": "x", "layers": [pair] * 4})).layers[0].rope


ROPE = {"mechanism": "rope", "base": 500.0, "window": 6, "bias": "-n/4"}
FORMER = {"share": None, "scaling": None, "scale": None, "sinks": False}


@pytest.mark.parametrize(
    "written, meant",
    [
        ("-n/4", {"bias": "-n/4"}),
        ("rope", {"rope": {}}),
        ({"mechanism": "RoPE"}, {"rope": {}}),
        ({"mechanism": "xpos", "scaling": 2.0}, {"rope": {"decay": True, "scaling": 2.0}}),
        (ROPE, {"bias": "-n/4", "window": 6, "rope": {"base": 500.0}}),
        ({**FORMER, **ROPE}, {"bias": "-n/4", "window": 6, "rope": {"base": 500.0}}),
        ({"mechanism": "0", "scale": "log"}, {"bias": None, "scale": {"form": "log"}}),
        ({"mechanism": {"name": "alibi"}}, {"bias": "alibi"}),
    ],
)
def test_a_layer_is_one_record_however_it_is_written(written, meant):
    """Runs of earlier versions are written with `mechanism`, and have the same facts."""
    each = [Run(encoding={"label": "x", "layers": [one]}, layers=1) for one in (written, meant)]
    facts, others = (facts_of(understood(run)) for run in each)
    assert facts == others
    again = Run.model_validate_json(each[0].model_dump_json())
    assert again == each[0] and facts_of(understood(again)) == facts


POWERS = {10**12: "10^12", 2**63: "2^63"}


def told(field):
    """The range of a field as the documentation writes it."""
    kinds = [*map(typing.get_args, (field.annotation, *typing.get_args(field.annotation)))]
    if words := [x for kind in kinds for x in kind if isinstance(x, str)]:
        return ", ".join(dict.fromkeys(words))
    every = [*field.metadata, *(m for k in kinds for x in k for m in getattr(x, "metadata", ()))]
    names = ("ge", "gt", "le", "lt")
    limits = {k: getattr(m, k) for m in every for k in names if hasattr(m, k)}
    shown = {k: POWERS.get(v, v) for k, v in limits.items()}
    words = {"gt": "above", "ge": "from", "le": "to", "lt": "to below"}
    said = " ".join(f"{words[k]} {shown[k]}" for k in words if k in shown)
    return said.removeprefix("from ") if {"le", "lt"} & {*shown} else said


def test_the_documentation_has_each_field_with_its_default_and_range():
    page = (Path(__file__).parents[3] / "docs" / "scaling.md").read_text(encoding="utf-8")
    lines = page.partition("| field |")[2].partition("\n\n")[0].splitlines()
    cells = [line.split("|") for line in lines[2:]]
    table = {cell[1].strip(" `"): [x.strip() for x in cell[2:4]] for cell in cells}
    others = ["encoding", "measure", "label`, `family`, `preset"]
    for name, field in Run.model_fields.items():
        if name not in "".join(others):
            usual = "none" if field.default is None else str(field.default)
            limits = "" if name in ("text", "task") else told(field)
            assert table.pop(name) == [usual, limits], name
    assert [*table] == others
