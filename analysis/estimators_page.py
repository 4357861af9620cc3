"""The page and the figure of the estimator study, from its committed file alone."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import t as student

from delaysim.analysis.plots import BASE, NAMES, clean, label_ends, save, style

RESULTS = Path(__file__).parent.parent / "docs/results"
METHODS = {
    "none": ("estimator=reinforce",),
    "is": ("estimator=is",),
    "grpo": ("estimator=grpo",),
    "tic": ("estimator=tic",),
    "gmc": ("estimator=gmc",),
    "tis": ("estimator=tis",),
    "vcpo": ("estimator=tis", "rule=vcpo"),
    "gac": ("estimator=grpo", "rule=gac"),
    "cispo": ("estimator=cispo",),
    "sapo": ("estimator=sapo",),
    "gspo": ("estimator=gspo",),
    "a3po": ("estimator=a3po",),
}
"""Label: what to type."""
OWN_AT_0 = ("grpo", "vcpo", "gac")
"""Without delay every other method is GRPO's run, bit for bit."""
DELAYS, MATCHED_AT, SEEDS = (0, 16, 64, 128), (64, 128), (0, 1, 2)
LR, LRS = 3e-4, (1e-4, 3e-4, 1e-3)
PLACES = np.array([np.log2(d) if d else np.log2(DELAYS[1]) - 1.5 for d in DELAYS])
"""A logarithmic axis that shows 0."""


def write(path: Path) -> None:
    """Make docs/results/estimators.md, .svg and .png."""
    table = pd.read_csv(path)
    draw(table)
    (RESULTS / "estimators.md").write_text(page(table))


def name(method: str) -> str:
    """How a method is written."""
    return NAMES["reinforce" if method == "none" else method]


def final(table: pd.DataFrame, part: str, method: str, delay: int, lr: float = LR) -> pd.Series:
    """Final accuracies by seed; a method that is GRPO's run at D=0 has GRPO's."""
    if delay == 0 and method not in OWN_AT_0:
        method = "grpo"
    if delay == 0 or (part != "published" and method == "gmc" and lr == LR):
        part = "published"
    chosen = table[(table["part"] == part) & (table["method"] == method) & (table["D"] == delay)]
    return chosen[np.isclose(chosen["lr"], lr)].set_index("seed")["final"].sort_index()


def mean_half(values: pd.Series) -> tuple[float, float]:
    """Mean over seeds and half its 95 % t interval."""
    if len(values) < 2:
        return float(values.mean()), float("nan")
    return float(values.mean()), float(student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))


def cell(values: pd.Series) -> str:
    """Mean and half interval; one seed without; none, a dash."""
    if len(values) < 2:
        return "-" if values.empty else f"{values.iloc[0]:.3f} (one seed)"
    return "{:.3f} ±{:.3f}".format(*mean_half(values))


def ranked(table: pd.DataFrame) -> list[str]:
    """Methods by their mean over the three delays, best first."""
    means = {m: np.mean([mean_half(final(table, "published", m, d))[0] for d in DELAYS[1:]]) for m in METHODS}
    return sorted(means, key=means.__getitem__, reverse=True)


def paired(table: pd.DataFrame, one: str, other: str, delay: int, part: str = "published") -> tuple[float, float]:
    """Mean and half interval over seeds of the difference in final accuracy."""
    return mean_half(final(table, part, one, delay) - final(table, part, other, delay))


def page(table: pd.DataFrame) -> str:
    """The whole page."""
    return "\n".join(
        [*_head(table), *_published(table), *_pairs(table), *_matched(table), *_lr(table), *_reading(table)]
    )


def _head(table: pd.DataFrame) -> list[str]:
    return [
        "# Estimators under fixed delay, tiny default",
        "",
        "Made by `python analysis/estimators.py` from [estimators.csv](estimators.csv), one line per run:",
        "",
        "    delaysim -m +suite=fixed_delay D=0,16,64,128 estimator=... seed=0,1,2",
        "",
        "![final accuracy against delay](estimators.svg)",
        "",
        "Every number is final pass@1, the mean of the last three evaluations (updates 200, 220, 240): mean over three",
        "seeds with the 95 % t interval over seeds (two degrees of freedom: 4.3 standard errors). Seeds share prompts,",
        "delays and sampling noise between methods, so that differences are paired. One learning rate, advantage and",
        f"aggregation for all (`recipe=shared`). The base has {table['base'].mean():.3f}.",
        "",
    ]


def _published(table: pd.DataFrame) -> list[str]:
    lines = ["## At published thresholds", "", "| method | eps | " + " | ".join(f"D={d}" for d in DELAYS)]
    lines[-1] += " | D=128 minus D=0 | collapsed |"
    lines.append("|---|---:|" + "---:|" * (len(DELAYS) + 2))
    for method in ranked(table):
        rows = table[(table["part"] == "published") & (table["method"] == method)]
        eps = rows["eps"].dropna()
        values = " | ".join(cell(final(table, "published", method, d)) for d in DELAYS)
        loss = final(table, "published", method, 128) - final(table, "published", method, 0)
        collapsed = f"{int(rows['collapsed'].sum())} of {len(rows)}"
        shown = "" if eps.empty else f"{eps.iloc[0]:g}"
        lines.append(f"| {name(method)} | {shown} | {values} | {cell(loss)} | {collapsed} |")
    return [
        *lines,
        "",
        "eps: the threshold on the scale of `eps` (a cap is 1 + eps). At D=0 all but VCPO, GAC are one run.",
        "",
    ]


def _pairs(table: pd.DataFrame) -> list[str]:
    lines = ["## Against GRPO and against GMC, paired by seed", ""]
    lines += [
        "| method | - GRPO, D=64 | - GRPO, D=128 | - GMC, D=64 | - GMC, D=128 |",
        "|---|---:|---:|---:|---:|",
    ]
    for method in ranked(table):
        values = []
        for other in ("grpo", "gmc"):
            values += [_difference(table, method, other, d) for d in (64, 128)]
        lines.append(f"| {name(method)} | " + " | ".join(values) + " |")
    return [
        *lines,
        "",
        "A star: the interval excludes 0. With 44 comparisons and no correction some do by chance.",
        "",
    ]


def _difference(table: pd.DataFrame, method: str, other: str, delay: int, part: str = "published") -> str:
    if method == other:
        return ""
    mean, half = paired(table, method, other, delay, part)
    return f"{mean:+.3f} ±{half:.3f}{' *' if abs(mean) > half else ''}"


def _matched(table: pd.DataFrame) -> list[str]:
    rows = table[table["part"] == "matched"]
    if rows.empty:
        return []
    lines = [
        "## At matched intervention rate", "",
        "Each threshold is the one at which the method changes as many responses (by more than 1 %) as GMC at eps=0.28",
        "does, on what GMC's run of seed 0 recorded at that delay:",
        "`delaysim screen RUN_DIR --match intervention --to gmc`.",
        "",
        "| method | eps at D=64, 128 | D=64 | D=128 | - GMC, D=64 | - GMC, D=128 |",
        "|---|---|---:|---:|---:|---:|",
    ]  # fmt: skip
    for method in ("gmc", *rows["method"].unique()):
        own = rows[rows["method"] == method]
        eps = ", ".join(f"{own[own['D'] == d]['eps'].iloc[0]:.3g}" for d in MATCHED_AT if (own["D"] == d).any())
        values = " | ".join(cell(final(table, "matched", method, d)) for d in MATCHED_AT)
        versus = [_difference_or_dash(table, method, d) for d in MATCHED_AT]
        lines.append(f"| {name(method)} | {eps or '0.28'} | {values} | {' | '.join(versus)} |")
    return [*lines, ""]


def _difference_or_dash(table: pd.DataFrame, method: str, delay: int) -> str:
    if final(table, "matched", method, delay).empty:
        return "-"
    return _difference(table, method, "gmc", delay, "matched")


def _lr(table: pd.DataFrame) -> list[str]:
    if table[table["part"] == "lr"].empty:
        return []
    lines = ["## Learning-rate check, D=64", "", "| method | " + " | ".join(f"lr={lr:g}" for lr in LRS) + " |"]
    lines.append("|---|" + "---:|" * len(LRS))
    for method in table[table["part"] == "lr"]["method"].unique():
        values = [cell(final(table, "published" if lr == LR else "lr", method, 64, lr)) for lr in LRS]
        lines.append(f"| {name(method)} | " + " | ".join(values) + " |")
    return [*lines, ""]


def _reading(table: pd.DataFrame) -> list[str]:
    text = (
        (RESULTS / "estimators_reading.md").read_text().rstrip() if (RESULTS / "estimators_reading.md").exists() else ""
    )
    return ["## Reading", "", text, ""] if text else []


def draw(table: pd.DataFrame) -> None:
    """Final accuracy against delay: published thresholds, and matched intervention."""
    figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.6), sharey=True)
    panel(axes[0], table, "published", list(METHODS))
    panel(axes[1], table, "matched", ["gmc", *table[table["part"] == "matched"]["method"].unique()])
    axes[0].set_title("published thresholds", fontsize=9, loc="left")
    axes[1].set_title("thresholds that intervene as often as GMC", fontsize=9, loc="left")
    axes[0].set_ylabel("final pass@1 on 256 held-out problems")
    figure.subplots_adjust(wspace=0.32)
    figure.suptitle(title(table), x=0.06, ha="left", fontsize=11, y=1.0)
    caption = (
        "Tiny default, 240 updates, three paired seeds: each faintly, their mean in bold. One learning rate, one\n"
        "advantage, one aggregation for all. Without delay all lines start in one run (VCPO and GAC in their own)."
    )
    figure.text(0.06, -0.04, caption, fontsize=7.5, color="#444444", ha="left", va="top")
    save(figure, str(RESULTS / "estimators"))
    plt.close(figure)


def panel(ax: Axes, table: pd.DataFrame, part: str, methods: list[str]) -> None:
    """One line a method."""
    x, ends = PLACES, {}
    for method in methods:
        curves = [final(table, part, method, d) for d in DELAYS]
        asked = DELAYS if part == "published" else (0, *MATCHED_AT)
        known = [i for i, values in enumerate(curves) if DELAYS[i] in asked and not values.empty]
        label = "reinforce" if method == "none" else method
        colour, marker = style(label)
        for seed in SEEDS:
            ax.plot(x[known], [curves[i].get(seed, np.nan) for i in known], color=colour, alpha=0.2, linewidth=0.7)
        means = [float(curves[i].mean()) for i in known]
        ax.plot(x[known], means, color=colour, marker=marker, markersize=4, linewidth=1.6)
        ends[label] = (x[known][-1] + 0.08, means[-1])
    ax.axhline(table["base"].mean(), **BASE)
    ax.annotate("base", (x[0], table["base"].mean()), fontsize=8, color="#666666", ha="left", va="bottom")
    ax.set_xticks(x, [str(d) for d in DELAYS])
    ax.set_xlabel("fixed delay D (updates)")
    ax.set_ylim(0, 1.02)
    label_ends(ax, ends, gap=0.045)
    clean(ax)


def title(table: pd.DataFrame) -> str:
    """The measured answer as a sentence."""
    order = sorted(METHODS, key=lambda m: mean_half(final(table, "published", m, 128))[0], reverse=True)
    best, worst = (mean_half(final(table, "published", m, 128))[0] for m in (order[0], order[-1]))
    start = mean_half(final(table, "published", "grpo", 0))[0]
    return (
        f"With a delay of 128 updates the twelve losses end between {worst:.2f} ({name(order[-1])}) and {best:.2f} "
        f"({name(order[0])}) of accuracy; without delay at {start:.2f}"
    )
