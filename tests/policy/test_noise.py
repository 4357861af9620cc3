"""Sampling noise is a function of (seed, stream, group, response, position) and of nothing else."""

import numpy as np
import pytest
import torch

from delaysim.policy import noise as module
from delaysim.policy.noise import GumbelNoise
from delaysim.rng import stream

KEYS = [(group, 0, response) for group in (0, 1, 7) for response in range(3)]
POSITIONS, VOCABULARY = 40, 11


def drawn(keys, seed=3, name="sampling"):
    noise = GumbelNoise(seed, name, keys, VOCABULARY)
    return torch.stack([noise.at(t).clone() for t in range(POSITIONS)], 1)


@pytest.fixture(scope="module")
def together():
    return drawn(KEYS)


def test_it_is_the_keyed_generators_uniform_through_minus_log_minus_log(together):
    for row, key in enumerate(KEYS):
        uniform = stream(3, "sampling", *key).random((POSITIONS, VOCABULARY))
        assert torch.equal(together[row], torch.from_numpy(-np.log(-np.log(uniform))).float())


@pytest.mark.parametrize("row", [0, 4, 8])
def test_a_row_alone_gets_what_it_gets_in_a_batch(together, row):
    assert torch.equal(drawn([KEYS[row]])[0], together[row])


def test_the_order_of_rows_does_not_matter(together):
    assert torch.equal(drawn(KEYS[::-1]).flip(0), together)


@pytest.mark.parametrize(("elements", "positions"), [(1, 16), (9 * VOCABULARY * 3, 16), (1 << 22, 1), (1 << 22, 64)])
def test_the_size_of_the_blocks_does_not_matter(together, monkeypatch, elements, positions):
    monkeypatch.setattr(module, "BLOCK_ELEMENTS", elements)
    monkeypatch.setattr(module, "BLOCK_POSITIONS", positions)
    assert torch.equal(drawn(KEYS), together)


@pytest.mark.parametrize("at", [1, 15, 16, 17, 31])
def test_rows_that_leave_do_not_move_the_others(together, at):
    """Rows leave in the middle of a block, at its end, and twice."""
    noise = GumbelNoise(3, "sampling", KEYS, VOCABULARY)
    kept = list(range(len(KEYS)))
    for t in range(POSITIONS):
        assert torch.equal(noise.at(t), together[kept, t])
        if t in (at, at + 3):
            stay = [row for row in range(len(kept)) if row % 3 != 1]
            noise.keep(stay, torch.tensor(stay))
            kept = [kept[row] for row in stay]
    assert len(kept) == 4


def test_no_two_coordinates_share_noise():
    rows = [
        drawn([(0, 0, 0)]),
        drawn([(0, 0, 1)]),
        drawn([(1, 0, 0)]),
        drawn([(0, 1, 0)]),
        drawn([(0, 0, 0)], seed=4),
        drawn([(0, 0, 0)], name="pilot"),
    ]
    values = torch.cat([row.flatten() for row in rows])
    assert len(values.unique()) > 0.999 * len(values)


def test_neighbouring_streams_are_not_correlated():
    """Products of 330,000 pairs of standardised draws: their mean has standard deviation 1/574."""
    one, next_one = drawn([(g, 0, 0) for g in range(750)]), drawn([(g, 0, 1) for g in range(750)])
    one, next_one = ((x.double() - 0.5772157) / 1.2825498 for x in (one, next_one))
    assert abs(float((one * next_one).mean())) < 5 / 574
