"""The row that every log format is brought to."""

from typing import NamedTuple

KEPT = ("trained", "accepted")
"""Statuses of a response that reached training; `accepted`: kept, and the log does not say for which update."""
STATUSES = (*KEPT, "untrained", "rejected", "dropped", "failed", "pending")


class Row(NamedTuple):
    """One response; or, where a log has sums only, one update. None is what the log does not say."""

    group_id: str | None = None
    """Responses to one prompt, launched together."""
    sample: int | None = None
    """Of the group, from 0."""
    submit_t: float | None = None
    """When it was launched [s, from an origin of the log's own]."""
    done_t: float | None = None
    """When it was complete, with its reward where that is timed [s]."""
    tokens: int | None = None
    """Generated tokens, of all its turns."""
    version_start: int | None = None
    """Updates behind the weights of its first token."""
    version_end: int | None = None
    """Updates behind the weights of its last token."""
    version_mean: float | None = None
    """The same, averaged over its tokens."""
    consumed_update: int | None = None
    """The update that trained on it, from 0."""
    status: str | None = None
    """One of STATUSES; of a CSV file its own word."""
    reported_mean: float | None = None
    """Staleness of an update as the system itself averaged it."""
    reported_max: float | None = None
    """The same, its largest."""
    reported_in_flight: float | None = None
    """The part of `reported_mean` that went by during generation."""
    reported_in_queue: float | None = None
    """The part that went by in the queue."""
    reported_dropped: int | None = None
    """Responses that the system dropped as too old since the update before."""
