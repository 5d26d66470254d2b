"""The index of checked theorems against the files, the documentation and the ledger, without the
prover; what the prover says of them is checked by `make formal`."""

import json
import tomllib

import pytest
from formal import check

from farfield.theory.formal.checked_statements import (
    HERE,
    carrying,
    definitions,
    proving,
    statements,
)
from farfield.theory.theorems import theorems
from farfield.validation.papers.ledger import checks

INDEX = tomllib.loads((HERE / "index.toml").read_text(encoding="utf-8"))
RECORDED = json.loads((HERE / "statements.json").read_text(encoding="utf-8"))


def test_no_proof_is_open_and_the_index_is_complete():
    check.check_text()
    check.check_index(check.library(), INDEX)


def test_the_recorded_statements_are_of_the_theorems_that_are_there():
    now = check.library()
    assert {file: [(s["name"], s["says"]) for s in said] for file, said in RECORDED.items()} == now
    assert all(s["statement"].strip() for said in RECORDED.values() for s in said)


def test_what_the_index_names_exists():
    claims = {c.id for c in checks()}
    assert len(statements()) == sum(map(len, INDEX.values())) > 100
    for s in statements():
        assert set(s.proves) <= set(theorems()), s.place
        assert set(s.claims) <= claims, s.place
        assert all(s in proving(name) for name in s.proves)
        assert all(s in carrying(name) for name in s.claims)


def test_the_theorems_asked_for_are_there():
    named = {t for s in statements() for t in s.proves}
    assert named >= {
        "window-error",
        "theorem-0.4",
        "equivalence",
        "two-sided",
        "jensen",
        "theorem-0.5",
        "crossover",
        "certified-window",
        "ladder",
        "trf-alibi",
        "bounded-logits",
        "gated-decay",
        "stick-breaking",
        "kept-sinks",
        "row-certificate",
    }
    assert {s.item for s in statements()} == {1, 2, 4, 5, 6, 7, None}
    printed = {s.place: " ".join(s.printed.split()) for s in statements()}
    assert "Numbers.trf_slope_256th" in printed and "1179" in printed["Numbers.trf_slope_256th"]
    assert printed["catalogue.kerple_log"].endswith("<-> r1 > 1")


def test_definitions_are_shown_without_their_lemmas():
    shown = [*definitions("Windowable")]
    assert [text.partition(" *)\n")[2].split()[:2] for text in shown] == [
        ["Definition", "uniformly_windowable"],
        ["Definition", "reachable"],
    ]
    others = ("Lemma", "Theorem", "Ltac")
    whole = "\n".join(text for file in HERE.glob("*.v") for text in definitions(file.stem))
    assert not any(line.startswith(others) for line in whole.split("\n"))
    assert [*definitions("Leak")] == [
        "Definition leak (b : nat -> R) (m n : nat) : R := 1 - partial b m / partial b n."
    ]


@pytest.mark.parametrize(
    "fault",
    [
        "Lemma a : 1 = 2. Proof. Admitted.",
        "Lemma a : 1 = 2. Proof. admit. Qed.",
        "Axiom free : 1 = 2.",
        "Parameter x : R.",
        "Unset Guard Checking.",
        "Conjecture c : 1 = 2.",
    ],
)
def test_an_open_proof_or_an_axiom_is_found(tmp_path, fault):
    (tmp_path / "Fault.v").write_text(f"(** Said. *)\n{fault}\n")
    with pytest.raises(check.Failure, match=r"Fault\.v"):
        check.check_text(tmp_path)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (lambda leak: [*leak, ("unlisted", "Said.")], r"not listed in index\.toml: Leak\.unlisted"),
        (lambda leak: [], r"and not there: Leak"),
        (lambda leak: [(name, "") for name, _ in leak], "without a comment above"),
    ],
)
def test_a_theorem_that_is_not_listed_or_not_there_is_found(changed, why):
    found = check.library()
    with pytest.raises(check.Failure, match=why):
        check.check_index(found | {"Leak": changed(found["Leak"])}, INDEX)


def test_only_the_axioms_of_the_classical_reals_are_let_through():
    assert len(check.CLASSICAL) == 4
    check.check_axioms(set(check.CLASSICAL))
    check.check_axioms({*check.CLASSICAL, "PrimInt63.add"}, machine=True)
    for used, machine in (({"Fault.free"}, True), ({"PrimInt63.add"}, False)):
        with pytest.raises(check.Failure, match="axioms beyond"):
            check.check_axioms(used, machine)


def test_another_statement_is_found():
    with pytest.raises(check.Failure, match="not what the prover prints"):
        check.check_statements(RECORDED, RECORDED | {"Leak": []})


def test_no_prover_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check.main([]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "apt-get install coq" in said and "opam install" in said
