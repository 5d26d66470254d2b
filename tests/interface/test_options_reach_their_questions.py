"""What each verb hands to its question: every option under its name, and each default."""

import importlib
import inspect
import json
import shlex

import pytest

import farfield
from farfield.cli import main
from farfield.commands.goals import TARGETS
from farfield.options import Subject

MODELS, FAR = "validation.models.", "validation.far_field."
GIVEN = {"device": "cpu", "dtype": "float16"}
DEVICE = "--device cpu --dtype float16"
NONE = {"device": None, "dtype": None}
VIEW = "window 9, 2 first keys, bca 7"
NO_GOAL = dict.fromkeys([*TARGETS, "flush_to_zero"])
ASKED = {
    "window --model F": (
        MODELS + "smallest_window.smallest_window",
        ["F", None],
        {"loss": "1/100", "length": None, "segments": 16, "bos": "auto"}
        | {"folder": "out/window"}
        | NONE,
    ),
    "window --model F --loss 2% --text T --length 1k --segments 3 --bos no --out o " + DEVICE: (
        MODELS + "smallest_window.smallest_window",
        ["F", "T"],
        {"loss": "2%", "length": 1024, "segments": 3, "bos": "no"} | {"folder": "o"} | GIVEN,
    ),
    "window -n": (
        "numerics.windows.window.certified_window",
        ["-n", "1%", "1", "1"],
        {"sinks": 0, "row": None, "temper": None, "gate": None},
    ),
    "window -n --error 5% --logit-bound 2 --value-bound 3 --sinks 4 --row 1k --temper 2 --gate 5": (
        "numerics.windows.window.certified_window",
        ["-n", "5%", "2", "3"],
        {"sinks": 4, "row": "1k", "temper": "2", "gate": "5"},
    ),
    "perplexity --model F --length 8 --length 16": (
        MODELS + "perplexities.model_perplexity",
        ["F", ["8", "16"]],
        {"text": None, "protocol": "last-token", "samples": 64, "bos": "auto", "view": ""} | NONE,
    ),
    "perplexity --model F --length 8 --text T --protocol lm-eval --samples 5 --window 9 --sinks 2 "
    "--bca 7 --bos yes " + DEVICE: (
        MODELS + "perplexities.model_perplexity",
        ["F", ["8"]],
        {"text": "T", "protocol": "lm-eval", "samples": 5, "bos": "yes", "view": VIEW} | GIVEN,
    ),
    "erf --model F": (
        MODELS + "empirical.empirical_receptive_field",
        ["F", None],
        {"kind": "gradient", "q": "99/100", "eps": "1/100", "length": None, "segments": None}
        | {"bos": "auto", "view": ""}
        | NONE,
    ),
    "erf --model F --text T --kind attention --q 1/2 --eps 1/3 --length 64 --segments 5 --window 9 "
    "--bca 7 --bos no " + DEVICE: (
        MODELS + "empirical.empirical_receptive_field",
        ["F", "T"],
        {"kind": "attention", "q": "1/2", "eps": "1/3", "length": 64, "segments": 5}
        | {"bos": "no", "view": "window 9, bca 7"}
        | GIVEN,
    ),
    "measure F --text T --length 64 --segments 5 --window 9 --bca 7 --bos no " + DEVICE: (
        MODELS + "empirical.empirical_receptive_field",
        ["F", "T"],
        {"kind": "attention", "length": 64, "segments": 5, "bos": "no", "view": "window 9, bca 7"}
        | GIVEN,
    ),
    "audit F": (
        MODELS + "audit.audit",
        ["F"],
        {"trained": None, "lengths": [], "rows": "1", "cache_dtype": "bf16", "tensor_parallel": 1}
        | {"page": 16, "budget": None, "eps": ["1/10", "1/100", "1/1000"], "error": "1/1000"}
        | {"logit_bound": None, "value_bound": None},
    ),
    "audit F --trained 4k --length 8 --length 9 --rows 3 --cache-dtype fp8 --tensor-parallel 2 "
    "--page 32 --budget 24GiB --eps 1/3 --error 1/5 --logit-bound 2 --value-bound 3": (
        MODELS + "audit.audit",
        ["F"],
        {"trained": "4k", "lengths": ["8", "9"], "rows": "3", "cache_dtype": "fp8"}
        | {"tensor_parallel": 2, "page": 32, "budget": "24GiB", "eps": ["1/3"], "error": "1/5"}
        | {"logit_bound": "2", "value_bound": "3"},
    ),
    "foresee F --to 4k": (
        FAR + "foresee.foresee",
        ["F", None],
        {"to": 4096, "length": None, "causes": False} | NONE,
    ),
    "foresee F --to 4k --text T --length 64 --blame " + DEVICE: (
        FAR + "foresee.foresee",
        ["F", "T"],
        {"to": 4096, "length": 64, "causes": True} | GIVEN,
    ),
    "foresee F --to 4k --text T --length 64 --quick " + DEVICE: (
        FAR + "gap_probe.gap_probe",
        ["F", "T"],
        {"to": 4096, "length": 64} | GIVEN,
    ),
    "mend F --to 4k": (
        FAR + "mend.mend",
        ["F", None],
        {"to": 4096, "length": None, "keys": None, "measure": None, "quick": False}
        | {"minutes": None, "needles": None, "folder": "out/mend"}
        | NONE,
    ),
    "mend F --to 4k --text T --length 64 --keys 99 --measure --quick --minutes 5 --needles N "
    "--out o " + DEVICE: (
        FAR + "mend.mend",
        ["F", "T"],
        {"to": 4096, "length": 64, "keys": 99, "measure": True, "quick": True, "minutes": 5.0}
        | {"needles": "N", "folder": "o"}
        | GIVEN,
    ),
    "study 3": (
        "validation.study.study.study",
        [["3"]],
        {"train": False, "preset": "demo", "trained": None, "tested": [], "seed": 0, "text": None}
        | {"baselines": ["nope", "alibi"], "store": "out/study/3-4e074085/runs"},
    ),
    "study -n 0 --train --baseline t5 --preset tiny --trained 1k --tested 8k,32k --text T --seed 3 "
    "--runs r --out o": (
        "validation.study.study.study",
        [["-n", "0"]],
        {"train": True, "preset": "tiny", "trained": 1024, "tested": [8192, 32768], "seed": 3}
        | {"text": "T", "baselines": ["t5"], "store": "r"},
    ),
    "check -n": ("theory.convergence.check_convergence", ["-n"], {"budget_s": 10.0}),
    "check -n --budget 3": ("theory.convergence.check_convergence", ["-n"], {"budget_s": 3.0}),
    "check --certificate x.v --verify --budget 3": (
        "theory.certificates.verification.verify_certificate",
        ["x.v"],
        {"budget_s": 3.0},
    ),
    "trf -n": (
        "numerics.receptive_field.receptive_fields",
        ["-n", ["1/10", "1/100", "1/1000"]],
        {"length": None, "exact": False, "budget_s": 60},
    ),
    "trf -n --eps 1% --eps 1/3 --length 4k --exact --budget 3": (
        "numerics.receptive_field.receptive_fields",
        ["-n", ["1%", "1/3"]],
        {"length": "4k", "exact": True, "budget_s": 3.0},
    ),
    "trf -n --layers 3": (
        "numerics.depth.layered_receptive_field",
        ["-n", "3"],
        {"mixing": "2/5", "q": "99/100", "length": None},
    ),
    "trf --layer -n --layer '{window = 5} x2' --mixing 1/3 --q 1/2 --length 4k --budget 3": (
        "numerics.depth.layered_receptive_field",
        [],
        {"layers": ["-n", {"window": 5}, {"window": 5}], "mixing": "1/3", "q": "1/2"}
        | {"length": "4k", "budget_s": 3.0},
    ),
    "trf --layer -n": (
        "numerics.depth.layered_receptive_field",
        [],
        {"layers": ["-n"], "mixing": "2/5", "q": "99/100", "length": None, "budget_s": 60},
    ),
    "trf -n --trained 64 --tested 128": ("numerics.leak.leak", ["-n", "64", "128"], {}),
    "trf -n --dtype fp16": ("numerics.horizon.dtype_horizon", ["-n", "fp16"], {}),
    "reach -n": ("numerics.price.reach", ["-n", "7"], {"share": "1/2", "length": None}),
    "reach -n --advantage 3 --share 1/3 --length 4k": (
        "numerics.price.reach",
        ["-n", "3"],
        {"share": "1/3", "length": "4k"},
    ),
    "reach -n --distance 5 --length 4k": (
        "numerics.price.price_of_distance",
        ["-n", "5"],
        {"length": "4k"},
    ),
    "reach -n --distance 5 --logit-bound 2 --length 4k": (
        "numerics.ceiling.attention_ceiling",
        ["-n", "2"],
        {"distance": "5", "length": "4k"},
    ),
    "reach -n --logit-bound 2 --length 4k": (
        "numerics.ceiling.attention_ceiling",
        ["-n", "2"],
        {"distance": None, "length": "4k"},
    ),
    "resolution '[-n; -n/2]' --head 2": (
        "numerics.resolution.attention_resolution",
        ["one head -n, one -n/2, head 2", None],
        {"scale": None, "mask": None},
    ),
    "forecast -n": (
        "validation.forecast.forecast",
        ["-n"],
        {"trained": "64", "tested": "1024", "layers": "4", "steps": None, "runs": None}
        | {"heads": None},
    ),
    "forecast -n --trained 32 --tested 2k --layers 3 --steps 50 --runs r --heads 4": (
        "validation.forecast.forecast",
        ["-n"],
        {"trained": "32", "tested": "2k", "layers": "3", "steps": "50", "runs": "r", "heads": 4},
    ),
    "compare -n -2*n": ("numerics.comparison.compare_tails", ["-n", "-2*n"], {}),
    "resolution -n --length 4k --scale 1/2 --mask 'window 5'": (
        "numerics.resolution.attention_resolution",
        ["-n", "4k"],
        {"scale": "1/2", "mask": "window 5"},
    ),
    "design -a*n --trf 64": (
        "numerics.design.solve.design",
        ["-a*n"],
        {"parameter": None, "heads": None, "budget_s": 10, "optimise": None, "dialect": None}
        | {"values": {}, "assumptions": {}}
        | NO_GOAL
        | {"trf": "64"},
    ),
    "design -a*n^b --parameter a --optimise leak --set b=1 --assume a=positive --heads 2 "
    "--budget 3 --dialect d --trf 64 --eps 1/3 --flush-to-zero": (
        "numerics.design.solve.design",
        ["-a*n^b"],
        {"parameter": "a", "heads": 2, "budget_s": 3.0, "optimise": "leak", "dialect": "d"}
        | {"values": {"b": "1"}, "assumptions": {"a": "positive"}}
        | NO_GOAL
        | {"trf": "64", "eps": "1/3", "flush_to_zero": True},
    ),
    "plot -n": (
        "figures.formula_plots.plot",
        ["-n"],
        {"what": "bias", "length": "1024", "eps": "1/100"},
    ),
    "plot -n 0 --what trf --length 64 --eps 1/3": (
        "figures.formula_plots.plot",
        ["-n", "0"],
        {"what": "trf", "length": "64", "eps": "1/3"},
    ),
    "map -a*n --a 1:2": (
        "figures.parameter_map.parameter_map",
        ["-a*n", {"a": "1:2"}],
        {"eps": "1/100", "points": "16", "dialect": None, "values": {}, "assumptions": {}},
    ),
    "map -a*n^b*c --a 1:2 --b=1:3 --eps 1/3 --points 5 --set c=1 --assume a=positive --dialect d": (
        "figures.parameter_map.parameter_map",
        ["-a*n^b*c", {"a": "1:2", "b": "1:3"}],
        {"eps": "1/3", "points": "5", "dialect": "d", "values": {"c": "1"}}
        | {"assumptions": {"a": "positive"}},
    ),
    "figures fig6": (
        "figures.gallery.draw",
        [["fig6"], "out/figures"],
        {"kind": "svg", "runs": None, "settings": {}},
    ),
    "papers fig6 eps=1/3 --set length=9 --out o": (
        "figures.gallery.draw",
        [["fig6"], "o"],
        {"kind": "svg", "runs": None, "settings": {"length": "9", "eps": "1/3"}},
    ),
    "figures fig6 eps=1/3 --set length=9 --format png --runs r --out o": (
        "figures.gallery.draw",
        [["fig6"], "o"],
        {"kind": "png", "runs": "r", "settings": {"length": "9", "eps": "1/3"}},
    ),
    "claims": ("validation.papers.ledger.claims", [None, None], {}),
    "claims chi2023 --kind proof": (
        "validation.papers.ledger.claims",
        ["chi2023", "proof"],
        {},
    ),
}


OF_A_RUN = {
    "audit": MODELS + "audit.audit",
    "measure": MODELS + "empirical.empirical_receptive_field",
    "erf": MODELS + "empirical.empirical_receptive_field",
    "perplexity --length 8": MODELS + "perplexities.model_perplexity",
    "window --model": MODELS + "smallest_window.smallest_window",
    "foresee --to 4k": FAR + "foresee.foresee",
    "mend --to 4k": FAR + "mend.mend",
}
"""Verbs that take the key of a run for its folder."""


class Asked(BaseException):
    """A question was asked; nothing answers it."""


def plain(value):
    """A value as a line of text has it: an encoding by its name, a view in words."""
    name = lambda x: x.name if isinstance(x, farfield.Encoding) else str(x)  # noqa: E731
    return json.loads(json.dumps(value, default=name))


@pytest.fixture
def ask(monkeypatch, tmp_path):
    """What a command line asks the function at a place: its values and its options."""

    def asked_of(line, function):
        module, name = f"farfield.{function}".rsplit(".", 1)
        module = importlib.import_module(module)
        parameters = {*inspect.signature(getattr(module, name)).parameters}

        def question(*args, **options):
            reports = {key for key in ("progress", "notice") if callable(options.pop(key, None))}
            reports |= {"notice"} if any(map(callable, args)) else set()
            assert reports == parameters & {"progress", "notice"}, "what is long reports to a bar"
            raise Asked(plain([x for x in args if not callable(x)]), plain(options))

        for place in (farfield, module) if name in farfield.__all__ else (module,):
            monkeypatch.setattr(place, name, question)
        monkeypatch.chdir(tmp_path)
        with pytest.raises(Asked) as asked:
            main(shlex.split(line))
        return asked.value.args

    return asked_of


@pytest.mark.parametrize("line", ASKED)
def test_every_option_reaches_the_question_under_its_name(line, ask):
    function, given, named = ASKED[line]
    assert ask(line, function) == (given, named)


@pytest.mark.parametrize("line", OF_A_RUN)
def test_a_run_is_named_by_its_key(line, ask, tmp_path):
    run = tmp_path / "mine" / "abcdef0123456789"
    run.mkdir(parents=True)
    (run / "weights.safetensors").touch()
    given, _ = ask(f"{line} abc --runs mine", OF_A_RUN[line])
    assert given[0] == "mine/abcdef0123456789"


@pytest.mark.parametrize(
    ("formula", "heads", "wide", "found"),
    [
        ("alibi", None, None, 8),
        ("alibi", None, 4, 4),
        ("alibi", 2, 4, 2),
        ("[-n; 0]", None, 4, 2),
        ("-n", None, 4, 1),
        ("nope", None, 4, 1),
    ],
)
def test_an_encoding_has_the_heads_of_its_model_unless_it_is_told_otherwise(
    formula, heads, wide, found
):
    assert Subject(heads=heads).read(formula, wide).num_heads == found
