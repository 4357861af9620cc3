"""Evaluation: the same problems and the same noise for every run and every update, one row per response."""

import numpy as np
import pytest
import torch

from delaysim.policy.codec import CharacterCodec
from delaysim.policy.model import Policy
from delaysim.policy.noise import GumbelNoise
from delaysim.policy.sample import Decoding, sample
from delaysim.policy.tiny import load_tiny
from delaysim.run.evaluate import evaluate
from delaysim.settings.models import TinyModelConf
from delaysim.tasks.chain import Chain

CODEC = CharacterCodec()
DECODING = Decoding(20, 1.0, CODEC.stop_ids)


@pytest.fixture(scope="module")
def policy(base_cache):
    torch.set_num_threads(1)
    return Policy(load_tiny(TinyModelConf(sft_steps=60), Chain(), lambda *_: None).eval(), CODEC)


def evaluated(policy, problems=10, samples=2, version=20, batch=64):
    return evaluate(policy, Chain(), Chain().held_out(problems), samples, DECODING, version, batch)


def test_one_row_per_problem_and_response_in_order(policy):
    rows = evaluated(policy)
    assert [(r["problem"], r["response"], r["greedy"]) for r in rows] == [
        (f"chain/test/{i}", j, j == 0) for i in range(10) for j in range(3)
    ]
    assert {r["update"] for r in rows} == {20}
    assert [("tokens" in r) for r in rows] == [i < 4 for i in range(10) for _ in range(3)]
    assert {r["truncated"] for r in rows} == {True, False}
    for row in rows:
        assert 1 <= row["length"] <= 20
        assert not row["truncated"] or row["length"] == 20
        assert not (row["truncated"] and row["correct"])


def test_rows_say_what_the_tokens_say(policy):
    problems = Chain().held_out(4)
    for row in evaluated(policy, 4, 8):
        problem = problems[int(row["problem"].rsplit("/", 1)[1])]
        text = CODEC.decode(row["tokens"])
        stopped = row["tokens"][-1] == CODEC.EOS
        assert row["length"] == len(row["tokens"])
        assert row["truncated"] == (not stopped)
        assert row["correct"] == (stopped and text.endswith(">" + problem.answer))


def test_the_first_problems_do_not_depend_on_how_many_there_are(policy):
    ten = evaluated(policy)
    assert evaluated(policy, problems=4) == ten[:12]
    assert evaluated(policy, batch=3) == ten


def test_more_samples_add_rows_and_change_none(policy):
    def keyed(rows):
        return {(r["problem"], r["response"]): r for r in rows}

    two, four = keyed(evaluated(policy)), keyed(evaluated(policy, samples=4))
    assert len(four) == 50
    assert all(four[key] == row for key, row in two.items())
    greedy = evaluated(policy, samples=0)
    assert greedy == [row for row in evaluated(policy) if row["greedy"]]


def test_noise_depends_on_neither_update_nor_seed(policy):
    """Another version of the same weights samples the same; the noise is keyed by problem and response."""
    first, later = evaluated(policy, version=0), evaluated(policy, version=40)
    assert [r | {"update": 0} for r in later] == first
    prompt = CODEC.encode_prompt(Chain().held_out(3)[2].prompt)
    noise = GumbelNoise(0, "evaluation", [(2, 1)], CODEC.vocabulary)
    (alone,) = sample(policy.model, [prompt], 1, DECODING, noise)
    assert first[2 * 3 + 1]["tokens"] == alone.tokens.tolist()


def test_sampled_responses_follow_the_temperature(policy):
    """Near temperature 0 the sampled responses are the greedy ones; at 1 they are not."""
    cold = evaluate(policy, Chain(), Chain().held_out(4), 2, Decoding(20, 1e-3, CODEC.stop_ids), 0)
    warm = evaluated(policy, 4)
    for rows, equal in ((cold, True), (warm, False)):
        tokens = np.array([str(row["tokens"]) for row in rows]).reshape(4, 3)
        assert (tokens == tokens[:, :1]).all() == equal
