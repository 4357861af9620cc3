"""What the clock asks of its driver: the order of its requests, the weights they use, and how it stalls."""

import pytest
from clock.cases import LENGTHS, laws
from clock.helpers import Table, drive
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.clock import Clock, Launch, Law, Stalled

LONGEST = [3, 1, 2, 5, 1, 2, 4, 1, 2, 2, 6]


class SpellingPolicy:
    """Generates the number of its own weights, and learns by adding one to it."""

    def __init__(self):
        self.weights, self.spelled, self.trained, self.beside = 0, {}, [], 0

    def execute(self, step):
        if step.launch is not None:
            self.spelled |= dict.fromkeys(step.launch.groups, self.weights)
        if step.train is not None:
            self.trained.append(step.train.update)
            self.weights += 1
        if step.launch is not None and step.train is not None:
            self.beside += 1
            assert not set(step.launch.groups) & set(step.train.groups)
            assert step.launch.version == step.train.update

    def drive(self, clock, longest):
        steps, answer, table = clock.steps(), None, Table(longest)
        try:
            while True:
                step = steps.send(answer)
                self.execute(step)
                answer = None if step.launch is None else table.longest(step.launch.groups)
        except StopIteration:
            return self


def inside_updates(ledger):
    """Groups launched strictly between the poll and the publish of an update."""
    spans = list(zip(ledger.poll, ledger.publish, strict=True))
    return [g for g, tick in enumerate(ledger.launch) if any(poll < tick < publish for poll, publish in spans)]


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("eta", [0, 1, 6])
@pytest.mark.parametrize("slots", [None, 1, 2, 3])
def test_generated_with_the_weights_it_is_stamped_with(slots, eta, lam):
    clock = Clock(Law(30, 2, eta, 1.7, 3.0, lam, 2.0, workers=slots))
    policy = SpellingPolicy().drive(clock, LONGEST)
    assert policy.trained == list(range(30))
    assert all(policy.spelled[g] == clock.ledger.version[g] for g in policy.spelled)
    assert len(policy.spelled) == (60 if lam == 0 else len(clock.ledger))


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_launches_inside_updates_carry_the_published_weights(slots):
    clock = Clock(Law(30, 2, 6, 1.7, 3.0, 1.0, 2.0, workers=slots))
    policy = SpellingPolicy().drive(clock, LONGEST)
    inside = inside_updates(clock.ledger)
    assert len(inside) >= 10
    assert [policy.spelled[g] for g in inside] == [clock.ledger.version[g] for g in inside]


def test_without_a_limit_on_workers_updates_run_beside_launches_and_none_inside():
    clock = Clock(Law(30, 2, 6, 1.7, 3.0, 1.0, 2.0))
    policy = SpellingPolicy().drive(clock, LONGEST)
    assert policy.beside > 20
    assert inside_updates(clock.ledger) == []


def test_completions_at_the_tick_of_a_publish_come_before_its_admission():
    """eta*C_update = C_gen: what update n needs completes as update n-1 is published, and so is decided by then.

    Launches follow versions 0..25; beside each but the first stands an update.
    """
    assert SpellingPolicy().drive(Clock(Law(30, 2, 4, 4.0, 1.0)), LONGEST).beside == 25


@pytest.mark.parametrize("law", [Law(9, 2, 4, 0.0, 1.0), Law(9, 2, 4, 1.0, 1.0, workers=6)], ids=["instant", "workers"])
def test_no_update_runs_beside_a_launch_that_could_be_in_it_or_precede_its_publish(law):
    assert SpellingPolicy().drive(Clock(law), LONGEST).beside == 0


@settings(max_examples=150, deadline=None)
@given(laws(), LENGTHS)
def test_a_train_says_what_the_ledger_says(law, longest):
    clock, asked = drive(law, longest)
    trains, ledger = [step.train for step in asked if step.train], clock.ledger
    free = [0, *ledger.publish]
    assert [t.update for t in trains] == list(range(law.n_updates))
    for t in trains:
        assert [ledger.update[g] for g in t.groups] == [t.update] * law.groups_per_update
        assert list(t.groups) == sorted(t.groups)
        assert t.versions == tuple(ledger.version[g] for g in t.groups)
        assert (t.publish, t.wait) == (ledger.publish[t.update], ledger.poll[t.update] - free[t.update])
        assert t.publish == ledger.poll[t.update] + law.training_ticks


@settings(max_examples=150, deadline=None)
@given(laws(lam=(1.0,)), LENGTHS)
def test_launches_ask_for_each_group_once_in_order(law, longest):
    clock, asked = drive(law, longest)
    launches = [step.launch for step in asked if step.launch]
    assert [g for launch in launches for g in launch.groups] == list(range(len(clock.ledger)))
    assert all(launch.groups for launch in launches)
    assert asked[0].launch == Launch.fresh(
        0, range(min(law.workers or 99, (law.look_ahead + 1) * law.groups_per_update))
    )


def lose(law, lost):
    """Drive the clock; the groups in `lost` never complete."""
    clock = Clock(law)
    steps, answer = clock.steps(), None
    try:
        while True:
            launch = steps.send(answer).launch
            answer = launch and [None if group in lost else 2 for group in launch.groups]
    except StopIteration:
        return clock


def test_a_stall_names_a_group_of_a_later_version():
    """B=2, eta=0: groups 6 and 7 are launched at version 3."""
    with pytest.raises(Stalled, match=r"^update 3 needs B=2 groups, 1 are ready.*: 7 \(version 3\)$"):
        lose(Law(9, 2, 0, 4.0, 1.0, 1.0, 2.0), {7})


def test_a_stall_names_groups_of_several_versions():
    """B=2, eta=1: of 4, 5 (version 1) and 2, 3 (version 0) too few are left for update 2."""
    with pytest.raises(
        Stalled, match=r"^update 2 .* 1 are ready.*: 3 \(version 0\), 4 \(version 1\), 7 \(version 2\)$"
    ):
        lose(Law(9, 2, 1, 4.0, 1.0, 1.0, 2.0), {3, 4, 7})


def test_a_stall_of_many_groups_names_the_first_eight():
    with pytest.raises(Stalled, match=r"0 are ready.*: 0 \(version 0\), .* 7 \(version 0\), \.\.\.$"):
        lose(Law(9, 3, 2, 4.0, 1.0, 1.0, 2.0), set(range(9)))


def test_a_lost_group_keeps_its_worker():
    """Two workers, one lost group: one slot carries on until the second is lost."""
    with pytest.raises(Stalled, match=r"0 are ready.*: 1 \(version 0\), 6 \(version"):
        lose(Law(9, 1, 9, 4.0, 1.0, 1.0, 2.0, workers=2), {1, 6})


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_a_run_that_can_do_without_a_lost_group_goes_on(lam):
    law = Law(9, 2, 3, 4.0, 1.0, lam, 2.0)
    clock = lose(law, {1})
    c = clock.ledger.columns()
    assert clock.version == 9
    assert (c["done"][1], c["update"][1], c["ready_version"][1], clock.ledger.due[1]) == (-1, -1, -1, -1)
    assert sum(c["update"] >= 0) == 18


@pytest.mark.parametrize("answer", [None, [], [3], [3, 3, 3]])
def test_a_launch_of_two_groups_takes_two_lengths(answer):
    steps = Clock(Law(3, 2, 0, 4.0, 1.0, 1.0, 2.0)).steps()
    assert steps.send(None).launch == Launch.fresh(0, range(0, 2))
    with pytest.raises(ValueError, match=r"range\(0, 2\) must be answered with as many lengths"):
        steps.send(answer)


@given(st.integers(1, 5), st.integers(0, 3))
def test_the_clock_can_be_read_between_steps(b, eta):
    """At the request to train alone, the update counts as published and the clock stands at its publish."""
    clock = Clock(Law(6, b, eta, 0.0, 1.0))
    steps, answer, seen = clock.steps(), None, []
    while len(seen) < 6:
        step = steps.send(answer)
        answer = step.launch and [1] * len(step.launch.groups)
        if step.train:
            seen.append((clock.version, clock.now))
    assert seen == [(n, n * 1_000_000) for n in range(1, 7)]


@pytest.mark.parametrize("order", ["completion", "submit"])
def test_a_law_that_limits_no_launch_is_refused(order):
    with pytest.raises(ValueError, match="nothing limits launches: the law needs look_ahead, workers, slots or"):
        Clock(Law(3, 1, None, 1.0, 1.0, order=order))
