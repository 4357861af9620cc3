"""The report's numbers and words, from runs whose every number is known."""

import json
import re
from html.parser import HTMLParser

import pandas as pd
import pytest
from written import N, write_run

from delaysim.analysis.outcomes import load_outcomes
from delaysim.analysis.report import Asked, page_of
from delaysim.analysis.report.curves import on_one_axis
from delaysim.analysis.report.detail import selected
from delaysim.analysis.settings import run_settings
from delaysim.cli.report import report
from delaysim.errors import UserError
from delaysim.files import read_json, write_json

LOSS = {"gmc": (0.0, 0.0, 0.0), "tic": (0.5, 0.5, 1.0), "grpo": (0.5, 0.5, 0.5)}
"""What D=8 costs each seed, on every problem alike."""


class Text(HTMLParser):
    """What a reader sees: titles, table rows, and every word of each section."""

    def __init__(self, page):
        super().__init__()
        self.sections, self.rows, self.titles, self.summary, self.inside = {}, [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.inside.append(tag)
        if tag == "section":
            self.key = dict(attributes)["id"]
            self.sections[self.key] = ""
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag in ("h1", "h2"):
            self.titles.append("")
        if ("class", "summary") in attributes and tag == "p":
            self.summary.append("")

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if "section" in self.inside:
            self.sections[self.key] += data
        if self.rows and self.inside and self.inside[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        if self.inside and self.inside[-1] in ("h1", "h2"):
            self.titles[-1] += data
        if self.inside and self.inside[-1] == "p" and self.summary and "header" in self.inside:
            self.summary[-1] += data

    def row(self, *start):
        """The rest of the only row that starts so."""
        (found,) = {tuple(row) for row in self.rows if tuple(row[: len(start)]) == start}
        return found[len(start) :]


def page(root, *where, asked=None):
    return page_of([root], dict(where), asked or Asked())


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    root = tmp_path_factory.mktemp("grid")
    for estimator, losses in LOSS.items():
        for seed, loss in enumerate(losses):
            write_run(root, estimator, 0, seed)
            write_run(root, estimator, 8, seed, right=1 - loss)
    return root


@pytest.fixture(scope="module")
def seen(grid):
    return Text(page(grid))


def test_the_title_is_the_budget(seen):
    assert seen.titles[0] == "For 2 points of accuracy GMC affords D=8 and GRPO and TIC afford none"


def test_losses_and_their_intervals_have_closed_forms(seen):
    """Losses that differ by seed alone leave t over seeds: 4.3027 * 0.28868 / sqrt(3) = 0.717 for (.5, .5, 1)."""
    assert seen.row("GMC", "8", "1.000")[:2] == ("0.000 ±0.000", "yes")
    assert seen.row("GRPO", "8", "0.500")[:2] == ("−0.500 ±0.000", "no")
    assert seen.row("TIC", "8", "0.333")[:2] == ("−0.667 ±0.717", "no")
    assert seen.row("TIC", "8", "0.333")[2:] == ("9.56 (11.1% of D=0)", "1 of 3")


def test_a_difference_that_three_seeds_cannot_tell_is_not_separable(seen):
    """t = 4 with two degrees of freedom: p = 0.057, times 2 by Holm: GMC - GRPO is the first of three. There five
    seeds would do.

    At D=0 all are one run: no test.
    """
    assert seen.row("GMC − GRPO", "8") == ("+0.500 ±0.000", "<.001", "0–2", "GMC better")
    assert seen.row("GMC − TIC", "8") == ("+0.667 ±0.717", ".114", "0–2", "not separable (2 more seeds)")
    assert seen.row("GMC − TIC", "0")[-1] == "identical"


def test_areas_over_the_grid_are_the_primary_endpoint(seen):
    """Two delays: the area is the mean of both, so a difference of 0.5 at D=8 is one of 0.25."""
    assert seen.row("GMC − GRPO", "0 to 8") == ("+0.250 ±0.000", "<.001", "0–2", "GMC better")


def test_the_best_of_a_delay_is_marked_and_what_is_not_separable_from_it(seen):
    """At D=0 all three are one run."""
    assert seen.row("GMC", "1.000 ±0.000*") == ("1.000 ±0.000*",)
    assert seen.row("GRPO", "1.000 ±0.000*") == ("0.500 ±0.000",)
    assert seen.row("TIC", "1.000 ±0.000*") == ("0.333 ±0.717° (1 of 3 collapsed)",)


def test_collapsed_runs_are_counted_by_cell_and_stay_in_the_mean(seen):
    assert "1 of 18 runs collapsed" in seen.sections["collapses"]
    assert seen.row("TIC", "D=8", "1 of 3") == ("2", "0.333")


def test_ratios_are_means_over_the_last_quarter_of_the_updates(seen):
    """There the delay is 8: ESS 1/9, a largest ratio of 9, kept 0.92, removed 0.16, intervention 0.8."""
    assert seen.row("GMC", "D=8", "0.111") == ("9", "0.92", "0.16", "0.8", "–", "0", "0.5")


def test_theory_stands_beside_what_was_measured(seen):
    """tau4 of min(n, 8), n < 24: (1^4 + ... + 7^4 + 16 * 8^4)/24 = 2925.5 = 24^2.51; r = (4 - 2.51)/5 = 0.298.

    Removed mass is delay/50 and the mean delay 6.5.
    """
    assert seen.row("GRPO", "D=8", "2,926") == ("2.51", "0.30", "no", "0.13", "–", "−0.500")
    bound = 0.125 / 0.4446858212614457  # KL / log(1 + 2 * 0.28)
    assert seen.row("GMC", "D=8", "2,926")[4] == f"{bound:.3g}"


def test_realised_delays_stand_beside_those_asked_for(seen):
    """min(n, 8) over 24 updates has the mean 6.5 and 9 updates of the base policy's groups."""
    assert seen.row("all", "D=8") == ("6.5", "8.0", "0.0", "8.0", "8.0", "8.0", "38%", "25%")
    assert (
        "Asked for D=8, groups were 6.5 updates old on average, 38% of them from the untrained policy" in seen.titles[6]
    )


def test_responses_are_decoded(seen):
    assert seen.row("0", "greedy", "yes", "4") == ("0>5",)


def test_what_was_asked_is_on_the_page(seen):
    assert "delaysim +suite=fixed_delay D=8" in seen.sections["run"]
    for said in ("numpy 2.4.6", "commit 0123456789ab", "Python 3.11.7", "18 runs, 3 seeds, 1 command"):
        assert said in seen.sections["run"]


def test_lengths_are_those_of_the_trace(seen):
    assert seen.row("GMC", "D=8", "10.0") == ("10.0", "1.000", "1.000")


def test_a_queue_that_picks_short_groups_is_told_from_delay():
    """Of version 0 the short group is trained on (10 of a mean of 20), of version 1 both (10 of 10)."""
    trace = pd.DataFrame({"version": [0, 0, 1, 1], "update": [0, None, 5, 6], "length": [10.0, 30.0, 10.0, 10.0]})
    assert selected(trace) == pytest.approx(30 / 40)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [0, 12])
def test_a_run_that_a_number_ended_stays_in_every_mean(tmp_path, stop):
    """Stopped at update 12 of 24 it lacks two of its last three evaluations; at 0 all three: they count 0."""
    write_run(tmp_path, "gmc", 8, 0)
    write_run(tmp_path, "gmc", 8, 1, stop=stop)
    runs = {run.seed: run for run in load_outcomes(tmp_path).runs}
    assert runs[1].final == pytest.approx(1 / 3 if stop else 0)
    assert runs[1].collapsed
    mean = (1 + runs[1].final) / 2
    seen = Text(page(tmp_path))
    assert seen.row("GMC", "D=8", "1 of 2") == ("1", f"{mean:.3f}")
    x, curves = on_one_axis([runs[0], runs[1]], "tokens")
    assert x[-1] == runs[0].total("tokens")
    assert curves[:, -1].tolist() == [1, 0]


@pytest.mark.slow
def test_benchmarks_stand_side_by_side_macro_and_item_weighted(grid, tmp_path):
    """Two problems right in one set, six wrong in another: half of the sets, a quarter of the problems."""
    for seed in range(2):
        run = grid / f"fixed_delay/gmc-D8-s{seed}"
        identity = read_json(run / "manifest.json")["identity"]
        folder = tmp_path / f"evaluate/{seed}"
        folder.mkdir(parents=True)
        of = {"run": run.name, "seed": seed, "settings": run_settings(run, identity)}
        asked = {"samples": 1, "sets": {"small": "1", "large": "2"}, "model": {"update": N}}
        write_json(folder / "evaluation.json", {"schema": 1, "identity": asked, "of": of})
        rows = [
            {"set": name, "problem": f"{name}{q}", "cluster": f"{name}{q}", "greedy": greedy, "score": float(n == 2)}
            for name, n in (("small", 2), ("large", 6)) for q in range(n) for greedy in (True, False)
        ]  # fmt: skip
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs = sorted(grid.glob("fixed_delay/gmc-*"))
    seen = Text(page_of([*runs, tmp_path], {}, Asked()))
    averages = ("0.500 ±0.000", "0.250 ±0.000", "0.250 ±0.000")
    assert seen.row("GMC", "D=8", "large,small") == ("0–1", "8", *averages, "0.250")


def test_one_seed_is_not_ranked(grid):
    seen = Text(page_of(sorted(grid.glob("fixed_delay/*-s0")), {}, Asked()))
    everything = " ".join(seen.sections.values())
    assert seen.titles[0] == "Accuracy ends between 0.500 and 1.000 in 6 runs; one seed, so no ranking"
    assert "One seed says nothing of how the next would differ" in seen.sections["answer"]
    assert "better" not in everything
    assert "beats" not in everything
    assert "*" not in seen.row("GMC", "1.000 ±0.000")[0]


@pytest.mark.slow
def test_one_run_has_a_page_of_its_own(grid):
    seen = Text(page(grid / "fixed_delay/grpo-D8-s0"))
    assert seen.titles[0] == f"GRPO at D=8 goes from 0.500 to 0.500 in {N} updates"
    assert "This is one run" in seen.sections["answer"]
    assert {"curves", "delays", "lengths", "theory", "samples", "run"} <= seen.sections.keys()


@pytest.mark.slow
def test_the_tolerance_decides(grid):
    assert "For 60 points of accuracy GMC and GRPO afford D=8" in Text(page(grid, asked=Asked(tolerance=0.6))).titles[0]


@pytest.mark.slow
def test_where_chooses_runs(grid):
    seen = Text(page_of([grid], {"estimator": ["gmc", "grpo"]}, Asked()))
    assert {row[0] for row in seen.rows} >= {"GMC", "GRPO"}
    assert not any("TIC" in cell for row in seen.rows for cell in row)


@pytest.mark.slow
def test_unfinished_and_failed_runs_are_named_with_their_last_lines(tmp_path):
    write_run(tmp_path, "gmc", 0, 0)
    failed = {"state": "failed", "error": "the reward is not finite"}
    write_run(tmp_path, "gmc", 8, 0, status=failed, log="one\ntwo\nthe end\n")
    write_run(tmp_path, "gmc", 8, 1, status={"state": "interrupted"})
    seen = Text(page(tmp_path))
    assert "1 failed run, 1 unfinished run" in seen.sections["trouble"]
    assert "the reward is not finite" in seen.sections["trouble"]
    assert "the end" in seen.sections["trouble"]
    assert "GMC at D=0" in seen.titles[0]


@pytest.mark.slow
def test_the_command_writes_one_file_and_says_so(grid, tmp_path, capsys):
    out = tmp_path / "page.html"
    assert report([str(grid), "-o", str(out)]) == 0
    assert re.fullmatch(rf"{out}: 0\.\d\d MB, complete by itself; open it in a browser\n", capsys.readouterr().out)
    with pytest.raises(UserError, match=r"--tolerance 0: give the loss you accept"):
        report([str(grid), "--tolerance", "0"])
    with pytest.raises(UserError, match=r"--alpha 2: give a chance of error between 0 and 1"):
        report([str(grid), "--alpha", "2"])
    with pytest.raises(UserError, match=r"-o .*nowhere/page.html: give a file in a folder that is there"):
        report([str(grid), "-o", str(tmp_path / "nowhere/page.html")])
    with pytest.raises(UserError, match=r"no run has D=3; the runs have D=0, 8"):
        report([str(grid), "--where", "D=3", "-o", str(out)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "said"), [(((4, 4), (8, 2)), "B follows G: G=4, B=4; G=8, B=2."), (((4, 2), (8, 2)), "B=2 is held.")]
)
def test_a_sweep_of_group_sizes_says_what_it_holds(tmp_path, sizes, said):
    for size, groups in sizes:
        for seed in range(2):
            write_run(tmp_path, "gmc", 8, seed, right=size / 8, overrides=(f"G={size}", f"B={groups}"))
    seen = Text(page(tmp_path))
    assert said in seen.sections["sweep-G"]
    assert "G moves GMC by 50 points at D=8" in seen.sections["sweep-G"]


@pytest.mark.slow
def test_a_damaged_trace_is_one_line_that_says_what_to_do(tmp_path):
    run = write_run(tmp_path, "gmc", 8, 0)
    (run / "trace.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(UserError, match=r"trace.parquet: .*move this file away to use groups.jsonl"):
        page(tmp_path)
    (run / "trace.parquet").unlink()
    assert Text(page(tmp_path)).row("GMC", "D=8", "6.5")
