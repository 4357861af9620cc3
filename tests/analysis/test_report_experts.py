"""The report on mixtures of experts: replay as what is compared, flips by cell, from rows written by hand."""

from dataclasses import replace

import pytest
from test_report import Text
from written import write_run

from delaysim.analysis.report import Asked, page_of
from delaysim.run.summary import read_summary

FLIPS = {
    "none": {"engine": 0.01, "drift": 0.06, "whole": 0.0625, "whole_tokens": 0.25, "live": 0.0},
    "r2": {"engine": 0.01, "drift": 0.0, "whole": 0.01, "whole_tokens": 0.02, "live": 0.06},
    "r3": {"engine": 0.0, "drift": 0.0, "whole": 0.0, "whole_tokens": 0.0, "live": 0.0625},
}
NEEDED = {"reward_mean": 0.5, "ratio_mean": 1.0}
"""What the closing words read besides."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    root = tmp_path_factory.mktemp("experts")
    for routing, shares in FLIPS.items():
        rows = {f"flips_{name}": share for name, share in shares.items()} | {"mismatch_mean": 0.004}
        for seed in range(2):
            write_run(root, "grpo", 8, seed, overrides=("model=tiny_moe", f"routing={routing}"), update=rows)
    return Text(page_of([root], {}, Asked()))


def test_replay_is_what_is_compared(seen):
    assert "routing=none, routing=r2 and routing=r3; D = 8" in " ".join(seen.summary)


def test_flips_of_every_cell_and_the_largest_in_the_title(seen):
    assert seen.row("routing=none", "D=8", "1.00%") == ("6.00%", "6.25%", "25%", "0.00%", "0.004")
    assert seen.row("routing=r2", "D=8", "1.00%") == ("0.00%", "1.00%", "2.00%", "6.00%", "0.004")
    assert seen.row("routing=r3", "D=8", "0.00%") == ("0.00%", "0.00%", "0.00%", "6.25%", "0.004")
    title = " ".join(seen.sections["experts"].split())
    assert "up to 6.25% of (token, layer) pairs (routing=none, D=8)" in title


def test_a_dense_model_has_no_such_section(tmp_path):
    write_run(tmp_path, "grpo", 8, 0)
    assert "experts" not in Text(page_of([tmp_path], {}, Asked())).sections


@pytest.mark.parametrize(
    ("routing", "said"),
    [
        ("none", "experts        flips 1.0% sampler/launch, 6.0% launch/update"),
        ("r2", "experts        flips 1.0% sampler/launch, 0.0% launch/update, 6.0% replayed/live"),
    ],
)
def test_the_closing_words_say_between_whom_experts_flipped(tmp_path, routing, said):
    rows = {f"flips_{name}": share for name, share in FLIPS[routing].items()}
    path = write_run(tmp_path, "grpo", 8, 0, overrides=("model=tiny_moe", f"routing={routing}"), update=rows | NEEDED)
    assert said in replace(read_summary(path), moments={}).lines()
