"""Recorded mini-batches put back into batches, token by token."""

import torch

from delaysim.estimators.base import GroupBatch


def rebuilt(recorded):
    """The GroupBatch of one frame of ratios.bin."""
    lengths = recorded.lengths
    tables = [torch.zeros(*lengths.shape, int(lengths.max()), dtype=torch.float64) for _ in range(4)]
    logp, behaviour, mask, proximal = tables
    place = 0
    for b in range(lengths.shape[0]):
        for g in range(lengths.shape[1]):
            for t in range(lengths[b, g]):
                logp[b, g, t], behaviour[b, g, t] = float(recorded.logp[place]), float(recorded.behaviour[place])
                proximal[b, g, t] = 0.0 if recorded.proximal is None else float(recorded.proximal[place])
                mask[b, g, t] = 1
                place += 1
    assert place == len(recorded.logp)
    delays = torch.from_numpy(recorded.delays)
    return GroupBatch(
        logp=logp,
        behaviour=behaviour,
        mask=mask,
        rewards=torch.from_numpy(recorded.rewards),
        advantages=torch.from_numpy(recorded.advantages),
        delays=delays,
        versions=recorded.update - delays,
        proximal=None if recorded.proximal is None else proximal,
    )
