"""Presets of real models and of the paper's experiments: what they set, and that mode=plan prices them."""

import re
import subprocess
import sys

import pytest
from hydra import compose, initialize_config_dir
from settings import make_config

from delaysim.cli.compose import to_config
from delaysim.settings.identity import run_id, threshold
from delaysim.settings.places import conf_dir

DELAYS, LOSSES = ("0", "32", "64", "128", "256", "512"), {"grpo": 0.2, "tic": 0.28, "gmc": 0.28}


def composed(*overrides):
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return to_config(compose("config", [*overrides, "task.path=problems.jsonl"]))


@pytest.mark.parametrize(
    ("name", "path", "dtype", "rank"),
    [
        ("qwen3_1b7", "Qwen/Qwen3-1.7B-Base", "float32", None),
        ("qwen3_4b", "Qwen/Qwen3-4B-Base", "float32", None),
        ("qwen3_8b", "Qwen/Qwen3-8B-Base", "bfloat16", 64),
    ],
)
def test_real_models_train_in_micro_batches_on_one_gpu(name, path, dtype, rank):
    cfg = make_config(f"model={name}", "task=gsm8k", "task.path=x")
    assert (cfg.model.path, cfg.model.dtype, cfg.model.lora.rank) == (path, dtype, rank)
    assert (cfg.devices, cfg.updates, cfg.learner.precision) == (["cuda:0"], 800, "bf16_autocast")
    assert cfg.learner.tokens == 16384
    assert cfg.learner.logits == 1024
    assert cfg.learner.gradient_checkpointing
    assert f"-{path.split('/')[1].lower()}-gsm8k-s0-" in run_id(cfg)


@pytest.mark.parametrize("name", ["paper_fixed_delay", "paper_simulated_async"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_papers_settings(name, loss):
    cfg = composed(f"+experiment={name}", f"estimator={loss}")
    assert (cfg.B, cfg.G, cfg.updates, cfg.clock.C_gen, cfg.clock.C_update) == (8, 8, 800, 85.0, 1.0)
    assert threshold(cfg) == LOSSES[loss]
    assert cfg.model.path == "Qwen/Qwen3-1.7B-Base"
    assert cfg.clock.lam == (0.0 if name == "paper_fixed_delay" else 1.0)


def test_model_task_and_delay_can_be_given():
    cfg = composed("+experiment=paper_fixed_delay", "model=qwen3_8b", "D=64", "B=4")
    assert (cfg.model.path, cfg.D, cfg.clock.eta, cfg.B) == ("Qwen/Qwen3-8B-Base", 64, 64, 4)


def plan(*overrides):
    command = [sys.executable, "-X", "importtime", "-m", "delaysim", "mode=plan", "task.path=x", *overrides]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.slow
def test_the_fixed_delay_experiment_is_a_sweep_of_eighteen_runs_priced_without_torch(tmp_path):
    done = plan("+experiment=paper_fixed_delay", f"runs_dir={tmp_path}", "plan.memory_gb=80")
    assert done.returncode == 0, done.stderr
    cells = set(re.findall(r"(grpo|tic|gmc)-D(\d+)-eps", done.stdout))
    assert cells == {(loss, delay) for loss in LOSSES for delay in DELAYS}
    assert "18 runs, 18 to do" in done.stdout
    assert "fits 80 GB" in done.stdout
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "delaysim.run.footprint" in imported
    assert not imported & {"torch", "transformers", "peft"}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("model", ["qwen3_1b7", "qwen3_4b", "qwen3_8b"])
@pytest.mark.slow
def test_the_asynchronous_experiment_is_three_runs_of_each_size(tmp_path, model):
    done = plan("+experiment=paper_simulated_async", f"model={model}", f"runs_dir={tmp_path}", "plan.memory_gb=141")
    assert done.returncode == 0, done.stderr
    assert "3 runs, 3 to do" in done.stdout
    assert "fits 141 GB" in done.stdout
