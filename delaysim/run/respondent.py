"""The model of `delaysim evaluate`: a run's last checkpoint, or a model as it is."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from delaysim.benchmarks.load import Item
from delaysim.data import model_digest
from delaysim.errors import UserError
from delaysim.files import digest, file_digest
from delaysim.policy.device import place
from delaysim.policy.model import Policy
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw
from delaysim.run.benchmark import Said
from delaysim.run.checkpoint import Checkpoints, load_weights
from delaysim.settings.configfile import load_config
from delaysim.settings.identity import ONLY_PLANNED
from delaysim.settings.models import PretrainedModelConf

NOISE_SEED = 0
"""Sampling noise depends on set, problem and response only, so that every model and checkpoint shares it."""


@dataclass(frozen=True)
class Candidate:
    """What is evaluated: a model and, for a run, the weights it had reached."""

    name: str
    conf: PretrainedModelConf
    weights: Path | None
    """Folder of a checkpoint; None = the base weights."""
    update: int
    """Updates behind the weights."""
    autocast: bool = False
    """Answer in bfloat16 from float32 weights, as the run trained."""

    def identity(self) -> dict[str, Any]:
        """What decides its responses."""
        conf = {key: value for key, value in asdict(self.conf).items() if key not in (*ONLY_PLANNED, "path")}
        files = [] if self.weights is None else sorted(self.weights.glob("model*.safetensors"))
        trained = [(file.name, file_digest(file)) for file in files]
        low = {"autocast": True} if self.autocast else {}
        return {**conf, **low, "model": model_digest(self.conf.path), "trained": trained, "update": self.update}

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


def candidate(target: str, dtype: str | None, template: str | None) -> Candidate:
    """From a run directory, a local model, pkg:PACKAGE/FILE or a hub id. Raises UserError."""
    own: dict[str, Any] = {key: value for key, value in (("dtype", dtype), ("template", template)) if value is not None}
    run = Path(target)
    if not (run / "config.yaml").is_file():
        name = Path(target.removeprefix("pkg:")).name.removesuffix(".gguf").lower()
        return Candidate(name, PretrainedModelConf(path=target, **own), None, 0)
    cfg = load_config(run / "config.yaml")
    conf = cfg.model
    if not isinstance(conf, PretrainedModelConf):
        raise UserError(f"{target} trained model=tiny, which reads chain sums only: its accuracy is in its evals.jsonl")
    pointer = Checkpoints(run).read()
    weights = None if pointer is None or pointer.weights is None else run / pointer.weights
    update = 0 if pointer is None else pointer.update
    return Candidate(run.name, replace(conf, **own), weights, update, cfg.learner.autocasts)


class PolicyRespondent:
    """A policy that answers."""

    def __init__(self, policy: Policy, decoding: Decoding, instruction: str) -> None:
        self._policy, self._decoding, self._instruction = policy, decoding, instruction

    def respond(self, items: Sequence[Item], repeat: int, keys: Sequence[tuple[int, ...]] | None) -> list[Said]:
        """`repeat` responses to each problem, in order."""
        codec = self._policy.codec
        prompts = [codec.encode_prompt(item.problem, self._instruction) for item in items]
        draw = None if keys is None else Draw(NOISE_SEED, "benchmark", keys)
        responses = self._policy.sampler.sample(prompts, repeat, self._decoding, draw)
        return [Said(codec.decode(r.tokens), r.tokens.tolist(), r.finished) for r in responses]
