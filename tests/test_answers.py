"""What a resumed run knows from its record: answers to launches, dropped groups, groups that replay may draw again."""

import numpy as np
import pytest

from delaysim.clock import Clock, Law, Train
from delaysim.clock.steps import Answer, Launch
from delaysim.clock.trace import run_alone
from delaysim.run.answers import Answers, dropped_before
from delaysim.run.consumed import Consumed

LAW = Law(30, 2, 4, 5.0, 1.0, lam=1.0, l_ref=20.0)
ROWS = [
    {"group": 5, "lengths": [3, 9, 6], "rewards": [1.0, 0.0, 1.0]},
    {"group": 6, "lengths": [4, 4, 7], "rewards": [0.5, 0.5, 0.5]},
]
LAUNCH = Launch.fresh(2, range(5, 7))


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, [9, 7]),
        ({"stat": "mean"}, [6.0, 5.0]),
        ({"stat": "sum"}, [18, 15]),
        ({"slots": 8}, [[3, 9, 6], [4, 4, 7]]),
        ({"zero_variance": "replaced"}, Answer([9, 7], [6])),
    ],
)
def test_a_launch_is_answered_as_its_law_asks(changed, wanted):
    answers = Answers(Law(**vars(LAW) | changed), ROWS)
    assert answers.to(LAUNCH) == wanted
    assert answers.has(LAUNCH)
    assert not answers.has(Launch.fresh(2, range(5, 8)))


class Drawn:
    """Lengths and rewards of groups, kept as rows of `launches`."""

    def __init__(self):
        self.rows = {}

    def answer(self, law, launch):
        for group in launch.groups:
            rng = np.random.default_rng(group)
            self.rows[group] = {
                "group": group, "lengths": rng.integers(1, 60, 4).tolist(), "rewards": rng.integers(0, 2, 4).tolist()
            }  # fmt: skip
        return Answers(law, self.rows.values()).to(launch)


@pytest.mark.parametrize(
    "changed",
    [
        {"abort_age": 4, "requeue": True},
        {"age_max": 4, "zero_variance": "replaced"},
        {"timeout": 9.0, "requeue": True, "attempts": 2},
        {"queue_drop": 1.0, "workers": 12, "look_ahead": None},
    ],
)
def test_what_was_dropped_before_a_checkpoint_is_known_from_the_launches(changed):
    """Dropped by the publish it was made at, at the latest; and nothing that is dropped after the update to come."""
    law, drawn = Law(**vars(LAW) | changed), Drawn()
    whole = run_alone(law, drawn)
    ticks = {group: tick for group, (_, tick) in whole.ledger.dropped.items()}
    assert len(ticks) > 5
    for version in range(1, law.n_updates):
        last, following = whole.ledger.publish[version - 1 : version + 1]
        known = [row for row in drawn.rows.values() if whole.ledger.launch[row["group"]] < last]
        gone = dropped_before(Clock(law), Answers(law, known), version)
        assert {group for group, tick in ticks.items() if tick < last} <= gone
        assert gone <= {group for group, tick in ticks.items() if tick <= following}


def test_consumed_groups_stay_for_the_window():
    """As the clock draws: after update n those of the last `replay_window` updates."""
    law = Law(**vars(LAW) | {"replay": 0.5, "replay_window": 2})
    consumed = Consumed(law, 0, [])
    assert consumed.add(Train(0, (0, 3), (0, 0), 0, 0)) == []
    assert consumed.add(Train(1, (1,), (0,), 0, 0, (3,))) == []
    assert consumed.add(Train(2, (2,), (0,), 0, 0, (1,))) == [0, 3]
    assert consumed.groups == {1, 2}
    rows = [{"group": g, "update": n, "replayed": r} for n, g, r in [(0, 3, False), (1, 1, False), (1, 3, True)]]
    assert Consumed(law, 2, rows).groups == {3, 1}
    assert Consumed(law, 3, rows).groups == {1}
    assert Consumed(LAW, 2, rows).add(Train(2, (4, 7), (0, 0), 0, 0)) == [4, 7]
