"""Generated responses as they travel from sampler to learner: token ids all the way."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Logps = NDArray[np.float32]


@dataclass(frozen=True)
class Response:
    """One sampled completion."""

    tokens: Ids
    """[T_i], the stop token included."""
    logp: Logps
    """[T_i] log-probability of each token as the sampler gives it, of the distribution it was sampled from [nats]."""
    finished: bool
    """Ended with a stop token; False = truncated at the length limit."""
    recomputed: Logps | None = None
    """[T_i] the same by the learner's own forward pass at launch; None where none was made."""


@dataclass(frozen=True)
class Group:
    """The G responses to one prompt, of one launch and one version."""

    group: int
    version: int
    prompt: Ids
    responses: tuple[Response, ...]
    rewards: tuple[float, ...]
    attempt: int = 0
    ungraded: int = 0
    """Responses whose grading timed out or lost its worker: reward 0. Not kept beyond the launch."""

    @property
    def lengths(self) -> list[int]:
        """Response lengths [tokens]."""
        return [len(response.tokens) for response in self.responses]
