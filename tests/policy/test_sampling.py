"""Sampling and scoring agree with each other, with the distribution, and with every response taken alone."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from transformers import Qwen3Config

from delaysim.policy import sample as sampling
from delaysim.policy.codec import CharacterCodec
from delaysim.policy.layout import Row, packed
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.sample import Decoding, sample
from delaysim.policy.score import score
from delaysim.policy.tiny import load_tiny
from delaysim.settings.models import TinyModelConf
from delaysim.tasks.chain import Chain

CODEC = CharacterCodec()


@pytest.fixture(scope="module")
def model(base_cache):
    torch.set_num_threads(1)
    return load_tiny(TinyModelConf(sft_steps=60), Chain(), lambda *_: None).eval()


@pytest.fixture(scope="module")
def prompts():
    return [CODEC.encode_prompt(text) for text in ("1+2+3=", "4+8+3+9+9+1+7=", "0+0+0+1=", "9+9+9+9+9=")]


def draw(model, prompts, repeat=4, tokens=20, temperature=1.0, first=0, noise=True):
    keys = [(first + b, 0, i) for b in range(len(prompts)) for i in range(repeat)]
    gumbel = GumbelNoise(0, "test", keys, CODEC.vocabulary) if noise else None
    return sample(model, prompts, repeat, Decoding(tokens, temperature, CODEC.stop_ids), gumbel)


def rows_of(prompts, responses, repeat=4):
    return [Row(prompts[i // repeat], response.tokens) for i, response in enumerate(responses)]


def table(model, rows, temperature=1.0, **options):
    scores = score(model, rows, temperature, **{"bucket": 16, **options})
    return scores.padded(len(rows), scores.logp.detach())


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
def test_a_ragged_batch_equals_each_response_alone(model, prompts, temperature):
    """Behaviour log-probabilities are those of the distribution sampled from, temperature included."""
    responses = draw(model, prompts, temperature=temperature)
    assert len({len(r.tokens) for r in responses}) > 3
    for row, response in zip(rows_of(prompts, responses), responses, strict=True):
        alone = table(model, [row], temperature)[0].numpy()
        assert np.abs(alone - response.logp).max() < 1e-5


def test_retired_rows_change_nothing(model, prompts, monkeypatch):
    retired = draw(model, prompts)
    monkeypatch.setattr(sampling, "RETIRE_SHARE", 2.0)
    kept = draw(model, prompts)
    for a, b in zip(retired, kept, strict=True):
        assert a.tokens.tolist() == b.tokens.tolist()
        assert np.abs(a.logp - b.logp).max() < 1e-5


def test_a_mask_built_by_transformers_gives_the_same(model, prompts, monkeypatch):
    ours = draw(model, prompts)
    monkeypatch.setattr(sampling, "accepts_any_mask", lambda _: False)
    theirs = draw(model, prompts)
    assert [r.tokens.tolist() for r in ours] == [r.tokens.tolist() for r in theirs]


def test_stop_tokens_count_and_truncation_is_recorded(model, prompts):
    responses = draw(model, prompts, tokens=6)
    assert {r.finished for r in responses} == {True, False}
    for response in responses:
        stops = response.tokens == CODEC.EOS
        assert len(response.tokens) == len(response.logp) <= 6
        assert response.finished == bool(stops[-1])
        assert not stops[:-1].any()
        assert response.finished or len(response.tokens) == 6


def test_noise_belongs_to_the_response_not_to_the_batch(model, prompts):
    """G=4 is a prefix of G=8, and a group sampled alone gets the same tokens."""
    four, eight = draw(model, prompts), draw(model, prompts, repeat=8)
    for b in range(len(prompts)):
        assert [r.tokens.tolist() for r in four[4 * b : 4 * b + 4]] == [
            r.tokens.tolist() for r in eight[8 * b : 8 * b + 4]
        ]
    alone = draw(model, prompts[2:3], first=2)
    assert [r.tokens.tolist() for r in alone] == [r.tokens.tolist() for r in four[8:12]]


def test_no_two_responses_share_noise(model, prompts):
    same = draw(model, [prompts[1]] * 4, repeat=8)
    assert len({tuple(r.tokens.tolist()) for r in same}) > 16


def test_first_tokens_follow_the_softmax(model, prompts):
    with torch.no_grad():
        logits = model(input_ids=torch.from_numpy(prompts[0].astype(np.int64))[None]).logits[0, -1]
    chances = logits.double().softmax(-1).numpy()
    first = np.array([r.tokens[0] for r in draw(model, prompts[:1], repeat=6000, tokens=1)])
    counts = np.bincount(first, minlength=CODEC.vocabulary)
    common = chances * 6000 > 5
    rest = 1 - chances[common].sum()
    assert abs(counts[~common].sum() - rest * 6000) < 10
    expected = chances[common] / chances[common].sum() * counts[common].sum()
    assert common.sum() >= 4
    assert chisquare(counts[common], expected).pvalue > 1e-4


def test_noise_is_standard_gumbel():
    noise = GumbelNoise(1, "test", [(i,) for i in range(200)], 17)
    values = torch.stack([noise.at(t) for t in range(40)]).double()
    assert float(values.mean()) == pytest.approx(0.5772, abs=0.01)
    assert float(values.std()) == pytest.approx(1.2825, abs=0.01)


def test_greedy_takes_the_most_likely_token(model, prompts):
    for row, response in zip(rows_of(prompts, draw(model, prompts, repeat=1, noise=False), 1), prompts, strict=True):
        ids = torch.from_numpy(np.concatenate([response, row.response]).astype(np.int64))[None]
        with torch.no_grad():
            best = model(input_ids=ids).logits[0, len(response) - 1 : -1].argmax(-1)
        assert best.tolist() == row.response.tolist()


@pytest.mark.parametrize("options", [{"bucket": 1}, {"bucket": 3}, {"pack": 40}, {"pack": 400, "bucket": 2}])
def test_buckets_and_shared_prompts_change_nothing(model, prompts, options):
    rows = rows_of(prompts, draw(model, prompts))
    assert (table(model, rows) - table(model, rows, **options)).abs().max() < 1e-5


def test_packs_hold_one_prompt_and_stay_within_their_bound(prompts):
    rows = [Row(prompts[i // 4], np.arange(1 + i % 5, dtype=np.int32)) for i in range(16)]
    packs = packed(rows, 24)
    assert [i for pack in packs for i in pack.rows] == list(range(16))
    assert all(pack.length <= 24 and len({id(rows[i].prompt) for i in pack.rows}) == 1 for pack in packs)
    assert all(pack.length == len(pack.prompt) + sum(len(rows[i].response) for i in pack.rows) for pack in packs)
    assert [len(pack.rows) for pack in packed(rows, 0)] == [1] * 16


def test_shared_prompts_give_the_same_gradient(model, prompts):
    rows = rows_of(prompts, draw(model, prompts))
    gradients = []
    for pack in (0, 400):
        model.zero_grad()
        score(model, rows, 1.0, 16, pack).logp.sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert torch.allclose(*gradients, atol=1e-3 * float(gradients[0].abs().max()))


class NextToken(torch.nn.Module):
    """A model whose next-token logits are a table of the last token alone."""

    def __init__(self, logits):
        super().__init__()
        self.logits, self.config = logits, Qwen3Config()
        self.dtype, self.device = torch.float32, torch.device("cpu")

    def get_decoder(self):
        def decoder(input_ids, **_):
            return type("Output", (), {"last_hidden_state": self.logits[input_ids]})()

        return decoder

    def get_output_embeddings(self):
        return torch.nn.Identity()


@pytest.mark.parametrize("pack", [0, 100])
def test_log_probabilities_are_of_the_next_token(pack):
    logits = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    prompt = np.array([1, 3], np.int32)
    rows = [Row(prompt, np.array(r, np.int32)) for r in ([2, 4, 0], [1], [4, 4])]
    scores = score(NextToken(logits), rows, 0.5, 2, pack)
    found = scores.padded(3, scores.logp)
    chances = (logits / 0.5).log_softmax(-1)
    wanted = [[(3, 2), (2, 4), (4, 0)], [(3, 1)], [(3, 4), (4, 4)]]
    for row, steps in enumerate(wanted):
        assert found[row, : len(steps)].tolist() == pytest.approx([float(chances[step]) for step in steps])
    entropy = scores.padded(3, scores.entropy)
    assert float(entropy[1, 0]) == pytest.approx(float(-(chances[3].exp() * chances[3]).sum()))
