"""Whether what was trained on is a fair sample of what was generated, and where every token went."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from delaysim.analysis.bias import measured, window
from delaysim.analysis.report.blocks import Block, Figure, Panel, Section, Table, folded
from delaysim.analysis.report.curves import few
from delaysim.analysis.report.delays import merged
from delaysim.analysis.report.drawing import draw, draw_wide, label_lines, room
from delaysim.analysis.report.study import Study
from delaysim.analysis.report.told import Numbers, Pick, Told, told
from delaysim.analysis.report.words import count, share
from delaysim.run.account_lines import BEYOND, SETTINGS

INSIDE = ("generating", "ready")


def bias_section(study: Study) -> Section | None:
    """Trained against generated lengths and rewards by cell; None where no run left an account."""
    cells = told(study, "lengths")
    if not cells:
        return None
    blocks: list[Block] = [*_survival(study, cells), folded(_bias_table(study, cells)), folded(_books(study, cells))]
    return Section("bias", "Length bias", _title(cells), blocks)


def _measure(name: str) -> Pick:
    return lambda account: measured(account).get(name)


def _of(name: str, population: str | None = None) -> Pick:
    """The ratio of lengths over a population; of the one that judges a policy where none is named."""

    def pick(account: Numbers) -> Any:
        compared = account["lengths"]
        return compared.get(population or compared["policy"], {}).get(name)

    return pick


# the answer


def _title(cells: Sequence[Told]) -> str:
    ratio, run = _of("ratio"), _of("ratio", "run")
    worst = max(cells, key=lambda cell: abs(_off(cell, ratio)))
    if abs(_off(worst, ratio)) > BEYOND:
        tenths = (share(worst.mean(_measure(name))) for name in ("shortest", "longest"))
        said = "{} of the shortest tenth of groups were trained on, {} of the longest".format(*tenths)
        return f"{_biased(worst, ratio)}{_by_chance(worst)}; {said}"
    dropped = max(cell.mean(_measure("dropped")) for cell in cells) > 0
    fair = "What was dropped is as long as the rest, within 2 %" if dropped else "No group was dropped"
    worst = max(cells, key=lambda cell: abs(_off(cell, run)))
    if abs(_off(worst, run)) > BEYOND:
        off = _off(worst, run)
        return f"{fair}; start and end of a run make what was trained on up to {_words(off)} than generated"
    return f"{fair}: what was trained on stands for what was generated"


def _off(cell: Told, ratio: Pick) -> float:
    return float(np.nan_to_num(cell.mean(ratio) - 1))


def _biased(cell: Told, ratio: Pick) -> str:
    return f"{cell.called} trained on responses {_words(_off(cell, ratio))} than generated"


def _words(off: float) -> str:
    return f"{abs(off):.0%} {'longer' if off > 0 else 'shorter'}"


def _by_chance(cell: Told) -> str:
    """Where groups dropped at random could have made as much."""
    chance = cell.values(_of("chance"))
    se = sqrt(sum(value**2 for value in chance)) / max(1, len(chance))
    return f" (chance alone: ±{2 * se:.1%})" if 2 * se > abs(_off(cell, _of("ratio"))) else ""


# tables


def _bias_table(study: Study, cells: Sequence[Told]) -> Table:
    rewards = any("rewards" in account for cell in cells for account in cell.accounts)
    head = (study.by, "cell", "trained/generated", "whole run", "KS", "shortest tenth", "longest tenth", "dropped")
    rows = [
        (*cell.row, cell.interval(_of("ratio")) + _short(cell), cell.interval(_of("ratio", "run")),
         cell.interval(_measure("ks")).split()[0], *(share(cell.mean(_measure(name))) for name in
         ("shortest", "longest", "dropped")), *([cell.interval(_measure("reward_ratio"))] if rewards else []))
        for cell in cells
    ]  # fmt: skip
    short = any(_short(cell) for cell in cells)
    note = (
        "Mean length trained on over mean length generated, among groups of the steady state; of the whole run, where "
        "its start and end count too; KS: distance of the two distributions; tenths: groups by their longest response, "
        "the share of them trained on; ±: 95 % t intervals over seeds."
    ) + (" *: too short for a steady state: among the groups that were trained on or dropped." if short else "")
    return Table(note, (*head, *(["reward ratio"] if rewards else [])), tuple(merged(rows)), left=2)


def _short(cell: Told) -> str:
    return "" if all(account["lengths"]["policy"] == "steady" for account in cell.accounts) else "*"


def _books(study: Study, cells: Sequence[Told]) -> Table:
    """Generated = trained + dropped + in system, as shares of tokens, and of groups for what was dropped."""
    kinds = [kind for kind in SETTINGS if any(cell.mean(_groups(kind)) > 0 for cell in cells)]
    rows = []
    for cell in cells:
        total = cell.mean(lambda account: sum(entry["tokens"] for entry in account["tokens"].values()))
        lost = [f"{share(cell.mean(_tokens(kind)))} ({share(cell.mean(_groups(kind)))})" for kind in kinds]
        rows.append((*cell.row, f"{total:,.0f}", share(cell.mean(_tokens("trained"))), *lost,
                     share(cell.mean(_tokens(*INSIDE)))))  # fmt: skip
    head = (study.by, "cell", "tokens", "trained", *(SETTINGS[kind] for kind in kinds), "in the system at the end")
    note = "Where every generated token went; dropped by a policy: of tokens (of groups). Means over seeds."
    return Table(note, head, tuple(merged(rows)), left=2)


def _tokens(*kinds: str) -> Pick:
    return lambda account: _share(account, kinds, "tokens")


def _groups(*kinds: str) -> Pick:
    return lambda account: _share(account, kinds, "groups")


def _share(account: Numbers, kinds: Sequence[str], unit: str) -> float:
    books = account["tokens"]
    return float(sum(books[kind][unit] for kind in kinds) / sum(entry[unit] for entry in books.values()))


# figure


def _survival(study: Study, cells: Sequence[Told]) -> list[Figure]:
    """Share trained on by tenths, where anything was dropped."""
    if not any(cell.mean(_measure("dropped")) > 0 for cell in cells):
        return []
    places = list(dict.fromkeys(cell.row[1] for cell in cells))
    shown = few(places)
    panels = tuple(
        _panel(study, [cell for cell in cells if cell.row[1] == place], place, len(shown) == 1) for place in shown
    )
    left = f" {len(shown)} of {count(len(places), 'panel')}." if len(shown) < len(places) else ""
    caption = (
        "Share of groups trained on, by tenths of the groups in order of their longest response; level: no bias. Means "
        f"over seeds.{left}"
    )
    return [Figure(panels, caption)]


def _panel(study: Study, cells: Sequence[Told], place: str, alone: bool) -> Panel:
    names = [study.name(cell.level) for cell in cells]
    if alone:
        return draw_wide(lambda ax: _paint(ax, study, cells), room(names))
    return draw(lambda ax: _paint(ax, study, cells), right=room(names), title=place)


def _paint(ax: Axes, study: Study, cells: Sequence[Told]) -> str:
    ends, words = [], []
    tenths = np.arange(1, 11)
    for cell in cells:
        colour, marker = study.look(cell.level)
        y = np.mean([window(account["longest"])["survival"] for account in cell.accounts], axis=0)
        ax.plot(tenths, y, color=colour, marker=marker, markersize=4, linewidth=1.5)
        ends.append((study.name(cell.level), 10.0, float(y[-1]), colour))
        words.append(f"{study.name(cell.level)}: {share(y[0])} of the shortest tenth, {share(y[-1])} of the longest")
    ax.set_ylim(-0.03, 1.05)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xticks([1, 5, 10], ["shortest", "fifth tenth", "longest"])
    ax.set_xlim(0.7, 10.3)
    label_lines(ax, ends)
    return f"Share of groups trained on by tenths of length. {'; '.join(words)}."
