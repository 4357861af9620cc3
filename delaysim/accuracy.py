"""What evaluation rows say: pass@1 with intervals clustered by problem, paired gains, the collapse rule. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Accuracy:
    """pass@1 of one evaluation."""

    update: int
    """Updates behind the weights."""
    pass1: float
    """Mean over problems of the share of right sampled responses (of greedy ones where none are sampled)."""
    se: float
    """Standard error, clustered by problem."""
    problems: int
    greedy: float
    """Share of right greedy responses."""
    truncated: float
    """Share of responses that reached the length limit."""
    length_mean: float
    """[tokens]."""

    @property
    def half_width(self) -> float:
        """Of the 95 % interval."""
        return half_width(self.se, self.problems)


def half_width(se: float, clusters: int) -> float:
    """Half the width of a 95 % t interval of a mean over clusters; NaN with fewer than two."""
    from scipy.special import stdtrit  # a quarter of a second that help and traces need not pay

    return float(stdtrit(clusters - 1, 0.975)) * se if clusters > 1 else float("nan")


def summarise(rows: Sequence[Row]) -> list[Accuracy]:
    """One `Accuracy` per evaluation in the rows of `evals`, in order of updates."""
    return [_accuracy(update, of_update) for update, of_update in _by(rows, "update").items()]


def paired_gain(before: Sequence[Row], after: Sequence[Row]) -> tuple[float, float]:
    """Gain of pass@1 on the same problems, and half its 95 % interval."""
    first, last = _shares(before), _shares(after)
    gains = [last[problem] - first[problem] for problem in first if problem in last]
    mean, se = mean_se(gains)
    return mean, half_width(se, len(gains))


def has_collapsed(history: Sequence[Accuracy], looks: int, standard_errors: float) -> bool:
    """Whether `looks` evaluations in a row lie `standard_errors` below the base (the evaluation at update 0)."""
    if not history or history[0].update != 0:
        return False
    return below_base([accuracy.pass1 for accuracy in history], history[0].se, looks, standard_errors)


def below_base(curve: Sequence[float], base_se: float, looks: int, standard_errors: float) -> bool:
    """The rule of collapse on a curve of pass@1 that begins with the base."""
    floor = curve[0] - standard_errors * base_se
    below = [value < floor for value in curve]
    return any(all(below[i : i + looks]) for i in range(1, len(below) - looks + 1))


def _accuracy(update: int, rows: Sequence[Row]) -> Accuracy:
    judged = _judged(rows)
    pass1, se = mean_se(list(_shares(rows).values()))
    return Accuracy(
        update=update,
        pass1=pass1,
        se=se,
        problems=len({row["problem"] for row in rows}),
        greedy=_mean([row["correct"] for row in rows if row["greedy"]]),
        truncated=_mean([row["truncated"] for row in judged]),
        length_mean=_mean([row["length"] for row in judged]),
    )


def _judged(rows: Sequence[Row]) -> Sequence[Row]:
    return [row for row in rows if not row["greedy"]] or rows


def _shares(rows: Sequence[Row]) -> dict[str, float]:
    """Share of right responses by problem."""
    return {problem: _mean([row["correct"] for row in of]) for problem, of in _by(_judged(rows), "problem").items()}


def _by(rows: Sequence[Row], key: str) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def mean_se(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; 0 of a single value."""
    mean = _mean(values)
    variance = sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
    return mean, sqrt(variance / len(values))
