"""Standard output that is full, closed or no longer read is no error of this program."""

import subprocess
import sys

import pytest

FULL = "farfield: standard output cannot be written: No space left on device"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "verb, streams, code, told",
    [
        ("check -- -n", "> /dev/full", 2, FULL),
        ("check --help", "> /dev/full", 2, FULL),
        ("--version", "> /dev/full", 2, FULL),
        ("check -- -n", "> /dev/full 2> /dev/full", 2, ""),
        ("check --help", ">&-", 0, ""),
        ("check -- -n", ">&- 2>&-", 0, ""),
    ],
)
def test_streams_that_take_nothing(verb, streams, code, told):
    line = f"{sys.executable} -m farfield {verb} {streams}"
    run = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr.strip()) == (code, "", told)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("verb", ["check -- -n", "check --help", "--help"])
def test_a_reader_that_has_enough_ends_it_in_silence(verb):
    line = f"set -o pipefail; {sys.executable} -m farfield {verb} | head -c 0"
    run = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
