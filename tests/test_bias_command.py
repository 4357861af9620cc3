"""`delaysim bias` on traces made by the clock, and on the same numbers by hand."""

import csv
import io
import json

import pytest

from delaysim.cli.bias import bias
from delaysim.clock import Law
from delaysim.clock.lengths import KeyedLengths, Lognormal
from delaysim.clock.trace import group_rows, run_alone
from delaysim.errors import UserError
from delaysim.files import write_json
from delaysim.run.account import read_account, write_account

COSTS = {"C_gen": 9.0, "C_update": 1.0, "lam": 1.0, "eta": 16}


def traced(path, seed, n_updates=300, **policy):
    """A trace's account and manifest, as mode=trace leaves them; returns the account."""
    law = Law(n_updates, 4, 16, 9.0, 1.0, 1.0, 20.0, **policy)
    lengths = KeyedLengths(Lognormal(20, 0.7, 0.5, 100), 4, seed)
    ledger = run_alone(law, lengths, seed).ledger
    path.mkdir(parents=True)
    write_account(path, ledger, group_rows(ledger), lengths.of_ledger(ledger, len(ledger)), law)
    identity = {"suite": "simulated_async", "clock": COSTS | policy, "B": 4, "G": 4, "N": n_updates, "seed": seed}
    write_json(path / "manifest.json", {"identity": {**identity, "lengths": {"mean": 20.0}, "pilot_seed": 0}})
    return read_account(path)


def printed(capsys, *arguments):
    assert bias([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_one_line_per_policy_over_its_seeds(tmp_path, capsys):
    kept = [traced(tmp_path / f"none-{seed}", seed) for seed in (0, 1)]
    aged = [traced(tmp_path / f"age-{seed}", seed, age_max=12) for seed in (0, 1)]
    rows = list(csv.DictReader(io.StringIO(printed(capsys, tmp_path, "--format", "csv"))))
    assert [(row["cell"], row["seeds"], row["window"]) for row in rows] == [
        ("no drop", "2", "steady"), ("age_max=12", "2", "steady")
    ]  # fmt: skip
    for row, accounts in zip(rows, (kept, aged), strict=True):
        ratios = [account["lengths"]["steady"]["ratio"] for account in accounts]
        longest = [account["longest"]["steady"]["survival"][-1] for account in accounts]
        assert float(row["ratio"]) == pytest.approx(sum(ratios) / 2)
        assert float(row["longest"]) == pytest.approx(sum(longest) / 2)
        assert float(row["ratio_half"]) == pytest.approx(12.7062 * abs(ratios[0] - ratios[1]) / 2, rel=1e-4)
        assert float(row["delay_max"]) == sum(account["delay"]["max"] for account in accounts) / 2
    assert float(rows[0]["dropped"]) == 0 < float(rows[1]["dropped"])


def test_the_table_says_what_is_known_and_of_which_groups(tmp_path, capsys):
    steady = traced(tmp_path / "a", 0)["lengths"]["steady"]
    short = traced(tmp_path / "b", 0, n_updates=20, age_max=12)["lengths"]
    assert short["policy"] == "decided"
    text = printed(capsys, tmp_path)
    assert f"{steady['ratio']:.3f}" in next(line for line in text.splitlines() if line.startswith("N=300"))
    assert f"{short['decided']['ratio']:.3f}" in next(line for line in text.splitlines() if "N=20 age_max=12 *" in line)
    assert "*: too short for a steady state" in text
    assert "reward" not in text


def test_training_adds_rewards_and_accuracy(tmp_path, capsys):
    traced(tmp_path / "run", 3)
    account = read_account(tmp_path / "run")
    account["rewards"] = {"policy": "decided", "decided": {"ratio": 1.25}}
    write_json(tmp_path / "run/account.json", account)
    judged = [
        (name, greedy, right) for name in "ab" for greedy, right in ((True, 0), (False, 0), (False, 1), (False, 1))
    ]
    lines = [{"update": 240, "problem": name, "greedy": greedy, "correct": right, "truncated": False, "length": 3}
             for name, greedy, right in judged]  # fmt: skip
    (tmp_path / "run/evals.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = json.loads(printed(capsys, tmp_path, "--format", "json"))
    assert found[0]["reward_ratio"] == 1.25
    assert found[0]["accuracy"] == pytest.approx(2 / 3)


def test_a_folder_without_accounts_is_an_error_that_says_what_leaves_one(tmp_path):
    with pytest.raises(UserError, match=r"no account here or below.*sweep=length_bias"):
        bias([str(tmp_path)])
