"""Generation: what decides a response, what a pilot may touch, and what a launch leaves in the record."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from settings import make_config, rows, run, small_config

from delaysim.clock import Launch
from delaysim.errors import RunFailed
from delaysim.policy.model import load_policy
from delaysim.run.experiment import decoding_of
from delaysim.run.pilot import FIRST_GROUP, pilot_lengths
from delaysim.run.rollouts import Rollouts, Stream
from delaysim.run.stopwatch import Stopwatch
from delaysim.settings.laws import law_of
from delaysim.tasks.chain import Chain

QUIET = type("Quiet", (), {"working": lambda *_: None})()


@pytest.fixture(scope="module")
def policy(base_cache):
    torch.set_num_threads(1)
    return load_policy(small_config().model, Chain(), lambda *_: None)


def rollouts(policy, group_size=4, chunk=4, seed=0, first=0, task=None, temperature=1.0):
    decoding = replace(decoding_of(small_config(), policy), temperature=temperature)
    stream = Stream(seed, "sampling", first)
    return Rollouts(policy, task or Chain(), decoding, stream, group_size, chunk, Stopwatch())


def texts(groups, first=99):
    return [[r.tokens.tolist() for r in g.responses[:first]] for g in groups]


def test_4_responses_are_the_first_4_of_8(policy):
    four, eight = (rollouts(policy, size).generate(range(3, 9), 2) for size in (4, 8))
    assert texts(four) == texts(eight, 4)
    for a, b in zip(four, eight, strict=True):
        assert (a.group, a.version, a.rewards) == (b.group, 2, b.rewards[:4])
        for x, y in zip(a.responses, b.responses[:4], strict=True):
            assert np.abs(x.logp - y.logp).max() < 1e-5


def test_chunks_and_version_decide_nothing(policy):
    whole = rollouts(policy).generate(range(6), 0)
    assert texts(whole) == [t for g in range(6) for t in texts(rollouts(policy).generate(range(g, g + 1), 5))]


def test_seed_and_group_decide_prompt_and_response(policy):
    groups = {s: rollouts(policy, seed=s).generate(range(8), 0) for s in (0, 1)}
    assert texts(groups[0]) != texts(groups[1])
    prompts = {tuple(g.prompt.tolist()) for s in groups for g in groups[s]}
    assert len(prompts) > 12


def test_another_attempt_has_the_prompt_and_other_noise(policy):
    """Whatever its id: prompt and attempt decide, and the first attempt is what the prompt's own group is."""
    launch = Launch(4, range(20, 23), [7, 3, 7], [1, 0, 2])
    made = rollouts(policy)
    again, first, third = made.take(made.ask(launch))
    own = {group.group: group for group in made.generate(range(3, 8), 4)}
    assert [(g.group, g.attempt, g.version) for g in (again, first, third)] == [(20, 1, 4), (21, 0, 4), (22, 2, 4)]
    assert again.prompt.tolist() == third.prompt.tolist() == own[7].prompt.tolist()
    assert texts([first]) == texts([own[3]])
    assert texts([again]) != texts([own[7]]) != texts([third]) != texts([again])


def test_a_launch_is_cut_into_chunks_of_whole_groups(policy):
    chunks = rollouts(policy, chunk=4).chunks(range(8, 18))
    assert chunks == [range(8, 12), range(12, 16), range(16, 18)]
    assert rollouts(policy).chunks(range(5, 5)) == []


def test_rewards_are_the_tasks_grades(policy):
    groups = rollouts(policy, 8).generate(range(12), 0)
    earned = [reward for group in groups for reward in group.rewards]
    assert 0 < sum(earned) < len(earned)
    for group in groups:
        problem = Chain().training(0, group.group)
        assert group.prompt.tolist() == policy.codec.encode_prompt(problem.prompt).tolist()
        for response, reward in zip(group.responses, group.rewards, strict=True):
            right = response.finished and policy.codec.decode(response.tokens).endswith(">" + problem.answer)
            assert reward == float(right)


@pytest.fixture
def pilot_config():
    return small_config("clock.pilot=12", "sampler.chunk=5", suite="simulated_async")


def test_the_pilot_belongs_to_the_model_not_to_the_run(policy, pilot_config):
    first = pilot_lengths(pilot_config, policy, Chain(), QUIET)
    assert first.shape == (12, 4)
    others = replace(pilot_config, seed=7, B=4, updates=99)
    assert np.array_equal(pilot_lengths(others, policy, Chain(), QUIET), first)
    seeded = replace(pilot_config, model=replace(pilot_config.model, seed=1))
    assert not np.array_equal(pilot_lengths(seeded, policy, Chain(), QUIET), first)


def test_the_pilot_is_measured_once(policy, pilot_config):
    told = []
    watcher = type("Watcher", (), {"working": lambda _, what, done, total: told.append((done, total))})()
    own = replace(pilot_config, clock=replace(pilot_config.clock, pilot=13))
    first = pilot_lengths(own, policy, Chain(), watcher)
    assert told == [(5, 13), (10, 13), (13, 13)]
    assert np.array_equal(pilot_lengths(own, policy, Chain(), watcher), first)
    assert len(told) == 3


def test_the_pilots_prompts_and_noise_are_not_the_runs(policy):
    trained = rollouts(policy).generate(range(12), 0)
    again = Rollouts(policy, Chain(), decoding_of(small_config(), policy), Stream(0, "pilot"), 4, 12, Stopwatch())
    assert texts(again.generate(range(12), 0)) != texts(trained)
    own = {Chain().training(0, FIRST_GROUP + g).prompt for g in range(12)}
    assert own != {Chain().training(0, g).prompt for g in range(12)}


@pytest.mark.slow
def test_the_law_takes_from_the_pilot_only_what_is_auto():
    lengths = np.array([[10, 20], [30, 40]])
    cfg = make_config("lam=1", "C_gen=10", "C_update=2", suite="simulated_async")
    law = law_of(cfg, lambda: lengths)
    # L_ref = 25; durations 10*(20/25) = 8 and 10*(40/25) = 16: mean 12 units of 2 = 6 updates
    assert (law.l_ref, law.look_ahead) == (25.0, 6)
    given = make_config("clock.eta=3", "C_gen=10", suite="simulated_async")
    assert (law_of(given, lambda: lengths).l_ref, law_of(given, lambda: lengths).look_ahead) == (25.0, 3)

    def no_pilot():
        raise AssertionError("nothing is auto: no pilot is needed")

    for known in (
        make_config("clock.eta=3", "clock.L_ref=12.5", suite="simulated_async"),
        make_config("D=5"),
        make_config("lam=0", suite="simulated_async"),
    ):
        law_of(known, no_pilot)
    assert law_of(make_config("lam=0", "C_gen=5", "C_update=2", suite="simulated_async"), no_pilot).look_ahead == 3


@pytest.mark.slow
def test_launches_are_the_source_for_replay(base_cache, tmp_path):
    """Every group once, in order, with its version, lengths and rewards; updates train on what they say."""
    cfg = small_config("D=3", "sampler.chunk=2")
    run(cfg, tmp_path)
    launches, groups, updates = (rows(tmp_path, name) for name in ("launches", "groups", "updates"))
    assert [r["group"] for r in launches] == list(range(16)), "the law proves that no more are consumed"
    assert [r["version"] for r in launches] == [max(0, r["group"] // 2 - 3) for r in launches]
    assert {r["attempt"] for r in launches} == {0}
    assert [r["group"] for r in groups] == list(range(16))
    for launched, used in zip(launches, groups, strict=True):
        assert used["version"] == launched["version"]
        assert used["delay"] == used["update"] - launched["version"]
        assert used["length_max"] == max(launched["lengths"])
        assert used["length_mean"] == sum(launched["lengths"]) / 4
        assert used["reward_mean"] == sum(launched["rewards"]) / 4
    for n, update in enumerate(updates):
        mine = launches[2 * n : 2 * n + 2]
        assert update["reward_mean"] == sum(sum(r["rewards"]) for r in mine) / 8
        assert update["truncated"] == sum(r["truncated"] for r in mine) / 8
        assert update["tokens"] == sum(sum(r["lengths"]) for r in mine)


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_a_reward_that_is_not_finite_is_the_tasks_fault(policy, reward):
    class Broken(Chain):
        def grade(self, problem, response, finished):
            return replace(super().grade(problem, response, finished), reward=reward)

    with pytest.raises(RunFailed, match=r"group 5 \(chain/train/5, generated at update 2\): the task gave"):
        rollouts(policy, task=Broken()).generate(range(5, 7), 2)
