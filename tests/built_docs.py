"""The search of the documentation as built, by `make docs`: a reader's word leads to its page."""

import json
import re
from pathlib import Path

import pytest
from sphinx.search.en import SearchEnglish

BUILT = Path(__file__).parents[1] / "docs" / "_build" / "html" / "searchindex.js"


@pytest.fixture(scope="module")
def index():
    script = BUILT.read_text(encoding="utf-8")
    return json.loads(re.fullmatch(r"Search\.setIndex\((.*)\);?\s*", script, re.DOTALL)[1])


def test_side_bars_have_names_and_the_keyboard_reaches_code():
    pages = [page.read_text(encoding="utf-8") for page in BUILT.parent.rglob("*.html")]
    tags = {tag for text in pages for tag in re.findall(r"<(?:aside|pre)\b[^>]*>", text)}
    tags |= {tag for text in pages for tag in re.findall(r"<div[^>]*table-wrapper[^>]*>", text)}
    assert {tag.split()[0] for tag in tags} == {"<aside", "<pre", "<div"}
    for tag in tags:
        assert ("aria-label=" if "aside" in tag else "tabindex=") in tag, tag


def found(index, word):
    """The pages whose title or text has a word, as the page of the search looks them up."""
    stem, pages = SearchEnglish({}).stem(word), set()
    for kind in ("titleterms", "terms"):
        numbers = index[kind].get(stem, [])
        pages |= {index["docnames"][k] for k in ([numbers] if type(numbers) is int else numbers)}
    return pages


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("alibi", "atlas/alibi"),
        ("t5", "atlas/t5"),
        ("rope", "atlas/rope"),
        ("install", "tutorial"),
        ("mixture", "theory/mixtures"),
        ("window", "serve"),
        ("hybrid", "train"),
        ("glossary", "glossary"),
        ("encoding", "choose"),
        ("cache", "cache"),
        ("module", "bring"),
        ("bibtex", "reference/commands"),
        ("needle", "beside"),
    ],
)
def test_a_word_leads_to_its_page(index, word, page):
    assert page in found(index, word)


@pytest.mark.parametrize(
    ("words", "page"),
    [("sliding window", "serve"), ("kv cache", "cache"), ("which encoding", "choose")],
)
def test_a_question_finds_its_page_first(index, words, page):
    """A main entry of the index comes before titles and texts that have the words."""
    assert [(index["docnames"][k], main) for k, _, main in index["indexentries"][words]] == [
        (page, True)
    ]


def test_a_word_that_nobody_wrote_is_not_found(index):
    assert found(index, "zyzzyva") == set()
