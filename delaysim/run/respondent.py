"""The model of `delaysim evaluate`: a run's last checkpoint, or a model as it is, and who draws its responses."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from delaysim.benchmarks.load import Item
from delaysim.data import model_digest
from delaysim.errors import UserError
from delaysim.files import digest, file_digest
from delaysim.policy.device import place
from delaysim.policy.model import Policy, with_sampler
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw
from delaysim.run.benchmark import Said
from delaysim.run.checkpoint import Checkpoints, load_weights
from delaysim.settings.answering import Answering, answering
from delaysim.settings.configfile import load_config
from delaysim.settings.identity import ONLY_PLANNED
from delaysim.settings.models import PretrainedModelConf
from delaysim.settings.samplers import SamplerConf, VllmSamplerConf

NOISE_SEED = 0
"""Sampling noise depends on set, problem and response only, so that every model and checkpoint shares it."""


@dataclass(frozen=True)
class Candidate:
    """What is evaluated: a model, for a run the weights it had reached, and who draws its responses."""

    name: str
    conf: PretrainedModelConf
    weights: Path | None
    """Folder of a checkpoint; None = the base weights."""
    update: int
    """Updates behind the weights."""
    answering: Answering
    """Who draws the responses."""

    def identity(self) -> dict[str, Any]:
        """What decides its responses, the sampler apart."""
        conf = {key: value for key, value in asdict(self.conf).items() if key not in (*ONLY_PLANNED, "path")}
        if self.conf.experts_implementation is None:
            del conf["experts_implementation"]
        files = [] if self.weights is None else sorted(self.weights.glob("model*.safetensors"))
        trained = [(file.name, file_digest(file)) for file in files]
        return {**conf, "model": model_digest(self.conf.path), "trained": trained, "update": self.update}

    def drawn(self) -> dict[str, Any]:
        """What decides its responses."""
        return {"model": self.identity(), "sampler": self.answering.identity(self.conf.dtype)}

    def decoding(self, max_new_tokens: int, temperature: float) -> "Candidate":
        """The same, asked for responses of this length and temperature. Raises UserError."""
        return replace(self, answering=self.answering.decoding(max_new_tokens, temperature))

    @property
    def label(self) -> str:
        """A readable prefix and a hash."""
        return f"{self.name}-{digest(self.identity(), 8)}"

    def load(self, device: str) -> Policy:
        """The policy on a device, weights in place."""
        from delaysim.policy.pretrained import load_pretrained

        policy = load_pretrained(self.conf)
        place(policy.model, [device])
        if self.weights is not None:
            load_weights(self.weights, policy.model)
        return policy


def candidate(
    target: str, dtype: str | None, template: str | None, sampler: str | None = None, settings: Sequence[str] = ()
) -> Candidate:
    """From a run directory, a local model, pkg:PACKAGE/FILE or a hub id. Raises UserError.

    `dtype`: what it computes in; `sampler`: hf | vllm; None = as its run did, else float32 and hf. `settings` are
    sampler.KEY=VALUE of a vLLM engine.
    """
    own: dict[str, Any] = {key: value for key, value in (("dtype", dtype), ("template", template)) if value is not None}
    run = Path(target)
    if not (run / "config.yaml").is_file():
        name = Path(target.removeprefix("pkg:")).name.removesuffix(".gguf").lower()
        who = answering(None, sampler, dtype, settings)
        return Candidate(name, PretrainedModelConf(path=target, **own), None, 0, who)
    cfg = load_config(run / "config.yaml")
    conf = cfg.model
    if not isinstance(conf, PretrainedModelConf):
        raise UserError(f"{target} trained model=tiny, which reads chain sums only: its accuracy is in its evals.jsonl")
    pointer = Checkpoints(run).read()
    weights = None if pointer is None or pointer.weights is None else run / pointer.weights
    update = 0 if pointer is None else pointer.update
    return Candidate(run.name, replace(conf, **own), weights, update, answering(cfg, sampler, dtype, settings))


def respondent(who: Candidate, device: str, instruction: str, items: Sequence[Item]) -> "PolicyRespondent":
    """A candidate on a device, ready for `items`. Raises UserError, SamplerFailed."""
    policy, conf = who.load(device), who.answering.sampler
    if isinstance(conf, VllmSamplerConf):
        longest = max(len(policy.codec.encode_prompt(item.problem, instruction)) for item in items)
        conf = replace(conf, context=_room(longest, conf, policy))
    policy = with_sampler(policy, conf)
    decoding = Decoding(conf.max_new_tokens, conf.temperature, policy.codec.stop_ids, who.answering.autocast)
    return PolicyRespondent(policy, decoding, instruction)


def _room(longest: int, conf: SamplerConf, policy: Policy) -> int:
    """Tokens that an engine must hold. Raises UserError where the model has fewer positions."""
    needed = longest + conf.max_new_tokens
    own = getattr(policy.model.config.get_text_config(), "max_position_embeddings", None)
    if own is not None and needed > own:
        raise UserError(
            f"--max-new-tokens {conf.max_new_tokens}: with the longest prompt, of {longest} tokens, that is {needed}, "
            f"and the model has {own}: give {max(1, own - longest)} or fewer"
        )
    return needed


class PolicyRespondent:
    """A policy that answers."""

    def __init__(self, policy: Policy, decoding: Decoding, instruction: str) -> None:
        self._policy, self._decoding, self._instruction = policy, decoding, instruction

    def respond(self, items: Sequence[Item], repeat: int, keys: Sequence[tuple[int, ...]] | None) -> list[Said]:
        """`repeat` responses to each problem, in order. Raises SamplerFailed."""
        codec = self._policy.codec
        prompts = [codec.encode_prompt(item.problem, self._instruction) for item in items]
        draw = None if keys is None else Draw(NOISE_SEED, "benchmark", keys)
        responses = self._policy.sampler.sample(prompts, repeat, self._decoding, draw)
        return [Said(codec.decode(r.tokens), r.tokens.tolist(), r.finished) for r in responses]

    def close(self) -> None:
        """Give the sampler's memory back."""
        self._policy.sampler.close()
