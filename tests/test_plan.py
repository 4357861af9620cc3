"""What mode=plan says of disk space."""

import pytest
from settings import make_config

from delaysim.cli.plan import plan_one


def test_recorded_ratios_are_in_the_disk_estimate():
    """Two float32 a token: every response of the longest length, all updates or a tenth of them."""
    found = {kind: plan_one(make_config(f"record.ratios={kind}", "D=1")).disk for kind in ("all", "sample", "none")}
    whole = 240 * 64 * 48 * 8
    assert found["all"] - found["none"] == pytest.approx(whole)
    assert plan_one(make_config("record.ratios=sample", "D=1")).ratios == pytest.approx(whole / 10)
    assert found["sample"] - found["none"] == pytest.approx(whole / 10)
