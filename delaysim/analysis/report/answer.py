"""The answer first: what delay each estimator affords, who beats whom, and where nobody can say."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan

from delaysim.analysis.budget import Budget, Step, budgets
from delaysim.analysis.compare import ONE_SEED as ONE_SHARED
from delaysim.analysis.compare import OPEN, SAME, Contrast, Rule, compare, over_grid
from delaysim.analysis.grid import setting, spelled
from delaysim.analysis.report.blocks import Block, Fold, Items, Paragraph, Section, Table
from delaysim.analysis.report.study import Study
from delaysim.analysis.report.words import DASH, ONE_SEED, count, interval, listing, number, p_value, points, ranges
from delaysim.errors import UserError

MANY = 100
"""More seeds than anyone runs are not suggested."""
SHOWN = 12
"""Rows of comparisons that stand open; more are folded."""
CHOSEN = "lr"


@dataclass(frozen=True)
class Asked:
    """What the reader accepts."""

    tolerance: float = 0.02
    """Loss of accuracy that a delay may cost."""
    alpha: float = 0.05
    """Chance of any false verdict in a table."""

    @property
    def rule(self) -> Rule:
        return Rule(self.alpha)


@dataclass(frozen=True)
class Answer:
    """What a study says."""

    study: Study
    asked: Asked

    @cached_property
    def contrasts(self) -> list[Contrast]:
        return compare(self.study.strata, self.asked.rule) if len(self.study.levels) > 1 else []

    @cached_property
    def areas(self) -> list[Contrast]:
        """The primary endpoint: areas under accuracy over the delays; empty where that is no curve."""
        study = self.study
        curve = len(study.levels) > 1 and len(study.delays) > 1 and len(study.slices) == 1
        return over_grid(study.strata, study.over, self.asked.rule) if curve and _numbers(study) else []

    @cached_property
    def budgets(self) -> list[Budget]:
        """Empty where there is no grid of delays from 0 on."""
        study = self.study
        if len(study.delays) < 2 or not _numbers(study) or 0 not in study.delays:
            return []
        choose = CHOSEN if CHOSEN in study.loose else None
        try:
            return budgets(study.strata, study.over, choose, self.asked.tolerance, 1 - self.asked.alpha)
        except UserError:  # an estimator without delay 0: the table says which are there
            return []

    @cached_property
    def ranked(self) -> bool:
        """Whether any verdict can stand."""
        return any(contrast.difference.seed_variance for contrast in self.contrasts)


def headline(answer: Answer) -> str:
    """The page's title."""
    study = answer.study
    if len(study.runs) == 1:
        run = study.runs[0]
        end = "collapses" if run.collapsed else f"goes from {run.curve[0]:.3f} to {run.final:.3f}"
        return f"{study.name(run.settings[study.by])} at {_where(study)} {end} in {count(run.reached, 'update')}"
    known = [budget for budget in answer.budgets if budget.known]
    if known:
        return affordable(known, study, answer.asked.tolerance)
    if answer.ranked:
        return ranking(answer)
    if len(study.seeds) == 1:
        return f"{_span(study)}; one seed, so no ranking"
    return f"{_span(study)}; no two share two seeds, so no ranking" if answer.contrasts else _span(study)


def affordable(known: Sequence[Budget], study: Study, tolerance: float) -> str:
    """Who affords which delay, the largest first."""
    if not any(budget.largest for budget in known):
        shared = ranges({len(step.seeds) for budget in known for step in budget.steps if step.delay})
        return f"At {shared} seeds no {study.over} above 0 is shown to cost less than {points(tolerance)}"
    by_delay: dict[float, list[str]] = {}
    for budget in sorted(known, key=lambda b: -(b.largest or 0)):
        alike = len({other.largest for other in known if other.level == budget.level}) == 1
        held = "" if alike or not budget.at else f" ({', '.join(setting(k, v) for k, v in budget.at.items())})"
        names = by_delay.setdefault(budget.largest or 0, [])
        names += [name for name in [study.name(budget.level) + held] if name not in names]
    if len(known) > 6:
        best, names = next(iter(by_delay.items()))
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        return f"{listing(names[:4])}{more} afford {study.at(best)}, the largest delay, for {points(tolerance)}"
    parts = [
        f"{listing(names)} {_verb(names)} {study.at(delay) if delay else 'none'}" for delay, names in by_delay.items()
    ]
    return f"For {points(tolerance)} of accuracy {listing(parts)}"


def _verb(names: Sequence[str]) -> str:
    return "afford" if len(names) > 1 else "affords"


def ranking(answer: Answer) -> str:
    """How many differences are separable, and the largest."""
    found = [c for c in answer.contrasts if c.verdict.endswith("better")]
    total = count(sum(c.verdict != SAME for c in answer.contrasts), "difference")
    if not found:
        return f"Not separable: none of {total} holds at {1 - answer.asked.alpha:.0%}"
    largest = max(found, key=lambda c: abs(c.difference.mean))
    return f"{_beats(answer.study, largest)}; {len(found)} of {total} separable"


def _beats(study: Study, c: Contrast) -> str:
    better, worse = (c.a, c.b) if c.difference.mean > 0 else (c.b, c.a)
    at = ", ".join(setting(key, value) for key, value in c.at.items())
    return f"{study.name(better)} beats {study.name(worse)} by {points(c.difference.mean)}" + (
        f" at {at}" if at else ""
    )


def _span(study: Study) -> str:
    finals = [run.final for run in study.runs]
    return f"Accuracy ends between {min(finals):.3f} and {max(finals):.3f} in {count(len(finals), 'run')}"


def _where(study: Study) -> str:
    return study.at(study.runs[0].settings.get(study.over))


def _numbers(study: Study) -> bool:
    return all(isinstance(delay, int | float) for delay in study.delays)


def answer_section(answer: Answer) -> Section:
    """Budget, primary endpoint, every difference."""
    blocks: list[Block] = [*_words(answer)]
    if answer.budgets:
        blocks.append(budget_table(answer))
    if answer.areas:
        title = f"Area under accuracy over {answer.study.over} {spelled(answer.study.delays[0])} to "
        title += f"{spelled(answer.study.delays[-1])}, the primary endpoint: differences of mean height"
        blocks.append(contrast_table(answer, answer.areas, title))
    if answer.contrasts:
        table = contrast_table(answer, answer.contrasts, "Paired differences of final accuracy")
        open_ = len(table.rows) <= SHOWN
        blocks += (
            [table]
            if open_
            else [Fold(f"All {len(table.rows)} paired differences, one for each delay and pair", (table,))]
        )
    title = (
        ranking(answer) if answer.ranked else "No ranking" if len(answer.study.runs) > 1 else "One run, no comparison"
    )
    return Section("answer", "The answer", title, blocks)


def _words(answer: Answer) -> list[Block]:
    study = answer.study
    if len(study.runs) == 1:
        return [Paragraph(
            "This is one run. A comparison needs runs that differ in one setting, and a ranking needs several seeds of "
            "each: its interval speaks of other problems, not of other seeds.", "warning")]  # fmt: skip
    if len(study.seeds) == 1:
        return [Paragraph(ONE_SEED + " Intervals below are over problems only.", "warning")]
    found = [c for c in answer.contrasts if c.verdict.endswith("better")]
    unclear = sum(c.verdict == OPEN for c in answer.contrasts)
    few = [c for c in answer.contrasts if c.verdict == ONE_SHARED]
    lines = [f"{_beats(study, c)} ({interval(c.difference, sign=True)}, p {p_value(c.p_holm)})"
             for c in sorted(found, key=lambda c: -abs(c.difference.mean))[:3]]  # fmt: skip
    if unclear:
        lines.append(f"{count(unclear, 'difference')} not separable")
    if few:
        lines.append(f"{count(len(few), 'difference')} with one shared seed: not ranked")
    return [Items(tuple(lines))] if lines else []


def budget_table(answer: Answer) -> Table:
    """One line per estimator and delay."""
    study = answer.study
    rows = [_budget_row(answer, budget, step) for budget in answer.budgets for step in budget.steps if step.delay]
    caption = (
        f"Budget: the largest delay whose lower {1 - answer.asked.alpha:.0%} bound of the paired loss lies above "
        f"{signed_tolerance(answer)}, there and at every smaller delay of the grid."
    )
    if any(step.chosen for budget in answer.budgets for step in budget.steps):
        caption += " lr: for each seed the one that is best on the other seeds."
    head = (study.by, study.over, "accuracy", f"minus {study.over}=0", "affordable", "time per update", "collapsed")
    return Table(caption, head, tuple(rows), left=1)


def signed_tolerance(answer: Answer) -> str:
    """The tolerance as a bound."""
    return f"\N{MINUS SIGN}{answer.asked.tolerance:g}"


def _budget_row(answer: Answer, budget: Budget, step: Step) -> tuple[str, ...]:
    study = answer.study
    known = "yes" if step.affordable else "no" if step.loss.seed_variance else "one seed"
    ratio = (
        DASH
        if step.time_ratio is None
        else f"{step.time_ratio:.1%} of D=0"
        if study.over == "D"
        else f"{step.time_ratio:.1%}"
    )
    held = "".join(f", {key}={spelled(value)}" for key, value in budget.at.items())
    chosen = f" (lr {', '.join(sorted({spelled(v) for v in step.chosen.values()}))})" if step.chosen else ""
    return (
        study.name(budget.level) + held, spelled(step.delay) + chosen, number(step.accuracy),
        interval(step.loss, sign=True), known, f"{step.time:.3g} ({ratio})" if step.time_ratio else f"{step.time:.3g}",
        f"{step.collapsed} of {len(step.seeds)}",
    )  # fmt: skip


def contrast_table(answer: Answer, contrasts: Sequence[Contrast], caption: str) -> Table:
    """One line per difference, re-read at equal tokens and simulated time where that differs."""
    study = answer.study
    axes = [axis for axis in ("tokens", "sim_time") if any(_differs(c, axis) for c in contrasts)]
    keys = list(contrasts[0].at)
    again = [f"at equal {'simulated time' if axis == 'sim_time' else axis}" for axis in axes]
    rows = [_contrast_row(study, c, keys, axes) for c in contrasts]
    level = f"{1 - answer.asked.alpha:.0%}"
    tested = sum(not isnan(c.p_holm) for c in contrasts)
    over = count(tested, "comparison")
    note = f"{caption}; {level} intervals over seeds and problems; p two-sided, Holm-corrected over {over}."
    return Table(note, ("pair", *keys, "difference", *again, "p", "seeds", "verdict"), tuple(rows), words=1)


def _contrast_row(study: Study, c: Contrast, keys: Sequence[str], axes: Sequence[str]) -> tuple[str, ...]:
    matched = [c.matched.get(axis) for axis in axes]
    return (
        f"{study.name(c.a)} \N{MINUS SIGN} {study.name(c.b)}", *(spelled(c.at[key]) for key in keys),
        interval(c.difference, sign=True), *("clocks differ" if e is None else interval(e, sign=True) for e in matched),
        p_value(c.p_holm), ranges(c.seeds), _verdict(study, c),
    )  # fmt: skip


def _differs(c: Contrast, axis: str) -> bool:
    if axis not in c.matched:
        return False
    again = c.matched[axis]
    return again is None or abs(again.mean - c.difference.mean) >= 5e-4


def _verdict(study: Study, c: Contrast) -> str:
    if c.verdict.endswith("better"):
        return f"{study.name(c.a if c.difference.mean > 0 else c.b)} better"
    if c.verdict == OPEN and c.more_seeds and c.more_seeds <= MANY:
        return f"{OPEN} ({count(int(c.more_seeds), 'more seed')})"
    if c.verdict == OPEN and c.more_seeds == float("inf"):
        return f"{OPEN} (needs more problems)"
    return c.verdict
