"""The numbers of a ledger: delays, what a cap was in fact, lengths, and who was dropped."""

from typing import Any

import numpy as np

from delaysim.importing.definitions import derived
from delaysim.importing.ledger import Floats, Ledger

TENTHS = 10


def quantile(values: Floats, share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def spread(values: Floats) -> dict[str, float] | None:
    """Mean, p50, p90, max and number of the finite values; None where there is none."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    return {
        "mean": float(known.mean()),
        "p50": quantile(known, 0.5),
        "p90": quantile(known, 0.9),
        "max": float(known.max()),
        "count": len(known),
    }


def distance(one: Floats, other: Floats) -> float:
    """Kolmogorov-Smirnov distance: the largest gap between two distribution functions, 0..1."""
    points = np.concatenate([one, other])
    below = [np.searchsorted(np.sort(values), points, side="right") / len(values) for values in (one, other)]
    return float(np.abs(below[0] - below[1]).max())


def summarise(ledger: Ledger, groups_per_update: int | None, cap: float | None) -> dict[str, Any]:
    """Everything that is printed, by name; None where the log does not say."""
    groups = ledger.groups
    return {
        "rows": len(ledger),
        "groups": len(groups.update) if any(ledger.texts["group_id"]) else None,
        "updates": len(np.unique(groups.update[np.isfinite(groups.delay)])),
        "delay": spread(groups.delay),
        "definitions": {key: _defined(ledger, values) for key, values in derived(ledger, groups_per_update).items()},
        "reported": _reported(ledger),
        "cap": None if cap is None else capped(ledger, cap),
        "tokens": spread(ledger["tokens"]),
        "seconds": spread(ledger["done_t"] - ledger["submit_t"]),
        "status": _statuses(ledger),
        "drops": drops(ledger),
    }


def _defined(ledger: Ledger, values: Floats) -> dict[str, Any]:
    """A system's own column over responses, and whether it is the delay under another name."""
    known = np.isfinite(values)
    return {**(spread(values) or {}), "same": bool((values[known] == ledger.delay[known]).all())}


def _reported(ledger: Ledger) -> dict[str, Any] | None:
    means = spread(ledger["reported_mean"])
    if means is None:
        return None
    names = ("reported_max", "reported_in_flight", "reported_in_queue")
    dropped = ledger["reported_dropped"]
    return {
        "mean": means,
        **{key.removeprefix("reported_"): spread(ledger[key]) for key in names},
        "dropped": float(np.nansum(dropped)) if np.isfinite(dropped).any() else None,
    }


def capped(ledger: Ledger, cap: float) -> dict[str, float] | None:
    """What a cap on the delay was in fact: share of groups above it; of a log of sums, of steps with one above it."""
    of_groups = ledger.groups.delay
    values = of_groups if np.isfinite(of_groups).any() else ledger["reported_max"]
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    return {
        "cap": cap, "p90": quantile(values, 0.9), "max": float(values.max()), "above": float((values > cap).mean())
    }  # fmt: skip


def _statuses(ledger: Ledger) -> dict[str, int]:
    names, counts = np.unique([text for text in ledger.texts["status"] if text is not None], return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def drops(ledger: Ledger) -> dict[str, Any] | None:
    """Responses that reached training by tenth of length; None where none was lost, or lengths are not known.

    A response that was still under way when the log ended (`pending`) counts as neither.
    """
    pending = np.array([text == "pending" for text in ledger.texts["status"]], bool)
    ended = np.isfinite(ledger["tokens"]) & ~pending
    tokens, kept = ledger["tokens"][ended], ledger.kept[ended]
    if not len(tokens) or kept.all() or not kept.any():
        return None
    order = np.argsort(tokens, kind="stable")
    parts = [part for part in np.array_split(order, TENTHS) if len(part)]
    return {
        "lost": int((~kept).sum()),
        "share": float((~kept).mean()),
        "reached": [float(kept[part].mean()) for part in parts],
        "longest": [float(tokens[part].max()) for part in parts],
        "mean_trained": float(tokens[kept].mean()),
        "mean_generated": float(tokens.mean()),
        "distance": distance(tokens[kept], tokens),
    }
