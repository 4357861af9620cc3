"""An update's token log-probabilities as `ratios.bin` keeps them."""

from collections.abc import Sequence

import numpy as np

from delaysim.policy.rollout import Group, Logps
from delaysim.ratios import Recorded
from delaysim.train.learner import Outcome


def recorded(update: int, outcome: Outcome, groups: Sequence[Group]) -> Recorded:
    """What the estimator saw in one mini-batch, without padding."""
    batch = outcome.batch
    present = batch.mask > 0
    both = {} if outcome.mismatch is None else _both(groups)
    return Recorded(
        update=update,
        logp=batch.logp[present].numpy(),
        behaviour=batch.behaviour[present].numpy(),
        lengths=batch.lengths.numpy(),
        rewards=batch.rewards.numpy(),
        advantages=batch.advantages.numpy(),
        delays=batch.delays.numpy(),
        groups=np.array([group.group for group in groups]),
        proximal=None if batch.proximal is None else batch.proximal[present].numpy(),
        **both,
    )


def _both(groups: Sequence[Group]) -> dict[str, Logps]:
    """The two engines' log-probabilities at launch, one response after the other."""
    responses = [response for group in groups for response in group.responses]
    recomputed = [response.recomputed for response in responses if response.recomputed is not None]
    return {"sampler": np.concatenate([r.logp for r in responses]), "recomputed": np.concatenate(recomputed)}
