"""Updates and versions of a log that has times only, such as AReaL's sessions."""

from dataclasses import replace

import numpy as np

from delaysim.importing.ledger import Ledger


def can_infer(ledger: Ledger) -> bool:
    """Whether the log has times and neither versions nor updates."""
    said = ledger.said
    return {"submit_t", "done_t"} <= set(said) and not {"version_start", "consumed_update"} & set(said)


def inferred(ledger: Ledger, groups_per_update: int) -> Ledger:
    """The ledger with updates and versions as if the groups that were kept trained in the order of their completion.

    Each B of them make an update, and its weights are there at once. Real updates take time, so that a group starts
    from older weights than this says: the delays are lower bounds.
    """
    groups = ledger.groups
    ready = np.where(groups.kept, groups.done, np.nan)
    order = np.argsort(ready, kind="stable")[: int(np.isfinite(ready).sum()) // groups_per_update * groups_per_update]
    update = np.full(len(ready), np.nan)
    update[order] = np.arange(len(order)) // groups_per_update
    version = np.searchsorted(ready[order][groups_per_update - 1 :: groups_per_update], groups.submit, side="right")
    columns = {"consumed_update": update, "version_start": np.where(np.isfinite(groups.submit), version, np.nan)}
    rows = {key: values[groups.of_row] for key, values in columns.items()}
    rows["consumed_update"] = np.where(ledger.kept, rows["consumed_update"], np.nan)
    return replace(ledger, numbers={**ledger.numbers, **rows})
