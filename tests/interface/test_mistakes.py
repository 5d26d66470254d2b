"""Plausible slips at the command line: one line says what is wrong, where, and what to type."""

import io
import re

import pytest

SLIPS = {
    # formulas and names
    ("check", r"hBc\sqrt{n}\log(1+n)/50$"): r"what a shell makes of \$-; .* between single quotes",
    ("check", "hmBn$"): r"what a shell makes of \$-",
    ("check", r"hB\sqrt{n}\,\log(1+n)/50$"): r"what a shell makes of \$-",
    ("check", r"ehB\log(1+n)"): r"what a shell makes of \$-",
    ("check", "ehuB2*log(1+n)$"): r"what a shell makes of \$-",
    ("trf", "himBHs-2*log(1+n)"): r"what a shell makes of \$-",
    ("check", "-logg(1+n)"): r"column 2: unknown function 'logg'; did you mean 'log'\?",
    ("check", "-2log(1+n"): r"column 10: expected '\)'",
    ("check", "-2*log(1+i)"): r"column 10: i may mean .* write another letter",
    ("check", "-2*log(1+m)"): r"has no n, the distance; did you mean n for m\?",
    ("check", "-x^2"): r"did you mean n for x\?",
    ("check", "-0,5*n"): r"column 3: .* a decimal number has a point, 0.5",
    ("check", "-n/0"): r"column 4: is undefined \(a division by zero\)",
    ("check", "ropee"): r"did you mean 'RoPE'\?",
    ("atlas", "foo"): r"'foo' is neither .*; the nearest of \d+: (\w+, ){2}\w+$",
    ("check", "-alibi"): r"alibi may mean the encoding ALiBi, written -m\*n",
    ("check",): r'farfield check "-2\*log\(1\+n\)"',
    ("-log(1+n)",): r"a verb comes first: farfield study '-log\(1\+n\)'",
    ("alibi",): r"a verb comes first: farfield study 'alibi'",
    # parameters
    ("check", "alibi", "--set", "c=3"): r"no parameter or option 'c' \(parameters: m\)",
    ("check", "alibi", "--set", "a 3"): r"'a 3': expected NAME=VALUE, as --set r1=6/5",
    ("check", "-k*n", "--set", "k:3"): r"'k:3': expected NAME=VALUE",
    ("check", "-a*n*b", "--set", "a=3", "b=0.5"): r"'b=0.5' .* --set b=0.5$",
    ("check", "-a*log(1+b*n)", "a=3"): r"'a=3' .* --set a=3$",
    ("trf", "eps=0.01", "-n"): r"'eps=0.01' .* as an option: --eps=0.01$",
    ("study", "alibi", "--m", "0.5"): r"no option --m; ",
    ("check", "-n", "--head", "3"): r"--head 3: -n has one head; leave the option out",
    ("check", "alibi", "--heads", "many"): r"--heads 'many' is not known; accepted: a whole number",
    # numbers
    ("trf", "-n", "--eps", "99"): r"eps 99 is out of range; accepted: a number in \(0, 1\)",
    ("trf", "-n", "--eps", "0"): r"eps 0 is out of range",
    ("trf", "-n", "--eps", "5e-2,1e-2"): r"write --eps 5e-2 --eps 1e-2$",
    ("trf", "-n", "--eps", "1", "%"): r"'%' is a unit, which is not written; write 1%",
    ("trf", "-n", "0.01"): r"'0.01' is a number beside formulas; .* --eps 0.01$",
    ("trf", "-n", "4k"): r"'4k' is a number beside formulas; .* --length 4k$",
    ("trf", "-n", "--length", "8192", "tokens"): r"'tokens' is a unit, .*; write 8192$",
    ("trf", "-n", "--length", "4,096"): r"length '4,096' is not a number; accepted: .* 4k",
    ("trf", "-n", "--dtype", "fp8"): r"dtype 'fp8' is not known; accepted: fp16, bf16",
    ("reach", "-n", "--advantage", "7nats"): r"7nats is no finite number; accepted: .* nats",
    ("study", "-n", "--trained", "1k", "--tested", "512"): r"tested = 512 must be above",
    ("forecast", "-n", "--trained", "64", "--tested", "9"): r"tested = 9 must be above trained",
    # options
    ("trf", "-n", "-e", "1%"): r"-e is no option, .* did you mean --eps",
    ("check", "-v", "-n"): r"-v is no option, .* did you mean --verify",
    ("trf", "-n", "--epsilon", "1%"): r"no option --epsilon; did you mean --eps\? .*\d+: --eps",
    ("check", "-n", "--expected", "converges"): r"did you mean --expect\?",
    ("check", "-n", "--ce", "x.v"): r"no option --ce; did you mean --certificate\?",
    ("trf", "-n", "--m", "3"): r"no option --m; did you mean --mixing\?",
    ("study", "-n", "--b", "3"): r"no option --b; did you mean --budget\?",
    ("trf", "-n", "--eps"): r"--eps has no value \(.*0.01, 1/100 or 1%",
    ("compare", "-n"): r"two formulas or more, as farfield compare alibi .*; 1 given",
    ("design", "-a*n"): r"needs a target, as trf=512; accepted: trf, leak",
    ("design", "-n", "--trf", "64"): r"-n has no free parameter; accepted: .* as c\*\(-n\)",
    ("map", "-a*n"): r"as --a 0.01:1; 0 are given",
    ("map", "-a*n", "--a", "0.1-1"): r"range of a '0.1-1': accepted .* 0.01:1",
    ("map", "-a*n", "a=0.1:1"): r"'a=0.1:1': write --a 0.1:1$",
    ("plot", "-n", "--what", "TRF"): r"did you mean 'trf'\?",
    ("plot", "-n", "--out", "x.jpg"): r"names that end with .svg, .png, .pdf",
    # files, models, papers and verbs
    ("study", "-n", "--out", "/proc/x"): r"output folder '/proc/x': No such file",
    ("check", "-n", "--csv", "--latex"): r"--latex and --csv are several forms of one answer",
    ("trf", "-n", "--json", "--csv"): r"--json and --csv are several forms of one answer",
    (
        "compare",
        "-n",
        "-2*n",
        "--csv",
        "--proof",
    ): r"--latex and --csv write rows, ",
    ("train", "64"): r"'64' is a number, .* accepted: a formula in n, or nope",
    ("train", "alibi", "--preset", "big"): r"preset 'big' .*; accepted: a TOML file, or demo",
    ("train", "alibi", "--text", "no.txt"): r"text 'no.txt' does not exist; accepted: a file",
    ("train", "alibi", "--text", "~nobody/x"): r"text '~nobody/x' does not exist; accepted: a file",
    ("erf", "~nobody/x"): r"model '~nobody/x' does not exist; accepted: a folder",
    ("lint", "~nobody/x.py:f"): r"no file '~nobody/x.py'; accepted: a file of Python",
    ("erf", "abc", "--runs", "/nonexistent"): r"run 'abc' names no finished runs .*; there: none",
    ("audit", "meta-llama/Llama-3-8B"): r"download it first: hf download meta-llama/Llama-3-8B",
    ("design", "a.py:f", "--trf", "64"): r"'a.py:f' is code, .*; accepted: a formula in n",
    ("map", "a.py:f", "--a", "1:2"): r"'a.py:f' is code, .*; accepted: a formula in n",
    ("figures", "fig99"): r"figure 'fig99' is not known; the nearest of \d+: \w+",
    ("claims", "qin"): r"no claim 'qin'; the nearest of \d+: qin2024, ",
    ("papers", "fig66"): r"'fig66' is no paper, claim, figure, table or theorem; the nearest",
    ("stdy", "-n"): r"'stdy' is no verb; did you mean 'study'\?",
    ("docter",): r"'docter' is no verb; did you mean 'doctor'\?",
    ("completion", "tcsh"): r"'tcsh' is not known; accepted: bash, zsh, fish",
    ("check", "softmax(-n)"): r"unknown function 'softmax'; the nearest of \d+: \w+",
    ("check", "-a*n", "--assume", "a"): r"'a': expected NAME=DOMAIN, as --assume r1=real",
    ("hlp",): r"'hlp' is no verb; did you mean 'help'\?",
    # options and values that are missing, too many or of another verb
    ("audit", "--model"): r"^farfield: audit: --model has no value \(a folder",
    ("trf", "-(a+b+c+d+f)*n"): r": --set a=VALUE --set b=VALUE --set c=VALUE --set d=VALUE$",
    ("check", "alibi", "--colour", "64"): r"a parameter is written --set colour=64; ",
    ("check", "--colour", "-n"): r"a parameter is written --set colour=VALUE; ",
    ("cite", "--colour=6"): r"cite has no option --colour; accepted: --ascii, --csv",
    ("trf", "-n", "--t", "3"): r"did you mean --trained\?",
    ("atlas", "page"): r"'page' is neither",
    ("check", "-n", "keys"): r"'keys' is neither",
    ("check", "alibi", "--set", "heads=4"): r"--set heads=...: use the option --heads",
    ("check", "-m*n", "--set", "m="): r"'m=': expected NAME=VALUE",
    ("check", "-m*n", "--set", "=3"): r"'=3': expected NAME=VALUE",
    ("compare", "-n", "-n/2", "--set", "b=1"): r"they have: none$",
    ("trf", "-n", "--latex", "--ascii"): r"--latex and --csv write rows, ",
    ("study", "-n", "--baseline", "t5"): r"--baseline, --text and --runs belong to --train",
    ("study", "-n", "--runs", "r"): r"--baseline, --text and --runs belong to --train",
    ("atlas", "alibi", "--list", "--page"): r"a page is that of an encoding",
    ("claims", "qin2024.eq13", "--verdict", "wrong"): r"leave out the id",
    ("check", "-n", "--verify"): r"and --verify with --certificate",
    ("check", "--certificate", "x", "--verify", "--head", "2"): r"checked with --budget alone",
    ("trf", "-n", "--trained", "8", "--layers", "2"): r"take no --layers and no --length",
    ("trf", "-n", "--dtype", "fp16", "--length", "8"): r"take no --layers and no --length",
    ("trf", "-n", "--layer", "-n"): r"--layer has every layer; accepted alone",
    ("trf", "--layer", "-n", "--layers", "2"): r"--layer has every layer; accepted alone",
    ("trf", "--layer", "-n", "--dtype", "fp16"): r"--layer has every layer; accepted alone",
    ("trf", "--layer", "{window"): r"layer '{window' is no table; accepted as in a plan",
    ("reach", "-n", "--logit-bound", "3"): r"--logit-bound needs --length",
    ("window",): r"give a formula, or a model's folder with --model, and not both",
    ("window", "-n", "--model", "F"): r"with --model, and not both",
    ("window", "-n", "--loss", "1%"): r"--length and --segments belong to --model",
    ("window", "-n", "--text", "T"): r"--length and --segments belong to --model",
    ("window", "-n", "--length", "8"): r"--length and --segments belong to --model",
    ("window", "-n", "--segments", "8"): r"--length and --segments belong to --model",
    **{
        ("window", "--model", "F", option, "2"): r"leave the options of formulas out"
        for option in (
            *("--error", "--logit-bound", "--value-bound", "--sinks", "--row", "--temper"),
            *("--gate", "--head"),
        )
    },
    ("perplexity", "F", "--length", "8", "--sinks", "2"): r"--sinks are kept beside a window",
    ("foresee", "F", "--to", "4k", "--quick", "--blame"): r"--quick asks positions alone",
    ("design",): r"give a formula with one free parameter",
    ("design", "-a*n", "--trf", "8", "--head", "1"): r"a design has no --head and no --bca",
    ("design", "-a*n", "--trf", "8", "--bca", "1"): r"a design has no --head and no --bca",
    ("design", "-a*n", "-a*n/2", "--trf", "8", "--plan", "p"): r"--plan goes with one formula",
    ("map", "-a*n", "--a"): r"--a has no range; accepted: --a 0.01:1",
    ("map", "-a*n", "--a", "1:2", "--head", "1"): r"a map draws one formula; accepted: --set",
    ("map", "-a*n", "--a", "1:2", "--heads", "2"): r"a map draws one formula; accepted: --set",
    ("map", "-a*n", "--a", "1:2", "--bca", "2"): r"a map draws one formula; accepted: --set",
    ("explore", "-n", "-n/2"): r"the explorer takes one formula; farfield compare",
    ("train", "-n", "alibi", "--log", "x.csv"): r"--log belongs to one training; several",
    ("train", "-n", "--bias", "alibi", "--log", "x.csv"): r"--log belongs to one training; several",
    # what is out of range, given twice, or no number, domain, file or name
    ("trf", "-log(1+n)", "--eps", "nan"): r"eps 'nan' is not a rational number",
    ("trf", "-log(1+n)", "--length", "0"): r"length 0|whole number from 1",
    ("trf", "-log(1+n)", "--length", "abc"): r"'abc'",
    ("trf", "-log(n)"): r"undefined or infinite at n = 0",
    ("trf", "kerple_log"): r"r1, r2.*--set r1=6/5 --set r2=1",
    ("trf", "-m*n", "--set", "m"): r"'m': expected NAME=VALUE",
    ("trf", "-m*n", "--set", "m=1", "--set", "m=2"): r"twice",
    ("trf", "alibi", "--tested", "64"): r"tested",
    ("trf", "alibi", "--trained", "64", "--length", "8"): r"length",
    ("leak", "alibi", "--trained", "64", "--evaluated", "32"): r"tested",
    ("leak", "alibi", "--dtype", "fp12"): r"dtype 'fp12'",
    ("check", "-a*n", "--set", "a=-1"): r"outside its domain",
    ("check", "-a*n", "--assume", "a=[0, 1)", "--set", "a=2"): r"outside its domain",
    ("check", "-a*n", "--assume", "a=sometimes"): r"sometimes",
    ("check", "-a*n", "--assume", "a=[2,1]"): r"empty interval",
    ("check", "-a*n", "--assume", "a=real", "--assume", "a=positive"): r"twice",
    ("check", "-a*n", "--assume", "log=real"): r"name of a function",
    ("check", "-a*n", "--assume", "n=real"): r"distance",
    ("check", "-n", "--assume", "q=real"): r"q",
    ("check", "-n", "--heads", "0"): r"from 1 to 1024",
    ("check", "-n", "--dialect", "press"): r"no dialect",
    ("check", "alibi", "--dialect", "presss"): r"accepted: press",
    ("check", "alibi", "--set", "delta=2"): r"delta",
    ("check", "alibi", "--hed", "8"): r"no option --hed; did you mean --head\? the nearest of 19: ",
    (
        "check",
        "alibi",
        "--colour=64",
    ): r"a parameter is written --set colour=64; the nearest",
    ("check", "alibbi"): r"did you mean 'ALiBi'",
    ("check", ""): r"empty",
    ("check", "-log(x)"): r"no n, the distance",
    ("check", "log(-n)"): r"not real",
    ("check", "__import__('os')"): r"formula",
    ("check", "-n", "--budget", "-1"): r"a number of seconds, at least 0",
    ("check", "-n", "--budget", "x"): r"is not known; accepted: a number",
    ("check", "-n", "--expect", "maybe"): r"maybe",
    ("check", "-n", "--file", "-"): r"or a list of them with --file",
    ("check", "--file", "-"): r"holds no formula",
    ("check", "--file", "/nowhere/list"): r"cannot read",
    ("check", "--certificate", "/nonexistent", "--verify"): r"/nonexistent",
    ("atlas", "--heads", "3"): r"options describe one encoding; name it",
    ("atlas", "--page"): r"page",
    ("atlas", "alibbi"): r"did you mean 'ALiBi'",
    ("study", "-n", "--text", "somewhere"): r"text",
    ("forecast", "-n/8", "--trained", "64", "--tested"): r"--tested has no value",
    ("audit",): r"needs MODEL",
    ("audit", "a", "b"): r"'b' is one argument too many",
    ("design", "alibi", "--reach", "1", "--reach", "2"): r"--reach is given twice",
    ("trf",): r"give a formula in n.*\[-n/4; 0 x7\]",
    ("train",): r"give a formula in n",
    ("map", "-a*n", "-b*n", "--a", "1:2"): r"a map draws one formula",
    ("trf", "-n", "--trained", "4x"): r"'4x'.*4k \(4096\)",
    ("trf", "-n", "--trained", "50%"): r"no whole number",
    ("trf", "-n", "--trained", "0.3k"): r"no whole number",
    ("trf", "-n", "--eps", "101%"): r"a number in \(0, 1\)",
    ("trf", "-n", "--eps", "1 % %"): r"1 %",
    ("erf", "--model", "x", "--length", "4z"): r"--length '4z'.*4k \(4096\)",
    ("design", "-a*n", "--leak", "<=1%", "--trained", "x"): r"trained 'x'.*4k \(4096\)",
    ("train", "-n", "--tested", "64,x"): r"'x'.*4k \(4096\)",
    ("train", "log(-n)"): r"has no value that 20,480 bits tell",
    ("check", "-n", "-2*n", "--certificate", "x.v"): r"one formula",
    ("check", "-n", "--tail", "cut"): r"a table alone",
    ("compare", "-n", "-n/2", "--tail", "cut"): r"none of the formulas is a table",
    ("check", "[0; -1]"): r"\[0, -1\].*heads",
    ("resolution",): r"give a formula in n",
    ("resolution", "-n", "--length", "1"): r"number from 2",
    ("resolution", "-n", "--scale", "-1"): r"positive number",
    ("resolution", "-n", "--mask", "circle 3"): r"accepted: None",
    ("papers", "windows-error"): r"table or theorem; the nearest of 244: window-error, ",
    ("claims", "qin2024.lema0.2"): r"the nearest of 160: qin2024\.lemma0\.2, ",
    ("claims", "qin2042"): r"no claim 'qin2042'; the nearest of 160: qin2024",
    ("claims", "--verdict", "wrnog"): r"did you mean 'wrong'\?",
    ("figures", "qin2042"): r"qin2024",
    ("claims", "qin2024.eq13", "--kind", "proof"): r"leave out the id",
    ("nonsense",): r"'nonsense' is no verb; the nearest of 30: ",
    ("qin2024.eq13",): r"'qin2024.eq13' is of a paper, .*: farfield papers qin2024.eq13$",
    ("map", "-a*log(1+n)", "--a", "0:1e300"): r"1e100",
    ("map", "-a*log(1+n)", "--a", "1e-200:1"): r"1e-100",
    ("erf", "/nonexistent"): r"does not exist",
    ("forecast", "alibi", "--trained", "64", "--tested", "128", "--layers", "1" * 12): r"10000",
}


@pytest.mark.parametrize("words", SLIPS, ids=" ".join)
def test_a_slip_is_answered_by_one_line_with_the_right_spelling(
    words, complaint, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    err = complaint(*words)
    assert err.startswith("farfield: ") and len(err) < 330
    assert re.search(SLIPS[words], err.strip()), err


@pytest.mark.parametrize(
    ("formula", "hint"),
    [
        ("exp(-n)", "write -n."),
        ("1/(1+n)^2", "write -2*log(n + 1)."),
        ("log(1+n)", "-(log(n + 1))"),
    ],
)
def test_a_weight_or_a_lost_sign_has_a_hint_below_its_verdict(formula, hint, run):
    assert hint in run("check", formula, "--ascii")[1]


def test_a_window_without_a_bound_says_which_one_is_assumed(run):
    _, out, err = run("window", "-n/2", "--error", "0.01")
    assert "nearest 15 tokens" in out and "assumed --logit-bound 1 (" in err
    _, bare, err = run("window", "-n/2")
    assert bare == out and "assumed --error 1% and --logit-bound 1 (" in err


def test_a_folder_in_place_of_a_formula_is_named_as_a_model(tmp_path, complaint, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "llama").mkdir()
    for verb in ("window", "trf", "check"):
        assert "farfield window --model llama" in complaint(verb, "llama")
