"""A model without training is named as what it is by every verb that reads one."""

import json

import pytest


@pytest.fixture(scope="module")
def untrained(tmp_path_factory, saved_bloom):
    """A folder with a model of random weights, and a text."""
    folder = tmp_path_factory.mktemp("untrained")
    saved_bloom(folder / "model", n_layer=1, n_head=2)
    (folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 500)
    return folder


FAR = ("--length", "16", "--to", "64")
VERBS = {
    "perplexity": ("--length", "16", "--samples", "8"),
    "measure": ("--length", "32", "--segments", "2", "--context", "16"),
    "window --model": ("--length", "16", "--segments", "2"),
    "foresee": FAR,
    "foresee --quick": FAR,
    "mend": (*FAR, "--measure"),
    "mend --quick": FAR,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_names_a_model_without_training(verb, untrained, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    name, *option = verb.split()
    model = (
        [*option, str(untrained / "model")]
        if option == ["--model"]
        else [str(untrained / "model"), *option]
    )
    said = " ".join(run(name, *model, "--text", untrained / "text.txt", *VERBS[verb])[1].split())
    assert "he model has not learned: its loss of 5." in said
    assert "that of a uniform guess (5.545)" in said


def test_training_and_lists_of_runs_name_it_and_a_task_has_no_such_guess(
    untrained, tmp_path, monkeypatch, run
):
    monkeypatch.chdir(tmp_path)
    how = ("--preset", "tiny", "--text", str(untrained / "text.txt"), "--steps", "1")
    for words in (("train", "nope", *how), ("runs",)):
        said = " ".join(run(*words)[1].split())
        assert "he model has not learned: its loss of 5." in said, words
    (kept,) = json.loads(run("runs", "--json")[1])["runs"]
    assert kept["guess"].startswith("the model has not learned")
