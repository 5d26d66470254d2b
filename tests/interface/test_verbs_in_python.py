"""Each verb is a function of the package: its names, its defaults, its answers."""

import csv
import functools
import inspect
import json
import re
from unittest.mock import Mock, call

import numpy
import polars
import pytest
from matplotlib.figure import Figure

import farfield
from farfield.cli import VERBS, application
from farfield.options import own_class, own_module
from farfield.theory.answers.blocks import Sentence
from farfield.theory.answers.writers.tables import latex_tables
from farfield.theory.encodings.catalogue import CATALOGUE
from farfield.theory.encodings.references import references
from farfield.validation.papers.claim import CHECKS


def test_what_is_listed_is_public():
    assert {*dir(farfield)} == {*farfield.__all__, *VERBS, "__version__"} - {
        "completion",
        "figures",
    }


SHELL_ALONE = {"completion", "figures", "explore"}
"""A script of a shell, a room of the package, a program that does not return."""


@pytest.mark.parametrize(
    ("verb", "formulas"),
    [
        ("check", ["-log(1+n)"]),
        ("window", ["-n/8"]),
        ("reach", ["-n/8"]),
        ("forecast", ["-n/8"]),
        ("compare", ["-n", "-2*log(1+n)", "-sqrt(n)"]),
        ("resolution", ["-n/8"]),
        ("atlas", ["alibi"]),
    ],
)
def test_defaults_are_those_of_the_command_line(run, verb, formulas):
    assert str(getattr(farfield, verb)(*formulas)) == run(verb, *formulas)[1].rstrip("\n")


OF_A_WRITER = {"json", "latex", "csv", "proof", "ascii"}

SAID = {("window", "error"), ("window", "logit_bound"), ("window", "value_bound")} | {
    ("reach", "advantage")
}
"""Defaults that the command line fills in itself, where it can say so."""


@pytest.mark.parametrize("verb", sorted({*VERBS} - SHELL_ALONE))
def test_every_option_of_the_shell_is_a_keyword_with_the_same_default(verb):
    assert getattr(farfield, verb).__doc__ and verb in dir(farfield)
    keywords = inspect.signature(getattr(farfield, verb)).parameters
    assert inspect.signature(getattr(farfield, verb)).return_annotation != "int"
    for argument in application()[verb].assemble_argument_collection():
        for name in (name[2:].replace("-", "_") for name in argument.names if name[:2] == "--"):
            if name in OF_A_WRITER or name.startswith(("no_", "empty_")):
                continue
            assert name in keywords
            default = argument.field_info.default
            nothing = (None, False, (), inspect.Parameter.empty)
            if (verb, name) not in SAID and default not in nothing:
                assert str(keywords[name].default) == str(default), name


@pytest.mark.parametrize(
    ("verb", "given", "options", "kind"),
    [
        ("study", ("-n/8",), {"page": True, "out": "page", "tested": [128, 256]}, "Study"),
        ("study", (["-n/8", "-n"],), {"page": True, "out": "both"}, "Study"),
        ("check", ("-a*n",), {"a": 2, "head": 1, "expect": "converges"}, "Convergence"),
        ("check", (lambda n: -n / 8,), {"head": 1}, "Convergence"),
        ("trf", ("-n/8", 0.01), {"length": 1024}, "ReceptiveField"),
        ("trf", ("-n/8",), {"trained": "2k"}, "Leak"),
        ("trf", ("alibi", "1/100"), {"head": 2}, "ReceptiveField"),
        ("window", ("-n/8",), {"sinks": "0", "head": 1}, "Window"),
        ("map", ("-a*n*b",), {"a": "1:2", "b": 2, "points": 2, "out": "m.svg"}, "ParameterMap"),
        ("map", ("-a*n*b",), {"a": "1:2", "b": "2", "points": 2, "out": "m.svg"}, "ParameterMap"),
        ("reach", ("-n/8", 7), {"budget": 5}, "Reach"),
        ("design", ("-a*n",), {"trf": 512, "plan": "plan.toml"}, "Design"),
        ("plot", ("-n/8",), {"out": "drawn.svg"}, "Plot"),
    ],
)
def test_options_of_the_verb_alone_do_in_python_what_they_do_in_the_shell(
    verb, given, options, kind, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert type(getattr(farfield, verb)(*given, **options)).__name__ == kind
    written = {"page": "page/index.html", "both": "both/index.html"}
    place = written.get(options.get("out"), options.get("plan") or options.get("out"))
    assert place is None or (tmp_path / place).is_file()


@pytest.mark.parametrize(("verb", "question"), farfield.LONGER.items())
def test_a_verb_has_the_places_of_its_question_and_options_beside_them(verb, question):
    joined, own = (inspect.signature(getattr(farfield, name)) for name in (verb, question))
    places = [p for p in own.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert [p for p in joined.parameters.values() if p.kind is not p.KEYWORD_ONLY] == places
    assert own.parameters.items() <= joined.parameters.items()


CODE = """import numpy as np

def bias(n):
    return np.array([-float(x) / 8 - (x % 3) ** 2 for x in n]) if np.ndim(n) else 1 / 0
"""


def test_own_code_is_named_in_python_as_in_the_shell(run, tmp_path):
    (tmp_path / "own.py").write_text(CODE)
    for verb in ("check", "trf", "study"):
        said = run(verb, f"{tmp_path}/own.py:bias")
        found = getattr(farfield, verb)(f"{tmp_path}/own.py:bias")
        assert str(found) == said[1].partition("\n\n--page")[0].rstrip("\n")


def test_a_count_is_written_in_python_as_in_the_shell(refusal):
    near, far = farfield.check("-n/8", trained="1k")
    assert near.verdict == "converges" and far.trained == 1024 == far.forecast.tested / 16
    studied = farfield.study("-n/8", trained="1k", tested="2k,8k")
    assert studied.lengths == (1024, 2048, 8192)
    for verb in (farfield.check, farfield.study):
        refusal(r"trained 'x' is not a number; .* 4k", verb, "-n", trained="x")
    refusal(
        "budget_s goes without options of the command",
        farfield.check,
        "-n",
        budget_s=5,
        expect="converges",
    )


def test_an_option_that_another_verb_has_is_named(refusal, run):
    refusal("window has no option eps; did you mean error", farfield.window, "-n", eps="1%")
    assert "did you mean --error?" in run("window", "-n", "--eps", "1%")[2]


def test_the_three_shares_of_trf_are_its_default(run):
    fields = farfield.trf("-n/8")
    same = json.loads(run("trf", "-n/8", "--json")[1])
    assert [f.to_dict() for f in fields] == same and len(fields) == 3
    assert fields[1].tokens == farfield.trf("-n/8", 0.01).tokens == 37


def test_a_list_is_several_formulas(refusal):
    assert farfield.compare(["-n", "-n/2"]).lighter == farfield.compare("-n", "-n/2").lighter == "a"
    assert farfield.compare(["-n"], "-n/2", head=1).lighter == "a"
    refusal("accepted: two or more", farfield.compare, "-n")


def test_of_several_the_one_that_cannot_be_compared_is_named(refusal, run):
    found = farfield.compare("-n", "-2*log(1+n)", "rope", "kerple_log")
    assert [name for name, _ in found.left_out] == ["rope", "kerple_log"]
    assert [row[0] for row in found.rows] == ["-n", "-2*log(1+n)"]
    assert "rope is left out" in run("compare", "-n", "-2*log(1+n)", "rope")[1]
    refusal("rope", farfield.compare, "-n", "rope")


def test_options_are_keywords_and_parameters_too(run):
    same = run("atlas", "kerple-log", "--set", "r1=2", "--set", "r2=1")[1].rstrip("\n")
    for options in ({"r1": 2, "r2": 1}, {"set": {"r1": 2, "r2": 1}}):
        assert str(farfield.atlas("kerple-log", **options)) == same


def test_a_file_is_linted(refusal, tmp_path):
    (tmp_path / "own.py").write_text("def bias(n):\n    return -n / 8\n")
    assert str(farfield.lint(f"{tmp_path}/own.py:bias").formulas) == "(-n/8,)"
    refusal(r"'-n/8' is text; .* decided by check", farfield.lint, "-n/8")


def test_what_python_refuses_says_what_was_typed(refusal):
    with pytest.raises(AttributeError, match=r"farfield has no 'chek'; .*: check"):
        farfield.chek  # noqa: B018
    with pytest.raises(TypeError, match=r"^trf\(\) missing"):
        farfield.trf()
    refusal(r"^perplexity: missing .*model", farfield.perplexity)
    refusal("doctor has no option deep", farfield.doctor, deep=True)
    for value in (1j, [1j], len):
        refusal("is no value of an option", farfield.check, "-n", assume=value)


def test_rows_are_a_latex_table_csv_and_a_data_frame(refusal, run):
    found = farfield.trf("-n/8")
    both = run("check", "-n", "alibi", "--heads", "2", "--latex")[1]
    assert (
        both.count("tabular}") == 2 and "alibi, head 2 & ${- \\frac{n}{256}}$ & converges" in both
    )
    ranking = farfield.compare("-n/8", "-sqrt(n)", "-n")
    assert ranking.latex().count("& ${- ") == 3
    for answer in (ranking, farfield.study("alibi")):
        assert answer.latex().isascii(), "LaTeX without packages reads no other sign"
    latex = run("trf", "-n/8", "--latex")[1]
    assert latex.strip() == found.latex() and latex.startswith("\\begin{tabular}{lr}")
    assert "% -n/8\n\\begin" in run("window", "-n/8", "-n", "--latex")[1]
    assert latex.count("\\\\") == 4 and "0.1 \\% & 56 \\\\" in latex
    frame = found.to_polars()
    assert isinstance(frame, polars.DataFrame) and frame["tokens"].to_list() == [19, 37, 56]
    refusal("no rows", latex_tables, [Sentence(("nothing",))])


def test_a_curve_is_drawn(refusal):
    assert isinstance(farfield.lint(lambda n: -n / 8).plot(), Figure)
    refusal("no curve", farfield.check("-n").plot)


def test_papers_takes_words_and_encodings(run, tmp_path):
    assert "chi2023.fig3" in run("papers", "chi2023", "figure", "3", "--out", str(tmp_path))[1]
    said = farfield.papers("sandwich")
    assert {"qin2024.satisfies.sandwich"} <= {c.id for c in said.claims}
    assert all("sandwich" in CHECKS[c.id].about for c in said.claims)


def test_a_citation_is_the_paper_of_the_encoding(refusal, run):
    entry = run("cite", "ALiBi")[1]
    assert entry.startswith("@inproceedings{press2022train,")
    assert run("cite", "ALiBi", "--latex")[1] == entry
    assert next(csv.reader([run("cite", "ALiBi", "--csv")[1].splitlines()[0]])) == [
        "name",
        "BibTeX",
    ]
    both = farfield.cite("kerple-log", "kerple_power").bibtex
    assert len(both) == 1 and "KERPLE" in both[0] and "keywords" not in both[0]
    assert farfield.__version__ in farfield.cite().bibtex[0]
    assert {*references()} <= {*CATALOGUE}
    for bad, said in (("nope", "no paper is kept"), ("alibbi", "nearest of .*alibi")):
        refusal(said, farfield.cite, bad)


def test_each_entry_of_bibtex_is_whole():
    for entry in references().values():
        assert entry.count("{") == entry.count("}")
        for field in ("title", "author", "year"):
            assert f"\n  {field} = {{" in entry


@pytest.mark.parametrize("verb", ["atlas", "papers", "cite", "explore", "measure", "runs"])
@pytest.mark.parametrize("given", [None, [], b"alibi", True])
def test_what_is_no_text_is_told_so(refusal, verb, given):
    refusal(f"^{verb} takes text", getattr(farfield, verb), given)
    refusal("^map takes text", farfield.map, "-a*n", given)
    for named in ({"model": given}, {"model": "alibi", "bos": given}):
        refusal(f"^{[*named][-1]} takes text", farfield.measure, **named)


@pytest.mark.parametrize(("alias", "name"), [("kerple", "kerple_log"), ("Type 1", "type1")])
def test_cite_knows_an_encoding_by_the_names_of_atlas(alias, name):
    assert farfield.cite(alias).bibtex == farfield.cite(name).bibtex


def test_the_explorer_is_a_cell_of_a_notebook(monkeypatch):
    monkeypatch.setattr("subprocess.Popen", starts := Mock())
    shown = farfield.explore("-r*log(1+n)", port=27180)
    assert 'src="http://127.0.0.1:27180"' in shown._repr_html_()
    assert inspect.signature(farfield.explore).parameters["port"].default == 2718
    shown.stop()
    (words,) = starts.call_args.args
    assert {"run", "--headless", "27180", "--formula=-r*log(1+n)"} <= {*words}
    assert starts.return_value.mock_calls == [call.terminate(), call.wait()]


ALIBI = farfield.encoding("alibi")

SLOPE = """
import torch
from torch import nn

class Slope(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.slope = nn.Parameter(torch.ones(heads))

    def forward(self, q, k, i, j):
        return -self.slope[:, None, None] * (i[:, None] - j)
"""


def test_an_own_module_is_trained_itself(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(SLOPE)
    engine = Mock(return_value=())
    monkeypatch.setattr("farfield.validation.harness.runs.local", engine)
    for given in (("own.py:Slope",), ("own.py",)):
        monkeypatch.chdir(tmp_path)
        farfield.demo(*given, out=str(tmp_path / "out"))
        farfield.demo(bias=given[0], out=str(tmp_path / "out"))
    asked = [run for started in engine.mock_calls for run in started.args[0]]
    mine = [run for run in asked if run.label == "Slope"]
    assert len(mine) == 4 and {run.encoding for run in mine} == {"own.py:Slope"}


def test_a_class_of_a_file_is_no_function_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.py").write_text(SLOPE)
    (tmp_path / "two.py").write_text(f"{SLOPE}\ndef bias(n):\n    return -n\n")
    for name in ("one.py", "one.py:Slope", "two.py:Slope"):
        assert own_class(name) == f"{name[:6]}:Slope"
    assert own_class("two.py:bias") == own_class("-n") == own_class(numpy.zeros(2)) == ""
    assert own_module("alibi", ALIBI) is None


def test_a_class_is_trained_beside_whatever_a_formula_may_be(refusal, tmp_path, monkeypatch):
    train = Mock(side_effect=farfield.InputError("not trained"))
    monkeypatch.setattr("farfield.validation.study.one_run.train", train)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(SLOPE)
    for other in (["-n/4", *"0" * 7], lambda n: -n / 4, ALIBI, "-n"):
        one = {"preset": "tiny", "length": 2, "tested": "2"}
        told = r"^Slope: not trained; .+: not trained$"
        refusal(told, farfield.train, "own.py:Slope", other, **one)
    refusal(r"^not trained$", farfield.train, "own.py:Slope", **one)


def test_objects_that_are_alike_have_one_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for slope in (4, 4, 8):
        farfield.study(functools.partial(lambda k, n: -n / k, slope), page=True)
    folders = sorted(path.name for path in (tmp_path / "out/study").iterdir())
    assert len(folders) == 2 and [name[:11] for name in folders] == ["partial-n-4", "partial-n-8"]


def test_a_file_of_formulas_is_answered_in_python(refusal, run, tmp_path):
    listed = tmp_path / "l.txt"
    listed.write_text("-log(1+n)\n-a*n+0*log(b)\n-n\n")
    found = farfield.check(file=listed, assumptions={"a": "real"}, budget=5)
    assert [one.verdict.value for one in found] == ["diverges", "conditional", "converges"]
    listed.write_text("-n\nfoo(n\n")
    refusal(r"l.txt: foo\(n: .*unknown function 'foo'", farfield.check, file=listed)
    listed.write_text("-log(n)\n")
    assert run("check", "--file", str(listed), "--json", "--ascii")[1].isascii()


@pytest.mark.parametrize(
    ("verb", "given", "options"),
    [
        ("compare", (lambda n: -n / 4, "alibi"), {"head": 1}),
        ("compare", (ALIBI, "-n/4"), {"head": 1}),
        ("compare", (numpy.array([0, -1, -2.0]), "-n"), {"tail": "linear"}),
        ("plot", ([lambda n: -n / 4, "-n"],), {"out": "x.svg"}),
        ("study", (lambda n: -n / 4,), {"head": 1, "out": "page"}),
        ("lint", (lambda n: -n,), {"out": "z.svg"}),
        ("compare", ("-n", "own.py:bias"), {}),
        ("plot", (["-n", "own.py:bias"],), {}),
    ],
)
def test_objects_and_own_code_stand_wherever_a_formula_does(
    verb, given, options, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("def bias(n):\n    return -n / 4\n")
    found = getattr(farfield, verb)(*given, **options)
    assert "-n/4" in str(found) or verb == "lint" or "tail" in options


def test_a_value_without_a_place_is_refused(refusal):
    for verb, given, places in (
        ("trf", ("alibi", "1/100", 64), "a bias and eps"),
        ("check", ("-n", "x"), "a bias"),
    ):
        told = f"^{verb} has {len(given)} values before its options; accepted: {places}, all else"
        refusal(told, getattr(farfield, verb), *given, head=1)
    real = {"a": "real"}
    refusal(r"^check: assumptions goes", farfield.check, "-a*n", assume=real, assumptions=real)
    found = farfield.check("-a*n", assumptions=real, head=1)
    assert found.verdict.value == "conditional"


def test_a_claim_is_asked_for_by_its_id_in_each_way():
    (found,) = farfield.claims("qin2024.eq13")
    same = (re.sub(r"[\d.]+ s\b", "", str(x)) for x in (found, farfield.papers("qin2024.eq13")))
    assert len({*same}) == 1  # but for the seconds that each took
    assert farfield.claims("qin2024.eq13", kind="experiment") == []


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("torch", r"audit needs torch, which is not installed; .*farfield\[train\]"),
        ("transformers", r"audit needs transformers, .*farfield\[hf\]"),
        ("another", "No module named another"),
    ],
)
def test_a_library_that_is_missing_is_named_with_what_brings_it(missing, said, monkeypatch):
    error = ModuleNotFoundError(f"No module named {missing}", name=missing)
    monkeypatch.delitem(vars(farfield), "audit", raising=False)
    monkeypatch.setattr(farfield, "_load", Mock(side_effect=error))
    monkeypatch.setattr("farfield.validation.optional.find_spec", lambda name: None)
    kind = ModuleNotFoundError if missing == "another" else farfield.InputError
    with pytest.raises(kind, match=said):
        _ = farfield.audit
