"""Predictions against closed forms, bounds, Little's law, and a clock of its own."""

from itertools import pairwise

import float_clock
import numpy as np
import pytest
from asked import SPEED, constant, costs
from hypothesis import given, settings
from hypothesis import strategies as st

from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.trace import run_alone
from delaysim.predict import simulate
from delaysim.predict.ask import held_by
from delaysim.predict.bounds import bound, rollout_bound
from delaysim.predict.costs import between
from delaysim.predict.inputs import Question
from delaysim.predict.operation import COLOCATED, ONE_STEP_OFF, SYNCHRONOUS, Cell, asynchronous, grid, law_of
from delaysim.predict.simulate import common, predict, steady_log, total


@pytest.fixture(autouse=True)
def few_responses(monkeypatch):
    """Closed forms and identities need no long runs."""
    monkeypatch.setattr(simulate, "RESPONSES", 1000)


def asked(of):
    return Question(of, 8, (2, 4, 6), (4, 16), None)


# taking turns: generation, training and sync add up


@pytest.mark.parametrize(("trainer", "rollout", "operation"), [(8, 8, COLOCATED), (2, 6, SYNCHRONOUS)])
def test_taking_turns_adds_up(trainer, rollout, operation):
    """32 responses of 500 tokens on n GPUs go on at the speed of 32/n on each; then 20/trainer s, then 3 s."""
    of = costs(lengths=constant(500), sync=3.0)
    one = predict(Cell(operation, trainer, rollout), of)
    generation = 500 / (between(SPEED, 32 / rollout) / (32 / rollout))
    assert one.seconds == pytest.approx(generation + 20 / trainer + 3, rel=1e-5)
    assert one.delay_max == 0
    assert one.tokens_per_second == pytest.approx(32 * 500 / one.seconds)
    assert one.gpu_hours == pytest.approx(8 * one.seconds / 3600)
    if operation.colocated:
        assert one.trainer == one.rollout
        assert one.trainer.busy == pytest.approx((generation + 20 / trainer) / one.seconds)
        assert one.trainer.idle == pytest.approx(0, abs=1e-9)
    else:
        assert one.trainer.busy == pytest.approx(20 / trainer / one.seconds)
        assert one.rollout.busy == pytest.approx(generation / one.seconds)
        assert one.trainer.sync == one.rollout.sync == pytest.approx(3 / one.seconds)


def test_too_few_slots_generate_in_waves():
    """32 equal responses in 2 * 4 slots go in four waves of 8 at 4 on each GPU."""
    of = costs(lengths=constant(500), slots=4)
    wave = 500 / (between(SPEED, 4) / 4)
    one = predict(Cell(SYNCHRONOUS, 1, 2), of)
    assert one.seconds == pytest.approx(4 * wave + 20, rel=1e-5)


# saturation


def test_a_saturated_learner_never_waits_and_the_mean_delay_is_eta():
    of = costs(trainer=((1.0, 400.0),), sync=7.0)
    for eta in (2, 5):
        one = predict(Cell(asynchronous(eta), 2, 6), of)
        assert one.seconds == pytest.approx(200 + 7, rel=1e-6)
        assert (one.trainer.busy, one.trainer.sync) == pytest.approx((200 / 207, 7 / 207))
        assert one.delay_mean == pytest.approx(eta, rel=0.01)
        assert held_by(one, asked(of)) == "trainer"


def test_full_rollout_gpus_make_their_peak():
    of = costs(groups=32, group_size=1, slots=8, trainer=((1.0, 0.5),))
    cell = Cell(asynchronous(16), 4, 1)
    one = predict(cell, of)
    assert one.use == pytest.approx(1, abs=0.02)
    assert one.rollout.busy == pytest.approx(1)
    assert one.seconds == pytest.approx(rollout_bound(cell, of, one.mean_length), rel=0.03)
    assert held_by(one, asked(of)) == "rollout"
    assert one.delay_mean < 2, "eight slots hold a quarter of a mini-batch, whatever eta allows"


def test_one_step_off_is_one_step_off():
    one = predict(Cell(ONE_STEP_OFF, 4, 4), costs())
    assert (one.delay_mean, one.delay_p95, one.delay_max) == (1, 1, 1)


# identities


def test_littles_law():
    """Groups between launch and publish, on average: as many as come out per second times how long each stays."""
    of = costs(slots=16)
    cell = Cell(asynchronous(3), 3, 1)
    first, updates = simulate.updates_needed(cell, of)
    law = law_of(cell, of, updates)
    lengths = KeyedLengths(of.work.lengths, of.work.group_size, 0)
    log = steady_log(run_alone(law, lengths, 0).ledger, law, lengths, first)
    left = np.where(log.update < 0, log.publish[-1], log.publish[log.update])
    inside = np.clip(left, log.start, None) - np.clip(log.launch, log.start, log.publish[-1])
    held = inside.clip(0).sum() / log.duration
    stay = (left - log.launch)[log.trained].mean()
    assert held == pytest.approx(log.trained.sum() / log.duration * stay, rel=0.02)


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 7), st.integers(1, 6), st.integers(1, 5), st.floats(0.5, 60), st.floats(0, 9), st.integers(2, 99),
    st.sampled_from([SYNCHRONOUS, ONE_STEP_OFF, asynchronous(2), asynchronous(5), COLOCATED]),
)  # fmt: skip
def test_shares_sum_to_one_and_no_schedule_beats_its_bound(trainer, groups, group_size, update, sync, slots, operation):
    cell = Cell(operation, 8 if operation.colocated else trainer, 8 if operation.colocated else 8 - trainer)
    of = costs(groups, group_size, trainer=((4.0, update),), sync=sync, slots=slots)
    simulate.RESPONSES = 200
    one = predict(cell, of)
    for shares in (one.trainer, one.rollout):
        assert shares.busy + shares.sync + shares.idle == pytest.approx(1)
        assert min(shares.busy, shares.sync, shares.idle) >= -1e-9
    assert one.use <= 1.1
    if operation.look_ahead == 0:
        assert one.seconds >= bound(cell, of, one.mean_length) * (1 - 1e-6)
    else:
        assert one.seconds >= (update * 4 / trainer + sync) * (1 - 1e-6)


# a clock written apart


@pytest.mark.parametrize("cell", grid(8, (2, 5), (1, 3)), ids=lambda cell: f"{cell.operation.name} {cell.split}")
def test_the_clock_agrees_with_a_loop_over_floats(cell):
    """Times to a millisecond over a run, the same mini-batches and versions throughout."""
    of = costs(groups=4, group_size=3, sync=0.7, trainer=((1.0, 21.0),))
    law = law_of(cell, of, 30)
    lengths = KeyedLengths(of.work.lengths, of.work.group_size, 5)
    ledger = run_alone(law, lengths, 5).ledger
    expected = float_clock.run(law, lengths.table(len(ledger)).tolist())
    assert np.array(ledger.publish) / 1e6 == pytest.approx(expected["publish"], abs=2e-3)
    assert np.array(ledger.poll) / 1e6 == pytest.approx(expected["poll"], abs=2e-3)
    trained = [(group, update) for group, update in enumerate(ledger.update) if update >= 0]
    assert trained == sorted(expected["update"].items())
    assert list(ledger.version) == expected["version"][: len(ledger)]


@pytest.mark.parametrize(("group_size", "slots"), [(4, 8), (8, 64), (3, 7)])
def test_a_slot_that_one_response_leaves_is_taken_at_once(group_size, slots):
    """A group is launched as soon as one of its responses finds a slot, not only when a whole group ends."""
    of = costs(group_size=group_size, slots=slots, trainer=((1.0, 0.5),))
    law = law_of(Cell(asynchronous(16), 4, 1), of, 20)
    lengths = KeyedLengths(of.work.lengths, group_size, 5)
    ledger = run_alone(law, lengths, 5).ledger
    expected = float_clock.run(law, lengths.table(len(ledger) + 20).tolist())
    assert np.array(ledger.publish) / 1e6 == pytest.approx(expected["publish"], abs=5e-3)
    assert list(ledger.version) == expected["version"][: len(ledger)]


@given(st.lists(st.floats(0, 99), min_size=2, max_size=12, unique=True),
       st.lists(st.floats(0, 99), min_size=2, max_size=12, unique=True))  # fmt: skip
def test_what_spans_have_in_common(a, b):
    """Against membership of the middles of all elementary pieces, and the length of a union."""
    one, other = (np.array(sorted(points)[: len(points) // 2 * 2]).reshape(-1, 2) for points in (a, b))
    both = common(one, other)
    edges = sorted({*one.ravel(), *other.ravel()})
    within = lambda spans, x: any(low < x < high for low, high in spans)  # noqa: E731
    by_hand = sum(v - u for u, v in pairwise(edges)
                  if within(one, (u + v) / 2) and within(other, (u + v) / 2))  # fmt: skip
    assert total(both) == pytest.approx(by_hand, abs=1e-9)
