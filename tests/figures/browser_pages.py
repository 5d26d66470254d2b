"""The pages in a real browser: nothing overlaps, scrolls sideways, complains or shuts anyone out.

Not collected by name: `make browser` runs it, with chromium, Playwright and axe-core at hand. It
fails where one of them is missing. AXE is the path of axe-core's script, BROWSER that of chromium.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Error, sync_playwright

from farfield import encoding
from farfield.figures.answer_pages import write_audit, write_entry, write_study
from farfield.figures.gallery import draw
from farfield.theory.encodings import CATALOGUE
from farfield.validation.atlas import entry
from farfield.validation.models.audit import audit
from farfield.validation.study.study import study

WIDTHS = (360, 768, 1280, 1920)
SCHEMES = ("light", "dark")
ATLAS = ("alibi", "rope")
EXHIBITS = {
    "perplexity": "qin2024.fig3",
    "use": "farfield.hold-and-use",
    "table": "chi2023.table3-measured",
}
sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
PAGES = ("study", "values", "trained", *ATLAS, "figures", *EXHIBITS, "audit", "essay")
PLACE = "margin: 0; max-width: 700px"
"""What a picture has of the documentation's page, and of a page on GitHub at least."""
MEASURE = Path(__file__).with_name("page_faults.js").read_text(encoding="utf-8")


def written(folder):
    """Every kind of page, on small data."""
    from essay import write_essay  # of the documentation
    from transformers import BloomConfig

    text = folder / "text.txt"
    text.write_bytes(b"the quick brown fox jumps over the lazy dog\n" * 2000)
    pages = {"study": write_study(study(["-log(1+n)^(3/2)", "alibi", "t5"]), folder / "study")}
    values = [-(k**0.5) for k in range(100)]
    pages["values"] = write_study(study(encoding(values)), folder / "values")
    one = study(
        "type1",
        train=True,
        preset="tiny",
        baselines=["nope", "rope"],
        text=text,
        store=folder / "runs",
    )
    pages["trained"] = write_study(one, folder / "trained")
    pages |= {name: write_entry(entry(encoding(name)), folder / name) for name in ATLAS}
    names = [
        *EXHIBITS.values(),
        "qin2024.fig1-right",
        "qin2024.fig7",
        "chi2023.fig7",
        "chi2023.fig8",
        "sun2023.table2",
        "chi2023.fig12",
    ]
    draw(names, folder / "figures")
    pages["figures"] = folder / "figures" / "index.html"
    pages |= {name: folder / "figures" / f"{file}.html" for name, file in EXHIBITS.items()}
    BloomConfig(n_head=12, n_layer=3, hidden_size=96).save_pretrained(folder / "bloom")
    pages["audit"] = write_audit(audit(folder / "bloom"), folder / "audit")
    pages["essay"] = write_essay(folder / "essay.html")
    return pages


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return written(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("BROWSER") or shutil.which("chromium")
    assert path, "no chromium: `make browser` installs it"
    with sync_playwright() as playwright:
        shown = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield shown
        shown.close()


@pytest.fixture(scope="module")
def axe():
    return Path(os.environ["AXE"]).read_text(encoding="utf-8")


@pytest.fixture
def opened(browser, pages):
    """A page of that name in a window of that width; what the browser says of it."""
    contexts = []

    def at(name, width, scheme="light", scripts=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=scripts,
        )
        contexts.append(context)
        page = context.new_page()
        said = []
        page.on("console", lambda m: said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on(
            "request",
            lambda r: said.append(r.url) if not r.url.startswith(("file:", "data:")) else None,
        )
        page.goto(pages[name].as_uri())
        return page, said

    yield at
    for context in contexts:
        context.close()


def shut_out(page, axe, but=(), rules=()):
    """What axe-core finds, of any impact, but for elements and rules that are not about us."""
    page.evaluate(axe)
    run = "but => axe.run({exclude: but}).then(r => r.violations)"
    return [
        (v["id"], [node["html"][:200] for node in v["nodes"]][:3])
        for v in page.evaluate(run, list(but))
        if v["id"] not in rules
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_in_a_browser(opened, axe, name, width, scheme):
    page, said = opened(name, width, scheme)
    for unfolded in (False, True):
        if unfolded:
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        faults = page.evaluate(MEASURE)
        assert faults["scroll"] <= width, "the page scrolls sideways"
        assert not faults["overlaps"]
        assert not faults["cut"]
        assert not faults["crossed"], "a line goes through a label"
        assert not faults["small"], "text below 9 pixels"
        assert not faults["formulas"], "formulas without a box"
    if width in (360, 1280):  # what it checks does not depend on the width otherwise
        assert not shut_out(page, axe)
    assert not said, "messages or requests"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_small_and_whole(pages, name):
    content = pages[name].read_text(encoding="utf-8")
    assert pages[name].stat().st_size < 1_000_000
    assert not re.search(r'(?:src|href)="(?!#|data:|[\w.-]+\.(?:html|svg|csv|tex)")', content), (
        "no other host"
    )


def test_a_table_is_searched_and_sorted(opened):
    page, said = opened("alibi", 1280)
    table = page.locator("table").last
    page.locator("summary", has_text=re.compile(r"^all \d+ rows$")).last.click()
    page.get_by_role("searchbox").last.fill("slopes")
    shown = table.locator("tbody tr:visible").all_inner_texts()
    assert shown and all("slopes" in row for row in shown)
    page.get_by_role("searchbox").last.fill("")
    table.get_by_role("button", name="sort by verdict").click()
    header = [name.split("\n")[0].strip() for name in table.locator("thead th").all_inner_texts()]
    place = next(k for k, name in enumerate(header, 1) if name.startswith("verdict"))
    verdicts = table.locator(f"tbody tr > :nth-child({place})").all_inner_texts()
    assert verdicts == sorted(verdicts) and len(verdicts) > 24
    folds = page.locator("summary", has_text=re.compile(r"^all \d+ rows$"))
    page.locator("details", has_text="quantity").locator("summary").first.click()
    assert folds.count() >= 2
    numbers = page.locator("table", has_text="quantity").last
    numbers.get_by_role("button", name="sort by value").click()
    cells = numbers.locator("tbody td:nth-child(3)").all_inner_texts()
    tokens = [float(cell) for cell in cells if cell.replace(".", "").isdigit()]
    assert tokens == sorted(tokens) and len(tokens) > 10
    assert not said


def test_the_essay_answers_the_hand(opened, pages):
    assert pages["essay"].stat().st_size < 400_000
    page, said = opened("essay", 1280)

    def read(element):
        return page.locator(element).inner_text()

    assert page.locator("code:is(#command, #claim-command) + button.tool").count() == 2
    assert read("#r-verdict") == "diverges"
    page.locator("#r").press("ArrowRight")
    assert read("#r-value") == "1.05" and read("#r-verdict") == "converges"
    for _ in range(19):
        page.locator("#r").press("ArrowRight")
    assert read("#r-held") == "61 tokens hold 99 %."
    before = page.locator("#fade .text span").count()
    page.locator("#cursor").press("ArrowLeft")
    assert page.locator("#fade .text span").count() == before - 3
    assert read("#ratio") == "1.03"
    page.get_by_role("button", name="head 3").click()
    page.get_by_role("button", name="head 5").click()
    assert read("#ratio") == "not measured" and "3 of 8 heads" in read("#ratio-said")
    assert read("#outside-share") == "99.9 %"  # of 10^9 tokens, rounded down
    tiles = page.locator("#found-said div")
    assert tiles.count() == 4 and "no bias" in tiles.nth(3).inner_text()
    page.locator("#found").scroll_into_view_if_needed()
    line = page.locator("#found svg").bounding_box()
    page.mouse.move(line["x"] + line["width"] / 2, line["y"] + line["height"] / 2)
    page.mouse.down()
    page.mouse.move(line["x"] + 58 / 720 * line["width"], line["y"] + line["height"] / 2)
    page.mouse.up()
    assert read("#n-value") == "1 token back"
    page.get_by_role("button", name="−2 log(1+n)", exact=True).click()
    assert page.locator(".proof:visible strong").inner_text() == "converges"
    page.locator("#dots button[tabindex='0']").press("ArrowRight")
    chosen = page.locator("#dots button[aria-pressed='true']").get_attribute("aria-label")
    page.locator("#formula").fill("alert(1)")
    assert "not known here" in read("#formula-said")
    for formula, told in (
        ("1/(n-5)", "too large for this picture at n = 5"),
        ("-abs(sin(n))*n", "changes too fast"),  # a drawing would be flat; the series diverges
        ("log(0*n)", "leaves no weight"),
        ("2n", "2*n"),
    ):
        page.locator("#formula").fill(formula)
        assert told in read("#formula-said") and not page.locator("#own svg").count()
    page.locator("#formula").fill("-sqrt(n)")
    assert read("#command") == 'farfield check "-sqrt(n)"' and page.locator("#own svg").count() == 1
    assert page.get_by_role("slider", name="distance of the needle").count() == 1
    page.reload()  # the state stands in the address
    assert read("#r-value") == "2.00" and read("#ratio") == "not measured"
    assert page.locator("#formula").input_value() == "-sqrt(n)"
    assert page.locator("#dots button[aria-pressed='true']").get_attribute("aria-label") == chosen
    assert page.locator(".proof:visible strong").inner_text() == "converges"
    assert not said


@pytest.mark.parametrize(
    "state", ["r=nonsense&n=-5&heads=2&claim=x&ladder=99", "slope=7&g=1e9", "%"]
)
def test_a_broken_address_of_the_essay_is_no_fault(browser, pages, state):
    page, said = browser.new_page(), []
    page.on("pageerror", lambda e: said.append(str(e)))
    page.goto(f"{pages['essay'].as_uri()}#{state}")
    assert page.locator("#kept svg").count() == 1 and page.locator("#ratios svg").count() == 1
    assert not said
    page.close()


@pytest.fixture(scope="module")
def explorer():
    """The explorer as `farfield explore` runs it, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "farfield", "explore", "-r*log(1+n)", "--headless"]
    process = subprocess.Popen([*command, "--port", str(port)], start_new_session=True)
    yield f"http://127.0.0.1:{port}"
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(30)


INK = """() => {  // whether what is written is brighter than the paper
  const bright = (c) => c.match(/[\\d.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0);
  const shown = getComputedStyle(document.querySelector(".explored"));
  return bright(shown.color) > bright(shown.backgroundColor);
}"""


def answers_at(page, address):
    """Open the explorer as soon as it listens, and wait for its first answer."""
    for _ in range(120):
        try:
            page.goto(address)
            break
        except Error:
            page.wait_for_timeout(500)
    page.wait_for_selector(".explored .sentence", timeout=60_000)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_explorer_in_a_browser(browser, explorer, axe, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said, asked = [], []
    page.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: said.append(str(e)))
    page.on("request", lambda r: asked.append(r.url))
    answers_at(page, explorer)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    faults = page.evaluate(MEASURE)
    assert not any(faults[k] for k in ("cut", "overlaps", "crossed", "small"))
    assert page.evaluate(INK) == (scheme == "dark")
    if width in (360, 1280):
        # marimo's own: its menu, a page without landmarks, titles of folds that are headings
        shell = {"but": ['button[aria-haspopup="menu"]'], "rules": ("region", "heading-order")}
        assert not shut_out(page, axe, **shell)
    assert page.locator("text=At r = 1: diverges").count() == 1
    page.get_by_role("slider").press("ArrowRight")
    page.wait_for_selector("text=At r = 9/8: converges", timeout=30_000)
    page.wait_for_url("**r=9%2F8")  # the state stands in the address
    page.reload()
    page.wait_for_selector("text=At r = 9/8: converges", timeout=60_000)
    typed = page.get_by_label("A formula in n")
    typed.fill("-r*log(1+n")
    typed.blur()
    page.wait_for_selector("text=column 11", timeout=30_000)
    page.wait_for_selector("text=At r = 9/8: converges", timeout=30_000)  # the last answer stands
    page.get_by_role("button", name="one local head of eight").click()
    page.wait_for_selector("text=−n/4", state="attached", timeout=60_000)
    assert typed.input_value() == "[-n/4; 0 x7]"
    assert not said
    assert all(url.startswith((explorer, "data:", "blob:")) for url in asked)
    page.close()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Every entry of the atlas, every figure, a mixture, the pictures of the documentation."""
    folder = tmp_path_factory.mktemp("pictures")
    for e in CATALOGUE.values():
        subject = encoding(e.name, **e.trained(64))
        write_entry(entry(subject), folder / "atlas" / e.name)
    draw((), folder / "figures")
    write_study(study("[-n/4; 0 x7]"), folder / "mixture")
    for drawn in (Path(__file__).parents[2] / "docs" / "_static").glob("*.svg"):
        text = drawn.read_text(encoding="utf-8")
        frame = f"<style>body > svg {{max-width: 100%}}</style><body style='{PLACE}'>{text}"
        (folder / f"{drawn.stem}.html").write_text(frame)
    return sorted(folder.rglob("*.html"))


@pytest.mark.parametrize("width", (360, 1280))
def test_no_picture_has_a_small_or_crossed_label(browser, pictures, width):
    page, found = browser.new_page(viewport={"width": width, "height": 900}), {}
    for path in pictures:
        narrow = path.with_stem(f"{path.stem}-narrow")
        if "narrow" in path.stem if width > 360 else narrow in pictures:
            continue  # phones alone are shown that one, and not the other
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        faults = page.evaluate(MEASURE)
        seen = {k: v for k, v in faults.items() if v and k != "scroll"}
        found |= {f"{path.parent.name}/{path.name}": seen} if seen else {}
    assert len(pictures) > 80 and not found
    page.close()


def test_faults_are_found(browser):
    """The measure sees what it is there to see."""
    page = browser.new_page(viewport={"width": 360, "height": 600})
    page.set_content(
        '<p style="height:1rem;margin:0">one line</p><p style="margin:-1rem 0 0">another</p>'
        '<div style="width:900px">wide</div><svg viewBox="0 0 90 20" width="90"><text x="70" '
        'y="15" font-size="12">too long</text></svg>'
        '<svg class="curve" aria-label="x" viewBox="0 0 200 20" width="60" font-size="12"><g '
        'class="line"><path d="M0 12H200" stroke="red"/></g><text class="name" y="16">through'
        "</text></svg>"
    )
    faults = page.evaluate(MEASURE)
    assert faults["scroll"] > 360 and faults["overlaps"] and faults["cut"]
    assert faults["crossed"] == ["through"] and faults["small"]
    page.close()
