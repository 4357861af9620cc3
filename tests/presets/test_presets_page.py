"""docs/presets.md is what analysis/presets.py writes."""

from scripts import script
from systems import config

from delaysim.presets import discover


def test_the_page_is_up_to_date():
    page = script("presets")
    assert page.page({name: config(name) for name in discover()}) == page.PAGE.read_text()
