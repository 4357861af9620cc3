"""Screening: the pinned group's values, what runs recorded, matched thresholds, and lines that are wrong."""

import csv
import io
import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from estimators.batches import BEHAVIOUR, LOG_RATIO, pinned, random_batch
from settings import run, small_config

from delaysim.cli.screen import screen
from delaysim.errors import UserError
from delaysim.estimators import discover, make
from delaysim.screening.match import match, strength, thinned
from delaysim.screening.sources import read
from delaysim.screening.tally import Tally, bin_name, bin_of

LOGP = [
    [b + d for b, d in zip(behaviour, delta, strict=True)]
    for behaviour, delta in zip(BEHAVIOUR, LOG_RATIO, strict=True)
]
PINNED = {
    "group": 0, "delay": 3, "rewards": [1, 0, 0, 1], "advantages": [1, -1, -1, 1], "behaviour_logp": BEHAVIOUR,
    "logp": LOGP,
}  # fmt: skip


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def of_json(capsys, *arguments):
    assert screen([*arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


# the pinned group


def test_the_pinned_group_as_json(tmp_path, capsys):
    found = of_json(capsys, lines(tmp_path / "g.jsonl", PINNED), "--estimators", "gmc", "tic", "tis:cap=1.28", "is")
    (group,) = found["groups"]
    assert group["estimators"]["is"]["rho"] == pytest.approx([1.419068, 0.818731, 4.481689, 0.367879], abs=1e-6)
    gmc, tic, tis = (group["estimators"][name] for name in ("gmc", "tic", "tis:cap=1.28"))
    assert gmc["weight"] == pytest.approx([0.722412] * 4, abs=1e-6)
    assert gmc["scaled"] == pytest.approx([1.025152, 0.591461, 3.237627, 0.265761], abs=1e-6)
    assert gmc["coefficient_sum"] == pytest.approx(np.array(gmc["scaled"]) * [3, 2, 3, 1])
    assert tic["weight"] == [0, 1, 0, 1]
    assert tis["scaled"] == pytest.approx([1.28, 0.818731, 1.28, 0.367879], abs=1e-6)
    removed = {name: found["estimators"][name]["delays"][0]["removed"] for name in found["estimators"]}
    assert removed == pytest.approx({"gmc": 0.491842, "tic": 1.475189, "tis:cap=1.28": 0.835189, "is": 0}, abs=1e-6)
    total = found["estimators"]["gmc"]["delays"][0]
    assert (total["ess"], total["agreement"]) == (pytest.approx(0.548252, abs=1e-6), pytest.approx(1))


def test_the_pinned_group_as_csv_and_table(tmp_path, capsys):
    path = lines(tmp_path / "g.jsonl", PINNED)
    assert screen([path, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    overall = {row["estimator"]: row for row in rows if row["delay"] == "all"}
    assert float(overall["gmc"]["kept"]) == pytest.approx(1.28)
    assert float(overall["grpo"]["kept"]) == pytest.approx(0.8296, abs=1e-4)
    assert {row["delay"] for row in rows} == {"all", "2-3"}
    assert screen([path, "--estimators", "gmc"]) == 0
    text = capsys.readouterr().out
    assert "0.4918" in text
    assert max(map(len, text.splitlines())) <= 100


def test_advantages_are_normalised_within_the_group_unless_given(tmp_path, capsys):
    row = {key: value for key, value in PINNED.items() if key != "advantages"}
    (group,) = of_json(capsys, lines(tmp_path / "g.jsonl", row), "--estimators", "is")["groups"]
    assert group["advantages"] == pytest.approx([0.865875, -0.865875, -0.865875, 0.865875], abs=1e-6)
    equal = {**row, "rewards": [0.7] * 4}
    (group,) = of_json(capsys, lines(tmp_path / "e.jsonl", equal), "--estimators", "is")["groups"]
    assert group["advantages"] == [0, 0, 0, 0]


def test_an_unknown_behaviour_log_probability_is_a_ratio_of_1(tmp_path, capsys):
    behaviour = [[None, *BEHAVIOUR[0][1:]], *BEHAVIOUR[1:]]
    path = lines(tmp_path / "g.jsonl", {**PINNED, "behaviour_logp": behaviour})
    (group,) = of_json(capsys, path, "--estimators", "is")["groups"]
    assert group["estimators"]["is"]["rho"][0] == pytest.approx(np.exp(0.25))


def test_a_proximal_policy_reaches_the_decoupled_loss(tmp_path, capsys):
    """With the behaviour as proximal policy u is the ratio itself: PPO's clip, and behaviour weights of 1."""
    path = lines(tmp_path / "g.jsonl", {**PINNED, "prox_logp": BEHAVIOUR})
    found = of_json(capsys, path, "--estimators", "decoupled", "grpo")["groups"][0]["estimators"]
    assert found["decoupled"]["coefficient_sum"] == pytest.approx(found["grpo"]["coefficient_sum"])


def test_a_users_file_with_settings(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\nfrom math import log\n"
        "from delaysim.estimators.base import on_tokens\n"
        "@dataclass\nclass Params:\n    cap: float = 2.0\n"
        "def coefficients(batch, params):\n"
        "    return on_tokens(batch, batch.log_rho.clamp(max=log(params.cap)).exp())\n"
    )
    path = lines(tmp_path / "g.jsonl", PINNED)
    found = of_json(capsys, path, "--estimators", f"{file}:cap=3", "tis:cap=3")["groups"][0]["estimators"]
    assert found["mine:cap=3"] == found["tis:cap=3"]


def test_groups_of_another_size_start_another_mini_batch(tmp_path):
    pair = {"delay": 1, "rewards": [0, 1], "behaviour_logp": [[-1], [-2, -1]], "logp": [[-1], [-2, -2]]}
    path = lines(tmp_path / "g.jsonl", PINNED, PINNED, PINNED, pair, pair, PINNED)
    sizes = [tuple(batch.data.rewards.shape) for batch in read([tmp_path / "g.jsonl"], 2)]
    assert sizes == [(2, 4), (1, 4), (2, 2), (1, 4)], path


BAD = {
    "not json\n": "line 1: not JSON",
    "[1]\n": "line 1: a group is a JSON object, not list",
    '{"delay": 1}\n': "line 1: rewards is missing",
    json.dumps({**PINNED, "delay": -1}) + "\n": "line 1: delay is -1: give a whole number, 0 or more",
    json.dumps({**PINNED, "delay": 1.5}) + "\n": "line 1: delay is 1.5",
    json.dumps({**PINNED, "rewards": [1, 0]}) + "\n": "line 1: 2 rewards, but logp has 4 responses",
    json.dumps({**PINNED, "rewards": [1, 0, 0, None]}) + "\n": "line 1: rewards: None is not a finite number",
    json.dumps({**PINNED, "extra": 1}) + "\n": "line 1: extra is not known; the fields are group, delay",
    json.dumps(PINNED) + "\n" + json.dumps({**PINNED, "logp": [[-1], *LOGP[1:]]}) + "\n":
        "line 2: behaviour_logp has responses of [3, 2, 3, 1] tokens, logp of [1, 2, 3, 1]",
    json.dumps({**PINNED, "logp": [[], *LOGP[1:]]}) + "\n": "line 1: logp, response 0: give a list of numbers",
    json.dumps({**PINNED, "versions": [1, 2, 1, 1]}) + "\n": "the responses of a group share one version",
    json.dumps(PINNED).replace("-1.3", "NaN") + "\n": "line 1: logp, response 3: nan is not a finite number",
    "\n": "has no groups",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_malformed_lines_are_named(tmp_path, text):
    (tmp_path / "g.jsonl").write_text(text)
    with pytest.raises(UserError) as error:
        screen([str(tmp_path / "g.jsonl")])
    assert BAD[text] in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no such run directory"),
        (["."], "has no recorded ratios: run again with record.ratios=all"),
        (["g.jsonl", "--estimators", "nope"], "nope: there is no such estimator; give a .py file, or one of a3po"),
        (["g.jsonl", "--estimators", "gmc:epss=1"], "epss"),
        (["g.jsonl", "--estimators", "sapo:eps=1"], "sapo has no threshold"),
        (["g.jsonl", "--match", "intervention", "--to", "tic", "--estimators", "gmc"], "--to tic: not among"),
    ],
)
def test_what_cannot_be_screened_is_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "g.jsonl", PINNED)
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        screen(arguments)


# recorded runs


@pytest.fixture(scope="module")
def recorded(base_cache, tmp_path_factory):
    """A run of GMC with a small threshold and a large step, so that something is to be seen."""
    folder = tmp_path_factory.mktemp("screened") / "run"
    assert run(small_config("D=3", "estimator=gmc", "eps=0.02", "lr=3e-3", "updates=12"), folder).state == "done"
    return folder


def bin_of_one(delay):
    return bin_name(int(bin_of(torch.tensor([delay]))[0]))


def test_screening_a_run_with_its_own_estimator_gives_its_own_rows(recorded):
    """kept, removed, intervention and agreement of the run's estimator, from ratios.bin, equal the rows' means."""
    rows = [json.loads(line) for line in (recorded / "groups.jsonl").read_text().splitlines()]
    tally = Tally(make("gmc", eps=0.02))
    for batch in read([recorded], 8):
        tally.add(batch.data)
    total, *bins = tally.rows()
    for column in ("kept", "removed", "intervention", "second_moment"):
        assert total[column] == pytest.approx(np.mean([row[column] for row in rows]), rel=1e-9), column
        for name in bins:
            mine = [row[column] for row in rows if bin_of_one(row["delay"]) == name["delay"]]
            assert name[column] == pytest.approx(np.mean(mine), rel=1e-9)
    assert total["agreement"] == pytest.approx(1.0)
    assert 0 < total["intervention"] < 1


def test_bins_are_powers_of_two():
    delays = torch.tensor([0, 1, 2, 3, 4, 7, 8, 127, 128])
    names = [bin_name(int(b)) for b in bin_of(delays)]
    assert names == ["0", "1", "2-3", "2-3", "4-7", "4-7", "8-15", "64-127", "128-255"]


# matching


@pytest.mark.parametrize("kind", ["intervention", "removed_mass", "second_moment"])
@pytest.mark.parametrize("name", ["tic", "tis", "mis", "gmc"])
def test_matching_finds_the_threshold_again(kind, name):
    """Data through a method at some eps, the same method asked for that strength: it answers with that strength."""
    batches = [random_batch(seed, b=4, g=8, t=5, spread=0.4) for seed in range(40)]
    target = strength(make(name).at(0.6), batches, kind)
    found = match(make(name), target, batches, kind)
    assert found.reached
    assert found.strength == pytest.approx(target, rel=1e-2)
    if kind != "intervention":
        assert found.estimator.eps == pytest.approx(0.6, rel=0.05)


def test_matching_says_what_cannot_be_reached():
    """GMC's removed mass on the pinned group is below TIC's at any threshold that drops its third response."""
    batches = [pinned()]
    target = strength(make("gmc"), batches, "removed_mass")
    found = match(make("tic"), target, batches, "removed_mass")
    assert not found.reached
    assert not match(make("sapo"), 0.1, batches, "intervention").reached


def test_every_estimator_can_be_screened():
    batches = [random_batch(seed) for seed in range(3)]
    for name in discover():
        assert np.isfinite(strength(make(name), batches, "intervention")), name


def test_thinning_is_even_and_within_its_limit(monkeypatch):
    monkeypatch.setattr("delaysim.screening.match.LIMIT", 10 * 3 * 5 * 7)
    batches = [random_batch(seed) for seed in range(100)]
    kept = thinned(iter(batches))
    assert 5 <= len(kept) <= 10
    places = [next(i for i, b in enumerate(batches) if b is k) for k in kept]
    assert len({b - a for a, b in pairwise(places)}) == 1
    assert places[0] == 0


def test_the_command_prints_matched_thresholds(recorded, capsys):
    assert (
        screen([str(recorded), "--estimators", "gmc:eps=0.02", "tic", "--match", "removed_mass", "--format", "csv"])
        == 0
    )
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    overall = {row["estimator"]: row for row in rows if row["delay"] == "all"}
    assert float(overall["tic"]["removed"]) == pytest.approx(float(overall["gmc:eps=0.02"]["removed"]), rel=0.25)
    assert float(overall["tic"]["eps"]) > 0.02


def test_the_figure_is_the_same_file_for_the_same_data(recorded, tmp_path):
    for name in ("a", "b"):
        assert screen([str(recorded), "--figure", str(tmp_path / name), "--format", "csv"]) == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_an_error_in_a_users_file_is_one_line(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("def coefficients(batch, params):\n    return batch.nothing\n")
    with pytest.raises(UserError, match=r"bad\.py, line 2: AttributeError: .*delaysim check-estimator"):
        screen([lines(tmp_path / "g.jsonl", PINNED), "--estimators", str(file)])
