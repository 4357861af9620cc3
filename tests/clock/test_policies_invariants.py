"""What holds of every run, whatever the policies: the ledger closes, and no limit is ever passed."""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
from clock.policies import STARVED, play, policies
from hypothesis import HealthCheck, given, reject, settings

from delaysim.clock import Stalled, loop
from delaysim.clock.law import TICKS
from delaysim.clock.ledger import FATES, NEVER
from delaysim.clock.trace import group_rows

many = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def run(law):
    """The columns of a run; runs that starve are left out."""
    with patch.object(loop, "STARVED", STARVED):
        try:
            clock, asked = play(law)
        except Stalled:
            reject()
    return clock, clock.ledger.columns(), asked


def at_once(start, end):
    """Most of the intervals [start, end) that hold at one moment; -1 as an end: for ever."""
    last = max(start.max(initial=0), end.max(initial=0)) + 1
    end = np.where(end == NEVER, last, end)
    return max(((start <= tick) & (tick < end)).sum() for tick in np.unique(start)) if len(start) else 0


def first_of(*columns):
    """The earliest event of each group, -1 where none happened."""
    table = np.array([np.where(column == NEVER, np.iinfo(np.int64).max, column) for column in columns])
    return np.where(table.min(0) == np.iinfo(np.int64).max, NEVER, table.min(0))


@many
@given(policies())
def test_no_limit_is_passed(law):
    clock, c, asked = run(law)
    trained, dropped = c["update"] != NEVER, c["dropped"] != NEVER
    close(law, clock, c, asked, trained, dropped)
    admission(law, clock, c)
    if law.workers is not None:
        assert at_once(c["launch"], first_of(c["done"], c["dropped"])) <= law.workers
    if law.queue_drop is not None:
        there = c["ready"] != NEVER
        waiting = at_once(c["ready"][there], first_of(c["consumed"], c["dropped"])[there])
        assert waiting <= law.queue_drop * law.groups_per_update
    delay = (c["update"] - c["version"])[trained]
    assert law.age_max is None or delay.max() <= law.age_max
    if law.abort_age is not None and not law.lags:  # a lagging sampler's groups can be too old at their launch
        assert delay.max() <= law.abort_age
    spent = (c["done"] - c["launch"])[c["done"] != NEVER]
    assert law.timeout is None or spent.max(initial=0) <= law.timeout * TICKS
    prompts(law, c)


def close(law, clock, c, asked, trained, dropped):
    """Each launch is trained, dropped or still there, and the steps tell the same as the ledger."""
    assert (trained == (c["fate"] == FATES.index("trained"))).all()
    assert (dropped == (c["fate"] > FATES.index("never"))).all()
    assert not (trained & dropped).any()
    batches = [step.train for step in asked if step.train]
    assert [len(b.groups) + len(b.replayed) for b in batches] == [law.groups_per_update] * law.n_updates
    assert sorted(g for b in batches for g in b.groups) == np.flatnonzero(trained).tolist()
    told = [group for step in asked for group in step.dropped]
    assert told == sorted(set(told), key=told.index)
    assert set(told) <= set(np.flatnonzero(dropped))
    assert (np.diff(c["version"]) >= 0).all()
    for update, group in clock.ledger.replays:
        assert update - law.replay_window <= c["update"][group] < update
    order = [c[name][trained] for name in ("submit", "launch", "done", "ready", "consumed")]
    assert all((before <= after).all() for before, after in pairwise(order))
    rows = group_rows(clock.ledger)
    assert (rows["pre_queue"] + rows["in_queue"] == rows["delay"])[trained].all()
    assert (rows["pre_queue"] >= NEVER).all()


def admission(law, clock, c):
    """Launched less dropped, consumed and published never exceeds the look-ahead."""
    if law.look_ahead is None:
        return
    published = np.array(clock.ledger.publish)
    out = np.where(c["update"] == NEVER, c["dropped"], published[c["update"]])
    room = max((law.look_ahead + 1) * law.fresh, law.groups_per_update)
    for group, tick in enumerate(c["launch"]):
        assert group + 1 - ((out != NEVER) & (out <= tick)).sum() <= room


def prompts(law, c):
    """A prompt is launched once, or again after it was dropped, with rising attempts, as often as it may be."""
    for prompt in np.unique(c["prompt"]):
        mine = np.flatnonzero(c["prompt"] == prompt)
        assert c["attempt"][mine].tolist() == list(range(len(mine)))
        assert len(mine) <= (1 if not law.requeue else law.attempts or len(mine))
        assert (c["launch"][mine][1:] >= c["dropped"][mine][:-1]).all()
        assert (c["dropped"][mine][:-1] != NEVER).all()
    assert set(c["prompt"]) == set(range(c["prompt"].max() + 1))
