"""What the learner's own forward pass says of responses when they are launched."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from delaysim.policy.layout import Row
from delaysim.policy.rollout import Ids, Logps, Response, Routes


class Rescored(NamedTuple):
    """What a forward pass says of one response."""

    logp: Logps
    routes: Routes | None
    """The experts it used; None where they are not recorded."""


Recompute = Callable[[Sequence[Row]], list[Rescored]]
"""The learner's forward pass over given responses under some weights; it uses the routes of a row if it replays."""


def recomputed(prompts: Sequence[Ids], responses: Sequence[Response], recompute: Recompute) -> list[Response]:
    """The responses, equally many to each prompt, with what the learner's own pass says beside the sampler's."""
    size = len(responses) // len(prompts)
    said = recompute([Row(prompts[i // size], r.tokens, r.routes) for i, r in enumerate(responses)])
    return [
        replace(response, recomputed=again.logp, recomputed_routes=again.routes)
        for response, again in zip(responses, said, strict=True)
    ]
