"""Generated responses as they travel from sampler to learner: token ids all the way."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Logps = NDArray[np.float32]
Routes = NDArray[np.int16]
"""[tokens, layers, experts per token] expert ids of a response: at its prompt and at all its tokens but the last."""


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
    routes: Routes | None = None
    """The experts that the sampler used; None where they are not recorded."""
    recomputed_routes: Routes | None = None
    """Those that the learner's own forward pass at launch used."""


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
