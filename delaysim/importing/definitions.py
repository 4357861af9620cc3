"""What each system calls staleness, from the same rows: derived columns named after the systems."""

import numpy as np

from delaysim.importing.ledger import Floats, Ledger

DEFINITIONS = {
    "delay": "n - s: consuming update minus version of the first token; a group shares that of its oldest response",
    "delay_newest": "n minus the version of the last token",
    "delay_tokens": "n minus the version, averaged over the tokens of a response",
    "areal": "the smallest max_head_offpolicyness that admits the group: (accepted + running) // B - version",
    "prime_rl": "(step - 1) - oldest version, at least 0, the queue included",
    "prime_rl_in_flight": "of it, versions that went by during generation",
    "prime_rl_in_queue": "of it, versions that went by in the queue",
    "tinker": "iteration - sampling_client_step",
    "trl": "weight version in use - the sample's; equals the delay where every update syncs",
    "verl": "(global_step - 1) - newest version of the trajectory",
    "verl_worst": "(global_step - 1) - oldest version of the trajectory",
    "verl_span": "newest - oldest version + 1",
}
"""Derived columns [updates, but areal: look-ahead]."""


def derived(ledger: Ledger, groups_per_update: int | None) -> dict[str, Floats]:
    """Every column that the rows are enough for."""
    n, first, last = ledger["consumed_update"], ledger["version_start"], ledger["version_end"]
    total = np.maximum(n - first, 0)
    in_flight = np.minimum(total, np.maximum(last - first, 0))
    columns = {
        "delay": n - first,
        "delay_newest": n - last,
        "delay_tokens": n - ledger["version_mean"],
        "areal": _areal(ledger, groups_per_update),
        "prime_rl": total,
        "prime_rl_in_flight": in_flight,
        "prime_rl_in_queue": total - in_flight,
        "tinker": n - first,
        "trl": n - first,
        "verl": n - last,
        "verl_worst": n - first,
        "verl_span": last - first + 1,
    }
    return {key: values for key, values in columns.items() if np.isfinite(values).any()}


def _areal(ledger: Ledger, groups_per_update: int | None) -> Floats:
    """A group that training did not accept gives its place back when it ends."""
    groups = ledger.groups
    if groups_per_update is None:
        return np.full(len(ledger), np.nan)
    ended = np.sort(groups.done[~groups.kept])
    before = np.searchsorted(np.sort(groups.submit), groups.submit) - np.searchsorted(ended, groups.submit)
    known = np.isfinite(groups.submit)
    return np.where(known, before // groups_per_update - groups.version, np.nan)[groups.of_row]
