"""What replaying experts does to training, from a study's committed file: accuracy, flips, and what they cost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from delaysim.analysis.compare import ONE_SEED, SAME, Contrast, Rule, compare
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
    return compare(_distinct(_strata(study.runs, MISMATCHED, ROUTING)), Rule(), NONE)


def mismatches(study: Study) -> list[Contrast]:
    """The mismatched sampler against none, without replay."""
    runs = [run for run in study.runs if run.settings[ROUTING] == NONE]
    return compare(_distinct(arrange(runs, DTYPE, ("estimator", "D"))), Rule(), "float32")


def _distinct(strata: list[Stratum]) -> list[Stratum]:
    """Without those whose first runs are another's: at delay 0 one loss stands for all, the one with most runs."""
    found: dict[tuple[bytes, ...], Stratum] = {}
    for stratum in sorted(strata, key=lambda stratum: -sum(len(cell.runs) for cell in stratum.cells.values())):
        firsts = (cell.runs[min(cell.runs)].scores for cell in stratum.cells.values())
        found.setdefault(tuple(scores.tobytes() for scores in firsts), stratum)
    return [stratum for stratum in strata if any(stratum is kept for kept in found.values())]


def _strata(runs: tuple[Outcome, ...], dtype: str, by: str) -> list[Stratum]:
    found = [run for run in runs if run.settings[DTYPE] == dtype]
    return arrange(found, by, ("estimator", "D")) if found else []


def answer(study: Study) -> str:
    """The measured answer, in one sentence."""
    found = {"a bfloat16 sampler": mismatches(study), "replaying experts": replays(study)}
    said = "; ".join(filter(None, (_found(contrasts, what) for what, contrasts in found.items())))
    return said[:1].upper() + said[1:]


def _found(contrasts: list[Contrast], what: str) -> str:
    judged = [c for c in contrasts if c.verdict not in (SAME, ONE_SEED)]
    told = [c for c in judged if c.verdict.endswith("better")]
    if not judged:
        return f"{what}: one seed, so nothing is ranked" if contrasts else ""
    if not told:
        size = max(abs(c.difference.mean) for c in judged)
        return (
            f"{what} makes no difference that {len(judged)} comparisons separate, the largest {100 * size:.1f} points"
        )
    named = ", ".join(
        f"{_loss(c)} D={c.at['D']} {100 * c.difference.mean:+.1f} points ({ARMS[str(c.a)]})" for c in told
    )
    return f"{what}: {len(told)} of {len(judged)} differences separable, {named}".replace("-", "\u2212")


def tables(study: Study) -> Iterator[Table]:
    """Accuracy by arm; what each replay is worth."""
    cells = arms(study)
    rows = [
        (label(str(estimator)), f"{delay}", *(_mean(cells.get((estimator, delay, arm))) for arm in ARMS))
        for estimator, delay in dict.fromkeys(key[:2] for key in cells)
    ]
    text = "Final pass@1, 95 % intervals over seeds and problems. At D=0 all losses are one run, and R2 is no replay."
    yield Table(text, ("estimator", "D", *ARMS.values()), tuple(rows), left=2)
    heads = ("estimator", "D", "what", "difference", "p", "verdict")
    for text, contrasts in (
        ("Replay against no replay, the sampler in bfloat16", replays(study)),
        ("A sampler in bfloat16 against one in float32, without replay", mismatches(study)),
    ):
        if contrasts:
            note = f"{text}: 95 % intervals over seeds and problems, p Holm-corrected over the table."
            yield Table(note, heads, tuple(map(_line, contrasts)), left=3, words=1)


def _line(c: Contrast) -> tuple[str, ...]:
    ranked = c.verdict.endswith("better")
    verdict = ("better" if c.difference.mean > 0 else "worse") if ranked else c.verdict
    where = _loss(c), f"{c.at['D']}", ARMS.get(str(c.a), "bfloat16")
    return (*where, interval(c.difference, sign=True), p_value(c.p_holm), verdict)


def _loss(c: Contrast) -> str:
    return label(str(c.at["estimator"])) if c.at["D"] else "any loss"


def _mean(cell: Cell | None) -> str:
    return "" if cell is None else interval(crossed(cell.table()))


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
        ax.annotate("base", (1, study.base), xycoords=("axes fraction", "data"), fontsize=8, color="#666666",
                    ha="right", va="bottom")  # fmt: skip
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
        ax.plot([x for x, _ in shown], means, marker, color=colour, markersize=5, label=text if shown else None)
    ax.set_xticks(range(len(names)), [label(str(name)) for name in names])
    ax.set_xlim(-0.5, len(names) - 0.5)
    ax.set_ylim(0, 1.02)
    clean(ax)
