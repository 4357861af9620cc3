"""Who answers in `delaysim evaluate`: the sampler of a run or another, its precision and its settings. No torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from delaysim.errors import UserError
from delaysim.settings.config import Config
from delaysim.settings.identity import ONLY_HOW
from delaysim.settings.samplers import SAMPLERS, HfSamplerConf, SamplerConf, VllmSamplerConf
from delaysim.settings.training_checks import check_vllm

ELSEWHERE = ("context", "sleep", "top_p", "top_k", *(field.name for field in fields(SamplerConf)))
"""Settings of an engine that the command's options, its problems or the absence of a learner decide."""
OWN = tuple(field.name for field in fields(VllmSamplerConf) if field.name not in ELSEWHERE)
"""Settings of an engine that may be given."""


@dataclass(frozen=True)
class Answering:
    """A sampler as it answers."""

    sampler: SamplerConf
    autocast: bool = False
    """In bfloat16 from float32 weights, as the run trained; hf alone."""

    def identity(self, weights: str) -> dict[str, Any]:
        """What decides its draws, beside a model whose weights are of the precision `weights`."""
        low = self.autocast and self.sampler.dtype != "bfloat16"
        precision = "bf16_autocast" if low else self.sampler.dtype or weights
        settings = {key: value for key, value in asdict(self.sampler).items() if key in OWN and key not in ONLY_HOW}
        kernel = self.sampler.experts_implementation
        own = {} if kernel is None else {"experts_implementation": kernel}
        return {"kind": self.sampler.kind, "precision": precision, **own, **settings}

    def decoding(self, max_new_tokens: int, temperature: float) -> "Answering":
        """The same for responses of this length and temperature. Raises UserError where they cannot be meant."""
        conf = replace(self.sampler, max_new_tokens=max_new_tokens, temperature=temperature)
        if isinstance(conf, VllmSamplerConf):
            conf = replace(conf, context=max_new_tokens + 1, sleep=0)  # room for prompts once they are known
            check_vllm(conf)
        return replace(self, sampler=conf)


def answering(run: Config | None, kind: str | None, dtype: str | None, settings: Sequence[str] = ()) -> Answering:
    """The sampler of a run, or of `kind` in the precision that the run sampled in; `dtype` replaces the precision.

    `settings` are sampler.KEY=VALUE of a vLLM engine. Raises UserError.
    """
    before: SamplerConf = HfSamplerConf() if run is None else run.sampler
    kind = kind or before.kind
    conf = before if kind == before.kind else SAMPLERS[kind]()
    low = run is not None and run.learner.autocasts and before.kind == "hf" and dtype is None
    precision = before.dtype if dtype is None else None
    if low and kind == "vllm":
        precision = precision or "bfloat16"
    return Answering(_set(replace(conf, dtype=precision), settings), low and kind == "hf")


def _set(conf: SamplerConf, settings: Sequence[str]) -> SamplerConf:
    for text in settings:
        name, equals, _ = text.removeprefix("sampler.").partition("=")
        if not isinstance(conf, VllmSamplerConf):
            raise UserError(f"{text}: a setting of a vLLM engine; give --sampler vllm, or leave it out")
        if not equals or not text.startswith("sampler.") or name not in OWN:
            raise UserError(f"{text}: write sampler.KEY=VALUE with one of {', '.join(OWN)}")
        given = OmegaConf.from_dotlist([text.removeprefix("sampler.")])
        try:
            merged: Any = OmegaConf.merge(OmegaConf.structured(conf), given)
        except OmegaConfBaseException as error:
            raise UserError(f"{text}: {str(error).splitlines()[0]}") from None
        conf = replace(conf, **{name: merged[name]})
    return conf
