"""Loss functions of TRL and verl, read from their wheels and never imported: the packages need far more than torch.

A definition is cut from its file by name, its decorators dropped and its annotations left unevaluated, and run in a
namespace that holds only what it calls.
"""

import __future__

import ast
import math
import os
import zipfile
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

FOLDER = Path(os.environ.get("DELAYSIM_WHEELS") or Path(__file__).parents[2] / "wheels")
TRL = "trl-1.16.0-py3-none-any.whl"
VERL = "verl-0.9.1-py3-none-any.whl"

VERL_LOSSES = ("vanilla", "gspo", "sapo", "cispo", "geo_mean", "dppo_tv", "reinforce")
VERL_ADVANTAGES = ("compute_grpo_outcome_advantage", "compute_rloo_outcome_advantage")
VERL_CORRECTION = (
    "SAFETY_BOUND",
    "_parse_rollout_is_threshold",
    "compute_rollout_correction_weights",
    "compute_is_metrics",
    "compute_offpolicy_metrics",
)


class ActorConfig(SimpleNamespace):
    """verl's configuration of a policy loss."""

    def get(self, name, default=None):
        return getattr(self, name, default)


def load_verl():
    """verl's policy losses by name, and its advantages, KL penalties, correction weights and diagnostics."""
    sums = define(parse(VERL, "verl/utils/torch_functional.py"), ("masked_sum", "masked_mean"), {"torch": torch})
    shared = {"torch": torch, "np": np, "math": math, "verl_F": SimpleNamespace(**sums), "defaultdict": defaultdict}
    shared |= {"ActorConfig": ActorConfig, "AlgoConfig": type("AlgoConfig", (), {})}
    names = ("agg_loss", "kl_penalty", "kl_penalty_forward", *VERL_ADVANTAGES, *map(loss_name, VERL_LOSSES))
    core = define(parse(VERL, "verl/trainer/ppo/core_algos.py"), names, dict(shared))
    correction = define(parse(VERL, "verl/trainer/ppo/rollout_corr_helper.py"), VERL_CORRECTION, dict(shared))
    return SimpleNamespace(**core, **{name: correction[name] for name in VERL_CORRECTION})


def loss_name(name):
    return f"compute_policy_loss_{name}"


def load_trl():
    """TRL's GRPO and GMPO losses, and the statements that compute its advantages and its importance ratios."""
    shared = define(parse(TRL, "trl/trainer/utils.py"), ("nanmin", "nanmax", "nanstd"), {"torch": torch, "math": math})
    trainer = class_body(parse(TRL, "trl/trainer/grpo_trainer.py"), "GRPOTrainer")
    grpo = define(trainer, ("_compute_loss", "get_off_policy_mask", "get_gamma_weights"), dict(shared))
    gmpo = class_body(parse(TRL, "trl/experimental/gmpo/gmpo_trainer.py"), "GMPOTrainer")
    scoring = next(node for node in trainer.body if "_generate_and_score_completions" in assigned(node))
    return SimpleNamespace(
        grpo=grpo["_compute_loss"],
        gmpo=define(gmpo, ("_compute_loss",), dict(shared))["_compute_loss"],
        off_policy_mask=grpo["get_off_policy_mask"],
        gamma_weights=torch.no_grad()(grpo["get_gamma_weights"]),
        advantages=statement(scoring, "advantages", dict(shared)),
        importance_ratio=statement(scoring, "vllm_importance_sampling_ratio", dict(shared)),
    )


def parse(wheel, path):
    """The syntax tree of one file of a wheel; skips the test where the wheel is missing."""
    file = FOLDER / wheel
    if not file.is_file():
        pytest.skip(f"no {wheel} in {FOLDER}: run `make wheels`, or set DELAYSIM_WHEELS to the folder that holds it")
    with zipfile.ZipFile(file) as archive:
        return ast.parse(archive.read(path))


def class_body(tree, name):
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def define(tree, names, namespace):
    """Run the named definitions of a module's or a class's body in `namespace`, and return it."""
    nodes = [node for node in tree.body if assigned(node) & set(names)]
    missing = set(names).difference(*map(assigned, nodes))
    assert not missing, f"the wheel defines no {sorted(missing)}"
    for node in nodes:
        execute(node, namespace)
    return namespace


def defaults(wheel, path, name):
    """The literal defaults of a class's fields, `x: int = 1` or `x: int = field(default=1)`."""
    found = {}
    for node in class_body(parse(wheel, path), name).body:
        value = getattr(node, "value", None)
        if isinstance(value, ast.Call):
            value = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
        if isinstance(value, ast.Constant):
            found |= dict.fromkeys(assigned(node), value.value)
    return found


def statement(function, name, namespace):
    """The outermost `if` statement of a function that assigns `name`, as a function of the names it reads."""
    branches = (node for node in ast.walk(function) if isinstance(node, ast.If))
    node = next(node for node in branches if any(name in assigned(inner) for inner in ast.walk(node)))

    def run(**values):
        local = namespace | values
        execute(node, local)
        return local[name]

    return run


def assigned(node):
    """The names that one statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def execute(node, namespace):
    if hasattr(node, "decorator_list"):
        node.decorator_list = []
    flags = __future__.annotations.compiler_flag
    exec(compile(ast.Module([node], type_ignores=[]), "wheel", "exec", flags, dont_inherit=True), namespace)
