"""Published step times, typed in with their sources."""

from dataclasses import dataclass

from delaysim.predict.operation import COLOCATED, ONE_STEP_OFF, Cell, Operation, asynchronous


@dataclass(frozen=True)
class Workload:
    """A model and task whose steps were published."""

    model: str
    groups: int
    group_size: int
    mean_length: float
    """Published mean [tokens]."""
    cap: int


@dataclass(frozen=True)
class Step:
    """A published row."""

    work: Workload
    operation: Operation
    trainer: int
    rollout: int
    seconds: float

    @property
    def cell(self) -> Cell:
        return Cell(self.operation, self.trainer, self.rollout)


DEEPSEEK = Workload("DeepSeek V3", 32, 16, 701, 1536)
QWEN_235B = Workload("Qwen3-235B", 16, 32, 5698, 8192)
QWEN_30B = Workload("Qwen3-30B-A3B", 64, 32, 3203, 4096)
QWEN_32B = Workload("Qwen3-32B", 64, 32, 3206, 4096)
LLAMA_8B = Workload("Llama-3.1-8B", 64, 32, 1060, 4096)

V06_H100 = (
    Step(DEEPSEEK, COLOCATED, 256, 256, 134.0),
    Step(DEEPSEEK, COLOCATED, 512, 512, 111.0),
    Step(DEEPSEEK, ONE_STEP_OFF, 256, 256, 64.1),
    Step(QWEN_235B, COLOCATED, 128, 128, 395.0),
    Step(QWEN_235B, COLOCATED, 256, 256, 312.0),
    Step(QWEN_235B, ONE_STEP_OFF, 128, 128, 231.0),
    Step(QWEN_30B, COLOCATED, 32, 32, 192.0),
    Step(QWEN_30B, ONE_STEP_OFF, 16, 16, 152.0),
    Step(QWEN_30B, asynchronous(8), 128, 64, 34.5),
)
V06_GB200 = (
    Step(DEEPSEEK, COLOCATED, 128, 128, 108.0),
    Step(DEEPSEEK, COLOCATED, 256, 256, 98.7),
    Step(DEEPSEEK, ONE_STEP_OFF, 128, 128, 61.7),
    Step(QWEN_235B, COLOCATED, 64, 64, 286.0),
    Step(QWEN_235B, COLOCATED, 128, 128, 345.0),
    Step(QWEN_235B, ONE_STEP_OFF, 64, 64, 278.0),
    Step(QWEN_30B, COLOCATED, 16, 16, 221.0),
    Step(QWEN_30B, ONE_STEP_OFF, 8, 8, 301.0),
)
V04_H100 = (
    Step(LLAMA_8B, COLOCATED, 16, 16, 97.7),
    Step(LLAMA_8B, ONE_STEP_OFF, 8, 8, 74.6),
    Step(DEEPSEEK, COLOCATED, 256, 256, 154.0),
    Step(DEEPSEEK, ONE_STEP_OFF, 256, 256, 77.9),
    Step(QWEN_235B, COLOCATED, 128, 128, 506.0),
    Step(QWEN_235B, ONE_STEP_OFF, 128, 128, 241.0),
    Step(QWEN_30B, COLOCATED, 32, 32, 225.0),
    Step(QWEN_30B, ONE_STEP_OFF, 16, 16, 244.0),
    Step(QWEN_32B, COLOCATED, 32, 32, 393.0),
    Step(QWEN_32B, ONE_STEP_OFF, 32, 32, 215.0),
)
TABLES = {
    "NeMo-RL v0.6, H100": V06_H100,
    "NeMo-RL v0.6, GB200": V06_GB200,
    "NeMo-RL v0.4, H100": V04_H100,
}
"""Seconds of a GRPO step on OpenMathInstruct-2 in BF16: docs/about/performance-summary.md of NeMo-RL, as of v0.6 and
v0.4 (Apache-2.0). Groups, group sizes and splits are those of the recipes of the same names. The first row of a model
in a table calibrates."""


@dataclass(frozen=True)
class TrainerRow:
    """A published step of a trainer."""

    what: str
    gpus: int
    tokens: int
    """Of a step."""
    seconds: float


TRAINERS = (
    (
        TrainerRow("Qwen3-4B LoRA, H100, 16k", 1, 2 * 16384, 5.260),
        TrainerRow("... on 8 GPUs", 8, 16 * 16384, 5.380),
        TrainerRow("... of 64k tokens", 1, 2 * 65536, 31.49),
    ),
    (
        TrainerRow("Qwen3-0.6B, A6000, 64k", 1, 2 * 65536, 52.80),
        TrainerRow("... on 4 GPUs", 4, 8 * 65536, 63.90),
        TrainerRow("... of 16k tokens", 1, 2 * 16384, 7.458),
    ),
    (
        TrainerRow("Qwen3-30B-A3B LoRA, H100, 16k", 8, 16 * 16384, 7.919),
        TrainerRow("... of 64k tokens", 8, 16 * 65536, 44.86),
    ),
)  # fmt: skip
"""prime-rl, benchmarks/baselines at 559b4477 (kind rl, recompute; Apache-2.0). The first row of each calibrates."""
