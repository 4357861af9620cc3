"""Identities of the passes on a small model, and its numbers as the command prints them."""

import csv
import io
import json

import numpy as np
import pytest
import torch
from rich.console import Console

from delaysim.moe_noise.chain import MarkovChain
from delaysim.moe_noise.experiment import experiment
from delaysim.moe_noise.model import build, engine, rows_of
from delaysim.moe_noise.passes import evaluated, passes, scored
from delaysim.moe_noise.report import show, write_csv, write_json
from delaysim.moe_noise.rows import CONTROL, MIXTURE
from delaysim.moe_noise.setting import ENGINES, Setting

SMALL = Setting(delays=(0, 2), sequences=8, length=32, layers=2, teaching=4)


def made(setting, seed=0, dense=False):
    torch.set_num_threads(1)
    return dict(passes(setting, seed, dense, lambda *_: None))


@pytest.fixture(scope="module")
def mixture():
    return made(SMALL)


def test_replaying_a_models_own_experts_changes_nothing():
    model = build(SMALL, 0, dense=False)
    rows = rows_of(evaluated(SMALL, MarkovChain(0)))
    natural = scored(model, rows)
    assert np.array_equal(scored(model, rows, natural.routes).logp, natural.logp)
    other = [(routes + 1) % SMALL.experts for routes in natural.routes]
    assert np.abs(scored(model, rows, other).logp - natural.logp).max() > 1e-4


def test_without_delay_recompute_and_update_are_one(mixture):
    now = mixture[0]
    assert np.array_equal(now.c, now.b)
    assert np.array_equal(now.c_b, now.b)
    assert np.array_equal(now.c_a, now.b_a)
    assert now.flips["bc"].sum() == 0
    assert np.array_equal(now.flips["ac"], now.flips["ab"])


def test_with_delay_experts_flip_and_a_to_b_stays(mixture):
    now, later = mixture[0], mixture[2]
    assert later.flips["bc"].sum() > 0
    assert np.array_equal(later.flips["ab"], now.flips["ab"])
    assert np.array_equal(later.a, now.a)
    assert np.abs(later.c_b - later.b).max() > 1e-3


def test_a_dense_control_has_neither_flips_nor_routing_noise():
    for found in made(SMALL, dense=True).values():
        assert not found.flips
        assert not found.parts()["routing"].any()
        assert found.parts()["engine"].any()


def test_equal_seeds_give_equal_passes_whatever_delays_are_asked_for(mixture):
    again = made(Setting(delays=(2,), sequences=8, length=32, layers=2, teaching=4))
    assert np.array_equal(again[2].c_a, mixture[2].c_a)
    assert not np.array_equal(made(SMALL, seed=1)[2].c, mixture[2].c)


@pytest.mark.parametrize("name", ENGINES)
def test_engines_differ_by_what_they_are(name):
    """Kernels of experts move float32's last digits at most, and nothing where there are no experts."""
    setting = Setting(engine=name, sequences=8, length=32)
    rows = rows_of(evaluated(setting, MarkovChain(0)))
    for dense in (False, True):
        learner = build(setting, 0, dense)
        own = engine(setting, learner)
        gap = np.abs(scored(own, rows).logp - scored(learner, rows).logp).max()
        if name == "bf16":
            assert 1e-4 < gap < 0.2
        else:
            assert gap == 0 if dense else gap < 1e-4
            assert dense or own.config._experts_implementation == name != learner.config._experts_implementation


@pytest.fixture(scope="module")
def found():
    torch.set_num_threads(1)
    return list(experiment(SMALL, [0], lambda *_: None))


def test_the_tables_fit_80_columns_and_show_the_numbers(found):
    console = Console(file=io.StringIO(), width=200)
    show(SMALL, found, console)
    text = console.file.getvalue()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    number = found[1].numbers["std_total_product"].value
    (line,) = [line for line in text.splitlines() if line.strip().startswith("A to C, none")]
    assert line.split()[-1] == f"{number:.3f}"
    assert text.count("D=2, 32 tokens: what routing noise does") == 1


def test_every_row_of_the_table_names_a_number(found):
    by_model = {f.model: f.numbers for f in found if f.delay == 2}
    for rows, model in ((MIXTURE, "moe"), (CONTROL, "dense")):
        assert {row.name for row in rows if row.name} <= set(by_model[model])


def test_csv_and_json_carry_every_number(found):
    file = io.StringIO()
    write_csv(found, file)
    lines = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert len(lines) == sum(len(f.numbers) for f in found)
    file = io.StringIO()
    write_json(SMALL, found, file)
    whole = json.loads(file.getvalue())
    assert [float(line["value"]) for line in lines] == [number["value"] for number in whole["numbers"]]
    assert (whole["setting"]["engine"], whole["thresholds"]["gspo"]["eps"]) == ("bf16", 4e-4)


@pytest.mark.slow
def test_the_ranges_of_the_study_hold():
    """Routing noise averages as a root; replay removes it and not the drift; more delay, more experts that differ."""
    setting = Setting(delays=(0, 4, 16), length=256, teaching=80)
    said = {(f.model, f.delay): f.numbers for f in experiment(setting, [0], lambda *_: None)}
    for delay in (4, 16):
        value = {name: number.value for name, number in said["moe", delay].items()}
        assert -0.6 < value["slope_routing_mean"] < -0.4
        assert 0.4 < value["slope_routing_product"] < 0.6
        assert value["slope_total_rms"] > value["slope_total_mean"], "the mean log-ratio, a KL, does not average out"
        assert value["product_bc_r2"] == pytest.approx(value["product_bc_r3"], rel=5e-3)
        assert value["k3_ab_none"] == value["k3_ab_r2"] > 1.2 * value["k3_ab_r3"]
        assert value["max_bc_none"] > value["max_bc_r2"]
        assert value["product_ac_r3"] > 0.5 * value["product_ac_none"], "replay is no cure for delay"
    flips = [said["moe", delay]["flips_bc"].value for delay in setting.delays]
    assert flips[0] == 0 < flips[1] < flips[2]
    assert 0.002 < said["moe", 0]["flips_ab"].value < 0.03
    assert said["moe", 16]["slope_total_rms"].value > -0.4
    assert said["dense", 4]["std_routing_product"].value == 0
