"""A function added in one place is known everywhere: its record is all that is written here."""

import json
import math

import numpy as np
import pytest
import sympy
import torch
from proof_checker.checker import check_proof
from proof_checker.numbers import ProofError

from farfield import check_convergence, encoding, theoretical_receptive_field
from farfield.theory.functions import record
from farfield.theory.functions.balls import to_arb
from farfield.theory.functions.record import Function, register


class verhulst(sympy.Function):
    """1/(1 + exp(-x))."""

    def fdiff(self, argindex=1):
        return self * (1 - self)


RECORD = Function(
    node=verhulst,
    names=("verhulst", "sigma"),
    elementary=lambda x: 1 / (1 + sympy.exp(-x)),
    ball=lambda x: 1 / (1 + (-to_arb(x)).exp()),
    expansion=lambda t, e, a: t.transseries(1 / (1 + sympy.exp(-a))),
    array=lambda xp, x: 1 / (1 + xp.exp(-x)),
)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setattr(record, "_RECORDS", {**record._RECORDS})
    register(RECORD)
    yield
    for name in RECORD.names:
        del record.SPELLINGS[name]


BIAS, SAME = "-2*log(n+1)*verhulst(n+1)", "-2*log(n+1)/(1+exp(-n-1))"


def test_the_reader_reads_it_back():
    read = encoding(BIAS).head(1)
    assert (
        read == encoding(str(read)).head(1) == encoding(BIAS.replace("verhulst", "sigma")).head(1)
    )
    assert r"\operatorname{verhulst}" in encoding(BIAS).latex()


def test_its_series_are_decided_and_the_checker_agrees():
    found = check_convergence("-log(n+1)*(1+verhulst(log(n)))")
    assert found.converges is True
    document = json.loads(found.to_json())
    assert "rung" in check_proof(document).computed
    document["proof"]["steps"][0]["values"]["rho"] = "3*log(n)"
    with pytest.raises(ProofError):
        check_proof(document)
    assert check_convergence("-log(n+1)*verhulst(n)").converges is False


def test_its_receptive_fields_are_certified():
    for eps in ("1/10", "1/1000"):
        found, same = (theoretical_receptive_field(f, eps) for f in (BIAS, SAME))
        assert found.tokens == same.tokens > 3 and found.label == same.label == "certified"


def test_its_table_and_its_torch_bias():
    at = np.arange(50)
    exact = [-2 * math.log(t + 1) / (1 + math.exp(-t - 1)) for t in at]
    assert encoding(BIAS).bias(at)[0] == pytest.approx(exact, rel=1e-14)
    a = torch.tensor([2.0], requires_grad=True)
    bias = encoding(BIAS.replace("2", "a")).tensor(50, values={"a": a})
    assert bias[0].tolist() == pytest.approx(exact, rel=1e-5)
    bias.sum().backward()
    assert a.grad.item() == pytest.approx(sum(exact) / 2, rel=1e-5)
