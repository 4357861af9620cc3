"""Every policy of the clock against its rules written a second time, alone and together, in every column."""

import pytest
from clock.policies import CHOICES, by_the_rules, flat, outcome, play, policies
from clock.policy_reference import PolicyReference
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delaysim.clock import Clock, Law, Stalled
from delaysim.clock.ready import ORDERS


def many(examples):
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


TOGETHER = {
    "requeue": {"requeue": st.just(True), "queue_drop": CHOICES["queue_drop"], "timeout": CHOICES["timeout"]},
    "attempts": {"requeue": st.just(True), "attempts": CHOICES["attempts"], "age_max": CHOICES["age_max"]},
    "sync_mode": {"sync_mode": st.just("background"), "sync_time": CHOICES["sync_time"]},
    "replay_window": {"replay": CHOICES["replay"], "replay_window": CHOICES["replay_window"]},
}
"""Settings that mean something only beside others."""


@many(100)
@given(policies())
def test_policies_together_by_the_rules(law):
    assert outcome(law) == by_the_rules(law)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CHOICES))
def test_each_policy_by_the_rules(name):
    """The policy named is on in every law; others come and go."""

    @many(200)
    @given(policies(**TOGETHER.get(name, {name: CHOICES[name]})))
    def check(law):
        assert outcome(law) == by_the_rules(law)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("order", sorted(ORDERS))
def test_each_order_by_the_rules(order):
    @many(200)
    @given(policies(order=st.just(order)))
    def check(law):
        assert outcome(law) == by_the_rules(law)

    check()


@pytest.mark.parametrize("eta", [0, 1, 2])
@pytest.mark.parametrize("replay", [0.5, 0.75])
def test_replay_leaves_room_for_a_whole_first_mini_batch(eta, replay):
    """With B=4 and few fresh groups, (eta+1) * fresh can be less than the first mini-batch needs."""
    law = Law(8, 4, eta, 4.0, 1.0, replay=replay, replay_window=1)
    assert outcome(law) is not None
    assert outcome(law) == by_the_rules(law)


def test_a_queue_never_holds_more_than_it_may():
    """B=1 and 1.5 mini-batches: one finished group waits, and not two."""
    law = Law(3, 1, 3, 4.0, 10.0, 1.0, 2.0, queue_drop=1.5)
    clock, _ = play(law, lambda prompt, attempt: prompt + 1)
    # 0 is done at 2 and trained on until 12; 1, 2 and 3 are done at 4, 6 and 8: each pushes out the one before
    assert [clock.ledger.dropped.get(group, (None, None))[1] for group in range(4)] == [
        None,
        6_000_000,
        8_000_000,
        None,
    ]


def test_an_end_at_the_tick_of_the_time_limit_counts():
    law = Law(2, 1, 0, 4.0, 1.0, timeout=4.0)
    assert play(law)[0].ledger.dropped == {}
    assert play(Law(2, 1, 0, 4.0, 1.0, timeout=4.0, slots=1, l_ref=2.0), lambda *_: [2])[0].ledger.dropped == {}


def test_prompts_that_come_in_do_not_hide_a_stall():
    """eta=0, B=1: the one group that may be launched is lost, and prompts still arrive."""
    clock = Clock(Law(2, 1, 0, 4.0, 1.0, arrivals=1.0))
    steps = clock.steps()
    steps.send(None)
    with pytest.raises(Stalled, match=r"0 are ready.*: 0 \(version 0\)"):
        steps.send([None])


def test_the_reference_draws_what_is_kept_apart():
    """Were flat groups ignored, the reference and the clock would agree for the wrong reason."""
    law = Law(6, 2, 2, 4.0, 1.0, zero_variance="replaced")
    fates = PolicyReference(law, lambda prompt, attempt: 2, flat).run().columns()["fate"]
    assert [fates[group] for group in range(6)] == [0, 6, 0, 0, 0, 6]
