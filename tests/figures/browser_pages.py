"""The pages in a real browser: no message in the console, no sideways scroll, all figures drawn.

Not collected by name: `make browser` runs it where a chromium is found.
"""

import os
import re
import subprocess

import pytest

from farfield.figures.gallery import draw
from farfield.figures.pages.audit import write_audit
from farfield.figures.pages.gallery import save
from farfield.figures.pages.report import write_report
from farfield.figures.pages.study import write_study
from farfield.validation.claims import claim
from farfield.validation.outside.audit import audit
from farfield.validation.report import Report
from farfield.validation.study.study import study, survey

BROWSER = os.environ.get("BROWSER", "chromium")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
    "--virtual-time-budget=4000", "--window-size=1400,2000",
)  # fmt: skip
PROBE = """<script>addEventListener('load',()=>{const d=document,
drawn=[...d.querySelectorAll('figure svg')].filter(s=>s.getBoundingClientRect().height>50).length,
formulas=[...d.querySelectorAll('math')].filter(m=>m.getClientRects().length===0
&&!m.closest('details:not([open])')).length;
const e=d.documentElement;
parent.postMessage([e.scrollWidth,e.clientWidth,drawn,formulas].join(' '),'*')})
</script></body>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A study, a survey with trained models, the gallery, and the audit of a model."""
    from transformers import BloomConfig

    folder = tmp_path_factory.mktemp("pages")
    text = folder / "text.txt"
    text.write_bytes(b"the quick brown fox jumps over the lazy dog\n" * 2000)
    study_page = write_study(study(["-log(1+n)^(3/2)", "alibi", "t5"]), folder / "study")
    one = study("type1", train=True, preset="tiny", baselines=["nope", "rope"], text=text,
                store=folder / "runs")  # fmt: skip
    trained = write_study(one, folder / "trained")
    listed = survey([(e.prediction.name, e.prediction.encoding) for e in one.entries])
    ledger = (claim("qin2024.eq7-eq8"), claim("qin2024.thm0.3"))
    whole = write_report(Report(listed, ledger), folder / "whole")
    names = ["qin2024.fig1-right", "qin2024.fig7", "chi2023.fig8", "sun2023.table2", "qin2024.fig3",
             "chi2023.table3-measured", "chi2023.fig12"]  # fmt: skip
    gallery = save(draw(names), folder / "gallery")
    drawn = sum(d.figure is not None for d in gallery.drawn.values())
    BloomConfig(n_head=12, n_layer=3, hidden_size=96).save_pretrained(folder / "bloom")
    audited = write_audit(audit(folder / "bloom"), folder / "audit")
    return {
        "study": (study_page, 2), "trained": (trained, 5), "whole": (whole, 0),
        "gallery": (folder / "gallery" / "index.html", drawn), "audit": (audited, 1),
    }  # fmt: skip


def opened(page, width, folder):
    """What the browser says of a page in a frame of that width: scroll width, width, figures."""
    text = page.read_text(encoding="utf-8").replace("</body>", PROBE)
    (folder / "child.html").write_text(text, encoding="utf-8")
    (folder / "frame.html").write_text(
        "<!doctype html><title>none</title><body><script>addEventListener('message',"
        "e=>document.title=e.data)</script>"
        f"<iframe src=child.html width={width} height=900 style='border:0'></iframe>"
    )
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom",
         (folder / "frame.html").as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    title = re.search(r"<title>([^<]*)", done.stdout)
    assert title and title.group(1) != "none", done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return [int(x) for x in title.group(1).split()], console


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["study", "trained", "whole", "gallery", "audit"])
def test_a_page_in_a_browser(pages, name, width, tmp_path):
    page, figures = pages[name]
    (scroll, inner, drawn, hidden), console = opened(page, width, tmp_path)
    assert not console
    assert scroll <= inner <= width
    assert drawn == figures
    assert hidden == 0, "formulas without a box"
    assert page.stat().st_size < 2_000_000
