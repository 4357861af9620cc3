"""The paper's tables, read from the close readings, through the functions: what the statistical study worked out."""

import re
from math import isinf, log2, sqrt

import numpy as np
import pytest

from delaysim.analysis.stats import auc, delay_at, gain_kept, mcnemar_exact, net_se, share_of_gain, value_at

BASE = 25.57
GROUP_SIZES, PROMPTS = (4, 8, 32), 8


@pytest.fixture(scope="module")
def lines(shared):
    text = "\n".join(path.read_text() for path in sorted((shared / "seeds").glob("*.txt")))
    return text.replace("\u2212", "-").splitlines()


@pytest.fixture(scope="module")
def fixed_delay(lines):
    """Delays, and accuracy by method."""
    rows = [line.split("\t") for line in lines if re.fullmatch(r"\d+(\t\d\d\.\d\d){3}", line)]
    table = np.array(rows, dtype=float)
    return table[:, 0], dict(zip(("gmc", "tic", "grpo"), table[:, 1:].T, strict=True))


@pytest.fixture(scope="module")
def gaps(lines):
    """GMC - TIC by group size: {G: ([updates], [points])}."""
    rows = np.array(
        [line.split("\t") for line in lines if re.fullmatch(r"\d00(\t[+-]\d+\.\d\d){3}", line)], dtype=float
    )
    return {size: (rows[:, 0], rows[:, i + 1]) for i, size in enumerate(GROUP_SIZES)}


@pytest.fixture(scope="module")
def macros(lines):
    """Macro averages by size and metric: [GRPO, TIC, GMC]."""
    found = {}
    for line in lines:
        if match := re.fullmatch(r"Qwen3-(\S+)((?:\t\S+ / \S+){3})", line):
            cells = [cell.split(" / ") for cell in match[2].split("\t")[1:]]
            for column, metric in enumerate(("greedy", "avg")):
                found[match[1], metric] = [float(cell[column]) for cell in cells]
    return found


def test_paired_differences_of_the_fixed_delay_table(fixed_delay):
    delays, y = fixed_delay
    assert delays.tolist() == [0, 32, 64, 128, 256, 512]
    assert np.round(y["gmc"] - y["tic"], 2).tolist() == [-0.68, -0.86, 0.09, 3.62, 2.13, 3.84]


def test_areas_over_delay(fixed_delay):
    delays, y = fixed_delay
    linear = {name: round(float(auc(curve, delays)), 2) for name, curve in y.items()}
    logged = {name: round(float(auc(curve, np.log2(1 + delays))), 2) for name, curve in y.items()}
    assert linear == {"gmc": 51.12, "tic": 48.75, "grpo": 34.86}
    assert logged == {"gmc": 58.75, "tic": 58.37, "grpo": 46.44}


@pytest.mark.parametrize(
    ("retention", "wanted"),
    [(0.9, (156.5, 103.8, 11.2)), (0.75, (301.6, 234.9, 27.9)), (0.5, (np.inf, np.inf, 317.3))],
)
def test_delays_at_which_a_share_is_left(fixed_delay, retention, wanted):
    delays, y = fixed_delay
    found = delay_at(np.array([y["gmc"], y["tic"], y["grpo"]]), delays, retention)
    assert tuple(np.round(found, 1)) == wanted


def test_gain_kept_at_the_longest_delay(fixed_delay):
    _, y = fixed_delay
    found = [round(100 * float(gain_kept(y[name], BASE)[-1]), 1) for name in ("gmc", "tic", "grpo")]
    assert found == [44.0, 33.1, 12.3]


def test_shares_of_the_gain(macros):
    found = {key: round(100 * share_of_gain(*values), 1) for key, values in macros.items()}
    assert found == {
        ("1.7B", "avg"): 18.3, ("4B", "avg"): 15.8, ("8B", "avg"): 6.9,
        ("1.7B", "greedy"): 10.0, ("4B", "greedy"): -4.6, ("8B", "greedy"): 0.6,
    }  # fmt: skip


def test_group_sizes_at_equal_trajectories(gaps):
    """At one checkpoint the gap is not monotone in G; at one budget of trajectories it grows with G."""

    def at(size, trajectories):
        updates, gap = gaps[size]
        return round(float(value_at(gap, PROMPTS * size * updates, trajectories)), 2)

    assert [float(gaps[size][1][-1]) for size in GROUP_SIZES] == [2.26, 3.62, 1.38]
    assert (at(4, 25_600), at(8, 25_600)) == (2.26, 9.14)
    assert (at(8, 51_200), at(32, 51_200)) == (3.62, 7.10)
    assert np.isnan(at(4, 51_200))


def test_the_error_of_forty_problems():
    """21 of 40 right: 7.90 points, 1.32 in a macro average of six; unpaired difference 11.2 and 1.86."""
    se = 100 * sqrt(0.525 * 0.475 / 40)
    assert (round(se, 2), round(se / 6, 2)) == (7.90, 1.32)
    assert (round(se * sqrt(2), 1), round(se * sqrt(2) / 6, 2)) == (11.2, 1.86)


@pytest.mark.parametrize("c", range(20))
def test_two_problems_of_forty_decide_nothing(c):
    """4B greedy on AMC23: 21 against 23; whichever pairs disagree, p is at least .5."""
    assert mcnemar_exact(c + 2, c) >= 0.5
    assert mcnemar_exact(c + 2, c) == mcnemar_exact(c, c + 2)


def test_mcnemar_by_counting():
    assert mcnemar_exact(0, 0) == 1
    assert mcnemar_exact(5, 5) == 1
    assert mcnemar_exact(8, 0) == pytest.approx(2 / 2**8, rel=1e-12)
    assert mcnemar_exact(7, 1) == pytest.approx(2 * (1 + 8) / 2**8, rel=1e-12)


def test_eight_billion_greedy_is_a_quarter_of_an_error():
    """+6 problems of 3191 at 15 % discordant: .69 points of error, z = .27."""
    problems, net = 3191, 6
    apart = round(0.15 * problems)
    b, c = (apart + net) / 2, (apart - net) / 2
    se = net_se(b, c, problems)
    assert (round(100 * se, 2), round(net / problems / se, 2)) == (0.69, 0.27)


def test_net_se_is_the_error_of_the_paired_differences():
    d = np.repeat([1.0, -1.0, 0.0], [7, 3, 30])
    assert net_se(7, 3, 40) == pytest.approx(d.std() / sqrt(40), rel=1e-12)


def test_the_study_reads_logarithms_of_one_plus_delay(fixed_delay):
    """Half of GRPO's accuracy is gone in the first doubling steps: by hand, one trapezoid."""
    assert float(auc([1.0, 0.0], [0.0, log2(33)])) == 0.5
    assert isinf(delay_at(fixed_delay[1]["gmc"], fixed_delay[0], 0.5))
