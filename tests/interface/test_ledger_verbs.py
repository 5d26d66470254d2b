"""The verbs resolution, papers and claims as a user calls them."""

import json


def test_resolution_without_an_answer(run):
    code, out, _ = run("resolution", "xpos")
    assert code == 0 and "xpos_surrogate" in out


def test_a_theorem(run):
    code, out, _ = run("papers", "resolution-bound")
    assert code == 0 and "R <= sum P_i^2 <= 1" in out
    assert "theory/theorems.html#resolution-bound" in " ".join(out.split())
    assert "Attention.error_exact" in run("papers", "window-error")[1]
    assert r"\paragraph" in run("papers", "window-error", "--latex")[1]
    data = json.loads(run("papers", "rotation-decay", "--json")[1])
    assert data["name"] == "rotation-decay" and data["checked"] == []
    assert len(run("papers", "theorems")[1].splitlines()) >= 20
    assert run("prove", "resolution-bound")[:2] == (0, out)


def test_claims_as_a_table_and_one_in_full(run):
    code, out, _ = run("claims", "sun2023", "--kind", "symbolic identity")
    first = "7 claims of 7 sentences of the papers; by sentence: needs a correction 7."
    assert code == 0 and out.startswith(first)
    rows = [line.split() for line in out.splitlines() if "sun2023.eq4.last" in line]
    assert [row[-3:] for row in rows] == [["needs", "a", "correction"]]
    few = run(
        "claims",
        "sun2023",
        "--kind",
        "symbolic identity",
        "--verdict",
        "Needs a correction",
    )[1]
    assert few.startswith("7 claims of 7 sentences")
    code, out, _ = run("claims", "qin2024.type1.total")
    assert code == 0 and "pi^2/6" in out and "again: farfield claims qin2024.type1.total" in out


def test_claims_as_json(run):
    found = json.loads(run("claims", "qin2024", "--kind", "proof", "--json")[1])
    names = {
        "id",
        "paper",
        "place",
        "statement",
        "kind",
        "verdict",
        "label",
        "evidence",
        "corrected",
        "seconds",
    }
    assert len(found) >= 5 and all(names <= set(c) and c["kind"] == "proof" for c in found)
    (one,) = json.loads(run("claims", "sun2023.fp16.centred", "--json")[1])
    assert one["verdict"] == "holds_as_printed"
