# Every target runs in $(VENV); PIP_ARGS reaches the pip call that fetches the dependencies.
PYTHON ?= python3
VENV ?= .venv
PIP_ARGS ?=
PARTS ?= 10
PYTEST_ARGS ?= -n auto --maxprocesses 2 --dist loadfile
BROWSER ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
AXE ?= axe-core@4.14.1
pip := $(VENV)/bin/python -m pip --disable-pip-version-check
examples := --doctest-glob=README.md --doctest-modules --pyargs farfield
strict := --config-settings editable_mode=strict

.PHONY: test test-slow test-part mutants pinned findings formal formal-random demo figures gpu bench sm90 docs browser lint \
	types install clean

test: install  ## the tests, and every example of the documentation
	$(VENV)/bin/pytest $(PYTEST_ARGS) $(examples) tests/ README.md

test-slow: install  ## the same with the tests marked slow
	$(VENV)/bin/pytest $(PYTEST_ARGS) -m "" $(examples) tests/ README.md

test-part: install  ## of the slow tests the part of today: each has its turn within PARTS days
	$(VENV)/bin/pytest $(PYTEST_ARGS) -m slow tests/ \
		--slow-part $$(( $$(date +%j | sed 's/^0*//') % $(PARTS) + 1 ))/$(PARTS)

mutants: install  ## small bugs in ROOM, N of them drawn by SEED: those that no test finds
	nice -n 19 $(VENV)/bin/python benchmarks/mutants.py $(ROOM) --count $(or $(N),20) \
		--seed $(or $(SEED),1) --limit-s $(or $(LIMIT),120)

pinned: install  ## every recorded answer again, by the public names alone
	$(VENV)/bin/python tests/pinned/check.py

findings: install  ## every row of the findings, counted again from the committed files: ok or not
	$(VENV)/bin/python experiments/findings .

formal: install  ## theorems and certificates by the prover; 70 random ones, altered ones refused
	$(VENV)/bin/python tests/formal/check.py
	$(VENV)/bin/python benchmarks/certificates.py --count 70 --mutants 12

formal-random: install formal  ## 500 random certificates by the prover, 100 altered ones refused
	$(VENV)/bin/python benchmarks/certificates.py

demo:  ## an idea beside ALiBi and no bias: theory, three small models, a page
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	if test -e $(VENV)/installed; then $(MAKE) --silent install; \
		else $(pip) install $(PIP_ARGS) --quiet '.[train]'; fi
	$(VENV)/bin/farfield demo

figures: install  ## every figure and table of the papers, its data, what agrees
	$(VENV)/bin/farfield figures --out out/figures

gpu: install  ## what only a GPU measures, 6 minutes at most; begun again, it continues
	$(VENV)/bin/python benchmarks/gpu.py --out out/gpu

bench: install  ## the harness beside a plain model without a bias: speed and memory
	$(VENV)/bin/python benchmarks/harness.py

sm90: install out/sm90/installed  ## the GPU path for an H100 without one: memory, spills, numbers
	export PYTHONPATH=$$(ls -d build/__editable__*); \
	out/sm90/bin/python benchmarks/sm90.py; compiled=$$?; \
	out/sm90/bin/python benchmarks/sm90_numbers.py && exit $$compiled

out/sm90/installed:  # the CUDA build of the torch of $(VENV), several GB
	$(PYTHON) -m venv out/sm90
	out/sm90/bin/python -m pip install $(PIP_ARGS) --quiet setuptools safetensors cyclopts rich \
		$$($(pip) list --format freeze | grep -E '^(torch|numpy|scipy|sympy|python-flint|mpmath|pydantic|lazy.loader)=' \
		| sed -e 's/+cpu//' -e 's/^torch==/torch===/')
	touch $@

docs: install $(VENV)/documented  ## the documentation: its examples and scripts run, no warning, its search finds
	$(VENV)/bin/pytest --quiet --doctest-glob='*.md' --doctest-modules docs/*.md docs/theory docs/pages.py docs/essay.py
	test -e docs/_build/whole || rm -rf docs/_build docs/examples  # parts of a build that was stopped
	rm -f docs/_build/whole
	touch docs/*.md  # entries of the index are kept of those pages alone that a build reads
	$(VENV)/bin/python -m sphinx -W --keep-going --quiet --builder html docs docs/_build/html
	touch docs/_build/whole
	$(VENV)/bin/pytest --quiet tests/built_docs.py

browser: install $(VENV)/browser  ## the pages in a headless browser, which is fetched where there is none
	BROWSER=$$(command -v $(or $(BROWSER),chromium)) \
	AXE=$(VENV)/browser/node_modules/axe-core/axe.min.js \
		$(VENV)/bin/pytest --quiet tests/figures/browser_pages.py

# A check that passes where there is no browser checks nothing: one try to fetch what is missing.
$(VENV)/browser: $(VENV)/installed
	@command -v $(or $(BROWSER),chromium) npm > /dev/null || { echo "no browser: from Debian"; \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends \
		$$(command -v $(or $(BROWSER),chromium) > /dev/null || echo chromium) \
		$$(command -v npm > /dev/null || echo npm); } || { \
		echo "the pages need a browser: apt-get install chromium npm, or BROWSER=PATH"; exit 1; }
	$(pip) install $(PIP_ARGS) --quiet $(strict) --editable '.[browser]'
	npm install --silent --no-save --prefix $@ $(AXE)
	touch $@

lint: install  # the contracts are read from the installed package, as the types are
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports

types: install  # the installed package, since the rooms import each other by that name
	$(VENV)/bin/mypy -p farfield

# Before each target, since the strict mode links the modules that exist at this moment. The
# lenient mode would not do: neither mypy nor doctests find the package in it.
install: $(VENV)/installed
	@$(pip) install --quiet --no-deps --no-build-isolation $(strict) --editable .
	@$(VENV)/bin/python -m compileall -q build/__editable__*  # the command line starts a third faster

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(pip) install $(PIP_ARGS) $(strict) --editable '.[train,dev]'
	touch $@

$(VENV)/documented: $(VENV)/installed
	$(pip) install $(PIP_ARGS) --quiet $(strict) --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build docs/_build docs/examples *.egg-info .*_cache .hypothesis
	git clean -fdXq theory/formal
