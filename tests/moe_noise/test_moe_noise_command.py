"""`delaysim moe-noise`: what it refuses, and the text it scores."""

import numpy as np
import pytest

from delaysim.cli.moe_noise import moe_noise
from delaysim.errors import UserError
from delaysim.moe_noise.chain import STAY, TOPICS, MarkovChain
from delaysim.moe_noise.model import advantages_of
from delaysim.moe_noise.setting import VOCABULARY


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--engine", "fp8"], "choose from"),
        (["--length", "16"], "slopes need 32 tokens"),
        (["--sequences", "12"], "a multiple of 8"),
        (["--experts", "4", "--top-k", "5"], "give 1 to 4"),
        (["--delays", "-1"], "whole numbers from 0"),
        (["--delays", "x"], "e.g. delaysim moe-noise"),
    ],
)
def test_a_wrong_option_is_one_line(arguments, says):
    with pytest.raises(UserError, match=says) as caught:
        moe_noise(arguments)
    assert "\n" not in str(caught.value)


def test_text_follows_the_chain_and_stays_in_its_topic():
    chain = MarkovChain(3)
    law = chain.successors()
    assert law.sum(1) == pytest.approx(1)
    assert law.min() >= 0
    text = chain.draw("test", 0, 64, 2000)
    pairs = np.zeros_like(law)
    np.add.at(pairs, (text[:, :-1].ravel(), text[:, 1:].ravel()), 1)
    seen = pairs.sum(1, keepdims=True)
    z = (pairs - seen * law) / np.sqrt(np.maximum(seen * law * (1 - law), 1e-12))
    assert np.abs(z[seen * law > 20]).max() < 5
    topic = text % TOPICS
    same = (topic[:, 1:] == topic[:, :-1]).mean()
    assert STAY < same < STAY + (1 - STAY) / 2


def test_streams_are_keyed():
    chain = MarkovChain(0)
    assert np.array_equal(chain.draw("x", 1, 4, 9), MarkovChain(0).draw("x", 1, 4, 9))
    assert not np.array_equal(chain.draw("x", 1, 4, 9), chain.draw("x", 2, 4, 9))
    assert chain.rewarded().sum() == VOCABULARY // 2


def test_advantages_are_normalised_by_group_and_nothing_where_all_agree():
    chain = MarkovChain(0)
    good, bad = np.flatnonzero(chain.rewarded())[0], np.flatnonzero(~chain.rewarded())[0]
    responses = [np.array([0, last]) for last in [good] * 8 + [good, bad] * 4]
    advantages = advantages_of(chain.rewards(responses)).numpy()
    assert np.all(advantages[0] == 0)
    assert advantages[1] == pytest.approx(np.tile([1, -1], 4) * 0.5 / (np.std([0, 1] * 4, ddof=1) + 1e-4))
