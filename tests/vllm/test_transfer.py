"""Weights sent to an engine in another process by vLLM's own calls: which, in what order, and what ends it."""

import copy
import os
import signal
import threading
from contextlib import closing

import numpy as np
import pytest
import torch

from delaysim.errors import SamplerFailed
from delaysim.policy import vllm_sender
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.remote import RemoteSampler, Seat
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw
from delaysim.policy.vllm_sampler import VllmSampler
from delaysim.settings.samplers import VllmSamplerConf

pytestmark = pytest.mark.vllm
CODEC = CharacterCodec()
CONF = VllmSamplerConf(max_new_tokens=48)
ROUND = ["start_weight_update", "update_weights", "finish_weight_update"]


def move(model, size=0.02):
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=rng))


def draw(sampler, prompts):
    keys = [(b, 0, i) for b in range(len(prompts)) for i in range(4)]
    return sampler.sample(prompts, 4, Decoding(20, 1.0, CODEC.stop_ids), Draw(0, "test", keys))


def same(one, other):
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(a.tokens, b.tokens) and np.array_equal(a.logp, b.logp) for a, b in pairs)


@pytest.fixture
def asked(monkeypatch):
    """Every request made of the other process, in order."""
    found, ask = [], RemoteSampler._ask

    def listening(self, *request):
        found.append(request)
        return ask(self, *request)

    monkeypatch.setattr(RemoteSampler, "_ask", listening)
    return found


@pytest.fixture
def learner(tiny):
    return copy.deepcopy(tiny)


@pytest.fixture
def remote(learner, asked):
    with closing(RemoteSampler(learner, Seat(CODEC, CONF, "cpu", 1, carrier="gloo"))) as sampler:
        yield sampler


def test_an_engine_elsewhere_draws_what_one_here_draws(learner, remote, asked, prompts):
    """Bit for bit, before and after an update; its weights came in one round of vLLM's calls a version, each named."""
    with closing(VllmSampler(learner, CODEC, CONF)) as here:
        before = draw(here, prompts)
        assert same(draw(remote, prompts), before)
        move(learner)
        assert same(draw(remote, prompts), before), "not before the publish"
        for sampler in (here, remote):
            sampler.publish(1)
        after = draw(here, prompts)
    assert not same(after, before)
    assert same(draw(remote, prompts), after)
    assert 0 < remote.gap < 1e-5
    calls = [request[1:] for request in asked if request[0] == "control"]
    assert [name for name, *_ in calls] == ["init_weight_transfer_engine", *ROUND, *ROUND]
    assert [version for name, *version in calls if name == ROUND[2]] == [["0"], ["1"]]
    ends = [i for i, request in enumerate(asked) if request[0] == "control" and request[1] == ROUND[2]]
    assert [asked[i + 1] for i in ends] == [("publish", 0), ("publish", 1)], "scored once they are there"
    for described in [arguments[0]["update_info"] for name, *arguments in calls if name == ROUND[1]]:
        assert dict(zip(described["names"], described["shapes"], strict=True)) == {
            name: list(weight.shape) for name, weight in learner.state_dict().items()
        }
        assert set(described["dtype_names"]) == {"float32"}


def test_weights_spoilt_on_the_way_are_found_out(learner, remote, monkeypatch):
    """The other process scores the fixed batch with weights that came by main memory."""
    from delaysim.policy import vllm_transfer

    published = vllm_transfer.published
    monkeypatch.setattr(
        vllm_transfer, "published", lambda *a: ((n, w * 1.05 if "up_proj" in n else w) for n, w in published(*a))
    )
    with pytest.raises(SamplerFailed, match=r"after version 1 .* differ from the learner's by [\d.]+ nats"):
        remote.publish(1)


def test_an_update_that_never_came_is_found_out(remote, monkeypatch):
    monkeypatch.setattr(remote._sender, "send", lambda version: None)
    with pytest.raises(SamplerFailed, match="has the weights of version 0, not of 1"):
        remote.publish(1)


def test_what_the_engine_refuses_is_said_in_its_words(remote, monkeypatch):
    """The sender's own error, a closed socket, would explain nothing."""
    for meta in remote._sender._trainer.source._metadata:
        object.__setattr__(meta, "name", f"no.{meta.name}")
    with pytest.raises(SamplerFailed, match=r"the vLLM engine failed in update_weights: \w+: .*no"):
        remote.publish(1)


def test_an_engine_that_dies_between_two_tensors_ends_the_publish(remote, monkeypatch):
    from delaysim.policy import vllm_transfer

    published = vllm_transfer.published

    def dying(*given):
        for i, weight in enumerate(published(*given)):
            if i == 3:
                os.kill(remote._process.pid, signal.SIGKILL)
            yield weight

    monkeypatch.setattr(vllm_transfer, "published", dying)
    with pytest.raises(SamplerFailed, match="ended with code -9"):
        remote.publish(1)


# NCCL, without a GPU: everything but the wire


@pytest.fixture
def nccl(learner, monkeypatch):
    """A sender whose broadcasts go into a list; what is told, and what is broadcast."""
    from vllm.distributed.weight_transfer import nccl_engine

    told, sent = [], []
    monkeypatch.setattr(nccl_engine, "open_trainer_endpoint", lambda info: info)

    def broadcast(self, source, meta):
        sent.append(list(self._checked_iter(source, meta)))

    monkeypatch.setattr(nccl_engine.NCCLTrainerWeightTransferEngine, "_broadcast", broadcast)
    tell = lambda *call: told.append(call)  # noqa: E731
    return vllm_sender.Sender(learner, "nccl", "cuda:1", tell, lambda: True), told, sent


def test_nccl_is_told_where_to_meet_what_comes_and_which_version(learner, nccl):
    sender, told, sent = nccl
    sender.send(7)
    move(learner)
    sender.send(8)
    (_, opening), *rounds = told
    info = opening["init_info"]
    assert (info["master_address"], info["rank_offset"], info["world_size"], info["packed"]) == (
        "127.0.0.1",
        1,
        2,
        True,
    )
    assert sender._trainer.model_update_group.master_port == info["master_port"] > 0
    assert [call[0] for call in rounds] == ROUND * 2
    assert [rounds[2], rounds[5]] == [(ROUND[2], "7"), (ROUND[2], "8")]
    assert rounds[1] == rounds[4]
    own, described = learner.state_dict(), rounds[1][1]["update_info"]
    assert described["names"] == [name for name, _ in sent[0]] == [name for name, _ in sent[1]]
    assert all(torch.equal(own[name], weight) for name, weight in sent[1])
    assert set(described["names"]) == set(own), "a GPU's engine keeps a tied head tied; this one is not"


def test_a_gpus_engine_keeps_a_tied_head_tied(learner, nccl):
    from delaysim.policy.vllm_transfer import Source

    learner.config.tie_word_embeddings = True
    learner.tie_weights()
    names = {untied: [m.name for m in Source(learner, untied).metadata()] for untied in (False, True)}
    assert set(names[True]) - set(names[False]) == {"lm_head.weight"}
    assert not vllm_sender.untied_on("cuda:1")


def test_a_sender_that_waits_for_ever_for_a_dead_engine_is_left(nccl, monkeypatch):
    sender, _, _ = nccl
    monkeypatch.setattr(vllm_sender, "LAST_WORDS_S", 0.1)
    stuck = threading.Event()
    monkeypatch.setattr(sender._trainer, "send_weights", stuck.wait)
    monkeypatch.setattr(sender, "_alive", lambda: False)
    with pytest.raises(SamplerFailed, match="ended while it was given weights"):
        sender.send(1)
    stuck.set()
