# Every target runs in $(VENV); PIP_ARGS reaches the pip call that fetches the dependencies.
PYTHON ?= python3
VENV ?= .venv
PIP_ARGS ?=
PYTEST_ARGS ?= -n auto --maxprocesses 4
pip := $(VENV)/bin/python -m pip --disable-pip-version-check
examples := --doctest-glob=README.md --doctest-modules --pyargs farfield
strict := --config-settings editable_mode=strict

.PHONY: test test-slow demo lint types install clean

test: install  ## the tests, and every example of the documentation
	$(VENV)/bin/pytest $(PYTEST_ARGS) $(examples) tests/ README.md

test-slow: install  ## the same with the tests marked slow
	$(VENV)/bin/pytest $(PYTEST_ARGS) -m "" $(examples) tests/ README.md

demo: install  ## theory of the catalogue beside eight trained models, as a page
	$(VENV)/bin/farfield report --train --preset demo --out out/demo

lint: $(VENV)/installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: install  # the installed package, since the rooms import each other by that name
	$(VENV)/bin/mypy -p farfield

# Before each target, since the strict mode links the modules that exist at this moment. The
# lenient mode would not do: neither mypy nor doctests find the package in it.
install: $(VENV)/installed
	@$(pip) install --quiet --no-deps --no-build-isolation $(strict) --editable .

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(pip) install $(PIP_ARGS) $(strict) --editable '.[train,dev]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .*_cache .hypothesis
