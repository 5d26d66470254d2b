import pytest


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """The path of a file of words, of which runs train on nine tenths."""
    path = tmp_path_factory.mktemp("text") / "words.txt"
    path.write_text("".join(f"line {k}, the cat sat on the mat\n" for k in range(3000)))
    return str(path)
