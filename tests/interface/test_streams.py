"""Standard output that is full, closed or no longer read is no error of this program."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import farfield
from farfield.__main__ import main
from farfield.cli import application
from farfield.theory.files import write

FULL = "farfield: standard output cannot be written: No space left on device"


@pytest.mark.parametrize(
    "streams, code, told",
    [("> /dev/full", 2, FULL), ("> /dev/full 2> /dev/full", 2, ""), (">&- 2>&-", 0, "")],
)
def test_streams_that_take_nothing(streams, code, told):
    line = f"{sys.executable} -m farfield check -- -n {streams}"
    run = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr.strip()) == (code, "", told)


def test_a_reader_that_has_enough_ends_it_in_silence():
    line = f"set -o pipefail; {sys.executable} -m farfield check --help | head -c 0"
    run = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_program_ends_while_its_progress_is_still_told():
    """As where it is interrupted before the work is over."""
    code = "from farfield.progress_bar import progress; step = progress('work'); step.__enter__()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


class Stream(io.StringIO):
    """Standard output of which each write fails in a way."""

    def __init__(self, error, file):
        super().__init__()
        self.error, self.file = error, file

    def write(self, text):
        raise self.error

    def fileno(self):
        return self.file.fileno()


DISK = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("line", ["check -n", "check --help", "-V", "--version", "version"])
@pytest.mark.parametrize(("error", "code", "told"), [(DISK, 2, FULL), (BrokenPipeError(), 0, "")])
def test_each_way_to_write_meets_a_stream_that_takes_nothing(
    line, error, code, told, monkeypatch, tmp_path, capsys
):
    """In one process, by the words on its command line; what is left to write goes nowhere."""
    with (tmp_path / "file").open("w+") as file:
        monkeypatch.setattr("sys.stdout", Stream(error, file))
        monkeypatch.setattr("sys.argv", ["farfield", *line.split()])
        with pytest.raises(SystemExit) as stop:
            main()
        assert os.path.samestat(os.fstat(file.fileno()), os.stat(os.devnull))
    application.cache_clear()  # a console whose reader is gone stays silent
    assert (stop.value.code, capsys.readouterr().err.strip()) == (code, told)


def test_closed_streams_go_nowhere_and_the_version_is_one_line(monkeypatch, capsys):
    for words in ("-V", "--version", "version"):
        monkeypatch.setattr("sys.argv", ["farfield", words])
        assert main() is None
    assert {*capsys.readouterr().out.split()} == {farfield.__version__}
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    main()
    assert sys.stdout.name == sys.stderr.name == os.devnull


def test_a_file_is_written_in_its_place_and_what_is_no_file_takes_the_content(tmp_path):
    pipe, link, kept = (tmp_path / name for name in ("pipe", "link", "kept"))
    kept.write_bytes(b"old")
    kept.chmod(0o600)
    link.symlink_to("kept")
    write(link, b"new")
    assert link.is_symlink() and kept.read_bytes() == b"new"
    assert kept.stat().st_mode & 0o777 == 0o600
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe, b"through")
    assert os.read(reader, 9) == b"through" and pipe.is_fifo()
    os.close(reader)
    taken, given = os.pipe()
    write(Path(f"/dev/fd/{given}"), b"no name")
    assert os.read(taken, 9) == b"no name"
    os.close(taken)
    os.close(given)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["kept", "link", "pipe"]


def test_what_a_killed_process_left_goes_with_the_next_file(tmp_path, monkeypatch):
    """What is still written stays, as do a file that only begins as they do and one that is empty:
    it may be about to be locked."""
    kill = "import os; os.fsync = lambda file: os.kill(os.getpid(), 9)"
    code = f"{kill}; from pathlib import Path; from farfield.theory.files import write"
    line = [sys.executable, "-c", f"{code}; write(Path('a'), b'half')"]
    assert subprocess.run(line, cwd=tmp_path).returncode == -9
    assert [x.name[:9] for x in tmp_path.iterdir()] == [".partial-"]
    (tmp_path / ".partial-notes").write_bytes(b"mine")
    (tmp_path / ".partial-0123456789abcdef").touch()
    within = iter([b"first", None])
    monkeypatch.setattr(
        os, "fsync", lambda file: next(within) and write(tmp_path / "b", b"in time")
    )
    write(tmp_path / "c", b"whole")
    held = {x.name: x.read_bytes() for x in tmp_path.iterdir()}
    kept = {".partial-notes": b"mine", ".partial-0123456789abcdef": b""}
    assert held == {"b": b"in time", "c": b"whole"} | kept
