"""Mini-batches that are read and examined several at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from delaysim.estimators import discover, make
from delaysim.ratios import Recorded, frame
from delaysim.screening.sources import read
from delaysim.screening.tally import examine


def mixed_frames(path):
    """Mini-batches of different sizes, lengths and kinds, some of one kind in a row."""
    rng, frames = np.random.default_rng(1), []
    for n, (b, g, proximal) in enumerate([(2, 4, 0), (3, 4, 0), (1, 4, 0), (2, 4, 1), (2, 4, 1), (2, 3, 0), (2, 3, 0)]):
        lengths = rng.integers(1, 6, (b, g))
        logp = -rng.exponential(0.5, lengths.sum()).astype(np.float32)
        others = (logp - rng.normal(0, 0.3, (2, len(logp)))).astype(np.float32)
        rewards = rng.integers(0, 2, (b, g)).astype(float)
        delays, advantages = rng.integers(0, 9, b), rng.normal(size=(b, g))
        recorded = Recorded(n, logp, others[0], lengths, rewards, advantages, delays, np.arange(b))
        frames.append(frame(replace(recorded, proximal=others[1] if proximal else None)))
    path.write_bytes(b"".join(frames))
    return path


@pytest.mark.parametrize("name", discover())
def test_putting_mini_batches_together_changes_nothing(tmp_path, name):
    """Whatever an estimator looks at: several mini-batches at once give what each gave alone, group by group."""
    path, found = mixed_frames(tmp_path / "ratios.bin"), []
    for tokens in (0, 60, 10**6):
        batches = list(read([path], 8, tokens))
        groups = [examine(batch.data, make(name), batch.sizes).columns for batch in batches]
        found.append((len(batches), torch.cat(groups)))
    (alone, wanted), (some, in_parts), (few, at_once) = found
    assert alone == 7 > some > few == 3
    for columns in (in_parts, at_once):
        assert torch.allclose(columns, wanted, rtol=1e-12, atol=1e-12)


def test_reading_one_at_a_time_keeps_mini_batches_as_they_were(tmp_path):
    batches = list(read([mixed_frames(tmp_path / "ratios.bin")], 8))
    assert [batch.sizes for batch in batches] == [[2], [3], [1], [2], [2], [2], [2]]
    (first, *_) = read([tmp_path / "ratios.bin"], 8, 10**6)
    assert torch.equal(first.data.versions, torch.cat([batch.data.versions for batch in batches[:3]]))
