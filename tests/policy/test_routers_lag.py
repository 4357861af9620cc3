"""A sampler whose routers are some versions older than the rest of its weights."""

import copy

import pytest
import torch
from mixtures import drawn, learner, mixture

from delaysim.errors import UserError
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.lagging import Lagging, Ring
from delaysim.policy.lora import add_adapters
from delaysim.policy.model import Policy
from delaysim.policy.routing import routers
from delaysim.settings.models import LoraConf


def lagging(model, lag):
    return Lagging(model, lambda own: Policy(own, CharacterCodec()), Ring(model, lag))


def state(model):
    return copy.deepcopy(model.state_dict())


def names_of_routers(model):
    own = {id(p) for router, _ in routers(model) for p in router.parameters()}
    return {name for name, p in model.named_parameters() if id(p) in own}


def trained(model, versions):
    """Weights of each version, the base's first; yields while the model is at it."""
    made = learner(model, "none", lr=0.02)
    for version in range(versions):
        if version:
            made.update(version - 1, drawn(model, seed=version))
        yield version


def test_routers_are_older_to_the_bit_and_the_rest_is_not():
    model = mixture()
    older, found, late = lagging(model, 2), [], names_of_routers(model)
    assert len(late) == 3
    for version in trained(model, 6):
        found.append(state(model))
        older.arrive(version)
        older.arrive(version)  # as after a resume
        own = older.policy.model.state_dict()
        for name, weight in own.items():
            wanted = found[max(0, version - 2)] if name in late else found[version]
            assert torch.equal(weight, wanted[name])
    assert all(not torch.equal(found[3][name], found[5][name]) for name in late)


@pytest.mark.parametrize("cut", [0, 3])
def test_a_checkpoint_has_what_comes_next(cut):
    """Of a sampler stopped before its routers first moved, and after; it keeps no version it does not need."""
    model = mixture()
    older, again, late = lagging(model, 2), None, names_of_routers(model)
    for version in trained(model, 6):
        older.arrive(version)
        if version == cut:
            kept = {name: {key: w.clone() for key, w in part.items()} for name, part in older.state().items()}
            assert {name: len(part) for name, part in kept.items()} == {"routers": 3 * min(cut + 1, 3)}
            again = lagging(model, 2)
            again.load(version, kept)
        elif version > cut:
            again.arrive(version)
        if again is not None:
            pairs = zip(older.policy.model.parameters(), again.policy.model.parameters(), strict=True)
            assert all(torch.equal(a, b) for a, b in pairs)
    assert len(late) == 3


def test_what_training_does_not_move_cannot_lag():
    for model in (mixture("Qwen3"), mixture()):
        if routers(model):
            add_adapters(model, LoraConf(targets=["q_proj"]), 2, 0)
        with pytest.raises(UserError, match="training moves no router of this model"):
            Ring(model, 2)
