"""Experts on their way from sampler to update: recorded while decoding, recomputed at launch, replayed in training."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from learners import moved
from mixtures import (
    LONGEST,
    PROMPTS,
    TEMPERATURE,
    VOCABULARY,
    at_random,
    drawn,
    gradient_of,
    launched,
    learner,
    mixture,
    natural,
    rows_of,
    scores_of,
    share_apart,
)  # fmt: skip

from delaysim.policy.layout import Row
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.rollout import Group, Response
from delaysim.policy.routing import MISSING
from delaysim.policy.sample import Decoding, sample
from delaysim.train.flips import flips_of

NEAR_TIES = 0.005
"""Share of (token, layer) pairs that two orders of adding float32 numbers may route otherwise."""


def close(a, b, share=1e-5):
    """Whether two gradients agree to a share of their length in every entry."""
    return float((a - b).abs().max()) < share * float(b.norm())


@pytest.fixture(scope="module")
def model():
    return mixture()


@pytest.fixture(scope="module")
def groups(model):
    return drawn(model)


def routes_of(groups, name="routes"):
    return [getattr(r, name) for g in groups for r in g.responses]


def updated(model, replay, groups, seed=None, **settings):
    """An update's columns and gradient, on a model of its own."""
    own = moved(model, 0.0 if seed is None else 0.02, seed or 0)
    outcome = learner(own, replay, lr=0.0, **settings).update(7, groups)
    return outcome, gradient_of(own)


# recorded


@pytest.mark.parametrize(
    "family",
    ["Qwen3Moe", pytest.param("GptOss", marks=pytest.mark.slow), pytest.param("Olmoe", marks=pytest.mark.slow)],
)
def test_the_samplers_record_is_that_of_a_forward_pass_over_its_responses(family):
    """Ragged prompts, responses that end early and leave the batch, others cut at the limit."""
    own = mixture(family)
    groups = drawn(own, size=8, stop=range(3), longest=16)
    lengths = {len(r.tokens) for g in groups for r in g.responses}
    assert len(lengths) > 5
    assert {r.finished for g in groups for r in g.responses} == {True, False}
    for group in groups:
        for response in group.responses:
            assert response.routes.shape == (
                len(group.prompt) + len(response.tokens) - 1, 3, own.config.num_experts_per_tok,
            )  # fmt: skip
            assert response.routes.min() >= 0
    assert share_apart(routes_of(groups), natural(own, groups)) < NEAR_TIES
    late = [np.roll(routes, 1, 0) for routes in routes_of(groups)]
    assert share_apart(late, natural(own, groups)) > 0.3


@pytest.mark.parametrize("settings", [{"pack": 0}, {"pack": 30, "bucket": 2}, {"pack": 0, "bucket": 5, "tokens": 40}])
def test_records_do_not_depend_on_what_shares_a_pass(model, groups, settings):
    assert share_apart(natural(model, groups, **settings), natural(model, groups, pack=200)) < NEAR_TIES


def test_routes_are_asked_for(model):
    """A sampler that is not asked records nothing; watching changes no token and no log-probability."""

    def draw(routes):
        noise = GumbelNoise(0, "test", [(i,) for i in range(9)], VOCABULARY)
        return sample(model, PROMPTS, 3, Decoding(LONGEST, TEMPERATURE, frozenset(range(6)), routes=routes), noise)

    for plain, watched in zip(draw(False), draw(True), strict=True):
        assert plain.routes is None
        assert plain.tokens.tobytes() == watched.tokens.tobytes()
        assert plain.logp.tobytes() == watched.logp.tobytes()


# replayed at launch


def test_the_pass_at_launch_replays_under_r3_alone(model, groups):
    other = moved(model)
    for replay, wanted in (("r3", routes_of(groups)), ("r2", natural(other, groups)), ("none", natural(other, groups))):
        found = routes_of(launched(other, groups, replay), "recomputed_routes")
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    assert share_apart(routes_of(groups), natural(other, groups)) > 0.02


def test_what_the_sampler_could_not_say_is_what_the_learners_router_chose(model, groups):
    """A record of the launch has no gaps, so that an update can be compared with it."""
    gaps = [replace(g, responses=tuple(replace(r, routes=_gap(r.routes)) for r in g.responses)) for g in groups]
    (found, *_), (whole, *_) = routes_of(launched(model, gaps, "r3"), "recomputed_routes"), routes_of(groups)
    assert np.array_equal(found, whole)  # one engine: the router chooses what the sampler's chose


def _gap(routes):
    routes = routes.copy()
    routes[1:3] = MISSING
    return routes


# replayed in an update


def test_r2_and_r3_are_one_where_sampler_and_learner_are_one_engine(model, groups):
    """After a move of the weights too; without replay the update is another."""
    known = launched(model, groups)
    (a, r2), (b, r3), (c, free) = (updated(model, replay, known, seed=1) for replay in ("r2", "r3", "none"))
    assert share_apart(routes_of(known), routes_of(known, "recomputed_routes")) == 0
    assert torch.equal(r2, r3)
    assert torch.equal(a.batch.logp, b.batch.logp)
    assert not close(free, r2, 1e-3)
    assert float((c.batch.logp - a.batch.logp).abs().max()) > 1e-3


def test_r3_leaves_no_flip_to_the_sampler_and_r2_none_to_the_launch(model, groups):
    """The sampler is another engine here: its routes are those of weights a little off."""
    known = launched(moved(model, 0.01, 3), groups)
    none, r2, r3 = (updated(model, replay, known, seed=1)[0].flips.update_columns() for replay in ("none", "r2", "r3"))
    assert none["flips_engine"] == r2["flips_engine"] > 0
    assert none["flips_drift"] > 0
    assert none["flips_whole"] > 0
    assert none["flips_live"] == none["flips_live_tokens"] == 0
    assert r2["flips_drift"] == r2["flips_drift_tokens"] == 0
    assert r2["flips_whole"] == r2["flips_engine"]
    assert r3["flips_whole"] == r3["flips_whole_tokens"] == 0
    assert r2["flips_live"] > 0
    assert r3["flips_live"] > 0


@pytest.mark.parametrize("replay", ["r2", "r3"])
def test_replay_of_what_the_weights_choose_is_no_replay(model, groups, replay):
    """Own routes, same weights: log-probabilities to the bit."""
    known = launched(model, groups)
    (plain, free), (again, forced) = updated(model, "none", known), updated(model, replay, known)
    assert torch.equal(plain.batch.logp, again.batch.logp)
    assert close(forced, free, 1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"gradient_checkpointing": True},
        {"bucket": 2, "pack": 0, "gradient_checkpointing": True},
        {"bucket": 3, "tokens": 60},
        {"bucket": 3, "tokens": 60, "gradient_checkpointing": True, "logits": 7},
    ],
)
@pytest.mark.parametrize("name", ["is", "gmc"])
def test_micro_batches_and_recomputed_layers_replay_what_their_rows_bring(model, groups, name, settings):
    """Graphs of several buckets are held at once and go backward with their own experts, far from the router's."""
    known = at_random(groups)
    (_, wanted), (_, found) = updated(model, "r3", known, name=name), updated(model, "r3", known, name=name, **settings)
    (_, free) = updated(model, "none", known, name=name)
    assert not close(free, wanted, 1e-2)
    assert close(found, wanted)


def test_several_steps_on_a_mini_batch_replay_in_each(model, groups):
    """Two steps without a learning rate are the one step twice; flips are the first's."""
    known = at_random(groups)
    (once, wanted), (twice, found) = (updated(model, "r3", known, updates_per_batch=n) for n in (1, 2))
    assert torch.equal(once.batch.logp, twice.batch.logp)
    assert once.flips.update_columns() == twice.flips.update_columns()
    assert float(found.norm()) > 0
    assert float(wanted.norm()) > 0


# compared


def test_columns_of_hand_made_routes():
    """Four positions that predict, two layers, top-2; the prompt's first position does not count."""
    base = np.array([[[0, 1], [2, 3]]] * 5, np.int16)
    sampler, launch, chosen = base.copy(), base.copy(), base.copy()
    sampler[0] = 7  # before the position that predicts the first token
    launch[1, 0] = [1, 0]  # the same set
    launch[2, 1] = [2, 4]
    chosen[2, 1] = [2, 4]
    chosen[3] = [[5, 6], [6, 5]]
    sampler[4, 1] = MISSING
    tokens = np.zeros(4, np.int32)
    response = Response(tokens, tokens.astype(np.float32), True, tokens.astype(np.float32), sampler, launch)
    group = Group(0, 0, np.zeros(2, np.int32), (response,), (0.0,))
    for routes, live, whole, drift in (
        (None, (0, 0), (3 / 7, 2 / 4), (2 / 8, 1 / 4)),
        (sampler, (3 / 8, 2 / 4), (0, 0), (1 / 8, 1 / 4)),
        (launch, (2 / 8, 1 / 4), (1 / 7, 1 / 4), (0, 0)),
    ):
        flips = flips_of([group], [Row(group.prompt, tokens, routes)], {0: chosen})
        found = flips.update_columns()
        assert flips.group_columns() == [found]
        wanted = {"engine": (1 / 7, 1 / 4), "drift": drift, "whole": whole, "live": live}
        assert found == {
            f"flips_{name}{suffix}": values[i]
            for name, values in wanted.items()
            for i, suffix in enumerate(("", "_tokens"))
        }


def test_groups_from_before_routes_were_recorded_count_where_they_can(model, groups):
    """A run that goes on with routing.record=true trains on groups of both kinds, in any order."""
    bare = [replace(r, routes=None) for r in groups[0].responses]
    mixed = [replace(groups[0], responses=tuple(bare)), *groups[1:]]
    chosen = scores_of(model, rows_of(groups))[1]
    wanted = flips_of(groups[1:], rows_of(groups[1:]), {i: chosen[i + 4] for i in range(8)}).update_columns()
    for order in ((0, 1, 2), (2, 1, 0)):
        some = [mixed[b] for b in order]
        theirs = {4 * place + i: chosen[4 * b + i] for place, b in enumerate(order) for i in range(4)}
        found = flips_of(some, rows_of(some), theirs).update_columns()
        assert found["flips_whole"] == wanted["flips_whole"]
    assert flips_of(groups, rows_of(groups), {}) is None


def test_an_update_leaves_no_hook(model, groups):
    own = moved(model, 0.0)
    assert learner(own, "none").update(0, groups).flips is not None
    assert not any(module._forward_hooks for module in own.modules())
