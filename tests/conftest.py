"""Reproducible examples, and no silent gap: a skip that ``pyproject.toml`` does not allow fails."""

import collections
import gc
import importlib.util
import os
import sys
import tomllib
import zlib
from pathlib import Path

import pytest
from hypothesis import settings

# Run by name alone: the built documentation, a browser, and the recorded answers.
collect_ignore = [
    "built_docs.py",
    "figures/browser_pages.py",
    "pinned/check.py",
    "pinned/record.py",
]
os.environ.setdefault("FARFIELD_TRACEBACK", "1")  # a bug is a traceback
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests themselves run side by side
settings.register_profile("farfield", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("farfield")
gc.disable()  # until what the tests import is there


def pytest_collection_finish():
    """The collector of cycles leaves out what was imported: it lives as long as the run."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_addoption(parser):
    parser.addoption("--slow-part", metavar="K/N", help="of the slow tests part K of N alone")


def pytest_report_header(config):
    part = config.getoption("slow_part")
    return f"slow tests: part {part}" if part else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark as slow all but every k-th case of a test that is sampled(k); of what is slow, keep the
    part that is asked for. Parts are by name, so that a new test moves no other."""
    seen = collections.Counter()
    for item in items:
        if marker := item.get_closest_marker("sampled"):
            place = item.path, item.originalname
            if seen[place] % marker.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[place] += 1
    if part := config.getoption("slow_part"):
        k, parts = map(int, part.split("/"))
        aside = {
            item
            for item in items
            if item.get_closest_marker("slow") and zlib.crc32(item.nodeid.encode()) % parts != k - 1
        }
        config.hook.pytest_deselected(items=list(aside))
        items[:] = [item for item in items if item not in aside]


@pytest.fixture(scope="session")
def tiny_runs(tmp_path_factory):
    """A folder of runs that modules share: a model of the same settings is trained once."""
    return tmp_path_factory.mktemp("tiny_runs")


@pytest.fixture(scope="session")
def tiny_study(tiny_runs):
    """A study of five encodings, four of them with tiny models, and what was chosen."""
    from farfield.theory.encodings import encoding
    from farfield.validation.study.study import survey

    chosen = [(x, encoding(x)) for x in ("type1", "nope", "alibi", "rope", "kerple_log")]
    trained = [name for name, _ in chosen[:4]]
    return survey(chosen, train=trained, preset_name="tiny", store=tiny_runs), chosen


@pytest.fixture(scope="session")
def saved_bloom():
    """Saves a small model of the library, its weights random, in a folder."""
    transformers = pytest.importorskip("transformers")

    def saved(folder, **sizes):
        transformers.set_seed(0)
        config = transformers.BloomConfig(vocab_size=256, hidden_size=32, **sizes)
        transformers.BloomForCausalLM(config).save_pretrained(folder)

    return saved


FILES = {
    "plan.toml": """title = "one idea"

[[runs]]
encoding = "-2*log(1+n)"
preset = "tiny"
seed = [0]
""",
    "text.txt": "the quick brown fox jumps over the lazy dog\n" * 3000,
    "code.py": "def alibi(q, k):\n    return -(q - k) / 8\n",
    "model.py": """from torch import nn

def bias(n):
    return -n / 8

def score_mod(score, b, h, q, k):
    return score - (q - k) / 8

class Class(nn.Module):
    def forward(self, q, k, i, j):
        return -(i[:, None] - j)[None] / 8.0
""",
}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, saved_bloom):
    """A folder with what the help and the reference name: a model, a text, a plan and code."""
    place = tmp_path_factory.mktemp("workplace")
    saved_bloom(place / "model", n_layer=2, n_head=4)
    config = (place / "model" / "config.json").read_text()
    for name, text in (FILES | {"config.json": config}).items():
        (place / name).write_text(text)
    return place


@pytest.fixture(scope="session")
def program():
    """A program of the repository as a module, by its path; it finds its neighbours."""

    def loaded(path):
        file = Path(__file__).parents[1] / path
        sys.path.append(str(file.parent))
        spec = importlib.util.spec_from_file_location(f"program_{file.stem}", file)
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # for dataclasses
        spec.loader.exec_module(module)
        return module

    return loaded


@pytest.fixture(scope="session")
def refusal():
    """How a call is refused: as bad input, in one line in which a pattern is found. Gives it."""
    from farfield.theory.answers.errors import InputError, InternalError

    def refusal(pattern, call, *given, **options):
        with pytest.raises(InputError, match=pattern or None) as error:
            call(*given, **options)
        assert "\n" not in str(error.value) and not isinstance(error.value, InternalError)
        return str(error.value)

    return refusal


@pytest.fixture
def complaint(run):
    """The one line with which the command line refuses what is typed, and answers nothing."""

    def complaint(*words):
        code, out, err = run(*words)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        return err

    return complaint


@pytest.fixture
def run(capsys):
    """The command line as a user calls it: exit code, standard output, standard error."""
    from farfield.cli import main

    def run(*args):
        with pytest.raises(SystemExit) as stop:
            main([*map(str, args)])
        said = capsys.readouterr()
        return stop.value.code, said.out, said.err

    return run


def silent_gaps(config):
    """The ids and reasons of the tests that neither passed nor failed, without the allowed ones."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is None:  # a worker of pytest-xdist; the controller hears of its reports
        return []
    text = (config.rootpath / "pyproject.toml").read_text(encoding="utf-8")
    allowed = tomllib.loads(text)["tool"]["farfield"]["allowed_skips"]
    reports = terminal.stats.get("skipped", []) + terminal.stats.get("xfailed", [])
    found = [(report.nodeid, reason(report)) for report in reports]
    return [(test, why) for test, why in found if test not in allowed and why not in allowed]


def reason(report):
    if hasattr(report, "wasxfail"):
        return report.wasxfail.removeprefix("reason: ")
    return report.longrepr[2].removeprefix("Skipped: ")


def pytest_sessionfinish(session, exitstatus):
    gc.freeze()  # what is left ends with the process
    if exitstatus == pytest.ExitCode.OK and silent_gaps(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    if gaps := silent_gaps(config):
        terminalreporter.section("not in allowed_skips of pyproject.toml", red=True)
        for test, why in gaps:
            terminalreporter.line(f"{test}: {why}")
