"""Whole updates per second of the tiny default, side by side with TRL's GRPOTrainer in one process.

Both train the same base weights on the same prompts with 8 groups of 8 responses, at temperature 1, one thread, on
policy, at a learning rate so small that response lengths do not drift. Rounds alternate, so that a machine whose
speed wanders slows both. Needs the extra `bench`:

    pip install 'delaysim[bench]' && python benchmarks/vs_trl.py
"""

import argparse
import json
import logging
import tempfile
import time
from pathlib import Path
from statistics import mean, median

import datasets
import torch
import transformers
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from trl import GRPOConfig, GRPOTrainer

from delaysim.estimators import discover
from delaysim.policy.tiny import load_tiny
from delaysim.run.progress import Display
from delaysim.run.runner import train
from delaysim.settings.config import (
    ChainConf,
    CheckpointConf,
    ClockConf,
    Config,
    EvaluationConf,
    LearnerConf,
    LognormalConf,
)
from delaysim.settings.models import TinyModelConf
from delaysim.settings.samplers import HfSamplerConf
from delaysim.tasks.chain import CHARACTERS, Chain

B = G = 8
LR = 1e-9
WARM = 5
"""Updates of each round that are not counted."""
PARTS = ("generate_s", "reward_s", "train_s", "checkpoint_s", "rest_s")


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """The character codec as a tokenizer that TRL accepts: the same ids, the same BOS before a prompt."""
    vocabulary = {"<pad>": 0, "<bos>": 1, "<eos>": 2, **{c: i for i, c in enumerate(CHARACTERS, 3)}}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    inner.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>", padding_side="left"
    )


def reward(prompts: list[str], completions: list[str], answer: list[str], **_: object) -> list[float]:
    """The chain task's reward on TRL's decoded text (TRL strips the stop token)."""
    return [float(text.replace(" ", "")[-2:] == f">{a}") for text, a in zip(completions, answer, strict=True)]


class Laps(transformers.TrainerCallback):
    """Wall seconds of each TRL step, and when it started."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._start = 0.0

    def on_step_begin(self, *_: object, **__: object) -> None:
        now = time.perf_counter()
        if self._start:
            self.seconds.append(now - self._start)
        self._start = now


def trl_round(updates: int, seed: int, folder: str) -> tuple[list[float], float]:
    """Seconds of each warm TRL update (from step to step), and mean response length."""
    task = Chain()
    problems = [task.training(seed, group) for group in range((updates + 2) * B)]
    rows = datasets.Dataset.from_list([{"prompt": p.prompt, "answer": p.answer} for p in problems])
    args = GRPOConfig(
        output_dir=folder, seed=seed, per_device_train_batch_size=B * G, num_generations=G, max_completion_length=48,
        max_steps=updates + 1, learning_rate=LR, adam_beta2=0.99, max_grad_norm=0.3, beta=0.0, temperature=1.0,
        loss_type="grpo", lr_scheduler_type="constant", report_to="none", save_strategy="no", logging_strategy="no",
        use_cpu=True, bf16=False, disable_tqdm=True, shuffle_dataset=False, gradient_checkpointing=False,
        dataloader_num_workers=0,
    )  # fmt: skip
    laps = Laps()
    model = load_tiny(TinyModelConf(), task, lambda *_: None)
    trainer = GRPOTrainer(
        model=model, reward_funcs=reward, args=args, train_dataset=rows, processing_class=tokenizer(), callbacks=[laps]
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    return laps.seconds[WARM:], trainer.state.log_history[-1]["completions/mean_length"]


def our_round(updates: int, seed: int, folder: str) -> tuple[list[dict[str, float]], float]:
    """Rows of each warm update of ours, records included, and mean response length."""
    cfg = Config(
        suite_name="no_delay", seed=seed, D=None, G=G, B=B, updates=updates, lr=LR,
        clock=ClockConf(85.0, 1.0, 0.0, 0), lengths=LognormalConf(), model=TinyModelConf(), task=ChainConf(),
        sampler=HfSamplerConf(max_new_tokens=48), estimator=discover()["grpo"].Params(), learner=LearnerConf(lr=LR),
        evaluation=EvaluationConf(every=None, problems=1, samples=0), checkpoint=CheckpointConf(), resume="never",
    )  # fmt: skip
    path = Path(folder) / "run"
    train(cfg, path, Display("quiet"))
    rows = [json.loads(line) for line in (path / "updates.jsonl").open()][WARM:]
    return rows, mean(row["length_mean"] for row in rows)


def main() -> None:
    """Print both rates, the ratio round by round, and where our time goes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=40, help="updates in a round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    ours, theirs, parts, lengths = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.rounds):
            seconds, their_length = trl_round(options.updates, seed, folder)
            rows, our_length = our_round(options.updates, seed, folder)
            theirs.append(1 / median(seconds))
            ours.append(1 / median(row["wall_s"] for row in rows))
            parts.append({part: sum(r[part] for r in rows) / sum(r["wall_s"] for r in rows) for part in PARTS})
            lengths.append((our_length, their_length))
            print(f"delaysim {ours[-1]:5.2f}   TRL {theirs[-1]:5.2f} updates/s   ratio {ours[-1] / theirs[-1]:.2f}")
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"response length: delaysim {mean(a for a, _ in lengths):.2f}, TRL {mean(b for _, b in lengths):.2f} tokens")
    print("delaysim's time: " + ", ".join(f"{p[:-2]} {mean(x[p] for x in parts):.1%}" for p in PARTS))
    print(f"ratio: median {median(ratios):.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}")


if __name__ == "__main__":
    main()
