"""The report in a headless Chromium: nothing is fetched, nothing overlaps or is cut, light and dark and on paper."""

import json
import re
import shutil
import subprocess
from html import unescape
from itertools import pairwise

import pytest
from written import write_run

from delaysim.analysis.report import Asked, page_of
from delaysim.analysis.report.colours import contrast

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MEASURE = """<script>
for (const fold of document.querySelectorAll('details')) fold.open = true;
const box = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const shown = (e) => e.getClientRects().length > 0;
const all = (selector, within = document) => [...within.querySelectorAll(selector)].filter(shown);
const options = () => all('.option').map((e) => [...document.querySelectorAll('.option')].indexOf(e));
const before = options();
document.querySelectorAll('.switch input')[3].click();
const after = options();
document.querySelectorAll('.switch input')[0].click();
const report = {
  fetched: performance.getEntriesByType('resource').map((e) => e.name),
  width: [document.documentElement.scrollWidth, innerWidth],
  drawings: all('svg').map((svg) => ({box: box(svg), texts: all('text', svg).map((t) => [t.textContent, ...box(t)])})),
  blocks: all('section, h1, nav').map(box),
  panels: all('.panels').map((e) => all('.panel', e).map(box)),
  colours: all('p, h1, h2, a, td, th, li, summary, figcaption, label, pre, svg text').map((e) => {
    const style = getComputedStyle(e);
    return e.tagName === 'text' ? style.fill : style.color;
  }),
  paper: getComputedStyle(document.body).backgroundColor, switched: [before, after],
};
parent.postMessage(JSON.stringify(report), '*');
</script></body>"""
FRAME = """<!doctype html><meta charset="utf-8"><title></title>
<script>onmessage = (message) => { document.title = message.data; };</script>
<iframe src="page.html" width="WIDTH" height="900" style="border: 0"></iframe>"""
"""A window of any width: the browser's own is 500 px or more."""


@pytest.fixture(scope="session")
def chromium():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Lines that lie on one another, so that their labels crowd; many delays, so that ticks do."""
    root = tmp_path_factory.mktemp("runs")
    for estimator in ("gmc", "tic", "grpo", "is", "cispo", "gspo"):
        for delay in (0, 1, 2, 3, 4, 8, 16):
            for seed in range(2):
                right = 0.5 if estimator == "grpo" and delay > 4 else 1.0
                write_run(root, estimator, delay, seed, right=right)
    return page_of([root], {}, Asked())


@pytest.fixture(scope="module")
def look(chromium, page, tmp_path_factory):
    """What the browser makes of the page at a width, and in the dark: measured by a script in a copy without CSP."""
    folder = tmp_path_factory.mktemp("look")
    copy = re.sub(r"<meta http-equiv=[^>]*>", "", page).replace("</body>", MEASURE)
    (folder / "page.html").write_text(copy)

    def looked(width, dark=False):
        frame = folder / f"{width}.html"
        frame.write_text(FRAME.replace("WIDTH", str(width)))
        scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
        options = ("--dump-dom", "--virtual-time-budget=20000", "--window-size=1400,1000", *scheme)
        text = _run(chromium, folder, *options, frame.as_uri())
        return json.loads(unescape(re.search(r"<title>(.*?)</title>", text, re.S).group(1)))

    return looked


def _run(chromium, folder, *arguments):
    base = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
    return subprocess.run([chromium, *base, *arguments], check=True, capture_output=True, text=True, timeout=300).stdout


@pytest.fixture(scope="module")
def wide(look):
    return look(1280)


@pytest.fixture(scope="module")
def narrow(look):
    return look(390)


@pytest.fixture(params=["wide", "narrow"])
def seen(request):
    return request.getfixturevalue(request.param)


def test_nothing_is_fetched(seen):
    assert seen["fetched"] == []


def test_the_page_is_no_wider_than_the_window(seen):
    wanted, there = seen["width"]
    assert there in (1280, 390)
    assert wanted <= there


def test_no_words_in_a_drawing_overlap_or_are_cut(seen):
    assert len(seen["drawings"]) > 15
    for drawing in seen["drawings"]:
        left, top, right, bottom = drawing["box"]
        for text, *box in drawing["texts"]:
            assert left - 1 <= box[0], text
            assert box[2] <= right + 1, text
            assert top - 1 <= box[1], text
            assert box[3] <= bottom + 1, text
        texts = drawing["texts"]
        assert not [(a[0], b[0]) for i, a in enumerate(texts) for b in texts[:i] if _overlap(a[1:], b[1:])]


def _overlap(a, b, least=2.0):
    """Whether two boxes share more than a rim."""
    return min(a[2], b[2]) - max(a[0], b[0]) > least and min(a[3], b[3]) - max(a[1], b[1]) > least


def test_sections_and_panels_do_not_overlap(seen):
    assert not [pair for pair in pairwise(seen["blocks"]) if _overlap(*pair)]
    for panels in seen["panels"]:
        assert not [1 for i, a in enumerate(panels) for b in panels[:i] if _overlap(a, b)]


def test_the_switch_shows_one_axis_at_a_time(wide):
    assert wide["switched"] == [[0], [3]]


@pytest.mark.parametrize("dark", [False, True])
def test_words_hold_on_the_paper(look, dark):
    seen = look(1280, dark=dark)
    paper = _hex(seen["paper"])
    assert paper == ("#15181c" if dark else "#ffffff")
    assert min(contrast(_hex(colour), paper) for colour in set(seen["colours"])) >= 4.5


def _hex(rgb):
    return "#" + "".join(f"{int(v):02x}" for v in re.findall(r"\d+", rgb)[:3])


def test_it_prints(chromium, page, tmp_path):
    (tmp_path / "page.html").write_text(page)
    pdf = tmp_path / "page.pdf"
    _run(chromium, tmp_path, f"--print-to-pdf={pdf}", (tmp_path / "page.html").as_uri())
    data = pdf.read_bytes()
    assert data.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", data)) > 3
