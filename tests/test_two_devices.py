"""A sampler on a second device: what is recorded is what one device records, and both work at once."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from learners import CODEC, tiny_base
from policies import COUPLED, POLICIES
from settings import fingerprint, rows, run, small_config
from stopping import finished, stopped_and_resumed

from delaysim.errors import SamplerFailed
from delaysim.policy.remote import RemoteSampler, Seat
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw, HfSampler
from delaysim.settings.samplers import HfSamplerConf
from delaysim.train.learner import Collapsed, Learner

TWO = "devices=[cpu,cpu]"
PROMPTS = [CODEC.encode_prompt("4+8+3="), CODEC.encode_prompt("1+2+9+5+5=")]
DECODING = Decoding(12, 1.0, CODEC.stop_ids)


@pytest.fixture
def base(base_cache):
    return tiny_base()


@pytest.fixture
def remote(base):
    sampler = RemoteSampler(base, Seat(CODEC, HfSamplerConf(), "cpu", 1))
    yield sampler
    sampler.close()


def draw(group):
    return Draw(7, "sampling", [(group, 0, i) for i in range(6)])


def same(one, other):
    pairs = list(zip(one, other, strict=True))
    return all(np.array_equal(a.tokens, b.tokens) and np.array_equal(a.logp, b.logp) for a, b in pairs)


@torch.no_grad()
def move(model, by=0.05):
    for i, parameter in enumerate(model.parameters()):
        parameter.add_(by * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(i)))


# the sampler


def test_it_draws_what_a_sampler_in_this_process_draws(base, remote):
    """Bit for bit, before and after a publish; and with the old weights until then."""
    here = HfSampler(base, CODEC.vocabulary)
    before = here.sample(PROMPTS, 3, DECODING, draw(0))
    assert same(remote.sample(PROMPTS, 3, DECODING, draw(0)), before)
    assert same(remote.sample(PROMPTS, 3, DECODING, None), here.sample(PROMPTS, 3, DECODING, None))
    move(base)
    after = here.sample(PROMPTS, 3, DECODING, draw(0))
    assert not same(before, after)
    assert same(remote.sample(PROMPTS, 3, DECODING, draw(0)), before)
    remote.publish(1)
    assert same(remote.sample(PROMPTS, 3, DECODING, draw(0)), after)


def test_what_was_asked_before_a_publish_has_the_weights_before_it(base, remote):
    here = HfSampler(base, CODEC.vocabulary)
    wanted = [here.sample(PROMPTS, 3, DECODING, draw(group)) for group in range(3)]
    answers = [remote.start(PROMPTS, 3, DECODING, draw(group)) for group in range(3)]
    assert same(answers[0](), wanted[0])
    move(base)
    remote.publish(1)
    assert same(answers[1](), wanted[1])
    assert same(answers[2](), wanted[2])
    assert not same(remote.sample(PROMPTS, 3, DECODING, draw(2)), wanted[2])


def test_an_error_over_there_is_one_line_here(base, remote):
    with pytest.raises(SamplerFailed, match="IndexError: index out of range in self"):
        remote.sample([np.array([999], np.int32)], 1, DECODING, None)
    with pytest.raises(SamplerFailed, match="the sampler's process ended with code"):
        remote.sample(PROMPTS, 3, DECODING, draw(0))


def test_a_sampler_that_cannot_be_made_says_why(base):
    conf = replace(HfSamplerConf(), dtype="float12")
    with pytest.raises(SamplerFailed, match="AttributeError"):
        RemoteSampler(base, Seat(CODEC, conf, "cpu", 1))
    with pytest.raises(SamplerFailed, match="nowhere"):
        RemoteSampler(base, Seat(CODEC, HfSamplerConf(), "nowhere", 1))


def test_a_process_that_dies_is_said_to_have_died(base, remote):
    os.kill(remote._process.pid, signal.SIGKILL)
    with pytest.raises(SamplerFailed, match=r"ended with code -9"):
        remote.sample(PROMPTS, 3, DECODING, draw(0))


ORPHAN = """
import sys, time
from learners import CODEC, tiny_base
from delaysim.policy.remote import RemoteSampler, Seat
from delaysim.settings.samplers import HfSamplerConf
print(RemoteSampler(tiny_base(), Seat(CODEC, HfSamplerConf(), "cpu", 1))._process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_no_process_is_left_when_the_learners_is_killed(base_cache):
    paths = os.pathsep.join(filter(None, [os.path.dirname(__file__), *sys.path]))
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    ) as parent:
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.kill()
    for _ in range(100):
        if not alive(child):
            return
        time.sleep(0.1)
    raise AssertionError(f"process {child} outlived its learner by 10 s")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "overrides"),
    [
        ("fixed_delay", ("D=3",)),
        ("fixed_delay", ("D=0",)),
        ("fixed_delay", ("D=2", "sampler.chunk=2", "updates=5")),
        ("fixed_delay", ("D=2", "sampler.dtype=bfloat16", "updates=5")),
        ("simulated_async", ("clock.pilot=4", "C_gen=3")),
        ("fixed_delay", ("model=tiny_moe", "D=2", "sampler.experts_implementation=batched_mm", "updates=4")),
        ("simulated_async", (*COUPLED, *POLICIES["all"])),
        ("simulated_async", (*COUPLED, *POLICIES["copied"])),
    ],
)
def test_two_devices_leave_the_record_of_one(base_cache, tmp_path, suite, overrides):
    for name, devices in (("one", "devices=[cpu]"), ("two", TWO)):
        assert run(small_config(*overrides, devices, suite=suite), tmp_path / name).state == "done"
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two")


@pytest.mark.slow
def test_a_run_may_go_on_with_another_number_of_devices(base_cache, tmp_path, monkeypatch):
    wanted = finished(["D=2"], tmp_path / "whole")
    assert stopped_and_resumed(["D=2", TWO], tmp_path / "two", monkeypatch) == wanted
    with monkeypatch.context() as patch:
        patch.setattr("stopping.small_config", lambda *o: small_config(*o, *([TWO] if "resume=must" in o else [])))
        assert stopped_and_resumed(["D=2"], tmp_path / "mixed", monkeypatch) == wanted


@pytest.mark.parametrize(("cost", "wanted"), [(1, [0, 2, 2, 2, 2, 2, 0, 0]), (85, [0, 2, 2, 0, 2, 2, 0, 0])])
@pytest.mark.slow
def test_generation_is_under_way_while_the_learner_trains(base_cache, tmp_path, monkeypatch, cost, wanted):
    """With D=2: all the way where a group takes an update, two updates of three where it takes longer than three."""
    under_way, update = [], Learner.update

    def watched(self, n, groups):
        (sampler,) = samplers
        under_way.append(sampler._asked - sampler._arrived)
        return update(self, n, groups)

    samplers, made = [], RemoteSampler.__init__

    def remembered(self, *arguments):
        samplers.append(self)
        made(self, *arguments)

    monkeypatch.setattr(Learner, "update", watched)
    monkeypatch.setattr(RemoteSampler, "__init__", remembered)
    assert run(small_config("D=2", f"C_gen={cost}", TWO), tmp_path / "run").state == "done"
    assert under_way == wanted  # chunks of one group; the last two updates launch nothing that is ever consumed
    found = rows(tmp_path / "run", "updates", clocks=True)
    assert all(row["sampler_s"] > 0 for row in found[:6])


@pytest.mark.slow
def test_an_update_that_collapses_leaves_the_launch_it_was_beside(base_cache, tmp_path, monkeypatch):
    update = Learner.update

    def collapsing(self, n, groups):
        if n == 4:
            raise Collapsed("update 4, group 8: a coefficient is not finite")
        return update(self, n, groups)

    monkeypatch.setattr(Learner, "update", collapsing)
    for name, devices in (("one", "devices=[cpu]"), ("two", TWO)):
        assert run(small_config("D=2", devices), tmp_path / name).state == "collapsed"
    for file in ("launches", "updates", "groups", "evals"):
        assert rows(tmp_path / "one", file) == rows(tmp_path / "two", file)


@pytest.mark.slow
def test_a_sampler_that_dies_beside_an_update_ends_the_run_cleanly(base_cache, tmp_path, monkeypatch):
    """Nothing is saved between weights and records: the same command goes on from the last checkpoint."""
    update = Learner.update

    def murderous(self, n, groups):
        if n == 4:
            os.kill(victims[-1], signal.SIGKILL)
        return update(self, n, groups)

    victims, made = [], RemoteSampler.__init__

    def remembered(self, *arguments):
        made(self, *arguments)
        victims.append(self._process.pid)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "update", murderous)
        patch.setattr(RemoteSampler, "__init__", remembered)
        ended = run(small_config("D=2", TWO), tmp_path / "run")
    assert ended.state == "failed"
    assert ended.message == "the sampler's process ended with code -9; it goes on from its last checkpoint"
    assert run(small_config("D=2", TWO), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == finished(["D=2"], tmp_path / "whole")
