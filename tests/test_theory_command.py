"""`delaysim theory`: its tables, its json, on numbers and on run directories."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from settings import rows, run, small_config

from delaysim import theory as t
from delaysim.cli.theory import theory
from delaysim.errors import UserError
from delaysim.files import read_json

PAPER = ("--updates", "800", "--eps", "0.28", "--G", "8")


# the command


def test_the_table_of_the_paper_fits_80_columns(capsys):
    assert theory(["--D", "0", "32", "128", "512", "1000", *PAPER]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for part in ("0.4447", "0.02811", "250.3", "0.331", "2.263e+04", "12.3", "x0.435"):
        assert part in text
    table = {line[:13].strip(): line[13:].split() for line in lines if line.startswith(("constant", "min("))}
    assert table["constant 128"] == [
        "2.68e+08", "2.903", "0.219", "0.00392", "0.0013", "0.319", "0.963", "3.82", "2.84",
    ]  # fmt: skip
    assert table["min(n, 512)"][:3] == ["3.35e+10", "3.625", "0.075"]
    assert table["constant 1000"][2] == "none"
    assert table["constant 0"] == ["0", "-", "0.500", "0.0354", "0.0354", "0", "0", "-", "-"]


def test_json_carries_every_number(capsys):
    assert theory(["--D", "0", "32", "--updates", "100", "--eps", "0.5", "--G", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(s["schedule"], s["D"]) for s in found["schedules"]] == [
        ("constant", 0), ("fixed", 0), ("constant", 32), ("fixed", 32),
    ]  # fmt: skip
    expected = t.report(t.fixed_delay_fourth_moment(100, 32), 100, 0.5, 4)
    last = found["schedules"][-1]
    assert t.Report(**{**{k: last[k] for k in last if k not in ("schedule", "D")},
                       "gmc": t.Tuned(**last["gmc"]), "tic": t.Tuned(**last["tic"])}) == expected  # fmt: skip
    assert found["schedules"][0]["p"] is None, "JSON has no infinity"
    assert found["constants"]["gmc_constant"] == t.gmc_constant(0.5)


def test_the_papers_setting_is_the_default(capsys):
    for arguments in (["--D", "64"], ["--D", "64", *PAPER]):
        theory(arguments)
    first, second = capsys.readouterr().out.split("setting")[1:]
    assert first == second


@pytest.fixture(scope="module")
def folder(base_cache, tmp_path_factory):
    """Three small runs under a fixed delay."""
    root = tmp_path_factory.mktemp("theory")
    for estimator in ("gmc", "tic", "reinforce"):
        eps = () if estimator == "reinforce" else ("eps=0.1",)
        run(small_config("D=3", f"estimator={estimator}", *eps), root / estimator)
    return root


def of_run(capsys, path, *arguments):
    assert theory([str(path), "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_run_directory_gives_its_own_delays_and_settings(folder, capsys):
    found = of_run(capsys, folder / "gmc")
    realised, mean, constant = found["schedules"]
    assert (found["n_updates"], found["eps"], found["group_size"]) == (8, 0.1, 4)
    assert (
        realised["tau4"] == t.fixed_delay_fourth_moment(8, 3) == read_json(folder / "gmc/moments.json")["delay4_mean"]
    )
    assert (mean["D"], mean["tau4"]) == (2.25, pytest.approx(2.25**4))
    assert (constant["D"], constant["tau4"]) == (3, 81)
    assert of_run(capsys, folder / "gmc", "--eps", "0.28")["eps"] == 0.28


def test_a_run_that_has_not_ended_is_read_as_far_as_it_is(folder, capsys, tmp_path):
    shutil.copytree(folder / "gmc", tmp_path / "run")
    (tmp_path / "run/trace.parquet").unlink()
    assert of_run(capsys, tmp_path / "run") == of_run(capsys, folder / "gmc")
    groups = tmp_path / "run/groups.jsonl"
    groups.write_text("".join(line + "\n" for line in groups.read_text().splitlines()[:10]))
    found = of_run(capsys, tmp_path / "run")
    assert (found["n_updates"], found["schedules"][0]["tau4"]) == (5, t.fixed_delay_fourth_moment(5, 3))
    theory([str(tmp_path / "run")])
    assert "so far         5 of 8 updates" in capsys.readouterr().out


@pytest.mark.parametrize(("estimator", "says"), [("gmc", "gmc removed"), ("reinforce", "reinforce has none")])
def test_what_a_run_prints_fits_80_columns(folder, capsys, estimator, says):
    theory([str(folder / estimator)])
    text = capsys.readouterr().out
    assert says in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("estimator", ["gmc", "tic"])
def test_the_measured_mass_stands_beside_its_bound(folder, capsys, tmp_path, estimator):
    path = shutil.copytree(folder / estimator, tmp_path / "run")
    given = [row | {"kl_pi_mu": 0.02 * row["delay"] if row["group"] else None} for row in rows(path, "groups")]
    (path / "groups.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    found = of_run(capsys, path)["measured"]
    known = given[1:]
    assert found["removed"] == pytest.approx(np.mean([row["removed"] for row in known]))
    assert found["kl_pi_mu"] == pytest.approx(np.mean([row["kl_pi_mu"] for row in known]))
    assert found["bound"] == pytest.approx(found["kl_pi_mu"] / getattr(t, f"{estimator}_constant")(0.1))


def test_a_bound_is_given_only_where_there_is_one(folder, capsys, tmp_path):
    path = shutil.copytree(folder / "reinforce", tmp_path / "run")
    given = [row | {"kl_pi_mu": 0.1} for row in rows(path, "groups")]
    (path / "groups.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    assert set(of_run(capsys, path)["measured"]) == {"estimator", "removed"}
    (path / "groups.jsonl").unlink()
    assert of_run(capsys, path)["measured"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either a run directory or delays with --D; e.g. delaysim theory --D 32 128"),
        (["x", "--D", "3"], "give either"),
        (["--D", "3.5"], "3.5: give a whole number from 0"),
        (["--D", "1e9"], "1e9: give a whole number"),
        (["--D", "-1"], "e.g. delaysim theory"),
        (["--D", "1", "--updates", "1"], "1: give a whole number from 2"),
        (["--D", "1", "--G", "0"], "0: give a whole number from 1"),
        (["--D", "1", "--eps", "nan"], "nan: give a number above 0"),
        (["--D", "1", "--eps", "x"], "x: give a number above 0"),
        (["--D", "1", "--foo"], "unrecognized arguments: --foo"),
        (["x", "--G", "4"], "drop --updates and --G"),
        (["nowhere"], "nowhere is not a run directory"),
    ],
)
def test_bad_input_is_one_line(arguments, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        theory(arguments)
    assert len(str(caught.value).splitlines()) == 1


def test_a_damaged_or_empty_run_is_one_line(folder, tmp_path):
    path = shutil.copytree(folder / "gmc", tmp_path / "run")
    (path / "trace.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(UserError, match=r"trace\.parquet: .*copy the run again"):
        theory([str(path)])
    (path / "trace.parquet").unlink()
    (path / "groups.jsonl").write_text("")
    with pytest.raises(UserError, match="has 0 finished updates"):
        theory([str(path)])


def test_the_command_needs_no_torch():
    program = (
        "import sys; from delaysim.cli.theory import theory; theory(['--D', '3']); assert 'torch' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0
