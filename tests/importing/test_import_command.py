"""`delaysim import` as a user calls it: what is printed, what is written, and errors of one line."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from importing.logs import episode, session, trajectory, write

from delaysim.__main__ import entry

GEPO = ("--columns", "consumed_update=learner_step", "delay=step_diff_cap4")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A call in an empty directory: its exit code, and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        code = entry(["import", *map(str, words)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def tinker(tmp_path):
    """Ten updates of two groups of two; delays 0 to 4 and once 6."""
    for n in range(10):
        late = [0, min(n, 6 if n == 9 else 4)]
        records = [trajectory(n, g, i, n - late[g], 10 * (g + 1) + i) for g in (0, 1) for i in (0, 1)]
        write(tmp_path / f"log/iteration_{n:06d}/train_rollout_summaries.jsonl", *records)
    return tmp_path / "log"


def test_the_whole_answer_of_a_log(run, tinker):
    code, out, _ = run("tinker", tinker, "--cap", 4, "--law", "eta=2", "C_gen=2", "lam=0")
    assert code == 0
    assert out.splitlines() == [
        "log            tinker: 10 files",
        "lines          40 read, 0 of them skipped",
        "says           group_id, sample, tokens, version_start, version_end, consumed_update, status",
        "does not say   submit_t, done_t, version_mean",
        "delay          mean 1.6, p50 0, p90 4, max 6 updates",
        "               n - s, of 20 among 20 groups, in 10 updates",
        "tinker         the same: iteration - sampling_client_step",
        "cap            your cap 4 was a p90 of 4, 5% of groups were above it (max 6)",
        "lengths        mean 15.5, p50 11, p90 21, max 21 tokens",
        "status         40 trained",
        "clock          eta=2, lam=0, B=2, sizes in tokens",
        "               C_gen=2 updates (as given)",
        " " * 32 + "mean      p50      p90      max",
        "               realised          1.6        0        4        6",
        "               simulated         1.7        2        2        2",
        "               KS distance 0.450",
        "ledger         delaysim-ledger.parquet",
    ]
    assert pq.read_table("delaysim-ledger.parquet").num_rows == 40


def test_json_has_the_same_numbers_unrounded(run, tinker):
    _, out, _ = run("tinker", tinker, "--cap", 4, "--format", "json", "--out", "x.parquet")
    answer = json.loads(out)
    assert answer["delay"] == {"mean": 1.6, "p50": 0, "p90": 4, "max": 6, "count": 20}
    assert answer["cap"] == {"cap": 4, "p90": 4, "max": 6, "above": 0.05}
    assert answer["clock"]["fitted"] is True
    assert answer["skipped"] == {}


def test_delays_can_be_written_for_a_replay(run, tinker, tmp_path):
    run("tinker", tinker, "--delays", "d.csv")
    lines = (tmp_path / "d.csv").read_text().splitlines()
    assert lines[:5] == ["update,delay", "0,0", "0,0", "1,0", "1,1"]
    assert lines[-1] == "9,6"


def test_skipped_lines_are_told_with_the_first_of_each_kind(run, tmp_path):
    path = write(tmp_path / "sessions.jsonl", session(0, 0), session(0, 0), "{", "[1]", session(0, 1, status=3), "{")
    _, out, _ = run("areal", path)
    assert out.splitlines()[1:6] == [
        "lines          6 read, 5 of them skipped",
        f"               2 not JSON (first: {path}, line 3)",
        f"               1 id read before (first: {path}, line 2)",
        f"               1 not a JSON object (first: {path}, line 4)",
        f"               1 status is none of AReaL's (first: {path}, line 5)",
    ]
    assert "delay          not in this log: --B infers it from the times" in out


def test_who_was_dropped_is_told_by_length(run, tmp_path):
    train = tmp_path / "rollouts/step_3/train"
    kept = [episode(i, f"g{i}", (1, 2), 10 + i) for i in range(16)]
    lost = [episode(i, f"g{i}", (0, 2), 100 + i) for i in range(16, 20)]
    write(train / "effective/traces.jsonl", *kept)
    write(train / "all/traces.jsonl", *kept, *lost)
    _, out, _ = run("prime_rl", tmp_path, "--cap", 1)
    assert "drops          4 responses (20.0%) with a length did not reach training" in out
    assert "reached, by tenth of length: 100% 100% 100% 100% 100% 100% 100% 100% 0% 0%" in out
    assert "trained/generated mean length 0.467, KS distance 0.200: LENGTH BIAS" in out
    assert "your cap 1 was a p90 of 1, 0% of groups were above it (max 1)" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("areal", "nowhere"), "nowhere: no such file or directory"),
        (("areal", "a.txt"), "a.txt: 2 lines, none of them a row of the format areal: 2 not JSON (first: "),
        (("areal", "empty.jsonl"), "empty.jsonl: no lines of the format areal"),
        (("csv", "a.csv", "--columns", "tokens=len"),
         "a.csv: no column 'len'; its columns are 'x', 'y'; give --columns NAME=COLUMN"),
        (("csv", "a.csv"), "a.csv: no column of the common trace; its columns are 'x', 'y'; give"),
        (("csv", "a.csv", "--columns", "token=x"), "--columns token=x: no such name; choose one of group_id, sample"),
        (("tinker", "a.csv", "--columns", "tokens=x"), "--columns: the format tinker has fields of its own"),
        (("csv", "a.csv", "--columns", "tokens=x", "--law", "etaa=4"), "--law etaa=4: no such field"),
        (("csv", "a.csv", "--columns", "tokens=x", "--out", "no/l.parquet"), "cannot write no/l.parquet: No such file"),
        (("csv", "a.csv", "--columns", "tokens=x", "--delays", "d.csv"), "--delays: the log has no delays"),
    ],
)  # fmt: skip
def test_errors_are_one_line(run, tmp_path, words, message):
    (tmp_path / "a.txt").write_text("hello\nworld\n")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "empty.jsonl").write_text("\n")
    code, _, err = run(*words)
    assert code == 2
    assert err.startswith(f"delaysim: {message}")
    assert err.count("\n") == 1


def test_nothing_in_a_log_reaches_the_terminal_as_it_is(run, tmp_path):
    """Control characters, markup and formulas stay in the file."""
    path = tmp_path / "a.csv"
    path.write_text('group_id,tokens,consumed_update,status\n[red]a\x1b[31m,5,0,"=cmd|x\x1b[2J"\n')
    _, out, _ = run("csv", path)
    assert "\x1b" not in out


def test_it_runs_without_torch(tmp_path):
    path = write(tmp_path / "sessions.jsonl", session(0, 0))
    code = f"""import sys
from delaysim.__main__ import entry
assert entry(["import", "areal", {str(path)!r}, "--out", {str(tmp_path / "l.parquet")!r}]) == 0
assert not {{"torch", "transformers", "pandas"}} & set(sys.modules)"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_measured_staleness_of_a_real_run(run, shared):
    """GEPO's cap of 4, as its export has it."""
    file = shared / "traces/gepo_step_diff_tidy.csv"
    _, out, _ = run("csv", file, *GEPO, "--cap", 4)
    assert "delay          mean 3.04, p50 3, p90 6, max 8 updates" in out
    assert "your cap 4 was a p90 of 6, 23% of rows were above it (max 8)" in out


@pytest.mark.parametrize(
    ("name", "rows", "numbers"),
    [
        ("conv", 19366, "mean 211, p50 129, p90 424, max 1,000"),
        ("code", 8819, "mean 27.9, p50 13, p90 55, max 1,899"),
    ],
)
def test_lengths_of_a_real_service(run, shared, name, rows, numbers):
    file = shared / f"traces/AzureLLMInferenceTrace_{name}.csv"
    _, out, _ = run("csv", file, "--columns", "submit_t=TIMESTAMP", "tokens=GeneratedTokens")
    assert f"lines          {rows:,} read, 0 of them skipped" in out
    assert f"lengths        {numbers} tokens" in out
