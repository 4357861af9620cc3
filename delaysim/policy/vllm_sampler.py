"""Sampling with vLLM in this process: one request per response, its seed a hash of whose response it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from delaysim.errors import SamplerFailed
from delaysim.policy.codec import Codec
from delaysim.policy.resync import DECODED, fixed_batch, floor_of, learner_logp, require_same
from delaysim.policy.rollout import Ids, Response
from delaysim.policy.routing import routers
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Answer, Draw
from delaysim.policy.vllm_engine import Engine
from delaysim.policy.vllm_routes import mixture_of, routes_of_all
from delaysim.rng import stream
from delaysim.settings.routing import names_experts


class VllmSampler:
    """A Sampler (delaysim/policy/sampler.py) whose engine has its own copy of the weights.

    With a `carrier` they come from another process, by `control`, and the first publish is that process's to ask for.
    With `routes` responses name the experts used, where the engine can; their model must then have some.
    """

    elsewhere = False

    def __init__(
        self,
        learner: PreTrainedModel,
        codec: Codec,
        conf: Any,
        carrier: str | None = None,
        routes: bool = False,
        **overrides: Any,
    ) -> None:
        self._learner, self._conf = learner, conf
        self._batch = fixed_batch(codec.vocabulary)
        self._experts = bool(routers(learner))
        self._floor = conf.floor or floor_of((conf.dtype or _kind(learner), _kind(learner)), self._experts)
        mixture = mixture_of(learner) if routes else None
        self._mixture = mixture if names_experts(learner.device.type, conf) else None
        self._engine = Engine(learner, conf, carrier, self._mixture is not None, **overrides)
        self._asleep = False
        self.gap: float | None = None
        if carrier is not None:
            return
        try:
            self.publish(0)
        except SamplerFailed:
            self.close()
            raise

    def sample(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> list[Response]:
        self._require_room(prompts, decoding)
        params = _params(decoding, draw, len(prompts) * repeat)
        outputs = self._engine.generate([p.tolist() for p in prompts for _ in range(repeat)], params)
        responses = [_response(output.outputs[0], decoding) for output in outputs]
        if self._mixture is None or not decoding.routes:
            return responses
        inputs = [len(prompts[i // repeat]) + len(response.tokens) - 1 for i, response in enumerate(responses)]
        routes = routes_of_all([output.outputs[0].routed_experts for output in outputs], inputs, self._mixture)
        return [replace(response, routes=experts) for response, experts in zip(responses, routes, strict=True)]

    def start(self, prompts: Sequence[Ids], repeat: int, decoding: Decoding, draw: Draw | None) -> Answer:
        responses = self.sample(prompts, repeat, decoding, draw)
        return lambda: responses

    def rest(self) -> None:
        if self._conf.sleep:
            self._engine.sleep(self._conf.sleep)
            self._asleep = True

    def publish(self, version: int) -> None:
        if self._asleep:
            self._engine.wake()
            self._asleep = False
        self._engine.publish(version)
        differences = self._differences()
        self.gap = float(differences.max())
        require_same(differences, self._floor, version, self._experts)

    def control(self, call: str, *arguments: Any) -> None:
        """One of vLLM's calls that bring weights from another process (vllm_sender.py)."""
        self._engine.control(call, *arguments)

    def lap(self) -> float | None:
        return None

    def close(self) -> None:
        self._engine.close()

    def _differences(self) -> NDArray[np.float64]:
        """Of prompt log-probabilities, and those of tokens decoded after them, against the learner's [nats]."""
        asked = {"temperature": 1.0, "prompt_logprobs": 0, "logprobs": 0, "max_tokens": DECODED, "ignore_eos": True}
        outputs = self._engine.generate(
            [ids.tolist() for ids in self._batch], [{**asked, "seed": i} for i in range(len(self._batch))]
        )
        added = [output.outputs[0] for output in outputs]
        whole = [np.append(ids, new.token_ids).astype(np.int32) for ids, new in zip(self._batch, added, strict=True)]
        theirs = [
            [*_of(ids[1:], output.prompt_logprobs[1:]), *_of(new.token_ids, new.logprobs)]
            for ids, output, new in zip(self._batch, outputs, added, strict=True)
        ]
        return np.abs(np.array(theirs) - learner_logp(self._learner, whole))

    def _require_room(self, prompts: Sequence[Ids], decoding: Decoding) -> None:
        longest = max(map(len, prompts)) + decoding.max_new_tokens
        if longest > self._engine.longest:
            raise SamplerFailed(
                f"a prompt and sampler.max_new_tokens={decoding.max_new_tokens} need {longest} tokens, the engine has "
                f"{self._engine.longest}: give a larger sampler.context, up to the model's own, or fewer new tokens"
            )


def _params(decoding: Decoding, draw: Draw | None, count: int) -> list[dict[str, Any]]:
    """Of each request. Never seed + i: one group's response must not share noise with another's."""
    shared = {
        "max_tokens": decoding.max_new_tokens,
        "stop_token_ids": sorted(decoding.stop_ids),
        "ignore_eos": True,  # what ends a response is the codec's to say
        "logprobs": 0,  # of the sampled token alone
        "top_p": 1.0,
        "top_k": 0,
    }
    if draw is None:
        return [{**shared, "temperature": 0.0}] * count
    return [{**shared, "temperature": decoding.temperature, "seed": request_seed(draw, key)} for key in draw.keys]


def request_seed(draw: Draw, key: tuple[int, ...]) -> int:
    """62 bits from (seed, stream, key), so that no two responses of any runs meet but on purpose."""
    return int(stream(draw.seed, f"vllm {draw.stream}", *key).integers(1 << 62))


def _response(output: Any, decoding: Decoding) -> Response:
    tokens = np.array(output.token_ids, np.int32)
    logp = np.array(_of(output.token_ids, output.logprobs), np.float32)
    return Response(tokens, logp, bool(tokens[-1] in decoding.stop_ids))


def _of(tokens: Any, table: Any) -> list[float]:
    """The log-probability of each token, from vLLM's dictionaries."""
    return [entry[int(token)].logprob for token, entry in zip(tokens, table, strict=True)]


def _kind(model: PreTrainedModel) -> str:
    return str(model.dtype).removeprefix("torch.")
