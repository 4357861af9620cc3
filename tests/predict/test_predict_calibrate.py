"""Costs measured in a run and in a csv."""

import json
from statistics import fmean

import pytest
from settings import make_config

from delaysim.errors import UserError
from delaysim.predict.calibrate import from_csv, from_run
from delaysim.predict.inputs import question
from delaysim.predict.operation import COLOCATED, Cell
from delaysim.predict.simulate import predict
from delaysim.predict.tables import read_points
from delaysim.rng import stream
from delaysim.settings.configfile import save_config

CSV = """type,num_gpus,device,model,seq_len,micro_batches,tok_s_mean,step_s_mean,mfu
rl,1,H100,small,100,2,50,4.0,9
rl,4,H100,small,100,2,200,5.0,8
rl,1,A100,small,100,2,25,8.0,9
sft,1,H100,small,100,2,75,2.0,9
rl,8,H100,large,100,,10,,3
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "baselines.csv"
    path.write_text(CSV)
    return path


def test_an_update_takes_as_many_steps_as_it_has_steps_tokens(table):
    """On one GPU a step has 200 tokens in 4 s, on four 800 in 5 s; an update has 1000 tokens."""
    found, words = from_csv(table, {"type": "rl", "model": "small", "device": "h100"}, 1000)
    assert found == pytest.approx({1: 20.0, 4: 6.25})
    assert words == "baselines.csv (type=rl, model=small, device=h100)"


def test_stated_tokens_per_second_count_where_a_step_is_not_described(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("gpus,tok_s_mean\n8,10\n")
    assert from_csv(path, {}, 1000)[0] == {8: 100}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"model": "small"}, "4 rows fit; choose with --row type=VALUE: 'rl', 'sft'"),
        ({"model": "small", "type": "rl"}, "3 rows fit; choose with --row device=VALUE: 'H100', 'A100'"),
        ({"model": "huge"}, "no row has model=huge; left to choose from: 'small', 'large'"),
        ({"modell": "small"}, "no column 'modell'; the columns are 'type', 'num_gpus'"),
        ({"model": "large"}, "line 6, column 'micro_batches': '' is not a number above 0"),
    ],
)
def test_rows_that_do_not_fit_are_one_line(table, where, message):
    with pytest.raises(UserError, match=message):
        from_csv(table, where, 1000)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"  \n \n", "is empty"),
        (b"\x7fELF\x02\xd0\xff", "not a CSV file"),
        (b"gpus,tok_s_mean\n", "has no rows"),
        (b"gpus,gpus\n1,2\n", "columns need names, each once"),
        (b"gpus,\n1,2\n", "columns need names, each once"),
        (b"gpus,tok_s_mean\n1\n", "line 2: not as many cells"),
        (b"gpus,tok_s_mean\n1,2,3\n", "line 2: not as many cells"),
        (b"gpus,tok_s_mean\n1,nan\n", "line 2, column 'tok_s_mean': 'nan' is not a number above 0"),
        (b"gpus,tok_s_mean\n1,-3\n", "is not a number above 0"),
        (b"gpus,tok_s_mean\n1,1e999\n", "is not a number above 0"),
        (b"gpus,tok_s_mean\n1," + b"9x" * 10**5 + b"\n", "not a CSV file: field larger than field limit"),
        (b"gpus,tok_s_mean\n1," + b"9x" * 10**4 + b"\n", r"\.\.\.' is not a number above 0"),
        (b"gpus,tok_s_mean\n1,\"\x1b[31m\n2\"\n", r"'\\x1b\[31m\\n2' is not a number above 0"),
        (b"tokens,tok_s_mean\n1,2\n", "no column of GPUs"),
        (b"gpus,speed\n1,2\n", "no column 'tok_s_mean'"),
        (b'gpus,tok_s_mean\n1,"2\n', "not a CSV file"),
    ],
)  # fmt: skip
def test_a_broken_or_hostile_table_is_one_short_line(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as raised:
        from_csv(path, {}, 1000)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400 + len(str(path))


def test_points_have_two_columns(tmp_path):
    path = tmp_path / "speed.csv"
    path.write_text("concurrency,tokens_per_s,note\n1,60,x\n")
    with pytest.raises(UserError, match="give two columns with a header"):
        read_points(path)


def test_published_trainer_rows(shared):
    """At its own number of tokens a row's update takes its step: 5.260 s on one GPU, 5.380 s on eight."""
    path = shared / "traces" / "prime_rl_trainer_baselines.csv"
    where = {"model": "Qwen/Qwen3-4B-Instruct-2507", "device": "NVIDIA H100 80GB HBM3", "lora_rank": "16",
             "seq_len": "16384", "ac": "Recompute"}  # fmt: skip
    found, _ = from_csv(path, where, 2 * 16384)
    assert found == pytest.approx({1: 5.260317, 8: 5.380075 / 8}, rel=1e-6)


@pytest.mark.parametrize(("chunk", "at_once", "tokens"), [(1, 3, 180.0), (8, 6, 180.0)])
def test_a_run_says_its_seconds_steps_and_lengths(tmp_path, chunk, at_once, tokens):
    """Two groups of three a launch, 60 tokens the longest, in 2 s: one after the other 60 steps/s, together 30.

    The first update, which warms up, is not looked at.
    """
    save_config(make_config("D=1", "B=2", "G=3", "updates=4", f"sampler.chunk={chunk}"), tmp_path / "config.yaml")
    updates = [
        {"update": n, "generate_s": 90.0 if n == 0 else 2.0, "rescore_s": 0.25, "reward_s": 0.5,
         "train_s": 80.0 if n == 0 else 3.0, "publish_s": 0.125, "wall_s": 9.0}
        for n in range(4)
    ]  # fmt: skip
    launches = [{"version": n // 2, "lengths": [40, 50, 60]} for n in range(8)]
    for name, rows in (("updates", updates), ("launches", launches)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = from_run(tmp_path)
    lengths = found.pop("lengths").recorded
    assert sorted(lengths.tolist()) == [40] * 8 + [50] * 8 + [60] * 8
    speed = {at_once: tokens}
    assert found == {"B": 2, "G": 3, "speed": speed, "slots": at_once, "trainer": {1: 3.75}, "sync": 0.125}
    (tmp_path / "updates.jsonl").write_text(json.dumps(updates[0]) + "\n")
    with pytest.raises(UserError, match="has 1 finished updates: three or more are needed"):
        from_run(tmp_path)


def test_a_run_that_is_its_own_calibration_comes_out_as_it_was(tmp_path):
    """Lengths as drawn, 0.01 s a token of the longest: on one GPU in turn the clock takes what the run took."""
    save_config(make_config("D=0", "B=2", "G=3", "updates=400"), tmp_path / "config.yaml")
    rng = stream(0, "calibration")
    drawn = rng.integers(1, 50, (400, 2, 3)).tolist()
    seconds = [0.01 * max(map(max, groups)) for groups in drawn]
    launches = [{"version": n, "lengths": lengths} for n, groups in enumerate(drawn) for lengths in groups]
    updates = [{"update": n, "generate_s": s, "train_s": 0.5, "publish_s": 0.1} for n, s in enumerate(seconds)]
    for name, rows in (("updates", updates), ("launches", launches)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = question({**from_run(tmp_path), "gpus": 1}, {})
    one = predict(Cell(COLOCATED, 1, 1), asked.costs)
    assert one.seconds == pytest.approx(fmean(seconds) + 0.6, rel=0.02)
