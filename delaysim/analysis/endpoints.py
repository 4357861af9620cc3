"""What a run is judged by: one number per problem, or one for the run."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from delaysim.analysis.outcomes import Outcome
from delaysim.analysis.stats import auc, updates_to
from delaysim.errors import UserError

Endpoint = Callable[[Outcome], NDArray[np.float64]]
"""(problems,) of a run, or (1,): then only seeds are random."""


def final(run: Outcome) -> NDArray[np.float64]:
    """Mean of the last evaluations."""
    return run.scores


def area(run: Outcome) -> NDArray[np.float64]:
    """Area under the learning curve over updates, of every problem: how good the run was on the way."""
    return auc(run.shares.T, run.axes["updates"])


def until(level: float) -> Endpoint:
    """Updates until pass@1 reaches a level, linear between evaluations; one that never does counts with all it has."""

    def endpoint(run: Outcome) -> NDArray[np.float64]:
        return np.minimum(updates_to(run.curve[None], run.axes["updates"], level), run.total("updates"))

    return endpoint


def endpoint(text: str) -> Endpoint:
    """`final`, `area`, or `until=LEVEL`. Raises UserError."""
    name, _, value = text.partition("=")
    try:
        return {"final": final, "area": area}[text] if name != "until" else until(float(value))
    except (KeyError, ValueError):
        raise UserError(f"--endpoint {text}: give final, area, or until=LEVEL, e.g. until=0.8") from None
