"""The published tables of the GMC-GRPO paper (2610.01896): recomputed, with the errors they were printed without.

The numbers are in analysis/paper/*.csv, typed from an article on the paper; each file says which table it is and where
it stands there. Functions take points (63.62) as printed and give points, unless they say otherwise:

    python analysis/paper.py                # writes docs/results/paper.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import inf, sqrt
from pathlib import Path

import numpy as np
import pandas as pd

from delaysim import theory
from delaysim.analysis.stats import auc, delay_at, gain_kept, mcnemar_exact, net_se, share_of_gain
from delaysim.benchmarks.sets import SETS, SIX

FOLDER = Path(__file__).parent / "paper"
PAGE = Path(__file__).parent.parent / "docs/results/paper.md"
BASE = 25.57
"""pass@1 of Qwen3-1.7B-Base on MATH500 before training."""
Z = 1.959964
"""Half a 95 % interval in standard errors; with one seed there is no variance over seeds to take a t from."""
N, EPS, PROMPTS, SAMPLES = 800, 0.28, 8, 16
"""Updates, threshold, groups an update and responses a problem of the paper's runs."""
DISCORDANCE = 0.15
"""Assumed share of problems on which two greedy policies disagree."""
ROWS = {name: SETS[name].rows for name in SIX}
"""Problems of the six benchmarks."""
EFFECTIVE = {**ROWS, "minerva": 208.994, "olympiad": 561.806}
"""Problems worth one draw each if those with one stem are answered alike: (sum k)^2 / sum k^2 over clusters of k."""
INSEPARABLE, OPEN, BEYOND = "not separable", "open", "beyond the problems' noise"
SHARED = 25
"""AMC23's problems that stand in Gaokao2023en too."""


def load(name: str) -> pd.DataFrame:
    """One published table; `attrs` has its title and where it stands."""
    path = FOLDER / f"{name}.csv"
    table = pd.read_csv(path, comment="#", dtype={"printed": str})
    with path.open() as file:
        title, where = (next(file).lstrip("# ").strip() for _ in range(2))
    table.attrs = {"title": title, "where": where}
    return table


# errors that follow from the number of problems


def score_se(points: float, problems: float, samples: float = 1) -> float:
    """Standard error of one score from `problems * samples` independent right-or-wrong answers."""
    p = points / 100
    return 100 * sqrt(p * (1 - p) / (problems * samples))


def macro_se(points: float, clustered: bool = False) -> float:
    """Standard error of a macro average of the six, each at `points`, from one answer a problem."""
    p, sizes = points / 100, EFFECTIVE if clustered else ROWS
    inverse = sum(1 / size for size in sizes.values())
    if clustered:
        inverse += 2 * SHARED / (ROWS["amc23"] * ROWS["gaokao2023en"])
    return 100 * sqrt(p * (1 - p) * inverse) / len(ROWS)


def item_se(points: float) -> float:
    """The same of the average in which every problem counts alike."""
    return score_se(points, sum(ROWS.values()))


def variance_share(name: str) -> float:
    """Share of one set in the macro average's variance, all six at one accuracy."""
    return (1 / ROWS[name]) / sum(1 / rows for rows in ROWS.values())


def paired_macro_se(discordance: float = DISCORDANCE) -> float:
    """Standard error of a macro difference of two greedy policies that disagree on this share of every set."""
    return 100 * sqrt(discordance * sum(1 / rows for rows in ROWS.values())) / len(ROWS)


def paired_item_se(net: int, discordance: float = DISCORDANCE) -> float:
    """Standard error of `net` problems more among all of the six, with this share of problems discordant."""
    total = sum(ROWS.values())
    better = round((discordance * total + net) / 2)
    return 100 * net_se(better, better - net, total)


@dataclass(frozen=True)
class Difference:
    """A published difference and what half a 95 % interval can have been at least and at most [points]."""

    points: float
    narrow: float
    wide: float

    @property
    def reading(self) -> str:
        """What the problems alone allow; seeds are on top of it, and there is one."""
        if abs(self.points) < self.narrow:
            return INSEPARABLE
        return OPEN if abs(self.points) < self.wide else BEYOND


def sampled_difference(a: float, b: float, problems: int = ROWS["math500"], samples: int = SAMPLES) -> Difference:
    """Of two sampled scores. Narrow: all problems equally hard. Wide: each always right or always wrong, unpaired."""
    half = [Z * sqrt(sum(score_se(x, problems, n) ** 2 for x in (a, b))) for n in (samples, 1)]
    return Difference(a - b, *half)


def macro_difference(a: float, b: float, greedy: bool) -> Difference:
    """Of two macro averages. Narrow: paired, 15 % of greedy answers differ; 0 of sampled ones. Wide: unpaired."""
    wide = Z * sqrt(macro_se(a, clustered=True) ** 2 + macro_se(b, clustered=True) ** 2)
    return Difference(a - b, Z * paired_macro_se() if greedy else 0.0, wide)


# the tables


def fixed_delay() -> pd.DataFrame:
    """The fixed-delay table with GMC minus TIC."""
    table = load("fixed_delay")
    return table.assign(difference=[sampled_difference(row.gmc, row.tic) for row in table.itertuples()])


@dataclass(frozen=True)
class DelayCurve:
    """One method's curve of accuracy against D: areas under it [points], the largest delays it affords [updates]."""

    auc: float
    auc_log: float
    """Over log2(1 + D)."""
    kept90: float
    kept75: float
    kept50: float
    """Largest D with that share of the accuracy at D=0; inf = the whole grid keeps it."""
    gain_kept: float
    """Share of the gain over the base that is left at the largest D."""


def delay_curve(method: str) -> DelayCurve:
    """What the fixed-delay table says of a method."""
    table = load("fixed_delay")
    delays, scores = table["D"].to_numpy(float), table[method].to_numpy(float)
    return DelayCurve(
        float(auc(scores, delays)),
        float(auc(scores, np.log2(1 + delays))),
        *(float(delay_at(scores, delays, share)) for share in (0.9, 0.75, 0.5)),
        float(np.asarray(gain_kept(scores, BASE))[-1]),
    )


def increments() -> pd.DataFrame:
    """The gain over GRPO by model and metric, split at TIC; `share` is (GMC - TIC)/(GMC - GRPO) in percent."""
    table = load("async").set_index(["model", "method"])
    rows = []
    for metric in ("avg", "greedy"):
        for model in ("1.7B", "4B", "8B"):
            grpo, tic, gmc = (float(table.loc[(model, m), metric]) for m in ("grpo", "tic", "gmc"))
            first, second = (macro_difference(a, b, metric == "greedy") for a, b in ((tic, grpo), (gmc, tic)))
            rows.append((model, metric, first, second, 100 * share_of_gain(grpo, tic, gmc)))
    return pd.DataFrame(rows, columns=["model", "metric", "first", "second", "share"])


def per_set(model: str) -> pd.DataFrame:
    """Greedy differences by set: in problems, in the macro and item-weighted averages, and the smallest possible p.

    That is McNemar's where the two policies disagree on no problem but the net ones.
    """
    table = load("sets").query("model == @model").reset_index(drop=True)
    rows = table["set"].map(ROWS)
    items = (table["difference"] * rows / 100).round().astype(int)
    return table.assign(
        items=items,
        macro=table["difference"] / len(ROWS),
        item_weighted=100 * items / sum(ROWS.values()),
        least_p=[mcnemar_exact(abs(net), 0) for net in items],
    )


def other_sets(model: str) -> tuple[float, float]:
    """Sum of the greedy differences of the sets without a printed number, and what rounding leaves open [points]."""
    table = load("async").set_index(["model", "method"])
    macro = float(table.loc[(model, "gmc"), "greedy"] - table.loc[(model, "tic"), "greedy"])
    return len(ROWS) * macro - float(per_set(model)["difference"].sum()), len(ROWS) * 0.01


def group_size() -> pd.DataFrame:
    """The group-size table, long: checkpoint, G, trajectories trained on by then, GMC minus TIC."""
    table = load("group_size").melt("checkpoint", var_name="G", value_name="difference").astype({"G": int})
    return table.assign(trajectories=PROMPTS * table["G"] * table["checkpoint"]).sort_values(["trajectories", "G"])


def matched_budgets() -> dict[int, list[tuple[int, int, float]]]:
    """Trajectories at which more than one G was evaluated: (G, checkpoint, GMC minus TIC)."""
    grouped = group_size().groupby("trajectories")
    return {
        int(budget): list(rows[["G", "checkpoint", "difference"]].itertuples(index=False, name=None))
        for budget, rows in grouped
        if len(rows) > 1
    }


# what the article works out


def recomputed() -> dict[str, float]:
    """Every claim of claims.csv by its `what`."""
    tau4 = {delay: theory.constant_fourth_moment(delay) for delay in (32, 128, 160, 512)}
    growth = {delay: theory.growth_exponent(value, N) for delay, value in tau4.items()}
    rate = {delay: theory.rate_exponent(p) or 0.0 for delay, p in growth.items()}
    scores = load("fixed_delay").set_index("D").loc[128]
    eps = {delay: theory.optimal_eps(tau4[delay], N, cap=inf) for delay in (32, 128)}
    amc = score_se(52.50, ROWS["amc23"])
    return {
        "c = log(1.28) - 0.28/1.28": theory.tic_constant(EPS),
        "l = log 1.56": theory.gmc_constant(EPS),
        "(l/c)^2": theory.coefficient_ratio(EPS) ** 2,
        "(c/l)^(2/5)": theory.tuned_factor(EPS),
        "GMC over TIC at D=128 [%]": 100 * (scores["gmc"] / scores["tic"] - 1),
        "160^4": tau4[160],
        "p at a delay of 160": growth[160],
        "rate exponent at 160": rate[160],
        "free region of tau4": theory.free_fourth_moment(N),
        "free delay [updates]": theory.free_delay(N),
        "p at a delay of 512": growth[512],
        "rate exponent at 512": rate[512],
        "N^(-3/14)": N ** (-3 / 14),
        "32^(4/7)": tau4[32] ** (1 / 7),
        "eps* at D=32 before the cap": eps[32],
        "128^(4/7)": tau4[128] ** (1 / 7),
        "eps* at D=128 before the cap": eps[128],
        "1 / 0.28": 1 / EPS,
        "standard error of one AMC23 score [points]": amc,
        "the same in a macro of six [points]": amc / len(ROWS),
    }


def agrees(printed: str, value: float) -> bool:
    """Whether a value rounds to a printed number."""
    number = Decimal(printed)
    return abs(Decimal(value) - number) <= Decimal((0, (5,), int(number.as_tuple().exponent) - 1))


def wrong_claims() -> Sequence[str]:
    """The claims that do not come out."""
    values = recomputed()
    return [row.what for row in load("claims").itertuples() if not agrees(row.printed, values[row.what])]


if __name__ == "__main__":
    from paper_page import page

    PAGE.write_text(page())
