"""vLLM draws from the learner's distribution: log-probabilities, greedy choices, frequencies, ends of responses."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from delaysim.errors import SamplerFailed
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.layout import Row
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw, HfSampler
from delaysim.policy.score import score
from delaysim.policy.vllm_sampler import VllmSampler
from delaysim.settings.samplers import VllmSamplerConf

pytestmark = pytest.mark.vllm
CODEC = CharacterCodec()
ROUNDING = 5e-6
"""float32, on log-probabilities down to -15 nats [nats]."""


@pytest.fixture(scope="module")
def engine(tiny):
    sampler = VllmSampler(tiny, CODEC, VllmSamplerConf(max_new_tokens=48, timeout=60.0))
    yield sampler
    sampler.close()


def draw(sampler, prompts, repeat=4, tokens=20, temperature=1.0, first=0, stop=CODEC.stop_ids, greedy=False):
    keys = [(first + b, 0, i) for b in range(len(prompts)) for i in range(repeat)]
    return sampler.sample(
        prompts, repeat, Decoding(tokens, temperature, stop), None if greedy else Draw(0, "test", keys)
    )


def texts(responses):
    return [response.tokens.tolist() for response in responses]


def learner(tiny, prompts, responses, repeat, temperature=1.0):
    rows = [Row(prompts[i // repeat], response.tokens) for i, response in enumerate(responses)]
    with torch.no_grad():
        scores = score(tiny, rows, temperature, 16)
    table = scores.padded(len(rows), scores.logp).numpy()
    return [table[i, : len(row.response)] for i, row in enumerate(rows)]


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
def test_log_probabilities_are_the_learners(engine, tiny, prompts, temperature):
    """Of the distribution sampled from, temperature included; the mean agrees ten times closer than the worst."""
    responses = draw(engine, prompts, 8, 30, temperature)
    gaps = [
        np.abs(response.logp - theirs)
        for response, theirs in zip(responses, learner(tiny, prompts, responses, 8, temperature), strict=True)
    ]
    assert max(gap.max() for gap in gaps) < ROUNDING
    assert np.concatenate(gaps).mean() < ROUNDING / 10
    assert len({len(r.tokens) for r in responses}) > 3


def test_the_check_after_each_publish_is_at_rounding(engine):
    assert 0 < engine.gap < 2 * ROUNDING


def test_greedy_is_greedy(engine, tiny, prompts):
    ours = draw(engine, prompts, 1, greedy=True)
    assert texts(ours) == texts(draw(HfSampler(tiny, CODEC.vocabulary), prompts, 1, greedy=True))


def test_stop_tokens_count_and_truncation_is_recorded(engine, prompts):
    responses = draw(engine, prompts, 8, tokens=6)
    assert {r.finished for r in responses} == {True, False}
    for response in responses:
        stops = response.tokens == CODEC.EOS
        assert len(response.tokens) == len(response.logp) <= 6
        assert response.finished == bool(stops[-1])
        assert not stops[:-1].any()
        assert response.finished or len(response.tokens) == 6


def test_only_the_codecs_stop_tokens_stop(engine, prompts):
    """The model's configuration names an end of its own, which is not asked."""
    endless = draw(engine, prompts, 4, tokens=30, stop=frozenset())
    assert {len(r.tokens) for r in endless} == {30}
    assert any((r.tokens[:-1] == CODEC.EOS).any() for r in endless)
    digit = CODEC.encode("1")[0]
    for response in draw(engine, prompts, 4, stop=frozenset([digit])):
        assert response.finished == (response.tokens[-1] == digit)
        assert digit not in response.tokens[:-1]


def test_noise_belongs_to_the_response_not_to_the_batch(engine, prompts):
    four, eight = draw(engine, prompts), draw(engine, prompts, repeat=8)
    assert texts(four) == [t for b in range(4) for t in texts(eight[8 * b : 8 * b + 4])]
    assert texts(draw(engine, prompts[2:3], first=2)) == texts(four[8:12])


def test_more_prompt_tokens_than_a_step_takes(engine, tiny):
    """64 prompts of 100 tokens: no prompt is cut in two, which vLLM cannot do with seeds on a CPU."""
    long = [CODEC.encode_prompt("+".join("1234567890" * 5)[: 98 - b % 7] + "=") for b in range(64)]
    responses = draw(engine, long, 1, 4)
    apart = [draw(engine, [prompt], 1, 4, first=b)[0] for b, prompt in enumerate(long[:8])]
    assert texts(responses[:8]) == texts(apart)
    theirs = learner(tiny, long, responses, 1)
    assert max(np.abs(r.logp - logp).max() for r, logp in zip(responses, theirs, strict=True)) < ROUNDING


def test_no_two_responses_share_a_stream(engine, prompts):
    """Whole responses to one prompt repeat as often as the policy's own sampling repeats them, and no neighbours do.

    Seeds base + i would make response i of group g equal response i - 1 of group g + 1.
    """
    same = [texts(draw(engine, prompts[1:2], 8, first=group)) for group in range(16)]
    assert len({tuple(t) for group in same for t in group}) > 100
    shifted = sum(a[i] == b[i - 1] for a, b in pairwise(same) for i in range(1, 8))
    assert shifted <= 2


def test_first_tokens_follow_the_softmax(engine, tiny, prompts):
    with torch.no_grad():
        logits = tiny(input_ids=torch.from_numpy(prompts[0].astype(np.int64))[None]).logits[0, -1]
    chances = logits.double().softmax(-1).numpy()
    first = np.array([r.tokens[0] for r in draw(engine, prompts[:1], repeat=4000, tokens=1)])
    counts = np.bincount(first, minlength=CODEC.vocabulary)
    common = chances * 4000 > 5
    expected = chances[common] / chances[common].sum() * counts[common].sum()
    assert common.sum() >= 4
    assert counts[~common].sum() < 60
    assert chisquare(counts[common], expected).pvalue > 1e-4


def test_what_does_not_fit_is_one_line(engine, prompts):
    with pytest.raises(SamplerFailed, match=r"need 1\d\d tokens, the engine has 128: give a larger sampler.context"):
        draw(engine, prompts, 1, tokens=120)


def test_an_engine_that_takes_too_long_ends_and_can_be_asked_again(engine, prompts, monkeypatch):
    wanted = texts(draw(engine, prompts))
    monkeypatch.setattr(engine._engine, "_timeout", 0.0)
    with pytest.raises(SamplerFailed, match="vLLM finished 0 of 16 responses in 0 s"):
        draw(engine, prompts)
    monkeypatch.undo()
    assert not engine._engine._llm.llm_engine.has_unfinished_requests()
    assert texts(draw(engine, prompts)) == wanted


def test_what_the_engine_raises_is_one_line(engine, prompts, monkeypatch):
    def broken():
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory\nat somewhere")

    monkeypatch.setattr(engine._engine._llm.llm_engine, "step", broken)
    with pytest.raises(SamplerFailed) as error:
        draw(engine, prompts)
    assert str(error.value) == (
        "the vLLM engine failed while generating: RuntimeError: DefaultCPUAllocator: can't allocate memory"
    )
