"""The report as a page: one file that asks nothing of anyone, and that no text of others can change."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models
from written import LEG, write_run

from delaysim.analysis.plots import SPARE, STYLES
from delaysim.analysis.report import Asked, page_of
from delaysim.analysis.report.blocks import Table
from delaysim.analysis.report.colours import INK, PAPER, contrast, legible, luminance
from delaysim.analysis.report.drawing import DelayAxis, counted, draw
from delaysim.analysis.report.tables import comma_separated, latex, markdown

HOSTILE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</textarea><b>", '" onload="x', "'><svg/onload=x>",
    "{{ 7*7 }}", "]]>", "&lt;i&gt;", "$\\frac{1}{2}$", "\x00\x1b[31m", "\u202egnp", "<!--", "FIG-1 ROOT {{ dark }}",
)  # fmt: skip
TAGS = (
    "html head meta title style body a header p h1 h2 nav ul li main section span div figure figcaption table thead "
    "tbody tr th td details summary pre textarea label input svg g path text defs use clippath rect"
)
ATTRIBUTES = (
    "lang charset name content http-equiv class href id aria-label aria-labelledby role tabindex scope for readonly "
    "rows spellcheck type checked viewbox style d transform clip-path x y width height"
)


class Parsed(HTMLParser):
    """Every tag, attribute and text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attributes]

    def handle_data(self, data):
        self.text += data

    def values(self, name):
        return [value for _, attribute, value in self.attributes if attribute == name]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Runs in which every text that comes from a model, a user or a machine is an attack."""
    root = tmp_path_factory.mktemp("hostile")
    model = root / "model"
    model.mkdir()
    tokenizer = Tokenizer(models.WordLevel({text: i for i, text in enumerate(HOSTILE)}, unk_token=HOSTILE[0]))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.save(str(model / "tokenizer.json"))
    loss = root / "a$b_&.py"
    loss.write_text((Path(__file__).parents[2] / "examples/estimators/my_loss.py").read_text())
    everywhere = " ".join(HOSTILE)
    leg = LEG | {"command": everywhere, "machine": LEG["machine"] | {"cpu": everywhere}, "packages": {everywhere: "1"}}
    changes = {"tokens": list(range(len(HOSTILE))), "leg": leg, "problem": lambda q: f"{everywhere}{q}"}
    pretrained = ("model=pretrained", f"model.path={model}")
    for seed in range(2):
        write_run(root / "runs", "grpo", 0, seed, overrides=pretrained, **changes)
        custom = (*pretrained, f"estimator.path='{loss}'")
        write_run(root / "runs", "custom", 8, seed, overrides=custom, **changes)
    failed = {"state": "failed", "error": everywhere}
    write_run(root / "runs", "grpo", 8, 7, overrides=pretrained, status=failed, log=everywhere, **changes)
    return page_of([root / "runs"], {}, Asked())


@pytest.fixture(scope="module")
def parsed(hostile):
    return Parsed(hostile)


@pytest.mark.slow
def test_nothing_that_others_wrote_becomes_markup(parsed):
    assert set(parsed.tags) <= set(TAGS.split())
    assert {name for _, name, _ in parsed.attributes} <= set(ATTRIBUTES.split())
    assert parsed.tags.count("html") == parsed.tags.count("main") == 1


@pytest.mark.slow
def test_what_others_wrote_is_there_to_read(parsed):
    for text in HOSTILE:
        if text.isprintable():
            assert text in parsed.text
    assert "\x1b" not in parsed.text
    assert "\u202e" not in "".join(parsed.text.splitlines()[1:])


@pytest.mark.slow
def test_nothing_is_asked_for_from_outside(hostile, parsed):
    assert all(link.startswith("#") for link in parsed.values("href"))
    assert "default-src 'none'" in hostile
    styles = re.findall(r"<style>.*?</style>", hostile, re.S) + parsed.values("style")
    assert not [style for style in styles if re.search(r"@import|url\((?!#)", style)]


@pytest.mark.slow
def test_ids_are_unique_and_every_reference_has_its_target(parsed):
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    clips = [re.fullmatch(r"url\(#(.*)\)", value).group(1) for value in parsed.values("clip-path")]
    named = [key for value in parsed.values("aria-labelledby") for key in value.split()]
    wanted = (
        {link.removeprefix("#") for link in parsed.values("href")} | set(clips) | set(named) | set(parsed.values("for"))
    )
    assert wanted <= set(ids)


@pytest.mark.slow
def test_the_page_says_what_it_is_to_those_who_do_not_see_it(parsed):
    assert ("html", "lang", "en") in parsed.attributes
    assert parsed.tags.count("h1") == 1
    drawings = [value for tag, name, value in parsed.attributes if tag == "svg" and name == "aria-label"]
    assert len(drawings) == parsed.tags.count("svg") > 10
    assert all(len(text) > 20 for text in drawings)
    assert parsed.values("scope").count("col") + parsed.values("scope").count("row") == parsed.tags.count("th")


TABLE = Table("A caption", ("estimator", "D=8", "verdict"), (("a|b_c", "0.5 ±0.1°", 'x, "y"'),), words=1)


def test_a_table_as_markdown():
    assert markdown(TABLE) == (
        '| estimator | D=8 | verdict |\n| --- | ---: | --- |\n| a\\|b_c | 0.5 ±0.1° | x, "y" |\n\nA caption'
    )


def test_a_table_as_csv():
    assert comma_separated(TABLE) == 'estimator,D=8,verdict\na|b_c,0.5 ±0.1°,"x, ""y"""'


def test_a_table_as_latex():
    body = 'a|b\\_c & 0.5 $\\pm$0.1$^\\circ$ & x, "y" \\\\'
    assert latex(TABLE).splitlines()[:6] == [
        "\\begin{tabular}{lrl}", "\\toprule", "estimator & D=8 & verdict \\\\", "\\midrule", body, "\\bottomrule",
    ]  # fmt: skip


def test_contrast_has_known_values():
    """WCAG: 21 between black and white; #777777 on white is the usual 4.48 that just fails 4.5."""
    assert contrast("#000000", "#ffffff") == contrast("#ffffff", "#000000") == 21
    assert luminance("#ff0000") == pytest.approx(0.2126)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("colour", sorted({colour for colour, _ in (*STYLES.values(), *SPARE)}))
def test_every_colour_holds_on_both_papers(colour, scheme):
    for least in (3.0, 4.5):
        assert contrast(legible(colour, PAPER[scheme], least), PAPER[scheme]) >= least
    assert legible(INK, PAPER["light"], 4.5) == INK


def test_the_delay_axis_shows_zero_and_keeps_the_distances_of_a_logarithm():
    axis = DelayAxis([0, 16, 32, 128])
    assert [axis.at(d) for d in (16, 32, 128)] == pytest.approx([0, 1, 3])
    assert axis.at(0) < axis.at(16)
    alone = DelayAxis([0])
    assert np.isfinite(alone.at(0))


def test_two_drawings_of_one_thing_share_no_id():
    def paint(ax):
        ax.plot([0, 1], [0, 1], marker="o", color="#0072B2")
        return "a line"

    panel = draw(paint)
    with counted() as number:
        first, second = (number(panel.svg, panel.alt) for _ in range(2))
    ids = [set(re.findall(r' id="([^"]*)"', svg)) for svg in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert "#0072b2" not in first
    assert "var(--c0072b2)" in first


def test_labels_of_numbers_in_a_drawing_keep_their_digits():
    def paint(ax):
        ax.text(0.5, 0.5, "0.123456")
        return "a number"

    assert "0.123456" in draw(paint).svg


@pytest.mark.slow
def test_a_tokenizer_that_is_gone_leaves_ids_and_says_so(tmp_path):
    model = tmp_path / "gone"
    model.mkdir()
    run = write_run(tmp_path, "grpo", 0, 0, overrides=("model=pretrained", f"model.path={model}"))
    text = page_of([run], {}, Asked())
    assert "The tokenizer of this model is not on this machine" in text
    assert "3 15 8 2" in text
