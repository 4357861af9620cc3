"""What replaying experts does to training, from a study's committed file: accuracy, flips, and what they cost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from delaysim.analysis.compare import OPEN, SAME, Contrast, Rule, compare
from delaysim.analysis.grid import Cell, Stratum, arrange
from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.plots import BASE, STYLES, clean, label, save, wrapped
from delaysim.analysis.report.blocks import Table
from delaysim.analysis.report.study import Study
from delaysim.analysis.report.words import interval, p_value
from delaysim.analysis.stats import crossed

ROUTING, DTYPE = "routing", "sampler.dtype"
NONE, MISMATCHED = "none", "bfloat16"
ARMS = {"float32": "no mismatch", NONE: "no replay", "r2": "R2", "r3": "R3"}
"""What is drawn for each estimator and delay: the control, then the mismatched sampler under each replay."""
MEASURES = {
    "flips_engine": ("flips, engine", "{:.2%}"), "flips_drift": ("drift", "{:.2%}"), "flips_whole": ("whole", "{:.2%}"),
    "flips_whole_tokens": ("of tokens", "{:.2%}"), "flips_live": ("live", "{:.2%}"),
    "mismatch_mean": ("mismatch (nats)", "{:.4f}"), "mismatch_over": ("over the threshold by it", "{:.1%}"),
    "log_ratio_sd": ("sd of log-ratio", "{:.3f}"), "intervention": ("intervention", "{:.3f}"),
}  # fmt: skip
TEXT = (
    "Means over updates, then seeds. Flips: share of (token, layer) pairs with other experts, between sampler and the "
    "learner's pass at launch (engine), that pass and the update (drift), sampler and update (whole; of tokens: with a "
    "flip in any layer), and between what the update used and what its own router chose (live)."
)


def replays(study: Study) -> list[Contrast]:
    """Each replay against none, at every estimator and delay, the sampler mismatched; Holm over all."""
    return compare(_strata(study.runs, MISMATCHED, ROUTING), Rule(), NONE)


def mismatches(study: Study) -> list[Contrast]:
    """The mismatched sampler against none, without replay."""
    runs = [run for run in study.runs if run.settings[ROUTING] == NONE]
    return compare(arrange(runs, DTYPE, ("estimator", study.over)), Rule(), "float32")


def _strata(runs: tuple[Outcome, ...], dtype: str, by: str) -> list[Stratum]:
    return arrange([run for run in runs if run.settings[DTYPE] == dtype], by, ("estimator", "D"))


def answer(study: Study) -> str:
    """The measured answer, in one sentence."""
    said = [_found(mismatches(study), "a bfloat16 sampler"), _found(replays(study), "replaying experts")]
    return "; ".join(said)


def _found(contrasts: list[Contrast], what: str) -> str:
    judged = [c for c in contrasts if c.verdict != SAME]
    told = [c for c in judged if c.verdict.endswith("better")]
    if not told:
        size = max((abs(c.difference.mean) for c in judged), default=0.0)
        return f"Of {len(judged)} differences by {what} none is separable (largest {100 * size:.1f} points)"
    named = ", ".join(
        f"{label(str(c.at['estimator']))} D={c.at['D']} {100 * c.difference.mean:+.1f} points ({ARMS[str(c.a)]})"
        for c in told
    )
    return f"Of {len(judged)} differences by {what} {len(told)}: {named}".replace("-", "\u2212")


def tables(study: Study) -> Iterator[Table]:
    """Accuracy by arm; what each replay is worth."""
    cells = arms(study)
    rows = [
        (label(str(estimator)), f"{delay}", *(_mean(cells.get((estimator, delay, arm))) for arm in ARMS))
        for estimator, delay in dict.fromkeys(key[:2] for key in cells)
    ]
    yield Table("Final pass@1, 95 % interval", ("estimator", "D", *ARMS.values()), tuple(rows), left=1)
    for text, contrasts in (
        ("Replay against no replay, the sampler in bfloat16", replays(study)),
        ("A sampler in bfloat16 against one in float32, without replay", mismatches(study)),
    ):
        heads = ("estimator", "D", "what", "difference", "95 % interval", "p (Holm)", "verdict")
        yield Table(text, heads, tuple(map(_line, contrasts)), left=1)


def _line(c: Contrast) -> tuple[str, ...]:
    verdict = c.verdict if c.verdict in (OPEN, SAME) else f"{'better' if c.difference.mean > 0 else 'worse'}"
    found = f"{c.difference.mean:+.3f}".replace("-", "\u2212")
    what = ARMS[str(c.a)] if str(c.a) in ARMS else str(c.a)
    where = label(str(c.at["estimator"])), f"{c.at['D']}", what
    return (*where, found, interval(c.difference), p_value(c.p_holm), verdict)


def _mean(cell: Cell | None) -> str:
    if cell is None:
        return ""
    found = crossed(cell.table())
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


def arms(study: Study) -> dict[tuple[Any, Any, str], Cell]:
    """By estimator, delay and arm."""
    found = {}
    for dtype in ("float32", MISMATCHED):
        for stratum in _strata(study.runs, dtype, ROUTING):
            for routing, cell in stratum.cells.items():
                arm = dtype if dtype == "float32" else str(routing)
                found[stratum.at["estimator"], stratum.at["D"], arm] = cell
    return dict(sorted(found.items(), key=lambda item: (str(item[0][0]), item[0][1], [*ARMS].index(item[0][2]))))


def draw(study: Study, stem: Path) -> None:
    """Final accuracy by estimator, one panel for each delay, the four arms beside each other."""
    cells = arms(study)
    delays = sorted({key[1] for key in cells})
    names = list(dict.fromkeys(key[0] for key in cells))
    figure, panels = plt.subplots(1, len(delays), figsize=(8.4, 3.8), sharey=True, squeeze=False)
    for ax, delay in zip(panels[0], delays, strict=True):
        _panel(ax, cells, names, delay)
        ax.axhline(study.base, **BASE)
        ax.set_title(f"D = {delay}", loc="left", fontsize=9)
    panels[0, 0].set_ylabel("final pass@1")
    panels[0, 0].legend(frameon=False, fontsize=8, loc="lower left", ncols=2)
    figure.suptitle(wrapped(answer(study), 105), x=0.02, ha="left", fontsize=10)
    seeds = ", ".join(map(str, study.seeds))
    figure.text(0.02, -0.03, f"Tiny mixture of experts, 240 updates, seeds {seeds}: faint single seeds, bars 95 % "
                "intervals over seeds and problems.", fontsize=7.5, color="#444444")  # fmt: skip
    figure.tight_layout()
    save(figure, str(stem))
    plt.close(figure)


def _panel(ax: Axes, cells: dict[tuple[Any, Any, str], Cell], names: list[Any], delay: Any) -> None:
    for (arm, text), (colour, marker) in zip(ARMS.items(), STYLES.values(), strict=False):
        nudge = ([*ARMS].index(arm) - 1.5) * 0.17
        shown = [(names.index(name) + nudge, cell) for (name, d, a), cell in cells.items() if (d, a) == (delay, arm)]
        for x, cell in shown:
            ax.plot([x] * len(cell.runs), [run.final for run in cell.runs.values()], marker, color=colour, alpha=0.3,
                    markersize=3, markeredgewidth=0)  # fmt: skip
            found = crossed(cell.table())
            ax.vlines(x, max(found.low, 0), min(found.high, 1), color=colour, linewidth=1)
        means = [crossed(cell.table()).mean for _, cell in shown]
        ax.plot([x for x, _ in shown], means, marker, color=colour, markersize=5, label=text)
    ax.set_xticks(range(len(names)), [label(str(name)) for name in names])
    ax.set_ylim(0, 1.02)
    clean(ax)
