"""The notebooks run from their first cell to their last, and each last value can be shown."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def shown(source, names):
    """Run a cell and return the value of its last expression, as a notebook does."""
    *body, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        body.append(last)
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return (
        eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        if (isinstance(last, ast.Expr))
        else None
    )


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * ("figure" in path.stem))
        for path in NOTEBOOKS
    ],
)
def test_each_cell_runs_and_shows_its_answer(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in cells(path):
        if cell["cell_type"] == "code":
            value = shown("".join(cell["source"]), names)
            html = getattr(value, "_repr_html_", None)
            assert html is None or len(html()) > 20
            assert value is not None or capsys.readouterr().out.strip()


def test_there_are_three_and_none_keeps_an_output():
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
        assert code and not any(cell["outputs"] or cell["execution_count"] for cell in code)
