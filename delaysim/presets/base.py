"""What presets share: how a knob is declared and written, and what a law offers to those that look for the nearest."""

from collections.abc import Iterator
from dataclasses import field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delaysim.clock.law import Law
from delaysim.clock.ready import STRICT
from delaysim.errors import UserError

Column = NDArray[Any]
NEMO = "NVIDIA-NeMo/RL, nemo_rl/algorithms/async_utils/staleness_sampler.py and examples/configs, 2026-08-22"
NEMO_BATCH = ("grpo.num_prompts_per_step={B}", "grpo.num_generations_per_prompt={G}")
NEMO_SWAPS = "Weights are swapped during generation; a group counts with those of its start."


def knob(default: Any, written: str, what: str) -> Any:
    """A field of `Knobs`: its default, how the system writes it, {} for the value, and what it is, with unit."""
    return field(default=default, metadata={"written": written, "what": what})


def knobs_of(knobs: Any) -> dict[str, Any]:
    """The knobs that have a value, by name."""
    return {f.name: getattr(knobs, f.name) for f in fields(knobs) if f.metadata and getattr(knobs, f.name) is not None}


def in_words(knobs: Any) -> str:
    """Name and knobs, e.g. areal: max_head_offpolicyness=2."""
    return f"{knobs.name}: {', '.join(f'{key}={_text(value)}' for key, value in knobs_of(knobs).items()) or 'no knobs'}"


def written(knobs: Any) -> Iterator[str]:
    """Every knob that has a value, as the system writes it; a flag, where it is on."""
    values = knobs_of(knobs)
    for f in fields(knobs):
        if f.name in values and ("{}" in f.metadata["written"] or values[f.name]):
            yield f.metadata["written"].format(_text(values[f.name]))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def updates(update: Column, version: Column, *_: Any) -> Column:
    """Updates from one to the other, n - s, as the clock counts."""
    return update - version


def syncs(update: Column, version: Column, every: int) -> Column:
    """Weight syncs between the sampler's weights and the learner's at an update."""
    return np.asarray(update // every - version // every)


def look_ahead(law: Law, system: str) -> int:
    """The law's look-ahead [updates]. Raises UserError where it has none."""
    if law.look_ahead is None:
        raise UserError(f"clock.eta=none: {system} always limits how far generation runs ahead; give a look-ahead")
    return law.look_ahead


def oldest(law: Law, system: str) -> int:
    """Bound on the delay [updates]: the age at which groups go, else the look-ahead. Raises UserError without."""
    limit = law.look_ahead if (age := age_limit(law)) is None else age
    if limit is None:
        raise UserError(f"{system} bounds the oldest delay: give clock.age_max, clock.abort_age or a look-ahead")
    return limit


def age_limit(law: Law) -> int | None:
    """No group older than this is trained on [updates]; None = groups do not go by age."""
    return min((age for age in (law.age_max, law.abort_age) if age is not None), default=None)


def bound(law: Law) -> str:
    """What the law holds the delay to, in words."""
    if (age := age_limit(law)) is not None:
        return f"no delay above {age}: older groups go, and long responses with them"
    if law.look_ahead is None:
        return "no bound on the delay: what is in generation and in the queue decides"
    if law.look_ahead == 0:
        return f"no delay above {law.sync_every - 1}: nothing is started ahead"
    if law.order in STRICT:
        return f"no delay above {law.look_ahead + law.sync_every - 1}: the learner waits for what comes first"
    mean = law.look_ahead + (law.sync_every - 1) / 2
    return f"a mean delay of {mean:g} while the look-ahead binds; single delays are not bounded"


def at_once(law: Law) -> int:
    """Groups in generation at once [groups]: the law's limit, or what its look-ahead lets be there."""
    free = (law.look_ahead or 0) + 1
    return free * law.groups_per_update if law.workers is None else law.workers


def unless(default: int, value: int) -> int | None:
    """The value, None where it is the default anyway."""
    return None if value == default else value
