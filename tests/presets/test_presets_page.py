"""docs/presets.md is what analysis/presets.py writes."""

import pytest
from scripts import script


@pytest.mark.slow
def test_the_page_is_up_to_date():
    module = script("presets")
    assert module.page() == module.PAGE.read_text()
